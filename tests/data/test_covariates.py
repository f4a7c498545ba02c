"""Covariates: built-ins against their definitions, maps against SciPy's interpolator, expressions against NumPy."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import unnorm as un
from unnorm._base import frames
from unnorm.data.covariates import CovariateSet, Expression, Function, Map, from_dict
from unnorm.data.covariates.columns import distance
from unnorm.errors import DataError, InputError, OutsideError, TermError

SHARED = Path(__file__).parents[3] / "shared" / "data"
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data folder is absent")
RNG = np.random.default_rng(5)


@pytest.fixture
def chain():
    n = 60
    data = {
        "fx": RNG.uniform(0, 800, n),
        "fy": RNG.uniform(0, 600, n),
        "who": np.repeat(["a", "b", "c"], n // 3),
        "image": np.repeat([7, 9], n // 2),
        "wait": RNG.uniform(0.1, 1, n),
    }
    return un.transitions(data, y=("fx", "fy"), group=("who", "image"), extra=("wait", "image"), lags=2)


def test_planar_built_ins_are_what_they_say(chain):
    c = CovariateSet(chain, centre=(400, 300))
    got = c.values(
        ["x", "y", "x_prev", "y_prev2", "step", "angle", "turn", "dcenter", "fx", "fy_prev", "who", "wait"], chain
    )
    now, before, first = chain.outcome, chain.previous(1), chain.previous(2)
    d, e = now - before, before - first
    np.testing.assert_array_equal(got["x"], now[:, 0])
    np.testing.assert_array_equal(got["fx"], now[:, 0])
    np.testing.assert_array_equal(got["x_prev"], before[:, 0])
    np.testing.assert_array_equal(got["fy_prev"], before[:, 1])
    np.testing.assert_array_equal(got["y_prev2"], first[:, 1])
    np.testing.assert_allclose(got["step"], np.linalg.norm(d, axis=1), rtol=1e-14)
    np.testing.assert_allclose(got["step"] * np.cos(got["angle"]), d[:, 0], atol=1e-10)
    np.testing.assert_allclose(got["step"] * np.sin(got["angle"]), d[:, 1], atol=1e-10)
    # the turn is the signed angle from the last step to this one
    cross, dot = e[:, 0] * d[:, 1] - e[:, 1] * d[:, 0], np.sum(d * e, axis=1)
    np.testing.assert_allclose(got["turn"], np.arctan2(cross, dot), atol=1e-10)
    np.testing.assert_allclose(got["dcenter"], np.linalg.norm(now - [400, 300], axis=1), rtol=1e-14)
    np.testing.assert_array_equal(got["who"], chain.group["who"])
    np.testing.assert_array_equal(got["wait"], chain.context["wait"])
    down = CovariateSet(chain, y_down=True).values(["angle", "turn"], chain)
    np.testing.assert_allclose(down["angle"], -got["angle"], atol=1e-14)
    np.testing.assert_allclose(down["turn"], -got["turn"], atol=1e-12)


@pytest.mark.parametrize("y_down", [False, True])
def test_angles_lie_in_the_half_open_circle(y_down):
    back = {"a": [0.0, 2.0, 1.0, 0.0, 0.0, 0.0], "b": [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]}
    obs = un.transitions(back, y=("a", "b"), lags=2)
    c = CovariateSet(obs, y_down=y_down)
    got = c.values(["angle", "turn"], obs)
    up = np.pi / 2 if y_down else -np.pi / 2
    np.testing.assert_allclose(got["angle"], [np.pi, np.pi, np.nan, up], atol=1e-15)  # +π for straight left
    np.testing.assert_allclose(got["turn"], [np.pi, 0, np.nan, np.nan], atol=1e-15)
    assert c.partial(["angle", "step", "turn"]) == ("angle", "turn")
    assert c.period("angle") == c.period("turn") == pytest.approx(2 * np.pi)
    assert c.period("step") is None
    assert any("1 of 4 steps have length zero" in note for note in c.notes(obs))


def test_turn_and_dcenter_say_what_they_need():
    obs = un.transitions(np.arange(8.0).reshape(4, 2))
    c = CovariateSet(obs)
    assert "turn" not in c
    assert "dcenter" not in c.names
    with pytest.raises(TermError, match="needs transitions with lags=2"):
        c.values("turn", obs)
    with pytest.raises(TermError, match=r"give centre=\(x, y\)"):
        c.values("dcenter", obs)
    with pytest.raises(TermError, match=r"no covariate 'speed'. Known names: .*'step'"):
        c.values("speed", obs)
    with pytest.raises(InputError, match="centre must be two finite numbers"):
        CovariateSet(obs, centre=(1.0,))


def test_reference_rows_use_their_own_outcome_and_the_context_of_at(chain):
    c = CovariateSet(chain, [Expression("logstep", "log(step + 1)"), Expression("old", "hypot(x_prev, y_prev) / wait")])
    names = ["step", "angle", "turn", "logstep", "old", "who", "x_prev"]
    for size in (5, 10 * chain.n):  # fewer rows than contexts, and more
        at = RNG.integers(0, chain.n, size)
        y = RNG.uniform(0, 600, (size, 2))
        got = c.values(names, chain, y, at)
        one = chain.take(at)
        moved = un.Observations("transitions", y, one.outcome_names, one.context, 2, one.extra, one.group)
        alone = c.values(names, moved)
        for name in names:
            np.testing.assert_array_equal(got[name], alone[name])
    assert c.context_only("old")
    assert c.context_only("who")
    assert c.context_only("x_prev")
    assert not c.context_only("logstep")
    assert not c.context_only("step")


def test_each_covariate_is_computed_once_and_context_ones_once_a_context(chain):
    calls = []

    def count(name):
        def function(y, x):
            calls.append((name, len(x["wait"])))
            return x["wait"] * 2

        return function

    c = CovariateSet(
        chain,
        [
            Function("ctx", count("ctx"), context_only=True),
            Function("own", count("own")),
            Expression("a", "ctx + own"),
            Expression("b", "ctx * own"),
        ],
    )
    at = np.repeat(np.arange(chain.n), 20)
    c.values(["a", "b", "ctx"], chain, chain.outcome[at], at)
    assert sorted(calls) == [("ctx", chain.n), ("own", 20 * chain.n)]


def test_built_ins_win_over_columns_and_say_so():
    data = {"y": [0.0, 1.0, 3.0], "x": [5.0, 6.0, 8.0], "step": [9.0, 9.0, 9.0]}
    obs = un.transitions(data, y=("y", "x"), extra="step")  # the user's x is the second coordinate
    c = CovariateSet(obs)
    got = c.values(["x", "y", "step"], obs)
    np.testing.assert_array_equal(got["x"], [1, 3])
    np.testing.assert_array_equal(got["y"], [6, 8])
    np.testing.assert_allclose(got["step"], [np.sqrt(2), np.sqrt(8)])
    assert "'step'" in c.notes(obs)[0]
    assert "'x'" in c.notes(obs)[0]
    plain = un.transitions(data, y=("x", "y"))
    assert CovariateSet(plain).notes(plain) == ()


def test_other_data_have_their_columns_by_name():
    regression = un.conditional({"h": [1.0, 2.0], "age": [3, 4], "sex": ["f", "m"]}, y="h", x=("age", "sex"))
    c = CovariateSet(regression)
    assert set(c.names) == {"h", "age", "sex"}
    assert c.values("sex", regression)["sex"].tolist() == ["f", "m"]
    line = un.transitions([0.1, 0.2, 0.4])
    assert set(CovariateSet(line).names) == {"y", "y_prev"}
    circle = CovariateSet(line, domain=un.Circle())
    assert circle.period("y") == circle.period("y_prev") == 2 * np.pi
    points = un.iid({"x": [1.0, 4.0], "y": [1.0, 5.0]}, y=("x", "y"))
    assert CovariateSet(points, centre=(1, 1)).values("dcenter", points)["dcenter"].tolist() == [0.0, 5.0]
    swapped = un.iid({"x": [1.0], "y": [2.0]}, y=("y", "x"))  # not a chain: the data's own names stand
    assert CovariateSet(swapped).values("x", swapped)["x"].tolist() == [1.0]


def test_functions_are_checked(chain):
    ok = CovariateSet(chain, [Function("over", lambda y, x: y[:, 0] - x["fx_prev"] + x["step"], needs="step")])
    np.testing.assert_allclose(
        ok.values("over", chain)["over"],
        chain.outcome[:, 0] - chain.context["fx_prev"] + ok.values("step", chain)["step"],
    )
    for function, message in [
        (lambda y, x: x["angle"], r"reads 'angle'.*needs=\('angle',\)"),
        (lambda y, x: 1.0, r"one value for each row, shape \(\d+,\); got \(\)"),
        (lambda y, x: np.log(0 * x["wait"]), r"'f' is not finite at \d+ of \d+ rows, first at y = "),
    ]:
        with pytest.raises((TermError, DataError), match=message), np.errstate(divide="ignore"):
            CovariateSet(chain, [Function("f", function)]).values("f", chain)
    with pytest.raises(InputError, match="must be a function"):
        Function("f", 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="must be a word"):
        Function("two words", lambda y, x: y)
    with pytest.raises(TermError, match="already a covariate 'step'"):
        CovariateSet(chain, [Expression("step", "wait + 1")])


# --- expressions -----------------------------------------------------------------------------------------------------

TEXTS = {
    "log(step + 1)": lambda v: np.log(v["step"] + 1),
    "abs(x - x_prev)": lambda v: abs(v["x"] - v["x_prev"]),
    "-x**2 / (1 + y**-1.5)": lambda v: -(v["x"] ** 2) / (1 + v["y"] ** -1.5),
    "step > 100": lambda v: (v["step"] > 100).astype(float),
    "x < 5 < 7": lambda v: (v["x"] < 5).astype(float),
    "100 < x <= 400": lambda v: ((v["x"] > 100) & (v["x"] <= 400)).astype(float),
    "where(angle >= 0, sqrt(step), minimum(x, y))": lambda v: np.where(
        v["angle"] >= 0, np.sqrt(v["step"]), np.minimum(v["x"], v["y"])
    ),
    "atan2(y - y_prev, x - x_prev) / pi": lambda v: v["angle"] / np.pi,
    "hypot(x, y) + floor(wait * 10) - maximum(x, 3)": lambda v: (
        np.hypot(v["x"], v["y"]) + np.floor(v["wait"] * 10) - np.maximum(v["x"], 3)
    ),
    "exp(-wait) * cos(angle) + sin(angle) - tan(wait) + log1p(step)": lambda v: (
        np.exp(-v["wait"]) * np.cos(v["angle"]) + np.sin(v["angle"]) - np.tan(v["wait"]) + np.log1p(v["step"])
    ),
    "image == 7": lambda v: (v["image"] == 7).astype(float),
}


@pytest.mark.parametrize("text", TEXTS)
def test_expressions_are_the_arithmetic_that_they_show(text, chain):
    c = CovariateSet(chain, [Expression("e", text)])
    columns = c.values(["x", "y", "x_prev", "y_prev", "step", "angle", "wait", "image"], chain)
    got = c.values("e", chain)["e"]
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, TEXTS[text](columns), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('true')", "this is not allowed .*It may use .*log1p"),
        ("x.__class__", "this is not allowed"),
        ("open('f')", "this is not allowed"),
        ("x[0]", "this is not allowed"),
        ("[x for x in y]", "this is not allowed"),
        ("lambda: x", "this is not allowed"),
        ("x if y else 1", "this is not allowed"),
        ("x and y", "this is not allowed"),
        ("(x := 3)", "this is not allowed"),
        ("f'{x}'", "this is not allowed"),
        ("x % 2", "this is not allowed"),
        ("x @ y", "this is not allowed"),
        ("~x", "this is not allowed"),
        ("log(x, base=2)", "this is not allowed"),
        ("log(*x)", "this is not allowed"),
        ("'a'", "only ordinary numbers"),
        ("x + True", "only ordinary numbers"),
        ("x + 1j", "only ordinary numbers"),
        ("x * 1" + "0" * 320, "only ordinary numbers"),
        ("x * 1e999", "only ordinary numbers"),
        ("log + x", "needs its arguments"),
        ("log(x, y)", "log takes 1 arguments"),
        ("9**9**9 + x", "exponent must be a number of at most 32"),
        ("x**100", "exponent must be a number of at most 32"),
        ("2**x", "exponent must be a number"),
        ("x +", "is not arithmetic that can be read"),
        ("x\n+ 1; y", "is not arithmetic that can be read"),
        ("x\0", "is not arithmetic that can be read"),
        ("", "is not arithmetic that can be read"),
        ("1 + pi", "reads no covariate"),
        ("x + " * 200 + "x", "at most 500 characters; got 801 characters"),
        ("-" * 60 + "x", "nested more than 40 deep"),
        ("(" * 240 + "x" + ")" * 240, "is not arithmetic|nested"),
    ],
)
def test_expressions_refuse_everything_else(text, message):
    with pytest.raises(TermError, match=message):
        Expression("e", text)


def test_expressions_know_their_names(chain):
    with pytest.raises(TermError, match=r"'e' reads 'stepp'.*Known names: .*'step'.*functions: abs"):
        CovariateSet(chain, [Expression("e", "stepp + 1")])
    with pytest.raises(TermError, match="in a circle: a → b → a"):
        CovariateSet(chain, [Expression("a", "b + 1"), Expression("b", "a + 1")])
    with pytest.raises(TermError, match="needs numbers, and 'who' holds text"):
        CovariateSet(chain, [Expression("e", "who + 1")]).values("e", chain)
    with pytest.raises(DataError, match=r"'e' is not finite at \d+ of \d+ rows, first at y = \("):
        CovariateSet(chain, [Expression("e", "log(x - 400)")]).values("e", chain)
    assert from_dict(Expression("e", "x + 1").to_dict()).needs == ("x",)


# --- maps ------------------------------------------------------------------------------------------------------------


def points(n, low=(0.0, 0.0), high=(1.0, 1.0), **more):
    xy = RNG.uniform(low, high, (n, 2))
    return un.conditional({"x": xy[:, 0], "y": xy[:, 1], **more}, y=("x", "y"), x=tuple(more) or {"one": np.ones(n)})


def value(raster, obs):
    return CovariateSet(obs, [raster]).values(raster.name, obs)[raster.name]


def test_maps_are_scipys_interpolation_on_uneven_axes_in_any_direction():
    x, y = np.sort(RNG.uniform(0, 10, 12)), np.sort(RNG.uniform(-5, 5, 8))
    z = RNG.normal(size=(8, 12))
    obs = points(500, (x[0], y[0]), (x[-1], y[-1]))
    for method, interpolate in (("linear", "bilinear"), ("nearest", "nearest")):
        oracle = RegularGridInterpolator((y, x), z, method=method)(obs.outcome[:, ::-1])
        for sx, sy in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
            raster = Map("z", z[::sy, ::sx], x[::sx], y[::sy], interpolate)
            np.testing.assert_allclose(value(raster, obs), oracle, rtol=1e-12, atol=1e-12)


def test_a_map_reaches_to_the_borders_of_its_cells_and_no_further():
    z = np.arange(6.0).reshape(2, 3)
    raster = Map("z", z, x=[0.5, 1.5, 2.5], y=[0.5, 1.5])
    corners = un.iid({"x": [0.0, 3.0, 0.0, 3.0, 1.0], "y": [0.0, 0.0, 2.0, 2.0, 1.0]}, y=("x", "y"))
    np.testing.assert_allclose(value(raster, corners), [0, 2, 3, 5, 2])
    out = un.iid({"x": [1.0, 3.1, 9.0], "y": [1.0, 1.0, 1.0]}, y=("x", "y"))
    with pytest.raises(
        OutsideError,
        match=r"no value at 2 of 3 points, first \(x, y\) = \(3.1, 1\).*\[0, 3\] × \[0, 2\].*outside='nearest'",
    ):
        value(raster, out)
    near = Map("z", z, [0.5, 1.5, 2.5], [0.5, 1.5], outside="nearest")
    np.testing.assert_allclose(value(near, out), [2.0, 3.5, 3.5])


def test_cells_without_a_value():
    z = np.arange(16.0).reshape(4, 4)
    z[1, 1] = np.nan
    axis = np.arange(4.0)
    raster = Map("z", z, axis, axis)
    assert raster.notes() == ("Map 'z' has no value in 1 of 16 cells.",)
    beside = un.iid({"x": [2.0, 1.6, 3.0], "y": [1.0, 1.0, 3.0]}, y=("x", "y"))
    # at a centre the neighbour's weight is zero; beside the hole its own row's other cell is all that is left
    np.testing.assert_allclose(value(raster, beside), [6.0, 6.0, 15.0])
    inside = un.iid({"x": [1.2], "y": [1.1]}, y=("x", "y"))
    with pytest.raises(OutsideError, match=r"no value at 1 of 1 points.* less 1 cells without a value"):
        value(raster, inside)
    filled = Map("z", z, axis, axis, "nearest", outside="nearest")
    assert value(filled, inside)[0] in (1.0, 4.0, 6.0, 9.0)


def test_one_map_for_each_key_whatever_the_keys_are():
    x = np.array([0.0, 1.0])
    for keys in (["p", "q"], [10, 20], [10.0, 20.0]):
        raster = Map("z", {k: np.full((2, 2), float(i)) for i, k in enumerate(keys)}, x, x, key="image")
        obs = points(20, image=[keys[1], keys[0]] * 10)
        np.testing.assert_allclose(value(raster, obs), [1.0, 0.0] * 10)
        assert raster.needs == ("x", "y", "image")
        again = from_dict(raster.to_dict())
        np.testing.assert_array_equal(value(again, obs), value(raster, obs))
    with pytest.raises(
        DataError, match=r"no grid for 1 values of 'image' \(2 of 4 points\), such as 'r'; it has 'p', 'q'"
    ):
        value(Map("z", {k: np.zeros((2, 2)) for k in "pq"}, x, x, key="image"), points(4, image=["p", "r", "r", "q"]))


def test_maps_at_the_previous_point_depend_on_the_context_only(chain):
    z = RNG.normal(size=(6, 8))
    x, y = np.linspace(50, 750, 8), np.linspace(50, 550, 6)
    here, there = Map("here", z, x, y), Map("there", z, x, y, coordinates=("x_prev", "y_prev"))
    c = CovariateSet(chain, [here, there, Expression("gain", "here - there")])
    assert c.context_only("there")
    assert not c.context_only("here")
    got = c.values(["here", "there", "gain"], chain)
    np.testing.assert_allclose(got["gain"], got["here"] - got["there"])
    inner = np.all((chain.previous() > [50, 50]) & (chain.previous() < [750, 550]), axis=1)
    oracle = RegularGridInterpolator((y, x), z)(chain.previous()[inner][:, ::-1])
    np.testing.assert_allclose(got["there"][inner], oracle, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": np.zeros((3, 2))}, r"shape \(ny, nx\).*got values \(3, 2\), x \(3,\), y \(2,\)"),
        ({"values": np.full((2, 3), np.nan)}, "has no values"),
        ({"values": np.full((2, 3), np.inf)}, "6 infinite values"),
        ({"x": [0, 2, 1]}, "x axis .* must be finite and increase or decrease"),
        ({"y": [0, np.nan]}, "y axis .* must be finite"),
        ({"interpolate": "cubic"}, "interpolate of map 'z' must be one of 'bilinear', 'nearest'; got 'cubic'"),
        ({"outside": "drop"}, "outside of map 'z' must be one of"),
        ({"key": "image"}, "go together"),
        ({"values": {1: np.zeros((2, 3))}}, "go together"),
        ({"values": "text"}, "must be numeric"),
        ({"coordinates": ("x",)}, "two covariates"),
        ({"name": "a b"}, "must be a word"),
    ],
)
def test_bad_maps(arguments, message):
    with pytest.raises(InputError, match=message):
        Map(**({"name": "z", "values": np.zeros((2, 3)), "x": [0, 1, 2], "y": [0, 1]} | arguments))


def test_from_table_puts_every_cell_in_its_place_and_counts_those_missing():
    x, y = np.meshgrid([10.0, 20.0, 40.0], [1.0, 2.0])
    z = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0]])
    rows = RNG.permutation(6)[:]
    table = {"x": x.ravel()[rows], "y": y.ravel()[rows], "v": z.ravel()[rows]}
    raster = Map.from_table(table, value="v")
    np.testing.assert_array_equal(raster.grids[None].z, z)
    keep = ~((table["x"] == 40) & (table["y"] == 1))
    partial = Map.from_table({k: v[keep] for k, v in table.items()}, value="v", name="w")
    assert partial.notes() == ("Map 'w' has no value in 2 of 6 cells.",)
    with pytest.raises(DataError, match=r"must come once; 6 rows repeat one, first row 6 .*key="):
        Map.from_table({k: np.tile(v, 2) for k, v in table.items()}, value="v")
    keyed = Map.from_table(
        {**{k: np.tile(v, 2) for k, v in table.items()}, "k": np.repeat([3, 4], 6)}, value="v", key="k"
    )
    np.testing.assert_array_equal(keyed.grids[4].z, z)
    with pytest.raises(DataError, match="do not lie on a grid: 200 rows with 200 distinct x"):
        Map.from_table({"x": RNG.random(200), "y": RNG.random(200), "v": RNG.random(200)}, value="v")
    with pytest.raises(DataError, match="'x' has 1 missing values, first row 0"):
        Map.from_table({"x": [np.nan, 1], "y": [0, 1], "v": [0, 1]}, value="v")
    with pytest.raises(InputError, match="needs value="):
        Map.from_table(table)


@shared
def test_real_rasters():
    bei = frames.read_table(SHARED / "pp_bei_covariates.csv")
    trees = un.iid(frames.read_table(SHARED / "pp_bei_points.csv"), y=("x", "y"))
    elev = Map.from_table(bei, value="elev")
    grid = elev.grids[None]
    assert grid.z.shape == (101, 201)
    oracle = RegularGridInterpolator((grid.y, grid.x), grid.z)(trees.outcome[:, ::-1])
    np.testing.assert_allclose(value(elev, trees), oracle, rtol=1e-12)
    # a cell of the table, found by hand
    assert grid.z[2, 0] == bei["elev"][(bei["x"] == 0) & (bei["y"] == 10)][0]

    fixations = frames.read_table(SHARED / "eye_osie_fixations.csv")
    low = fixations["image"] <= 1100
    obs = un.transitions(
        {k: v[low] for k, v in fixations.items()}, y=("x", "y"), order="fix", group=("subject", "image"), extra="image"
    )
    pixels = frames.read_table(SHARED / "eye_osie_image_grid.csv")
    raster = Map.from_table(pixels, value="luminance", key="image", interpolate="nearest")
    got = value(raster, obs)
    for i in RNG.integers(0, obs.n, 30):
        cell = (pixels["image"] == obs.context["image"][i]) & np.all(
            np.abs(np.column_stack([pixels["x"], pixels["y"]]) - obs.outcome[i]) <= 20, axis=1
        )
        assert got[i] in pixels["luminance"][cell]

    track = un.transitions(frames.read_table(SHARED / "animal_deer_track.csv"), y=("x", "y"), group="burst")
    forest = Map.from_table(frames.read_table(SHARED / "animal_deer_forest_grid.csv"), value="frac_forest")
    got = CovariateSet(track, [forest]).values(["frac_forest", "step"], track)
    assert np.all((got["frac_forest"] >= 0) & (got["frac_forest"] <= 1))


@shared
def test_osie_directions_have_the_shares_that_its_readme_counts():
    columns = frames.read_table(SHARED / "eye_osie_fixations.csv")
    obs = un.transitions(columns, y=("x", "y"), order="fix", group=("subject", "image"))
    c = CovariateSet(obs, centre=(400, 300), y_down=True)
    angle = c.values("angle", obs)["angle"]
    off = np.abs(np.mod(angle + np.pi / 4, np.pi / 2) - np.pi / 4)  # from the nearest axis
    assert np.mean(off < np.pi / 16) == pytest.approx(0.346, abs=1e-3)
    assert np.mean(off > np.pi / 4 - np.pi / 16) == pytest.approx(0.191, abs=1e-3)
    assert any("1 of 87,821 steps have length zero" in note for note in c.notes(obs))


def test_many_reference_rows_stay_small_in_memory(chain):
    c = CovariateSet(chain, centre=(400, 300))
    at = np.repeat(np.arange(chain.n), 200_000 // chain.n)
    y = RNG.uniform(0, 600, (at.size, 2))
    tracemalloc.start()
    c.values(["step", "angle", "dcenter"], chain, y, at)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 8 * at.size  # a dozen columns of float64


def test_points_that_are_very_close_are_not_equal_points():
    """The squares of such distances are zero."""
    dx, dy = np.array([3e-170, 0.0]), np.array([4e-170, 0.0])
    np.testing.assert_allclose(distance(dx, dy), [5e-170, 0.0])
    np.testing.assert_allclose(distance(np.array([3.0, -6.0]), np.array([4.0, 8.0])), [5.0, 10.0])
    assert distance(np.empty(0), np.empty(0)).size == 0
