"""Grids from files: NumPy arrays (.npy, .npz), images (.png), GeoTIFF (with rasterio).

An array (ny, nx) or an image has no coordinates of its own: it lies over a given extent, its first row at the smallest
y (the top of the screen, where y grows downwards). A GeoTIFF says where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._base.extras import extra
from ...errors import InputError, listing

MOST_CELLS = 100_000_000
ARRAYS = (".npy", ".npz")
IMAGES = (".png", ".jpg", ".jpeg")
RASTERS = (".tif", ".tiff")
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of linear red, green, blue (ITU-R BT.709)

Extent = tuple[float, float, float, float]  # x from, to, y from, to


class Cells(NamedTuple):
    """Values (ny, nx) on the centres of cells."""

    z: np.ndarray
    x: np.ndarray
    y: np.ndarray


def over(z: np.ndarray, extent: Extent) -> Cells:
    """An array over an extent."""
    x0, x1, y0, y1 = extent
    ny, nx = z.shape
    x = x0 + (x1 - x0) * (np.arange(nx) + 0.5) / nx
    return Cells(np.array(z, dtype=np.float64), x, y0 + (y1 - y0) * (np.arange(ny) + 0.5) / ny)


def checked(z: Any, what: str) -> np.ndarray:
    """An array of numbers, two cells or more each way, and not too many."""
    if not isinstance(z, np.ndarray) or z.ndim != 2 or z.dtype.kind not in "fiu" or min(z.shape) < 2:
        got = f"{z.dtype} of shape {z.shape}" if isinstance(z, np.ndarray) else type(z).__name__
        raise InputError(f"{what} must be numbers of shape (ny, nx), two or more each; got {got}.")
    if z.size > MOST_CELLS:
        raise InputError(f"{what} has {z.size:,} cells; at most {MOST_CELLS:,} are read. Coarsen it.")
    return z


def read_npy(path: Path, what: str) -> np.ndarray:
    """One array."""
    try:
        return checked(np.load(path, mmap_mode="r", allow_pickle=False), f"{what}: {str(path)!r}")
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what}: {str(path)!r} is not an .npy array of numbers: {line}") from error


def read_npz(path: Path, what: str) -> dict[Any, np.ndarray]:
    """Arrays by name; names that are all whole numbers are numbers."""
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: checked(archive[name], f"{what}: array {name!r} of {str(path)!r}") for name in archive.files}
    except InputError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what}: {str(path)!r} is not an .npz archive of arrays: {line}") from error
    if not found:
        raise InputError(f"{what}: {str(path)!r} holds no arrays.")
    return as_keys(found)


def read_image(path: Path, what: str) -> np.ndarray:
    """An image in shades of grey, from 0 (black) to 1."""
    from matplotlib.image import imread

    try:
        pixels = np.asarray(imread(path))
    except Exception as error:  # Pillow has its own errors for each kind of damage
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what}: {str(path)!r} could not be read as an image: {line}") from error
    if pixels.dtype.kind in "iu":
        pixels = pixels / float(np.iinfo(pixels.dtype).max)
    if pixels.ndim == 3:
        pixels = pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3] @ LUMINANCE
    return checked(pixels.astype(np.float64), f"{what}: {str(path)!r}")


def read_cells(path: Path, what: str, extent: Extent | None, band: int = 1, around: Extent | None = None) -> Cells:
    """One grid from a file: a raster at its own coordinates, an image or an array over `extent`."""
    suffix = path.suffix.lower()
    if suffix in RASTERS:
        return read_geotiff(path, what, band, around)
    if extent is None:
        raise InputError(f"{what}: {str(path)!r} has values only. Say where it lies, as extent=(0, 800, 0, 600).")
    return over(read_image(path, what) if suffix in IMAGES else read_npy(path, what), extent)


def read_geotiff(path: Path, what: str, band: int = 1, around: Extent | None = None) -> Cells:
    """A band of a raster, at its own coordinates; `around` is the extent of the data, which it must meet."""
    rasterio = extra("rasterio", "geo", "Reading GeoTIFF")
    try:
        with rasterio.open(path) as raster:
            if not 1 <= band <= raster.count:
                raise InputError(f"{what}: {str(path)!r} has {raster.count} bands; got band={band}.")
            if raster.width * raster.height > MOST_CELLS:
                raise InputError(f"{what} has more than {MOST_CELLS:,} cells. Crop or coarsen it.")
            z = raster.read(band, masked=True).astype(np.float64).filled(np.nan)
            t, crs = raster.transform, raster.crs
    except InputError:
        raise
    except Exception as error:  # rasterio has its own errors for each kind of damage
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what}: {str(path)!r} could not be read as a raster: {line}") from error
    if t.b or t.d:
        raise InputError(f"{what}: {str(path)!r} is rotated against its axes; warp it first, as with gdalwarp.")
    ny, nx = z.shape
    cells = Cells(checked(z, what), t.c + t.a * (np.arange(nx) + 0.5), t.f + t.e * (np.arange(ny) + 0.5))
    if around is not None:
        _meets(cells, crs, around, f"{what}: {str(path)!r}")
    return cells


def _meets(cells: Cells, crs: Any, around: Extent, what: str) -> None:
    """Refuse a raster that lies elsewhere: it is in another projection."""
    x0, x1, y0, y1 = around
    a0, a1, b0, b1 = cells.x.min(), cells.x.max(), cells.y.min(), cells.y.max()
    if a0 <= x1 and a1 >= x0 and b0 <= y1 and b1 >= y0:
        return
    name = "no projection named" if crs is None else f"projection {crs.to_string()}"
    raise InputError(
        f"{what} ({name}) covers x {a0:.6g} to {a1:.6g}, y {b0:.6g} to {b1:.6g}, and none of the window, x {x0:.6g} to "
        f"{x1:.6g}, y {y0:.6g} to {y1:.6g}: the two are in different projections. Warp the raster to that of the data, "
        "as with gdalwarp -t_srs."
    )


def by_pattern(pattern: str, key: str, read: Callable[[Path], Any], what: str) -> dict[Any, Any]:
    """Files named by a pattern such as maps/{image}.png, by what stands in the braces."""
    before, _, after = pattern.partition("{" + key + "}")
    folder, mark, start = before.rpartition("/")
    tail, slash, below = after.partition("/")  # maps/{image}/saliency.png: folders named by the key
    found = {}
    for path in sorted(Path(folder + mark).iterdir() if Path(folder + mark).is_dir() else ()):
        name = path.name[len(start) : len(path.name) - len(tail)]
        there = path / below if slash else path
        if name and path.name == start + name + tail and there.is_file():
            found[name] = there
    if not found:
        raise InputError(f"{what}: no file is named like {pattern!r}.")
    return {value: read(path) for value, path in as_keys(found).items()}


def as_keys(named: Mapping[str, Any]) -> dict[Any, Any]:
    """The same by numbers, where every name is a whole number, as columns of a table are."""
    whole = all(name.lstrip("-").isdecimal() and name.isascii() for name in named)
    if whole and len({int(name) for name in named}) < len(named):
        raise InputError(f"The keys {listing(named)} are not distinct numbers.")
    return {int(name) if whole else name: value for name, value in named.items()}
