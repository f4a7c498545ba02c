"""Windows: a region of the plane for each context, as every image of a scanpath study has its own size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from .._base import column_checks, frames
from .._base.numerics import codes_of
from .._base.words import at_row
from ..errors import CombinationError, DataError, InputError, listing
from .base import REGISTRY, Corners, Domain
from .boxes import Box
from .window import Window

SIZE, CORNERS = ("width", "height"), ("x0", "x1", "y0", "y1")
SHAPES = "width and height (from 0, 0), or x0, x1, y0 and y1"


@final
class Windows(Domain):
    """Ω(x): the window that the context's column `key` names, as each image has its own size.

    Reference points, integrals, simulations and held-out densities of a context use its own window; `dcenter` is the
    distance from that window's centre, and `xrel`, `yrel` are shares of its width and height. Values of `key` with
    equal windows share them.

    Args:
        windows: a mapping from the values of `key` to (width, height), to (x0, x1, y0, y1), to a `Box` or a `Window`,
            or to the vertices of a polygon; or a table with the column `key` and the columns width and height, or x0,
            x1, y0, y1.
        key: the observations' column, among their groups or in their context.

    >>> sizes = Windows({"a.jpg": (800, 600), "b.jpg": (600, 800), "c.jpg": (800, 600)}, key="image")
    >>> sizes.windows
    (Box((0, 800), (0, 600)), Box((0, 600), (0, 800)))
    >>> sizes.codes(np.array(["c.jpg", "b.jpg"])).tolist()
    [0, 1]
    """

    dim = 2
    of_contexts = True

    def __init__(self, windows: Any, key: str) -> None:
        if not isinstance(key, str) or not key:
            raise InputError(f"key must name the column that tells windows apart, as key='image'; got {key!r}.")
        regions = _regions(windows, key)
        if not regions:
            raise InputError(f"Windows needs one window or more for the values of {key!r}; got none.")
        distinct: dict[Domain, int] = {}
        self._place = {_plain(value): distinct.setdefault(region, len(distinct)) for value, region in regions.items()}
        self._windows = tuple(distinct)
        self.key = key

    @property
    def windows(self) -> tuple[Domain, ...]:
        """The distinct windows."""
        return self._windows

    def codes(self, values: np.ndarray) -> np.ndarray:
        """(n,) values of the key → (n,) positions in `windows`."""
        values = np.asarray(values)
        place = self._place
        out = codes_of(values, place)
        lost = np.flatnonzero(out < 0)
        if lost.size:
            absent = list(dict.fromkeys(values[lost].tolist()))
            kinds = {type(value).__name__ for value in place}
            other = type(absent[0]).__name__ not in kinds
            hint = f" Those with a window are {listing(sorted(kinds))}: write the keys alike." if other else ""
            raise DataError(
                f"There is no window for {len(absent):,} values of {self.key!r} ({lost.size:,} of {values.size:,} "
                f"rows), first {absent[0]!r}; there are windows for "
                f"{listing(place, most=3)}. Add them to the table of windows, or leave their rows out.{hint}"
            )
        return out

    @cached_property
    def hull(self) -> Box:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The smallest box around all windows."""
        boxes = [region.enclosing_box for region in self._windows]
        lower = np.min([box[0] for box in boxes if box is not None], axis=0)
        upper = np.max([box[1] for box in boxes if box is not None], axis=0)
        return Box(*zip(lower.tolist(), upper.tolist()))

    @property
    def enclosing_box(self) -> Corners:
        return self.hull.sides

    def scaled(self, by: float) -> Windows:
        """Every window in other units of length."""
        regions = [region.scaled(by) for region in self._windows]
        return Windows({value: regions[code] for value, code in self._place.items()}, str(self.key))

    # Ω without a context: no such thing, and code that asks for it was written for one window
    def _refuse(self) -> CombinationError:
        return CombinationError(
            f"Each {self.key} has its own window, and this needs one Ω for all. With un.Windows fit un.Additive(…) by "
            "un.Logistic(…), or any model by un.Ranking(…); or fit the data of one window at a time."
        )

    @property
    def volume(self) -> float:
        raise self._refuse()

    @property
    def log_volume(self) -> float:
        raise self._refuse()

    def contains(self, y: np.ndarray) -> np.ndarray:
        raise self._refuse()

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        raise self._refuse()

    def quadrature(self, order: int | None = None) -> Any:
        raise self._refuse()

    def to_dict(self) -> dict[str, Any]:
        return {
            "domain": "Windows",
            "key": self.key,
            "windows": [region.to_dict() for region in self._windows],
            "values": [[value, code] for value, code in self._place.items()],
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        regions = [REGISTRY.read(one) for one in description["windows"]]
        return cls({value: regions[code] for value, code in description["values"]}, description["key"])

    def __repr__(self) -> str:
        (x0, y0), (x1, y1) = self.hull.sides
        many = f"{len(self._windows):,} windows" if len(self._windows) > 1 else "one window"
        about = f"{many} for {len(self._place):,} values of {self.key!r}"
        return f"Windows({about}, within ({x0:g}, {x1:g}) × ({y0:g}, {y1:g}))"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _regions(windows: Any, key: str) -> dict[Any, Domain]:
    """Value of the key → its window."""
    if isinstance(windows, Mapping) and key not in windows:
        return {value: _region(given, f"{key} {value!r}") for value, given in windows.items()}
    table = frames.table(windows)
    if key not in table.names:
        raise InputError(f"The table of windows has no column {key!r}; it has {listing(table.names, most=40)}.")
    names = next((names for names in (CORNERS, SIZE) if set(names) <= set(table.names)), None)
    if names is None:
        raise InputError(
            f"The table of windows must have the columns {SHAPES} beside {key!r}; it has "
            f"{listing(table.names, most=40)}."
        )
    columns = [table.column(name, "window") for name in names]
    column_checks.check_numeric(columns, "window")
    column_checks.check_finite(columns)
    for column in (table.column(key, "key"), *columns):
        if column.missing is not None and column.missing.any():
            raise DataError(
                f"The table of windows has {int(column.missing.sum()):,} missing values in column {column.name!r}, "
                f"first {at_row(int(np.argmax(column.missing)))}. Fill them in, or remove these rows."
            )
    values = table.column(key, "key").whole().take(np.arange(table.n)).tolist()
    bounds = np.column_stack([column.data for column in columns]).astype(float)
    out: dict[Any, Domain] = {}
    made: dict[tuple[float, ...], Domain] = {}
    for row, (value, given) in enumerate(zip(values, map(tuple, bounds.tolist()))):
        if given not in made:
            made[given] = _region(given, f"{key} {value!r}, in {at_row(row)}")
        if out.setdefault(value, made[given]) != made[given]:
            raise InputError(
                f"The table of windows gives {key} {value!r} two different windows, the second in "
                f"{at_row(row)}: one row for each is expected."
            )
    return out


def _region(given: Any, what: str) -> Domain:
    """One window from what was given for it."""
    if isinstance(given, Domain):
        if given.dim != 2 or given.enclosing_box is None or given.of_contexts:
            raise InputError(f"The window of {what} must be a Box or a Window in the plane; got {given!r}.")
        return given
    if isinstance(given, tuple | list | np.ndarray) and np.ndim(given) == 1 and len(given) in (2, 4):
        x0, x1, y0, y1 = (0.0, given[0], 0.0, given[1]) if len(given) == 2 else given
        try:
            return Box((x0, x1), (y0, y1))
        except InputError as error:
            raise InputError(f"The window of {what}: {error}") from error
    try:
        if isinstance(given, Mapping):  # GeoJSON
            import shapely.geometry

            given = shapely.geometry.shape(dict(given))
        return Window(given)
    except InputError as error:
        raise InputError(
            f"The window of {what} must be (width, height), (x0, x1, y0, y1), a Box, a Window or a polygon: {error}"
        ) from error


def keyed_polygons(content: Any, key: str) -> dict[Any, Any]:
    """Polygons of a GeoJSON FeatureCollection by the property `key` of each feature."""
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list) or not features:
        raise InputError("Windows by key need a GeoJSON FeatureCollection with a feature for each; got none.")
    out: dict[Any, Any] = {}
    for number, one in enumerate(features):
        about = one.get("properties") if isinstance(one, dict) else None
        if not isinstance(about, dict) or key not in about or not one.get("geometry"):
            got = json.dumps(about)[:80]
            raise InputError(
                f"Feature {number} (from 0) of the windows must have a geometry and the property {key!r}; got {got}."
            )
        if about[key] in out:
            raise InputError(f"Two features of the windows have {key} {about[key]!r}: one for each is expected.")
        out[about[key]] = one["geometry"]
    return out
