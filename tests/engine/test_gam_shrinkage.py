"""Smooths that can vanish, `ts`, `cs` and select=True, against mgcv (tests/oracles/mgcv/shrinkage.R)."""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = json.loads((HERE / "shrinkage.json").read_text())["fits"]


@cache
def rows():
    with (HERE / "fits_rows.csv").open() as file:
        read = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in read]) for key in read[0] if key != "g"}


@pytest.mark.parametrize("f", FITS, ids=lambda f: f"{f['formula']} {f['select']}")
def test_as_mgcv(f):
    fit = un.gam(f["formula"], rows(), family=f["family"], select=f["select"])
    eta, se = fit.predict()
    away = np.sqrt(np.mean(((eta - f["eta"]) / f["se"]) ** 2))
    if "cs" in f["formula"]:  # which of line and constant mgcv shrinks more is rounding
        assert away < 0.2
        return
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert fit.edf_total == pytest.approx(f["edf_total"], rel=2e-3)
    assert away < 0.005
    np.testing.assert_allclose(se, f["se"], rtol=0.02)


@pytest.mark.parametrize(
    ("right", "options", "score"),
    [
        ("s(x, bs='ts', k=5) + s(z, bs='ts', k=7)", {"sp": [0.0005, 42.0]}, 61.1232364429),
        ("s(x, z, bs='ts', k=35)", {"sp": [0.0025]}, 94.6173834457),
        ("s(x, k=5)", {"sp": [0.3]}, 105.90613915),
        ("s(x, k=5) + s(z, k=7)", {"select": True}, 57.0930710921),
    ],
)
def test_as_many_functions_as_distinct_rows(right, options, score):
    """Then mgcv cuts no eigenvalues, and the penalty has another scale; what is shrunk depends on it. mgcv's REML."""
    i = np.arange(100)
    x, z = np.array([0.0, 2, 4, 6, 11])[i % 5], np.array([0.0, 1, 2, 5, 6, 7, 9])[i % 7]
    y = np.sin(x) + 0.5 * np.cos(17 * i) + 0.1 * z
    fit = un.gam(f"y ~ {right}", {"x": x, "z": z, "y": y}, **options)
    assert fit.score == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize("formula", ["y ~ s(x) + s(noise, bs='ts')", "y ~ s(x) + s(noise, bs='cs')"])
def test_a_term_without_effect_vanishes(formula):
    rng = np.random.default_rng(3)
    data = {"x": rng.random(400), "noise": rng.random(400)}
    data["y"] = np.sin(6 * data["x"]) + 0.3 * rng.normal(size=400)
    assert un.gam(formula, data).edf["s(noise)"] < 0.9
    plain = un.gam("y ~ s(x) + s(noise)", data)
    chosen = un.gam("y ~ s(x) + s(noise)", data, select=True)
    assert plain.edf["s(noise)"] >= 1.0 > chosen.edf["s(noise)"]
    assert list(chosen.sp) == ["s(x)1", "s(x)2", "s(noise)1", "s(noise)2"]


@pytest.mark.parametrize(("bs", "shares"), [("ts", (0.1, 0.1)), ("cs", (0.01, 0.1))])
def test_eigenvalues_of_what_is_shrunk(bs, shares):
    """A tenth of the smallest of the wiggly functions; the constant of `cs` a hundredth."""
    x = np.random.default_rng(0).random(200)
    columns = {"x": x, "w": np.linspace(1.0, 2.0, 200)}  # times w, a smooth is not centred
    (term,) = un.terms.Terms((un.s("x", bs=bs, k=6, by="w"),)).build(columns)
    values = np.linalg.eigvalsh(term.penalties[0].matrix)
    assert values[:2] / values[2] == pytest.approx(shares, rel=1e-6)
