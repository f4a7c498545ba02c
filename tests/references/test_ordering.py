"""The order of contexts: Hilbert curves visit every cell once, stepping to neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from reference_cases import screen, transitions

import unnorm as un
from unnorm.references.ordering import _read_off, context_order, hilbert_index, order


@pytest.mark.parametrize(("d", "bits"), [(2, 1), (2, 5), (3, 1), (3, 3), (4, 2)])
def test_hilbert_curve_visits_every_cell_once_by_unit_steps(d, bits):
    cells = np.stack(np.meshgrid(*[np.arange(2**bits)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    index = hilbert_index(cells, bits)
    assert np.array_equal(np.sort(index), np.arange(2 ** (bits * d)))
    assert (np.abs(np.diff(cells[np.argsort(index)], axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("d", [2, 3])
def test_finer_curves_refine_coarser_ones(d):
    """With d more bits the curve passes the coarse cells in the same order."""
    cells = np.random.default_rng(0).integers(0, 2**12, (500, d))
    assert np.array_equal(hilbert_index(cells, 12) >> d * d, hilbert_index(cells >> d, 12 - d))


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_neighbours_in_the_order_are_near(d):
    points = np.random.default_rng(d).normal(size=(2000, min(d, 3))) @ np.eye(min(d, 3), d)
    along = order(points)
    assert np.array_equal(np.sort(along), np.arange(2000))
    gap = np.linalg.norm(np.diff(points[along], axis=0), axis=1).mean()
    chance = np.linalg.norm(np.diff(points, axis=0), axis=1).mean()
    assert gap < {1: 0.01, 2: 0.08, 3: 0.2, 6: 0.35}[d] * chance


def test_constant_and_text_columns():
    n = 50
    context = {"place": np.array(["b", "a"] * 25), "one": np.ones(n), "two": np.full(n, 2.0), "x": np.arange(n) % 7.0}
    obs = un.Observations("conditional", np.zeros((n, 1)), ("y",), context)
    along = context_order(obs)
    assert np.array_equal(np.sort(along), np.arange(n))
    assert np.sum(np.diff((context["place"] == "a")[along].astype(int)) != 0) < 8
    assert np.array_equal(order(np.ones((5, 4))), np.arange(5))


def test_transitions_are_ordered_by_the_previous_point():
    obs = transitions(screen(), n=200, lags=2)
    assert np.array_equal(context_order(obs), order(obs.previous()))
    assert np.array_equal(context_order(obs, around_outcome=True), order(obs.outcome))


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 7, 26])
def test_tables_read_the_same_curve_off(bits):
    cells = np.random.default_rng(bits).integers(0, 2**bits, (500, 2))
    assert np.array_equal(_read_off(cells, bits), hilbert_index(cells, bits))


def test_pixels_are_ordered_alike_in_degrees():
    """Ranges of 960 pixels put quarters of them on borders of cells, where the rounding of the unit decided."""
    rng = np.random.default_rng(4)
    pixels = np.vstack([rng.integers(0, 961, (500, 2)), [[0, 0], [960, 960]]]) / 10 + 1.4
    for unit in (1 / 35, 1 / 3, 0.1, 7.0):
        np.testing.assert_array_equal(order(pixels), order(pixels * unit))
