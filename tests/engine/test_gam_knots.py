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


def test_the_order_of_the_rows_does_not_matter():
    """Knots of large tables were placed among rows at even steps: .9 standard errors apart where k binds."""
    rng = np.random.default_rng(5)
    x, z = rng.random(12_000), rng.normal(size=12_000)
    rows = {"x": x, "z": z, "y": rng.poisson(np.exp(0.6 * np.sin(6 * x) + 0.2 * z**2)) * 1.0}
    order = np.argsort(z)
    fit = un.gam("y ~ s(x, z, k=30)", rows, family="poisson")
    other = un.gam("y ~ s(x, z, k=30)", {name: column[order] for name, column in rows.items()}, family="poisson")
    at = fit.predict()
    assert np.sqrt(np.mean(((at.estimate[order] - other.predict(se=False)) / at.se[order]) ** 2)) < 0.005
    assert other.score == pytest.approx(fit.score, abs=2.5e-3)


@pytest.mark.parametrize("copies", [1, 21, 100])
def test_some_rows_are_the_same_in_any_order(copies):
    from unnorm.terms.sample import some_rows

    rng = np.random.default_rng(2)
    data = [np.repeat(rng.normal(size=20_000), copies) for _ in range(2)]
    order = rng.permutation(data[0].size)
    some, others = some_rows(data, 1000), some_rows([x[order] for x in data], 1000)
    assert np.array_equal(np.sort(some[:, 0]), np.sort(others[:, 0]))
    assert 900 < len(some) <= 2000
    assert np.unique(some[:, 0]).size > 400
    assert abs(some[:, 0].mean()) < 0.2
