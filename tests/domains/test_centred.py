"""Rules centred at a point: exact for polynomials, and right where a kink there spoils the domain's own rule."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

import unnorm as un
from unnorm.domains.base import Domain

CENTRES = np.array([(3.0, 1.0), (0.0, 0.0), (3.999, 2.0), (1.2, 2.9), (0.4, 1.7)])
BOX = un.Box((0, 4), (0, 3))
SQUARE = un.Window([(0, 0), (4, 0), (4, 3), (0, 3)])
HOLLOW = un.Window([(0, 0), (4, 0), (4, 3), (2, 3), (2, 2.5), (0, 2.5)], holes=[[(1, 1), (1.5, 1), (1.5, 1.5)]])


def kinked(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A peak at x with a kink, whose height depends on the direction."""
    d = y - x
    return np.exp(-1.5 * np.hypot(d[:, 0], d[:, 1]) + 0.5 * np.cos(4 * np.arctan2(d[:, 1], d[:, 0])))


def integral(domain: Domain, x: np.ndarray, g, order: int | None = None) -> np.ndarray:
    rules = domain.centred(x, order)
    assert rules is not None
    points, weights, of = rules
    assert np.all(np.diff(of) >= 0)
    assert domain.contains(points).all()
    return np.bincount(of, weights * g(points, x[of]))


@pytest.mark.parametrize(
    ("domain", "order", "error"),
    [(BOX, 12, 1e-2), (BOX, 40, 1e-6), (BOX, 80, 1e-10), (SQUARE, 12, 1e-10), (HOLLOW, 12, 1e-10)],
)
def test_polynomials(domain: Domain, order: int, error: float) -> None:
    """Exact but in a box, whose nodes are made for kinks: there they converge."""

    def g(y: np.ndarray, x: np.ndarray) -> np.ndarray:
        return 1.0 + y[:, 0] ** 3 * y[:, 1] - y[:, 1] ** 2

    rule = domain.quadrature()
    expected = rule.weights @ g(rule.points, rule.points)
    np.testing.assert_allclose(integral(domain, CENTRES, g, order), expected, rtol=error)


@pytest.mark.parametrize("domain", [BOX, SQUARE], ids=["box", "square"])
def test_a_kink_in_polar_coordinates(domain: Domain) -> None:
    """∫ over the box of e^{−1.5 r + cos(4φ)/2}: in closed form along r, by scipy over φ."""
    expected = []
    for x in CENTRES:

        def ray(phi: float, x: np.ndarray = x) -> float:
            u = np.array([np.cos(phi), np.sin(phi)])
            with np.errstate(divide="ignore", invalid="ignore"):
                ends = np.where(u > 0, (BOX.upper - x) / u, np.where(u < 0, (BOX.lower - x) / u, np.inf))
            R, b = float(np.min(ends)), 1.5
            return np.exp(0.5 * np.cos(4 * phi)) * (1 - np.exp(-b * R) * (1 + b * R)) / b**2

        corners = [np.arctan2(cy - x[1], cx - x[0]) for cx in (0, 4) for cy in (0, 3)]
        cuts = np.unique([-np.pi, np.pi, *corners, -np.pi / 2, 0.0, np.pi / 2])
        expected.append(sum(integrate.quad(ray, a, b, epsabs=1e-12)[0] for a, b in pairwise(cuts)))
    error = np.abs(np.log(integral(domain, CENTRES, kinked) / np.array(expected)))
    assert error.max() < 2e-4
    finer = np.abs(np.log(integral(domain, CENTRES, kinked, 120) / np.array(expected)))
    assert finer.max() < 2e-6
    if domain is BOX:  # whose border is no harder than its middle
        assert error.max() < 2e-5
    rule = domain.quadrature()
    plain = [rule.weights @ kinked(rule.points, x) for x in CENTRES]
    assert np.abs(np.log(np.array(plain) / np.array(expected))).max() > 5 * error.max()


def test_a_bent_window_with_a_hole() -> None:
    fine = integral(HOLLOW, CENTRES[[0, 1, 4]], kinked, 200)
    h = 2e-3
    grid = np.stack(np.meshgrid(np.arange(h / 2, 4, h), np.arange(h / 2, 3, h)), axis=-1).reshape(-1, 2)
    grid = grid[HOLLOW.contains(grid)]
    brute = [h**2 * kinked(grid, x).sum() for x in CENTRES[[0, 1, 4]]]
    np.testing.assert_allclose(fine, brute, rtol=1e-3)
    np.testing.assert_allclose(integral(HOLLOW, CENTRES[[0, 1, 4]], kinked), fine, rtol=5e-4)


def test_an_interval_is_cut_at_the_centre() -> None:
    line = un.Interval(-1, 2)
    x = np.array([[0.3], [-1.0], [2.0]])
    points, weights, of = line.centred(x, 30)
    found = np.bincount(of, weights * np.exp(-3 * np.abs(points[:, 0] - x[of, 0])))
    expected = [(2 - np.exp(-3 * (v + 1)) - np.exp(-3 * (2 - v))) / 3 for v in x[:, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_centre_outside_is_taken_to_the_edge() -> None:
    np.testing.assert_allclose(
        integral(BOX, np.array([[9.0, 1.0]]), lambda y, x: np.ones(len(y))), BOX.volume, rtol=1e-12
    )


def test_domains_without_such_rules_say_so() -> None:
    assert un.Box((0, 1), (0, 1), (0, 1)).centred(np.zeros((1, 3))) is None
    assert un.Circle().centred(np.zeros((1, 1))) is None
