"""exp and log made of arithmetic: within the digits that they promise, next to the C library's in 64 more bits."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from unnorm._base.elementary import exp_below, log_of

LONG = np.finfo(np.longdouble).eps < 1e-18


@numba.njit(error_model="numpy")
def logs(x, out):
    for i in range(x.size):
        out[i] = log_of(x[i])


@numba.njit(error_model="numpy")
def exponentials(x, out):
    for i in range(x.size):
        out[i] = exp_below(x[i])


@pytest.mark.skipif(not LONG, reason="long double has no more digits than double here")
def test_log_is_within_its_digits_near_one_and_at_both_ends_of_the_range() -> None:
    rng = np.random.default_rng(0)
    root = np.sqrt([0.5, 2.0])
    edges = [1.0, 2.0, 0.5, *root, *np.nextafter(root, 0), *np.nextafter(root, 9), 1e-300, 1.7e308, 2.3e-308]
    near = [1.0 + 10.0 ** -rng.uniform(1, 15, 20_000), 1.0 - 10.0 ** -rng.uniform(1, 15, 20_000)]
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 50_000)), rng.uniform(0.4, 2.5, 50_000), *near, edges])
    found = np.empty(x.size)
    logs(x, found)
    exact = np.log(x.astype(np.longdouble))
    assert found[x == 1.0].tolist() == [0.0] * int(np.sum(x == 1.0))
    off = x != 1.0
    assert float(np.max(np.abs((found[off] - exact[off]) / exact[off]))) < 4e-16


@pytest.mark.skipif(not LONG, reason="long double has no more digits than double here")
def test_exp_is_within_its_digits() -> None:
    x = np.append(-np.random.default_rng(1).uniform(0, 707, 100_000), [0.0, -0.0, -1e-300])
    found = np.empty(x.size)
    exponentials(x, found)
    exact = np.exp(x.astype(np.longdouble))
    assert float(np.max(np.abs(found - exact) / exact)) < 4e-16
