"""Splines between the points of a grid of contexts: exact for cubics, SciPy's elsewhere, each axis its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from unnorm.objectives.between import Pieces, spaced, spline_between


@pytest.mark.parametrize("points", [4, 5, 9, 12])
def test_splines_are_exact_for_cubics_everywhere_in_range(points: int) -> None:
    axis = np.array([-2.0, *np.sort(np.random.default_rng(1).uniform(-2, 3, points - 2)), 3.0])
    x = np.array([-2.0, -1.9, -0.3, 0.1, 2.95, 3.0])
    found = spline_between([x], [axis]) @ axis[:, None] ** np.arange(5)
    np.testing.assert_allclose(found[:, :4], x[:, None] ** np.arange(4), atol=1e-10)
    assert np.abs(found[:, 4] - x**4).max() > 1e-3


def test_they_are_the_splines_without_a_knot_at_the_second_point() -> None:
    rng = np.random.default_rng(2)
    axis = np.sort(rng.uniform(0, 10, 11))
    x = np.concatenate([axis, rng.uniform(axis[0], axis[-1], 200)])
    values = np.sin(axis)
    expected = CubicSpline(axis, values, bc_type="not-a-knot")(x)
    np.testing.assert_allclose(spline_between([x], [axis]) @ values, expected, atol=1e-12)


def test_in_the_plane_each_axis_has_its_own_spline() -> None:
    """Products of cubics are met exactly, which a mistaken axis would not do; columns of values go together."""
    rng = np.random.default_rng(3)
    axes = [np.sort(rng.uniform(-1, 1, 7)), np.sort(rng.uniform(0, 5, 7))]
    x, y = (rng.uniform(axis[0], axis[-1], 50) for axis in axes)
    u, v = np.meshgrid(*axes, indexing="ij")

    def f(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.stack([a**3 * b - 2 * b**2, a * b**3], axis=-1)

    values = f(u.ravel(), v.ravel())
    way = spline_between([x, y], axes)
    np.testing.assert_allclose(way @ values, f(x, y), atol=1e-10)
    np.testing.assert_allclose(way @ values[:, 0], f(x, y)[:, 0], atol=1e-10)


def test_pieces_have_their_own_grids_and_observations() -> None:
    axis, x = np.linspace(0, 1, 5), np.array([0.3, 0.9])
    pieces = Pieces(((np.array([1, 3]), 5, spline_between([x], [axis])), (np.array([2, 0]), 2, None)))
    np.testing.assert_allclose(pieces @ np.append(axis**2, [7.0, 8.0]), [8.0, 0.09, 7.0, 0.81], atol=1e-12)


def test_they_are_far_better_than_cubics_through_four_points() -> None:
    """The reason to have them: a ninth of the error, on an even axis of a smooth function."""
    axis = np.linspace(0, 6, 25)
    x = np.linspace(1, 5, 997)
    first = np.searchsorted(axis, x, side="right") - 2
    near = axis[first[:, None] + np.arange(4)]
    local = np.zeros_like(x)
    for i in range(4):
        others = [j for j in range(4) if j != i]
        local += np.sin(near[:, i]) * np.prod([(x - near[:, j]) / (near[:, i] - near[:, j]) for j in others], axis=0)
    ours = np.abs(spline_between([x], [axis]) @ np.sin(axis) - np.sin(x)).max()
    assert ours < np.abs(local - np.sin(x)).max() / 6


def test_the_axis_of_contexts_is_fine_where_they_are() -> None:
    """At most twice an even step; an outlier leaves a quarter of the points where the others are; ties do no harm."""
    rng = np.random.default_rng(1)
    for x in (rng.uniform(size=500), np.append(rng.uniform(size=500), 1e3), rng.integers(0, 5, 400) * 1.0):
        axis = spaced(x, 33)
        assert (axis[0], axis[-1]) == (x.min(), x.max())
        step = np.diff(axis)
        assert np.all(step > 0)
        assert step.max() <= 2.001 * (x.max() - x.min()) / 32
    assert np.sum(spaced(np.append(rng.uniform(size=500), 1e3), 33) < 1) >= 8
    assert np.all(np.diff(spaced(np.full(9, 2.0), 5)) > 0)
    x = rng.lognormal(sigma=1.5, size=400)
    axis = spaced(x, 12)
    for power in range(4):
        np.testing.assert_allclose(spline_between([x], [axis]) @ axis**power, x**power, rtol=1e-8)
