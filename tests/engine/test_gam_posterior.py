"""Matrices, parts, draws, derivatives and differences of a `Gam`, against mgcv's lpmatrix and against each other."""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, InputError

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
ORACLE = json.loads((HERE / "posterior.json").read_text())
AT = np.array(ORACLE["at"])


@cache
def rows():
    with (HERE / "fits_rows.csv").open() as file:
        read = list(csv.DictReader(file))
    numbers = {key: np.array([float(row[key]) for row in read]) for key in ("x1", "x2", "x3", "y", "count", "off")}
    return {**numbers, "g": np.array([row["g"] for row in read])}


@cache
def fitted(formula, family="gaussian"):
    return un.gam(formula, rows(), family=family)


def close(found, theirs, rtol=2e-3):
    scale = np.max(theirs["se"])
    np.testing.assert_allclose(found["estimate"], theirs["estimate"], atol=0.01 * scale)
    np.testing.assert_allclose(found["se"], theirs["se"], rtol=rtol)


@pytest.mark.parametrize(("order", "name"), [(1, "first"), (2, "second")])
def test_derivatives_as_mgcv(order, name):
    close(fitted("y ~ s(x1)").derivative("s(x1)", at=AT, order=order), ORACLE[name], 0.01)


def test_difference_of_levels_as_mgcv():
    fit = fitted("count ~ factor(g) + s(x1, by=g, k=6)", "poisson")
    close(fit.difference("s(x1):ga", "s(x1):gc", at=AT), ORACLE["difference"])
    wide = fit.difference("s(x1):ga", "s(x1):gc", at=AT, simultaneous=True)
    narrow = fit.difference("s(x1):ga", "s(x1):gc", at=AT)
    assert np.all(wide["upper"] - wide["lower"] > narrow["upper"] - narrow["lower"])
    back = fit.difference("s(x1):gc", "s(x1):ga", at=AT)
    np.testing.assert_allclose(back["estimate"], -narrow["estimate"])


def test_terms_and_exclude_as_mgcv():
    fit = fitted("y ~ s(x1) + s(x2, bs='cr') + linear(x3)")
    new = {name: rows()[name][:20] for name in ("x1", "x3")}  # x2 is not needed
    for what, options in (("exclude", {"exclude": "s(x2)"}), ("terms", {"terms": ["s(x1)", "x3"]})):
        estimate, se = fit.predict(new, **options)
        np.testing.assert_allclose(estimate, ORACLE[what]["estimate"], atol=1e-3)
        np.testing.assert_allclose(se, ORACLE[what]["se"], rtol=2e-3)
    with pytest.raises(InputError, match=r"exclude= must be one of '\(Intercept\)'"):
        fit.predict(new, exclude="s(x9)")


def test_the_matrix_makes_predictions():
    fit = un.gam("y ~ s(x1) + factor(g)", rows(), offset="off")
    X = fit.predict(rows(), kind="matrix")
    beta = np.array(list(fit.coefficients.values()))
    eta, se = fit.predict(rows())
    np.testing.assert_allclose(X @ beta + rows()["off"], eta)
    np.testing.assert_allclose(np.sqrt(np.einsum("ij,jk,ik->i", X, fit.covariance, X)), se)
    part = fit.predict(rows(), kind="matrix", exclude=["s(x1)", "(Intercept)"])
    assert np.count_nonzero(part.any(axis=0)) == 5  # the factor's columns


def test_draws_have_the_posterior_s_moments():
    fit = fitted("count ~ s(x1)", "poisson")
    beta = fit.draws(20_000, unconditional=False, rng=1)
    np.testing.assert_allclose(
        beta.mean(axis=0), fit.smoothed.beta, atol=5 * np.sqrt(np.diag(fit.covariance) / 2e4).max()
    )
    np.testing.assert_allclose(np.cov(beta.T), fit.covariance, atol=0.05 * np.abs(fit.covariance).max())
    eta = fit.draws(5000, {"x1": AT}, kind="link", rng=2)
    estimate, se = fit.predict({"x1": AT}, unconditional=True)
    np.testing.assert_allclose(eta.mean(axis=0), estimate, atol=5 * se.max() / np.sqrt(5000))
    np.testing.assert_allclose(eta.std(axis=0), se, rtol=0.06)
    np.testing.assert_allclose(fit.draws(5000, {"x1": AT}, kind="response", rng=2), np.exp(eta))
    np.testing.assert_array_equal(fit.draws(3, rng=5), fit.draws(3, rng=5))


def test_derivative_of_a_straight_line():
    x = np.linspace(0, 2, 100)
    fit = un.gam("y ~ s(x, k=5)", {"x": x, "y": 3 * x + 0.01 * np.cos(40 * x)})
    found = fit.derivative("s(x)", at=[0.3, 1.7])
    np.testing.assert_allclose(found["estimate"], 3.0, atol=0.02)
    with pytest.raises(InputError, match="order must be 1 or 2"):
        fit.derivative("s(x)", order=3)


def test_what_has_no_derivative_or_difference_says_so():
    fit = un.gam("y ~ s(x1) + s(x2) + s(g, bs='re')", rows())
    with pytest.raises(CombinationError, match="no numeric covariate"):
        fit.derivative("s(g)")
    with pytest.raises(CombinationError, match="different covariates"):
        fit.difference("s(x1)", "s(x2)")
