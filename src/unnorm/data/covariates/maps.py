"""Maps: covariates given on a raster, one for all observations or one for each key (an image, a year).

The axes are the centres of the cells, which need not be equally wide; a cell reaches half-way to its neighbours, and
the outermost as far out as in. Beyond the outermost centres bilinear interpolation is constant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

import numpy as np

from ..._base import column_checks, frames
from ..._base.numerics import codes_of, floats
from ..._base.words import at_row, either
from ...errors import DataError, InputError, OutsideError, listing, unknown
from .base import Covariate, CovariateRows
from .columns import check_name
from .map_files import ARRAYS, IMAGES, RASTERS, Extent, by_pattern, over, read_cells, read_npz

Interpolation = Literal["bilinear", "nearest"]
Beyond = Literal["error", "nearest"]
Match = Literal["exact", "latest"]  # of keys: the same, or the largest that is no larger (the latest time)
_EDGE = 1e-9  # of the raster's width: a point on the border is inside whatever the rounding


@dataclass(frozen=True, eq=False)
class Grid:
    """Values z (ny, nx) on increasing axes; NaN where the raster has no value."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray

    def extent(self) -> tuple[float, float, float, float]:
        """x from, to, y from, to: the outer borders of the cells."""
        (x0, x1), (y0, y1) = _borders(self.x), _borders(self.y)
        return x0, x1, y0, y1

    def at(self, px: np.ndarray, py: np.ndarray, interpolate: Interpolation, beyond: Beyond) -> np.ndarray:
        """The values at points, NaN where there is none."""
        i, wx = _place(self.x, px)
        j, wy = _place(self.y, py)
        own = self.z[np.where(wy > 0.5, j + 1, j), np.where(wx > 0.5, i + 1, i)]
        value = own
        if interpolate == "bilinear":
            corners = (self.z[j, i], self.z[j, i + 1], self.z[j + 1, i], self.z[j + 1, i + 1])
            weights = ((1 - wx) * (1 - wy), wx * (1 - wy), (1 - wx) * wy, wx * wy)
            low, high = (a + wx * (b - a) for a, b in (corners[:2], corners[2:]))
            value = low + wy * (high - low)  # constant where the corners are, to the last digit
            holes = np.isnan(value) & ~np.isnan(own)
            if holes.any():  # next to cells without a value: the mean over the others, with the same weights
                there = [(w * ~np.isnan(z))[holes] for w, z in zip(weights, corners)]
                total = sum(w * np.nan_to_num(z[holes]) for w, z in zip(there, corners))
                value[holes] = total / sum(there)
            value = np.where(np.isnan(own), np.nan, value)
        if beyond == "nearest":
            return value
        x0, x1, y0, y1 = self.extent()
        tx, ty = _EDGE * (x1 - x0), _EDGE * (y1 - y0)
        inside = (px >= x0 - tx) & (px <= x1 + tx) & (py >= y0 - ty) & (py <= y1 + ty)
        return np.where(inside, value, np.nan)

    def filled(self) -> Grid:
        """Cells without a value take that of the nearest cell that has one."""
        gone = np.isnan(self.z)
        if not gone.any() or gone.all():
            return self
        from scipy.spatial import KDTree

        centres = np.stack(np.meshgrid(self.x, self.y), axis=-1)
        _, nearest = KDTree(centres[~gone]).query(centres[gone])
        z = self.z.copy()
        z[gone] = self.z[~gone][nearest]
        return Grid(self.x, self.y, z)


@final
class Map(Covariate):
    """A raster as a covariate of the points at `coordinates` (default: the outcome; ("x_prev", "y_prev"): the context).

    Args:
        name: of the covariate, as terms call it.
        values: (ny, nx) numbers, or a mapping from keys to such arrays.
        x: (nx,) centres of the cells, or a mapping from keys to them.
        y: (ny,) centres of the cells, or a mapping from keys to them.
        interpolate: "bilinear" between centres, or "nearest".
        key: the observations' column that says which of several rasters to use.
        outside: "error" for a point outside the raster or in a cell that is NaN, with the count and the first point;
            "nearest" takes the nearest cell.
        coordinates: the two covariates that say where to look.
        match: "exact", the raster with that key; "latest", the last that is not later, where keys are times.

    >>> Map("elev", [[0.0, 1.0], [2.0, 3.0]], x=[0, 1], y=[0, 1]).needs
    ('x', 'y')
    """

    # long: a public entry point
    def __init__(
        self,
        name: str,
        values: Any,
        x: Any,
        y: Any,
        interpolate: Interpolation = "bilinear",
        key: str | None = None,
        *,
        outside: Beyond = "error",
        coordinates: tuple[str, str] = ("x", "y"),
        match: Match = "exact",
    ) -> None:
        self.name = check_name(name)
        for option, given, choices in (
            ("interpolate", interpolate, ("bilinear", "nearest")),
            ("outside", outside, ("error", "nearest")),
            ("match", match, ("exact", "latest")),
        ):
            if given not in choices:
                raise InputError(unknown(f"{option} of map {name!r}", given, choices))
        if isinstance(values, Mapping) != (key is not None):
            raise InputError(f"Map {name!r}: key= and a mapping from keys to grids go together; got only one of them.")
        if len(coordinates) != 2:
            raise InputError(f"Map {name!r}: coordinates must name two covariates; got {coordinates!r}.")
        self.interpolate: Interpolation = interpolate
        self.outside: Beyond = outside
        self.match: Match = match
        self.key = key
        self.needs = (*coordinates, *(() if key is None else (key,)))
        given = values if isinstance(values, Mapping) else {None: values}
        if not given:
            raise InputError(f"Map {name!r} has no grids.")
        grids = {}
        for k, z in given.items():
            k = k.item() if isinstance(k, np.generic) else k
            which = f"map {name!r}" if key is None else f"map {name!r}, {key} {k!r}"
            grids[k] = _grid(which, z, x[k] if isinstance(x, Mapping) else x, y[k] if isinstance(y, Mapping) else y)
        self.grids: Mapping[Any, Grid] = grids
        if match == "latest" and not all(isinstance(k, int | float) for k in grids):
            raise InputError(f"Map {name!r}: match='latest' needs numbers as keys, as times; got {listing(grids)}.")
        self._missing = sum(int(np.isnan(grid.z).sum()) for grid in grids.values())
        self._used = {k: grid.filled() for k, grid in grids.items()} if outside == "nearest" else grids

    # long: a public entry point
    @classmethod
    def from_table(
        cls,
        columns: Any,
        x: str = "x",
        y: str = "y",
        value: str | None = None,
        key: str | None = None,
        *,
        name: str | None = None,
        interpolate: Interpolation = "bilinear",
        outside: Beyond = "error",
        coordinates: tuple[str, str] = ("x", "y"),
        match: Match = "exact",
    ) -> Map:
        """A map from a tidy table with one row for each cell; its name is `name`, or the value's column.

        Cells that are not in the table, or whose value is missing, have no value; `notes` counts them.

        >>> grid = {"x": [0, 1, 0, 1], "y": [0, 0, 1, 1], "elev": [5.0, 6.0, 7.0, 8.0]}
        >>> Map.from_table(grid, value="elev").grids[None].z.shape
        (2, 2)
        """
        table = frames.table(columns)
        if value is None:
            raise InputError("Map.from_table needs value=: the column that holds the map's values.")
        places = [table.column(x, "x"), table.column(y, "y")]
        column = table.column(value, "value")
        keys = None if key is None else table.column(key, "key").whole()
        keys = keys.as_times() if keys is not None and match == "latest" else keys
        column_checks.check_numeric([*places, column], "x=, y=, value")
        column_checks.check_finite([*places, column])
        for part in (*places, *([] if keys is None else [keys])):
            if part.missing is not None:
                first = int(np.argmax(part.missing))
                raise DataError(
                    f"Column {part.name!r} has {int(part.missing.sum()):,} missing values, first {at_row(first)}; "
                    "a cell must say where it is."
                )
        px, py = (part.data.astype(np.float64) for part in places)
        z = column.data.astype(np.float64)
        if column.missing is not None:
            z = np.where(column.missing, np.nan, z)
        label = name or value
        everything = np.arange(table.n)
        if keys is None:
            gx, gy, gz = _gather(label, px, py, z, everything)
            return cls(label, gz, gx, gy, interpolate, outside=outside, coordinates=coordinates)
        levels, codes = np.unique(keys.take(everything), return_inverse=True)
        order = np.argsort(codes, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        made = {k: _gather(label, px[rows], py[rows], z[rows], rows) for k, rows in zip(levels.tolist(), parts)}
        return cls(
            label,
            {k: gz for k, (_, _, gz) in made.items()},
            {k: gx for k, (gx, _, _) in made.items()},
            {k: gy for k, (_, gy, _) in made.items()},
            interpolate,
            key,
            outside=outside,
            coordinates=coordinates,
            match=match,
        )

    # long: a public entry point
    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        name: str | None = None,
        *,
        extent: Extent | None = None,
        band: int = 1,
        value: str | None = None,
        key: str | None = None,
        interpolate: Interpolation = "bilinear",
        outside: Beyond = "error",
        coordinates: tuple[str, str] = ("x", "y"),
        match: Match = "exact",
    ) -> Map:
        """A map from a file, as `--map` reads it: a table with a row for each cell (.csv, .parquet), arrays (.npy,
        .npz), an image (.png, .jpg) or GeoTIFF (with rasterio).

        Args:
            path: of the file; maps/{image}.png are files by the observations' column `image`.
            name: of the covariate; default the file's own name, without its ending.
            extent: where an array or an image lies: x from, to, y from, to. Its first row is at the smallest y.
            band: of a GeoTIFF, counted from 1.
            value: of a table, the column of values; default `name`, or "value".
            key: the observations' column that says which of several grids to use.
            interpolate: as in `Map`.
            outside: as in `Map`.
            coordinates: as in `Map`.
            match: as in `Map`.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder) / "elevation.npy", np.arange(12.0).reshape(3, 4))
        ...     found = Map.read(Path(folder) / "elevation.npy", extent=(0, 8, 0, 6))
        >>> found.name, found.grids[None].x.tolist()
        ('elevation', [1.0, 3.0, 5.0, 7.0])
        """
        file = Path(path)
        label, what = name or file.stem, f"Map {name or file.stem!r}"
        braces = re.search(r"\{(\w+)\}", str(path))
        if braces is None and not file.is_file():
            raise InputError(f"{what}: there is no file {str(path)!r}.")
        common: dict[str, Any] = {"outside": outside, "coordinates": coordinates, "match": match}
        if file.suffix.lower() not in (*ARRAYS, *IMAGES, *RASTERS):
            table = frames.read_table(file)
            column = value or next((one for one in (label, "value") if one in table), None)
            if column is None:
                raise InputError(f"{what}: {str(path)!r} has the columns {listing(list(table))}; say which, value=….")
            more = {"name": label, "interpolate": interpolate, **common}
            return cls.from_table(table, value=column, key=key, **more)
        if braces is not None:
            key, found = braces.group(1), by_pattern(str(path), braces.group(1), lambda one: one, what)
            cells = {k: read_cells(one, what, extent, band) for k, one in found.items()}
        elif file.suffix.lower() == ".npz":
            if extent is None:
                raise InputError(f"{what}: {str(path)!r} has values only. Say where it lies, extent=(x0, x1, y0, y1).")
            cells = {k: over(z, extent) for k, z in read_npz(file, what).items()}
        else:
            cells = {None: read_cells(file, what, extent, band)}
        if key is None and len(cells) > 1:
            raise InputError(f"{what}: {str(path)!r} has {len(cells)} arrays; say by which column they go, key=….")
        if key is None:
            ((z, px, py),) = cells.values()
            return cls(label, z, px, py, interpolate, **common)
        z, px, py = ({k: one[j] for k, one in cells.items()} for j in range(3))
        return cls(label, z, px, py, interpolate, key, **common)

    def values(self, rows: CovariateRows) -> np.ndarray:
        px, py = (np.asarray(rows[name], dtype=np.float64) for name in self.needs[:2])
        if self.key is None:
            out = self._used[None].at(px, py, self.interpolate, self.outside)
        else:
            out = self._by_key(px, py, rows[self.key])
        bad = np.flatnonzero(np.isnan(out))
        if bad.size:
            raise OutsideError(self._nothing_there(px, py, rows, bad))
        return out

    def _by_key(self, px: np.ndarray, py: np.ndarray, key: np.ndarray) -> np.ndarray:
        place = {k: code for code, k in enumerate(self._used)}
        if self.match == "latest":
            times = np.array(sorted(place), dtype=float)
            since = np.searchsorted(times, np.asarray(key, dtype=float), side="right") - 1
            codes = np.where(since < 0, -1, np.array([place[t] for t in sorted(place)])[since])
        else:
            codes = codes_of(key, place)
        lost = np.flatnonzero(codes < 0)
        if lost.size:
            absent = list(dict.fromkeys(key[lost].tolist()))
            raise DataError(
                f"Map {self.name!r} has no grid for {len(absent):,} values of {self.key!r} ({lost.size:,} of "
                f"{key.size:,} points), such as {listing(absent, most=3)}; it has {listing(place, most=3)}. "
                + (
                    "The earliest grid is later than these times."
                    if self.match == "latest"
                    else "Add them, or leave their rows out."
                )
            )
        order = np.argsort(codes, kind="stable")
        out = np.empty(key.size)
        grids = list(self._used.values())
        for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            if rows.size:
                out[rows] = grids[codes[rows[0]]].at(px[rows], py[rows], self.interpolate, self.outside)
        return out

    def _grid_key(self, value: Any) -> Any:
        """The key of the grid that an observation with this value uses."""
        return value if self.match == "exact" else max(k for k in self.grids if k <= value)

    def _nothing_there(self, px: np.ndarray, py: np.ndarray, rows: CovariateRows, bad: np.ndarray) -> str:
        first = bad[0]
        key = None if self.key is None else self._grid_key(rows[self.key][first].item())
        x0, x1, y0, y1 = self.grids[key].extent()
        where = f"({self.needs[0]}, {self.needs[1]}) = ({px[first]:.6g}, {py[first]:.6g})"
        which = "" if self.key is None else f" of {self.key} {key!r}"
        holes = f" less {self._missing:,} cells without a value" if self._missing else ""
        remedy = either("Pass outside='nearest'", f"Write --map {self.name}=FILE,outside=nearest")
        return (
            f"Map {self.name!r} has no value at {bad.size:,} of {px.size:,} points, first {where}{which}; it covers "
            f"[{x0:.6g}, {x1:.6g}] × [{y0:.6g}, {y1:.6g}]{holes}. {remedy} to take the nearest cell."
        )

    def scaled(self, by: float) -> Map:
        """The same map in other units of length."""
        about = self.to_dict()
        grids = [{**grid, "x": grid["x"] * by, "y": grid["y"] * by} for grid in about["grids"]]
        return Map.from_dict({**about, "grids": grids})

    def notes(self) -> tuple[str, ...]:
        if not self._missing:
            return ()
        cells = sum(grid.z.size for grid in self.grids.values())
        return (f"Map {self.name!r} has no value in {self._missing:,} of {cells:,} cells.",)

    def to_dict(self) -> dict[str, Any]:
        return {
            "covariate": "Map",
            "name": self.name,
            "interpolate": self.interpolate,
            "outside": self.outside,
            "coordinates": list(self.needs[:2]),
            "key": self.key,
            "match": self.match,
            "grids": [{"key": k, "x": grid.x, "y": grid.y, "z": grid.z} for k, grid in self.grids.items()],
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Map:
        grids = {grid["key"]: grid for grid in description["grids"]}
        x, y, z = ({k: grid[part] for k, grid in grids.items()} for part in "xyz")
        key = description["key"]
        return cls(
            description["name"],
            z[None] if key is None else z,
            x[None] if key is None else x,
            y[None] if key is None else y,
            description["interpolate"],
            key,
            outside=description["outside"],
            coordinates=tuple(description["coordinates"]),
            match=description.get("match", "exact"),
        )

    @classmethod
    def examples(cls) -> tuple[Covariate, ...]:
        z, x, y = np.add.outer(np.arange(4.0), np.arange(5.0) ** 2), np.linspace(0, 1, 5), np.linspace(0, 1, 4)
        at_previous = cls("before", {0: z, 1: -z}, x, y, "nearest", "image", coordinates=("x_prev", "y_prev"))
        return cls("elevation", z, x, y), at_previous

    def __repr__(self) -> str:
        grid = next(iter(self.grids.values()))
        x0, x1, y0, y1 = grid.extent()
        cells = f"{grid.z.shape[1]} × {grid.z.shape[0]} cells on [{x0:.6g}, {x1:.6g}] × [{y0:.6g}, {y1:.6g}]"
        grids = "" if self.key is None else f"{len(self.grids):,} grids by {self.key!r}, the first of "
        return f"Map({self.name!r}, {grids}{cells}, interpolate={self.interpolate!r})"


def _grid(which: str, z: Any, x: Any, y: Any) -> Grid:
    z, x, y = floats(z, which), floats(x, f"x of {which}"), floats(y, f"y of {which}")
    if x.ndim != 1 or y.ndim != 1 or z.shape != (y.size, x.size) or min(x.size, y.size) < 2:
        raise InputError(
            f"The {which} must have values of shape (ny, nx) on axes of at least two cells; got values {z.shape}, "
            f"x {x.shape}, y {y.shape}."
        )
    if np.isinf(z).any():
        raise InputError(
            f"The {which} has {int(np.isinf(z).sum()):,} infinite values; use NaN for cells without a value."
        )
    if np.isnan(z).all():
        raise InputError(f"The {which} has no values.")
    for name, axis in (("x", x), ("y", y)):
        step = np.diff(axis)
        if not (np.isfinite(axis).all() and (np.all(step > 0) or np.all(step < 0))):
            raise InputError(f"The {name} axis of {which} must be finite and increase or decrease throughout.")
    if x[0] > x[-1]:
        x, z = x[::-1], z[:, ::-1]
    if y[0] > y[-1]:
        y, z = y[::-1], z[::-1]
    return Grid(np.ascontiguousarray(x), np.ascontiguousarray(y), np.ascontiguousarray(z))


def _gather(
    name: str, px: np.ndarray, py: np.ndarray, z: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes and grid of a tidy table's cells."""
    x, i = np.unique(px, return_inverse=True)
    y, j = np.unique(py, return_inverse=True)
    if x.size * y.size > 20 * px.size + 100:
        raise DataError(
            f"The cells of map {name!r} do not lie on a grid: {px.size:,} rows with {x.size:,} distinct x and "
            f"{y.size:,} distinct y. Round the coordinates to the cells' centres."
        )
    cell = j * x.size + i
    order = np.argsort(cell, kind="stable")
    twice = np.flatnonzero(np.diff(cell[order]) == 0)
    if twice.size:
        first = rows[order[twice + 1]].min()
        raise DataError(
            f"Each cell of map {name!r} must come once; {twice.size:,} rows repeat one, first {at_row(first)}. "
            "Where there is one grid for each image, year, …, name its column in key=."
        )
    grid = np.full(y.size * x.size, np.nan)
    grid[cell] = z
    return x, y, grid.reshape(y.size, x.size)


def _borders(axis: np.ndarray) -> tuple[float, float]:
    return float(1.5 * axis[0] - 0.5 * axis[1]), float(1.5 * axis[-1] - 0.5 * axis[-2])


def _place(axis: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell centre i at or before each point (at most the last but one), and the share of the way to i + 1."""
    i = np.clip(np.searchsorted(axis, points, side="right") - 1, 0, axis.size - 2)
    return i, np.clip((points - axis[i]) / (axis[i + 1] - axis[i]), 0.0, 1.0)
