"""Coordinates in metres: projected where their system is given, refused where they look like degrees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.extras import extra
from .._base.words import at_row, either, option
from ..errors import DataError, InputError, unknown

if TYPE_CHECKING:
    from .tracks import Track

NAMES = {
    f"{start}{axis}"
    for start in ("", "location.", "location_")
    for axis in ("lon", "long", "longitude", "lat", "latitude")
}


def projected(made: Track, names: tuple[str, str], crs: Any, to: Any, unit: str | None) -> Track:
    """The track with x and y in metres."""
    if unit not in (None, "metres"):
        raise InputError(unknown("unit", unit, ("metres",)))
    if crs is None:
        if to is not None:
            raise InputError(
                f"{option('to')} needs {option('crs')}, the system that x and y are in now, as "
                f"{option('crs', 'EPSG:4326')} for degrees."
            )
        if unit is None:
            _refuse_degrees(made, names)
        return made if unit is None else replace(made, unit="m")
    pyproj = extra("pyproj", "geo", "Projecting coordinates")
    given = _system(pyproj, crs, "crs")
    if given.is_geographic:
        _refuse_metres(made, names, crs)
    target = _around(pyproj, made, given) if to is None else to
    metric = _system(pyproj, target, "to")
    if metric.is_geographic:
        raise InputError(
            f"{option('to')} must be a projection, in which steps have lengths; {to} has degrees. Leave it out, or "
            f"name one in metres, as {option('to', 'EPSG:3035')} (Europe) or a UTM zone."
        )
    x, y = pyproj.Transformer.from_crs(given, metric, always_xy=True).transform(made.x, made.y)
    wrong = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    if wrong.size:
        row = wrong[0] if made.row is None else made.row[wrong[0]]
        raise DataError(
            f"{wrong.size:,} of {made.n:,} fixes cannot be projected from {crs} to {target}, first {at_row(row)}, "
            f"({names[0]}, {names[1]}) = ({made.x[wrong[0]]:.6g}, {made.y[wrong[0]]:.6g}). Check {option('crs')} and "
            "the order of x and y (longitude first)."
        )
    axis = metric.axis_info[0].unit_name if metric.axis_info else "metre"
    note = f"Projected from {crs} to {target}."
    unit = "m" if axis == "metre" else axis
    return replace(
        made, x=np.asarray(x, dtype=float), y=np.asarray(y, dtype=float), notes=(*made.notes, note), unit=unit
    )


def _system(pyproj: Any, text: Any, name: str) -> Any:
    """A coordinate system by its name, or a sentence."""
    try:
        return pyproj.CRS.from_user_input(text)
    except Exception as error:  # pyproj has its own, and PROJ more
        raise InputError(
            f"{name}={text!r} is not a coordinate system that PROJ knows: name it by its EPSG code, as 'EPSG:4326' for "
            "degrees of longitude and latitude or 'EPSG:32632' for a UTM zone."
        ) from error


def _refuse_metres(made: Track, names: tuple[str, str], crs: Any) -> None:
    """Refuse coordinates that cannot be degrees."""
    wrong = np.flatnonzero((np.abs(made.x) > 360.0) | (np.abs(made.y) > 90.0))
    if not wrong.size:
        return
    row = wrong[0] if made.row is None else made.row[wrong[0]]
    raise DataError(
        f"{option('crs', str(crs))} has degrees, and {wrong.size:,} of {made.n:,} fixes lie beyond ±360 and ±90, the "
        f"first, {at_row(row)}, at ({names[0]}, {names[1]}) = ({made.x[wrong[0]]:.6g}, {made.y[wrong[0]]:.6g}). If x "
        f"and y are metres already leave {option('crs')} out, or name the system that they are in; if latitude stands "
        f"first, exchange {either('x= and y=', '--x and --y')}."
    )


def _around(pyproj: Any, made: Track, given: Any) -> str:
    """The projection that keeps distances from the middle of the track."""
    lon, lat = pyproj.Transformer.from_crs(given, "EPSG:4326", always_xy=True).transform(made.x, made.y)
    lon0 = float(np.degrees(np.angle(np.mean(np.exp(1j * np.radians(lon))))))  # tracks may cross the date line
    return f"+proj=aeqd +lat_0={float(np.mean(lat)):.6f} +lon_0={lon0:.6f} +datum=WGS84 +units=m"


def _refuse_degrees(made: Track, names: tuple[str, str]) -> None:
    named = any(name.lower() in NAMES for name in names)
    like = bool(np.all(np.abs(made.x) <= 360.0) and np.all(np.abs(made.y) <= 90.0))
    if not (named or like) or (named and not like):
        return
    row = 0 if made.row is None else int(made.row[0])
    raise DataError(
        f"x and y look like degrees: all {made.n:,} fixes lie within ±360 and ±90, the first, {at_row(row)}, at "
        f"({made.x[0]:.6g}, {made.y[0]:.6g}), and steps need lengths. Pass {option('crs', 'EPSG:4326')} to project "
        f"them, or {option('unit', 'metres')} if they are metres."
    )
