"""Smoothing parameters by the extended Fellner–Schall method (Wood & Fasiolo 2017, eq. 6).

Given β̂ and the information H of any objective, with S_λ = Σ_j λ_j S_j,

    λ_j ← λ_j { tr(S_λ⁻ S_j) − tr((H + S_λ)⁻¹ S_j) } / β̂ᵀ S_j β̂,

which increases the Laplace REML criterion with H held fixed. tr(S_λ⁻S_j) is the slope of log|S_λ|₊, taken from the
roots of the S_j (`engine.penalties.Group`): S_λ itself loses the smaller penalties of a term where the λ_j are far
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..engine.penalties import Group, square_root
from ..engine.seen import acts, unseen, untouched
from ..terms.base import BuiltTerm

SMALLEST = 1e-12  # one that ends here is no optimum: the criterion still falls
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
    root: np.ndarray | None = None  # E with S = EᵀE, where it is known

    @property
    def E(self) -> np.ndarray:
        return square_root(self.matrix) if self.root is None else self.root


@dataclass(frozen=True)
class JointPenalty:
    """log|S_λ|₊ of all penalties, by the terms' roots on their joint range."""

    groups: tuple[Group, ...]
    count: int  # M

    @property
    def rank(self) -> int:
        """Of S_λ."""
        return sum(len(group.matrices[0]) for group in self.groups)

    def logdet(self, lam: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log|S_λ|₊, its gradient λ_j tr(S_λ⁻S_j) and its Hessian in log λ; zero for penalties held at λ = 0."""
        value, gradient, hessian = 0.0, np.zeros(self.count), np.zeros((self.count, self.count))
        for group in self.groups:
            which = list(group.which)
            part, slope, curve = group.logdet(np.log(lam[which]))
            value += part
            gradient[which] += slope
            hessian[np.ix_(which, which)] += curve
        return value, gradient, hessian


def joint_penalty(pieces: Sequence[PlacedPenalty]) -> JointPenalty:
    """The penalties that act (λ_j not held at zero), term by term."""
    groups = []
    for number in dict.fromkeys(piece.term for piece in pieces):
        mine = tuple(j for j, piece in enumerate(pieces) if piece.term == number and piece.fixed != 0.0)
        roots = [pieces[j].E for j in mine]
        if not roots:
            continue
        unit = [E / max(float(np.linalg.norm(E)), 1e-300) for E in roots]
        _, d, Vt = np.linalg.svd(np.concatenate(unit), full_matrices=False)
        ranged = tuple(E @ Vt[d > 1e-12 * d[0]].T for E in roots)
        groups.append(Group(mine, tuple(E.T @ E for E in ranged), ranged))
    return JointPenalty(tuple(groups), len(pieces))


def seen_penalties(
    terms: Sequence[BuiltTerm], pieces: Sequence[PlacedPenalty], information: np.ndarray
) -> tuple[list[PlacedPenalty], np.ndarray]:
    """The penalties that act on something that the information matrix sees; and (p, c) what neither it nor they see."""
    spans, begin = [], 0
    for term in terms:
        spans.append(slice(begin, begin + term.size))
        begin += term.size
    blind = [
        np.zeros((term.size, 0)) if term.parametric else unseen(information[span, span])
        for term, span in zip(terms, spans)
    ]
    blind = [np.zeros((len(b), 0)) if b.shape[1] == len(b) else b for b in blind]  # nothing is seen: said elsewhere
    acting = [[one for one in term.penalties if acts(one, b)] for term, b in zip(terms, blind)]
    blind = [untouched(b, mine) for b, mine in zip(blind, acting)]
    U = np.zeros((begin, sum(b.shape[1] for b in blind)))
    at = 0
    for span, b in zip(spans, blind):
        U[span, at : at + b.shape[1]] = b
        at += b.shape[1]
    kept = {one.label for mine in acting for one in mine}
    return [piece for piece in pieces if piece.label in kept], U


def placed_penalties(terms: tuple[BuiltTerm, ...], sp: Mapping[str, float] | None) -> list[PlacedPenalty]:
    """The terms' penalties, each on its own span of the coefficients."""
    out, begin = [], 0
    for number, term in enumerate(terms):
        span = slice(begin, begin + term.size)
        for penalty, own in zip(term.penalties, term.fixed_sp):
            fixed = own if sp is None or penalty.label not in sp else float(sp[penalty.label])
            out.append(PlacedPenalty(span, penalty.matrix, penalty.label, fixed, number, penalty.square_root))
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
    pieces: Sequence[PlacedPenalty], lam: np.ndarray, beta: np.ndarray, V: np.ndarray, joint: JointPenalty | None = None
) -> tuple[np.ndarray, float]:
    """λ after one update of those that are not fixed, and the largest move of log λ; V = (H + S_λ)⁻¹."""
    out = lam.copy()
    traces = (joint_penalty(pieces) if joint is None else joint).logdet(lam)[1]
    for j, piece in enumerate(pieces):
        if piece.fixed is not None:
            continue
        S, span = piece.matrix, piece.span
        gap = float(traces[j] - lam[j] * np.sum(V[span, span] * S))
        energy = float(beta[span] @ S @ beta[span])
        out[j] = np.clip(max(gap, 1e-12) / max(energy, 1e-300), SMALLEST, LARGEST)
    free = np.array([piece.fixed is None for piece in pieces], dtype=bool)
    free &= out < LARGEST  # a term that is smoothed away has settled
    return out, float(np.max(np.abs(np.log(out[free] / lam[free])), initial=0.0))
