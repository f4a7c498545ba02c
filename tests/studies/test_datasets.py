"""The toy chain: its normaliser against adaptive quadrature, its simulation against the quadrature CDF."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from unnorm.errors import InputError
from unnorm.studies.datasets import _quantile, toy_chain, toy_log_normaliser


def log_density(y, theta1, theta2, y_prev):
    return theta1 * y - 0.5 * theta2 * (y - y_prev) ** 2


def quad(theta1, theta2, y_prev, upper=1.0):
    """(peak, ∫_{−1}^{upper} e^{f − peak}) by adaptive quadrature, broken where f has its peak and close to the ends."""
    centre = y_prev + theta1 / theta2 if theta2 else np.inf
    candidates = [-1.0, 1.0] + ([centre] if abs(centre) < 1 else [])
    peak = max(log_density(c, theta1, theta2, y_prev) for c in candidates)
    near = [c + s * 2.0**-k for c in candidates for s in (-1, 1) for k in range(2, 18)]
    cuts = np.unique([c for c in [*candidates, *near, -1.0, upper] if -1 <= c <= upper])
    total = sum(
        integrate.quad(lambda y: np.exp(log_density(y, theta1, theta2, y_prev) - peak), a, b, epsabs=0, epsrel=1e-12)[0]
        for a, b in itertools.pairwise(cuts)
        if max(log_density(np.clip(v, a, b), theta1, theta2, y_prev) for v in (a, b, centre)) > peak - 60
    )
    return peak, total


PARAMETERS = [
    (0.5, 5.0), (-2.0, 50.0), (0.0, 0.0), (1.7, 0.0), (-40.0, 0.0), (0.3, 1e-12), (30.0, 1e-9), (-2.0, 1e-6),
    (2.9, 0.5), (3.1, 0.5), (0.0, 2.0), (0.0, 2.1), (300.0, 0.1), (-30.0, 5.0), (0.5, 2000.0), (200.0, 50.0),
    (0.5, -5.0), (-2.0, -50.0), (0.3, -1e-12), (30.0, -0.9), (300.0, -20.0), (0.0, -400.0), (1.0, -1.4), (1.0, -1.6),
]  # fmt: skip


@pytest.mark.parametrize(("theta1", "theta2"), PARAMETERS)
@pytest.mark.parametrize("y_prev", [-1.0, -0.35, 0.0, 0.8, 1.0])
def test_the_normaliser_is_the_integral(theta1, theta2, y_prev):
    peak, total = quad(theta1, theta2, y_prev)
    expected = peak + np.log(total)
    assert float(toy_log_normaliser(theta1, theta2, y_prev)) == pytest.approx(expected, rel=1e-12, abs=1e-11)


def test_the_normaliser_broadcasts_and_is_smooth_across_its_formulas():
    out = toy_log_normaliser(np.array([[0.5], [-2.0]]), 5.0, np.linspace(-1, 1, 7))
    assert out.shape == (2, 7)
    # derivatives with respect to θ are expectations; the formulas meet at |θ1| + 2|θ2| = 4 and θ2 = 0
    for a, b in [
        ((2.0, 1.0 - 1e-9), (2.0, 1.0 + 1e-9)),
        ((4.5, -1e-9), (4.5, 1e-9)),
        ((2.0, -1.0 - 1e-9), (2.0, -1.0 + 1e-9)),
    ]:
        assert abs(toy_log_normaliser(*a, 0.3) - toy_log_normaliser(*b, 0.3)) < 1e-8


@pytest.mark.parametrize(("theta1", "theta2"), PARAMETERS)
@pytest.mark.parametrize("y_prev", [-1.0, 0.3, 1.0])
def test_the_quantile_inverts_the_cdf(theta1, theta2, y_prev):
    u = np.array([1e-9, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-6])
    if theta2 == 0:
        y = toy_chain(1, theta1, theta2, rng=1)  # through the front door
        assert -1 <= y[1] <= 1
        return
    y = _quantile(u, theta1, theta2, np.full(u.size, y_prev))
    _, whole = quad(theta1, theta2, y_prev)
    got = [quad(theta1, theta2, y_prev, upper)[1] for upper in y]
    peak = [quad(theta1, theta2, y_prev, upper)[0] for upper in y]
    assert len(set(peak)) == 1
    # 1e-8: for |θ2| < 1e-8 the density is right to 1e-7 relative
    np.testing.assert_allclose(np.array(got) / whole, u, atol=2e-9, rtol=1e-7)


def residuals(chain, theta1, theta2):
    """F(y_t | y_{t−1}), uniform and independent when the chain is right, by a fine composite Gauss rule."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    before, after = chain[:-1].ravel(), chain[1:].ravel()

    def mass(upper):
        half = (upper + 1) / 2
        y = -1 + half[:, None] * (nodes + 1)
        return half * (np.exp(log_density(y, theta1, theta2, before[:, None])) @ weights)

    return mass(after) / mass(np.ones(after.size))


@pytest.mark.parametrize(
    ("theta1", "theta2"), [(0.5, 5.0), (-2.0, 50.0), (1.5, 0.0), (6.0, 1.0), (0.5, 1e-10), (0.4, -3.0)]
)
def test_the_chain_has_the_transitions_it_claims(theta1, theta2):
    chain = toy_chain(3000, theta1, theta2, rng=11)
    u = residuals(chain, theta1, theta2)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(u.size)
    many = toy_chain(30, theta1, theta2, rng=12, reps=100)
    assert many.shape == (100, 31)
    assert stats.kstest(residuals(many.T, theta1, theta2), "uniform").pvalue > 1e-3


def test_one_chain_and_many_share_their_formula():
    for theta in [(0.5, 5.0), (-2.0, 50.0), (9.0, 2.0)]:
        one = toy_chain(400, *theta, rng=3, y0=0.2)
        same = toy_chain(400, *theta, rng=3, y0=0.2, reps=1)
        np.testing.assert_allclose(one, same[0], atol=1e-10)


def test_arguments():
    assert toy_chain(5, 0.5, 5.0, rng=1, y0=-1.0)[0] == -1.0
    np.testing.assert_array_equal(toy_chain(2, 0.5, 5.0, rng=1, y0=[0.1, 0.2], reps=2)[:, 0], [0.1, 0.2])
    np.testing.assert_array_equal(toy_chain(9, 0.5, 5.0, rng=1), toy_chain(9, 0.5, 5.0, rng=np.random.default_rng(1)))
    for bad, message in [
        ({"n": 0}, "n must be"),
        ({"theta2": np.nan}, "theta2 must be one finite number"),
        ({"theta1": [1, 2]}, "theta1 must be one finite number"),
        ({"y0": 1.1}, r"y0 must lie in \[-1, 1\]"),
        ({"y0": np.nan}, r"y0 must lie in \[-1, 1\]"),
        ({"reps": 0}, "reps must be"),
    ]:
        with pytest.raises(InputError, match=message):
            toy_chain(**({"n": 3, "theta1": 0.5, "theta2": 5.0, "rng": 1} | bad))  # pyright: ignore[reportArgumentType]
