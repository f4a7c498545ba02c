"""Penalised maximum of any objective with smooth terms: Newton inside, extended Fellner–Schall outside.

For objectives that are not a sum over rows (𝓛 and 𝓜 with one constant a context, ranking, conditional NCE) the engine's
row pass does not apply. Given the information matrix H of the objective, λ_j moves to (Wood & Fasiolo 2017, eq. 6)

    λ_j ← λ_j { tr(S_λ⁻ S_j) − tr((H + S_λ)⁻¹ S_j) } / β̂ᵀ S_j β̂,

which increases the Laplace REML criterion with H held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..engine.inference import smooth_test
from ..errors import CombinationError, InputError, unknown
from ..models.basis import Basis
from ..objectives.base import Derivatives, Problem, Solution, View
from ..terms.base import BuiltTerm
from .newton import Newton, Path

MOST_UPDATES = 200
LARGEST = 1e12  # a smoothing parameter beyond this leaves only the null space


@final
@dataclass(frozen=True)
class PenalisedProblem(Problem):
    """problem − ½ βᵀ S_λ β."""

    problem: Problem
    penalty: np.ndarray
    begin: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.names

    @property
    def start(self) -> np.ndarray:
        return self.begin

    @property
    def concave(self) -> bool:
        return self.problem.concave

    def value(self, theta: np.ndarray) -> float:
        return self.problem.value(theta) - 0.5 * float(theta @ self.penalty @ theta)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        d = self.problem.derivatives(theta)
        pull = self.penalty @ theta
        return Derivatives(
            d.value - 0.5 * float(theta @ pull), d.gradient - pull, d.information + self.penalty, d.scale
        )

    def unbounded(self, direction: np.ndarray) -> bool:
        free = float(direction @ self.penalty @ direction) <= 1e-12
        return free and self.problem.unbounded(direction)

    def finer(self) -> Problem | None:
        finer = self.problem.finer()
        return None if finer is None else PenalisedProblem(finer, self.penalty, self.begin)

    def refined(self, theta: np.ndarray) -> Problem | None:
        finer = self.problem.refined(theta)
        return None if finer is None else PenalisedProblem(finer, self.penalty, theta)

    def solution(self, theta: np.ndarray, view: View | None = None) -> Solution:
        return self.problem.solution(theta, view)


@dataclass(frozen=True)
class PenalisedSolution:
    """β̂ at its smoothing parameters, with H and the Bayesian covariance (H + S_λ)⁻¹."""

    problem: Problem
    path: Path
    lam: np.ndarray
    labels: tuple[str, ...]
    information: np.ndarray  # H, without the penalty
    penalty: np.ndarray  # S_λ
    covariance: np.ndarray
    edf: np.ndarray  # by coefficient
    score: float  # −REML (Laplace)
    table: dict[str, np.ndarray]


@dataclass(frozen=True)
class Piece:
    """One penalty in the coordinates of all coefficients."""

    span: slice
    matrix: np.ndarray
    label: str
    fixed: float | None
    term: int


def penalty_pieces(terms: tuple[BuiltTerm, ...], sp: Any) -> list[Piece]:
    """The terms' penalties, each on its own span of the coefficients."""
    out, begin = [], 0
    for number, term in enumerate(terms):
        span = slice(begin, begin + term.size)
        for penalty, own in zip(term.penalties, term.fixed_sp):
            fixed = own if sp is None or penalty.label not in sp else float(sp[penalty.label])
            out.append(Piece(span, penalty.matrix, penalty.label, fixed, number))
        begin = span.stop
    return out


def total_penalty(pieces: Sequence[Piece], lam: np.ndarray, size: int) -> np.ndarray:
    """S_λ = Σ_j λ_j S_j."""
    S = np.zeros((size, size))
    for piece, one in zip(pieces, lam):
        S[piece.span, piece.span] += one * piece.matrix
    return S


def solve_penalised(problem: Problem, basis: Basis, method: str, sp: Any, newton: Newton) -> PenalisedSolution:
    """The penalised maximum with λ by REML (or held fixed where `sp` gives every one)."""
    pieces = penalty_pieces(basis.terms, sp)
    known = [piece.label for piece in pieces]
    wrong = [label for label in sp or () if label not in known]
    if wrong:
        raise InputError(unknown("sp", wrong[0], known))
    free = np.array([piece.fixed is None for piece in pieces], dtype=bool)
    if method not in ("reml",) and free.any():
        raise CombinationError(
            f"This objective chooses its smoothing by REML (or takes fixed sp=…); got smoothing={method!r}. "
            "un.Logistic and un.Poisson with un.Smooth take every method."
        )
    size = len(basis.names)
    first = problem.derivatives(np.zeros(size))
    scale = [np.trace(first.information[p.span, p.span]) / max(np.trace(p.matrix), 1e-300) for p in pieces]
    lam = np.array([s * 1e-2 if p.fixed is None else p.fixed for s, p in zip(scale, pieces)])
    beta = np.zeros(size)
    path, H, V, reml = Path(beta, False, "not begun", 0), first.information, np.eye(size), np.inf
    S = total_penalty(pieces, lam, size)
    for update in range(1, MOST_UPDATES + 1):
        S = total_penalty(pieces, lam, size)
        inner, path = newton.solve(PenalisedProblem(problem, S, beta))
        assert isinstance(inner, PenalisedProblem)
        problem, beta = inner.problem, path.theta
        d = problem.derivatives(beta)
        H = d.information
        V = np.linalg.inv(H + S)
        reml = _reml(d.value, beta, S, H, pieces, lam)
        if not free.any():
            break
        new = fellner_schall(pieces, lam, beta, V)
        move = np.max(np.abs(np.log(new[free]) - np.log(lam[free])), where=new[free] < LARGEST, initial=0.0)
        lam = np.where(free, new, lam)
        if move < 1e-3:  # of log λ: far below its own uncertainty
            path = Path(beta, path.converged, f"smoothing parameters moved by {move:.0e} at the end", update)
            break
    else:
        path = Path(beta, False, f"smoothing parameters still moved after {MOST_UPDATES} updates", MOST_UPDATES)
    F = V @ H
    edf, edf1 = np.diag(F), np.diag(2 * F - F @ F)
    labels = tuple(piece.label for piece in pieces)
    return PenalisedSolution(problem, path, lam, labels, H, S, V, edf, reml, _tests(basis.terms, beta, H, V, edf, edf1))


def fellner_schall(pieces: Sequence[Piece], lam: np.ndarray, beta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """One extended Fellner–Schall update of every λ."""
    out = lam.copy()
    for number in {piece.term for piece in pieces}:
        mine = [j for j, piece in enumerate(pieces) if piece.term == number]
        span = pieces[mine[0]].span
        total = sum(lam[j] * pieces[j].matrix for j in mine)
        inverse = np.linalg.pinv(total, rcond=1e-10, hermitian=True)
        for j in mine:
            S = pieces[j].matrix
            gap = float(np.sum(inverse * S) - np.sum(V[span, span] * S))
            energy = float(beta[span] @ S @ beta[span])
            out[j] = np.clip(lam[j] * max(gap, 1e-12) / max(energy, 1e-300), 1e-12, LARGEST)
    return out


def _reml(value: float, beta: np.ndarray, S: np.ndarray, H: np.ndarray, pieces: list[Piece], lam: np.ndarray) -> float:
    """−{ℓ_p + ½ log|S|₊ − ½ log|H + S| + ½ M₀ log 2π} (Wood 2011, eq. 4)."""
    eigenvalues = np.linalg.eigvalsh(S)
    positive = eigenvalues[eigenvalues > 1e-10 * max(eigenvalues.max(initial=0.0), 1e-300)]
    null = len(S) - len(positive)
    penalised = value - 0.5 * float(beta @ S @ beta)
    logdet = float(np.linalg.slogdet(H + S)[1])
    return -(penalised + 0.5 * float(np.log(positive).sum()) - 0.5 * logdet + 0.5 * null * np.log(2 * np.pi))


def _tests(
    terms: tuple[BuiltTerm, ...], beta: np.ndarray, H: np.ndarray, V: np.ndarray, edf: np.ndarray, edf1: np.ndarray
) -> dict[str, np.ndarray]:
    rows, begin = [], 0
    for term in terms:
        span = slice(begin, begin + term.size)
        begin = span.stop
        if term.parametric:
            continue
        test = smooth_test(beta[span], H[span, span], V[span, span], float(edf1[span].sum()), None)
        rows.append((term.label, float(edf[span].sum()), test.df, test.statistic, test.p))
    names = ("term", "edf", "ref_df", "statistic", "p")
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}
