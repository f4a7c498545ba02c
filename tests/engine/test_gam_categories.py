"""Categories keep their order and their being ordered; levels that the data never had are refused."""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unnorm as un
from unnorm.errors import DataError

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
ORACLE = json.loads((HERE / "ordered.json").read_text())


@cache
def table():
    with (HERE / "fits_rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    data = pd.DataFrame({key: [float(row[key]) for row in rows] for key in ("x1", "y", "count")})
    g = [row["g"] for row in rows]
    data["o"] = pd.Categorical(g, categories=ORACLE["order"], ordered=True)
    data["u"] = pd.Categorical(g, categories=ORACLE["order"])
    return data


@pytest.mark.parametrize("f", ORACLE["fits"], ids=lambda f: f["formula"])
def test_as_mgcv(f):
    fit = un.gam(f["formula"], table(), family=f["family"])
    eta, se = fit.predict()
    assert list(fit.edf) == f["labels"]
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert np.sqrt(np.mean(((eta - f["eta"]) / f["se"]) ** 2)) < 0.005
    np.testing.assert_allclose(se, f["se"], rtol=0.01)


def test_the_first_declared_level_is_the_reference():
    f = ORACLE["fits"][2]
    fit = un.gam(f["formula"], table())
    assert list(fit.coefficients)[1:6] == [f"u{level}" for level in ORACLE["order"][1:]]
    np.testing.assert_allclose(list(fit.coefficients.values())[1:6], f["coefficients"], atol=1e-4)


def test_polars_enum_is_a_declared_order():
    pl = pytest.importorskip("polars")
    data = pl.DataFrame({"x1": table()["x1"].to_numpy(), "y": table()["y"].to_numpy(), "u": list(table()["u"])})
    data = data.with_columns(pl.col("u").cast(pl.Enum(ORACLE["order"])))
    assert list(un.gam("y ~ factor(u)", data).coefficients)[1:] == [f"u{level}" for level in ORACLE["order"][1:]]


def test_unused_categories_are_left_out():
    data = table()[table()["u"] != "a"]
    assert list(un.gam("y ~ factor(u)", data).coefficients)[1:] == ["ub", "uf", "ue", "ud"]


@pytest.mark.parametrize("formula", ["y ~ s(x1, by=u, k=5)", "y ~ s(x1) + s(x1, by=o, k=5)", "y ~ factor(u)"])
def test_levels_that_the_data_never_had_are_refused(formula):
    fit = un.gam(formula, table())
    name = "o" if "by=o" in formula else "u"
    with pytest.raises(DataError, match=r"must hold one of .*; got 'z'"):
        fit.predict({"x1": [0.5, 0.5], name: ["a", "z"]})


def test_an_unordered_by_next_to_its_main_effect_still_has_every_level():
    fit = un.gam("y ~ s(x1, by=u, k=5)", table())
    assert list(fit.edf) == [f"s(x1):u{level}" for level in ORACLE["order"]]


def test_effects_are_in_the_order_of_the_levels():
    rng = np.random.default_rng(2)
    n = 200
    order = ["lo", "mid", "hi", "none"]
    g = pd.Categorical(rng.choice(order[:3], n), categories=order)
    table = pd.DataFrame({"g": g, "x": rng.random(n), "z": rng.random(n), "y": rng.normal(size=n)})
    fit = un.gam("y ~ g + g:x + s(z, g, bs='fs', k=4)", table)
    assert fit.effect("g")["g"].tolist() == order[:3]
    assert list(dict.fromkeys(fit.effect("g:x")["g"])) == order[:3]
    assert list(dict.fromkeys(fit.effect("s(z,g)")["g"])) == order[:3]
    assert un.gam("y ~ s(g, bs='re')", table).effect("s(g)")["g"].tolist() == order[:3]
    plt = pytest.importorskip("matplotlib.pyplot")
    assert [tick.get_text() for tick in fit.plot("g").get_xticklabels()] == order[:3]
    plt.close("all")
