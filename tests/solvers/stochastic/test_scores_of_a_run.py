"""Scores at the end of a stochastic run: Σ1 against loops over observations, Σ2 the run's own randomness averaged."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import unnorm as un

pytest.importorskip("optax")

from unnorm.solvers.stochastic.ending import STEPS, Curvature, ending
from unnorm.solvers.stochastic.finish import _scores, score_covariance

UNIT = un.Interval(0, 1)
MODEL = un.ExponentialFamily(lambda y: (y, y**2), ("y", "y2"), UNIT)
WALK = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
RNG = np.random.default_rng(0)
OBS = un.iid(RNG.beta(2, 3, 60), weight=RNG.integers(1, 5, 60).astype(float))
CHAIN = dataclasses.replace(
    un.transitions(un.datasets.toy_chain(40, 0.5, 5.0, rng=4)), weight=RNG.integers(1, 5, 40).astype(float)
)


def _estimator(model: Any, obs: un.Observations, objective: Any, normaliser: Any) -> Any:
    return un.SGD(batch=None).estimator(model.flat(), obs, objective, normaliser)


def _data_scores(phi: np.ndarray, y: np.ndarray, odds: float) -> np.ndarray:
    """(1 − p) x of one copy of each observation, against `odds` uniform points for each."""
    X = np.column_stack([y, y**2, np.ones(len(y))])
    return X / (1 + np.exp(X @ phi - np.log(odds)))[:, None]


@pytest.mark.parametrize("most", [2000, 20])
def test_shared_points_leave_the_datas_sample_covariance(most) -> None:
    """Weights are copies: N times the sample covariance of N scores; of some of them, in proportion."""
    e = _estimator(MODEL, OBS, un.Logistic(un.Uniform(), total=300), un.Constant())
    phi = np.array([1.0, -2.0, 0.3])
    some = np.unique(np.linspace(0, 59, min(60, most)).astype(int))
    w = e.obs.weights[some].astype(int)  # in the run's own order
    copies = np.repeat(_data_scores(phi, e.obs.outcome[some, 0], e.plan.references), w, axis=0)
    expected = OBS.weights.sum() * np.cov(copies.T)
    np.testing.assert_allclose(score_covariance(e, phi, 1, most), expected, rtol=1e-6)


def test_private_points_are_averaged_out() -> None:
    """Ranking: Σ_t w E[g_t] E[g_t]ᵀ over the points, by 4,000 redraws of each; their own variance is not in it."""
    theta, k = np.array([0.4, 3.0]), 1
    e = _estimator(WALK, CHAIN, un.Ranking(un.Uniform(), per_point=k), un.PerContext())
    rng = np.random.default_rng(1)
    x, y = CHAIN.previous()[:, 0], CHAIN.outcome[:, 0]
    expected = held = 0.0
    for t, w in enumerate(CHAIN.weights):
        z = np.column_stack([np.full(4000, y[t]), rng.uniform(-1, 1, (4000, k))])
        s = np.stack([z, -0.5 * (z - x[t]) ** 2], axis=-1)
        g = s[:, 0] - np.einsum("rj,rjp->rp", softmax(s @ theta, axis=1), s)
        expected = expected + w * np.outer(g.mean(axis=0), g.mean(axis=0))
        held = held + w * np.cov(g.T)
    found = np.mean([score_covariance(e, theta, seed) for seed in range(40)], axis=0)
    np.testing.assert_allclose(np.diag(found), np.diag(expected), rtol=0.05)
    assert np.all(np.diag(held) / 8 > 0.1 * np.diag(expected))  # what one half of the redraws, squared, would add


@pytest.mark.parametrize("objective", [un.Poisson(), un.Logistic(un.Uniform(), total=300)], ids=["poisson", "logistic"])
def test_the_parts(objective) -> None:
    """Σ1 = −H where 𝓜 is maximised, else from the scores; Σ2 the variance of one step's gradient over their number."""
    e = _estimator(MODEL, OBS, objective, un.Constant())
    phi, H, noise = np.array([1.0, -2.0, 0.3]), np.diag([3.0, 2.0, 1.0]), np.diag([0.5, 0.3, 0.2])
    scores = _scores(e, phi, 1, Curvature(H, None, noise, 50.0))
    np.testing.assert_allclose(scores.points_spread(2), noise / 50)
    sigma1 = H if objective.loss == "poisson" else score_covariance(e, phi, 1)
    np.testing.assert_allclose(scores.data_spread(), sigma1)
    assert scores.model_based == (objective.loss == "poisson")
    assert scores.weight == OBS.weights.sum()


@pytest.mark.parametrize("precondition", [True, False])
def test_steps_that_the_estimate_is_worth(precondition) -> None:
    """M fresh gradients, and the averaged half of a preconditioned run; another run's steps count for nothing."""
    solver = un.SGD(steps=200, precondition=precondition)
    e = solver.estimator(MODEL.flat(), OBS, un.Poisson(), un.Constant())
    trace = solver.climb(e, np.random.default_rng(1))
    curvature = ending(trace, 1).curvature
    assert curvature is not None
    fresh = curvature.steps - (trace.averaged if precondition else 0)
    assert fresh > 0
    assert fresh % STEPS == 0
    assert trace.averaged % STEPS
