"""Data that a referee tried: responses far from zero, exact fits, categories of numbers, nearly separated rows."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unnorm as un
from unnorm.engine.arrow import Arrow, ArrowInverse
from unnorm.engine.criteria import State, Working, half_deviance, penalised_deviance, principal
from unnorm.errors import DataError, EstimationError, NotIdentifiedError, TermError, UnnormWarning


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(11)
    x = np.sort(rng.random(200))
    return {"x": x, "g": rng.choice(list("ab"), 200), "y": np.sin(6 * x) + 0.1 * rng.normal(size=200)}


@pytest.mark.parametrize("method", ["REML", "ML", "GCV"])
@pytest.mark.parametrize(
    "formula", ["y ~ s(x)", "y ~ 0 + s(x) + g", "y ~ g + s(x, by=g) - 1", "y ~ s(x) + s(g, bs='re')"]
)
def test_a_response_far_from_zero_keeps_its_digits(curve, formula, method):
    far = 1e9 + curve["y"]
    here, there = (un.gam(formula, {**curve, "y": y}, method=method) for y in (far - 1e9, far))
    at = here.predict()
    assert np.max(np.abs(there.predict(se=False) - 1e9 - at.estimate) / at.se) < 1e-3
    assert there.score == pytest.approx(here.score, abs=1e-4)
    assert there.deviance == pytest.approx(here.deviance, rel=1e-6)


@pytest.mark.parametrize("size", [1e-59, 1e59])
def test_any_unit_of_the_response(curve, size):
    one, other = un.gam("y ~ s(x)", curve), un.gam("y ~ s(x)", {**curve, "y": size * curve["y"]})
    assert other.sp["s(x)"] == pytest.approx(one.sp["s(x)"], rel=1e-6)
    assert other.predict(se=False) / size == pytest.approx(one.predict(se=False))


@pytest.mark.parametrize(("size", "how"), [(1e200, "overflow"), (1e-200, "underflow")])
def test_units_beyond_numbers_are_refused(curve, size, how):
    with pytest.raises(DataError, match=f"powers {how}"):
        un.gam("y ~ s(x)", {**curve, "y": size * curve["y"]})


@pytest.mark.parametrize("method", ["REML", "ML", "GCV"])
@pytest.mark.parametrize("formula", ["y ~ s(x)", "y ~ x", "y ~ x - 1"])
def test_an_exact_fit_is_said(curve, formula, method):
    """No bare numpy warning (they are errors here), and no infinite score."""
    y = 2 * curve["x"] + (0 if "- 1" in formula else 1)
    with pytest.warns(UnnormWarning, match="fit the response to rounding"):
        fit = un.gam(formula, {**curve, "y": y}, method=method)
    assert np.isfinite(fit.score)
    assert fit.deviance >= 0
    assert fit.predict(se=False) == pytest.approx(y)


@pytest.fixture(scope="module")
def numbered():
    rng = np.random.default_rng(8)
    x, k = rng.random(240), rng.integers(1, 4, 240)
    return pd.DataFrame({"x": x, "k": k, "y": np.sin(6 * x) + (k == 2) * x + 0.3 * rng.normal(size=240)})


@pytest.mark.parametrize(
    "formula",
    ["y ~ k + s(x)", "y ~ s(x) + s(k, bs='re')", "y ~ k + s(x, by=k)", "y ~ s(x, k, bs='fs', m=1, k=5)", "y ~ k:x"],
)
def test_a_category_of_numbers_is_a_factor(numbered, formula):
    """As R's factor(c(3, 1, 2)): its own order, and never a slope or a multiplier."""
    text = numbered.assign(k=pd.Categorical([f"{i}" for i in numbered["k"]], ["3", "1", "2"]))
    fit = un.gam(formula, numbered.assign(k=pd.Categorical(numbered["k"], [3, 1, 2])))
    same = un.gam(formula, text)
    assert list(fit.coefficients) == list(same.coefficients)
    assert fit.score == pytest.approx(same.score)
    new = pd.DataFrame({"x": [0.5, 0.2, 0.9], "k": [1, 2, 3]})
    expected = same.predict(new.assign(k=["1", "2", "3"]), se=False)
    for k in (new["k"], new["k"].astype(float), pd.Categorical(new["k"]), pd.Categorical(new["k"], [2, 3, 1])):
        assert fit.predict(new.assign(k=k), se=False) == pytest.approx(expected)


def test_ordered_numbers_and_ordered_dictionaries_give_differences(numbered):
    ordered = un.gam(
        "y ~ k + s(x) + s(x, by=k)", numbered.assign(k=pd.Categorical(numbered["k"], [3, 1, 2], ordered=True))
    )
    assert list(ordered.edf) == ["s(x)", "s(x):k1", "s(x):k2"]
    codes = pa.array([{3: 0, 1: 1, 2: 2}[k] for k in numbered["k"].tolist()])
    table = pa.table(
        {
            "x": numbered["x"],
            "y": numbered["y"],
            "k": pa.DictionaryArray.from_arrays(codes, pa.array(list("cab")), ordered=True),
        }
    )
    assert un.gam("y ~ k + s(x) + s(x, by=k)", table).score == pytest.approx(ordered.score)


def nearly_separated(seed):
    """A step in x, with one to three rows on its wrong side."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(int(rng.choice([60, 120, 200, 400]))))
    y = (x > 0.5) * 1.0
    wrong = rng.choice(x.size, int(rng.integers(1, 4)), replace=False)
    y[wrong] = 1 - y[wrong]
    return {"x": x, "y": y}


def test_a_minimum_beside_a_fall_without_end_is_not_converged():
    """60 rows of which one is on the wrong side: REML has a minimum with |η| to 200, and falls without end below it."""
    rows = nearly_separated(11)
    with pytest.warns(UnnormWarning, match="still falls as the smoothing parameter of .* goes to zero"):
        fit = un.gam("y ~ s(x, bs='cr', k=20)", rows, family="binomial")
    assert not fit.converged
    lower = un.gam("y ~ s(x, bs='cr', k=20)", rows, family="binomial", sp=[1e-4 * fit.sp["s(x)"]])
    assert lower.score < fit.score - 1


def test_rows_without_information_are_not_called_collinear():
    rows = nearly_separated(0)
    with pytest.raises(NotIdentifiedError, match=r"of 400 rows are nearly separated.*Raise the smoothing parameters"):
        un.gam("y ~ s(x)", rows, family="binomial", sp=[1e-17])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        assert np.isfinite(un.gam("y ~ s(x)", rows, family="binomial", sp=[1e-3]).score)  # the remedy


def test_the_criterion_sees_the_error_of_beta_squared():
    """At 98,000 transitions H had a condition of 1e10 and β an error of 1e-7: c₀ − ½rᵀβ was off by nats."""
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    A = 1e7 * (basis * 10.0 ** -np.arange(0.0, 12.0, 2.0)) @ basis.T
    A = (A + A.T) / 2
    at = 1e3 * rng.normal(size=6)
    cross = Arrow(A)
    working = Working(at, -2e5, np.zeros(6), cross, 0.0, 10**6, True, np.zeros(6))
    inverse = ArrowInverse(np.linalg.pinv(A), (), (), 0.0)
    forces = np.zeros((6, 1))

    def state(beta):
        return State(np.zeros(1), inverse, beta, forces)

    off = at * (1 + 1e-8)
    assert half_deviance(working, state(off)) == pytest.approx(2e5 + 0.5 * (off - at) @ A @ (off - at), abs=1e-6)
    assert penalised_deviance(working, state(off)) == half_deviance(working, state(off))
    r = working.cross.dot(at) + working.score
    assert abs(working.c0 - 0.5 * float(r @ off) - 2e5) > 100 * (half_deviance(working, state(off)) - 2e5)


SAVED = json.loads((Path(__file__).parents[1] / "oracles" / "mgcv" / "hard.json").read_text())
FITS = {fit["formula"]: fit for fit in SAVED["fits"]}
# which of two terms has the function w is anybody's choice, and moves REML by a constant
SPLIT = [formula for formula in FITS if formula.count("by=w") > 1]


@pytest.fixture(scope="module")
def table():
    made = pd.DataFrame(SAVED["table"])
    made["far"] = 1e8 + made["y"].round(4)
    made["K"] = pd.Categorical(made["k"].astype(int), [3, 1, 2])
    return made


@pytest.mark.parametrize("formula", FITS)
def test_the_fit_is_mgcvs(table, formula):
    saved = FITS[formula]
    fit = un.gam(formula, table, family=saved["family"])
    eta, se = fit.predict()
    eta = eta - (1e8 if formula.startswith("far") else 0)
    assert fit.converged
    assert np.sqrt(np.mean(((eta - saved["eta"]) / saved["se"]) ** 2)) < 0.005
    assert np.sqrt(np.mean((se / saved["se"] - 1) ** 2)) < 0.005
    assert fit.edf_total == pytest.approx(saved["edf"], rel=2e-3)
    if formula not in SPLIT:
        assert fit.score == pytest.approx(saved["score"], abs=1e-3)


def test_longitudes_go_round(table):
    fit = un.gam("g ~ s(lat, lon, bs='sos', k=20)", table)
    there = fit.predict(table.assign(lon=table["lon"] + 360.0), se=False)  # a warning would be an error
    assert there == pytest.approx(fit.predict(se=False))
    part = un.gam("g ~ s(lat, lon, bs='sos', k=20)", table.assign(lon=table["lon"] / 10))
    assert np.isfinite(part.predict({"lat": [0.0], "lon": [365.0]}, se=False)).all()
    with pytest.warns(UnnormWarning, match="far outside the data"):
        part.predict({"lat": [0.0], "lon": [100.0]})


@pytest.mark.parametrize(
    ("formula", "remedy"),
    [("y ~ s(Sepal.Length)", "'Sepal.Length'"), ("y ~ Sepal.Length", "'Sepal.Length'"),
     ("Sepal.Length ~ x", "'Sepal.Length'"), ("y ~ k/x", "a \\+ a:b"), ("y ~ (k + x)^2", "a\\*b")],
)  # fmt: skip
def test_words_of_r_that_are_not_terms_have_a_remedy(table, formula, remedy):
    with pytest.raises(TermError, match=remedy):
        un.gam(formula, table)


def test_as_factor_is_factor(table):
    assert un.gam("y ~ as.factor(k)", table).coefficients == un.gam("y ~ factor(k)", table).coefficients


def test_knots_beyond_the_data_are_no_rows_to_warn_of(curve):
    fit = un.gam("y ~ s(x, bs='ps', k=8)", curve, knots={"x": (-0.5, 1.5)})  # a warning would be an error
    assert fit.converged


def test_a_theta_that_is_given_is_no_parameter(table):
    """mgcv counts nb(1.5) as no parameter of AIC, nb() as one."""
    rows = table.assign(n=np.round(np.exp(table["v"] * 3)))
    free = un.gam("n ~ s(x)", rows, family="nb")
    given = un.gam("n ~ s(x)", rows, family="nb", theta=free.theta)
    assert given.aic == pytest.approx(free.aic - 2.0, abs=1e-3)
    assert given.theta_known
    assert not free.theta_known


def test_a_saved_theta_stays_given(table, tmp_path):
    fit = un.gam("c ~ s(x)", table, family="nb", theta=2.0)
    fit.save(tmp_path / "fit")
    assert un.load(tmp_path / "fit").aic == fit.aic


def test_terms_that_explain_the_same_are_tried_instead_of_each_other():
    """Three curves of x by level, or one part of t2(x, z): 91.44 and 90.45, with four parameters between them."""
    rows = pd.read_csv(Path(__file__).parents[1] / "oracles" / "mgcv" / "hard_rivals.csv")
    fit = un.gam("y ~ s(lat, lon, bs='sos', k=20) + s(x, by=g) + g + t2(x, z, k=4)", rows, family="binomial")
    assert fit.score == pytest.approx(90.4488, abs=0.01)


def test_a_criterion_that_overflows_says_so():
    """25 rows with 144 functions ended in LAPACK's "Eigenvalues did not converge"."""
    with pytest.raises(EstimationError, match="too many functions for these rows"):
        principal(np.full((2, 2), np.nan))


@pytest.mark.parametrize(("formula", "what"), [("y ~ x + s(z)", "linear"), ("y ~ g + g:x + s(z)", "g:x")])
def test_a_column_far_from_zero_has_a_remedy(curve, formula, what):
    """REML was .5 away at 10⁶ times the range; from 10⁷ the rows were said not to tell x from the intercept."""
    rows = {**curve, "z": np.cos(40 * curve["x"])}
    far = {**rows, "x": 1e6 + np.round(curve["x"], 4)}
    with pytest.warns(UnnormWarning, match=f"{what}.*I\\(x - 100000.*"):
        un.gam(formula, far)
    with pytest.warns(UnnormWarning), pytest.raises(NotIdentifiedError, match=r"take a constant from it first"):
        un.gam(formula, {**far, "x": far["x"] + 1e9})
    near = un.gam(formula.replace("x", "I(x - 1000000)"), far)
    assert near.score == pytest.approx(un.gam(formula, {**rows, "x": np.round(curve["x"], 4)}).score, abs=1e-5)


def test_columns_are_exact_where_rows_know_them_so_well(curve):
    """With counts of 10⁵ in 150 rows, columns good to 1e-5 of their size were 3 nats of REML."""
    x, z = curve["x"] ** 3, np.cos(40 * curve["x"])
    y = np.round(np.exp(13 + np.sin(60 * x) + z))
    fit = un.gam("y ~ s(x) + s(z, by=g) + g", {"x": x, "z": z, "g": curve["g"], "y": y}, family="poisson")
    eta = np.asarray(fit.predict(kind="matrix")) @ fit.smoothed.beta
    np.testing.assert_allclose(fit.linear_predictor, eta, rtol=0, atol=1e-10)


@pytest.mark.parametrize("family", ["poisson", "gaussian", "nb"])
def test_many_rows_that_know_a_curve_to_four_digits(family, tmp_path):
    """Columns good to 2e-4 of their size: .05 standard errors of each row's mean, 2.8 nats of REML."""
    rng = np.random.default_rng(1)
    x = rng.random(8_000)
    eta = np.sin(9 * x) + 0.3 * np.sin(30 * x)
    counts = rng.poisson(1e5 * np.exp(eta)).astype(float)
    y = eta + 1e-4 * rng.normal(size=x.size) if family == "gaussian" else counts
    options = {} if family == "gaussian" else {"family": family} | ({"theta": 1e9} if family == "nb" else {})
    fit = un.gam("y ~ s(x, k=20)", {"x": x, "y": y}, **options)
    assert fit.smoothed.design.exact
    _, se = fit.predict()
    off = fit.linear_predictor - np.asarray(fit.predict(kind="matrix")) @ fit.smoothed.beta
    assert np.abs(off / se).max() < 1e-4
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(un.load(tmp_path / "fit").linear_predictor, fit.linear_predictor)
    rough = un.gam("y ~ s(x, k=20)", {"x": x, "y": eta + rng.normal(size=x.size)})
    assert not rough.smoothed.design.exact


@pytest.mark.parametrize(
    ("formula", "score"),
    [("y ~ te(x, z, v, k=3)", 3884508.1908), ("y ~ s(x, k=5) + s(z, k=5) + te(x, z, k=4)", 23124323.8020)],
)
def test_large_counts_that_nothing_explains(formula, score):
    """λ is 10⁻¹⁵ of the information, beyond the bounds of the search: it stopped there, 1578 and 301 nats above mgcv's
    REML, and said that rows are nearly separated."""
    rng = np.random.default_rng(0)
    x, z = rng.random(100) ** 4, np.round(rng.standard_t(1.2, 100), 4)
    v = np.exp(1.5 * rng.normal(size=100))
    rng.normal(size=100)
    y = rng.poisson(np.exp(11 + np.sin(20 * x) + np.cos(z) + np.log(v)))
    fit = un.gam(formula, {"x": x, "z": z, "v": v, "y": y}, family="poisson")
    assert fit.converged
    assert fit.score == pytest.approx(score, abs=0.05)


def known_to_four_digits(n):
    rng = np.random.default_rng(1)
    x = rng.random(n)
    return rng, x, np.sin(9 * x) + 0.3 * np.sin(30 * x)


def test_what_rows_know_is_in_their_weights_and_offsets_too():
    rng, x, eta = known_to_four_digits(8_000)
    data = {"x": x, "few": rng.poisson(np.exp(eta)).astype(float), "many": rng.poisson(1e5 * np.exp(eta)).astype(float)}
    options: dict = {"data": data, "family": "poisson"}
    assert not un.gam("few ~ s(x, k=20)", **options).smoothed.design.exact
    assert un.gam("few ~ s(x, k=20)", weights=np.full(8_000, 1e5), **options).smoothed.design.exact
    assert un.gam("many ~ s(x, k=20)", offset=np.full(8_000, np.log(1e5)), **options).smoothed.design.exact


def test_columns_are_exact_where_a_curve_too_smooth_for_the_rows_makes_them_worth_nats():
    """.0005 standard errors, and .04 nats."""
    rng, x, eta = known_to_four_digits(800)
    y = rng.poisson(1e5 * np.exp(eta)).astype(float)
    assert un.gam("y ~ s(x, k=20)", {"x": x, "y": y}, family="poisson").smoothed.design.exact


def test_rows_that_the_design_has_in_another_order_are_compared_with_themselves():
    rng, x, eta = known_to_four_digits(1_500)
    g = rng.choice(["a", "b"], 1_500)
    fit = un.gam("y ~ g + s(x, by=g)", {"x": x, "g": g, "y": eta + rng.normal(size=1_500)})
    assert max(fit.smoothed.design.errors.values()) > 1e-9
    assert not fit.smoothed.design.exact
