"""Identities that an outside referee found broken: zero weights, relative weights, units, few points, misused tests."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError

RNG = np.random.default_rng(0)
Y = RNG.beta(2, 2, 120)
WAVE = un.ExponentialFamily(lambda y: (y, jnp.cos(6 * y)), ("a", "b"), un.Interval(0, 1))
SLOPE = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(0, 1))


def _obs(y: Any, **columns: Any) -> un.Observations:
    weight = {"weight": "w"} if "w" in columns else {}
    return un.iid({"y": y, **columns}, y="y", group="g", **weight)


PLAIN = _obs(Y, g=np.arange(120) % 8)
PADDED = _obs(
    np.append(Y, RNG.random(50)),
    g=np.append(np.arange(120) % 8, 100 + np.arange(50)),
    w=np.repeat([1.0, 0.0], [120, 50]),
)


@pytest.mark.parametrize("objective", [un.Exact(cluster="g"), un.Logistic(un.Uniform(), total=600, cluster="g")])
def test_observations_of_weight_zero_change_nothing(objective: Any) -> None:
    plain, padded = (un.fit(WAVE, obs, objective, rng=1) for obs in (PLAIN, PADDED))
    np.testing.assert_allclose(padded.estimate, plain.estimate, rtol=1e-8)
    for robust in (False, True):
        for column in ("se", "lower", "upper"):
            np.testing.assert_allclose(padded.tidy(robust=robust)[column], plain.tidy(robust=robust)[column], rtol=1e-8)
    if objective.reference is not None:
        assert padded.advise().auc == pytest.approx(plain.advise().auc, abs=1e-12)
    ones = dataclasses.replace(PLAIN, weight=np.ones(120))
    relative = [un.fit(WAVE, obs, objective, rng=1, weights="relative").se for obs in (ones, PADDED)]
    np.testing.assert_allclose(relative[1], relative[0], rtol=1e-8)


def test_advice_counts_weights_as_copies() -> None:
    w = RNG.integers(1, 6, 120)
    counts = un.fit(
        WAVE, dataclasses.replace(PLAIN, weight=w.astype(float)), un.Logistic(un.Uniform(), total=600), rng=1
    )
    copies = un.fit(WAVE, _obs(np.repeat(Y, w), g=np.zeros(w.sum())), un.Logistic(un.Uniform(), total=600), rng=1)
    assert counts.advise().auc == pytest.approx(copies.advise().auc, abs=1e-12)
    assert counts.advise().effective == pytest.approx(copies.advise().effective, abs=1e-9)


def test_errors_do_not_depend_on_units() -> None:
    y = un.iid(RNG.beta(2, 3, (200, 2)))
    box = un.Box((0, 1), (0, 1))
    units = np.array([1e8, 1e-8, 1.0])
    scaled, plain = (
        un.ExponentialFamily(lambda y, c=c: (c[0] * y[0], c[1] * y[1], c[2] * y[0] * y[1]), ("p", "q", "r"), box)
        for c in (units, np.ones(3))
    )
    a, b = un.fit(scaled, y), un.fit(plain, y)
    np.testing.assert_allclose(a.se * units, b.se, rtol=1e-6)


def test_ranking_with_two_points_knows_their_error() -> None:
    """Against many fresh sets of points: the jackknife of two points had .4 of their variance."""
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
    obs = un.transitions(un.datasets.toy_chain(800, 0.5, 8.0, rng=1))
    theta = np.array([0.5, 8.0])
    for k in (2, 3, 5):
        bound = [un.Ranking(un.Uniform(), per_point=k).bind(toy, obs, un.PerContext(), s) for s in range(40)]
        spread = np.var([one.derivatives(theta).gradient for one in bound], axis=0, ddof=1)
        found = np.mean([np.diag(one.scores(theta).points_spread(2)) for one in bound[:3]], axis=0)
        assert np.all((found / spread > 0.55) & (found / spread < 1.9))


def test_a_likelihood_ratio_needs_nested_fits_of_the_same_data() -> None:
    larger, smaller = un.fit(WAVE, PLAIN), un.fit(SLOPE, PLAIN)
    assert larger.likelihood_ratio(smaller).df == 1
    with pytest.raises(InputError, match="outcomes or weights differ"):
        larger.likelihood_ratio(un.fit(SLOPE, dataclasses.replace(PLAIN, weight=np.full(120, 3.0))))
    wide = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(0, 2))
    with pytest.raises(InputError, match="same domain"):
        larger.likelihood_ratio(un.fit(wide, PLAIN))
    near = [un.Expression("c", "cos(3 * y)"), un.Expression("d", "sin(5 * y)")]
    curve = un.fit(un.Additive("y + c + s(d, k=5)", un.Interval(0, 1), covariates=near), PLAIN)
    line = un.fit(un.Additive("y", un.Interval(0, 1)), PLAIN)
    with pytest.raises(InputError, match="smooth terms"):
        curve.likelihood_ratio(line)
    with pytest.raises(InputError, match="each parameter once"):
        larger.wald(["b", "b"])


def test_a_loaded_fit_is_as_nested_as_before(tmp_path) -> None:
    obs, box = un.iid(RNG.beta(2, 3, (60, 2))), un.Box((0, 1), (0, 1))
    larger = un.fit(un.ExponentialFamily(lambda y: (y[0], y[1]), ("p", "q"), box), obs)
    smaller = un.fit(un.ExponentialFamily(lambda y: (y[0],), ("p",), box), obs)
    larger.save(tmp_path / "fit")
    assert un.load(tmp_path / "fit").likelihood_ratio(smaller) == larger.likelihood_ratio(smaller)
