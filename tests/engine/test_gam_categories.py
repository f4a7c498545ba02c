"""Categories keep their order and their being ordered; levels that the data never had are refused."""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unnorm as un
from unnorm.errors import DataError, TermError, UnnormWarning

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


def _table(n=200):
    rng = np.random.default_rng(3)
    labels = rng.choice(["lo", "mid", "hi"], n)
    return labels, {"x": rng.random(n), "y": rng.normal(size=n)}


def test_a_categorical_without_its_series_keeps_its_order():
    labels, table = _table()
    for ordered in (False, True):
        g = pd.Categorical(labels, categories=["lo", "mid", "hi"], ordered=ordered)
        fit = un.gam("y ~ g + s(x, by=g, k=4)" + (" + s(x, k=4)" if ordered else ""), {**table, "g": g})
        assert list(fit.coefficients)[1:3] == ["gmid", "ghi"]
        assert len(fit.smooths) == 3


def test_cut_gives_categories():
    _, table = _table()
    part = pd.cut(table["x"], [0.0, 0.3, 0.6, 1.0])
    fit = un.gam("y ~ part", {**table, "part": pd.Series(part)})
    assert list(fit.coefficients) == ["(Intercept)", "part(0.3, 0.6]", "part(0.6, 1.0]"]
    again = pd.DataFrame({"part": pd.cut(np.array([0.7, 0.2]), [0.0, 0.3, 0.6, 1.0])})
    np.testing.assert_allclose(
        fit.predict(again, se=False), fit.predict({"part": ["(0.6, 1.0]", "(0.0, 0.3]"]}, se=False)
    )


def test_a_category_of_dates_is_a_factor():
    labels, table = _table()
    days = pd.to_datetime(pd.Series(labels).map({"lo": "2020-01-03", "mid": "2020-01-01", "hi": "2020-01-02"}))
    fit = un.gam("y ~ day", {**table, "day": days.astype("category")})
    same = un.gam("y ~ day", {**table, "day": days.dt.strftime("%Y-%m-%d")})
    assert len(fit.coefficients) == 3
    np.testing.assert_allclose(fit.fitted, same.fitted, atol=1e-10)
    np.testing.assert_allclose(fit.predict({"day": days.astype("category")}, se=False), fit.fitted, atol=1e-10)


def test_an_ordered_by_of_one_level_is_refused():
    _, table = _table()
    g = pd.Series(pd.Categorical(["lo"] * 200, categories=["lo", "hi"], ordered=True))
    with pytest.raises(TermError, match="one level only"):
        un.gam("y ~ s(x, by=g)", {**table, "g": g})


def test_coefficients_of_one_name_are_both_there():
    rng = np.random.default_rng(1)
    table = {"g": rng.choice(["A", "ab"], 90), "ga": rng.choice(["a", "b"], 90), "y": rng.normal(size=90)}
    fit = un.gam("y ~ g + ga", table)
    assert list(fit.coefficients) == ["(Intercept)", "gab", "gab (2)"]
    assert "gab (2)" in fit.summary()


def test_labels_that_are_numbers_may_come_as_text():
    rng = np.random.default_rng(1)
    table = {"i": rng.integers(0, 3, 90) * 10, "x": rng.random(90), "y": rng.normal(size=90)}
    fit = un.gam("y ~ factor(i) + s(factor(i), by=x, bs='re')", table)
    assert "s(i):x" in fit.edf
    same = [fit.predict({"i": level, "x": [0.5]}, se=False) for level in ([10], [10.0], ["10"])]
    assert same[0] == same[1] == same[2]


@pytest.mark.parametrize("term", ["s(g, bs='re')", "s(x, g, bs='fs', k=5)", "te(x, g, bs=('cr', 're'), k=(5, 6))"])
def test_a_new_level_of_a_random_term_has_its_mean(term):
    rng = np.random.default_rng(8)
    table = {"x": rng.random(300), "g": rng.integers(0, 6, 300).astype(str)}
    table["y"] = np.sin(6 * table["x"]) + rng.normal(size=6)[table["g"].astype(int)] + 0.2 * rng.normal(size=300)
    fit = un.gam(f"y ~ s(x) + {term}", table)
    new = {"x": np.array([0.2, 0.5, 0.8]), "g": np.array(["1", "new", "2"])}
    with pytest.warns(UnnormWarning, match="1 of 3 rows have levels that were not in the data .*'new'"):
        found = fit.predict(new)
    (label,) = [one.label for one in fit.terms if "g" in one.covariates]
    without = fit.predict(new, exclude=label)
    moved = np.abs(found.estimate - without.estimate) > 0
    assert moved.tolist() == [True, False, True]
    assert found.se[1] == pytest.approx(without.se[1], rel=1e-12)
    with pytest.warns(UnnormWarning, match="1 of 3 rows have levels"):
        X = fit.predict(new, kind="matrix")
    assert not X[1, fit.smoothed.slices[label]].any()


@pytest.mark.parametrize(
    ("formula", "points"),
    [
        ("y ~ s(x, factor(a), factor(b), bs='fs', k=4)", 600),
        ("y ~ s(factor(a), factor(b), bs='re')", 6),
        ("y ~ factor(a):x", 300),
        ("y ~ factor(a) + factor(a):factor(b)", 6),
    ],
)
def test_effects_of_levels_that_are_numbers_are_at_the_levels(formula, points):
    """Not on a grid between them, where there is no effect."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 4, 300), rng.integers(0, 2, 300)
    fit = un.gam(formula, {"x": rng.random(300), "a": a, "b": b, "y": rng.normal(size=300)})
    label = fit.terms[-1].label
    effect = fit.effect(label)
    assert len(effect["estimate"]) == points
    assert set(effect["a"].tolist()) == {1, 2, 3}
    plt = pytest.importorskip("matplotlib.pyplot")
    fit.plot(label)
    plt.close("all")


CHAIN = {1: [2], 2: [1, 3], 3: [2, 4], 4: [3]}
NUMBERED = {  # formula → rows of each term's effect
    "factor(q)*x": {"q": 3, "x": 100, "q:x": 300},
    "factor(q)*factor(p)": {"q": 3, "p": 2, "q:p": 6},
    "s(factor(q), factor(p), bs='re')": {"s(q,p)": 6},
    "s(x, factor(q), factor(p), bs='fs', k=4)": {"s(x,q,p)": 600},
    "te(x, factor(q), bs=('cr', 're'), k=4)": {"te(x,q)": 300},
    f"s(region, bs='mrf', xt={{'nb': {CHAIN}}})": {"s(region)": 4},
    "factor(g):factor(q)": {"g:q": 6},
}


@pytest.mark.parametrize("formula", NUMBERED)
def test_labels_that_are_numbers_stay_labels_after_the_fit(formula, tmp_path):
    rng = np.random.default_rng(6)
    table = {"x": rng.random(240), "q": rng.integers(1, 4, 240), "p": rng.integers(5, 7, 240)}
    table |= {"region": rng.integers(1, 5, 240), "g": rng.choice(["a", "b"], 240), "y": rng.normal(size=240)}
    fit = un.gam("y ~ " + formula, table)
    assert {term.label: len(fit.effect(term.label)["estimate"]) for term in fit.terms} == NUMBERED[formula]
    for term in fit.terms:
        assert fit.plot(term.label).get_title()
    assert np.isnan(fit.check().basis["k_index"]).all()
    fit.save(tmp_path / "fit")
    assert un.load(tmp_path / "fit").summary() == fit.summary()
