"""The numbers behind figures: rounded to what a picture needs, safe inside a script element, each once on a page."""

from __future__ import annotations

import base64
import json
import re
from importlib.resources import files

import numpy as np
import pytest

from unnorm.report.figures import draw
from unnorm.report.interactive import (
    FINEST,
    MOST_CELLS,
    MOST_CURVES,
    Chart,
    Curve,
    Field,
    Frame,
    block,
    charted,
    coded,
    decimals,
    mapped,
    thinned,
)
from unnorm.report.page import Picture, Section

X = np.linspace(0.0, 800.0, 60)
HOSTILE = "</script><!--<script>]]>&amp;\u2028\u2029\"'\\ ünï"


def decoded(steps, places):
    """As report.js does it."""
    total, out = 0, []
    for step in steps:
        total += step or 0
        out.append(np.nan if step is None else total / 10.0**places)
    return np.array(out)


def section(*charts, anchor="effects"):
    pictures = tuple(charted(Picture("data:,", "alt", "caption"), one) for one in charts)
    return Section(pictures=pictures, anchor=anchor)


@pytest.mark.parametrize("scale", [1e-9, 0.003, 1.0, 47.0, 1e5, 1e12])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_values_are_known_to_what_a_picture_shows(scale, shift):
    values = scale * (shift + np.sin(X / 90))
    places = decimals([values])
    quantum, span = 10.0**-places, np.ptp(values)
    assert span / (10 * FINEST) < quantum * (1 + 1e-9)
    assert quantum <= span / FINEST * (1 + 1e-9)
    assert np.abs(decoded(coded(values, places), places) - values).max() <= 0.5000001 * quantum
    assert all(isinstance(step, int) for step in coded(values, places))


def test_what_is_not_finite_is_left_open():
    values = np.array([np.nan, 1.5, np.inf, 2.25, -np.inf, -1.0])
    assert coded(values, 2) == [None, 150, None, 75, None, -325]
    assert decimals([values]) == decimals([np.array([1.5, 2.25, -1.0])])
    assert decimals([np.full(3, np.nan)]) == decimals([np.zeros(0)]) == decimals([np.zeros(4)]) == 4
    assert decimals([np.full(4, 250.0)]) == 1


def test_thinning_keeps_the_ends_and_rows_together():
    one = thinned(Curve("a", X, 2 * X, (X - 1, X + 1)), 13)
    assert (one.x[0], one.x[-1], len(one.x)) == (X[0], X[-1], 13)
    assert np.array_equal(one.y, 2 * one.x)
    assert one.band is not None
    assert np.array_equal(one.band[1] - one.band[0], np.full(13, 2.0))
    assert thinned(one, 13) is one


def test_the_block_is_safe_inside_a_script_and_says_the_same():
    chart = Chart(HOSTILE, "y", (Curve(HOSTILE, X, X, level=HOSTILE, role="level"),), by=HOSTILE)
    text = block([section(chart)])
    assert text.isascii()
    assert not set("<>&") & set(text)
    found = json.loads(text)
    assert found["charts"]["effects-1"]["x"] == found["charts"]["effects-1"]["by"] == HOSTILE
    assert found["sets"][0]["curves"][0]["name"] == found["sets"][0]["curves"][0]["level"] == HOSTILE


def test_charts_that_share_curves_share_their_numbers():
    curves = (Curve("a", X, X), Curve("b", X, -X, (X - 1, X + 1)))
    own = (Curve("c", X[:9], X[:9]), Curve("d", X, X))
    text = block(
        [
            section(Chart("x", "y", curves)),
            section(Chart("x", "y", curves, panels=True), Chart("x", "y", own), anchor="each"),
        ]
    )
    found = json.loads(text)
    assert {name: one["set"] for name, one in found["charts"].items()} == {"effects-1": 0, "each-1": 0, "each-2": 1}
    assert ["x" in one for one in found["sets"][1]["curves"]] == [False, True]  # a grid of its own is written
    assert np.allclose(decoded(found["sets"][1]["curves"][1]["x"], found["sets"][1]["dx"]), X, atol=0.05)


def test_too_many_curves_stay_a_picture():
    picture = Picture("data:,", "alt", "caption")
    assert charted(picture, None) is picture
    assert charted(picture, Chart("x", "y", ())) is picture
    assert charted(picture, Chart("x", "y", (Curve("a", X, X),) * (MOST_CURVES + 1))) is picture
    assert charted(picture, Chart("x", "y", (Curve("a", X, X),))).chart is not None
    assert json.loads(block([Section(pictures=(picture,), anchor="a")])) == {"sets": [], "charts": {}, "maps": {}}


def test_many_levels_have_fewer_points_each():
    many = tuple(Curve(str(i), np.arange(100.0), np.arange(100.0)) for i in range(MOST_CURVES))
    found = json.loads(block([section(Chart("x", "y", many))]))
    assert {len(one["y"]) for one in found["sets"][0]["curves"]} == {30}


FRAME = Frame((0.1, 0.2, 0.9, 0.8), (0.0, 600.0, 800.0, 0.0))


def test_the_numbers_of_a_map_are_those_of_its_cells():
    x, y = np.linspace(10, 790, 40), np.linspace(10, 590, 30)
    z = np.sin(x / 90) + np.cos(y / 70)[:, None]
    z[3, 4] = np.nan
    field = Field("height", (HOSTILE, "y"), ("px", ""), x, y, z)
    picture = mapped(Picture("data:,", "alt", "caption", frame=FRAME), field)
    (found,) = json.loads(block([Section(pictures=(picture,), anchor="maps")]))["maps"].values()
    assert found["names"] == [HOSTILE, "y"]
    assert (found["box"], found["limits"]) == ([0.1, 0.2, 0.9, 0.8], [0, 600, 800, 0])
    for name, places, values in zip("xyz", found["places"], (x, y, z.ravel())):
        assert np.allclose(
            decoded(found[name], places),
            values,
            rtol=0,
            atol=np.ptp(values[np.isfinite(values)]) / FINEST,
            equal_nan=True,
        )
    i, j = np.unravel_index(np.nanargmax(z), z.shape)
    assert f"highest, {z[i, j]:.3g}, at {HOSTILE} {x[j]:.4g}, y {y[i]:.4g}" in field.extremes()


def test_a_map_of_very_many_cells_keeps_some_and_one_without_axes_stays_a_picture():
    side = np.arange(250.0)
    field = Field("z", ("x", "y"), ("", ""), side, side, side + 1000 * side[:, None])
    picture = Picture("data:,", "alt", "caption")
    assert mapped(picture, field) is picture
    with_axes = mapped(Picture("data:,", "alt", "caption", frame=FRAME), field)
    (found,) = json.loads(block([Section(pictures=(with_axes,), anchor="a")]))["maps"].values()
    x, y, z = (decoded(found[name], places) for name, places in zip("xyz", found["places"]))
    assert len(z) == len(x) * len(y) <= MOST_CELLS
    assert np.allclose(z.reshape(len(y), -1), x + 1000 * y[:, None], atol=250)
    assert "no values" in Field("z", ("x", "y"), ("", ""), side, side, np.full((250, 250), np.nan)).extremes()


@pytest.mark.parametrize("name", ["report.js", "maps.js"])
def test_the_script_is_small_and_plain(name):
    script = (files("unnorm.report") / "static" / name).read_text(encoding="utf-8")
    assert len(script.splitlines()) < 500
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "eval(",
        "Function(",
        "document.write",
        "</script",
        "<!--",
        "http:",
        "https:",
        "fetch(",
    ):
        assert word not in script.replace('"http://www.w3.org/2000/svg"', ""), word


@pytest.mark.parametrize("bar", ["inside", "beside"])
def test_the_frame_is_where_the_picture_has_its_axes(bar):
    """The background of the axes in the SVG, as shares of its size."""

    def paint(ax):
        drawn = ax.pcolormesh([0.5, 1.5, 2.5], [0.5, 1.5], np.arange(6.0).reshape(2, 3), shading="nearest")
        ax.figure.colorbar(drawn, **({"cax": ax.inset_axes((1.03, 0, 0.05, 1))} if bar == "inside" else {"ax": ax}))
        ax.set_aspect("equal")
        ax.invert_yaxis()

    picture = draw(paint, "alt", "caption", (4.4, 3.9))
    svg = base64.b64decode(picture.uri.partition(",")[2]).decode()
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    path = re.findall(r'<g id="patch_2">\s*<path d="([^"]+)"', svg)[0]
    x, y = np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path), dtype=float).T
    assert picture.frame is not None
    assert picture.frame.box == pytest.approx(
        (x.min() / width, y.min() / height, x.max() / width, y.max() / height), abs=1e-4
    )
    assert picture.frame.limits == pytest.approx((0.0, 0.0, 3.0, 2.0))
