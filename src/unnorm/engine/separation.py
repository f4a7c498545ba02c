"""Maxima at infinity, and columns that others span: what is said of them, and the certificate without which it is not.

A direction d of the coefficients separates the rows if the likelihood of every row rises or stays along it,

    binomial: xᵀd ≥ 0 where y = 1, ≤ 0 where y = 0, = 0 between;     Poisson: xᵀd = 0 where y > 0, ≤ 0 where y = 0,

some row's rises, and no penalty opposes it, dᵀS_λd = 0 (Albert & Anderson 1984, Biometrika 71: 1–10). Then, and only
then, the penalised maximum does not exist. That η moves far on rows whose mean is 0 or 1 already proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..errors import listing
from .arrow import Arrow, Singular

if TYPE_CHECKING:
    from .design import Design
    from .penalties import Penalties
    from .segment import ResponseRows

_VIOLATION = 1e-6  # of the largest |xᵀd|: what a direction found by Newton's steps, or an eigenvector, may be off
_FAR = 1e3  # |η| from which it may be less: what is off, times |η|, must not move a row's likelihood
_CERTAIN = 30.0  # |η| of a row whose mean is 0 or 1 to 1e-13
_COLUMNS = 200  # coefficients up to which a direction is searched for
_NUMBERS = 4_000_000  # and numbers in their columns
_ROWS, _ROUNDS = 200, 50  # of the search: rows at a time, and how often
_RANK = 1e-10  # of the largest singular value: rounding
_UP, _MOVED, _NO_GAIN = 1e-9, 1e-5, 1e-10  # moves of rows of size one that are none, that are one; a mean that is zero
_OPPOSED = 1e-10  # dᵀS_jd, of what it is at most for coefficients of that size: rounding. However small λ_j is, no more


def separating(
    design: Design,
    rows: ResponseRows,
    family: str,
    rho: np.ndarray,
    directions: Iterable[np.ndarray],
    threads: int = 1,
    beta: np.ndarray | None = None,
) -> np.ndarray | None:
    """The first of the directions (flat) that separates the rows, scaled to max |xᵀd| = 1; None where none does.

    `beta`: where the search is. A column of 10⁻⁸ at the data and 1 elsewhere has a coefficient of 10⁸ there, and what
    is 10⁻⁸ of the largest |xᵀd| then decides.
    """
    if rows.y.size == 0:  # a joint design keeps its rows to itself: nothing can be checked
        return None
    reach = 0.0 if beta is None or not np.isfinite(beta).all() else max(map(abs, design.ends(beta, threads)))
    allowed = _VIOLATION * min(1.0, _FAR / max(reach, 1.0))
    for direction in directions:
        if not np.isfinite(direction).all() or _opposed(design.penalties, direction, rho):  # known without the rows
            continue
        moved = design.extent(rows, family, direction, threads)
        if not np.isfinite(moved.size) or moved.size == 0.0:
            continue
        if sign := moved.sign(allowed):
            return sign * direction / moved.size
    return None


def searched(
    design: Design, rows: ResponseRows, family: str, threads: int = 1, beta: np.ndarray | None = None
) -> np.ndarray | None:
    """A direction of the coefficients without a penalty that separates the rows, by linear programming, as `separating`
    gives it; None where there is none, or where so many rows would take long.

    It is asked where coefficients have hardly any information left. Directions made of H⁻¹ are then good to a few
    digits only, as means are 0 or 1 to as many.
    """
    free = np.flatnonzero(design.penalties.free)
    if rows.y.size != design.rows or free.size == 0 or free.size > _COLUMNS or design.rows * free.size > _NUMBERS:
        return None
    X = np.empty((design.rows, free.size))
    for column, j in enumerate(free.tolist()):
        unit = np.zeros(design.size)
        unit[j] = 1.0
        X[:, column] = design.predict(unit, threads)
    size = np.maximum(np.abs(X).max(axis=0), 1e-300)
    rises = rows.y >= 1 if family == "binomial" else np.zeros(design.rows, bool)
    sign = np.where(rows.y <= 0, 1.0, np.where(rises, -1.0, 0.0))
    X, sign = (X, sign) if not rows.weights.size else (X[rows.weights > 0], sign[rows.weights > 0])
    Z = _unmoved(X[sign == 0] / size)
    found = None if not Z.shape[1] or not sign.any() else _improving(sign[sign != 0, None] * X[sign != 0] / size @ Z)
    if found is None:
        return None
    direction = np.zeros(design.size)
    direction[free] = Z @ found / size
    unpenalised = np.full(design.penalties.count, -np.inf)
    return separating(design, rows, family, unpenalised, [direction], threads, beta)


def _unmoved(X: np.ndarray) -> np.ndarray:
    """(q, c) orthonormal: the directions d with Xd = 0."""
    if not len(X):
        return np.eye(X.shape[1])
    _, d, Vt = np.linalg.svd(np.linalg.qr(X, mode="r"))
    return Vt[int(np.sum(d > _RANK * d[0])) :].T


def _improving(A: np.ndarray) -> np.ndarray | None:
    """d with Ad ≤ 0 and Ad ≠ 0, where there is one, by linear programming: with a few of the rows, and those that their
    d moves up until it moves none up."""
    from scipy.optimize import linprog

    c, rows = A.mean(axis=0), np.unique(np.linspace(0, len(A) - 1, _ROWS).astype(int))
    for _ in range(_ROUNDS):
        found = linprog(
            c, A[rows], np.zeros(len(rows)), bounds=(-1.0, 1.0), options={"primal_feasibility_tolerance": 1e-10}
        )
        if found.x is None or found.fun > -_NO_GAIN:
            return None
        moved = A @ found.x
        if moved.max() <= _UP:
            return found.x if moved.min() < -_MOVED else None
        most = np.argsort(-moved)[:_ROWS]
        rows = np.union1d(rows, most[moved[most] > _UP])
    return None


def _opposed(penalties: Penalties, d: np.ndarray, rho: np.ndarray) -> bool:
    """Whether some penalty with λ_j > 0 acts on d, so that the maximum exists, however far away."""
    d = d / max(float(np.abs(d).max(initial=0.0)), 1e-300)  # only its direction matters: no square may overflow
    energies = d @ penalties.columns(d)
    norms = [sum(penalties.norm(piece) for piece in pieces) for pieces in penalties.pieces]
    return bool(np.any((energies > _OPPOSED * np.array(norms) * float(d @ d)) & np.isfinite(rho)))


def shares(design: Design, direction: np.ndarray) -> dict[str, float]:
    """How much each term contributes to a direction (flat): the sum of squares over its coefficients."""
    weight: dict[str, float] = {}
    for place in design.placements:
        label = "(Intercept)" if place.term < 0 else design.terms[place.term].label
        weight[label] = weight.get(label, 0.0) + float(np.sum(direction[place.at] ** 2))
    return weight


def not_identified(design: Design, cross: Arrow, singular: Singular) -> str:
    """The sentence for columns that the others span."""
    direction = singular.flat(design.penalties.starts) * np.sqrt(np.maximum(cross.diagonal(), 0.0))
    weight = shares(design, direction)  # by the columns' sizes, so that terms can be compared
    total = sum(weight.values()) or 1.0
    terms = [label for label in sorted(weight, key=lambda k: -weight[k]) if weight[label] > 0.02 * total]
    if not terms:  # columns that are zero on every row have no size
        weight = shares(design, singular.flat(design.penalties.starts)) or {"those of the joint fit": 1.0}
        terms = [max(weight, key=lambda k: weight[k])]
    plain = any(term.parametric and term.factor_levels is None and term.label in terms for term in design.terms)
    return (
        f"The rows do not tell these terms apart: {listing(terms)} "
        "(a combination of their columns is constant or zero on every row). Drop one of them, or lower its k."
        + (" If a column is far from zero for its range, take a constant from it first: I(x - 1000)." if plain else "")
    )


def exhausted(design: Design, family: str, beta: np.ndarray) -> str | None:
    """The sentence for rows whose means are 0 or 1 to the last digits, so that hardly any information is left; None
    where they are not."""
    eta = design.predict(beta)
    gone = np.abs(eta) > _CERTAIN if family == "binomial" else eta < -_CERTAIN
    if family == "gaussian" or not gone.any():
        return None
    return (
        f"There is no estimate to working precision: {int(gone.sum())} of {eta.size} rows are nearly separated (linear "
        f"predictor from {eta.min():.3g} to {eta.max():.3g}), and too little information is left to hold the "
        "coefficients. Raise the smoothing parameters (sp) or leave them to be estimated, or lower k."
    )


def separated(design: Design, family: str, beta: np.ndarray, direction: np.ndarray) -> str:
    """The sentence for a maximum at infinity along a direction that was checked on the rows."""
    spread: dict[str, float] = {}
    for place in design.placements:
        if place.term < 0:
            continue
        part = np.zeros(design.size)
        part[place.at] = direction[place.at]
        label = design.terms[place.term].label
        spread[label] = max(spread.get(label, 0.0), float(np.ptp(design.predict(part))))
    worst = max(spread, key=lambda label: spread[label]) if spread else "(Intercept)"
    eta, moved = design.predict(beta), np.abs(design.predict(direction))
    what = "separates the two classes" if family == "binomial" else "drives the mean to zero"
    return (
        f"The estimate does not exist: {worst} {what} perfectly on {int(np.sum(moved > 0.01))} of {eta.size} rows, and "
        f"its effect grows without limit (linear predictor now from {eta.min():.3g} to {eta.max():.3g}). "
        f"Drop or simplify {worst}, or fix its smoothing parameter."
    )
