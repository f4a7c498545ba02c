"""Smooth densities of directions in space: `sos` of the latitude and longitude that a Sphere has."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.data.covariates import CovariateSet
from unnorm.errors import TermError

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")

RNG = np.random.default_rng(6)
MU = np.array([0.6, 0.0, 0.8])


def _fisher(n: int, kappa: float) -> np.ndarray:
    """Directions from κ exp(κ μ·y)/4π sinh κ."""
    w = 1.0 + np.log(RNG.uniform(size=n) * (1.0 - np.exp(-2.0 * kappa)) + np.exp(-2.0 * kappa)) / kappa
    across = RNG.standard_normal((n, 3))
    across -= (across @ MU)[:, None] * MU
    across /= np.linalg.norm(across, axis=1)[:, None]
    return w[:, None] * MU + np.sqrt(1.0 - w**2)[:, None] * across


def test_latitude_and_longitude_are_those_of_the_vector():
    y = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, -0.0, 0.0], [0.5, -0.5, 0.5**0.5]])
    got = CovariateSet(un.iid(y), domain=un.Sphere()).values(("latitude", "longitude"), un.iid(y))
    np.testing.assert_allclose(got["latitude"], [0.0, 0.0, -90.0, 0.0, 45.0], atol=1e-12)
    np.testing.assert_allclose(got["longitude"], [0.0, 90.0, 0.0, 180.0, -45.0], atol=1e-12)
    chain = un.transitions(y)
    before = CovariateSet(chain, domain=un.Sphere()).values(("latitude_prev", "longitude_prev"), chain)
    np.testing.assert_allclose(before["longitude_prev"], [0.0, 90.0, 0.0, 180.0], atol=1e-12)
    assert "latitude" not in CovariateSet(un.iid(y))


@pytest.mark.parametrize(
    "objective", [un.Poisson(order=12), un.Logistic(un.Uniform(), total=8000)], ids=["poisson", "logistic"]
)
def test_a_von_mises_fisher_density_is_found(objective):
    y = _fisher(600, 2.0)
    model = un.Additive("s(latitude, longitude, bs='sos', k=20)", un.Sphere())
    fit = un.fit(model, un.iid(y), objective, rng=3)
    places = un.Sphere().uniform(400, 9)
    part = fit.smooths
    assert part is not None
    f = part.f(model.covariates(un.iid(places)).values(("latitude", "longitude"), un.iid(places)))
    true = 2.0 * places @ MU
    error = (f - f.mean()) - (true - true.mean())
    assert np.sqrt(np.mean(error**2)) < 0.25 * true.std()
    across = fit.effect("s(latitude,longitude)", at={"latitude": [10.0, 10.0], "longitude": [-180.0, 180.0]})
    assert np.ptp(across["estimate"]) < 1e-8  # no seam


def test_other_ways_are_refused_with_one_that_works():
    obs = un.iid(_fisher(100, 2.0))
    with pytest.raises(TermError, match=r"y1² \+ y2² \+ y3² = 1, .* Use s\(latitude, longitude, bs='sos'\)"):
        un.fit(un.Additive("s(y1, y2, y3)", un.Sphere()), obs, un.Logistic(un.Uniform(), total=800), rng=3)
    with pytest.raises(TermError, match=r"takes 2 covariate\(s\); got 3\. Write s\(latitude, longitude, bs='sos'\)"):
        un.Additive("s(y1, y2, y3, bs='sos')", un.Sphere())
    lines = un.fit(un.Additive("linear(y1, y2, y3)", un.Sphere()), obs, un.Poisson(), rng=3)  # κμ, one by one
    assert lines.smooths is not None
    there = lines.smooths.f({name: np.array([v, -v]) for name, v in zip(("y1", "y2", "y3"), MU)})
    assert there[0] - there[1] == pytest.approx(4.0, abs=1.5)  # 2κ
