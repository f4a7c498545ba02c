"""Soap films: the equations behind them, mgcv's fits (tests/oracles/mgcv/soap.R), and regions with holes."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, DataError, TermError, UnnormWarning
from unnorm.terms import Terms, from_dict
from unnorm.terms.film import Lattice
from unnorm.terms.soap import even_knots

MADE = json.loads((Path(__file__).parents[1] / "oracles" / "mgcv" / "soap.json").read_text())
FITS = MADE["fits"]
SQUARE = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)])
HOLE = np.array([(0.4, 0.4), (0.7, 0.4), (0.6, 0.7), (0.4, 0.4)])


@cache
def table(region):
    return {name: np.array(values) for name, values in MADE["tables"][region].items()}


def fitted(one, grid=200, mgcvs_knots=True):
    loops = [dict(loop) for loop in MADE["regions"][one["region"]]]
    if one["known"] is not None:
        loops[0]["f"] = one["known"]
    xt = {"boundary": loops, "grid": grid, **({"k": one["k"]} if len(one["k"]) > 1 else {})}
    knots = {name: np.array(one["knots"][name]) for name in ("x", "y")}
    if mgcvs_knots:  # at the lattice's nodes, each one row below the one that was asked for (README.md)
        for name, down in (("x", 0), ("y", 1)):
            low = min(min(loop[name]) for loop in loops)
            h = max(np.ptp(np.concatenate([loop[axis] for loop in loops])) for axis in ("x", "y")) / (grid - 1)
            knots[name] = low + h * (np.round((knots[name] - low) / h) - down)
    formula = one["formula"].replace("k = c(16, 6, 6), ", "").replace("xt = xt", f"xt={xt!r}")
    return un.gam(formula, table(one["region"]), one["family"], knots=knots)


@pytest.mark.parametrize("one", FITS, ids=lambda one: f"{one['region']}: {one['formula']}")
def test_against_mgcv(one):
    fit, at = fitted(one), np.array(one["rows"], int)
    eta, se = fit.predict()
    assert np.sqrt(np.mean(((eta[at] - one["eta"]) / one["se"]) ** 2)) < 0.03
    np.testing.assert_allclose(se[at], one["se"], rtol=0.15)
    assert np.median(se[at] / one["se"]) == pytest.approx(1.0, abs=3e-3)
    assert fit.score == pytest.approx(one["score"], abs=0.3)
    assert fit.edf_total == pytest.approx(one["edf_total"], abs=0.15)


def test_a_film_that_is_zero_round_its_edge_is_mgcvs():
    """No cyclic spline, and so nothing but the lattice: the same to rounding."""
    (one,) = [one for one in FITS if one["known"] is not None and not any(one["known"])]
    fit, at = fitted(one), np.array(one["rows"], int)
    assert np.abs((fit.linear_predictor[at] - one["eta"]) / one["se"]).max() < 1e-4
    assert fit.score == pytest.approx(one["score"], abs=1e-4)


def test_three_regions_and_more():
    assert {"horseshoe", "lake", "isle", "urkiola"} <= {one["region"] for one in FITS}
    assert {one["family"] for one in FITS} == {"gaussian", "poisson", "binomial"}


def test_a_finer_lattice_moves_a_fit_little():
    (one,) = [one for one in FITS if one["region"] == "urkiola"]
    coarse, fine = (fitted(one, grid, mgcvs_knots=False) for grid in (200, 400))
    eta, se = fine.predict()
    assert np.sqrt(np.mean(((coarse.linear_predictor - eta) / se) ** 2)) < 0.02


# ---- the equations ----


def test_harmonic_functions_are_kept():
    """x² − y² on the boundary is x² − y² inside: exact for the five-point formula on a square of nodes."""
    lattice = Lattice([SQUARE], 41)
    x, y = SQUARE[:, 0], SQUARE[:, 1]
    round_ = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    along, up = np.interp(lattice.arc, round_, x), np.interp(lattice.arc, round_, y)
    u = lattice.laplace((along**2 - up**2)[:, None])
    points = np.random.default_rng(0).random((200, 2))
    np.testing.assert_allclose(lattice.interpolated(u, points)[:, 0], points[:, 0] ** 2 - points[:, 1] ** 2, atol=1e-3)


def test_poissons_equation_on_the_unit_square():
    lattice = Lattice([SQUARE], 81)
    u = lattice.poisson(np.ones((lattice.inner, 1)))
    assert lattice.interpolated(u, np.array([[0.5, 0.5]]))[0, 0] == pytest.approx(0.0736713, abs=1e-4)


def test_the_films_penalty_is_the_integral_of_the_squared_laplacian():
    (term,) = Terms((un.s("x", "y", bs="so", xt={"boundary": SQUARE, "grid": 60, "interior": 9}),)).build(
        dict(zip("xy", np.random.default_rng(1).random((2, 300))))
    )
    film = term.basis.film
    lattice, gamma = film.lattice, np.cos(np.arange(len(film.knots)))
    values = np.full(lattice.number.shape, np.nan)
    values[lattice.number >= 0] = (film.values[:, -len(gamma) :] @ gamma)[lattice.number[lattice.number >= 0]]
    f = values.reshape(lattice.shape)
    laplacian = (f[:-2, 1:-1] + f[2:, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:] - 4 * f[1:-1, 1:-1]) / lattice.h**2
    E = film.roots()[-1][:, -len(gamma) :]
    assert np.sum((E @ gamma) ** 2) == pytest.approx(np.sum(laplacian**2) * lattice.h**2, rel=1e-9)


def test_what_is_inside():
    lattice = Lattice([SQUARE, HOLE], 50)
    points = np.random.default_rng(2).uniform(-0.1, 1.1, (3000, 2))
    inside = un.Window(SQUARE, holes=[HOLE]).contains(points)
    np.testing.assert_array_equal(lattice.contains(points), inside)
    values = lattice.laplace(np.ones((lattice.edge, 1)))
    got = lattice.interpolated(values, points)[:, 0]
    np.testing.assert_allclose(got[inside], 1.0, atol=1e-10)
    assert np.isnan(got[~inside]).all()


def test_default_knots():
    for count in (12, 30, 60):
        knots = even_knots(Lattice([SQUARE, HOLE], 100), count)
        assert count <= len(knots) < 1.6 * count
        assert un.Window(SQUARE, holes=[HOLE]).contains(knots).all()


# ---- fits ----


def ring(n=500, seed=4):
    rng = np.random.default_rng(seed)
    window = un.Window([(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1.4), (4 - 1e-6, 1.45), (1, 1.5)]])
    x, y = window.uniform(n, rng).T
    z = np.where(x < 1, 0.0, np.where(y > 1.45, 1.0, -1.0) * (x - 1)) + 0.2 * rng.normal(size=n)
    return window, {"x": x, "y": y, "z": z}


def test_nothing_is_smoothed_across_a_wall():
    window, data = ring()
    film = un.gam(un.s("x", "y", bs="so", k=20, xt={"boundary": window.polygon}), data, response="z")
    plate = un.gam("z ~ s(x, y, k=50)", data)
    ends = {"x": np.array([3.5, 3.5]), "y": np.array([1.6, 1.3])}  # 2.5 above and below, .3 apart
    assert np.ptp(film.predict(ends).estimate) > 4.5
    assert np.ptp(plate.predict(ends).estimate) < 4.0


def test_outside_is_refused_in_fits_and_blank_in_predictions():
    window, data = ring()
    term = un.s("x", "y", bs="so", k=8, xt={"boundary": window.polygon, "grid": 60, "interior": 10})
    fit = un.gam(term, data, response="z")
    with pytest.warns(UnnormWarning, match=r"1 of 2 rows lie outside .* first row 1 at x = 9, y = 1"):
        eta, se = fit.predict({"x": [0.5, 9.0], "y": [0.5, 1.0]})
    assert np.isnan(eta).tolist() == np.isnan(se).tolist() == [False, True]
    effect = fit.effect("s(x,y)", simultaneous=True, rng=1)
    places = np.column_stack([effect["x"], effect["y"]])
    np.testing.assert_array_equal(np.isnan(effect["estimate"]), ~window.contains(places))
    assert np.isfinite(effect["upper"][~np.isnan(effect["estimate"])]).all()
    bad = {name: np.append(values, value) for (name, values), value in zip(data.items(), (9.0, 1.0, 0.0))}
    with pytest.raises(DataError, match=r"1 of 501 rows lie outside the boundary, first row 500 at x = 9, y = 1"):
        un.gam(term, bad, response="z")


def test_saved_and_read_back(tmp_path):
    window, data = ring(300)
    term = un.s("x", "y", bs="so", k=8, xt={"boundary": window, "grid": 60, "interior": 10})
    fit = un.gam(term, data, response="z")
    fit.save(tmp_path / "film.gam")
    again, new = un.load(tmp_path / "film.gam"), {"x": [0.5, 3.0], "y": [0.5, 2.5]}
    np.testing.assert_array_equal(again.predict(new).estimate, fit.predict(new).estimate)
    assert un.gam(fit.formula, data).score == fit.score  # the formula says it all
    X = fit.predict(new, kind="matrix")
    np.testing.assert_allclose(X @ fit.smoothed.beta, fit.predict(new).estimate)
    built = from_dict(fit.terms[0].to_dict())
    columns = {name: np.array(values) for name, values in new.items()}
    np.testing.assert_array_equal(built.design(columns), fit.terms[0].design(columns))


def test_known_values_are_taken_on():
    rng = np.random.default_rng(7)
    x, y = rng.random((2, 400))
    data = {"x": x, "y": y, "z": x + np.sin(np.pi * x) * np.sin(np.pi * y) + 0.1 * rng.normal(size=400)}
    loop = {"x": SQUARE[:, 0], "y": SQUARE[:, 1], "f": SQUARE[:, 0]}
    fit = un.gam(un.s("x", "y", bs="so", xt={"boundary": [loop], "grid": 100}), data, response="z")
    edge = {"x": [0.0, 0.5, 1.0], "y": [0.5, 0.0, 0.5]}
    np.testing.assert_allclose(fit.predict(edge).estimate - fit.coefficients["(Intercept)"], [0, 0.5, 1], atol=0.01)
    at = fit.effect("s(x,y)", at={"x": [0.5], "y": [0.0]})
    assert at["estimate"][0] == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(fit.predict(data).estimate, fit.linear_predictor, atol=1e-8)


def test_known_values_are_part_of_the_term_everywhere():
    rng = np.random.default_rng(7)
    x, y = rng.random((2, 300))
    data = {"x": x, "y": y, "z": 3 * x + np.sin(np.pi * x) * np.sin(np.pi * y) + 0.1 * rng.normal(size=300)}
    loop = {"x": SQUARE[:, 0], "y": SQUARE[:, 1], "f": 3 * SQUARE[:, 0]}
    film = un.s("x", "y", bs="so", xt={"boundary": [loop], "grid": 50})
    fit = un.gam(film + un.linear("x"), data, response="z")
    new = {name: column[:40] for name, column in data.items()}
    for rows, at in ((None, data), (data, data), (new, new)):
        terms = fit.predict(rows, kind="terms", se=False)
        effect = fit.effect("s(x,y)", at=at)["estimate"]
        np.testing.assert_allclose(terms["s(x,y)"], effect, atol=1e-8)
        eta = fit.predict(rows, se=False)
        np.testing.assert_allclose(terms["s(x,y)"] + terms["x"] + fit.coefficients["(Intercept)"], eta, atol=1e-8)
        np.testing.assert_allclose(fit.predict(rows, se=False, exclude="s(x,y)"), eta - effect, atol=1e-8)
        np.testing.assert_allclose(fit.predict(rows, se=False, terms="s(x,y)"), effect, atol=1e-8)
        drawn = fit.draws(3, rows, kind="link", terms="x", rng=1)
        np.testing.assert_allclose(drawn, np.outer(fit.draws(3, rng=1)[:, -1], at["x"]), atol=1e-8)
    np.testing.assert_allclose(fit.predict(se=False, offset=0.5), fit.linear_predictor + 0.5, atol=1e-8)
    np.testing.assert_allclose(fit.term_values("s(x,y)"), fit.effect("s(x,y)", at=data)["estimate"], atol=1e-8)
    h, inside = 1 / 49, {"x": np.array([0.3, 0.5, 0.7]), "y": np.array([0.4, 0.5, 0.6])}
    low, high = (fit.effect("s(x,y)", at={**inside, "x": inside["x"] + by})["estimate"] for by in (-h, h))
    slope = fit.derivative("s(x,y)", at=inside, of="x")
    np.testing.assert_allclose(slope["estimate"], (high - low) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose((slope["lower"] + slope["upper"]) / 2, slope["estimate"], rtol=1e-12)
    bend = fit.derivative("s(x,y)", at=inside, of="x", order=2)["estimate"]
    np.testing.assert_allclose(bend, (high + low - 2 * fit.effect("s(x,y)", at=inside)["estimate"]) / h**2, rtol=1e-6)


def test_the_difference_of_two_films_has_what_is_known_of_each():
    rng = np.random.default_rng(8)
    x, y = rng.random((2, 300))
    u, w = rng.random((2, 300))
    data = {"x": x, "y": y, "u": u, "w": w, "z": 2 * x * u + w * y + 0.1 * rng.normal(size=300)}
    loop = {"x": SQUARE[:, 0], "y": SQUARE[:, 1]}
    films = [
        un.s("x", "y", bs="so", by=by, xt={"boundary": [{**loop, "f": f * SQUARE[:, 0]}], "grid": 40})
        for by, f in (("u", 2.0), ("w", 0.0))
    ]
    fit = un.gam(films[0] + films[1], data, response="z")
    at = {"x": np.array([0.2, 0.6]), "y": np.array([0.5, 0.3])}
    one, two = (fit.effect(label, at=at)["estimate"] for label in ("s(x,y):u", "s(x,y):w"))
    np.testing.assert_allclose(fit.difference("s(x,y):u", "s(x,y):w", at=at)["estimate"], one - two, atol=1e-10)
    np.testing.assert_allclose(fit.difference("s(x,y):w", "s(x,y):u", at=at)["estimate"], two - one, atol=1e-10)


def test_a_window_brings_its_own_boundary():
    window = un.Window([(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1), (2.5, 1), (2.5, 2), (1, 2)]])
    rng = np.random.default_rng(3)
    y = window.uniform(1200, rng)
    obs = un.iid(y[rng.random(1200) < 1 / (1 + np.exp(-(y[:, 0] - 2)))])
    xt = {"boundary": window.polygon}
    own, given = (
        un.fit(un.Additive(terms, window), obs, un.Logistic(total=6000), rng=1)
        for terms in ("s(x, y, bs='so', k=8)", un.s("x", "y", bs="so", k=8, xt=xt))
    )
    effect, other = own.effect("s(x,y)"), given.effect("s(x,y)")
    np.testing.assert_allclose(effect["estimate"], other["estimate"], atol=2e-3)  # the loops run the other way round
    places = np.column_stack([effect["x"], effect["y"]])
    np.testing.assert_array_equal(np.isnan(effect["estimate"]), ~window.contains(places))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "needs the region's boundary"),
        ({"xt": {"bnd": SQUARE}}, "'boundary'"),
        ({"xt": [1, 2]}, "takes xt="),
        ({"xt": {"boundary": SQUARE[:2]}}, "three points"),
        ({"xt": {"boundary": [{"x": [0, 1, 1]}]}}, "not as expected"),
        ({"xt": {"boundary": [{"x": [0, 1, 1], "y": [0, 0, 1], "f": [1, 2]}]}}, "one for each"),
        ({"xt": {"boundary": [(0, 0), (1, 1), (1, 0), (0, 1)]}}, "cross itself"),
        ({"xt": {"boundary": [SQUARE, SQUARE + 0.5]}}, "must not cross or touch"),
        ({"xt": {"boundary": SQUARE, "grid": 5}}, "grid in xt"),
        ({"xt": {"boundary": SQUARE, "k": (8, 8)}}, "one value for each of the 1"),
        ({"xt": {"boundary": SQUARE}, "k": 3}, "at least 4"),
        ({"xt": {"boundary": SQUARE}, "knots": {"x": [0.5, 2.0], "y": [0.5, 0.5]}}, "first knot 1 at x = 2"),
        ({"xt": {"boundary": SQUARE}, "knots": {"x": [0.5, 0.5], "y": [0.5, 0.5]}}, "same square"),
        ({"xt": {"boundary": SQUARE}, "knots": {"x": [0.5, 0.6]}}, "two lists of equal length"),
    ],
)
def test_errors(options, says):
    data = dict(zip("xyz", np.random.default_rng(5).random((3, 100))))
    with pytest.raises(TermError) as caught:
        un.gam(un.s("x", "y", bs="so", **options), data, response="z")
    assert says in str(caught.value)


def test_what_to_write_for_more_functions():
    window, data = ring(300)
    xt = {"boundary": window, "grid": 60, "interior": 10}
    (film,) = Terms((un.s("x", "y", bs="so", k=8, xt=xt),)).build(data)
    assert film.larger == f"{2 * len(film.basis.film.knots)} knots inside, and k=16"
    labels = {**data, "g": np.array(list("abc"))[np.arange(300) % 3]}
    (random,) = Terms((un.s("x", "g", bs="re"),)).build(labels)
    assert random.larger is None  # the data decide how many levels there are


def test_a_film_sums_to_zero_over_many_rows():
    window = un.Window(SQUARE, holes=[HOLE])
    rng = np.random.default_rng(8)
    rows = np.concatenate([window.uniform(9000, rng), np.repeat([[0.1, 0.2]], 3000, axis=0)])
    columns = {"x": rows[:, 0], "y": rows[:, 1]}
    (film,) = Terms((un.s("x", "y", bs="so", k=8, xt={"boundary": window, "grid": 60, "interior": 10}),)).build(columns)
    X = film.design(columns)
    assert np.abs(X.mean(axis=0)).max() < 1e-10 * np.abs(X).max()


def test_known_values_other_than_zero_are_refused_where_f_is_unnormalised():
    inside = np.random.default_rng(1).uniform(0.05, 0.95, (200, 2))
    obs = un.iid({"x": inside[:, 0], "y": inside[:, 1]}, y=("x", "y"))
    for edge, refused in ((SQUARE[:, 0], True), (0 * SQUARE[:, 0], False)):
        loop = {"x": SQUARE[:, 0], "y": SQUARE[:, 1], "f": edge}
        film = un.s("x", "y", bs="so", xt={"boundary": [loop], "grid": 40, "interior": 9})
        model = un.Additive(film, un.Box((0, 1), (0, 1)))
        objective = un.Logistic(un.Uniform(), total=2000)
        if refused:
            with pytest.raises(CombinationError, match=r"values other than zero are for un\.gam"):
                un.fit(model, obs, objective, rng=2)
        else:
            assert un.fit(model, obs, objective, rng=2).converged


def test_known_values_are_times_by_and_on_the_rows_of_the_level():
    square = {"x": (0, 2, 2, 0), "y": (0, 0, 1, 1), "f": (1.0, 2.0, 3.0, 1.5)}
    rng = np.random.default_rng(1)
    columns = {"x": rng.uniform(0.1, 1.9, 80), "y": rng.uniform(0.1, 0.9, 80), "w": rng.uniform(1, 2, 80)}
    columns["g"] = rng.choice(["a", "b"], 80)
    xt = {"boundary": [square], "grid": 40, "interior": 6}

    def known(by):
        return [term.fixed(columns) for term in Terms((un.s("x", "y", bs="so", xt=xt, by=by),)).build(columns)]

    (plain,), (times,), (first, second) = known(None), known("w"), known("g")
    assert plain.min() > 0.9
    np.testing.assert_allclose(times, plain * columns["w"])
    np.testing.assert_allclose(first, np.where(columns["g"] == "a", plain, 0.0))
    np.testing.assert_allclose(second, np.where(columns["g"] == "b", plain, 0.0))
