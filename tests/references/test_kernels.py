"""Constants of truncated kernels and quantile functions, against independent formulas."""

from __future__ import annotations

import numpy as np
import pytest
from reference_cases import box3, screen, star, transitions
from scipy import stats

import unnorm as un
from unnorm.errors import InputError
from unnorm.references import Empirical, Gaussian, VonMises, VonMisesFisher
from unnorm.references.kernels import CorrelatedBoxNormal, SphereFisher
from unnorm.references.polygon import normal_mass, polar_mass
from unnorm.references.quantiles import circular_quantile


def test_normal_mass_of_a_rectangle_is_a_product():
    edges = un.Box((-1, 2), (0, 1.5)).edges
    c = np.random.default_rng(0).uniform(-4, 4, (500, 2))
    c[:4] = [[-1, 0], [-1, 0.7], [0.3, 1.5], [2, 1.5]]  # corners and sides
    expected = np.diff(stats.norm.cdf(np.array([-1, 2]) - c[:, :1])) * np.diff(stats.norm.cdf([0, 1.5] - c[:, 1:]))
    assert normal_mass(edges, c) == pytest.approx(expected[:, 0], abs=1e-14)


def test_normal_mass_of_a_star_is_its_integral():
    """A concave window in two pieces with a hole, against the window's own quadrature."""
    omega = star()
    rule = omega.quadrature(100)
    c = np.vstack([omega.uniform(20, 1), [[5.0, 1.0], [0.0, 0.0]]])  # outside, and in the hole
    expected = [rule.weights @ stats.multivariate_normal(m, 1.0).pdf(rule.points) for m in c]
    assert normal_mass(omega.edges, c) == pytest.approx(np.array(expected), abs=1e-12)


def test_polar_mass_of_a_rayleigh_law_is_the_normal_mass():
    """Uniform directions and Rayleigh lengths are the normal law: quadrature along the edges against Owen's T."""
    omega = star()
    edges = omega.edges
    c = omega.uniform(200, 2)
    c[0] = omega.polygon.geoms[0].exterior.coords[0]  # a vertex
    c[1] = edges[3].mean(axis=0)  # on an edge
    c[2] = edges[3].mean(axis=0) + 1e-7  # very near to one
    got = polar_mass(edges, c, lambda r: -np.expm1(-0.5 * r**2), lambda phi, i: np.full(phi.shape, 0.5 / np.pi), 48)
    assert got == pytest.approx(normal_mass(edges, c), abs=1e-9)


def test_genz_constant_against_scipy():
    omega = box3()
    cov = np.array([[0.5, 0.2, 0.3], [0.2, 0.3, 0.1], [0.3, 0.1, 1.5]])
    kernel = CorrelatedBoxNormal(omega, cov)
    c = omega.uniform(3, 0)
    expected = []
    for m in c:
        to = {"maxpts": 2_000_000, "abseps": 1e-9, "releps": 1e-9, "lower_limit": omega.lower}
        expected.append(stats.multivariate_normal.cdf(omega.upper, m, cov, **to))
    assert np.exp(kernel.log_constant(c)) == pytest.approx(np.array(expected), rel=1e-4)
    assert kernel.error < 1e-4


def test_genz_constant_of_a_diagonal_covariance_in_five_dimensions():
    omega = un.Box(*[(0, 1)] * 5)
    sd = np.array([0.3, 0.5, 0.4, 0.8, 1.0])
    kernel = CorrelatedBoxNormal(omega, np.diag(sd**2))
    c = omega.uniform(5, 0)
    expected = np.prod(stats.norm.cdf((1 - c) / sd) - stats.norm.cdf(-c / sd), axis=1)
    assert np.exp(kernel.log_constant(c)) == pytest.approx(expected, rel=1e-12)  # then nothing is left to integrate


@pytest.mark.parametrize("kappa", [0.0, 0.3, 3.0, 40.0, 3e3, 1e6])
def test_von_mises_quantiles(kappa):
    quantile = circular_quantile(kappa)
    x = stats.norm.ppf(np.linspace(1e-6, 1 - 1e-6, 1001)) / np.sqrt(1 + kappa)
    x = x[np.abs(x) < np.pi]
    u = stats.vonmises.cdf(x, kappa) if kappa > 0 else 0.5 + x / (2 * np.pi)
    tolerance = 1e-7 if kappa < 50 else 1e-4  # in standard deviations; SciPy's own approximates beyond κ = 50
    assert quantile(u) == pytest.approx(x, abs=tolerance / np.sqrt(1 + kappa))
    assert quantile(np.array([0.0, 0.5, 1.0]))[1] == pytest.approx(0.0, abs=1e-12)


def test_fisher_draws_are_scipys_law():
    mu = np.array([0.6, 0.0, -0.8])
    kernel = SphereFisher(7.0)
    y = kernel.from_unit(np.random.default_rng(0).random((20_000, 2)), mu[None], np.zeros(20_000, dtype=int))
    expected = stats.vonmises_fisher(mu, 7.0)
    assert kernel.log_density(y[:50], mu[None], np.zeros(50, int)) == pytest.approx(expected.logpdf(y[:50]), rel=1e-10)
    assert np.linalg.norm(y, axis=1) == pytest.approx(1.0, abs=1e-12)
    length = 1 / np.tanh(7.0) - 1 / 7.0
    assert y.mean(axis=0) == pytest.approx(length * mu, abs=5 / np.sqrt(20_000))


def test_fitted_directions_are_maximum_likelihood():
    rng = np.random.default_rng(3)
    angle = rng.vonmises(1.0, 2.5, 400)
    obs = un.Observations("iid", angle[:, None], ("y",))
    fitted = VonMises().bind(un.Circle(), obs).reference
    kappa, mu, _ = stats.vonmises.fit(angle, fscale=1)
    assert (fitted.mu, fitted.kappa) == pytest.approx((mu, kappa), rel=1e-5)

    y = stats.vonmises_fisher([0.0, 1.0, 0.0], 5.0).rvs(400, random_state=4)
    fitted = VonMisesFisher().bind(un.Sphere(), un.Observations("iid", y, ("a", "b", "c"))).reference
    mu, kappa = stats.vonmises_fisher.fit(y)
    assert fitted.mu == pytest.approx(mu, abs=1e-10)
    assert fitted.kappa == pytest.approx(kappa, rel=1e-6)


def test_fitted_gaussian_has_the_weighted_moments_of_the_steps():
    obs = transitions(screen(), n=300)
    weight = np.random.default_rng(0).integers(1, 4, 300).astype(float)
    weighted = un.Observations("transitions", obs.outcome, obs.outcome_names, obs.context, lags=1, weight=weight)
    step = np.repeat(obs.outcome - obs.previous(), weight.astype(int), axis=0)
    fitted = Gaussian(around="context", diagonal=False).bind(screen(), weighted).reference
    assert np.array(fitted.mean) == pytest.approx(step.mean(axis=0))
    assert np.array(fitted.cov) == pytest.approx(np.cov(step, rowvar=False, bias=True))


def test_empirical_density_is_scipys_away_from_the_boundary():
    rng = np.random.default_rng(0)
    y = rng.normal([50, 40], [3, 2], (200, 2))
    omega = un.Box((0, 100), (0, 100))
    q = Empirical(bandwidth=(1.5, 1.0)).bind(omega, un.Observations("iid", y, ("a", "b")))
    at = rng.normal([50, 40], 4, (50, 2))
    expected = [np.mean(stats.norm.pdf(p[0], y[:, 0], 1.5) * stats.norm.pdf(p[1], y[:, 1], 1.0)) for p in at]
    got = q.log_density(at, None, np.zeros(50, int))
    assert np.exp(got) == pytest.approx(np.array(expected), rel=1e-9)
    far = q.log_density(np.array([[0.0, 0.0], [99.0, 99.0]]), None, np.zeros(2, int))
    assert np.isfinite(far).all()
    assert (far < -400).all()


def test_empirical_thins_in_proportion_to_the_weights():
    y = np.linspace(0.05, 0.95, 1000)[:, None]
    weight = np.where(y[:, 0] < 0.5, 3.0, 1.0)
    q = Empirical(centres=100).bind(un.Interval(0, 1), un.Observations("iid", y, ("y",), weight=weight))
    assert len(q.c) == 100
    assert np.mean(q.c < 0.5) == pytest.approx(0.75, abs=0.011)


def test_a_kernel_that_misses_the_domain_is_refused():
    obs = transitions(screen())
    q = Gaussian(mean=(60.0, 60.0), cov=((1.0, 0.5), (0.5, 1.0))).bind(screen(), obs)
    with pytest.raises(InputError, match="of its mass inside Ω"):
        q.sample(obs, np.arange(5), np.random.default_rng(0))
