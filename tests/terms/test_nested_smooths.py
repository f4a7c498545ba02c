"""Nested smooths against mgcv's gam.side: sizes, smoothing, fits (tests/oracles/mgcv/side.R)."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import TermError
from unnorm.terms.parser import parse

ORACLES = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = json.loads((ORACLES / "side.json").read_text())["fits"]
BESIDE = json.loads((ORACLES / "beside.json").read_text())["fits"]


def rows() -> dict[str, np.ndarray]:
    with (ORACLES / "fits_rows.csv").open() as file:
        table = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in table]) for name in ("g",)} | {
        name: np.array([float(row[name]) for row in table]) for name in table[0] if name != "g"
    }


@pytest.mark.parametrize("saved", FITS, ids=lambda f: f["formula"])
def test_nested_smooths_are_mgcvs(saved):
    fit = un.gam(saved["formula"], rows(), family=saved["family"], knots=saved["knots"] or None)
    assert len(fit.coefficients) == saved["size"]
    np.testing.assert_allclose(list(fit.edf.values()), saved["edf"], rtol=0.01, atol=0.01)
    assert fit.score == pytest.approx(saved["reml"], abs=0.02)
    away = (fit.linear_predictor - saved["eta"]) / np.array(saved["se"])
    assert np.sqrt(np.mean(away**2)) < 0.02


def test_functions_of_the_smaller_terms_are_given_up_by_the_larger_whatever_the_order():
    columns = rows()
    one = {t.label: t for t in parse("s(x1, bs='cr') + s(x2, bs='cr') + te(x1, x2)").build(columns)}
    two = {t.label: t for t in parse("te(x1, x2) + s(x2, bs='cr') + s(x1, bs='cr')").build(columns)}
    alone = parse("te(x1, x2)").build(columns)[0]
    for built in (one, two):
        assert built["s(x1)"].size == 9
        assert built["te(x1,x2)"].size < alone.size
        X = np.concatenate([np.ones((240, 1)), *(t.design(columns) for t in built.values())], axis=1)
        assert np.linalg.matrix_rank(X) == X.shape[1]
        full = np.concatenate([np.ones((240, 1)), *(t.design(columns) for t in (alone, one["s(x1)"], one["s(x2)"]))], 1)
        assert np.linalg.matrix_rank(full) == X.shape[1]  # nothing that the model could say is lost


@pytest.mark.parametrize("saved", BESIDE, ids=lambda f: f["formula"])
def test_a_smooth_beside_those_of_levels_keeps_its_functions(saved):
    """As in mgcv, where their penalties tell them apart: the larger of s(x, k=10) + s(x, by=g, k=6) gave up the
    functions of the smaller, and equal ones were refused. Where straight lines are in both, mgcv drops a coefficient
    while it solves, and REML has another constant."""
    fit = un.gam(saved["formula"], rows(), family=saved["family"])
    eta, se = fit.predict()
    assert np.sqrt(np.mean(((eta - saved["eta"]) / saved["se"]) ** 2)) < 0.005
    np.testing.assert_allclose(se, saved["se"], rtol=5e-3)
    assert fit.edf_total == pytest.approx(saved["edf_total"], abs=0.02)
    if saved["told_apart"]:
        assert fit.score == pytest.approx(saved["reml"], abs=1e-3)


@pytest.mark.parametrize("formula", ["s(x1) + s(x1, by=u)", "te(x1, x2) + te(x1, x2, by=u)"])
def test_a_smooth_by_a_factor_of_one_level_is_refused(formula):
    with pytest.raises(TermError, match=r":uone has no function that the other smooths"):
        parse(formula).build({**rows(), "u": np.repeat("one", 240)})


def test_functions_that_two_bases_share_are_found_far_from_zero_too():
    """The straight line of cr and of P-splines: rounding leaves 1e-10 of it at 10⁷ times its range."""
    rng = np.random.default_rng(3)
    columns = {"x": rng.random(300), "g": rng.choice(["a", "b"], 300)}
    near, far = (
        [term.size for term in parse("s(x, k=5, bs='cr') + s(x, by=g, bs='ps')").build(some)]
        for some in (columns, {**columns, "x": columns["x"] + 1e7})
    )
    assert near == far
