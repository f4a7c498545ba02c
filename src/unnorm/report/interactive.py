"""The numbers behind a figure, for a reader to ask: values at the pointer, levels switched on and off, CSV.

`Chart` is what a figure of curves shows, and `charted` puts it beside the static picture; `Field` and `mapped` do so
for a map, whose picture stays and says by its `Frame` where its axes are. `block` writes all of a page as one JSON text
that static/report.js and static/maps.js read. Without JavaScript the static pictures stand as they are.

Numbers are rounded to what a picture needs: with d such that 10^-d is between 1/2,000 and 1/20,000 of what the values
span, v is stored as the integer round(10^d v), and a curve as its first integer and the steps from each to the next.
Smooth curves have small steps, so that a point of a curve with its band takes about ten characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log10
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

if TYPE_CHECKING:
    from .page import Picture, Section

FINEST = 2_000  # parts of the span that a picture tells apart
POINTS = 100  # of a curve; fewer where there are many curves
MOST_POINTS, FEWEST = 5_000, 30  # of all curves of a chart together, and of one of them
MOST_CURVES = 200  # more stay a static picture
MOST_CELLS = 10_000  # of a map
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})  # the same characters to whoever reads JSON


@final
@dataclass(frozen=True)
class Curve:
    """A curve over x with its band. `level` is whose it is, and so the switch that shows and hides it; the others
    are "main" curves, or a "mean" that is dashed."""

    name: str
    x: np.ndarray
    y: np.ndarray  # one shorter than x for stairs, whose edges are x
    band: tuple[np.ndarray, np.ndarray] | None = None
    outer: tuple[np.ndarray, np.ndarray] | None = None  # the simultaneous band, where there is one
    colour: str = "#1f5fa8"
    level: str | None = None
    role: Literal["main", "mean", "level"] = "main"


@final
@dataclass(frozen=True)
class Chart:
    """Curves of one covariate. Charts that share a tuple of curves share their numbers on the page."""

    x: str
    y: str
    curves: tuple[Curve, ...] = field(repr=False)
    unit: str = ""
    by: str = ""  # what a level is: "subject"
    coverage: str = "95 %"
    kind: Literal["lines", "stairs"] = "lines"
    panels: bool = False  # a panel for each level
    circular: bool = False  # x is an angle


@final
@dataclass(frozen=True)
class Frame:
    """Where the axes of a picture are: left, top, right and bottom as shares of it, and the values at these sides."""

    box: tuple[float, float, float, float]
    limits: tuple[float, float, float, float]


@final
@dataclass(frozen=True)
class Field:
    """A map: the values z (len(y), len(x)) of cells whose centres are at x and y, NaN where there are none."""

    value: str  # what z is
    names: tuple[str, str]
    units: tuple[str, str]
    x: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    z: np.ndarray = field(repr=False)

    def extremes(self) -> str:
        """Where the map is highest and lowest, for those who do not see it."""
        if not np.isfinite(self.z).any():
            return "It has no values."

        def at(place: np.intp) -> str:
            i, j = np.unravel_index(place, self.z.shape)
            where = f"{self.names[0]} {self.x[j]:.4g}, {self.names[1]} {self.y[i]:.4g}"
            return f"{self.z[i, j]:.3g}, at {where}"

        known = np.where(np.isfinite(self.z), self.z, np.nan)
        return f"It is highest, {at(np.nanargmax(known))}, and lowest, {at(np.nanargmin(known))}."


def mapped(picture: Picture, shown: Field) -> Picture:
    """The picture with the numbers of its map; as it is where they are not on a grid of two cells at least."""
    alone = picture.frame is None or min(shown.x.size, shown.y.size) < 2
    return picture if alone else replace(picture, map=shown)


def charted(picture: Picture, chart: Chart | None) -> Picture:
    """The picture with the numbers behind it; as it is where there are none, or too many curves to switch."""
    return picture if chart is None or not 0 < len(chart.curves) <= MOST_CURVES else replace(picture, chart=chart)


def curve(name: str, table: Mapping[str, Any], covariate: str, **more: Any) -> Curve:
    """The curve of a table of an effect, with its band; `more` are fields of `Curve`."""
    x, y, lower, upper = (np.asarray(table[key], dtype=float) for key in (covariate, "estimate", "lower", "upper"))
    return Curve(name, x, y, (lower, upper), **more)


# --- JSON ------------------------------------------------------------------------------------------------------------


def block(sections: Iterable[Section]) -> str:
    """Charts and maps of a page as JSON that may stand in a script element: no `<`, `>`, `&`, nothing beyond ASCII."""
    sets: list[dict[str, Any]] = []
    known: dict[int, int] = {}  # identity of a tuple of curves → its place in `sets`
    charts: dict[str, dict[str, Any]] = {}
    maps: dict[str, dict[str, Any]] = {}
    for section in sections:
        for i, picture in enumerate(section.pictures):
            if picture.map is not None and picture.frame is not None:
                maps[figure_id(section.anchor, i)] = _map(picture.map, picture.frame)
            if (chart := picture.chart) is None:
                continue
            if id(chart.curves) not in known:
                known[id(chart.curves)] = len(sets)
                sets.append(_set(chart))
            charts[figure_id(section.anchor, i)] = _chart(chart, known[id(chart.curves)])
    text = json.dumps({"sets": sets, "charts": charts, "maps": maps}, separators=(",", ":"), allow_nan=False)
    return text.translate(_UNSAFE)


def figure_id(anchor: str, i: int) -> str:
    """The name by which the page finds the chart of a section's i-th picture."""
    return f"{anchor}-{i + 1}"


def _chart(chart: Chart, at: int) -> dict[str, Any]:
    words = {"x": chart.x, "y": chart.y, "unit": chart.unit, "by": chart.by, "coverage": chart.coverage}
    return {"set": at, **words, "kind": chart.kind, "panels": chart.panels, "circular": chart.circular}


def _map(shown: Field, frame: Frame) -> dict[str, Any]:
    """The numbers of a map, rounded; of one with very many cells every second, third, … of them each way."""
    apart = ceil((shown.z.size / MOST_CELLS) ** 0.5)
    x, y, z = shown.x[::apart], shown.y[::apart], shown.z[::apart, ::apart]
    places = [decimals([values]) for values in (x, y, z)]
    coordinates = {"x": coded(x, places[0]), "y": coded(y, places[1]), "z": coded(z.ravel(), places[2])}
    return {
        "value": shown.value, "names": shown.names, "units": shown.units, "places": places, **coordinates,
        "box": [round(share, 5) for share in frame.box], "limits": frame.limits,
    }  # fmt: skip


def _set(chart: Chart) -> dict[str, Any]:
    """The numbers of a chart's curves, thinned and rounded."""
    stairs = chart.kind == "stairs"
    most = max(FEWEST, min(POINTS, MOST_POINTS // max(len(chart.curves), 1)))
    shown = list(chart.curves) if stairs else [thinned(one, most) for one in chart.curves]
    across = decimals([one.x for one in shown])
    along = decimals([values for one in shown for values in _heights(one)])
    first = shown[0].x
    curves = [_curve(one, first, across, along) for one in shown]
    return {"dx": across, "dy": along, "x": coded(first, across), "curves": curves}


def _heights(one: Curve) -> list[np.ndarray]:
    return [one.y, *(one.band or ()), *(one.outer or ())]


def _curve(one: Curve, first: np.ndarray, across: int, along: int) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one.name, "role": one.role, "colour": one.colour}
    if one.level is not None:
        out["level"] = one.level
    if not np.array_equal(one.x, first):
        out["x"] = coded(one.x, across)
    out["y"] = coded(one.y, along)
    for key, pair in (("band", one.band), ("outer", one.outer)):
        if pair is not None:
            out[key] = [coded(values, along) for values in pair]
    return out


def thinned(one: Curve, most: int) -> Curve:
    """At most so many points of a curve, spread evenly, its ends among them."""
    if len(one.x) <= most:
        return one
    at = np.unique(np.linspace(0, len(one.x) - 1, most).round().astype(int))
    pairs = {
        name: None if pair is None else (pair[0][at], pair[1][at])
        for name, pair in (("band", one.band), ("outer", one.outer))
    }
    return replace(one, x=one.x[at], y=one.y[at], **pairs)


def decimals(arrays: Sequence[np.ndarray]) -> int:
    """d, so that 10^-d is at most 1/2,000 of what the finite values span, and more than 1/20,000 of it."""
    values = np.concatenate([np.asarray(one, dtype=float).ravel() for one in arrays]) if arrays else np.zeros(0)
    values = values[np.isfinite(values)]
    span = float(np.ptp(values)) if values.size else 0.0
    span = span or (float(np.abs(values).max()) if values.size else 0.0) or 1.0
    return int(np.clip(ceil(log10(FINEST / span)), -300, 300))


def coded(values: np.ndarray, places: int) -> list[int | None]:
    """The first of round(10^places v) and the steps from each to the next; None where v is not finite."""
    v = np.asarray(values, dtype=float)
    known = np.isfinite(v)
    q = [round(value) for value in (v[known] * 10.0**places).tolist()]
    steps = iter([b - a for a, b in zip([0, *q], q)])
    return [next(steps) if here else None for here in known.tolist()]
