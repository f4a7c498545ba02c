"""Constants that are linear in features (un.Linear): a fit says so where the features cannot follow the constants."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import unnorm as un
from unnorm.errors import UnnormWarning

N, WORDS, LOUD = 400, 200, 40
MODEL = un.ExponentialFamily(lambda y, x: (x["t"] * y,), ("slope",), un.Interval(0, 1))


def data(seed: int) -> tuple[un.Observations, list[frozenset[int]]]:
    """p(y|t) ∝ exp(t y) on [0, 1], t the number of loud words among eight, centred and halved."""
    rng = np.random.default_rng(seed)
    sets = [frozenset(rng.choice(WORDS, 8, replace=False).tolist()) for _ in range(N)]
    loud = np.array([sum(word < LOUD for word in one) for one in sets], dtype=float)
    t = 0.5 * (loud - loud.mean())
    return un.conditional(np.log1p(rng.random(N) * np.expm1(t)) / t, x={"t": t}), sets


def fitted(obs: un.Observations, features: object, points: un.PointScheme) -> tuple[un.Fit, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UnnormWarning)
        objective = un.Logistic(un.Uniform(), per_point=10, points=points)
        fit = un.fit(MODEL, obs, objective, un.Linear(features), rng=2)
    return fit, [str(one.message) for one in said]


@pytest.mark.parametrize("points", [un.Lattice(), un.IID()], ids=["lattice", "iid"])
def test_few_hashes_cannot_and_the_fit_says_so(points: un.PointScheme) -> None:
    obs, sets = data(6)
    fit, said = fitted(obs, un.minwise(sets, bits=2, hashes=64, seed=1), points)
    anchored = un.fit(MODEL, obs, un.Logistic(un.Uniform(), per_point=10, points=points), rng=2)
    assert fit.constants_failed
    assert any(f"slope is {fit.estimate[0]:.4g}, and {anchored.estimate[0]:.4g}" in one for one in said), said
    assert abs(fit.estimate[0] - anchored.estimate[0]) > anchored.se[0]  # it is wrong indeed


@pytest.mark.parametrize("seed", range(3))
def test_the_words_themselves_can(seed: int) -> None:
    obs, sets = data(20 + seed)
    rows = np.repeat(np.arange(N), 8)
    columns = np.array([word for one in sets for word in sorted(one)])
    words = sp.csr_array((np.ones(8 * N), (rows, columns)), shape=(N, WORDS))
    fit, said = fitted(obs, words, un.IID())
    assert not said
    assert not fit.constants_failed
    assert fit.constants is not None
    assert "no estimate differs" in fit.constants
