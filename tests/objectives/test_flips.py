"""Every bit flipped once is maximum pseudo-likelihood: stacked logistic regressions, Godambe errors, random flips."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import unnorm as un
from unnorm.errors import CombinationError, InputError, NoEstimateError

D = 4
PAIRS = [(i, j) for i in range(D) for j in range(i + 1, D)]
NAMES = (*(f"h{i}" for i in range(D)), *(f"J{i}{j}" for i, j in PAIRS))
ISING = un.ExponentialFamily(lambda y: (y, jnp.stack([y[i] * y[j] for i, j in PAIRS])), NAMES, un.BinaryVectors(D))
EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def _data(n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(5)
    y = (rng.random((n, D)) < 0.4).astype(float)
    y[:, 1] = np.where(rng.random(n) < 0.4, y[:, 0], y[:, 1])
    return y


def _stacked(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A row for each bit: response y_i, regressors 1 in column h_i and y_j in column J_ij."""
    rows = np.zeros((len(y), D, len(NAMES)))
    for i in range(D):
        rows[:, i, i] = 1.0
        for c, pair in enumerate(PAIRS):
            if i in pair:
                rows[:, i, D + c] = y[:, pair[0] + pair[1] - i]
    return y.ravel(), rows.reshape(-1, len(NAMES))


def _logistic(response: np.ndarray, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    found = minimize(
        lambda v: weight @ (np.logaddexp(0, X @ v) - response * (X @ v)),
        np.zeros(X.shape[1]),
        jac=lambda v: X.T @ (weight * (expit(X @ v) - response)),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    return found.x


@pytest.mark.parametrize("weighted", [False, True])
def test_every_flip_is_stacked_logistic_regressions(weighted: bool) -> None:
    """Estimates to 1e-6; errors H⁻¹ (Σ w g gᵀ) H⁻¹ n/(n − 1), scores summed over the bits of an observation."""
    y = _data()
    w = np.random.default_rng(2).integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    obs = dataclasses.replace(un.iid(y), weight=w if weighted else None)
    fit = un.fit(ISING, obs, EVERY)
    response, X = _stacked(y)
    expected = _logistic(response, X, np.repeat(w, D))
    np.testing.assert_allclose(fit.estimate, expected, atol=1e-6)
    p = expit(X @ expected)
    H = X.T @ (X * (np.repeat(w, D) * p * (1 - p))[:, None])
    g = ((response - p)[:, None] * X).reshape(len(y), D, -1).sum(axis=1)
    V = np.linalg.inv(H) @ (g.T @ (g * w[:, None])) @ np.linalg.inv(H) * w.sum() / (w.sum() - 1)
    np.testing.assert_allclose(fit.covariance, V, rtol=1e-5, atol=1e-8)
    assert not fit.assumes_model
    assert fit.errors is not None
    assert not fit.errors.points


def test_clusters_sum_scores_over_their_observations() -> None:
    y = _data()
    obs = dataclasses.replace(un.iid(y), group={"g": np.arange(len(y)) // 10})
    fit = un.fit(ISING, obs, dataclasses.replace(EVERY, cluster="g"))
    response, X = _stacked(y)
    p = expit(X @ fit.estimate)
    g = ((response - p)[:, None] * X).reshape(30, 10 * D, -1).sum(axis=1)
    bread = np.linalg.inv(X.T @ (X * (p * (1 - p))[:, None]))
    assert np.sqrt(np.diag(fit.covariance_robust)) == pytest.approx(
        np.sqrt(np.diag(bread @ g.T @ g @ bread) * 30 / 29), rel=1e-6
    )


def test_all_flips_at_random_are_every_flip() -> None:
    """Without replacement d flips are all of them: the same estimate, the same error, and none from the reference."""
    obs = un.iid(_data())
    every = un.fit(ISING, obs, EVERY)
    drawn = un.fit(ISING, obs, un.ConditionalNCE(un.BitFlip(), per_point=D), rng=1)
    np.testing.assert_allclose(drawn.estimate, every.estimate, atol=1e-8)
    np.testing.assert_allclose(drawn.se, every.se, rtol=1e-6)
    assert drawn.errors is not None
    assert np.abs(drawn.errors.reference).max() < 1e-12


def test_flips_of_an_observation_are_distinct_and_even() -> None:
    y = _data(20_000)
    obs = un.iid(y)
    t = np.repeat(np.arange(len(y)), 3)
    points = un.BitFlip().bind(un.BinaryVectors(D), obs).sample(obs, t, np.random.default_rng(3))
    which = np.argmax(points != y[t], axis=1).reshape(-1, 3)
    assert (np.abs(points - y[t]).sum(axis=1) == 1).all()
    assert all(len(set(row)) == 3 for row in which[:500])
    assert np.abs(np.bincount(which[:, 0]) / len(y) - 0.25).max() < 0.015
    assert np.abs(np.bincount(which.ravel()) / which.size - 0.25).max() < 0.01


def test_reference_error_of_flips_without_replacement() -> None:
    """The spread of estimates over redraws of 2 of 4 flips is the reference part that one fit states."""
    obs = un.iid(_data(400))
    objective = un.ConditionalNCE(un.BitFlip(), per_point=2)
    fits = [un.fit(ISING, obs, objective, rng=100 + r) for r in range(60)]
    spread = np.std([fit.estimate for fit in fits], axis=0, ddof=1)
    stated = np.sqrt(np.mean([np.diag(fit.errors.reference) for fit in fits if fit.errors is not None], axis=0))
    assert np.mean(stated / spread) == pytest.approx(1.0, abs=0.1)


def test_words_for_what_cannot_be() -> None:
    obs = un.iid(_data())
    with pytest.raises(CombinationError, match="leave per_point"):
        un.fit(ISING, obs, un.ConditionalNCE(un.BitFlip(every=True), per_point=3))
    with pytest.raises(InputError, match=r"4 points for each observation; got per_point=5"):
        un.fit(ISING, obs, un.ConditionalNCE(un.BitFlip(), per_point=5))
    with pytest.raises(InputError, match="True or False"):
        un.BitFlip(every=2)  # pyright: ignore
    with pytest.raises(CombinationError, match="does not depend on the outcome"):
        un.fit(ISING, obs, un.Logistic(un.BitFlip(every=True), per_point=3), un.PerContext())
    energy = un.Energy(lambda theta, y: theta["a"] ** 2 * y.sum(), {"a": 1.0}, un.BinaryVectors(D))
    with pytest.raises(CombinationError, match="linear in its parameters"):
        un.fit(energy, obs, EVERY)
    y = _data()
    y[:, 2] = 1.0
    with pytest.raises(NoEstimateError, match="h2"):
        un.fit(un.ExponentialFamily(lambda y: (y,), NAMES[:D], un.BinaryVectors(D)), un.iid(y), EVERY)
