"""Smoothing parameters by the extended Fellner–Schall method (Wood & Fasiolo 2017, eq. 6).

Given β̂ and the information H of any objective, with S_λ = Σ_j λ_j S_j,

    λ_j ← λ_j { tr(S_λ⁻ S_j) − tr((H + S_λ)⁻¹ S_j) } / β̂ᵀ S_j β̂,

which increases the Laplace REML criterion with H held fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..terms.base import BuiltTerm

LARGEST = 1e12  # a smoothing parameter beyond this leaves only the null space
SETTLED = 1e-3  # a move of log λ far below its own uncertainty


@dataclass(frozen=True)
class PlacedPenalty:
    """One penalty S_j with its place among all coefficients."""

    span: slice
    matrix: np.ndarray
    label: str
    fixed: float | None
    term: int


def placed_penalties(terms: tuple[BuiltTerm, ...], sp: Mapping[str, float] | None) -> list[PlacedPenalty]:
    """The terms' penalties, each on its own span of the coefficients."""
    out, begin = [], 0
    for number, term in enumerate(terms):
        span = slice(begin, begin + term.size)
        for penalty, own in zip(term.penalties, term.fixed_sp):
            fixed = own if sp is None or penalty.label not in sp else float(sp[penalty.label])
            out.append(PlacedPenalty(span, penalty.matrix, penalty.label, fixed, number))
        begin = span.stop
    return out


def total_penalty(pieces: Sequence[PlacedPenalty], lam: np.ndarray, size: int) -> np.ndarray:
    """S_λ = Σ_j λ_j S_j."""
    S = np.zeros((size, size))
    for piece, one in zip(pieces, lam):
        S[piece.span, piece.span] += one * piece.matrix
    return S


def starting_values(pieces: Sequence[PlacedPenalty], H: np.ndarray) -> np.ndarray:
    """λ for a first, light penalty: a hundredth of the information on each span."""
    scale = [max(np.trace(H[p.span, p.span]) / max(np.trace(p.matrix), 1e-300), 1e-6) for p in pieces]
    return np.array([1e-2 * one if p.fixed is None else p.fixed for one, p in zip(scale, pieces)])


def updated(
    pieces: Sequence[PlacedPenalty], lam: np.ndarray, beta: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, float]:
    """λ after one update of those that are not fixed, and the largest move of log λ; V = (H + S_λ)⁻¹."""
    out = lam.copy()
    for number in {piece.term for piece in pieces}:
        mine = [j for j, piece in enumerate(pieces) if piece.term == number]
        span = pieces[mine[0]].span
        total = sum(lam[j] * pieces[j].matrix for j in mine)
        inverse = np.linalg.pinv(total, rcond=1e-10, hermitian=True)
        for j in mine:
            if pieces[j].fixed is not None:
                continue
            S = pieces[j].matrix
            gap = float(np.sum(inverse * S) - np.sum(V[span, span] * S))
            energy = float(beta[span] @ S @ beta[span])
            out[j] = np.clip(lam[j] * max(gap, 1e-12) / max(energy, 1e-300), 1e-12, LARGEST)
    free = np.array([piece.fixed is None for piece in pieces], dtype=bool)
    free &= out < LARGEST  # a term that is smoothed away has settled
    return out, float(np.max(np.abs(np.log(out[free] / lam[free])), initial=0.0))
