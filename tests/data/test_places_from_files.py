"""Covariates of places from files: arrays, archives, images, rasters; distances to points, lines and areas."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import unnorm as un
from unnorm.data.covariates import map_files
from unnorm.errors import DataError, InputError, MissingLibraryError, OutsideError

POINTS = {"x": [0.2, 0.8, 0.5], "y": [0.1, 0.9, 0.5], "t": [0.0, 5.0, 12.0]}


def values(covariate, **columns):
    obs = un.conditional({**POINTS, **columns}, y=("x", "y"), x=("t", *columns))
    return (
        un.Additive(covariate.name, un.Box((0, 1), (0, 1)), covariates=[covariate])
        .covariates(obs)
        .values(covariate.name, obs)[covariate.name]
    )


def test_distances_to_points_lines_and_areas():
    import shapely

    np.testing.assert_allclose(values(un.Distance("den", [[0.2, 0.5], [0.9, 0.9]])), [0.4, 0.1, 0.3])
    road = {"type": "LineString", "coordinates": [[0, 0], [1, 0], [1, 1]]}
    np.testing.assert_allclose(values(un.Distance("road", road)), [0.1, 0.2, 0.5])
    lake = shapely.box(0.4, 0.4, 0.6, 0.6)
    np.testing.assert_allclose(values(un.Distance("lake", lake)), [np.hypot(0.2, 0.3), np.hypot(0.2, 0.3), 0.0])
    both = {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": road}]}
    np.testing.assert_allclose(values(un.Distance("road", both)), values(un.Distance("road", road)))
    np.testing.assert_allclose(values(un.Distance("road", road).scaled(2.0)), [0.1, 0.9, 0.5])


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ([], "needs points of shape"),
        (
            {"type": "FeatureCollection", "features": [{"geometry": None}]},
            "1 of 1 features have no geometry, first feature 0",
        ),
        ([[0.0, np.nan]], "missing or infinite"),
        ({"type": "Nothing"}, "could not be read"),
    ],
)
def test_distances_to_nothing_are_refused(to, said):
    with pytest.raises(InputError, match=said):
        un.Distance("d", to)


def test_maps_by_time_take_the_latest_grid():
    z = np.ones((2, 2))
    grown = un.Map("ndvi", {0: z, 5: 2 * z, 10: 3 * z}, [0, 1], [0, 1], key="t", match="latest")
    np.testing.assert_array_equal(values(grown), [1.0, 2.0, 3.0])
    late = un.Map("ndvi", {4: z, 10: z}, [0, 1], [0, 1], key="t", match="latest")
    with pytest.raises(DataError, match=r"no grid for 1 values of 't'.*The earliest grid is later"):
        values(late)
    dated = un.Map.from_table(
        {"x": [0, 1, 0, 1], "y": [0, 0, 1, 1], "z": [1.0, 1, 1, 1], "t": ["1970-01-01"] * 4},
        value="z",
        key="t",
        match="latest",
    )
    np.testing.assert_array_equal(values(dated), [1.0, 1.0, 1.0])


def test_files_by_pattern_and_keys(tmp_path):
    for name in ("a_7.npy", "a_10.npy"):
        np.save(tmp_path / name, np.eye(2))
    found = map_files.by_pattern(f"{tmp_path}/a_{{image}}.npy", "image", lambda path: path.name, "Map 'z'")
    assert found == {7: "a_7.npy", 10: "a_10.npy"}
    assert map_files.as_keys({"x.jpg": 1, "3": 2}) == {"x.jpg": 1, "3": 2}
    with pytest.raises(InputError, match="no file is named like"):
        map_files.by_pattern(f"{tmp_path}/b_{{image}}.npy", "image", lambda path: path, "Map 'z'")
    for name in ("7", "10", "empty"):
        (tmp_path / "maps" / f"i{name}x").mkdir(parents=True)
    for name in ("7", "10"):
        np.save(tmp_path / "maps" / f"i{name}x" / "saliency.npy", np.eye(2))
    pattern = f"{tmp_path}/maps/i{{image}}x/saliency.npy"
    found = map_files.by_pattern(pattern, "image", lambda path: path.parent.name, "Map 'z'")
    assert found == {7: "i7x", 10: "i10x"}


def test_images_are_grey_with_the_first_row_at_the_smallest_y(tmp_path):
    from matplotlib.image import imsave

    pixels = np.zeros((4, 6, 3), dtype=np.uint8)
    pixels[0, :, :] = 255
    imsave(tmp_path / "z.png", pixels)
    z = map_files.read_image(tmp_path / "z.png", "Map 'z'")
    cells = map_files.over(z, (0.0, 12.0, 0.0, 8.0))
    assert cells.z[0].tolist() == pytest.approx([1.0] * 6)
    assert cells.y.tolist() == [1.0, 3.0, 5.0, 7.0]
    (tmp_path / "bad.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match="could not be read as an image"):
        map_files.read_image(tmp_path / "bad.png", "Map 'z'")


class Raster:
    """What rasterio.open gives, as far as it is read."""

    def __init__(self, z, transform, crs="EPSG:3035"):
        self.z, self.transform, self.count = np.ma.masked_equal(z, -9999), SimpleNamespace(**transform), 1
        self.height, self.width = z.shape
        self.crs = SimpleNamespace(to_string=lambda: crs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def read(self, band, masked):
        return self.z


def test_geotiffs_by_a_stand_in_for_rasterio(tmp_path, monkeypatch):
    z = np.array([[1.0, 2.0], [3.0, -9999.0], [5.0, 6.0]])
    north_up = {"a": 10.0, "b": 0.0, "c": 100.0, "d": 0.0, "e": -10.0, "f": 230.0}
    fake = ModuleType("rasterio")
    monkeypatch.setattr(fake, "open", lambda path: Raster(z, north_up), raising=False)
    monkeypatch.setitem(sys.modules, "rasterio", fake)
    cells = map_files.read_geotiff(tmp_path / "z.tif", "Map 'z'", around=(90.0, 130.0, 190.0, 240.0))
    assert cells.x.tolist() == [105.0, 115.0]
    assert cells.y.tolist() == [225.0, 215.0, 205.0]
    assert np.isnan(cells.z[1, 1])
    with pytest.raises(InputError, match=r"projection EPSG:3035.* none of the window.*different projections"):
        map_files.read_geotiff(tmp_path / "z.tif", "Map 'z'", around=(10.0, 11.0, 45.0, 46.0))
    hole = un.Map("z", cells.z, cells.x, cells.y, "nearest")
    obs = un.conditional({"x": [105.0, 115.0], "y": [225.0, 215.0], "w": [1, 2]}, y=("x", "y"), x="w")
    with pytest.raises(OutsideError, match=r"no value at 1 of 2 points, first \(x, y\) = \(115, 215\)"):
        un.Additive("z", un.Box((100, 120), (200, 230)), covariates=[hole]).covariates(obs).values("z", obs)
    turned = {**north_up, "b": 1.0}
    monkeypatch.setattr(fake, "open", lambda path: Raster(z, turned))
    with pytest.raises(InputError, match="rotated"):
        map_files.read_geotiff(tmp_path / "z.tif", "Map 'z'")


def test_without_rasterio_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingLibraryError, match=r"unnorm\[geo\]"):
        map_files.read_geotiff(tmp_path / "z.tif", "Map 'z'")


def test_a_saved_distance_is_the_same(tmp_path):
    road = un.Distance("road", {"type": "LineString", "coordinates": [[0, 0], [1 / 3, 0.7]]})
    about = json.loads(json.dumps(road.to_dict()))
    np.testing.assert_array_equal(values(un.Distance.from_dict(about)), values(road))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of affine, called by rasterio
def test_a_geotiff_by_rasterio(tmp_path):
    """The same with rasterio itself: cells at their centres, north up, holes as missing values."""
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed (the extra 'geo')")
    z = np.arange(12, dtype=np.float32).reshape(3, 4)
    z[1, 2] = -9999.0
    place = rasterio.transform.from_origin(100.0, 230.0, 10.0, 10.0)
    about = {"driver": "GTiff", "height": 3, "width": 4, "count": 1, "dtype": "float32", "nodata": -9999.0}
    with rasterio.open(tmp_path / "z.tif", "w", crs="EPSG:3035", transform=place, **about) as file:
        file.write(z, 1)
    cells = map_files.read_geotiff(tmp_path / "z.tif", "Map 'z'", around=(90.0, 130.0, 190.0, 240.0))
    np.testing.assert_allclose(cells.x, [105.0, 115.0, 125.0, 135.0])
    np.testing.assert_allclose(cells.y, [225.0, 215.0, 205.0])
    np.testing.assert_allclose(cells.z, np.where(z < 0, np.nan, z))
    with pytest.raises(InputError, match=r"EPSG:3035.*different projections"):
        map_files.read_geotiff(tmp_path / "z.tif", "Map 'z'", around=(10.0, 11.0, 45.0, 46.0))


def test_maps_are_read_from_files_of_every_kind(tmp_path, monkeypatch):
    """`Map.read` gives the same map from an array, an image, a table, an archive and files by key."""
    from matplotlib import pyplot as plt

    z = np.array([[0.0, 51.0, 102.0], [153.0, 204.0, 255.0]]) / 255
    over = {"extent": (0.0, 6.0, 0.0, 4.0)}
    np.save(tmp_path / "light.npy", z)
    np.savez(tmp_path / "lights.npz", a=z, b=1 - z)
    for name in "ab":
        plt.imsave(tmp_path / f"at_{name}.png", z if name == "a" else 1 - z, cmap="gray", vmin=0, vmax=1)
    cells = [f"{x},{y},{float(z[j, i])!r}" for j, y in enumerate((1.0, 3.0)) for i, x in enumerate((1.0, 3.0, 5.0))]
    (tmp_path / "light.csv").write_text("\n".join(["x,y,light", *cells]))
    array, table = un.Map.read(tmp_path / "light.npy", **over), un.Map.read(str(tmp_path / "light.csv"))
    archive = un.Map.read(tmp_path / "lights.npz", key="image", **over)
    files = un.Map.read(tmp_path / "at_{image}.png", "light", **over)
    assert (array.name, table.name, archive.key, files.key) == ("light", "light", "image", "image")
    for grid in (array.grids[None], table.grids[None], archive.grids["a"], files.grids["a"]):
        np.testing.assert_allclose(grid.z, z, atol=1e-6)
        np.testing.assert_allclose((*grid.x, *grid.y), (1, 3, 5, 1, 3))
    np.testing.assert_allclose(files.grids["b"].z, 1 - z, atol=1e-6)
    monkeypatch.setattr(
        map_files, "read_geotiff", lambda path, what, band, around: map_files.over(z * band, (0, 6, 0, 4))
    )
    (tmp_path / "light.tif").touch()
    np.testing.assert_allclose(un.Map.read(tmp_path / "light.tif", band=2).grids[None].z, 2 * z)


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("light.npy", {}, r"'light'.*has values only. Say where it lies, as extent="),
        ("lights.npz", {}, r"has values only"),
        ("lights.npz", {"extent": (0, 1, 0, 1)}, r"has 2 arrays; say by which column they go, key="),
        ("none.png", {}, r"there is no file"),
        ("at_{image}.png", {}, r"no file is named like"),
        ("other.csv", {}, r"has the columns 'x', 'y', 'a', 'b'; say which, value="),
    ],
)
def test_files_that_are_no_map(tmp_path, file, options, message):
    np.save(tmp_path / "light.npy", np.ones((2, 2)))
    np.savez(tmp_path / "lights.npz", a=np.ones((2, 2)), b=np.ones((2, 2)))
    (tmp_path / "other.csv").write_text("x,y,a,b\n0,0,1,2\n")
    with pytest.raises(InputError, match=message):
        un.Map.read(tmp_path / file, **options)
