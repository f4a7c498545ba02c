"""Ranks, cells and contexts of long columns against the short way."""

import numpy as np
import pytest

from unnorm.engine import arrange
from unnorm.engine.runs import consecutive
from unnorm.terms import long_columns, sample
from unnorm.terms.long_columns import cell_sums, extremes, ranked

rng = np.random.default_rng(8)
N = 300_007
COLUMNS = {
    "normal": rng.normal(size=N),
    "rounded": np.round(rng.normal(size=N), 2),
    "skewed": np.exp(3 * rng.normal(size=N)),
    "few": rng.integers(0, 7, N).astype(float),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("more", [(), (-9.0, 9.0)])
def test_ranks_are_those_of_the_sorted_distinct_values(name, more):
    x = COLUMNS[name]
    values = np.unique(np.concatenate([x, more]))
    found, distinct = ranked(x, more, 20)
    assert distinct == values.size
    assert found == pytest.approx(np.interp(np.linspace(0, values.size - 1, 20), np.arange(values.size), values))


def test_cells_are_those_of_bincount():
    x = COLUMNS["normal"]
    low, high = extremes(x)
    assert (low, high) == (x.min(), x.max())
    counts, sums = cell_sums(x, low, 100 / (high - low), 100)
    cell = np.minimum(((x - low) * (100 / (high - low))).astype(int), 99)
    assert (counts == np.bincount(cell)).all()
    assert sums == pytest.approx(np.bincount(cell, weights=x), rel=1e-10, abs=1e-8)


def test_knots_do_not_depend_on_the_length_at_which_columns_are_long(monkeypatch):
    x = {"x": COLUMNS["skewed"]}
    long = sample.quantile_knots(x, "x", "s(x)", 15)
    monkeypatch.setattr(sample, "LONG", 10**9)
    assert sample.quantile_knots(x, "x", "s(x)", 15) == pytest.approx(long)
    assert long_columns.LONG < N


def test_missing_values_stay_missing():
    x = COLUMNS["normal"].copy()
    x[200_000] = np.nan
    assert np.isnan(extremes(x)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_contexts_that_lie_together_are_found_as_by_hashing(threads, monkeypatch):
    monkeypatch.setattr("unnorm.engine.runs._STRETCH", 1_000)
    lengths = rng.integers(1, 30, 700)
    a, b = (np.repeat(rng.random(700), lengths) for _ in range(2))
    order = consecutive([a, b], a.size // 4, threads)
    assert order is not None
    ids, count = arrange.number([a, b])
    other = arrange.arrange(a.size, None, 0, ids)
    assert count == 700
    assert order.order is None
    assert other.order is None
    assert (order.starts == other.starts).all()
    assert (order.first == other.first).all()
    assert order.constant(a)
    assert not order.constant(rng.random(a.size))


def test_a_context_that_comes_back_is_one_context():
    a = np.repeat([1.0, 2.0, 1.0, 3.0], 50)
    order = consecutive([a], 100, 1)
    assert order is not None
    assert order.order is not None
    np.testing.assert_array_equal(a[order.order], np.repeat([1.0, 2.0, 3.0], [100, 50, 50]))
    np.testing.assert_array_equal(order.starts, [0, 100, 150, 200])
    assert consecutive([a], 3, 1) is None  # four stretches
    assert consecutive([np.repeat([1.0, 2.0, 3.0], 50)], 100, 1) is not None
    assert consecutive([rng.random(5_000)], 1_250, 1) is None
    assert consecutive([np.repeat(rng.random(40), 50)], 10, 1) is None
