"""The compiled likelihood of a block of rows against NumPy's, far out and where η is no number."""

from __future__ import annotations

import numpy as np
import pytest

from unnorm._base.cached import njit
from unnorm.engine import likelihood_kernels
from unnorm.engine.likelihood_kernels import BLOCK, FAST

exponentials = njit(error_model="numpy")(likelihood_kernels.exponentials.py_func)  # as Python can call them
slopes = njit(fastmath=FAST, error_model="numpy")(likelihood_kernels.slopes.py_func)


def test_exponentials_have_all_their_digits() -> None:
    eta = np.concatenate([np.linspace(-699.0, 699.0, 100_001), -(10.0 ** np.arange(-20.0, 2.0)), [0.0]])
    e = np.empty(eta.size)
    exponentials(eta, eta.size, e)
    np.testing.assert_allclose(e, np.exp(-np.abs(eta)), rtol=1e-15)
    far = np.array([np.nan, np.inf, -np.inf, 800.0, -1e300])
    exponentials(far, far.size, e)
    assert np.isnan(e[0])
    assert np.all(e[1:5] == 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 37, BLOCK])
def test_the_slopes_of_binomial_rows_are_those_written_plainly(weighted: bool, rows: int) -> None:
    rng = np.random.default_rng(rows)
    eta, y = 6.0 * rng.normal(size=rows), rng.integers(0, 2, rows).astype(float)
    wt = rng.gamma(2.0, 1.0, rows) if weighted else np.ones(rows)
    e, g, w = np.empty(rows), np.empty(rows), np.empty(rows)
    total = slopes(0, None, y, wt, weighted, eta, rows, e, g, w)
    p = 1.0 / (1.0 + np.exp(-eta))
    assert total == pytest.approx(np.sum(wt * (y * eta - np.logaddexp(0.0, eta))), rel=1e-13)
    np.testing.assert_allclose(g, wt * (y - p), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(w, wt * p / (1.0 + np.exp(eta)), rtol=1e-13)


def test_a_row_that_is_no_number_makes_the_likelihood_none() -> None:
    eta, y, e, g, w = np.zeros(8), np.zeros(8), np.empty(8), np.empty(8), np.empty(8)
    eta[5] = np.nan
    assert np.isnan(slopes(0, None, y, np.ones(8), False, eta, 8, e, g, w))
