"""weights="relative": weights that are no counts; errors from Σ w² g gᵀ."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError

SLOPE = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(0, 1))


def test_the_scale_of_relative_weights_does_not_matter_and_that_of_counts_does() -> None:
    rng = np.random.default_rng(0)
    y, w = rng.beta(2, 3, 300), rng.exponential(size=300)
    ms, s = (un.fit(SLOPE, un.iid(y, weight=c * w), weights="relative") for c in (250.0, 1.0))
    np.testing.assert_allclose(ms.se, s.se, rtol=1e-9)
    assert any("relative" in note for note in ms.notes)
    counts = un.fit(SLOPE, un.iid(y, weight=250.0 * w))
    assert counts.se[0] < ms.se[0] / 10
    with pytest.raises(InputError, match="weights must be one of"):
        un.fit(SLOPE, un.iid(y), weights="importance")  # type: ignore[arg-type]


def test_relative_weights_have_the_sandwich_with_squared_weights() -> None:
    """H⁻¹ Σ {w g/(1 − w/W)}² H⁻¹ · (n − 1)/n, g = y − E y, by hand; n equal weights give the plain robust error."""
    rng = np.random.default_rng(1)
    y, w = rng.beta(2, 3, 200), rng.exponential(size=200)
    w *= 200 / w.sum()
    fit = un.fit(SLOPE, un.iid(y, weight=w), weights="relative")
    a = fit.estimate[0]
    grid = (np.arange(20_000) + 0.5) / 20_000
    p = np.exp(a * grid) / np.exp(a * grid).sum()
    mean = p @ grid
    H = 200 * (p @ grid**2 - mean**2)
    expected = np.sqrt(199 / 200 * np.sum((w * (y - mean) / (1 - w / 200)) ** 2)) / H
    assert fit.se[0] == pytest.approx(expected, rel=1e-4)


def test_relative_weights_know_the_spread_of_their_estimate() -> None:
    """400 data sets with durations as weights: se / sd near one, where counting them would give .7."""
    rng = np.random.default_rng(2)
    fits = []
    for _ in range(400):
        y, w = rng.beta(1, 1, 150), rng.exponential(250.0, 150)
        fits.append(un.fit(SLOPE, un.iid(y, weight=w), weights="relative"))
    sd = np.std([fit.estimate[0] for fit in fits], ddof=1)
    assert np.mean([fit.se[0] for fit in fits]) / sd == pytest.approx(1.0, abs=0.12)


def test_relative_weights_have_no_likelihood_ratio_nor_aic() -> None:
    small = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(0, 1))
    large = un.ExponentialFamily(lambda y: (y, y**2), ("a", "b"), un.Interval(0, 1))
    rng = np.random.default_rng(1)
    obs = un.iid(rng.uniform(size=80), weight=rng.lognormal(size=80))
    one, two = (un.fit(model, obs, weights="relative") for model in (small, large))
    with pytest.raises(InputError, match=r"fit\.wald"):
        two.likelihood_ratio(one)
    with pytest.raises(InputError, match="held_out"):
        _ = two.aic
    assert two.wald(one).df == 1
