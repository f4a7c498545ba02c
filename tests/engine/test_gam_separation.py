"""Maxima at infinity need a certificate; infinite smoothing is compared with finite; bounds are no optima."""

import csv
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import unnorm as un
from unnorm.engine import descent
from unnorm.engine.core import build_design, smooth_fit
from unnorm.engine.criteria import Laplace
from unnorm.engine.descent import converged_at
from unnorm.engine.outer import Clock, Iteration, PenalisedRows
from unnorm.engine.segment import ResponseRows
from unnorm.engine.separation import searched, separating
from unnorm.errors import NoEstimateError, UnnormWarning
from unnorm.terms.parser import parse

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = {f"{fit['set']}: {fit['formula']}": fit for fit in json.loads((HERE / "separation.json").read_text())["fits"]}


@cache
def rows():
    with (HERE / "separation.csv").open() as file:
        return list(csv.DictReader(file))


def data(number):
    mine = [row for row in rows() if int(row["set"]) == number]
    return {
        "g": np.array([row["g"] for row in mine]),
        "x": np.array([float(row["x"]) for row in mine]),
        "sep": np.array([float(row["sep"]) for row in mine]),
    }


@pytest.mark.parametrize("name", FITS)
def test_nearly_separated_rows(name):
    """The criterion is no higher than at mgcv's smoothing parameters, and the criteria are the same function."""
    f = FITS[name]
    fit = un.gam(f["formula"], data(f["set"]), family="binomial")
    theirs = un.gam(f["formula"], data(f["set"]), family="binomial", sp=f["sp"])
    assert theirs.score == pytest.approx(f["score"], abs=1e-3)
    assert fit.score < theirs.score + 1e-3
    assert fit.converged


@pytest.mark.parametrize(("near", "far", "top"), [(3_000, 30_000, 30), (10_000, 60_000, 30)])
def test_rows_far_from_the_data_are_no_separation(near, far, top):
    """|N(0, 1)| against uniform points: η at the far ones is −40 or −400; the estimate exists all the same."""
    rng = np.random.default_rng(0)
    r = np.concatenate([np.abs(rng.normal(size=near)), rng.uniform(0, top, far)])
    y = np.repeat([1.0, 0.0], [near, far])
    fit = un.gam("y ~ s(r, k=10)", {"r": r, "y": y}, family="binomial")
    assert fit.converged
    rho = fit.smoothed.rho[0]
    for shift in (-0.5, 0.5):  # it is a minimum of the criterion
        moved = un.gam("y ~ s(r, k=10)", {"r": r, "y": y}, family="binomial", sp=[float(np.exp(rho + shift))])
        assert moved.score > fit.score - 0.02
    inside = r < 2.5  # log density ratio, up to a constant: −r²/2
    truth = -(r[inside] ** 2) / 2
    eta = fit.linear_predictor[inside]
    assert np.std(eta - truth) < 0.15


def design(text, columns):
    return build_design(parse(text).build(columns), columns)


def test_a_certificate_is_a_direction_that_every_row_agrees_with():
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0])
    d = design("linear(x)", {"x": x})
    up = np.array([0.0, 1.0])
    nothing = np.empty(0)

    def found(y, direction, family="binomial", weights=nothing):
        return separating(d, ResponseRows(np.array(y, float), weights, nothing), family, np.empty(0), [direction])

    assert found([0, 0, 1, 1, 1], up) is not None
    np.testing.assert_allclose(found([1, 1, 0, 0, 0], up), -up / 3)  # the other way round
    assert found([0, 1, 1, 1, 1], up) is None  # one row disagrees
    assert found([0, 1, 1, 1, 1], up, weights=np.array([1.0, 0, 1, 1, 1])) is not None  # and does not count
    assert found([0, 0, 0.5, 1, 1], up) is None  # a proportion lies between
    assert found([0, 0, 0, 0, 0], np.array([-1.0, 0.0]), "poisson") is not None
    assert found([0, 0, 0, 0, 2], np.array([-1.0, 0.0]), "poisson") is None


def test_a_penalty_opposes_its_direction():
    """A step function is separated by wiggly functions, but not by the straight lines that no penalty opposes."""
    rng = np.random.default_rng(1)
    x = rng.random(200)
    y = ((x > 0.3) & (x < 0.6)).astype(float)
    d = design("s(x, k=20)", {"x": x})
    for sp in (1e-6, 1.0):
        assert np.all(np.isfinite(smooth_fit(d, y, sp=[sp]).beta))
    line = (x > 0.5).astype(float)
    with pytest.raises(NoEstimateError, match=r"s\(x\) separates the two classes perfectly on \d+ of 200 rows"):
        smooth_fit(d, line, sp=[1.0])


def test_a_bound_is_not_an_optimum():
    """Wiggly separation: the criterion falls without end as λ → 0. What is reported as converged is a minimum."""
    rng = np.random.default_rng(1)
    x = rng.random(200)
    y = ((x > 0.3) & (x < 0.6)).astype(float)
    d = design("s(x, k=20)", {"x": x})
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", un.errors.UnnormWarning)
        fit = smooth_fit(d, y)
    if fit.converged:
        assert abs(fit.gradient[0]) < 1e-2
    else:
        assert "goes to zero" in fit.reason


@pytest.mark.parametrize("k", [6, 10])
def test_the_bound_moves_where_the_criterion_still_falls(k):
    """A Gaussian walk's steps against uniform points: λ is e⁻²⁵ of what balances penalty and data at the start."""
    rng = np.random.default_rng(3)
    near, far = np.hypot(*rng.normal(scale=12.0, size=(2, 8_000))), 1000 * np.sqrt(rng.random(160_000))
    rows = {"r": np.concatenate([near, far]), "y": np.repeat([1.0, 0.0], [near.size, far.size])}
    fit = un.gam(f"y ~ s(r, k={k})", rows, family="binomial")
    assert fit.converged
    assert abs(fit.smoothed.gradient[0]) < 0.05
    for shift in (-1.0, 1.0):
        moved = un.gam(f"y ~ s(r, k={k})", rows, family="binomial", sp=[float(np.exp(fit.smoothed.rho[0] + shift))])
        assert moved.score > fit.score - 1e-3


SEPARATED = {
    "a level without failures": ("y ~ factor(g) + s(x)", "binomial", lambda x, g, u: np.where(g == "a", 1, u < 0.5)),
    "a level without events": ("y ~ factor(g) + s(x)", "poisson", lambda x, g, u: np.where(g == "a", 0, 5 * u // 1)),
    "functions without a penalty": ("y ~ s(x, fx=True, k=12)", "binomial", lambda x, g, u: (x > 0.3) & (x < 0.6)),
    "one curve": ("y ~ factor(g) + s(x, by=g)", "binomial", lambda x, g, u: np.where(g == "a", x > 0.5, u < 0.5)),
    "a plane": ("y ~ te(x, z)", "binomial", lambda x, g, u: x + u > 1),
}  # fmt: skip


@pytest.mark.parametrize("case", SEPARATED)
def test_a_maximum_at_infinity_is_refused(case):
    """Also where rounding stops the iteration: a mean of 1 to the last digit has no score left."""
    formula, family, response = SEPARATED[case]
    rng = np.random.default_rng(1)
    x, g, u = rng.random(300), np.array(list("abc"))[rng.integers(0, 3, 300)], rng.random(300)
    table = {"x": x, "z": u, "g": g, "y": response(x, g, u).astype(float)}
    with pytest.raises(NoEstimateError, match="does not exist"):
        un.gam(formula, table, family=family)


SEVERAL = {
    "levels, with a slope in each": (
        "y ~ factor(g)*x + s(z, k=5)",
        "binomial",
        lambda g, h, u: np.where((g == "a") | (g == "f"), 0, u < 0.5),
    ),
    "cells without events": (
        "y ~ factor(g) + factor(h) + factor(g):factor(h)",
        "poisson",
        lambda g, h, u: np.where((g == "a") & (h == "p"), 0, 4 * u // 1),
    ),
    "cells of one class": (
        "y ~ factor(g) + factor(h) + factor(g):factor(h)",
        "binomial",
        lambda g, h, u: np.where(h == "p", np.isin(g, ["a", "c"]), u < 0.5),
    ),
}


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("case", SEVERAL)
def test_several_directions_at_once(case, n):
    """Rounding hides them from Newton's steps and from H⁻¹, and such fits were given as converged, se = 10⁶."""
    formula, family, response = SEVERAL[case]
    rng = np.random.default_rng(1)
    x, z, u = rng.random((3, n))
    g, h = np.array(list("abcdef"))[rng.integers(0, 6, n)], np.array(list("pq"))[rng.integers(0, 2, n)]
    table = {"x": x, "z": z, "g": g, "h": h, "y": response(g, h, u).astype(float)}
    with pytest.raises(NoEstimateError, match="does not exist"):
        un.gam(formula, table, family=family)  # pyright: ignore[reportArgumentType]


def test_the_search_for_a_direction_says_the_same_as_the_rows():
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(2, 60))
    d, none = design("linear(x) + linear(z)", {"x": x, "z": z}), np.empty(0)
    oblique = x - 3e3 * z + 0.1 > 0
    assert searched(d, ResponseRows(oblique.astype(float), none, none), "binomial") is not None
    mixed = oblique.copy()
    worst = np.argmax(np.abs(x - 3e3 * z + 0.1))
    mixed[worst] = ~mixed[worst]
    rows = ResponseRows(mixed.astype(float), none, none)
    assert searched(d, rows, "binomial") is None
    weights = np.ones(60)
    weights[worst] = 0.0  # the one row that disagrees does not count
    assert searched(d, ResponseRows(rows.y, weights, none), "binomial") is not None
    between = np.where(np.arange(60) == worst, 0.5, oblique)  # a proportion has a maximum of its own
    assert searched(d, ResponseRows(between, none, none), "binomial") is None
    assert searched(d, ResponseRows(np.zeros(60), none, none), "poisson") is not None
    assert searched(d, ResponseRows(oblique.astype(float), none, none), "poisson") is None


def test_a_direction_that_few_rows_decide_is_found():
    """Among thousands of rows those that decide are not the first that are asked."""
    rng, none = np.random.default_rng(3), np.empty(0)
    x, z = rng.normal(size=(2, 5_000))
    d, margin = design("linear(x) + linear(z)", {"x": x, "z": z}), x - 3 * z + 0.01
    assert searched(d, ResponseRows((margin > 0).astype(float), none, none), "binomial") is not None
    y = (margin > 0).astype(float)
    y[np.argsort(np.abs(margin))[1000]] += 1.0  # one row on the wrong side
    assert searched(d, ResponseRows(y % 2, none, none), "binomial") is None


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_proportions_hold_some_directions_and_leave_others(size):
    """Rows between 0 and 1 (or counts above 0) are held where they are, whatever the units of the columns."""
    rng, none = np.random.default_rng(6), np.empty(0)
    x, z = rng.normal(size=(2, 80))
    x[:40] = 1.0 - z[:40]  # between: on a line, along which no direction moves them
    x[40:] += np.where(np.arange(40) < 10, 6.0, -6.0) - z[40:]
    d = design("linear(x) + linear(z)", {"x": x * size, "z": z})
    rises = x + z > 1.0 + 1e-9
    y = np.where(np.arange(80) < 40, 0.3, rises)
    assert searched(d, ResponseRows(y, none, none), "binomial") is not None
    counts = np.where(np.arange(80) < 40, 3.0, 0.0)
    kept = np.r_[:40, np.flatnonzero(rises)]
    d = design("linear(x) + linear(z)", {"x": x[kept] * size, "z": z[kept]})
    assert searched(d, ResponseRows(counts[kept], none, none), "poisson") is not None


def test_rows_with_a_maximum_of_their_own_leave_some_directions():
    rng, none = np.random.default_rng(4), np.empty(0)
    y = (np.arange(300) % 3).astype(float)
    table = {"x": np.where(y > 0, 0.0, rng.random(300)), "z": rng.normal(size=300)}
    found = searched(design("linear(x) + linear(z)", table), ResponseRows(y, none, none), "poisson")
    assert found is not None
    np.testing.assert_allclose(found / np.abs(found).max(), [0.0, -1.0, 0.0], atol=1e-8)


@pytest.mark.parametrize("short", [5.0, 3.0])
def test_newton_ends_where_its_steps_gain_rounding_alone(short):
    """A short step in a wide window: η is −10⁴ far out, and rounding is worth more nats than what is asked for."""
    rng = np.random.default_rng(1)
    near, far = np.hypot(*rng.normal(scale=short, size=(2, 10_000))), 1000 * np.sqrt(rng.random(100_000))
    r, y = np.concatenate([near, far]), np.repeat([1.0, 0.0], [near.size, far.size])
    d, none = design("s(r, k=10)", {"r": r}), np.empty(0)
    fit = smooth_fit(d, y, threads=1)
    rows = ResponseRows(d.sort(y), none, none)
    run = Iteration(
        PenalisedRows(d, rows, "binomial", 0, 0.0, y.size, np.array([True]), 1, Clock()), Laplace(True), 1e-3
    )
    sweep, passes = run.sweep, []

    def counted(at, tilt):
        passes.append(at)
        return sweep(at, tilt)

    run.sweep = counted
    begun = sweep(d.to_flat(fit.beta), np.zeros(d.size))
    _, here = converged_at(run, begun, fit.rho)
    assert here.value == pytest.approx(fit.score, abs=0.02)
    assert len(passes) < 30
    _, far_off = converged_at(run, begun, fit.rho - 2.0)  # steps that are short of nats, and not near β̂
    assert far_off.value > fit.score


def test_a_penalty_however_small_holds_its_directions():
    rng = np.random.default_rng(1)
    x = rng.random(300)
    table = {"x": x, "y": ((x > 0.3) & (x < 0.6)).astype(float)}
    for sp in (1e-6, 1e-10):
        fit = un.gam("y ~ s(x, k=20)", table, family="binomial", sp=[sp])
        assert np.isfinite(fit.score)
    with pytest.warns(un.errors.UnnormWarning, match="goes to zero"):
        assert not un.gam("y ~ s(x, k=20)", table, family="binomial").converged


def test_a_column_that_is_tiny_at_the_data_is_no_separation() -> None:
    """x of 10⁻⁸ next to x of 1, both classes among the small ones: a maximum with β of 10⁸, which must be found."""
    rng = np.random.default_rng(4)
    near = -(10.0**-8) * rng.chisquare(1, 4000)
    z = (rng.random(4000) < 1 / (1 + np.exp(-(1 + 1e8 * near)))).astype(float)
    x = np.concatenate([near, -rng.uniform(0.1, 1.0, 400)])
    fit = un.gam("z ~ x", {"x": x, "z": np.concatenate([z, np.zeros(400)])}, family="binomial")
    assert abs(fit.coefficients["x"] / 1e8 - 1) < 0.3


class Bowl:
    """½(ρ − c)ᵀQ(ρ − c) in place of the criterion, with β at its best at once."""

    def __init__(self, centre, Q):
        self.centre, self.Q, self.seen = np.array(centre), np.array(Q), []
        self.problem, self.tolerance, self.abandon = SimpleNamespace(free=np.ones(len(centre), bool)), 1e-12, None

    def at(self, run, working, rho):
        self.seen.append(rho.copy())
        d = rho - self.centre
        state = SimpleNamespace(rho=rho)
        return working, SimpleNamespace(
            value=0.5 * float(d @ self.Q @ d), gradient=self.Q @ d, hessian=self.Q, state=state
        )


def test_the_descent_leaves_a_bound_that_it_is_pushed_from_and_stays_at_one_that_it_is_pushed_to(monkeypatch):
    low, high = np.full(4, -2.0), np.full(4, 2.0)
    bowl = Bowl([1.0, 5.0, -1.0, -5.0], np.diag([1.0, 2.0, 1.0, 3.0]))
    monkeypatch.setattr(descent, "converged_at", bowl.at)
    start = np.array([2.0, 2.0, -2.0, -2.0])  # each at a bound: inside it, beyond it, inside, beyond
    _, found, reached, _ = descent.descend(bowl, None, start, (low, high), 50)  # pyright: ignore[reportArgumentType]
    assert reached
    np.testing.assert_allclose(found.state.rho, [1.0, 2.0, -1.0, -2.0], atol=1e-5)


def test_a_step_that_lowers_nothing_is_halved(monkeypatch):
    bowl = Bowl([0.0], [[1.0]])
    _, here = bowl.at(None, None, np.array([-1.0]))
    monkeypatch.setattr(descent, "converged_at", bowl.at)
    step, none = np.array([2.0 + 1e-6]), np.array([-np.inf])
    found = descent._search(bowl, None, here, np.array([0]), step, (none, -none))  # pyright: ignore[reportArgumentType]
    assert found is not None
    assert found[1].state.rho[0] == pytest.approx(0.0, abs=1e-5)  # the whole step ends 2e-6 higher than it began


def test_one_row_among_thousands_is_enough_to_separate():
    rng, none = np.random.default_rng(8), np.empty(0)
    x, z = rng.normal(size=(2, 4_000))
    x[1:] = 0.0  # the intercept and z are told by the others
    y = (rng.random(4_000) < 0.5).astype(float)
    found = searched(design("linear(x) + linear(z)", {"x": x, "z": z}), ResponseRows(y, none, none), "binomial")
    assert found is not None


def test_a_criterion_that_is_some_nats_lower_with_hardly_any_smoothing_is_no_optimum():
    """By 4 to 6 nats here: too few to be sure of a lower minimum, enough not to trust the one that was found."""
    rng = np.random.default_rng(503)
    x, z = rng.normal(size=60), rng.normal(size=60)
    table = {"x": x, "z": z, "b": (x + 0.2 * z + 0.3 * rng.normal(size=60) > 0.1).astype(float)}
    with pytest.warns(UnnormWarning, match="still falls"):
        fit = un.gam("b ~ s(x) + s(z)", table, family="binomial")
    assert not fit.smoothed.converged
    lower = un.gam("b ~ s(x) + s(z)", table, family="binomial", sp=[1e-7, 1e-7]).score
    assert fit.score - 30.0 < lower < fit.score - 3.0


def test_where_every_smoothing_parameter_is_infinite_the_doubt_is_said_too():
    """Nearly separated rows whose straight line is a minimum, 10 nats above the criterion with hardly any smoothing."""
    rng = np.random.default_rng(302)
    x, g = rng.normal(size=60).round(3), rng.integers(0, 5, 60).astype(str)
    y = (x > 0.3).astype(float)
    for i in np.argsort(np.abs(x - 0.3))[[2, 5]]:
        y[i] = 1.0 - y[i]
    table = {"x": x, "g": g, "y": y}
    with pytest.warns(UnnormWarning, match=r"still falls as the smoothing parameter of s\(x\), s\(g\) goes to zero"):
        fit = un.gam("y ~ s(x) + s(g, bs='re')", table, family="binomial")
    assert not fit.smoothed.converged
    assert fit.edf["s(x)"] + fit.edf["s(g)"] == pytest.approx(1.0, abs=0.01)
    assert un.gam("y ~ s(x) + s(g, bs='re')", table, family="binomial", sp=[9.5, 1e-6]).score < fit.score - 10.0
