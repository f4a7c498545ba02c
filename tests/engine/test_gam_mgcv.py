"""`un.gam` against `mgcv::gam`: every basis, family and criterion of the fixtures (tests/oracles/mgcv)."""

import csv
import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = {fit["name"]: fit for fit in json.loads((HERE / "fits.json").read_text().replace("1e999", "1e308"))["fits"]}
CHECKS = json.loads((HERE / "checks.json").read_text())
METHOD = {"REML": "REML", "ML": "ML", "GCV.Cp": "GCV"}
# Where mgcv itself is not the reference:
# - R's binomial log-likelihood rounds weights to whole trials.
ROUNDED = {name for name, fit in FITS.items() if fit["family"] == "binomial" and fit["weights"] == "w"}
# - mgcv stops at a local minimum of the criterion: at a finite λ, where an infinite one is .06 to .3 nats lower (.004
#   of UBRE), or at another finite one (`test_where_mgcv_is_not_at_the_minimum`).
LOCAL = {"both-binomial-REML", "multi-binomial-ML", "te-binomial-GCV.Cp", "by_numeric-poisson-ML"}
# - `fs` penalises each direction of its base's null space by itself, and mgcv's directions within a two-dimensional
#   null space are what rounding error leaves (eigenvectors of a zero eigenvalue): the model is only nearly the same.
LOOSE = {"fs-gaussian-REML", "fs-binomial-REML", "fs-poisson-REML"}
SAME = [name for name in FITS if name not in LOCAL]


@cache
def data(name):
    with (HERE / f"fits_{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    table = {key: np.array(v) if key == "g" else np.array(v, dtype=float) for key, v in columns.items()}
    if "trials" in table:
        table["prop"] = table["successes"] / table["trials"]
    return table


@cache
def fitted(name):
    f = FITS[name]
    knots = {key: np.asarray(value, dtype=float) for key, value in f["knots"].items()} if f["knots"] else None
    return un.gam(
        f["formula"], data(f["data"]), family=f["family"], method=METHOD[f["method"]], knots=knots,
        weights=f["weights"], offset=f["offset"],
    )  # fmt: skip


def times(name):
    """By how much tolerances are widened."""
    return 10.0 if name in LOOSE else 1.0


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


@pytest.mark.parametrize("name", SAME)
def test_predictor_and_standard_errors(name):
    f, fit = FITS[name], fitted(name)
    rows = np.array(f["rows"])
    eta, se = fit.predict()
    offset = 0.0 if f["offset"] is None else data(f["data"])[f["offset"]][rows]
    theirs, their_se = np.array(f["eta"]), np.array(f["se"])
    assert rms((eta[rows] - offset - theirs) / their_se) < 0.005 * times(name)
    assert rms(se[rows] / their_se - 1.0) < 0.01
    assert rms((fit.linear_predictor - fit.predict(data(f["data"]), se=False)) / se) < 1e-3


@pytest.mark.parametrize("name", SAME)
def test_edf_score_and_deviance(name):
    f, fit = FITS[name], fitted(name)
    assert fit.edf_total == pytest.approx(f["edf_total"], rel=0.01)
    assert list(fit.edf) == [smooth["label"] for smooth in f["smooth"]]
    for smooth in f["smooth"]:
        assert fit.edf[smooth["label"]] == pytest.approx(smooth["edf"], rel=0.01, abs=0.005)
    if f["smooth"]:  # mgcv minimises the criterion too: ours may be lower, not higher
        near = 0.05 if name in LOOSE else 1e-3 if f["method"] != "GCV.Cp" else 1e-5
        assert fit.score == pytest.approx(f["score"], abs=near)
    assert fit.deviance == pytest.approx(f["deviance"], rel=2e-3)
    assert fit.null_deviance == pytest.approx(f["null_deviance"], rel=1e-6)
    assert fit.deviance_explained == pytest.approx(f["dev_explained"], abs=1e-3)
    assert fit.scale == pytest.approx(f["scale"], rel=2e-3)
    assert fit.residual_df == pytest.approx(fit.n - f["edf_total"], rel=1e-3)


@pytest.mark.parametrize("name", [name for name in SAME if name not in ROUNDED])
def test_likelihood_and_aic(name):
    f, fit = FITS[name], fitted(name)
    assert fit.loglik == pytest.approx(f["loglik"], abs=0.05)
    assert fit.aic == pytest.approx(f["aic"], abs=0.1)
    assert fit.bic == pytest.approx(f["bic"], abs=0.3)


@pytest.mark.parametrize("name", [name for name in SAME if FITS[name]["se_unconditional"] is not None])
def test_unconditional_standard_errors(name):
    f, fit = FITS[name], fitted(name)
    _, se = fit.predict(unconditional=True)
    assert rms(se[np.array(f["rows"])] / np.array(f["se_unconditional"]) - 1.0) < 0.01


@pytest.mark.parametrize("name", SAME)
def test_effects_of_each_term(name):
    f, fit = FITS[name], fitted(name)
    effect, error = fit.predict(kind="terms")
    rows = np.array(f["effect_rows"])
    if "no_intercept" in name:
        f = {**f, "effects": [e for e in f["effects"] if e["label"].startswith("s(")]}
    assert list(effect)[: len(f["effects"])] == [e["label"] for e in f["effects"]] or {*effect} == {
        e["label"] for e in f["effects"]
    }
    for theirs in f["effects"]:
        se = np.array(theirs["se"])
        scale = np.maximum(se, 0.2 * se.max())  # se is zero where a centred line crosses
        assert rms((effect[theirs["label"]][rows] - np.array(theirs["fit"])) / scale) < 0.02 * times(name)
        assert rms((error[theirs["label"]][rows] - se) / scale) < 0.01 * times(name)


@pytest.mark.parametrize("name", SAME)
def test_p_values(name):
    f, fit = FITS[name], fitted(name)
    for theirs in f["smooth"]:
        test = fit.tests[theirs["label"]]
        # the rank of a random effect's test counts eigenvalues above rounding error
        assert test.df == pytest.approx(theirs["ref_df"], rel=0.01, abs=2.0 if theirs["null_dim"] == 0 else 0.01)
        ours = test.statistic if fit.smoothed.scale_known else test.statistic / theirs["ref_df"]
        assert ours == pytest.approx(theirs["statistic"], rel=0.02, abs=0.01)
        if theirs["p_value"] > 1e-4:  # mgcv's tail has an absolute error of 2e-5
            close = abs(math.log(test.p / theirs["p_value"])) < 0.03
            assert close or abs(test.p - theirs["p_value"]) < 5e-5, (test.p, theirs["p_value"])
        else:
            assert test.p < 2e-4


@pytest.mark.parametrize("name", SAME)
def test_parametric_coefficients(name):
    from unnorm.engine.gam_summary import parametric

    f, table = FITS[name], parametric(fitted(name))
    assert table["name"].tolist() == [row["label"] for row in f["parametric"]]
    for i, theirs in enumerate(f["parametric"]):
        assert table["estimate"][i] == pytest.approx(theirs["estimate"], abs=0.02 * theirs["se"] * times(name))
        assert table["se"][i] == pytest.approx(theirs["se"], rel=0.01 * times(name))
        if theirs["p_value"] > 1e-6 and name not in LOOSE:
            assert math.log(table["p"][i]) == pytest.approx(math.log(theirs["p_value"]), abs=0.06)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, f in FITS.items()
        if f["score_at"] and name.split("-")[0] in ("multi", "te", "by_factor", "weights")
    ],
)
def test_the_criterion_at_other_smoothing_parameters(name):
    f = FITS[name]
    knots = {key: np.asarray(value, dtype=float) for key, value in f["knots"].items()} if f["knots"] else None
    for theirs in f["score_at"]:
        fit = un.gam(
            f["formula"], data(f["data"]), family=f["family"], method=METHOD[f["method"]], knots=knots,
            weights=f["weights"], offset=f["offset"], sp=theirs["sp"],
        )  # fmt: skip
        assert fit.edf_total == pytest.approx(theirs["edf"], rel=3e-3)
        assert fit.deviance == pytest.approx(theirs["deviance"], rel=1e-4)


@pytest.mark.parametrize("name", sorted(LOCAL - ROUNDED))
def test_where_mgcv_is_not_at_the_minimum(name):
    """The criteria are the same function, and ours is lower."""
    f, fit = FITS[name], fitted(name)
    knots = {key: np.asarray(value, dtype=float) for key, value in f["knots"].items()} if f["knots"] else None
    there = un.gam(
        f["formula"], data(f["data"]), family=f["family"], method=METHOD[f["method"]], knots=knots, sp=f["sp"]
    )
    if f["method"] == "ML":  # at fixed λ every method reports its criterion, but for GCV
        assert there.score == pytest.approx(f["score"], abs=1e-3)
    assert fit.converged
    assert fit.score < f["score"] - (0.05 if f["method"] == "ML" else 0.003)


def test_where_mgcv_is_not_at_the_minimum_with_weights():
    from gam_dense_reference import Dense
    from gam_dense_reference import fit as dense_fit

    name = "both-binomial-REML"
    f, fit = FITS[name], fitted(name)
    assert fit.score < f["score"] - 0.05
    dense = Dense(fit.terms, fit.columns)
    for sp, score in ((f["sp"], f["score"]), (list(fit.sp.values()), fit.score)):
        again = dense_fit(dense, fit.y, "binomial", fit.weights, fit.offset, sp=sp)
        # mgcv's saturated likelihood rounds the weights: its constant differs, its differences do not
        assert again.score - score == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("theirs", CHECKS["checks"], ids=lambda c: c["formula"])
def test_checks_and_residuals(theirs):
    knots = {name: values for name, values in theirs["knots"].items() if name in theirs["formula"]}
    fit = un.gam(theirs["formula"], data("rows"), family=theirs["family"], knots=knots)
    for kind, values in theirs["residuals"].items():
        np.testing.assert_allclose(fit.residuals(kind)[:20], values, rtol=2e-3, atol=2e-3)
    check = fit.check()
    assert check.basis["term"].tolist() == theirs["terms"]
    assert check.basis["k"].tolist() == theirs["size"]
    same = check.basis["term"] != "te(x1,x3)"  # whose x3 is no share of its range: mgcv's neighbours depend on units
    index, p = (np.array(theirs[name])[same] for name in ("k_index", "k_p"))
    np.testing.assert_allclose(check.basis["k_index"][same], index, rtol=0.02)  # neighbours are often tied
    np.testing.assert_allclose(check.basis["p"][same], p, atol=0.09)  # 400 permutations each
    assert check.concurvity["term"].tolist() == ["parametric", *theirs["concurvity_terms"][1:]]
    for measure in ("worst", "observed", "estimate"):
        np.testing.assert_allclose(check.concurvity[measure], theirs[measure], atol=2e-3)
    assert "k-index" in str(check)


@pytest.mark.parametrize("theirs", CHECKS["pairs"], ids=lambda c: c["large"])
def test_comparison_of_nested_models(theirs):
    circle = {"ang": (-3.141593, 3.141593)}
    small, large = (
        un.gam(f, data("rows"), family=theirs["family"], knots=circle if "ang" in f else None)
        for f in (theirs["small"], theirs["large"])
    )
    for got in (large.compare(small), small.compare(large)):
        np.testing.assert_allclose(got.table["residual_df"], theirs["residual_df"], rtol=1e-3)
        np.testing.assert_allclose(got.table["deviance"], theirs["deviance"], rtol=1e-3)
        np.testing.assert_allclose(got.table["aic"], theirs["aic"], atol=0.1)
        assert got.df == pytest.approx(theirs["df"], rel=0.02)
        assert got.statistic == pytest.approx(theirs["statistic"], rel=0.02)
        assert math.log(got.p) == pytest.approx(math.log(theirs["p"]), rel=0.02, abs=0.02)
        assert got.aic_difference == pytest.approx(theirs["aic"][1] - theirs["aic"][0], abs=0.1)


def test_two_gaussian_fits_are_compared_by_mgcvs_f():
    """`anova(a, b, test="F")`: the scale and the residual degrees of freedom are those of the larger model."""
    small, large = (un.gam(formula, data("rows")) for formula in ("y ~ s(x1)", "y ~ s(x1) + s(x2)"))
    found = large.compare(small)
    assert found.df == pytest.approx(6.54886114, rel=1e-5)
    assert found.statistic == pytest.approx(8.08881081, rel=1e-5)
    assert found.p == pytest.approx(2.12983346e-08, rel=1e-4)
