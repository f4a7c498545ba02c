"""Levels that workers fit."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import unnorm as un


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_levels_fitted_by_workers_are_those_of_one_process() -> None:
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(2)
    data = {"y": rng.beta(2, 2, 360), "x": rng.random(360), "who": np.repeat(["a", "b", "c"], 120)}
    data["x"][240:] = 0.5  # of c nothing can be said: its context is constant
    obs = un.conditional(data, y="y", x="x", group="who")
    model = un.Additive("s(y, k=5)", un.Interval(0, 1))
    options = {"normaliser": un.Smooth("s(x, k=4)"), "rng": 1, "group": False}
    here = un.fit_each(model, obs, "who", un.Logistic(un.Uniform(), per_point=5), **options)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    with cluster, distributed.Client(cluster) as client:
        there = un.fit_each(model, obs, "who", un.Logistic(un.Uniform(), per_point=5), workers=client, **options)
    assert list(here.fits) == list(there.fits) == ["a", "b"]
    assert here.failures == there.failures
    for level, fit in here.fits.items():
        np.testing.assert_array_equal(fit.smooths.beta, there.fits[level].smooths.beta)  # pyright: ignore
        assert str(fit.summary()) == str(there.fits[level].summary())
