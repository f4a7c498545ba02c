"""`--map NAME=FILE[,OPTION=VALUE…]` and `--distance NAME=FILE[,at=start]`: covariates of places, from files.

A table has one row for each cell: x, y, and the value in the column called NAME (or `value`, or the one that value=
names). It has one grid for all, or one for each level of a key column: the one that key= names, or one that is also in
--group. An array (.npy) or an image (.png) lies over the window, or over extent=x0:x1:y0:y1; its first row is at the
smallest y (the top of the screen with --y-down). Arrays of an .npz archive have the key's values as names, and so have
files maps/{image}.png; each then lies over the window of its image. A GeoTIFF says where it lies.
With at=start the map is read at the previous point; with match=latest keys are times, and the last grid is used that is
not later.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from .._base import frames
from .._base.files import SUFFIXES
from ..data.covariates import Map
from ..data.covariates.distances import Distance
from ..data.covariates.map_files import (
    ARRAYS,
    IMAGES,
    RASTERS,
    Cells,
    Extent,
    by_pattern,
    over,
    read_cells,
    read_npz,
)
from ..domains.base import Domain
from ..errors import DataError, InputError, listing, unknown
from ..results.planar import box_around

OPTIONS = ("key", "value", "x", "y", "extent", "interpolate", "outside", "at", "match", "band")
PLACES = {"end": ("x", "y"), "start": ("x_prev", "y_prev")}
LARGEST_GEOMETRY = 50_000_000  # bytes
_SHAPE = "--map must be NAME=FILE, with options after commas, as elevation=grid.csv,value=z"


def read_map(text: str, domain: Domain, groups: tuple[str, ...]) -> Map:
    """The map that the option's text describes, in the units of the file."""
    name, file, options = _parsed(text, _SHAPE, "--map", OPTIONS)
    braces = re.search(r"\{(\w+)\}", file)
    path = Path(file)
    if braces is None and not path.is_file():
        raise InputError(f"Map {name!r}: there is no file {file!r}.")
    common: dict[str, Any] = {
        "interpolate": options.get("interpolate", "bilinear"),
        "outside": options.get("outside", "error"),
        "coordinates": _place(name, options),
        "match": options.get("match", "exact"),
    }
    suffix = path.suffix.lower()
    if suffix not in (*ARRAYS, *IMAGES, *RASTERS):
        return _from_table(name, path, options, groups, common)
    for option in ("value", "x", "y"):
        if option in options:
            raise InputError(f"Map {name!r}: {option}= belongs to tables; {file!r} has values only.")
    if braces is None and suffix != ".npz":
        if "key" in options:
            raise InputError(
                f"Map {name!r}: {file!r} is one grid for all. With one for each {options['key']}, name the files by "
                f"it: --map {name}={path.parent / ('{' + options['key'] + '}')}{suffix}."
            )
        cells = _cells(name, path, options, domain, None)
        return Map(name, cells.z, cells.x, cells.y, **common)
    return _keyed(name, file, options, groups, domain, common)


def read_distance(text: str) -> Distance:
    """The distance that the option's text describes."""
    shape = "--distance must be NAME=FILE.geojson, or NAME=FILE.csv with columns x and y"
    name, file, options = _parsed(text, shape, "--distance", ("at",))
    path = Path(file)
    if not path.is_file():
        raise InputError(f"Distance {name!r}: there is no file {file!r}.")
    where = _place(name, options)
    if path.name.lower().endswith(SUFFIXES):
        table = frames.read_table(path, frames.only(x="x", y="y"))
        return Distance(name, np.column_stack([table["x"], table["y"]]), coordinates=where)
    if path.stat().st_size > LARGEST_GEOMETRY:
        raise InputError(f"Distance {name!r}: {file!r} is larger than {LARGEST_GEOMETRY:,} bytes; simplify it.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"Distance {name!r}: {file!r} could not be read as GeoJSON: {line}") from error
    return Distance(name, content, coordinates=where)


def map_keys(texts: tuple[str, ...]) -> list[str]:
    """The columns that maps go by, where the options name them."""
    found = [re.search(r",\s*key=([^,]+)", text) or re.search(r"\{(\w+)\}", text) for text in texts]
    return [one.group(1).strip() for one in found if one is not None]


def _parsed(text: str, shape: str, option: str, known: tuple[str, ...]) -> tuple[str, str, dict[str, str]]:
    name, mark, rest = text.partition("=")
    if not mark or not name.strip() or not rest.strip():
        raise InputError(f"{shape}; got {text!r}.")
    file, *extras = rest.split(",")
    options: dict[str, str] = {}
    for extra in extras:
        setting, mark, value = extra.partition("=")
        if not mark or setting.strip() not in known:
            raise InputError(unknown(f"An option of {option} {name.strip()}", setting.strip(), known))
        options[setting.strip()] = value.strip()
    return name.strip(), file.strip(), options


def _place(name: str, options: dict[str, str]) -> tuple[str, str]:
    at = options.get("at", "end")
    if at not in PLACES:
        raise InputError(unknown(f"at= of {name!r}", at, tuple(PLACES)))
    return PLACES[at]


def _from_table(name: str, path: Path, options: dict[str, str], groups: tuple[str, ...], common: dict[str, Any]) -> Map:
    if "extent" in options:
        raise InputError(f"Map {name!r}: extent= belongs to arrays and images; a table says where its cells are.")
    found: dict[str, str | None] = {}

    def choose(names: list[str]) -> list[str]:
        value = options.get("value") or next((column for column in (name, "value") if column in names), None)
        rest = [one for one in names if one not in (options.get("x", "x"), options.get("y", "y"), options.get("key"))]
        value = rest[0] if value is None and len(rest) == 1 else value
        if value is None:
            raise InputError(
                f"Map {name!r}: {str(path)!r} has no column {name!r} or 'value'; it has {listing(names, most=40)}. "
                f"Say which, as --map {name}={path.name},value=COLUMN."
            )
        key = options.get("key") or next((column for column in groups if column in names and column != value), None)
        found.update(x=options.get("x", "x"), y=options.get("y", "y"), value=value, key=key)
        return names if not {*found.values()} - {None} <= {*names} else [one for one in names if one in found.values()]

    table = frames.read_table(path, choose)  # a column that is not there is named below, among all that are
    return Map.from_table(table, *(found[one] for one in ("x", "y", "value", "key")), name=name, **common)  # pyright: ignore[reportArgumentType]


def _cells(name: str, path: Path, options: dict[str, str], domain: Domain, value: Any) -> Cells:
    """One grid from a file; `value` is that of the key, where there is one for each."""
    what, suffix = f"Map {name!r}", path.suffix.lower()
    if suffix in RASTERS:
        band = options.get("band", "1")
        if not band.isdecimal():
            raise InputError(f"{what}: band= must be a whole number from 1; got {band!r}.")
        return read_cells(path, what, None, int(band), _extent(name, {}, domain, None))
    return read_cells(path, what, _extent(name, options, domain, value))


def _keyed(
    name: str, file: str, options: dict[str, str], groups: tuple[str, ...], domain: Domain, common: dict[str, Any]
) -> Map:
    """A grid for each value of a key: the arrays of an archive, or files whose names have the key in braces."""
    what, braces = f"Map {name!r}", re.search(r"\{(\w+)\}", file)
    if braces is not None:
        key = braces.group(1)
        paths = by_pattern(file, key, lambda path: path, what)
        cells = {value: _cells(name, path, options, domain, value) for value, path in paths.items()}
    else:
        arrays = read_npz(Path(file), what)
        if len(arrays) == 1 and "key" not in options:
            one = over(next(iter(arrays.values())), _extent(name, options, domain, None))
            return Map(name, one.z, one.x, one.y, **common)
        key = options.get("key") or domain.key or (groups[-1] if groups else None)
        if key is None:
            raise InputError(f"{what}: {file!r} has {len(arrays)} arrays; say by which column they go, key=COLUMN.")
        cells = {value: over(z, _extent(name, options, domain, value)) for value, z in arrays.items()}
    z, x, y = ({value: one[j] for value, one in cells.items()} for j in range(3))
    return Map(name, z, x, y, key=key, **common)


def _extent(name: str, options: dict[str, str], domain: Domain, value: Any) -> Extent:
    """Where an array or an image lies: as said, over the window of its image, or over the window."""
    if "extent" not in options:
        region = domain
        if domain.key is not None and value is not None:
            try:
                region = domain.windows[int(domain.codes(np.array([value]))[0])]
            except DataError as error:
                raise InputError(
                    f"Map {name!r}: {domain.key} {value!r} has a map but no window, so that it is not known where the "
                    "map lies. Add its size, remove the map, or say extent=x0:x1:y0:y1."
                ) from error
        (x0, y0), (x1, y1) = box_around(region)
        return float(x0), float(x1), float(y0), float(y1)
    try:
        numbers = [float(part) for part in options["extent"].split(":")]
    except ValueError:
        numbers = []
    if len(numbers) != 4 or not np.isfinite(numbers).all() or numbers[0] >= numbers[1] or numbers[2] >= numbers[3]:
        raise InputError(
            f"Map {name!r}: extent= must be x0:x1:y0:y1, as 0:800:0:600, with from < to; got {options['extent']!r}."
        )
    return numbers[0], numbers[1], numbers[2], numbers[3]
