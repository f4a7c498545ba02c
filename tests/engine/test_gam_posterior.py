"""Matrices, parts, draws, derivatives and differences of a `Gam`, against mgcv's lpmatrix and against each other."""

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unnorm as un
from unnorm.errors import CombinationError, DataError, InputError

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


@pytest.mark.parametrize("bs", ["cr", "tp"])
def test_derivatives_where_the_covariate_is_skewed(bs):
    """A share of the range steps over many knots of the dense part: it was up to 70 standard errors off, and 20,000 for
    the second derivative."""
    rng = np.random.default_rng(2)
    x = np.exp((2.0 if bs == "tp" else 3.0) * rng.standard_normal(1000))
    fit = un.gam(f"y ~ s(x, k=20, bs={bs!r})", {"x": x, "y": np.sin(3 * np.log(x)) + 0.1 * rng.standard_normal(1000)})
    at = np.quantile(x, [0.25, 0.4, 0.5, 0.75, 0.9])
    for order, h, close_to in ((1, 1e-5 * at, 1e-3), (2, 1e-3 * at, 0.03)):
        found = fit.derivative("s(x)", at=at, order=order)
        before, here, after = (fit.predict({"x": at + by}, se=False) for by in (-h, 0.0, h))
        local = (after - before) / (2 * h) if order == 1 else (after - 2 * here + before) / h**2
        assert np.abs((found["estimate"] - local) / found["se"]).max() < close_to


@pytest.mark.parametrize("bs", ["ps", "ad"])
def test_the_second_derivative_of_p_splines_at_the_ends_is_that_inside(bs):
    """They are straight beyond the data: half of each difference saw that, and estimate and se were .6 of what they
    are."""
    rng = np.random.default_rng(0)
    x = np.exp(rng.standard_normal(150))
    fit = un.gam(f"y ~ s(x, k=15, bs={bs!r})", {"x": x, "y": np.sin(x) + 0.1 * rng.standard_normal(150)})
    ends, inwards = np.array([x.min(), x.max()]), np.array([1e-4, -1e-4]) * np.ptp(x)
    f = [fit.predict({"x": ends + k * inwards}, kind="matrix") for k in range(4)]
    C = (2 * f[0] - 5 * f[1] + 4 * f[2] - f[3]) / inwards[:, None] ** 2
    se = np.sqrt(np.einsum("ij,jk,ik->i", C, fit.covariance, C))
    found = fit.derivative("s(x)", at=ends, order=2)
    np.testing.assert_allclose(found["se"], se, rtol=1e-3)
    np.testing.assert_allclose(found["estimate"], C @ list(fit.coefficients.values()), atol=1e-3 * se.min())


def test_second_derivatives_at_the_ends_where_levels_are_many():
    rng = np.random.default_rng(0)
    table = {"x": np.exp(rng.standard_normal(900)), "g": np.array([f"l{i}" for i in rng.integers(0, 150, 900)])}
    table["y"] = np.sin(table["x"]) + 0.1 * rng.standard_normal(900)
    fit = un.gam("y ~ s(x, g, bs='fs', xt='ps', k=6)", table)
    assert fit.smoothed.wide
    x = table["x"]
    ends, inwards = np.array([x.min(), x.max()]), np.array([1e-4, -1e-4]) * np.ptp(x)
    f = [fit.predict({"x": ends + k * inwards, "g": ["l3", "l3"]}, kind="matrix") for k in range(4)]
    C = (2 * f[0] - 5 * f[1] + 4 * f[2] - f[3]) / inwards[:, None] ** 2
    found = fit.derivative("s(x,g)", at={"x": ends, "g": ["l3", "l3"]}, order=2)
    np.testing.assert_allclose(found["se"], np.sqrt(np.einsum("ij,jk,ik->i", C, fit.covariance, C)), rtol=1e-3)
    np.testing.assert_allclose(found["estimate"], C @ list(fit.coefficients.values()), atol=1e-3 * found["se"].min())


def test_derivatives_far_from_zero():
    """Steps are taken as rounding leaves them: it was half a per cent off."""
    rng = np.random.default_rng(2)
    x = rng.random(300)
    y = np.sin(6 * x) + 0.1 * rng.standard_normal(300)
    near, far = (
        un.gam("y ~ s(x)", {"x": x + by, "y": y}).derivative("s(x)", [by + 0.2, by + 0.5]) for by in (0.0, 1e9)
    )
    np.testing.assert_allclose(far["estimate"], near["estimate"], rtol=1e-5)
    np.testing.assert_allclose(far["se"], near["se"], rtol=1e-5)


def test_second_derivatives_far_from_zero():
    rng = np.random.default_rng(4)
    x, at, far = rng.integers(0, 2**20, 300) / 2**20, np.arange(1, 50) / 64, 2.0**30  # whose sums are exact
    y = np.sin(5 * x) + 0.1 * rng.standard_normal(300)
    here, there = (
        un.gam("y ~ s(x, bs='cr')", {"x": x + by, "y": y}, sp=[0.1]).derivative("s(x)", at + by, order=2)["estimate"]
        for by in (0.0, far)
    )
    np.testing.assert_allclose(there, here, atol=1e-5 * np.abs(here).max())


def test_second_derivatives_at_the_edge_of_the_dense_part():
    """Where values are dense on one side alone, it is that side which says how far a step may go."""
    rng = np.random.default_rng(4)
    x = np.sort(np.concatenate([rng.uniform(0.0, 0.02, 300), rng.uniform(0.02, 10.0, 60)]))
    fit = un.gam("y ~ s(x, bs='cr', k=25)", {"x": x, "y": np.sin(250 * x) * (x < 0.02) + 0.05 * rng.normal(size=360)})
    at, h = x[295:300], 2e-6
    before, here, after = (fit.predict({"x": at + by}, se=False) for by in (-h, 0.0, h))
    found = fit.derivative("s(x)", at=at, order=2)["estimate"]
    np.testing.assert_allclose(found, (after - 2 * here + before) / h**2, rtol=1e-4)


def test_what_has_no_derivative_or_difference_says_so():
    fit = un.gam("y ~ s(x1) + s(x2) + s(g, bs='re')", rows())
    with pytest.raises(CombinationError, match="no numeric covariate"):
        fit.derivative("s(g)")
    with pytest.raises(CombinationError, match="different covariates"):
        fit.difference("s(x1)", "s(x2)")
    with pytest.raises(CombinationError, match="x1 is a parametric term: its slopes are among `coefficients`"):
        fitted("y ~ x1").derivative("x1")


def test_rows_are_for_draws_at_rows_and_an_array_is_no_table():
    fit = fitted("y ~ te(x1, x2, k=3)")
    at = {"x1": [0.2, 0.4], "x2": [0.1, 0.3]}
    for given in ({"data": at}, {"offset": 0.0}):  # once left aside without a word
        with pytest.raises(CombinationError, match="coefficients have none: pass kind='link'"):
            fit.draws(3, **given)
    for ask in (fit.predict, lambda rows: fit.effect("te(x1,x2)", at=rows)):
        with pytest.raises(DataError, match=r"table with the columns 'x1', 'x2'; got an array.*Pass a mapping"):
            ask(np.ones((2, 2)))
        ask(at)


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(4)
    n = 300
    table = {"x": rng.random(n), "g": rng.choice(["a", "b"], n), "days": rng.uniform(1, 3, n)}
    table["y"] = np.sin(6 * table["x"]) + (table["g"] == "b") * table["x"] + 0.3 * rng.normal(size=n)
    return table, un.gam("y ~ g + s(x, by=g) + offset(log(days))", table)


def test_differences_at_rows_of_the_table_compare_both_curves_there(two):
    table, fit = two
    bare = fit.difference("s(x):ga", "s(x):gb", at=table["x"])
    rows = fit.difference("s(x):ga", "s(x):gb", at=table)  # with the rows' own levels
    for name in ("estimate", "se"):
        np.testing.assert_array_equal(rows[name], bare[name])
    with pytest.raises(DataError, match="must hold one of 'a', 'b'"):
        fit.difference("s(x):ga", "s(x):gb", at={"x": [0.5], "g": ["c"]})


def test_an_offset_counts_at_the_fitted_rows_too(two):
    table, fit = two
    known = np.log(table["days"])
    eta = fit.predict(se=False)
    np.testing.assert_allclose(fit.predict(se=False, offset=0.0), eta - known, atol=1e-3)
    np.testing.assert_allclose(fit.predict(offset=2 * known).estimate, eta + known, atol=1e-3)
    drawn = [fit.draws(3, kind="link", offset=one, rng=1) for one in (None, 0.0)]
    np.testing.assert_allclose(drawn[0] - drawn[1], np.tile(known, (3, 1)), atol=1e-10)
    with pytest.raises(InputError, match="a number or an array"):
        fit.predict(offset="days")


def test_terms_and_the_matrix_need_no_offset(two):
    table, fit = two
    new = {name: table[name][:4] for name in ("x", "g")}
    assert fit.predict(new, kind="matrix").shape == (4, fit.smoothed.size)
    assert set(fit.predict(new, kind="terms", se=False)) == {"g", "s(x):ga", "s(x):gb"}
    with pytest.raises(DataError, match="days"):
        fit.predict(new)


def test_labels_that_differ_in_a_blank_are_two(two):
    table, _ = two
    fit = un.gam("y ~ s('a b', k=5) + s(ab, k=5)", {"a b": table["x"], "ab": table["days"], "y": table["y"]})
    for label in ("s(a b)", "s(ab)"):
        X = fit.predict(kind="matrix", exclude=label)
        assert not X[:, fit.index(label)].any()
        assert fit.term(label).label == label
        assert (X != 0).any(axis=0).sum() == fit.smoothed.size - fit.index(label).size


def test_what_is_no_label_level_or_fit_is_refused(two):
    _, fit = two
    refused = (
        lambda: fit.predict(terms=3),
        lambda: fit.effect(3),
        lambda: fit.plot(3),
        lambda: fit.plot(["g", 3]),
        lambda: fit.effect("g", level="a"),
        lambda: fit.appraise(level="a"),
        lambda: fit.compare(3),
    )
    for one in refused:
        with pytest.raises(InputError):
            one()
    with pytest.raises(DataError, match="must hold numbers"):
        fit.derivative("s(x):ga", at="here")


def test_soap_films_have_derivatives():
    rng = np.random.default_rng(1)
    x, z = rng.uniform(0, 2, 400), rng.uniform(0, 1, 400)
    table = {"x": x, "z": z, "y": x**2 + np.sin(3 * z) + 0.05 * rng.normal(size=400)}
    square = [(0, 0), (2, 0), (2, 1), (0, 1)]
    fit = un.gam(un.s("x", "z", bs="so", k=8, xt={"boundary": [square], "grid": 60}), table, response="y")
    at = {"x": np.linspace(0.6, 1.4, 33), "z": np.full(33, 0.5)}
    first, second = (fit.derivative("s(x,z)", at=at, of="x", order=order) for order in (1, 2))
    assert np.abs(first["estimate"] - 2 * at["x"]).max() < 0.1
    assert (np.abs(second["estimate"] - 2.0) < 3 * second["se"]).all()  # 0 ± 0 between the nodes
    assert second["se"].max() < 2.0


def test_metropolis_draws_need_every_row(two):
    _, fit = two
    with pytest.raises(CombinationError, match="likelihood of every row"):
        replace(fit, whole=10 * fit.n).draws(5, method="metropolis")


def test_draws_of_one_smooth(two):
    table, fit = two
    new = {"x": table["x"][:5], "g": table["g"][:5]}
    label = "s(x):ga"
    drawn = fit.draws(200, new, kind="link", terms=label, offset=0.0, rng=1)
    beta, index = fit.draws(200, rng=1), fit.index(label)
    np.testing.assert_allclose(drawn, beta[:, index] @ fit.predict(new, kind="matrix")[:, index].T, atol=1e-12)
    rest = fit.draws(200, new, kind="link", exclude=label, offset=0.0, rng=1)
    np.testing.assert_allclose(drawn + rest, fit.draws(200, new, kind="link", offset=0.0, rng=1), atol=1e-12)
    assert fit.draws(3, {"g": ["a"]}, kind="link", terms=["g", "(Intercept)"], offset=0.0).shape == (3, 1)
    with pytest.raises(CombinationError, match="kind='link'"):
        fit.draws(3, terms=label)
    with pytest.raises(InputError, match="terms="):
        fit.draws(3, kind="link", terms="s(w)")


def test_draws_of_one_smooth_of_many_levels():
    rng = np.random.default_rng(1)
    n = 4000
    table = {"g": np.array([f"i{k % 800}" for k in range(n)]), "x": rng.random(n), "y": rng.normal(size=n)}
    fit = un.gam("y ~ s(x) + s(g, bs='re')", table)
    assert fit.smoothed.wide
    new = {"x": np.linspace(0.1, 0.9, 4)}
    drawn = fit.draws(50, new, kind="link", terms="s(x)", rng=1)
    beta = fit.draws(50, rng=1)[:, fit.index("s(x)")]
    np.testing.assert_allclose(drawn, beta @ fit.term("s(x)").design(new).T, atol=1e-10)


def test_a_difference_takes_both_curves_times_their_own_by():
    rng = np.random.default_rng(4)
    table = {"x": rng.uniform(size=200), "v": rng.uniform(1, 2, 200), "w": rng.uniform(1, 2, 200)}
    table["y"] = table["v"] * np.sin(6 * table["x"]) + table["w"] * table["x"] + 0.2 * rng.normal(size=200)
    fit = un.gam("y ~ s(x, by=v, k=6) + s(x, by=w, k=6)", table)
    some = {name: column[:9] for name, column in table.items()}
    terms = fit.predict(some, kind="terms", se=False)
    between = fit.difference("s(x):v", "s(x):w", at=some)
    assert between["estimate"] == pytest.approx(terms["s(x):v"] - terms["s(x):w"])
    back = fit.difference("s(x):w", "s(x):v", at=some)
    assert back["estimate"] == pytest.approx(-between["estimate"])
    assert back["se"] == pytest.approx(between["se"])


def test_blanks_of_a_label_do_not_count():
    x = np.linspace(0.0, 1.0, 60)
    fit = un.gam("y ~ s(log(x+1), k=5)", {"x": x, "y": np.sin(5 * x)})
    (label,) = fit.edf
    written = "s(log(x+1))"
    assert label != written
    assert fit.effect(written)["estimate"] == pytest.approx(fit.effect(label)["estimate"])
    assert fit.index(written).tolist() == fit.index(label).tolist()
    with pytest.raises(InputError, match="label"):
        fit.index("s(x)")


def test_weights_of_one_are_no_weights():
    x = np.linspace(0.0, 1.0, 60)
    table = {"x": x, "y": np.sin(5 * x) + 0.1 * np.cos(99 * x)}
    line, curve = un.gam("y ~ x", table), un.gam("y ~ s(x)", table, weights=np.ones(60))
    assert line.compare(curve).p == pytest.approx(line.compare(un.gam("y ~ s(x)", table)).p, rel=1e-6)
    with pytest.raises(CombinationError, match="these weights differ"):
        line.compare(un.gam("y ~ s(x)", table, weights=1.0 + x))
    with pytest.raises(CombinationError, match="these responses differ"):
        line.compare(un.gam("y ~ s(x)", {**table, "y": 2.0 * table["y"]}))


@pytest.mark.parametrize("levels", [0, 300])
def test_simultaneous_bands_of_films_hold_inside_their_boundary(levels):
    rng = np.random.default_rng(3)
    n = 2000 if levels else 300
    lake = un.Window([(0, 0), (4, 0), (4, 1.4), (1, 1.5), (4, 1.6), (4, 3), (0, 3)])
    x, y = lake.uniform(n, rng).T
    side = rng.choice(["a", "b"], n)
    table = {"x": x, "y": y, "side": side, "z": x * (side == "a") + 0.3 * rng.normal(size=n)}
    film = un.s("x", "y", bs="so", k=6, xt={"boundary": lake}, by="side") + un.factor("side")
    if levels:
        film, table["g"] = film + un.s("g", bs="re"), np.arange(n) % levels
        table["g"] = np.array([f"g{one}" for one in table["g"]])
    fit = un.gam(film, table, response="z")
    assert fit.smoothed.wide == bool(levels)
    a, b = "s(x,y):sidea", "s(x,y):sideb"
    for band in (
        lambda **how: fit.effect(a, **how),
        lambda **how: fit.derivative(a, of="y", **how),
        lambda **how: fit.difference(a, b, **how),
    ):
        pointwise, whole = band(), band(simultaneous=True)
        inside = np.isfinite(pointwise["estimate"])
        assert 0.5 < inside.mean() < 1.0
        assert np.array_equal(np.isfinite(whole["upper"]), inside)
        some = inside & (whole["se"] > 0)
        width = ((whole["upper"] - whole["estimate"])[some] / whole["se"][some]).min()
        assert 2.5 < width < 5.0


@pytest.mark.parametrize("method", ["gaussian", "metropolis"])
@pytest.mark.parametrize("units", [(0.0, 1.0, 1.0), (1.6e9, 3e7, 1.0), (0.0, 1e-9, 1e9)], ids=["plain", "dates", "far"])
def test_draws_do_not_depend_on_the_covariates_units(units, method):
    start, second, other = units
    rng = np.random.default_rng(9)
    x, t, z = rng.random((3, 200))
    table = {"x": x, "t": start + second * t, "z": other * z, "y": np.sin(6 * x) + t + z + 0.3 * rng.normal(size=200)}
    fit = un.gam("y ~ s(x, k=6) + t + z", table)
    some = {name: column[:5] for name, column in table.items()}
    eta, se = fit.predict(some)
    drawn = fit.draws(3000, some, kind="link", unconditional=False, rng=1, method=method)
    np.testing.assert_allclose(drawn.mean(axis=0), eta, atol=0.12 * se.max())
    np.testing.assert_allclose(drawn.std(axis=0), se, rtol=0.1)


def test_bands_are_as_wide_as_their_level(two):
    _, fit = two
    for band in (
        fit.difference("s(x):ga", "s(x):gb", level=0.9),
        fit.derivative("s(x):ga", level=0.9),
        fit.effect("s(x):ga", level=0.9),
    ):
        np.testing.assert_allclose(band["upper"] - band["estimate"], 1.644853627 * band["se"], rtol=1e-8, atol=1e-14)
        np.testing.assert_allclose(band["estimate"] - band["lower"], 1.644853627 * band["se"], rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pd.Index, lambda at: pd.Series(at, name="q")])
def test_points_of_one_covariate_may_be_any_array(kind):
    """A pandas Series was taken for a table without columns."""
    fit = fitted("y ~ s(x1) + g")
    for ask in (fit.effect, fit.derivative):
        np.testing.assert_array_equal(
            ask("s(x1)", at=kind([0.2, 0.4]))["estimate"], ask("s(x1)", at=[0.2, 0.4])["estimate"]
        )
    assert fit.effect("g", at=kind(["a", "b"]))["estimate"].shape == (2,)


def test_labels_of_arithmetic_as_they_were_written():
    fit = fitted("y ~ s(x1^2, k=5) + I(x2 ^ 2)")
    for written, label in (("s(x1^2)", "s(x1 ** 2)"), ("I(x2^2)", "x2 ** 2"), ("I(x2 ** 2)", "x2 ** 2")):
        assert fit.term(written) is fit.term(label)
        np.testing.assert_array_equal(fit.predict(terms=written)[0], fit.predict(terms=label)[0])
