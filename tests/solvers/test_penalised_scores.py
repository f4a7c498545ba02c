"""Penalised Newton's errors: the criterion's Hessian by differences, dβ̂/dρ by refitting, the sandwich written out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import unnorm as un
from unnorm.objectives.base import Constants, Derivatives, ParametricProblem
from unnorm.objectives.scores import Scores
from unnorm.solvers import penalised
from unnorm.solvers.engine_rows import PRIOR
from unnorm.solvers.newton import Newton

OMEGA = un.Interval(-1, 1)
CHAIN = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
CURVE = un.Additive("y + s(gap, k=6)", OMEGA, covariates=[un.Expression("gap", "abs(y - y_prev)")])


@dataclass(frozen=True)
class Quadratic(ParametricProblem):
    """gᵀβ − ½ βᵀHβ, whose Hessian does not move with β."""

    H: np.ndarray
    g: np.ndarray

    names = tuple("abcde")
    start = np.zeros(5)
    concave = True

    def value(self, theta: np.ndarray) -> float:
        return float(self.g @ theta - theta @ self.H @ theta / 2)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        return Derivatives(self.value(theta), self.g - self.H @ theta, self.H, np.diag(self.H))

    def scores(self, theta: np.ndarray) -> Scores:
        raise AssertionError

    def constants(self, theta: np.ndarray) -> Constants:
        return Constants(np.zeros(0))


def _quadratic() -> tuple[Quadratic, list[penalised.PlacedPenalty]]:
    """Five coefficients: one free, four with two overlapping penalties."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=(5, 8))
    D = np.diff(np.eye(4), axis=0)
    pieces = [
        penalised.PlacedPenalty(slice(1, 5), D.T @ D, "rough", 0.7, 1),
        penalised.PlacedPenalty(slice(1, 5), np.diag([1.0, 0.0, 2.0, 0.0]), "ridge", 2.0, 1),
    ]
    return Quadratic(half @ half.T, 3 * rng.normal(size=5)), pieces


def _criterion(problem: Quadratic, pieces: list[penalised.PlacedPenalty], rho: np.ndarray) -> float:
    """−REML at log λ = ρ: −ℓ_p(β̂) − ½ log|S|₊ + ½ log|H + S|, up to a constant."""
    S = np.zeros((5, 5))
    for piece, r in zip(pieces, rho):
        S[piece.span, piece.span] += np.exp(r) * piece.matrix
    factor = cho_factor(problem.H + S)
    beta = cho_solve(factor, problem.g)
    inner = float(np.linalg.slogdet(S[1:, 1:])[1])
    return float(-(problem.value(beta) - beta @ S @ beta / 2) - inner / 2 + np.log(np.diag(factor[0])).sum())


def test_the_criterions_hessian() -> None:
    problem, pieces = _quadratic()
    end = penalised._alternate(problem, pieces, Newton())
    rho, h = np.log([0.7, 2.0]), 1e-3
    expected = np.zeros((2, 2))
    for a in range(2):
        for b in range(2):
            steps = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            corners = [_criterion(problem, pieces, rho + h * (i * np.eye(2)[a] + j * np.eye(2)[b])) for i, j in steps]
            expected[a, b] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h * h)
    np.testing.assert_allclose(penalised._reml_hessian(end, pieces, [0, 1]), expected, rtol=1e-4)


CASES = [un.Exact(order=200), un.Ranking(un.Uniform(), per_point=5)]


def _fit(objective: Any, sp: float | None = None) -> un.Fit:
    smoothing = un.Smoothing() if sp is None else un.Smoothing(sp={"s(gap)": sp})
    return un.fit(CURVE, CHAIN, objective, smoothing=smoothing, rng=1)


@pytest.mark.parametrize("objective", CASES, ids=["exact", "ranking"])
def test_errors_with_the_smoothing_chosen(objective) -> None:
    """V (Σ1 + S_λ) V + J V_ρ Jᵀ + V″ and V' Σ2 V'ᵀ, with J = dβ̂/dρ by refitting at other λ, and V″ = V_ρ ∂P ∂Pᵀ by
    differences of P, PPᵀ = V, with 1/10 added to the criterion's curvature (engine/inference.py)."""
    fit = _fit(objective)
    part, scores = fit.smooths, fit.solution.scores
    lam, h = part.sp["s(gap)"], 1e-2
    J = (_fit(objective, lam * np.exp(h)).smooths.beta - _fit(objective, lam * np.exp(-h)).smooths.beta)[:, None] / (
        2 * h
    )
    again = scores.reselection
    np.testing.assert_allclose(again.J, J, rtol=0.05, atol=0.02 * np.max(np.abs(J)))
    S = np.zeros((6, 6))
    S[1:, 1:] = lam * part.term("s(gap)").penalties[0].matrix
    V = np.linalg.inv(scores.information + S)
    sigma2 = scores.points_spread(2)
    extra = again.J @ again.V_rho @ again.J.T

    def inverse_root(rho: float) -> np.ndarray:
        return np.linalg.inv(np.linalg.cholesky(scores.information + np.exp(rho) * S).T)

    slope = (inverse_root(1e-4) - inverse_root(-1e-4)) / 2e-4
    second = slope @ slope.T / (1 / again.V_rho[0, 0] + 0.1)
    sampling = V @ (scores.information - scores.points_spread(1) + S) @ V + extra + second
    np.testing.assert_allclose(part.errors.sampling, sampling, rtol=1e-6, atol=1e-10)
    moves = V + extra
    np.testing.assert_allclose(part.errors.reference, moves @ sigma2 @ moves.T, rtol=1e-6, atol=1e-12)
    assert 0 < again.V_rho[0, 0] <= 1 / PRIOR
    assert np.max(np.diag(extra)) > 0.01 * np.max(np.diag(V))


@pytest.mark.parametrize("objective", CASES, ids=["exact", "ranking"])
def test_errors_with_the_smoothing_given(objective) -> None:
    fit = _fit(objective, 2.0)
    part, scores = fit.smooths, fit.solution.scores
    S = np.zeros((6, 6))
    S[1:, 1:] = 2.0 * part.term("s(gap)").penalties[0].matrix
    V = np.linalg.inv(scores.information + S)
    total = V @ (scores.information - scores.points_spread(1) + scores.points_spread(2) + S) @ V
    np.testing.assert_allclose(part.errors.total, total, rtol=1e-6, atol=1e-10)
    F = V @ scores.information
    edf, edf1 = np.trace(F[1:, 1:]), np.trace((2 * F - F @ F)[1:, 1:])
    assert part.edf["s(gap)"] == pytest.approx(edf)
    assert part.table["ref_df"][0] == pytest.approx(edf1, rel=1e-6)
    assert scores.reselection is None


def test_smoothing_that_is_given_or_infinite_is_not_chosen_again() -> None:
    problem, pieces = _quadratic()
    end = penalised._alternate(problem, pieces, Newton())
    free = [replace(piece, fixed=None) for piece in pieces]

    @dataclass(frozen=True)
    class Scored(Quadratic):
        def scores(self, theta: np.ndarray) -> Any:
            return Bare(self.H)

    @dataclass(frozen=True)
    class Bare:
        information: np.ndarray
        penalty: Any = None
        reselection: Any = None
        smoothing: Any = None

    known = replace(end, problem=Scored(problem.H, problem.g))
    assert penalised._scores(known, pieces).reselection is None
    chosen = penalised._scores(known, free)
    assert chosen.reselection.J.shape == (5, 2)
    far = penalised._scores(replace(known, lam=np.array([0.7, 1e12])), free)
    assert far.reselection.J.shape == (5, 1)


def test_directions_that_are_not_seen_leave_the_criterion_alone() -> None:
    """With unseen directions held by ridges r, V = diag(V₀, 1/r): the score is that of V₀ by itself."""
    joint: Any = SimpleNamespace(rank=2, logdet=lambda lam: (0.7, None))
    V, r = np.linalg.inv(np.array([[3.0, 1.0, 0.2], [1.0, 2.0, 0.1], [0.2, 0.1, 4.0]])), np.array([5.0, 0.3])
    both = np.zeros((5, 5))
    both[:3, :3], both[3:, 3:] = V, np.diag(1 / r)
    alone = penalised._reml(-12.0, V, joint, np.ones(1), np.empty(0))
    np.testing.assert_allclose(penalised._reml(-12.0, both, joint, np.ones(1), r), alone)
    expected = 12.0 - 0.35 + 0.5 * np.log(np.linalg.det(np.linalg.inv(V))) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(alone, expected)
