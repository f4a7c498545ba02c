"""Random effects and `by` in tensor products, factor-smooths of any basis and several factors; against mgcv."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unnorm as un
from unnorm.errors import TermError

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
MADE = json.loads((HERE / "factors.json").read_text())
FITS, TWOS = MADE["fits"], MADE["t2"]
DATA = pd.read_csv(HERE / "fits_rows.csv")
DATA["h"] = np.where(DATA["x3"] < 0, "low", "high")
CIRCLE = (-3.141593, 3.141593)


@pytest.mark.parametrize("one", FITS, ids=lambda one: one["formula"])
def test_against_mgcv(one):
    fit = un.gam(one["formula"], DATA, one["family"], knots={"ang": CIRCLE} if "ang" in one["formula"] else None)
    eta, se = fit.predict(DATA)
    at = np.array(one["rows"], int)
    assert np.abs((eta[at] - one["eta"]) / one["se"]).max() < 0.005
    np.testing.assert_allclose(se[at], one["se"], rtol=5e-3)
    assert fit.score == pytest.approx(one["score"], abs=1e-3)
    assert fit.edf_total == pytest.approx(one["edf_total"], abs=0.03)


def test_a_curve_for_each_combination_is_a_curve_for_each_level_of_the_product():
    table = DATA.assign(gh=DATA["g"] + DATA["h"])
    both = un.gam("y ~ s(x1, g, h, bs='fs', k=5)", table)
    one = un.gam("y ~ s(x1, gh, bs='fs', k=5)", table)
    np.testing.assert_allclose(both.linear_predictor, one.linear_predictor, atol=1e-4)
    assert both.score == pytest.approx(one.score, abs=1e-3)


def test_the_terms_are_read_back_and_saved(tmp_path):
    for formula in ("y ~ te(x1, g, bs=('cr', 're'))", "y ~ s(x1, g, h, bs='fs', xt='cr', k=4)"):
        fit = un.gam(formula, DATA)
        assert un.gam(fit.formula, DATA).score == fit.score
        fit.save(tmp_path / "fit")
        np.testing.assert_array_equal(un.load(tmp_path / "fit").predict(DATA).se, fit.predict(DATA).se)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("y ~ te(x1, lin, bs=('cr', 're'))", "must be a factor"),
        ("y ~ te(x1, g, h, bs=('cr', 're', 're'))", "one margin with bs='re'"),
        ("y ~ t2(x1, g, bs=('cr', 're'))", "t2() takes no margin with bs='re'. Use te"),
        ("y ~ te(x1, g, bs=('cr', 're'), by=z)", "no by="),
        ("y ~ s(x1, g, bs='fs', xt='mrf')", "basis of its curves"),
        ("y ~ s(x1, g, bs='fs', xt='ad', k=20)", "one penalty"),
        ("y ~ s(x1, x2, bs='fs')", "no factor"),
        ("y ~ s(x1, g, bs='fs', xt='sos')", "takes 2 numeric covariate(s)"),
        ("y ~ s(x1, x2, g, bs='fs', xt='cr')", "takes 1 numeric covariate(s)"),
        ("y ~ s(x1, x2, lin, z, g, bs='fs')", "takes 1 to 3 numeric covariate(s)"),
        ("y ~ te(x1, x2, bs='sos')", "a margin of 1 covariate must be"),
    ],
)
def test_errors(formula, says):
    with pytest.raises(TermError) as caught:
        un.gam(formula, DATA)
    assert says in str(caught.value)


@pytest.mark.parametrize("one", TWOS, ids=lambda one: one["formula"])
def test_t2_against_mgcv(one):
    fit = un.gam(one["formula"], DATA, one["family"], knots={"ang": CIRCLE} if "ang" in one["formula"] else None)
    eta, se = fit.predict(DATA)
    at = np.array(one["rows"], int)
    # cubic margins leave two functions alone, whose scaling in mgcv depends on the rotation that rounding gave them
    loose = 15.0 if "bs=" not in one["formula"] else 1.0
    assert np.abs((eta[at] - one["eta"]) / one["se"]).max() < 0.005 * loose
    np.testing.assert_allclose(se[at], one["se"], rtol=5e-3 * loose)
    assert fit.edf_total == pytest.approx(one["edf_total"], abs=0.03 * loose)


def test_the_parts_of_t2_add_up_and_do_not_overlap():
    fit = un.gam("y ~ t2(x1, x2, k=(5, 6))", DATA)
    (term,) = fit.terms
    assert [p.rank for p in term.penalties] == [12, 8, 6]  # 3 × 4, 2 × 4, 3 × 2 …
    assert term.null_dim == 3
    assert str(un.t2("x", "z", bs=("cr", "cc"))) == "t2(x, z, bs=('cr', 'cc'))"
    assert fit.formula == "y ~ t2(x1, x2, k=(5, 6))"
