"""Scores of 𝓛 and 𝓜 with profiled constants: how the maximum moves with one observation's weight, and ν with θ."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.solvers.newton import Newton

MODEL = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHAIN = un.transitions(un.datasets.toy_chain(30, 0.5, 5.0, rng=4))
WEIGHTS = np.random.default_rng(2).integers(1, 5, 30).astype(float)
OFFSET = np.random.default_rng(3).normal(0.0, 0.5, 30)
NORMALISERS = [un.PerContext(), un.Constant(), un.Fixed(-0.8)]


def _bound(objective: Any, normaliser: Any, weights: np.ndarray = WEIGHTS, offset: np.ndarray | None = OFFSET) -> Any:
    obs = dataclasses.replace(CHAIN, weight=weights, offset=offset)
    return objective.bind(MODEL, obs, normaliser, np.random.default_rng(0))


def _maximum(problem: Any) -> np.ndarray:
    return Newton(tolerance=1e-14).climb(problem)[1].theta


@pytest.mark.parametrize("normaliser", NORMALISERS, ids=repr)
def test_a_weight_moves_the_maximum_by_its_score(normaliser) -> None:
    """dθ̂/dw_t = V g_t with g_t = ∂f_t − e_t E_t − (1 − e_t) Ē: the scores that robust errors are made of."""
    problem = _bound(un.Poisson(order=60), normaliser)
    theta = _maximum(problem)
    V = np.linalg.inv(problem.derivatives(theta).information)
    g = problem.by_observation(theta)
    for t in (0, 7, 19):
        step = 1e-3 * (np.arange(30) == t)
        up, down = (_maximum(_bound(un.Poisson(order=60), normaliser, WEIGHTS + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(V @ g[t], (up - down) / 2e-3, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("normaliser", NORMALISERS[:2], ids=repr)
def test_the_constants_slope_is_their_derivative(normaliser) -> None:
    problem = _bound(un.Poisson(order=60), normaliser)
    theta, step = _maximum(problem), 1e-5
    constants = problem.constants(theta)
    for j in range(2):
        up, down = (problem.nu_star(problem.integrals.log_z(theta + s * np.eye(2)[j])) for s in (step, -step))
        np.testing.assert_allclose(constants.slope[:, j], -(up - down) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("normaliser", NORMALISERS, ids=repr)
def test_information_is_that_of_the_profiled_objective(normaliser) -> None:
    problem = _bound(un.Poisson(order=60), normaliser)
    theta, step = _maximum(problem) + 0.1, 1e-5
    rows = [
        (problem.derivatives(theta + step * e).gradient - problem.derivatives(theta - step * e).gradient) / (2 * step)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(problem.derivatives(theta).information, -np.array(rows), rtol=1e-6)


@pytest.mark.parametrize("objective", [un.Exact(order=60), un.Poisson(order=60)], ids=["exact", "poisson"])
def test_empirical_spread_and_clusters_count_copies(objective) -> None:
    """Whole weights against the same rows repeated, whose scores are those of one copy."""
    copies = np.repeat(np.arange(30), WEIGHTS.astype(int))
    repeated = dataclasses.replace(CHAIN.take(copies), offset=OFFSET[copies])
    theta = np.array([0.3, 4.0])
    one = _bound(objective, un.PerContext()).scores(theta)
    two = objective.bind(MODEL, repeated, un.PerContext(), np.random.default_rng(0)).scores(theta)
    g = two.problem.by_observation(theta)
    n = len(copies)
    np.testing.assert_allclose(two.empirical_spread(), n / (n - 1) * g.T @ g, rtol=1e-9)
    np.testing.assert_allclose(one.empirical_spread(), two.empirical_spread(), rtol=1e-9)
    label = np.arange(30) % 4
    sums = np.stack([g[label[copies] == c].sum(axis=0) for c in range(4)])
    np.testing.assert_allclose(one.cluster_sums(label, 4), sums, rtol=1e-9)
    np.testing.assert_allclose(two.cluster_sums(label[copies], 4), sums, rtol=1e-9)
    assert one.weight == two.weight == n
    np.testing.assert_allclose(one.cluster_weights(label, 4), np.bincount(label[copies]))
    assert not np.any(one.points_spread(2))


def test_one_constant_for_many_contexts_is_no_likelihood() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ignored = un.fit(MODEL, CHAIN, un.Poisson(), un.Constant())
    assert not ignored.is_likelihood
    assert un.fit(MODEL, CHAIN, un.Poisson()).is_likelihood
    assert not un.fit(MODEL, CHAIN, un.Poisson(), un.Smooth("s(y_prev, k=5)")).is_likelihood


@pytest.mark.parametrize("kind", ["family", "terms"])
def test_the_transform_has_the_likelihoods_value_with_weights(kind) -> None:
    """𝓛 = 𝓜 + Σ w, and AIC with it."""
    y, w = np.random.default_rng(0).beta(2, 3, 40), np.random.default_rng(1).integers(1, 5, 40).astype(float)
    unit = un.Interval(0, 1)
    model = un.ExponentialFamily(lambda y: y, ("y",), unit) if kind == "family" else un.Additive("y", unit)
    exact, poisson = (un.fit(model, un.iid(y, weight=w), one) for one in (un.Exact(), un.Poisson()))
    assert poisson.loglik == pytest.approx(w @ exact.log_density(y), rel=1e-6)
    assert poisson.aic == pytest.approx(-2 * (w @ exact.log_density(y)) + 2, rel=1e-6)
    if kind == "family":
        np.testing.assert_allclose(poisson.nu_se, exact.nu_se, rtol=1e-5)
