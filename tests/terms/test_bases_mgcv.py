"""`gp`, `sos`, `mrf` and `ad` against mgcv (tests/oracles/mgcv/bases.R), and what their functions are by themselves."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import eval_legendre

import unnorm as un
from unnorm.errors import TermError
from unnorm.terms.markov import shared_points
from unnorm.terms.sphere import kernel

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
MADE = json.loads((HERE / "bases.json").read_text())
FITS = MADE["fits"]


@cache
def data(name):
    return pd.read_csv(HERE / ("fits_rows.csv" if name == "rows" else f"bases_{name}.csv"))


@pytest.mark.parametrize("one", FITS, ids=lambda one: one["formula"])
def test_against_mgcv(one):
    formula = one["formula"].replace("xt = xt", f"xt={ {'nb': MADE['nb']}!r}")
    fit = un.gam(formula, data(one["data"]), one["family"])
    eta, se = fit.predict(data(one["data"]))
    at = np.array(one["rows"], int)
    assert np.abs((eta[at] - one["eta"]) / one["se"]).max() < 0.001
    np.testing.assert_allclose(se[at], one["se"], rtol=1e-3)
    assert fit.score == pytest.approx(one["score"], abs=1e-4)
    assert fit.edf_total == pytest.approx(one["edf_total"], abs=2e-3)


def test_every_new_basis_has_three_data_sets():
    assert all(sum(one["bs"] == bs for one in FITS) >= 3 for bs in ("gp", "sos", "mrf", "ad"))


def test_the_spheres_kernel_is_its_series():
    # ∫(Δf)² has the kernel Σ_{j≥1} (2j + 1)/(4π j²(j + 1)²) P_j(z), up to a constant that the null space has
    z = np.linspace(-0.99, 0.99, 9)
    a = np.column_stack([np.sqrt(1 - z**2), np.zeros(9), z])
    found = kernel(a, np.array([[0.0, 0.0, 1.0]]), 0)[:, 0]
    j = np.arange(1, 4000)
    series = [np.sum((2 * j + 1) / (4 * np.pi * (j * (j + 1.0)) ** 2) * eval_legendre(j, v)) for v in z]
    np.testing.assert_allclose(found, series, atol=1e-6)


def test_a_function_on_the_sphere_closes_round_it():
    fit = un.gam("y ~ s(lat, lon, bs='sos', k=30)", data("globe"))
    west, east = (fit.predict({"lat": [10.0, 60.0], "lon": [lon, lon]}).estimate for lon in (-180.0, 180.0))
    np.testing.assert_allclose(west, east, atol=1e-10)
    pole = fit.predict({"lat": [90.0, 90.0], "lon": [-50.0, 120.0]}).estimate
    assert pole[0] == pytest.approx(pole[1], abs=1e-10)


def test_regions_by_penalty_polygons_and_neighbours_are_the_same():
    squares = {f"r{i}{j}": [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)] for i in range(1, 6) for j in range(1, 6)}
    touching = shared_points(squares)
    assert touching["r11"] == ["r12", "r21", "r22"]
    names = sorted(MADE["nb"])
    S = np.zeros((25, 25))
    for region, others in MADE["nb"].items():
        S[names.index(region), names.index(region)] = len(others)
        S[names.index(region), [names.index(other) for other in others]] = -1
    table = data("region")
    by_nb = un.gam(un.s("region", bs="mrf", xt={"nb": MADE["nb"]}), table, response="y")
    by_penalty = un.gam(un.s("region", bs="mrf", xt={"penalty": S, "regions": names}), table, response="y")
    np.testing.assert_allclose(by_nb.linear_predictor, by_penalty.linear_predictor, atol=1e-6)
    empty = by_nb.predict({"region": ["r33"]}).estimate  # a region without rows is the mean of its neighbours
    around = by_nb.predict({"region": ["r23", "r43", "r32", "r34"]}).estimate
    assert empty[0] == pytest.approx(around.mean(), abs=1e-6)
    un.gam(un.s("region", bs="mrf", xt={"polys": squares}), table, response="y")


def test_an_adaptive_smooth_is_wild_only_where_the_curve_is():
    rng = np.random.default_rng(6)
    x = np.sort(rng.random(600))
    truth = 3 * np.exp(-(((x - 0.75) / 0.04) ** 2))
    y = truth + 0.4 * rng.normal(size=600)
    errors = []
    for bs in ("ad", "ps"):
        fit = un.gam(f"y ~ s(x, bs='{bs}', k=40)", {"x": x, "y": y})
        errors.append(np.mean((fit.linear_predictor - truth) ** 2))
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize(
    ("term", "error", "says"),
    [
        ("s(x, bs='gp', m=9)", TermError, "1 to 5"),
        ("s(x, bs='gp', m=(2, 1, 3))", TermError, "(0, 2]"),
        ("s(x, bs='gp', k=2)", TermError, "at least 3"),
        ("s(region, bs='mrf')", TermError, "neighbours"),
        ("s(region, bs='mrf', xt={'nb': {'a': ('b',)}})", TermError, "no region"),
        ("s(region, bs='mrf', xt={'nb': (1, 2)})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'nb': {'a': 1, 'b': 2}})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'nb': {'a': None}})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'polys': {'a': (1, 2)}})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'polys': {'a': 'x'}})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'penalty': 'a', 'regions': 'a'})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'penalty': ((1, 2), (3,)), 'regions': 'ab'})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'penalty': ((1, 0), (0, 1)), 'regions': 3})", TermError, "is one of xt="),
        ("s(region, bs='mrf', xt={'penalty': ((1, 0), (0, 1)), 'regions': 'aa'})", TermError, "'a' came twice"),
        ("s(region, bs='mrf', xt={'penalty': ((0, 0), (0, 0)), 'regions': 'ab'})", TermError, "from 0 to 0"),
        ("s(region, bs='mrf', xt={'penalty': ((1, 0), (0, -1)), 'regions': 'ab'})", TermError, "from -1 to 1"),
        ("s(region, bs='mrf', xt={'nb': {'a': ('b',), 'b': ('a',), 'c': ('a',)}})", TermError, "lacks 'r11'"),
        ("s(x, bs='ad', k=8, m=7)", TermError, "between 1 and"),
        ("s(x, bs='cr', xt='tp')", TermError, "takes no xt"),
        ("s(count, x, bs='sos', k=10, m=7)", TermError, "−1, 0, 1, 2, 3 or 4"),
        ("s(far, x, bs='sos', k=10)", TermError, "latitude"),
    ],
)
def test_errors(term, error, says):
    table = data("region").assign(far=1000.0 * data("region")["x"])
    with pytest.raises(error) as caught:
        un.gam(f"y ~ {term}", table)
    assert says in str(caught.value)


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e12, 1e35])
def test_a_process_does_not_depend_on_the_units(scale):
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=200)
    fits = [un.gam("y ~ s(x, bs='gp')", {"x": s * x, "y": y}) for s in (1.0, scale)]
    np.testing.assert_allclose(fits[1].linear_predictor, fits[0].linear_predictor, atol=1e-6)
    assert fits[1].edf_total == pytest.approx(fits[0].edf_total, abs=1e-5)


@pytest.mark.parametrize(("scale", "how"), [(1e-300, "underflow"), (1e-100, "underflow"), (1e100, "overflow")])
@pytest.mark.parametrize("bs", ["tp", "cr", "gp"])
def test_scales_beyond_arithmetic_are_refused(bs, scale, how):
    x = scale * np.random.default_rng(2).normal(size=50)
    with pytest.raises(
        un.errors.DataError, match=rf"column 'x' spans .* whose powers {how}\. Measure it in other units"
    ):
        un.gam(f"y ~ s(x, bs='{bs}', k=5)", {"x": x, "y": np.arange(50.0)})
