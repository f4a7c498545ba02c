"""The public face of `un.gam`: what goes in, what comes out, what is refused, and identities that must hold."""

import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import unnorm as un
from unnorm.errors import (
    CombinationError,
    DataError,
    InputError,
    NotIdentifiedError,
    TermError,
    UnnormError,
    UnnormWarning,
)


def simulate(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, z, v = rng.random(n), rng.random(n), rng.normal(size=n)
    angle = rng.uniform(-np.pi, np.pi, n)
    g = rng.choice(["a", "b", "c"], n)
    level = np.where(g == "b", 0.5, np.where(g == "c", -0.4, 0.0))
    f = np.sin(2 * np.pi * x) + 0.5 * np.cos(angle) + 0.3 * v + level
    return {
        "x": x, "z": z, "v": v, "angle": angle, "g": g, "exposure": rng.uniform(-0.5, 0.5, n),
        "y": f + rng.normal(scale=0.3, size=n), "cls": (rng.random(n) < 1 / (1 + np.exp(-f))).astype(int),
        "count": rng.poisson(np.exp(0.5 * f)),
    }  # fmt: skip


DATA = simulate()
FORMULA = "y ~ s(x, k=8) + s(angle, bs='cc', k=7) + v + factor(g)"


@pytest.fixture(scope="module")
def fit():
    return un.gam(FORMULA, DATA, knots={"angle": (-np.pi, np.pi)})


# --- identities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "family", "offset"),
    [
        (FORMULA, "gaussian", None),
        ("cls ~ s(x, by=g, k=5) + factor(g)", "binomial", "exposure"),
        ("count ~ s(x, g, bs='fs', k=5) + s(z, by=v, k=5)", "poisson", "exposure"),
        ("y ~ te(x, z, k=4) + s(g, bs='re')", "gaussian", "exposure"),
        ("y ~ s(x, z, k=15) - 1", "gaussian", None),
    ],
)
def test_effects_intercept_and_offset_add_up_to_the_linear_predictor(formula, family, offset):
    fit = un.gam(formula, DATA, family=family, offset=offset)
    effects = fit.predict(kind="terms", se=False)
    total = sum(effects.values()) + fit.coefficients.get("(Intercept)", 0.0)
    total = total + (0.0 if offset is None else DATA[offset])
    again = fit.predict(DATA, se=False)
    np.testing.assert_allclose(total, again, atol=1e-10)
    # the engine's own rows hold one-dimensional thin plates as cubic splines on many break points
    np.testing.assert_allclose(again, fit.linear_predictor, atol=1e-3 * fit.predict().se.min())
    np.testing.assert_allclose(fit.predict(DATA, kind="response").estimate, fit.fitted, rtol=1e-3)


def test_smooths_are_centred_over_the_rows(fit):
    for label in ("s(x)", "s(angle)"):
        assert abs(fit.term_values(label).mean()) < 1e-8
    # canonical link and an intercept: fitted values sum to the response
    assert fit.fitted.sum() == pytest.approx(DATA["y"].sum())
    binomial = un.gam("cls ~ s(x)", DATA, family="binomial")
    assert binomial.fitted.sum() == pytest.approx(DATA["cls"].sum(), rel=1e-6)


def test_effect_is_the_term_at_its_points_with_bands(fit):
    table = fit.effect("s(x)")
    assert list(table) == ["x", "estimate", "se", "lower", "upper"]
    assert table["x"].size == 100
    assert table["x"][[0, -1]].tolist() == [DATA["x"].min(), DATA["x"].max()]
    at = fit.effect("s(x)", at={"x": DATA["x"]}, level=0.9)
    effects, errors = fit.predict(kind="terms")
    np.testing.assert_allclose(at["estimate"], effects["s(x)"], atol=1e-10)
    np.testing.assert_allclose(at["se"], errors["s(x)"], rtol=1e-7)
    np.testing.assert_allclose(at["upper"] - at["estimate"], stats.norm.ppf(0.95) * at["se"])
    np.testing.assert_allclose(
        fit.effect("s(x)", at=[0.2, 0.3])["estimate"], fit.effect("s(x)", at={"x": [0.2, 0.3]})["estimate"]
    )
    wide, wider = fit.effect("s(x)", unconditional=True), fit.effect("s(x)", simultaneous=True, rng=3)
    assert np.all(wide["se"] >= table["se"] * (1 - 1e-9))
    ratio = (wider["upper"] - wider["estimate"]) / (table["upper"] - table["estimate"])
    assert 1.2 < ratio[0] < 1.9
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_array_equal(wider["upper"], fit.effect("s(x)", simultaneous=True, rng=3)["upper"])


def test_effects_of_other_kinds_of_terms():
    fit = un.gam("y ~ te(x, z, k=4) + s(g, bs='re') + s(v, by=exposure, k=5)", DATA)
    assert fit.effect("te(x,z)")["x"].size == 1600
    assert fit.effect("te(x, z)", at={"x": [0.5], "z": [0.5]})["estimate"].shape == (1,)
    assert fit.effect("s(g)")["g"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(fit.effect("s(g)")["estimate"], [fit.coefficients[f"s(g).{i}"] for i in (1, 2, 3)])
    by = fit.effect("s(v):exposure", at={"v": [0.5, 0.5], "exposure": [1.0, 2.0]})["estimate"]
    assert by[1] == pytest.approx(2 * by[0])
    assert fit.effect("s(v):exposure", at={"v": [0.5]})["estimate"][0] == pytest.approx(by[0])
    levels = un.gam("y ~ factor(g) + s(x, by=g, k=5)", DATA)
    assert levels.effect("g")["estimate"][0] == 0.0
    assert levels.effect("s(x):gb")["x"].size == 100
    rows = DATA["g"] == "b"
    np.testing.assert_allclose(
        levels.effect("s(x):gb", at={"x": DATA["x"][rows]})["estimate"], levels.term_values("s(x):gb")[rows]
    )
    assert np.all(levels.term_values("s(x):gb")[~rows] == 0.0)


def test_covariances_are_ordered_and_agree_with_predict(fit):
    V, Ve, Vc = fit.covariance, fit.vcov("frequentist"), fit.vcov(unconditional=True)
    p = len(fit.coefficients)
    assert V.shape == Ve.shape == Vc.shape == (p, p)
    for larger, smaller in ((V, Ve), (Vc, V)):
        assert np.linalg.eigvalsh(larger - smaller).min() > -1e-8 * np.abs(larger).max()
    with pytest.raises(ValueError, match="read-only"):
        V[0, 0] = 1.0
    parametric = list(fit.coefficients).index("v")
    assert fit.predict(kind="terms").se["v"] == pytest.approx(np.abs(DATA["v"]) * np.sqrt(V[parametric, parametric]))
    with pytest.raises(CombinationError, match="Bayesian"):
        fit.vcov("frequentist", unconditional=True)
    with pytest.raises(InputError, match="'bayesian', 'frequentist'"):
        fit.vcov("sandwich")


def test_terms_and_strings_are_the_same_model(fit):
    terms = un.s("x", k=8) + un.s("angle", bs="cc", k=7) + un.linear("v") + un.factor("g")
    same = un.gam(terms, DATA, response="y", knots={"angle": (-np.pi, np.pi)})
    np.testing.assert_allclose(same.linear_predictor, fit.linear_predictor, atol=1e-8)
    assert list(same.coefficients)[:2] == ["(Intercept)", "s(x).1"]
    assert {"v", "gb", "gc", "s(angle).5"} <= set(same.coefficients)


def test_weights_count_rows_and_zero_weights_leave_them_out():
    twice = {k: np.concatenate([v, v[:100]]) for k, v in DATA.items()}
    weights = np.ones(400)
    weights[:100] = 2.0
    knots = {"x": np.linspace(0.0, 1.0, 10)}  # the same basis for both
    a = un.gam("count ~ s(x, bs='cr')", twice, family="poisson", knots=knots, sp=[1.0])
    b = un.gam("count ~ s(x, bs='cr')", DATA, family="poisson", weights=weights, knots=knots, sp=[1.0])
    at = {"x": np.linspace(0.1, 0.9, 9)}
    assert a.deviance == pytest.approx(b.deviance, rel=1e-6)
    np.testing.assert_allclose(a.predict(at).estimate, b.predict(at).estimate, rtol=1e-5)
    weights[100:] = 0.0
    fewer = un.gam(
        "count ~ s(x, bs='cr')", DATA, family="poisson", weights=np.minimum(weights, 1.0), knots=knots, sp=[1.0]
    )
    assert fewer.n == 100


def test_proportions_with_trials_are_sums_of_bernoullis():
    rng = np.random.default_rng(3)
    x = np.repeat(np.linspace(0.0, 1.0, 40), 5)
    z = (rng.random(200) < 0.3 + 0.4 * x).astype(float)
    knots = {"x": np.linspace(0.0, 1.0, 8)}
    rows = un.gam("z ~ s(x, bs='cr', k=8)", {"x": x, "z": z}, family="binomial", knots=knots, sp=[1.0])
    share = {"x": x[::5], "p": z.reshape(40, 5).mean(axis=1)}
    grouped = un.gam(
        "p ~ s(x, bs='cr', k=8)", share, family="binomial", weights=np.full(40, 5.0), knots=knots, sp=[1.0]
    )
    np.testing.assert_allclose(grouped.predict(share).estimate, rows.predict(share).estimate, atol=1e-6)
    successes = z.reshape(40, 5).sum(axis=1)
    assert grouped.loglik == pytest.approx(stats.binom.logpmf(successes, 5, grouped.fitted).sum())
    with pytest.warns(UnnormWarning, match="each counts as one trial"):
        un.gam("p ~ s(x, bs='cr', k=8)", share, family="binomial", knots=knots, sp=[1.0])
    assert rows.loglik == pytest.approx(stats.bernoulli.logpmf(z, rows.fitted).sum())


def test_residuals_square_to_the_deviance_and_pearson(fit):
    for model in (fit, un.gam("cls ~ s(x)", DATA, family="binomial"), un.gam("count ~ s(x)", DATA, family="poisson")):
        assert np.sum(model.residuals() ** 2) == pytest.approx(model.deviance)
    assert model.loglik == pytest.approx(stats.poisson.logpmf(DATA["count"], model.fitted).sum())
    np.testing.assert_allclose(model.residuals("pearson") ** 2 * model.fitted, model.residuals("response") ** 2)
    with pytest.raises(InputError, match="'working'"):
        model.residuals("raw")


def test_a_straight_line_is_found_and_its_smoothing_is_infinite():
    rng = np.random.default_rng(8)
    x = rng.random(500)
    fit = un.gam("y ~ s(x)", {"x": x, "y": 2 * x + rng.normal(size=500)})
    line = un.gam("y ~ x", {"x": x, "y": fit.y})
    if fit.edf["s(x)"] < 1.001:
        table = fit.smoothing
        assert table["state"].tolist() == ["infinite"]
        assert fit.linear_predictor == pytest.approx(line.linear_predictor, abs=1e-3)
        assert fit.tests["s(x)"].p == pytest.approx(line.p_values["x"], rel=0.02)
        unconditional = fit.predict(unconditional=True).se
        assert np.all(np.isfinite(unconditional))


# --- tables of the user's kind ------------------------------------------------------------------------------------

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_come_back_in_the_kind_they_came_in(kind, fit):
    table = KINDS[kind](DATA)
    model = un.gam(FORMULA, table, knots={"angle": (-np.pi, np.pi)})
    np.testing.assert_allclose(model.linear_predictor, fit.linear_predictor, atol=1e-10)
    for made in (
        model.effect("s(x)"), model.smoothing, model.predict(kind="terms").estimate, model.check().basis,
        model.predict(table, kind="terms").se, model.compare(fit).table, model.summary_table(),
        model.parametric_table(),
    ):  # fmt: skip
        assert type(made) is type(table)
    assert isinstance(model.predict(table).estimate, np.ndarray)
    assert np.asarray(model.effect("g")["g"]).tolist() == ["a", "b", "c"]


def test_predictions_at_the_kind_of_the_new_rows(fit):
    assert isinstance(fit.predict(pd.DataFrame(DATA), kind="terms").estimate, pd.DataFrame)


def test_missing_rows_are_refused_or_dropped_by_name():
    table = pd.DataFrame(DATA)
    table.loc[3, "x"] = np.nan
    table.loc[7, "g"] = None
    table.loc[9, "y"] = np.inf
    with pytest.raises(DataError, match=r"3 of 400 rows .*'y': 1, 'x': 1, 'g': 1.*missing='drop'"):
        un.gam(FORMULA, table)
    fit = un.gam(FORMULA, table, missing="drop", weights=np.ones(400))
    kept = np.setdiff1d(np.arange(400), [3, 7, 9])
    same = un.gam(FORMULA, table.iloc[kept])
    np.testing.assert_allclose(fit.linear_predictor, same.linear_predictor, atol=1e-8)
    assert "3 of 400 rows were left out" in fit.notes[0]
    assert fit.notes[0] in fit.summary()
    with pytest.raises(DataError, match="predict: column 'x' is missing in 1 of 400 rows"):
        fit.predict(table)


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"family": "gamma"}, InputError, r"family must be one of 'binomial', 'poisson', 'gaussian'"),
        ({"method": "reml"}, InputError, r"method must be one of 'REML'.*got 'reml'"),
        ({"method": "UBRE"}, CombinationError, "method='GCV'"),
        ({"missing": "omit"}, InputError, "'error', 'drop'"),
        ({"formula": "s(x)"}, InputError, r"names no response. Write 'y ~ s\(x\)'"),
        ({"response": "cls"}, InputError, "'y' and response= says 'cls'"),
        ({"formula": "y ~ s(x) + y"}, InputError, "also a covariate"),
        ({"formula": "y ~ s(x) + s(x, k=4)"}, InputError, r"Two terms are called 's\(x\)'"),
        ({"formula": "y ~ s(xx)"}, DataError, r"no column 'xx' .*'x', 'z', 'v'"),
        ({"formula": "yy ~ s(x)"}, DataError, "no column 'yy'"),
        ({"formula": "y ~ lo(x)"}, TermError, "'s', 'te'"),
        ({"formula": "y ~ 0"}, (InputError, TermError), "nothing to estimate|no terms"),
        ({"formula": "g ~ s(x)"}, DataError, "must be numeric; column 'g' holds text. Recode it"),
        ({"formula": "y ~ s(g)"}, (DataError, TermError), "'g'"),
        ({"formula": "count ~ s(x)", "family": "binomial"}, DataError, "must be 0 or 1, or a proportion"),
        ({"family": "poisson"}, DataError, "must not be negative"),
        ({"weights": -DATA["x"]}, DataError, "weights must not be negative; 400 are"),
        ({"weights": np.zeros(400)}, DataError, "nothing to fit"),
        ({"weights": np.ones(3)}, DataError, "array of 400 values.*got 3"),
        ({"offset": "nothing"}, DataError, "no column 'nothing'"),
        ({"offset": "g"}, DataError, "offset must be numeric"),
        ({"data": {k: v[:0] for k, v in DATA.items()}}, DataError, "no rows"),
        ({"data": {**DATA, "y": np.full(400, 2.0)}}, DataError, "is 2 in every row"),
        ({"data": np.ones(9)}, DataError, "table with the columns 'y', 'x'; got an array.*Pass a mapping"),
        ({"method": "CV", "folds": "a"}, InputError, "folds must be a whole number.*got 'a'. Pass folds=10"),
        ({"method": "CV", "groups": "g"}, InputError, "got 10. Pass folds=3"),
        ({"formula": "y ~ v + w", "data": {**DATA, "w": 2 * DATA["v"]}}, NotIdentifiedError, "tell these terms apart"),
        ({"sp": [1.0, 2.0]}, InputError, "one value for each of the 1 penalties"),
        ({"sp": {"s(z)": 1.0}}, InputError, r"'s\(x\)'; got 's\(z\)'"),
        ({"method": "CV", "groups": "who"}, DataError, "no column 'who'"),
        ({"data": 3}, DataError, "pandas, polars or pyarrow"),
        ({"offset": float("nan")}, DataError, "offset must be a finite number.*got nan"),
        ({"weights": float("inf")}, DataError, "weights must be a finite number.*got inf"),
        ({"formula": "y ~ s(x, z, v, exposure)"}, TermError, "got 4. Use te"),
        ({"formula": "y ~ '(Intercept)'", "data": {**DATA, "(Intercept)": DATA["x"]}}, TermError, "Rename the column"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(change, error, sentence):
    call = {"formula": "y ~ s(x)", "data": DATA, **change}
    with pytest.raises(error, match=sentence):
        un.gam(call.pop("formula"), call.pop("data"), **call)


@pytest.mark.parametrize(("value", "family"), [(0, "binomial"), (1, "binomial"), (0, "poisson")])
def test_a_response_that_never_varies_is_refused(value, family):
    with pytest.raises(DataError, match=f"is {value} in every row"):
        un.gam("w ~ s(x)", {**DATA, "w": np.full(400, value)}, family=family)


def test_labels_points_and_options_are_checked(fit):
    with pytest.raises(InputError, match=r"label must be one of 's\(x\)', 's\(angle\)', 'v', 'g'; got 's\(w\)'"):
        fit.effect("s(w)")
    with pytest.raises(DataError, match="needs the columns 'x'; got 'w'"):
        fit.effect("s(x)", at={"w": [1.0]})
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        fit.effect("s(x)", level=95)
    with pytest.raises(InputError, match="'link', 'response', 'terms'"):
        fit.predict(kind="mean")
    with pytest.raises(DataError, match="no column 'x'"):
        fit.predict({"angle": [0.0], "v": [0.0], "g": ["a"]})
    gcv = un.gam("y ~ s(x)", DATA, method="GCV")
    with pytest.raises(CombinationError, match="method='REML'"):
        gcv.predict(unconditional=True)
    with pytest.raises(FrozenInstanceError):
        fit.family = "poisson"


def test_an_offset_at_new_rows_is_read_again_or_asked_for():
    named = un.gam("count ~ s(x)", DATA, family="poisson", offset="exposure")
    given = un.gam("count ~ s(x)", DATA, family="poisson", offset=DATA["exposure"])
    new = {"x": [0.1, 0.9], "exposure": [1.0, 2.0]}
    expected = given.predict(new, offset=0.0).estimate + np.array([1.0, 2.0])
    np.testing.assert_allclose(named.predict(new).estimate, expected)
    np.testing.assert_allclose(given.predict(new, offset=[1.0, 2.0]).estimate, expected)
    np.testing.assert_allclose(given.predict(new, offset="exposure").estimate, expected)
    with pytest.raises(InputError, match="Pass offset="):
        given.predict(new)
    with pytest.raises(DataError, match="no column 'exposure'"):
        named.predict({"x": [0.1]})


def test_far_extrapolation_warns(fit):
    with pytest.warns(UnnormWarning, match="far outside"):
        fit.predict({"x": [3.0], "angle": [0.0], "v": [0.0], "g": ["a"]})


def test_comparison_refuses_other_rows_and_families(fit):
    other = un.gam("y ~ s(x)", {k: v[:300] for k, v in DATA.items()})
    with pytest.raises(CombinationError, match="same rows"):
        fit.compare(other)
    with pytest.raises(CombinationError, match="different families"):
        fit.compare(un.gam("count ~ s(x)", DATA, family="poisson"))


# --- the rest of the face -----------------------------------------------------------------------------------------


def test_summary_says_what_a_reader_needs(fit):
    text = fit.summary()
    for part in (
        "Family: gaussian",
        "s(angle)",
        "(Intercept)",
        "gc",
        "Deviance explained",
        "-REML",
        "n = 400",
        "estimated",
    ):
        assert part in text
    assert str(fit) == text
    assert "z " in un.gam("cls ~ s(x)", DATA, family="binomial").summary()
    assert un.gam("y ~ 1", DATA).summary()
    assert list(fit.p_values) == ["s(x)", "s(angle)", "v", "g"]
    assert fit.p_values["s(x)"] < 1e-10


def test_methods_agree_where_the_data_speak():
    reference = un.gam("y ~ s(x)", DATA)
    for method in ("ML", "GCV", "CV"):
        other = un.gam("y ~ s(x)", DATA, method=method)
        assert other.method == method
        assert np.sqrt(np.mean((other.linear_predictor - reference.linear_predictor) ** 2)) < 0.05
    assert un.gam("cls ~ s(x)", DATA, family="binomial", method="GCV").method == "UBRE"


def test_fixed_smoothing_parameters_are_kept():
    fit = un.gam("y ~ s(x) + s(z)", DATA, sp={"s(x)": 0.5})
    assert fit.sp["s(x)"] == pytest.approx(0.5)
    assert fit.smoothing["state"][0] == "fixed"
    both = un.gam("y ~ s(x, sp=0.5) + s(z, sp=2)", DATA)
    assert list(both.sp.values()) == pytest.approx([0.5, 2.0])
    np.testing.assert_array_equal(both.predict(unconditional=True).se, both.predict().se)


def test_check_is_repeatable_and_finds_a_small_k():
    rng = np.random.default_rng(5)
    x = rng.random(800)
    data = {"x": x, "y": np.sin(25 * x) + 0.3 * rng.normal(size=800)}
    small = un.gam("y ~ s(x, k=6)", data).check()
    assert "larger k" in small.notes[0]
    assert str(small) == str(un.gam("y ~ s(x, k=6)", data).check())
    assert "large enough" in un.gam("y ~ s(x, k=40)", data).check().notes[0]
    twin = {**data, "w": x + 0.001 * rng.normal(size=800)}
    assert any("concurvity" in note for note in un.gam("y ~ s(x, k=8) + s(w, k=8)", twin).check().notes)


def test_predict_in_chunks_is_predict_at_once(fit, monkeypatch):
    from unnorm.engine import gam_predict

    whole = fit.predict(), fit.predict(kind="terms").se["s(x)"], fit.gram()
    monkeypatch.setattr(gam_predict, "CHUNK", 37)
    pieces = fit.predict(), fit.predict(kind="terms").se["s(x)"], fit.gram()
    np.testing.assert_allclose(pieces[0].se, whole[0].se)
    np.testing.assert_allclose(pieces[1], whole[1])
    np.testing.assert_allclose(pieces[2], whole[2], atol=1e-9)


def test_importing_unnorm_stays_light():
    heavy = ("jax", "scipy", "matplotlib", "numba", "pandas")
    code = f"import sys, unnorm, unnorm.engine; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# --- pictures -----------------------------------------------------------------------------------------------------


def test_plots_give_axes_or_a_figure():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = un.gam("y ~ s(exposure) + te(x, z, k=4) + s(g, bs='re') + s(v, g, bs='fs', k=4) + ti(x, z, v, k=4)", DATA)
        figure, axes = fit.plot()
        figure.canvas.draw()
        drawn = [ax for ax in axes.flat if ax.get_visible()]
        assert [ax.get_title().split(", edf")[0] for ax in drawn] == list(fit.edf)
        assert isinstance(fit.plot("s(exposure)", simultaneous=True, unconditional=True), Axes)
        _, mine = plt.subplots()
        assert fit.plot("te(x,z)", ax=mine) is mine
        with pytest.raises(InputError, match="draws one term"):
            fit.plot(ax=mine)
        with pytest.raises(InputError, match="must be Axes"):
            fit.plot("te(x,z)", ax=3)
        with pytest.raises(InputError, match="names no term"):
            fit.plot([])
        curve = fit.plot("s(exposure)").lines[0]
        np.testing.assert_allclose(curve.get_ydata(), fit.effect("s(exposure)")["estimate"])
        parametric = un.gam("y ~ v + factor(g)", DATA)
        assert isinstance(parametric.plot("g"), Axes)
        with pytest.raises(InputError, match="no smooth term"):
            parametric.plot()
    plt.close("all")


def test_too_few_rows_for_a_scale():
    with pytest.raises(InputError, match=r"there are 2 rows and 2 coefficients\. Gather more rows, or leave terms out"):
        un.gam("y ~ x", {"x": [0.0, 1.0], "y": [1.0, 2.0]})


def test_models_that_are_the_same_have_no_test():
    rng = np.random.default_rng(1)
    x = rng.random(2000)
    table = {"x": x, "y": x + rng.normal(size=2000)}
    line, curve = un.gam("y ~ x", table), un.gam("y ~ s(x)", table, sp=[1e9])
    compared = line.compare(curve)
    assert compared.df < 0.01
    assert np.isnan(compared.p)  # a chi-square of no degrees of freedom makes any difference significant


@pytest.mark.parametrize(
    ("formula", "options", "says"),
    [
        ("y ~ s(x)", {"sp": "much"}, "finite numbers"),
        ("y ~ s(x)", {"sp": [float("inf")]}, "finite numbers"),
        ("y ~ s(x)", {"sp": [float("nan")]}, "finite numbers"),
        ("y ~ s(x)", {"sp": {"s(x)": "much"}}, "finite numbers"),
        ("y ~ s(x)", {"max_knots": "many"}, "max_knots"),
        ("y ~ s(x)", {"periods": 3}, "a mapping"),
        ("y ~ s(x)", {"knots": [1.0, 2.0]}, "a mapping"),
        ("s(x)", {"response": 3}, "name of a column"),
        ("y ~ s(x)", {"periods": {"xx": 1.0}}, "A name in periods must be one of 'x'; got 'xx'"),
        ("y ~ s(x, bs='cc')", {"periods": {"x": "day"}}, "positive number or"),
        ("y ~ s(x, bs='cc')", {"periods": {"x": (0, "day")}}, "positive number or"),
        ("y ~ s(x)", {"groups": "y"}, "with method='REML' leave it out"),
        ("y ~ s(x)", {"threads": 0}, "threads must be a whole number"),
        ("y ~ s(x)", {"threads": "all"}, "threads must be a whole number"),
        ("y ~ s(x)", {"select": "yes"}, "select must be True or False"),
    ],
)
def test_options_of_other_types_are_refused(formula, options, says):
    rng = np.random.default_rng(1)
    with pytest.raises(UnnormError, match=says):
        un.gam(formula, {"x": rng.random(50), "y": rng.normal(size=50)}, **options)


@pytest.mark.parametrize("formula", ["y ~ s(x)", "y ~ s(x) + s(h, bs='re')"])  # dense, and by levels
def test_a_band_of_no_points_is_an_empty_table(formula):
    rng = np.random.default_rng(1)
    table = {"x": rng.random(600), "y": rng.normal(size=600), "h": rng.integers(0, 250, 600).astype(str)}
    fit = un.gam(formula, table)
    for made in (fit.effect("s(x)", at=[], simultaneous=True), fit.derivative("s(x)", at=[], simultaneous=True)):
        assert [len(column) for column in made.values()] == [0] * 5


def test_a_smoothing_parameter_of_none_is_estimated():
    rng = np.random.default_rng(1)
    x = rng.random(90)
    table = {"x": x, "z": rng.random(90), "y": np.sin(5 * x) + 0.2 * rng.normal(size=90)}
    free, some = un.gam("y ~ s(x) + s(z)", table, sp=[None, 2.0]), un.gam("y ~ s(x) + s(z)", table, sp=[-1, 2.0])
    assert free.sp == some.sp
    for none in (None, -1):
        assert un.gam("y ~ s(x) + s(z)", table, sp={"s(x)": none, "s(z)": 2.0}).sp == some.sp


def test_tables_of_terms_keep_the_index():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.random(60), "y": rng.normal(size=60)}, index=rng.permutation(60) + 100)
    fit = un.gam("y ~ s(x, k=5)", table)
    made = fit.predict(table.head(7), kind="terms")
    assert made.estimate.index.equals(table.index[:7])
    assert made.se.index.equals(table.index[:7])
    total = made.estimate.sum(axis=1) + fit.coefficients["(Intercept)"]
    np.testing.assert_allclose(total.loc[table.index[3]], fit.predict(table.iloc[[3]], se=False)[0], rtol=1e-12)


@pytest.mark.parametrize("kind", ["dict", "pandas"])
def test_what_is_done_to_the_table_later_is_not_done_to_the_fit(kind):
    rng = np.random.default_rng(2)
    columns = {name: rng.uniform(1.0, 2.0, 80) for name in ("x", "w", "o", "y")}
    table = columns if kind == "dict" else pd.DataFrame(columns)
    fit = un.gam("y ~ s(x, k=5)", table, weights="w", offset="o")

    def answers():
        return (fit.residuals(), fit.effect("s(x)")["x"], fit.term_values("s(x)"), fit.draws(2, kind="link", rng=1))

    before = [np.array(one) for one in answers()]
    for name in columns:
        table[name] *= -3.0
    for was, now in zip(before, answers()):
        assert np.array_equal(was, now)
    assert fit == fit
    assert len({fit, un.gam("y ~ s(x, k=5)", columns)}) == 2  # by identity: there are arrays in them
