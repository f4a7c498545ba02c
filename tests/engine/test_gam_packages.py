"""`un.gam` against `mgcv::gam` on 45 data sets of R's own packages (tests/oracles/mgcv/packages.R)."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

SAVED = json.loads((Path(__file__).parents[1] / "oracles" / "mgcv" / "packages.json").read_text())
FITS = {f"{fit['data']}: {fit['formula']}": fit for fit in SAVED["fits"]}
# Where the two criteria are not the same function, and why:
OTHER = {
    # mgcv takes an eigenvalue of 1.4e-11 of the largest for zero (eps^.66): its log|S|₊ lacks a factor
    "Boston: medv ~ s(crim, bs='cr', k=20)",
    # mgcv's `cs` leaves it to rounding whether the line or the constant is shrunk more; here it is the constant
    "columb: crime ~ s(income, bs='ts') + s(home_value, bs='cs')",
}
# Where mgcv stops at a local minimum, .04, .4 and 63 nats above ours:
LOCAL = {
    "columb: crime ~ s(income) + s(home_value)",
    "swiss: Fertility ~ s(Catholic, bs='ps') + linear(Education)",
    "lynx: r1 ~ s(t, k=50)",
}
SAME = [name for name in FITS if name not in OTHER | LOCAL]


@cache
def table(name):
    return {column: np.array(values) for column, values in SAVED["tables"][name].items()}


def fitted(fit, **options):
    return un.gam(fit["formula"], table(fit["data"]), family=fit["family"], weights=fit["weights"], **options)


def test_there_are_enough():
    assert len(SAVED["tables"]) >= 30
    assert len(FITS) >= 110


@pytest.mark.parametrize("name", SAME)
def test_same_fit(name):
    f = FITS[name]
    fit = fitted(f)
    rows = np.array(f["rows"])
    eta, se = fit.predict()
    assert fit.converged
    assert np.sqrt(np.mean(((eta[rows] - f["eta"]) / f["se"]) ** 2)) < 0.005
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert fit.edf_total == pytest.approx(f["edf"], rel=2e-3)
    assert np.sqrt(np.mean((se[rows] / f["se"] - 1.0) ** 2)) < 0.005


@pytest.mark.parametrize("name", sorted(LOCAL))
def test_where_mgcv_is_not_at_the_minimum(name):
    f = FITS[name]
    fit, there = fitted(f), fitted(f, sp=f["sp"])
    assert there.score == pytest.approx(f["score"], abs=1e-3)  # the same criterion
    assert fit.converged
    assert fit.score < f["score"] - 0.04


def test_bostons_crime_is_lower_by_both_criteria():
    """mgcv's REML (criteria.R) lacks an eigenvalue of the penalty, and so differs from ours by ½ log λ and a constant;
    but at our smoothing parameter it, too, is lower than where mgcv stopped."""
    made = json.loads((Path(__file__).parents[1] / "oracles" / "mgcv" / "criteria.json").read_text())
    f = FITS["Boston: medv ~ s(crim, bs='cr', k=20)"]
    sp, theirs = np.array(made["sp"]), np.array(made["score"])
    ours = np.array([fitted(f, sp=[one]).score for one in sp])
    finite = sp < 1e3  # beyond, mgcv's determinant of XᵀX + λS loses digits too
    slope = np.polyfit(np.log(sp[finite]), (theirs - ours)[finite], 1)[0]
    assert slope == pytest.approx(0.5, abs=0.01)
    fit = fitted(f)
    assert fit.sp["s(crim)"] == pytest.approx(sp[-1], rel=1e-2)
    stopped = int(np.flatnonzero(sp == made["own"])[0])
    assert ours[-1] < ours[stopped] - 15
    assert theirs[-1] < theirs[stopped] - 9


@pytest.mark.parametrize("name", sorted(OTHER))
def test_where_the_criteria_differ_ours_is_at_its_own_minimum(name):
    f = FITS[name]
    fit, there = fitted(f), fitted(f, sp=f["sp"])
    assert abs(there.score - f["score"]) > 0.05  # at the same smoothing parameters: another function
    assert fit.score < there.score - 0.03
