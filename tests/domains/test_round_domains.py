import numpy as np
import pytest
from scipy.special import gammaln, ive, lpmv

from unnorm.domains import Circle, Sphere


def sph_harm_y(n: int, m: int, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """A spherical harmonic; SciPy has it under this name from 1.15 on only."""
    a = abs(m)
    scale = np.sqrt((2 * n + 1) / (4 * np.pi) * np.exp(gammaln(n - a + 1) - gammaln(n + a + 1)))
    return scale * lpmv(a, n, np.cos(theta)) * np.exp(1j * m * phi)


@pytest.mark.parametrize("order", [1, 4, 9])
def test_trapezoid_is_exact_up_to_its_degree(order: int) -> None:
    rule = Circle().quadrature(order)
    y = rule.points[:, 0]
    for k in range(1, order):
        assert abs(rule.weights @ np.exp(1j * k * y)) < 1e-13
    assert abs(rule.weights @ np.exp(1j * order * y)) == pytest.approx(2 * np.pi)  # and not beyond


@pytest.mark.parametrize("kappa", [0.5, 10, 1000])
def test_stated_error_on_the_circle(kappa: float) -> None:
    rule = Circle().quadrature()
    for mu in (0.0, 0.123, 3.0):
        got = rule.weights @ np.exp(kappa * (np.cos(rule.points[:, 0] - mu) - 1))
        assert got == pytest.approx(2 * np.pi * ive(0, kappa), rel=1e-12)


def test_angles_wrap() -> None:
    omega = Circle()
    y = np.array([0.0, np.pi, -np.pi, 3.5 * np.pi, -1e-20, 100.0, -np.nextafter(np.pi, 4)])
    wrapped = omega.wrap(y)[:, 0]
    assert ((wrapped >= -np.pi) & (wrapped < np.pi)).all()
    np.testing.assert_allclose(np.exp(1j * wrapped), np.exp(1j * y), atol=1e-13)
    assert wrapped[4] == -1e-20  # what is in range is not touched
    assert omega.contains(y).all()
    assert omega.period == omega.volume == 2 * np.pi


@pytest.mark.parametrize("order", [1, 3, 6])
def test_spherical_rule_is_exact_up_to_its_degree(order: int) -> None:
    rule = Sphere().quadrature(order)
    x, y, z = rule.points.T
    for degree in range(1, 2 * order):
        for m in range(degree + 1):
            harmonic = sph_harm_y(degree, m, np.arccos(z), np.arctan2(y, x))
            assert abs(rule.weights @ harmonic) < 1e-12
    assert abs(rule.weights @ sph_harm_y(2 * order, 0, np.arccos(z), np.arctan2(y, x))) > 0.1  # and not beyond


@pytest.mark.parametrize("kappa", [1, 10, 50])
def test_stated_error_on_the_sphere(kappa: float) -> None:
    rule = Sphere().quadrature()
    exact = 2 * np.pi * -np.expm1(-2 * kappa) / kappa  # von Mises–Fisher, scaled by exp(−κ)
    for mu in Sphere().uniform(20, rng=1):
        assert rule.weights @ np.exp(kappa * (rule.points @ mu - 1)) == pytest.approx(exact, rel=1e-12)


def test_unit_vectors_and_others() -> None:
    omega = Sphere()
    y = omega.uniform(1000, rng=1)
    assert omega.contains(y.astype(np.float32)).all()
    assert not omega.contains(1.00001 * y).any()
    assert not omega.contains(np.zeros((1, 3))).any()
    assert omega.contains(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])).all()
    np.testing.assert_allclose(np.linalg.norm(y, axis=1), 1.0, atol=1e-15)
