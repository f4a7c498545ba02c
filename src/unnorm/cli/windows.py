"""`--window`: four numbers, a polygon, or a window for each image from a table of sizes or from keyed polygons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._base import frames
from .._base.files import SUFFIXES
from ..domains import Box, Domain, Window
from ..domains.windows import Windows, keyed_polygons
from ..errors import InputError, listing
from .config import Job

LARGEST_POLYGON = 20_000_000  # bytes


def window(job: Job) -> Domain:
    """Ω in the units of the fit: a box from four numbers, a polygon from a file, or one for each image."""
    found = _read(job)
    return found if job.scale == 1.0 else found.scaled(job.scale)


def _read(job: Job) -> Domain:
    if not isinstance(job.window, str):
        x0, x1, y0, y1 = job.window
        return Box((x0, x1), (y0, y1))
    if job.window.lower().endswith(SUFFIXES):
        return _sizes(job)
    import json

    import shapely
    import shapely.geometry

    path = Path(job.window)
    if not path.is_file():
        raise InputError(f"There is no window file {job.window!r}.")
    if path.stat().st_size > LARGEST_POLYGON:
        raise InputError(f"The window {job.window!r} is larger than {LARGEST_POLYGON:,} bytes; simplify the polygon.")
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".wkt":
            return Window(shapely.from_wkt(text))
        content = json.loads(text)
        key = _polygon_key(job, content)
        return Window(geojson(content)) if key is None else Windows(keyed_polygons(content, key), key)
    except InputError:
        raise
    except Exception as error:  # shapely and json have their own errors for each kind of damage
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"The window {job.window!r} could not be read as a polygon: {line}") from error


def window_key(job: Job) -> str | None:
    """The column by which windows differ, where they do; known before the data are read."""
    if not isinstance(job.window, str):
        return None
    return _read(job).key


def _sizes(job: Job) -> Windows:
    """A window for each row of a table: the key, and width and height, or x0, x1, y0, y1."""
    table = frames.read_table(str(job.window))
    named = (job.window_key,) if job.window_key is not None else job.group
    key = next((name for name in named if name in table), None)
    if key is None:
        want = "--window-key names" if job.window_key is not None else "--group has"
        raise InputError(
            f"The table of windows {job.window!r} needs a column that says whose they are, and {want} "
            f"{listing(named) or 'none'}; it has {listing(table, most=40)}. Name the image's column in --group."
        )
    return Windows(table, key)


def _polygon_key(job: Job, content: Any) -> str | None:
    """The property that tells polygons apart: --window-key, or a column of --group that the first feature has."""
    if job.window_key is not None:
        return job.window_key
    features = content.get("features") if isinstance(content, dict) else None
    about = features[0].get("properties") if isinstance(features, list) and features and features[0] else None
    return next((name for name in job.group if isinstance(about, dict) and name in about), None)


def geojson(content: Any) -> Any:
    """The geometry of a Polygon, a Feature, or all of a FeatureCollection."""
    import shapely
    import shapely.geometry

    expected = "A GeoJSON window must be an object with a Polygon, a Feature or a FeatureCollection"
    if not isinstance(content, dict):
        raise InputError(f"{expected}; got {type(content).__name__}.")
    if content.get("type") not in ("Feature", "FeatureCollection"):
        return shapely.geometry.shape(content)
    features = content.get("features") if content["type"] == "FeatureCollection" else [content]
    if not isinstance(features, list) or not features:
        raise InputError(f"{expected}; got one without features.")
    empty = sum(not isinstance(one, dict) or not one.get("geometry") for one in features)
    if empty:
        raise InputError(
            f"{expected}; {empty} of {len(features)} features have no geometry: remove them from the file."
        )
    return shapely.union_all([shapely.geometry.shape(one["geometry"]) for one in features])
