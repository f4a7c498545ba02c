"""Nested smooths, s(x) + s(z) + s(x, z): the larger gives up the functions that the smaller ones have (mgcv's
gam.side; Wood 2017, section 5.6.3), so that the model is identified and means the same. Terms of other multipliers or
levels, s(x) + s(x, by=g), keep theirs, as their penalties tell them apart. What no penalty tells apart, straight lines
there, and w in s(x, by=w) + s(z, by=w), mgcv finds only where it solves for the coefficients; here the later term gives
it up, which moves no fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import TermError
from .base import BuiltTerm, Columns, Penalty
from .built import SmoothTerm

_ROWS = 2000  # rows on which functions are compared
_SAME = np.finfo(float).eps ** 0.5  # of the largest column: what is left of a column that the others span


def side(terms: Sequence[BuiltTerm], columns: Columns, intercept: bool) -> list[BuiltTerm]:
    """The terms, those of more covariates without the functions that terms of some of these covariates contain."""
    out = list(terms)
    smooths = [i for i, term in enumerate(out) if isinstance(term, SmoothTerm)]
    pairs = ((out[i], out[j]) for n, i in enumerate(smooths) for j in smooths[:n])
    if not any(_meet(a, b) and not _apart(a, b) for a, b in pairs):
        return out
    smooths.sort(key=lambda i: len(_own(out[i])))  # stable: in the formula's order among equals
    n = len(next(iter(columns.values())))
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.int64))
    some = {name: np.asarray(column)[rows] for name, column in columns.items()}
    names = {i: _names(out[i], columns) for i in smooths}
    for place, i in enumerate(smooths):
        smaller = [out[j] for j in smooths[:place] if names[i] & names[j]]
        term = out[i]
        if not smaller or not isinstance(term, SmoothTerm):
            continue
        known = [other.design(some) for other in smaller]
        if intercept:
            known.insert(0, np.ones((len(rows), 1)))
        out[i] = _without(term, _spanned(np.concatenate(known, axis=1), term.design(some)))
    return _told_apart(out, smooths, some, intercept)


def _own(term: BuiltTerm) -> tuple[str, ...]:
    return term.smooth_covariates if isinstance(term, SmoothTerm) else ()


def _names(term: BuiltTerm, columns: Columns) -> set[tuple[Any, ...]]:
    """Its covariates, each with the multiplier and the level that the term has: those of nested terms are the same."""
    level = term.level
    if level is not None and np.all(np.asarray(columns[level[0]]) == level[1]):  # a factor of one level
        level = None
    return {(name, term.by, level) for name in _own(term)}


def _meet(a: BuiltTerm, b: BuiltTerm) -> bool:
    """Whether the two have a covariate or a multiplier in common: s(x, by=w) has w itself, as s(w) and s(z, by=w)."""
    return bool({*_own(a), a.by} & {*_own(b), b.by} - {None})


def _apart(a: BuiltTerm, b: BuiltTerm) -> bool:
    """Whether they have no row in common."""
    return a.level is not None and b.level is not None and a.level[0] == b.level[0] and a.level != b.level


def _told_apart(out: list[BuiltTerm], smooths: Sequence[int], some: Columns, intercept: bool) -> list[BuiltTerm]:
    """The terms without such functions as no penalty acts on and earlier ones have: coefficients along which neither
    the rows nor a penalty change, and of which one may as well be zero."""
    from scipy.linalg import qr

    n = len(next(iter(some.values())))
    basis = np.full((n, int(intercept)), n**-0.5)
    for i in smooths:
        term = out[i]
        free = _unpenalised(term)
        if not free.shape[1] or not any(j != i and _meet(term, out[j]) for j in smooths):
            continue
        functions = term.design(some) @ free
        size = np.maximum(np.linalg.norm(functions, axis=0), 1e-300)
        left = functions / size
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        u, d, turn = np.linalg.svd(left, full_matrices=False)
        same = d < _SAME
        basis = np.concatenate([basis, u[:, ~same]], axis=1)
        if same.any() and isinstance(term, SmoothTerm):
            still = (free / size) @ turn[same].T
            found: Any = qr(still.T, mode="r", pivoting=True)
            out[i] = _without(term, np.sort(found[1][: int(same.sum())]))
    return out


def _unpenalised(term: BuiltTerm) -> np.ndarray:
    """(p, null_dim) orthonormal: coefficients that no penalty acts on."""
    if not term.penalties:
        return np.eye(term.size)
    balanced = [p.square_root / max(np.linalg.norm(p.square_root), 1e-300) for p in term.penalties]
    return np.linalg.svd(np.concatenate(balanced))[2][term.size - term.null_dim :].T


def _spanned(known: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Numbers of the columns that lie in the span of the known ones and of the other columns."""
    from scipy.linalg import qr

    q, r = np.linalg.qr(known)
    left = columns - q @ (q.T @ columns)
    left -= q @ (q.T @ left)
    found: Any = qr(left, mode="r", pivoting=True)
    triangle, pivots = np.asarray(found[0]), np.asarray(found[1])
    size = min(triangle.shape)
    limit = _SAME * np.abs(r).max()
    rank = size
    while rank > 0 and np.mean(np.abs(triangle[rank - 1 : size, rank - 1 : size])) < limit:
        rank -= 1
    return np.sort(np.concatenate([pivots[rank:size], pivots[size:]]))


def _without(term: SmoothTerm, drop: np.ndarray) -> BuiltTerm:
    """The term without some of its columns."""
    if drop.size == 0:
        return term
    if drop.size == term.size:
        raise TermError(
            f"{term.label} has no function that the other smooths of its covariates do not have already. Leave it out."
        )
    keep = np.setdiff1d(np.arange(term.size), drop)
    pick = np.eye(term.size)[:, keep]
    roots = [p.square_root[:, keep] for p in term.penalties]  # to 1e-14 of the largest: 1e-28 of S's eigenvalues
    penalties = tuple(
        Penalty(p.matrix[np.ix_(keep, keep)], int(np.linalg.matrix_rank(E)), p.label, E)
        for p, E in zip(term.penalties, roots)
    )
    joint = np.concatenate([np.zeros((1, keep.size)), *(E / max(np.linalg.norm(E), 1e-300) for E in roots)])
    return replace(
        term,
        size=keep.size,
        basis=term.basis.times(pick),
        penalties=penalties,
        spectrum=None,
        null_dim=keep.size - int(np.linalg.matrix_rank(joint)),
    )
