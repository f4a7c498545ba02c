"""Scores of logistic and importance rows with a parametric f: constants joint, profiled or fixed; more points."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm._base.numerics import stream
from unnorm.objectives.likelihood import RowLikelihood
from unnorm.objectives.scores import Drawn
from unnorm.solvers.newton import Newton

MODEL = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
N, K = 25, 4
WEIGHTS = np.random.default_rng(2).integers(1, 5, N).astype(float)
CHAIN = dataclasses.replace(un.transitions(un.datasets.toy_chain(N, 0.5, 5.0, rng=4)), weight=WEIGHTS)
LOGISTIC = un.Logistic(un.Uniform(), per_point=K, points=un.IID())
IMPORTANCE = un.Importance(un.Uniform(), per_point=60, points=un.IID())
CASES = [
    (LOGISTIC, un.PerContext()),
    (LOGISTIC, un.Constant()),
    (LOGISTIC, un.Fixed(0.3)),
    (IMPORTANCE, un.PerContext()),
]


def _bound(objective: Any, normaliser: Any) -> Any:
    return objective.bind(MODEL, CHAIN, normaliser, np.random.default_rng(1))


def _reweighted(problem: Any, factor: np.ndarray) -> Any:
    """The same rows, each likelihood times a factor."""
    rows = problem.source.rows
    likelihood = RowLikelihood(rows.likelihood.cumulant, rows.likelihood.a * factor, rows.likelihood.b * factor)
    source = dataclasses.replace(problem.source, rows=dataclasses.replace(rows, likelihood=likelihood))
    return dataclasses.replace(problem, source=source)


def _maximum(problem: Any) -> np.ndarray:
    """(θ, ν), or θ where ν is fixed or there are many."""
    theta = Newton(tolerance=1e-14).climb(problem)[1].theta
    return np.append(theta, problem.nu_at(theta)) if problem.layout.size == 1 else theta


@pytest.mark.parametrize(("objective", "normaliser"), CASES, ids=str)
def test_a_row_moves_the_maximum_by_its_score(objective, normaliser) -> None:
    """d(θ̂, ν̂)/d(weight of a row) = V ℓ' x, observation or point, x with −dν*/dθ where the constants are many."""
    problem = _bound(objective, normaliser)
    at = _maximum(problem)
    scores = problem.scores(at[:2])
    (rows,) = scores.blocks()
    V, slope = np.linalg.inv(scores.information), rows.slopes()[0]
    for r in (0, 1, 3 * (objective.per_point + 1), len(rows.data) - 1):
        step = 1e-3 * (np.arange(len(rows.data)) == r)
        up, down = (_maximum(_reweighted(problem, 1.0 + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(V @ (slope[r] * rows.design.X[r]), (up - down) / 2e-3, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("c", [1.0, 3.0])
@pytest.mark.parametrize(("objective", "normaliser"), CASES, ids=str)
def test_information_with_more_points(objective, normaliser, c) -> None:
    """c times as many points are those at hand c times over, their odds or shares c times smaller, at the same (θ, ν):
    the full Hessian written out, then profiled."""
    problem, theta = _bound(objective, normaliser), np.array([0.4, 4.0])
    nu = problem.nu_at(theta) if problem.layout.size else np.array([problem.layout.fixed])
    rows = problem.source.rows
    y, x = rows.y[:, 0], CHAIN.previous()[rows.at, 0]
    s = np.column_stack([y, -0.5 * (y - x) ** 2])
    q = max(problem.layout.size, 1)
    which = rows.at if q > 1 else np.zeros(len(y), dtype=int)
    eta, w = s @ theta + nu[which] + rows.offset, WEIGHTS[rows.at]
    if objective is LOGISTIC:
        p = 1 / (1 + c * np.exp(-eta))
        curvature = np.where(rows.data, 1.0, c) * w * p * (1 - p)
    else:
        curvature = np.where(rows.data, 0.0, w * np.exp(eta) * 2 / 60)  # 1/q = 2; c and 1/c cancel
    X = np.column_stack([s, np.eye(q)[which]])
    full = X.T @ (curvature[:, None] * X)
    if problem.layout.size == 0:
        expected = full[:2, :2]
    elif problem.layout.size == 1:
        expected = full
    else:
        expected = np.linalg.inv(np.linalg.inv(full)[:2, :2])
    np.testing.assert_allclose(problem.scores(theta).more(c).information, expected, rtol=1e-8)


def test_weights() -> None:
    half = dataclasses.replace(CHAIN, weight=np.where(np.arange(N) < 10, 0.0, WEIGHTS))
    scores = LOGISTIC.bind(MODEL, half, un.PerContext(), 1).scores(np.array([0.4, 4.0]))
    assert scores.weight == WEIGHTS[10:].sum()


@pytest.mark.parametrize("points", [un.IID(), un.Lattice(), un.Lattice(randomisations=2)], ids=repr)
def test_even_points_are_measured(points) -> None:
    """On fresh points, or over the sets at hand; IID points say themselves how much they vary."""
    objective = un.Logistic(un.Uniform(), per_point=K, points=points)
    problem, theta = _bound(objective, un.Constant()), np.array([0.4, 4.0])
    scores = problem.scores(theta)
    assert scores.drawn is (Drawn.IID if points.iid else Drawn.EVENLY)
    assert scores.counts_points
    if points.iid:
        assert scores.measured_spread() is None
        return
    nu, sums = problem.nu_at(theta)[0], []
    if points.sets == 2:
        every = [problem.source.rows]
        labels = [every[0].randomisation == r for r in (1, 2)]
    else:
        every = [problem.redraw(i, 1.0).whole() for i in range(4)]
        labels = [~rows.data for rows in every]
    for rows, keep in zip(every * 2 if points.sets == 2 else every, labels):
        y, x = rows.y[keep, 0], CHAIN.previous()[rows.at[keep], 0]
        s = np.column_stack([y, -0.5 * (y - x) ** 2, np.ones(len(y))])
        p = 1 / (1 + np.exp(-(s[:, :2] @ theta + nu + rows.offset[keep])))
        sums.append(-(WEIGHTS[rows.at[keep]] * p) @ s)
    np.testing.assert_allclose(scores.measured_spread(), points.sets * np.cov(np.array(sums).T), rtol=1e-8)


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
def test_counts_and_copies_have_the_same_constant_and_error(objective) -> None:
    """IID data share their points: whole weights are the rows repeated, ν and its error included."""
    model = un.ExponentialFamily(lambda y: (y, y**2), ("y", "y2"), un.Interval(0, 1))
    y, w = np.random.default_rng(0).beta(2, 3, 60), np.random.default_rng(1).integers(1, 6, 60)
    same = objective(un.Uniform(), total=300, points=un.IID())
    counts, copies = (un.fit(model, obs, same, rng=1) for obs in (un.iid(y, weight=w), un.iid(np.repeat(y, w))))
    np.testing.assert_allclose(counts.nu, copies.nu, rtol=1e-6)
    np.testing.assert_allclose(counts.nu_se, copies.nu_se, rtol=1e-6)
    np.testing.assert_allclose(counts.covariance, copies.covariance, rtol=1e-6)
    np.testing.assert_allclose(counts.covariance_robust, copies.covariance_robust, rtol=1e-6)
    assert counts.ncic == pytest.approx(copies.ncic, rel=1e-9)
    assert counts.nu_se[0] ** 2 == pytest.approx(_total_of_nu(copies, objective, y, w), rel=1e-6)


def _total_of_nu(fit: un.Fit, objective: Any, y: np.ndarray, w: np.ndarray) -> float:
    """V (Σ1 + Σ2) V of (θ, ν) at ν, written out on the repeated rows and their points."""
    y = np.repeat(y, w)
    n, m = len(y), 300
    points = objective(un.Uniform(), total=m, points=un.IID()).draw(
        fit.model, un.iid(y), un.Constant(), np.random.default_rng(stream(1))
    ).outcome[n:, 0]  # fmt: skip
    z = np.concatenate([y, points])
    X = np.column_stack([z, z**2, np.ones(n + m)])
    eta = X @ np.append(fit.estimate, fit.nu)
    if objective is un.Logistic:
        p = 1 / (1 + m / n * np.exp(-eta))
        H = X.T @ ((p * (1 - p))[:, None] * X)
        g = (p * (1 - p)) @ X
        sigma1 = X.T @ ((p * (1 - p) ** 2)[:, None] * X) - np.outer(g, g) / n
        r = (p[:, None] * X)[n:]
    else:
        r = (n / m * np.exp(eta)[:, None] * X)[n:]
        H = r.T @ X[n:]
        sigma1 = H - np.outer(r.sum(axis=0), r.sum(axis=0)) / n
    V = np.linalg.inv(H)
    return float((V @ (sigma1 + m * np.cov(r.T)) @ V)[2, 2])
