"""Tests of nested models and quantiles of intervals, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unnorm._base.intervals import quantile
from unnorm.errors import InputError
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
    assert few.p_value == pytest.approx(stats.f.sf(statistic * 6 / (7 * 2), 2, 6))
    assert few.residual_df == 6.0
    one = wald(b[:1], V[:1, :1], 7.0)
    assert one.p_value == pytest.approx(2 * stats.t.sf(b[0] / V[0, 0] ** 0.5, 7))


def test_wald_of_few_clusters_is_hotellings() -> None:
    """The mean of C normal vectors against V from those vectors: the size is exact for any number of parameters."""
    rng = np.random.default_rng(1)
    for C, q in ((5, 3), (8, 2)):
        g = rng.normal(size=(4000, C, q))
        p = [wald(x.mean(axis=0), np.cov(x.T) / C, C - 1.0).p_value for x in g]
        assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / 4000) ** 0.5)


def test_quantiles() -> None:
    assert quantile(0.9) == pytest.approx(stats.norm.ppf(0.95))
    assert quantile(0.9, 5.0) == pytest.approx(stats.t.ppf(0.95, 5))


def test_unequal_clusters_may_be_too_few_for_a_test_of_several_parameters() -> None:
    with pytest.raises(InputError, match=r"more than 3 clusters.*worth 2\.5"):
        wald(np.ones(3), np.eye(3), 1.5)
    assert wald(np.ones(2), np.eye(2), 1.5).residual_df == 0.5
