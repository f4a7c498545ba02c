"""Densities and constants of every family against SciPy's laws, Bessel functions and series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.directions.bessel import log_bessel0, log_sinch
from unnorm.directions.rules import focused, polar
from unnorm.directions.sampling import draws

KAPPAS = (0.01, 1.0, 30.0, 1e4)
MU = np.array([1.0, 2.0, 2.0]) / 3.0
FRAME = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


def log_z(model: Any, theta: np.ndarray, order: int | None = None) -> float:
    """log Z as `Exact` computes it."""
    rule = model.quadrature(order)
    obs = un.iid(model.domain.uniform(2, rng=1))
    return float(model.log_z(theta, rule.points, np.log(rule.weights), model.contexts(obs))[0])


@pytest.mark.parametrize("kappa", [0.0, 1e-9, 1e-3, 0.03, 0.032, 0.5, 20.0, 1e4, 1e7])
def test_bessel_functions(kappa: float) -> None:
    import jax

    with x64():
        square = np.float64(kappa) ** 2
        value, slope = jax.value_and_grad(log_bessel0)(square)
        curve = jax.grad(jax.grad(log_bessel0))(square)
        other, rise = jax.value_and_grad(log_sinch)(square)
    A = special.i1e(kappa) / special.i0e(kappa)
    assert float(value) == pytest.approx(np.log(special.i0e(kappa)) + kappa, rel=1e-12, abs=1e-15)
    assert float(slope) == pytest.approx(A / (2 * kappa) if kappa else 0.25, rel=1e-9)  # d/d(κ²)
    if kappa >= 0.03:
        second = ((1 - A**2 - A / kappa) - A / kappa) / (4 * kappa**2)
        tolerance = 1e-6 if kappa < 1e4 else 1e-3  # 1 − A² − A/κ cancels in the oracle itself
        assert float(curve) == pytest.approx(second, rel=tolerance)
        assert float(other) == pytest.approx(kappa + np.log(-np.expm1(-2 * kappa) / (2 * kappa)), rel=1e-9)
        assert float(rise) == pytest.approx((1 / np.tanh(kappa) - 1 / kappa) / (2 * kappa), rel=1e-8)


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("domain", [un.Circle(), un.Axis()], ids=repr)
def test_von_mises_is_scipys(kappa: float, domain: un.Circle | un.Axis) -> None:
    law = stats.vonmises(kappa, loc=1.0)
    turn = 2 * np.pi / domain.period
    y = law.rvs(60, random_state=1) / turn
    fit = un.fit_direction(un.directions.von_mises(domain), un.iid(y))
    v = fit.parameters["kappa"], fit.parameters["mean"] * turn
    at = np.linspace(-3, 3, 50) / turn
    np.testing.assert_allclose(
        fit.log_density(at), stats.vonmises(v[0]).logpdf(at * turn - v[1]) + np.log(turn), rtol=1e-8, atol=1e-8
    )
    # maximum likelihood: A(κ̂) = R̄, μ̂ that of the resultant; the errors are those of the information matrix
    z = np.mean(np.exp(1j * turn * y))
    A = special.i1e(v[0]) / special.i0e(v[0])
    assert pytest.approx(abs(z), rel=1e-9) == A
    assert np.cos(v[1] - np.angle(z)) == pytest.approx(1.0, abs=1e-12)
    mean, size = fit.rows()
    assert mean.se * turn == pytest.approx(1 / np.sqrt(60 * v[0] * A), rel=1e-7)
    slope = 1 - A**2 - A / v[0]
    assert size.se == pytest.approx(1 / np.sqrt(60 * slope), rel=1e-6 if kappa < 1e4 else 1e-3)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_von_mises_fisher_is_scipys(kappa: float) -> None:
    y = stats.vonmises_fisher(MU, kappa).rvs(60, random_state=1)
    fit = un.fit_direction(un.directions.von_mises_fisher(), un.iid(y))
    mean, size = fit.vector(), fit.parameters["kappa"]
    assert 1 / np.tanh(size) - 1 / size == pytest.approx(np.linalg.norm(y.mean(axis=0)), rel=1e-9)
    np.testing.assert_allclose(mean, y.mean(axis=0) / np.linalg.norm(y.mean(axis=0)), atol=1e-9)
    np.testing.assert_allclose(fit.log_density(y), stats.vonmises_fisher(mean, size).logpdf(y), rtol=1e-8, atol=1e-8)
    A = 1 / np.tanh(size) - 1 / size
    assert fit.rows()[-1].se == pytest.approx(
        1 / np.sqrt(60 * (1 / size**2 - 1 / np.sinh(min(size, 300)) ** 2)), rel=1e-6
    )
    cone = fit.cone()
    if cone is not None:  # known where n κ A(κ) is large: both half-axes are √(χ²₂/nκA)
        chi2 = stats.chi2.ppf(0.95, 2)
        known = (np.arcsinh(size) * np.hypot(1, size) / fit.rows()[-1].se) ** 2  # asinh κ̂ in standard errors, squared
        expected = np.sqrt(chi2 / (60 * size * A) / (1 - chi2 / known))
        np.testing.assert_allclose(cone.angles, expected, rtol=1e-6)


def test_wrapped_laws_are_theirs() -> None:
    y = np.random.default_rng(2).vonmises(2.0, 3.0, 80)
    at = np.linspace(-3.1, 3.1, 41)
    cauchy = un.fit_direction(un.directions.wrapped_cauchy(), un.iid(y))
    mean, rho = cauchy.parameters.values()
    expected = stats.wrapcauchy(rho).logpdf(np.mod(at - mean, 2 * np.pi))
    np.testing.assert_allclose(cauchy.log_density(at), expected, rtol=1e-8, atol=1e-8)
    for spread in (0.1, 4.0):  # images, then harmonics
        normal = un.fit_direction(un.directions.wrapped_normal(), un.iid(2.0 + spread * np.linspace(-1, 1, 40)))
        mean, rho, sigma = normal.parameters.values()
        assert rho == pytest.approx(np.exp(-(sigma**2) / 2), rel=1e-9)
        images = at[:, None] - mean + 2 * np.pi * np.arange(-12, 13)
        np.testing.assert_allclose(
            normal.log_density(at), special.logsumexp(stats.norm(0, sigma).logpdf(images), axis=1), rtol=1e-8, atol=1e-8
        )


@pytest.mark.parametrize("kappa", KAPPAS)
def test_constants_on_the_sphere(kappa: float) -> None:
    """Watson by Dawson's function and erf, Kent by its series of Bessel functions, Bingham by a single integral."""
    rng = np.random.default_rng(1)
    obs = un.iid(draws(np.zeros(3), kappa * np.outer(MU, MU), 200, rng))
    charts = un.directions.watson().make(obs)
    root = np.sqrt(kappa)
    poles = np.log(4 * np.pi * special.dawsn(root) / root)  # of exp κ{(μ·y)² − 1}
    assert log_z(charts[0].model, root * MU, 128) == pytest.approx(poles, abs=1e-8)
    obs = un.iid(draws(np.zeros(3), -kappa * np.outer(MU, MU), 200, rng))
    girdle = np.log(2 * np.pi**1.5 * special.erf(root) / root)
    assert log_z(un.directions.watson().make(obs)[-1].model, root * MU, 128) == pytest.approx(girdle, abs=1e-8)

    beta = 0.3 * kappa
    e1, e2, e3 = FRAME.T
    B = beta * (np.outer(e2, e2) - np.outer(e3, e3))
    obs = un.iid(draws(kappa * e1, B, 400, rng))
    j = np.arange(0, 400 if kappa < 1e3 else 4000)
    series = (
        special.gammaln(j + 0.5) - special.gammaln(j + 1) + 2 * j * np.log(2 * beta / kappa) + 0.5 * np.log(2 / kappa)
    )
    with np.errstate(divide="ignore"):
        series = special.logsumexp(series + np.log(special.ive(2 * j + 0.5, kappa))) + kappa + np.log(2 * np.pi)
    model = un.directions.fisher_bingham().make(obs)[0].model
    theta = np.concatenate([kappa * e1, [B[0, 0], B[1, 1], B[0, 1], B[0, 2], B[1, 2]]])
    assert log_z(model, theta, 128) == pytest.approx(series, abs=1e-8 if kappa < 1e3 else 1e-7)  # the series in floats

    zeta = np.array([-kappa, -0.3 * kappa, 0.0])
    B = FRAME @ np.diag(zeta) @ FRAME.T
    obs = un.iid(draws(np.zeros(3), B, 400, rng))
    model = un.directions.bingham().make(obs)[0].model
    shift = np.trace(B) / 3
    b = B - shift * np.eye(3)

    def slice_at(z: float) -> float:  # ∫ over the circle at height z along e₃: 2π e^{…} I₀
        s = 1 - z**2
        half = 0.5 * s * (zeta[0] + zeta[1])
        return (
            2 * np.pi * np.exp(half + abs(0.5 * s * (zeta[1] - zeta[0]))) * special.i0e(0.5 * s * (zeta[1] - zeta[0]))
        )

    width = min(1.0, 30 / kappa)
    whole = integrate.quad(lambda t: slice_at(1 - t), 0, width, epsabs=0, epsrel=1e-12, limit=400)[0]
    whole += (
        integrate.quad(lambda t: slice_at(1 - t), width, 1, epsabs=0, epsrel=1e-12, limit=400)[0] if width < 1 else 0.0
    )
    theta = np.array([b[0, 0], b[1, 1], b[0, 1], b[0, 2], b[1, 2]])
    assert log_z(model, theta, 128) + shift == pytest.approx(np.log(2 * whole), abs=1e-8)


@pytest.mark.parametrize("kappa", [0.01, 2.0, 200.0])
def test_the_sine_models_constant(kappa: float) -> None:
    """4π² Σ_m C(2m, m) (λ²/4κ₁κ₂)^m I_m(κ₁) I_m(κ₂) (Singh, Hnizdo & Demchuk 2002)."""
    first, second, lam = kappa, 0.7 * kappa, 0.4 * kappa
    y = np.random.default_rng(1).vonmises(0.5, kappa, (300, 2))
    model = un.directions.bivariate_von_mises().make(un.iid(y))[0].model
    m = np.arange(200)
    terms = special.gammaln(2 * m + 1) - 2 * special.gammaln(m + 1) + m * np.log(lam**2 / (4 * first * second))
    with np.errstate(divide="ignore"):
        terms = terms + np.log(special.ive(m, first) * special.ive(m, second))  # f is less κ₁ + κ₂
    expected = np.log(4 * np.pi**2) + special.logsumexp(terms)
    tree = {"kappa1": first, "kappa2": second, "lambda": lam, "mean1": 0.0, "mean2": 2.0}
    wide = un.directions.bivariate_von_mises().make(un.iid(y - y.mean(axis=0) + np.array([0.0, 2.0])))[0].model
    assert log_z(wide, wide.flatten(tree), 128) == pytest.approx(expected, abs=1e-8)
    assert model.size == 5


@pytest.mark.parametrize("shape", ["peak", "poles", "girdle"])
def test_focused_rules_have_the_spheres_area(shape: Any) -> None:
    for width in (1.0, 0.1, 0.003):
        rule = polar(MU, width, shape, 64)
        np.testing.assert_allclose(np.linalg.norm(rule.points, axis=1), 1.0, rtol=1e-12)
        assert rule.weights.sum() == pytest.approx(4 * np.pi, rel=1e-6)
        np.testing.assert_allclose(rule.weights @ rule.points**2, 4 * np.pi / 3, rtol=1e-6)
        half = polar(MU, width, shape, 64, half=True)
        np.testing.assert_allclose(half.weights @ half.points**2, 2 * np.pi / 3, rtol=1e-6)


def test_draws_have_the_laws_moments() -> None:
    """E y and E yyᵀ of 40,000 draws of Fisher–Bingham laws against quadrature, in standard errors."""
    rng = np.random.default_rng(4)
    for scale in (0.0, 1.0, 50.0):
        a, B = scale * MU, scale * FRAME @ np.diag([0.8, -0.5, 0.1]) @ FRAME.T
        y = draws(a, B, 40_000, rng)
        rule = focused(y, np.ones(len(y)))(96)
        f = rule.points @ a + np.einsum("ni,ij,nj->n", rule.points, B, rule.points)
        p = rule.weights * np.exp(f - f.max())
        p /= p.sum()
        for g in (
            lambda y: y,
            lambda y: np.column_stack([y[:, 0] ** 2, y[:, 1] ** 2, y[:, 0] * y[:, 1], y[:, 1] * y[:, 2]]),
        ):
            mean = p @ g(rule.points)
            se = np.sqrt(p @ (g(rule.points) - mean) ** 2 / len(y))
            assert np.all(np.abs(g(y).mean(axis=0) - mean) < 4.5 * se), scale
