"""Negative binomial, quasi-Poisson, probit and cloglog: mgcv's figures (tests/oracles/mgcv) and closed forms."""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import unnorm as un
from unnorm._base.cached import njit
from unnorm.engine.links import CLOGLOG, PROBIT
from unnorm.engine.links import binary_row as compiled_row
from unnorm.engine.response import FAMILIES, response
from unnorm.errors import CombinationError, DataError, InputError

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
MADE = json.loads((HERE / "families.json").read_text())
FITS = MADE["fits"]


@cache
def data(name):
    if name == "quine":
        return pd.read_csv(HERE / "families_quine.csv")
    return pd.concat([pd.read_csv(HERE / "fits_rows.csv"), pd.read_csv(HERE / "families_rows.csv")], axis=1)


@cache
def fitted(k):
    one = FITS[k]
    return un.gam(one["formula"], data(one["data"]), one["family"], link=one["link"], weights=one["weights"])


@pytest.mark.parametrize("k", range(len(FITS)), ids=lambda k: f"{FITS[k]['family']} {FITS[k]['formula']}")
def test_against_mgcv(k):
    one, fit = FITS[k], fitted(k)
    at, se = np.array(one["rows"], int), np.array(one["se"])
    eta, error = fit.predict()
    assert np.abs((eta[at] - one["eta"]) / se).max() < 0.005
    np.testing.assert_allclose(error[at], one["se_observed"], rtol=3e-3)
    # mgcv's own errors are of the expected information: near, and the same for quasi-Poisson, whose link is canonical
    np.testing.assert_allclose(error[at], se, rtol=3e-3 if one["family"] == "quasipoisson" else 0.15)
    assert fit.score == pytest.approx(one["score"], abs=1e-3)
    assert fit.deviance == pytest.approx(one["deviance"], rel=1e-4)
    assert fit.null_deviance == pytest.approx(one["null_deviance"], rel=1e-4)
    assert fit.scale == pytest.approx(one["scale"], rel=1e-3)
    assert fit.edf_total == pytest.approx(one["edf_total"], rel=0.02)
    np.testing.assert_allclose(fit.fitted[at], one["mu"], rtol=2e-3)
    for kind, key in (("pearson", "pearson"), ("deviance", "deviances"), ("working", "working")):
        np.testing.assert_allclose(fit.residuals(kind)[at], one[key], atol=5e-3 * np.abs(one[key]).max())
    if one["theta"] is not None:
        assert fit.theta == pytest.approx(one["theta"], rel=2e-3)
    if one["loglik"] is not None:
        assert fit.loglik == pytest.approx(one["loglik"], abs=0.02)
        assert fit.aic == pytest.approx(one["aic"], abs=0.5)  # edf₂ by the observed information
    else:
        assert math.isnan(fit.aic)
        assert "AIC" not in fit.summary()


def test_comparing_negative_binomial_fits_uses_the_likelihood():
    small, large = (un.gam(f, data("rows"), "nb") for f in ("over ~ s(x1)", "over ~ s(x1) + s(x2)"))
    found = small.compare(large)
    np.testing.assert_allclose(found.table["deviance"], MADE["pair"]["deviance"], atol=0.02)
    assert found.p == pytest.approx(MADE["pair"]["p"], abs=0.01)


binary_row = njit(error_model="numpy")(compiled_row.py_func)  # as Python can call it


@pytest.mark.parametrize(("code", "link"), [(PROBIT, "probit"), (CLOGLOG, "cloglog")])
def test_rows_of_other_links(code, link):
    cdf = {"probit": stats.norm.logcdf, "cloglog": lambda v: np.log(-np.expm1(-np.exp(v)))}[link]
    rest = {"probit": lambda v: stats.norm.logcdf(-v), "cloglog": lambda v: -np.exp(v)}[link]
    h = 1e-4
    for y in (0.0, 1.0, 0.3):
        for eta in (-7.9, -6.5, -3.0, -0.4, 0.0, 0.7, 2.5):
            for weight in (1.0, 2.5):
                value, g, w, dw = binary_row(code, y, eta, weight)
                assert value == pytest.approx(weight * (y * cdf(eta) + (1 - y) * rest(eta)), rel=1e-9)
                ahead, behind = (binary_row(code, y, eta + s * h, weight) for s in (1, -1))
                assert g == pytest.approx((ahead[0] - behind[0]) / (2 * h), rel=1e-5, abs=1e-7)
                assert w == pytest.approx(-(ahead[1] - behind[1]) / (2 * h), rel=1e-4, abs=1e-7)
                assert dw == pytest.approx((ahead[2] - behind[2]) / (2 * h), rel=1e-3, abs=1e-6)
    for eta in (-60.0, -36.0, 36.0, 600.0):  # the tails stay finite, and concave
        for y in (0.0, 1.0):
            assert all(map(math.isfinite, binary_row(code, y, eta, 1.0)))
            assert binary_row(code, y, eta, 1.0)[2] >= 0.0
    assert binary_row(PROBIT, 1.0, -36.0, 1.0)[0] == pytest.approx(stats.norm.logcdf(-36.0), rel=1e-6)
    t = math.exp(-7.0)
    q = t / math.expm1(t)
    assert binary_row(CLOGLOG, 1.0, -7.0, 1.0)[2] == pytest.approx(q * (t + q - 1.0), rel=1e-6)


def test_the_curvature_of_probit_far_out():
    """λ(λ + η) there and its slope, with λ = φ/Φ from the scaled complementary error function."""

    def curve(eta):
        ratio = math.sqrt(2.0 / math.pi) / special.erfcx(-eta / math.sqrt(2.0))
        return ratio * (ratio + eta)

    for eta in (-11.9, -12.1, -15.0, -25.0, -34.0, -36.0, -50.0):
        _, _, w, dw = binary_row(PROBIT, 1.0, eta, 1.0)
        assert w == pytest.approx(curve(eta), rel=1e-6)
        assert dw == pytest.approx((curve(eta + 0.01) - curve(eta - 0.01)) / 0.02, rel=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_of_a_family_have_these_slopes(family):
    for link in FAMILIES[family]:
        one = response(family, link, 1.3 if family == "nb" else None)
        eta, h = np.linspace(-2.0, 1.5, 9), 1e-4
        y = np.where(np.arange(9) % 2, 1.0, 0.0) if family == "binomial" else np.arange(9.0)

        def loglik(at, one=one, y=y):  # row by row, up to a constant
            return np.array([-0.5 * float(d) for d in one.unit_deviance(y, one.mean(at))])

        def weight(at, loglik=loglik):
            return -(loglik(at + 1e-3) - 2 * loglik(at) + loglik(at - 1e-3)) / 1e-6

        first, second = one.weight_slopes(y, eta)
        steps = 0.05
        np.testing.assert_allclose(first, (weight(eta + steps) - weight(eta - steps)) / (2 * steps), atol=2e-2)
        curve = (one.weight_slopes(y, eta + h)[0] - one.weight_slopes(y, eta - h)[0]) / (2 * h)
        np.testing.assert_allclose(second, curve, atol=1e-6)
        np.testing.assert_allclose(one.slope(eta), (one.mean(eta + h) - one.mean(eta - h)) / (2 * h), atol=1e-6)


def test_theta_is_the_maximum_and_can_be_given():
    free = un.gam("over ~ s(x1)", data("rows"), "nb")
    for factor in (0.9, 1.1):
        assert un.gam("over ~ s(x1)", data("rows"), "nb", theta=free.theta * factor).score > free.score
    y, mu, theta = free.y, free.fitted, free.theta
    assert free.loglik == pytest.approx(stats.nbinom.logpmf(y, theta, theta / (theta + mu)).sum())
    assert "theta = " in free.summary()


def test_theta_where_the_search_stops_short_of_a_parabola():
    """mgcv's theta of 400 rows of quakes is 24.127; the search's last place is .07 of log theta away."""
    table = pd.read_csv(HERE / "knots_quakes.csv").head(400)
    fit = un.gam("stations ~ te(lat, long) + s(mag, bs='cr')", table, "nb")
    assert fit.theta == pytest.approx(24.127, rel=2e-3)  # it was 24.396, and .0032 nats above


def test_counts_without_overdispersion_are_said_to_be():
    rng = np.random.default_rng(3)
    x = rng.random(400)
    y = stats.binom.rvs(20, 0.3 + 0.2 * np.sin(6 * x), random_state=rng)
    nb = un.gam("y ~ s(x)", {"x": x, "y": y}, "nb")
    poisson = un.gam("y ~ s(x)", {"x": x, "y": y}, "poisson")
    assert any("not overdispersed" in note for note in nb.notes)
    np.testing.assert_allclose(nb.linear_predictor, poisson.linear_predictor, atol=2e-3)


def test_large_tables_start_from_some_of_their_rows():
    rng = np.random.default_rng(4)
    x = rng.random(40_000)
    mu = np.exp(0.5 + np.sin(6 * x))
    table = {
        "x": x,
        "y": rng.negative_binomial(2.0, 2.0 / (2.0 + mu)),
        "z": rng.random(40_000) < stats.norm.cdf(np.sin(6 * x)),
    }
    nb = un.gam("y ~ s(x)", table, "nb")
    assert nb.theta == pytest.approx(2.0, rel=0.06)
    quasi = un.gam("y ~ s(x)", table, "quasipoisson")
    assert quasi.scale == pytest.approx(np.mean((table["y"] - mu) ** 2 / mu), rel=0.03)
    for fit in (nb, quasi):
        assert np.abs(fit.linear_predictor - np.log(mu)).max() < 0.15
    probit = un.gam("z ~ s(x)", table, "binomial", link="probit")
    assert np.abs(probit.linear_predictor - np.sin(6 * x)).max() < 0.15


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"family": "gamma"}, InputError, "'quasipoisson'"),
        ({"family": "poisson", "link": "probit"}, InputError, "'log'"),
        ({"family": "binomial", "theta": 2.0}, CombinationError, "family='nb'"),
        ({"family": "nb", "theta": -2.0}, InputError, "positive"),
        ({"family": "nb", "method": "GCV"}, CombinationError, "pass theta="),
        ({"family": "quasipoisson", "method": "CV"}, CombinationError, "family='nb'"),
        ({"family": "quasipoisson", "method": "UBRE"}, CombinationError, "GCV"),
    ],
)
def test_what_is_refused(options, error, says):
    with pytest.raises(error) as caught:
        un.gam("over ~ s(x1)", data("rows"), **options)
    assert says in str(caught.value)
    with pytest.raises(DataError, match="negative"):
        un.gam("x3 ~ s(x1)", data("rows"), "nb")


def test_other_criteria_take_the_families_too():
    gcv = un.gam("over ~ s(x1)", data("rows"), "quasipoisson", method="GCV")
    n, left = gcv.n, gcv.n - gcv.edf_total
    assert gcv.score == pytest.approx(n * gcv.deviance / left**2, rel=1e-6)
    ml = un.gam("over ~ s(x1)", data("rows"), "nb", method="ML")
    reml = un.gam("over ~ s(x1)", data("rows"), "nb")
    assert abs(np.log(ml.theta / reml.theta)) < 0.1
    known = un.gam("over ~ s(x1)", data("rows"), "nb", theta=reml.theta, method="CV")
    assert 2 < known.edf["s(x1)"] < 9


@pytest.mark.parametrize(("family", "link", "response"), [
    ("binomial", "probit", "cls"), ("binomial", "cloglog", "any"), ("nb", None, "over"), ("binomial", "logit", "cls"),
])  # fmt: skip
def test_the_criterions_curvature_is_that_of_the_scores(family, link, response):
    options = {"family": family, "link": link, "theta": 1.4 if family == "nb" else None}
    fit = un.gam(f"{response} ~ s(x1, k=8)", data("rows").head(80), **options)
    (sp,) = fit.sp.values()
    h = 0.05
    scores = [
        un.gam(f"{response} ~ s(x1, k=8)", data("rows").head(80), sp=[sp * np.exp(s * h)], **options).score
        for s in (-1, 0, 1)
    ]
    curve = (scores[0] - 2 * scores[1] + scores[2]) / h**2
    assert fit.criterion_hessian[0, 0] == pytest.approx(curve, rel=2e-3)


@pytest.mark.parametrize("theta", [None, 5e5])
def test_theta_of_counts_in_the_millions(theta):
    """Var y = μ (1 + μ/θ): a θ of a million is not infinite where μ is three million."""
    rng = np.random.default_rng(3)
    x = rng.random(300)
    mu = np.exp(15.0 + np.sin(6.0 * x))
    y = rng.poisson(mu * (1.0 if theta is None else rng.gamma(theta, 1.0 / theta, x.size))).astype(float)
    table = {"x": x, "y": y}
    free, counts = un.gam("y ~ s(x, k=25)", table, "nb"), un.gam("y ~ s(x, k=25)", table, "poisson")
    if theta is None:  # at most e¹⁶ it was 20 nats above Poisson's, with errors 1.3 times as large
        assert free.score < counts.score + 0.01
        np.testing.assert_allclose(free.predict()[1], counts.predict()[1], rtol=0.1)
    else:  # "theta is infinite" was said of a variance six times the mean
        assert free.theta == pytest.approx(theta, rel=0.2)
        assert free.notes == ()
        assert free.score < counts.score - 300.0
    for factor in (0.97, 1.03):  # the minimum: Brent's own last place may be .4 of log θ away
        assert un.gam("y ~ s(x, k=25)", table, "nb", theta=free.theta * factor).score > free.score - 1e-3


def test_the_likelihood_of_large_theta():
    y, mu = np.array([0.0, 3.0, 2e6, 1e7]), np.array([0.1, 4.0, 2.1e6, 1e7])
    for theta in (9e3, 1.1e4, 3e6):
        assert response("nb", None, theta).loglik(y, mu, np.ones(4)) == pytest.approx(
            stats.nbinom.logpmf(y, theta, theta / (theta + mu)).sum(), rel=1e-9
        )
    near, poisson = response("nb", None, 1e15), response("poisson")  # 1e15 log 1e15 has lost all digits of log y!
    assert near.loglik(y, mu, np.ones(4)) == pytest.approx(poisson.loglik(y, mu, np.ones(4)), abs=1e-4)
    np.testing.assert_allclose(near.unit_deviance(y, mu), poisson.unit_deviance(y, mu), rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "link"),
    [("binomial", "logit"), ("binomial", "probit"), ("binomial", "cloglog"), ("poisson", None), ("nb", None)],
)
def test_errors_of_means_are_those_of_eta_times_the_slope(family, link):
    rng = np.random.default_rng(12)
    x = rng.uniform(size=200)
    mean = np.exp(np.sin(6 * x))
    y = rng.random(200) < mean / (1 + mean) if family == "binomial" else rng.negative_binomial(2, 2 / (2 + mean))
    fit = un.gam("y ~ s(x, k=6)", {"x": x, "y": y.astype(float)}, family, link=link)
    eta, se = fit.predict()
    mu, error = fit.predict(kind="response")
    slope = (fit.distribution.mean(eta + 1e-5) - fit.distribution.mean(eta - 1e-5)) / 2e-5
    np.testing.assert_allclose(mu, fit.distribution.mean(eta))
    np.testing.assert_allclose(error, se * slope, rtol=1e-6)
