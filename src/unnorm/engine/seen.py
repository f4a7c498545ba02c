"""Penalties on the directions that a likelihood sees, for criteria of objectives that are not sums over rows.

Under one constant a context (PerContext, Ranking) a change of f that is constant within every context changes nothing:
an `fs` term's level of each curve, say, has a penalty but no likelihood. Such directions belong neither in log|H + S_λ|
nor in log|S_λ|₊, and a penalty that acts on nothing else has no smoothing parameter to estimate.

Nothing calls this yet: `solvers/penalised.py` still counts such directions, so that `fs` under Exact and Ranking is
hardly smoothed. In the additive engine `solvers/anchored.py` holds them at zero instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .penalties import Group

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm

_UNSEEN = 1e-10  # of the term's largest information: what rounding leaves of none


@dataclass(frozen=True)
class SeenPenalties:
    """The terms' penalties on the seen directions Q; coefficients are the terms' own, one after the other."""

    Q: np.ndarray  # (p, q) orthonormal: β = Qγ, and nothing is lost but what the likelihood cannot see
    groups: tuple[Group, ...]  # by term, in coordinates of their joint range
    alive: np.ndarray  # (M,) bool: penalties that act on some seen direction
    null_dim: int  # seen directions that no penalty acts on

    def logdet(self, rho: np.ndarray) -> tuple[float, np.ndarray]:
        """log|QᵀS_λQ|₊ and its gradient in ρ, λ_j tr(S_λ⁻S_j); zero for penalties that are not alive."""
        value, gradient = 0.0, np.zeros(rho.size)
        for group in self.groups:
            which = list(group.which)
            part, slope, _ = group.logdet(rho[which])
            value += part
            gradient[which] += slope
        return value, gradient


def seen_penalties(terms: Sequence[BuiltTerm], information: np.ndarray) -> SeenPenalties:
    """The penalties of `terms` (all coefficients, no intercept) on the directions that the information matrix sees.

    Candidates are declared by the terms (`BuiltTerm.constants`); each is left out if the information confirms it.
    """
    sizes = [term.size for term in terms]
    starts = np.cumsum([0, *sizes])
    bases, groups, alive, null_dim = [], [], [], 0
    for k, term in enumerate(terms):
        span = slice(int(starts[k]), int(starts[k + 1]))
        keep = _seen(term.constants, information[span, span])
        roots = [penalty.square_root @ keep for penalty in term.penalties]
        norms = [float(np.linalg.norm(E)) for E in roots]
        whole = [max(float(np.linalg.norm(penalty.square_root)), 1e-300) for penalty in term.penalties]
        here = np.array([norm > 1e-10 * of for norm, of in zip(norms, whole)], dtype=bool)
        first = len(alive)
        alive += here.tolist()
        living = [E / np.linalg.norm(E) for E, on in zip(roots, here) if on]
        if living:
            _, d, V = np.linalg.svd(np.concatenate(living))
            rank = int(np.sum(d > 1e-12 * d[0]))
            ranged = tuple(E @ V[:rank].T for E, on in zip(roots, here) if on)
            numbers = tuple(int(j) for j in first + np.flatnonzero(here))
            groups.append(Group(numbers, tuple(E.T @ E for E in ranged), ranged))
        else:
            rank = 0
        null_dim += keep.shape[1] - rank
        bases.append(keep)
    Q = np.zeros((int(starts[-1]), sum(b.shape[1] for b in bases)))
    at = 0
    for k, b in enumerate(bases):
        Q[starts[k] : starts[k + 1], at : at + b.shape[1]] = b
        at += b.shape[1]
    return SeenPenalties(Q, tuple(groups), np.array(alive, dtype=bool), null_dim)


def _seen(constants: np.ndarray, information: np.ndarray) -> np.ndarray:
    """(p, q) orthonormal complement of those constants that carry no information."""
    p = len(information)
    if constants.shape[1] == 0:
        return np.eye(p)
    size = np.sum(constants**2, axis=0) * np.diag(information).max(initial=0.0)
    own = np.einsum("ij,ij->j", constants, information @ constants)
    blind = constants[:, own <= _UNSEEN * np.maximum(size, 1e-300)]
    if blind.shape[1] == 0:
        return np.eye(p)
    return np.linalg.svd(blind)[0][:, blind.shape[1] :]
