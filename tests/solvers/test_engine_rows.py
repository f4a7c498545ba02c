"""The additive engine's scores: products with a dense design, λ chosen again by refitting, one model written twice."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.objectives.likelihood import RowLikelihood
from unnorm.objectives.scores import Drawn
from unnorm.solvers.engine_rows import PRIOR, reselection

OMEGA = un.Interval(-1, 1)
CHAIN = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
HEAVY = dataclasses.replace(CHAIN, weight=np.random.default_rng(0).integers(1, 5, 200).astype(float))
GAP = [un.Expression("gap", "abs(y - y_prev)")]
CURVE = un.Additive("y + s(gap, k=6)", OMEGA, covariates=GAP)
CHI = un.Smooth("s(y_prev, k=6)", smoothing="reml")
LOGISTIC = un.Logistic(un.Uniform(), per_point=5, points=un.IID())
IMPORTANCE = un.Importance(un.Uniform(), per_point=5, points=un.IID())


def _solved(problem: Any, sp: Any = None) -> un.solvers.base.Solution:
    return un.Smoothing(threads=1, sp=sp).solve_rows(problem)


def _near(found: np.ndarray, expected: np.ndarray, within: float = 1e-3) -> None:
    """Equal up to the engine's tables of curves, whose cells are 1e-4 of a column."""
    assert np.max(np.abs(found - expected)) < within * np.max(np.abs(expected))


def _dense(gam: Any) -> np.ndarray:
    X = np.ones((len(gam.y), gam.smoothed.size))
    for term in gam.terms:
        X[:, gam.smoothed.slices[term.label]] = term.design({name: gam.columns[name] for name in term.covariates})
    return X


def _penalties(gam: Any) -> list[np.ndarray]:
    """λ_k S_k of each, on all coefficients."""
    out = []
    for term in gam.terms:
        for penalty in term.penalties:
            S = np.zeros((gam.smoothed.size,) * 2)
            S[gam.smoothed.slices[term.label], gam.smoothed.slices[term.label]] = gam.sp[penalty.label] * penalty.matrix
            out.append(S)
    return out


@pytest.mark.parametrize("objective", [LOGISTIC, IMPORTANCE], ids=["logistic", "importance"])
def test_scores_are_those_of_the_dense_design(objective) -> None:
    problem = objective.additive(CURVE, HEAVY, CHI, 1)
    solution = _solved(problem)
    scores, gam = solution.scores, solution.terms.gam
    X, rows = _dense(gam), problem.source.whole()
    eta = X @ gam.smoothed.beta + rows.offset
    w = HEAVY.weights[rows.at]
    if objective is LOGISTIC:
        p = 1 / (1 + np.exp(-eta))
        slope, curvature = w * (rows.data - p), w * p * (1 - p)
    else:
        curvature = np.where(rows.data, 0.0, w * np.exp(eta) * 2 / 5)  # 1/(k q)
        slope = np.where(rows.data, w, 0.0) - curvature
    _near(scores.information, X.T @ (curvature[:, None] * X))
    np.testing.assert_allclose(scores.penalty, sum(_penalties(gam)), rtol=1e-8, atol=1e-10)
    r = np.where(rows.data, 0.0, slope)  # a flexible χ: about zero
    _near(scores.points_spread(2), X.T @ ((r**2)[:, None] * X))
    _near(scores.points_spread(1), X.T @ ((r**2 / w)[:, None] * X))
    label = np.arange(200) % 7
    sums = np.stack([(slope[:, None] * X)[label[rows.at] == c].sum(axis=0) for c in range(7)])
    _near(scores.cluster_sums(label, 7), sums)
    assert (scores.weight, scores.drawn) == (HEAVY.weights.sum(), Drawn.IID)


@pytest.mark.parametrize("obs", [CHAIN, HEAVY], ids=["plain", "weighted"])
@pytest.mark.parametrize("objective", [LOGISTIC, IMPORTANCE], ids=["logistic", "importance"])
def test_pieces_of_choosing_lambda_again(objective, obs) -> None:
    """J = dβ̂/dρ by refitting at other λ; ε and −½ C the derivatives of ½ tr(V λ_k S_k) in log w_r and in β."""
    problem = objective.additive(CURVE, obs, CHI, 1)
    gam = _solved(problem).terms.gam
    again = reselection(gam, problem.likelihood.cumulant)
    assert again is not None
    assert again.C is not None
    assert again.epsilon is not None
    labels, step = list(gam.sp), 1e-3
    for k, label in enumerate(labels):
        up, down = (
            _solved(problem, {**gam.sp, label: gam.sp[label] * np.exp(sign * step)}).terms.beta for sign in (1, -1)
        )
        np.testing.assert_allclose(again.J[:, k], (up - down) / (2 * step), rtol=1e-2, atol=1e-4)
    H = gam.smoothed.hessian
    np.testing.assert_allclose(again.V_rho, np.linalg.inv(H + PRIOR * np.eye(2)), rtol=1e-8)
    X, S, rows = _dense(gam), _penalties(gam), problem.source.whole()

    def half_traces(beta: np.ndarray, b: np.ndarray) -> np.ndarray:
        eta = X @ beta + rows.offset
        variance = np.exp(eta) / (1 + np.exp(eta)) ** 2 if objective is LOGISTIC else np.exp(eta)
        V = np.linalg.inv(X.T @ ((b * variance)[:, None] * X) + sum(S))
        return np.array([np.trace(V @ one) / 2 for one in S])

    b, beta = rows.likelihood.b, gam.smoothed.beta
    for j in range(0, len(beta), 3):
        e = 1e-5 * np.eye(len(beta))[j]
        slope = (half_traces(beta + e, b) - half_traces(beta - e, b)) / 2e-5
        np.testing.assert_allclose(-again.C[j] / 2, slope, rtol=1e-2, atol=1e-4)
    epsilon = again.epsilon()
    assert not np.any(epsilon[rows.data])
    for r in np.flatnonzero(~rows.data)[::150]:
        factor = 1.0 + 1e-3 * (np.arange(len(b)) == r)
        slope = (half_traces(beta, b * factor) - half_traces(beta, b / factor)) / 2e-3
        np.testing.assert_allclose(epsilon[r], slope, rtol=1e-2, atol=1e-7)


def test_the_estimate_moves_as_foretold_when_points_change_their_weight() -> None:
    """δβ̂ = V'δ − J V_ρ ε against refits with λ chosen again; with λ held it would be off by a third."""
    curve = un.Additive("s(gap, k=6)", OMEGA, covariates=GAP)
    problem = LOGISTIC.additive(curve, un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1)), CHI, 1)
    rows = problem.source.whole()
    d = np.where(rows.data, 0.0, np.random.default_rng(5).normal(size=len(rows)))

    def solved(t: float) -> un.solvers.base.Solution:
        likelihood = RowLikelihood(rows.likelihood.cumulant, rows.likelihood.a, rows.likelihood.b * (1 + t * d))
        source = dataclasses.replace(problem.source, rows=dataclasses.replace(rows, likelihood=likelihood))
        return _solved(dataclasses.replace(problem, source=source))

    scores = solved(0.0).scores
    (block,) = scores.blocks()
    again = scores.reselection
    V, delta = np.linalg.inv(scores.information + scores.penalty), block.design.total(block.slopes()[0] * d)
    moved = again.bread(V) @ delta - again.J @ again.V_rho @ (again.epsilon().T @ d)
    found = (solved(0.03).terms.beta - solved(-0.03).terms.beta) / 0.06
    assert np.max(np.abs(moved - found)) < 0.05 * np.max(np.abs(found))
    assert np.max(np.abs(V @ delta - found)) > 0.3 * np.max(np.abs(found))


@pytest.mark.filterwarnings("ignore:χ̂ and −log:unnorm.errors.UnnormWarning")  # χ is penalised, or has few terms
def test_without_points_the_covariance_is_the_engines_own() -> None:
    """𝓜 by quadrature with a smooth χ: V_c, which includes the uncertainty of λ; V_β where λ was given."""
    fit = un.fit(CURVE, CHAIN, un.Poisson(order=30), CHI)
    gam = fit.smooths.gam
    _near(fit.smooths.errors.total, gam.vcov(unconditional=True))
    held = un.fit(CURVE, CHAIN, un.Poisson(order=30), CHI, smoothing=un.Smoothing(sp=dict(gam.sp)))
    _near(held.smooths.errors.total, gam.smoothed.Vp)
    assert np.all(np.diag(fit.smooths.errors.total) > np.diag(held.smooths.errors.total))


@pytest.mark.filterwarnings("ignore:χ̂ and −log:unnorm.errors.UnnormWarning")  # χ is penalised, or has few terms
@pytest.mark.parametrize("points", [un.IID(), un.Lattice()], ids=repr)
def test_a_smooth_fit_has_a_reference_error(points) -> None:
    """V' Σ2 V'ᵀ written out; measured on fresh points where they are spread evenly; the total is the sum of both."""
    objective = un.Logistic(un.Uniform(), per_point=5, points=points)
    fit = un.fit(CURVE, CHAIN, objective, CHI, rng=1)
    errors, scores = fit.smooths.errors, fit.solution.scores
    again = scores.reselection
    V = np.linalg.inv(scores.information + scores.penalty)
    moves = V + again.J @ again.V_rho @ (again.J + V @ again.C / 2).T
    if points.iid:
        (block,) = scores.blocks()
        X, r = _dense(fit.smooths.gam), np.where(block.data, 0.0, block.slopes()[0])
        about = again.epsilon()
        for t in range(200):
            here = (block.at == t) & ~block.data
            about[here] -= about[here].mean(axis=0)
        G = np.concatenate([r[:, None] * X, about], axis=1)
        moves = np.concatenate([moves, -again.J @ again.V_rho], axis=1)
        spread = G.T @ G
    else:
        spread = np.cov(np.concatenate([scores.redraw(i) for i in range(4)]).T)
    reference = moves @ spread @ moves.T
    _near(errors.reference, reference)
    assert np.all(np.diag(errors.reference) > 0)
    np.testing.assert_allclose(errors.total, errors.sampling + errors.reference)


@pytest.mark.parametrize("objective", [LOGISTIC, IMPORTANCE, un.Poisson(order=40)], ids=lambda one: one.name)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_model_as_family_and_as_terms(objective, weighted) -> None:
    """Parametric terms and one constant for all: estimates, both parts, robust errors and NCIC."""
    family = un.ExponentialFamily(lambda y, x: (y, (y - x) ** 2), ("y", "d2"), OMEGA)
    additive = un.Additive("y + d2", OMEGA, covariates=[un.Expression("d2", "(y - y_prev)**2")])
    obs = HEAVY if weighted else CHAIN
    if objective.reference is None:  # with contexts one constant for all is no likelihood
        obs = un.iid(CHAIN.outcome[:, 0], weight=obs.weights)
        family = un.ExponentialFamily(lambda y: (y, y**2), ("y", "d2"), OMEGA)
        additive = un.Additive("y + d2", OMEGA, covariates=[un.Expression("d2", "y**2")])
    obs = dataclasses.replace(obs, group={"who": np.arange(200) // 10})
    objective = dataclasses.replace(objective, cluster="who")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one constant for all contexts
        a, b = (un.fit(model, obs, objective, un.Constant(), rng=1) for model in (family, additive))
    np.testing.assert_allclose(b.estimate, a.estimate, rtol=1e-5)
    np.testing.assert_allclose(b.errors.sampling, a.errors.sampling, rtol=1e-4)
    np.testing.assert_allclose(b.errors.reference, a.errors.reference, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(b.covariance_robust, a.covariance_robust, rtol=1e-4)
    if objective.reference is not None:
        assert b.ncic == pytest.approx(a.ncic, rel=1e-5)
