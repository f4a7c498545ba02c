"""Thin plates on every distinct row, as mgcv has them (tests/oracles/mgcv/knots.R); `max_knots`."""

import csv
import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = {fit["formula"]: fit for fit in json.loads((HERE / "knots.json").read_text())["fits"]}


@cache
def quakes():
    with (HERE / "knots_quakes.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


@pytest.mark.parametrize("name", FITS)
def test_quakes(name):
    f = FITS[name]
    fit = un.gam(name, quakes(), family=f["family"])
    rows = np.array(f["rows"])
    eta, se = fit.predict()
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert fit.aic == pytest.approx(f["aic"], abs=0.05)
    assert np.sqrt(np.mean(((eta[rows] - f["eta"]) / f["se"]) ** 2)) < 0.005
    assert np.sqrt(np.mean((se[rows] / f["se"] - 1.0) ** 2)) < 0.005
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", un.errors.UnnormWarning)  # these rows are outside on purpose
        far, far_se = fit.predict({key: np.array(value) for key, value in f["far"].items()})
    assert np.max(np.abs(far - f["far_eta"]) / f["far_se"]) < 0.02
    np.testing.assert_allclose(far_se, f["far_se"], rtol=0.02)


def test_max_knots_draws_the_same_rows_each_time():
    rng = np.random.default_rng(2)
    x = rng.random(6000)
    data = {"x": x, "y": np.sin(9 * x) + rng.normal(size=6000)}
    first, again = (un.gam("y ~ s(x)", data, max_knots=2000) for _ in range(2))
    np.testing.assert_array_equal(first.smoothed.beta, again.smoothed.beta)
    default = un.gam("y ~ s(x)", data)
    se = default.predict()[1]
    assert np.sqrt(np.mean(((default.linear_predictor - first.linear_predictor) / se) ** 2)) < 0.05
    assert not np.array_equal(default.linear_predictor, first.linear_predictor)
