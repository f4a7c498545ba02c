"""Tests of nested models and quantiles of intervals, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unnorm._base.intervals import quantile
from unnorm.inference.tests import likelihood_ratio, wald


def test_likelihood_ratio() -> None:
    test = likelihood_ratio(-100.0, -103.2, 2)
    assert test.statistic == pytest.approx(6.4)
    assert test.p_value == pytest.approx(stats.chi2.sf(6.4, 2))


def test_wald() -> None:
    b, V = np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 1.5]])
    statistic = b @ np.linalg.inv(V) @ b
    test = wald(b, V)
    assert test.statistic == pytest.approx(statistic)
    assert test.df == 2
    assert test.p_value == pytest.approx(stats.chi2.sf(statistic, 2))
    few = wald(b, V, 7.0)
    assert few.statistic == pytest.approx(statistic)
    assert few.p_value == pytest.approx(stats.f.sf(statistic / 2, 2, 7))
    assert few.residual_df == 7.0


def test_quantiles() -> None:
    assert quantile(0.9) == pytest.approx(stats.norm.ppf(0.95))
    assert quantile(0.9, 5.0) == pytest.approx(stats.t.ppf(0.95, 5))
