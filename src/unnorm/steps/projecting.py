"""Coordinates in metres: projected where their system is given, refused where they look like degrees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.extras import extra
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
            raise InputError("to= needs crs=, the system that x and y are in now, as crs='EPSG:4326' for degrees.")
        if unit is None:
            _refuse_degrees(made, names)
        return made
    pyproj = extra("pyproj", "geo", "Projecting coordinates")
    target = _around(pyproj, made, crs) if to is None else to
    x, y = pyproj.Transformer.from_crs(crs, target, always_xy=True).transform(made.x, made.y)
    wrong = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    if wrong.size:
        row = wrong[0] if made.row is None else made.row[wrong[0]]
        raise DataError(
            f"{wrong.size:,} of {made.n:,} fixes cannot be projected from {crs} to {target}, first row {row}, "
            f"({names[0]}, {names[1]}) = ({made.x[wrong[0]]:.6g}, {made.y[wrong[0]]:.6g}). Check crs= and the order "
            "of x and y (longitude first)."
        )
    note = f"Projected from {crs} to {target}."
    return replace(made, x=np.asarray(x, dtype=float), y=np.asarray(y, dtype=float), notes=(*made.notes, note))


def _around(pyproj: Any, made: Track, crs: Any) -> str:
    """The projection that keeps distances from the middle of the track."""
    lon, lat = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform(made.x, made.y)
    lon0 = float(np.degrees(np.angle(np.mean(np.exp(1j * np.radians(lon))))))  # tracks may cross the date line
    return f"+proj=aeqd +lat_0={float(np.mean(lat)):.6f} +lon_0={lon0:.6f} +datum=WGS84 +units=m"


def _refuse_degrees(made: Track, names: tuple[str, str]) -> None:
    named = any(name.lower() in NAMES for name in names)
    like = bool(np.all(np.abs(made.x) <= 360.0) and np.all(np.abs(made.y) <= 90.0))
    if not (named or like) or (named and not like):
        return
    row = 0 if made.row is None else int(made.row[0])
    raise DataError(
        f"x and y look like degrees: all {made.n:,} fixes lie within ±360 and ±90, the first (row {row}) at "
        f"({made.x[0]:.6g}, {made.y[0]:.6g}), and steps need lengths. Project them, un.track(…, crs='EPSG:4326'), or, "
        "where they are metres, pass unit='metres'."
    )
