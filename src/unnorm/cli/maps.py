"""`--map NAME=FILE[,OPTION=VALUE…]`: covariates on a grid, from a tidy table or from a NumPy array.

A table has one row for each cell: x, y, and the value in the column called NAME (or `value`, or the one that value=
names). It has one grid for all, or one for each level of a key column: the one that key= names, or one that is also in
--group. An array (ny, nx) lies over the window's bounding box, or over extent=x0:x1:y0:y1; its first row is at the
smallest y (the top of the screen with --y-down).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._base import frames
from ..data.covariates import Map
from ..domains.base import Domain
from ..errors import InputError, listing, unknown
from ..results.planar import box_around

OPTIONS = ("key", "value", "x", "y", "extent", "interpolate", "outside")
MOST_CELLS = 100_000_000
_SHAPE = "--map must be NAME=FILE, with options after commas, as elevation=grid.csv,value=z"


def read_map(text: str, domain: Domain, groups: tuple[str, ...]) -> Map:
    """The map that the option's text describes."""
    name, file, options = _parsed(text)
    path = Path(file)
    if not path.is_file():
        raise InputError(f"Map {name!r}: there is no file {file!r}.")
    common: dict[str, Any] = {
        "interpolate": options.get("interpolate", "bilinear"),
        "outside": options.get("outside", "error"),
    }
    if path.suffix.lower() == ".npy":
        return _from_array(name, path, options, domain, common)
    return _from_table(name, path, options, groups, common)


def _parsed(text: str) -> tuple[str, str, dict[str, str]]:
    name, mark, rest = text.partition("=")
    if not mark or not name.strip() or not rest.strip():
        raise InputError(f"{_SHAPE}; got {text!r}.")
    file, *extras = rest.split(",")
    options: dict[str, str] = {}
    for extra in extras:
        option, mark, value = extra.partition("=")
        if not mark or option.strip() not in OPTIONS:
            raise InputError(unknown(f"An option of --map {name.strip()}", option.strip(), OPTIONS))
        options[option.strip()] = value.strip()
    return name.strip(), file.strip(), options


def _from_table(name: str, path: Path, options: dict[str, str], groups: tuple[str, ...], common: dict[str, Any]) -> Map:
    if "extent" in options:
        raise InputError(f"Map {name!r}: extent= belongs to .npy arrays; a table says where its cells are.")
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


def _from_array(name: str, path: Path, options: dict[str, str], domain: Domain, common: dict[str, Any]) -> Map:
    for option in ("key", "value", "x", "y"):
        if option in options:
            raise InputError(f"Map {name!r}: {option}= belongs to tables; an .npy array has one grid for all.")
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"Map {name!r}: {str(path)!r} is not an .npy array of numbers: {line}") from error
    if (
        not isinstance(mapped, np.ndarray)
        or mapped.ndim != 2
        or mapped.dtype.kind not in "fiu"
        or min(mapped.shape) < 2
    ):
        got = f"{mapped.dtype} of shape {mapped.shape}" if isinstance(mapped, np.ndarray) else "an archive of arrays"
        raise InputError(f"Map {name!r}: {str(path)!r} must be numbers of shape (ny, nx), two or more each; got {got}.")
    if mapped.size > MOST_CELLS:
        raise InputError(f"Map {name!r} has {mapped.size:,} cells; at most {MOST_CELLS:,} are read. Coarsen it.")
    x0, x1, y0, y1 = _extent(name, options, domain)
    ny, nx = mapped.shape
    x = x0 + (x1 - x0) * (np.arange(nx) + 0.5) / nx
    y = y0 + (y1 - y0) * (np.arange(ny) + 0.5) / ny
    return Map(name, np.array(mapped, dtype=np.float64), x, y, **common)


def _extent(name: str, options: dict[str, str], domain: Domain) -> tuple[float, float, float, float]:
    if "extent" not in options:
        (x0, y0), (x1, y1) = box_around(domain)
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
