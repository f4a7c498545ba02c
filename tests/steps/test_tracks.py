"""Tracks: bursts, resampling, projection, and the sentence for each way in which a track can be wrong."""

from __future__ import annotations

import sys
import types
from datetime import datetime, timedelta

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import DataError, InputError, MissingLibraryError


def table(n: int = 6, **columns: object) -> dict[str, object]:
    start = datetime(2024, 5, 1)
    times = [(start + timedelta(hours=6 * i)).isoformat() for i in range(n)]
    return {"t": times, "x": 1000.0 + 100.0 * np.arange(n), "y": 2000.0 + 50.0 * np.arange(n) ** 2, **columns}


def read(data: dict[str, object], **options: object) -> un.Track:
    return un.track(data, time="t", x="x", y="y", **options)


def test_steps_and_turns_by_hand() -> None:
    square = {"t": np.arange(4.0), "x": [0.0, 100.0, 100.0, 0.0], "y": [0.0, 0.0, 100.0, 100.0]}
    steps = read(square).steps()
    np.testing.assert_allclose(steps["step"], 100.0)
    np.testing.assert_allclose(steps["turn"], [np.nan, np.pi / 2, np.pi / 2])
    np.testing.assert_allclose(steps["dt"], 1.0)


def test_bursts_are_never_joined() -> None:
    made = read(table(6, b=[1, 1, 1, 2, 2, 2]), burst="b")
    obs = made.observations()
    assert obs.n == 2  # a turn needs three fixes of one burst
    np.testing.assert_array_equal(obs.row, [2, 5])
    assert len(made.steps()["step"]) == 4


@pytest.mark.parametrize("gap", ["7h", "420min", 25_200, timedelta(hours=7)])
def test_long_gaps_begin_a_burst(gap: object) -> None:
    data = table(6)
    data["t"] = np.array([0, 6, 12, 30, 36, 42]) * 3600.0
    made = read(data, max_gap=gap)
    np.testing.assert_array_equal(made.burst, [0, 0, 0, 1, 1, 1])
    assert "1 gaps above 7 h" in made.describe()


def test_resample_keeps_fixes_about_the_rate_apart() -> None:
    """As amt::track_resample: too early is left out, too late begins a burst."""
    times = np.array([0.0, 5.0, 10.0, 21.0, 30.0, 55.0, 64.0, 66.0]) * 60
    made = read({"t": times, "x": 1000.0 * np.arange(8), "y": 1000.0 * np.arange(8)}).resample("10min", "2min")
    np.testing.assert_array_equal(made.time / 60, [0, 10, 21, 30, 55, 64])
    np.testing.assert_array_equal(made.burst, [0, 0, 0, 0, 1, 1])
    with pytest.raises(InputError, match="tolerance must be less than rate"):
        made.resample("1min", "2min")
    with pytest.raises(InputError, match="rate must be a positive duration"):
        made.resample("often", "2min")


def test_animals_are_apart_and_in_order() -> None:
    data = table(6, who=["b", "a", "b", "a", "b", "a"])
    made = read(data, animal="who")
    assert list(made.animal) == ["b", "b", "b", "a", "a", "a"]
    assert made.observations().group["animal"].tolist() == ["b", "a"]


def test_columns_at_the_start_and_the_end() -> None:
    obs = read(table(6, night=[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), columns=("night",)).observations()
    np.testing.assert_array_equal(obs.context["night"], [0, 1, 0, 1])
    np.testing.assert_array_equal(obs.context["night_start"], [1, 0, 1, 0])
    np.testing.assert_allclose(obs.context["dt"], 6 * 3600.0)


def swap(data: dict[str, object]) -> dict[str, object]:
    times = list(data["t"])  # type: ignore[call-overload]
    times[3], times[4] = times[4], times[3]
    return {**data, "t": times}


def test_a_clock_that_runs_backwards() -> None:
    with pytest.raises(DataError, match=r"Times run backwards at 1 of 6 fixes, first at row 4 .* 6 h before"):
        read(swap(table()))
    made = read(swap(table()), order="sort")
    assert np.all(np.diff(made.time) > 0)
    assert any("1 fixes were out of order" in note for note in made.notes)


def test_repeated_times() -> None:
    data = table(6)
    data["t"] = [0.0, 1.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(
        DataError, match=r"1 of 6 fixes repeat the time of the one before, the first at row 2 .* repeated='first'"
    ):
        read(data)
    np.testing.assert_allclose(read(data, repeated="first").x, [1000, 1100, 1300, 1400, 1500])
    np.testing.assert_allclose(read(data, repeated="mean").x, [1000, 1150, 1300, 1400, 1500])


def test_steps_of_length_zero() -> None:
    data = table(6)
    data["x"], data["y"] = [1000.0, 1100.0, 1100.0, 1200.0, 1300.0, 1400.0], np.full(6, 5000.0)
    with pytest.raises(DataError, match=r"1 of 5 steps have length zero, first at row 2 .*zero_steps='join'"):
        read(data, zero_steps="error")
    assert read(data, zero_steps="join").n == 5
    assert read(data).n == 6
    with pytest.raises(DataError, match="zero_steps='join'"):
        un.fit_steps(read(data), "x", rng=1)


def test_degrees_are_not_metres() -> None:
    lonlat = {"t": np.arange(4.0), "x": [10.1, 10.2, 10.3, 10.2], "y": [51.0, 51.1, 51.0, 51.2]}
    with pytest.raises(DataError, match=r"look like degrees: all 4 fixes .* \(10.1, 51\).*crs='EPSG:4326'"):
        read(lonlat)
    assert read(lonlat, unit="metres").n == 4
    with pytest.raises(InputError, match="to= needs crs="):
        read(lonlat, to="EPSG:3035")


def test_a_projection_needs_pyproj(monkeypatch: pytest.MonkeyPatch) -> None:
    lonlat = {"t": np.arange(4.0), "x": [10.1, 10.2, 10.3, 10.2], "y": [51.0, 51.1, 51.0, 51.2]}
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(MissingLibraryError, match=r"unnorm\[geo\]"):
        read(lonlat, crs="EPSG:4326")


def test_projected_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for pyproj: degrees of 111 km, and a point that it cannot project."""

    class CRS:
        axis_info = ()

        def __init__(self, name: str) -> None:
            self.is_geographic = name == "EPSG:4326"

        @classmethod
        def from_user_input(cls, name: str) -> CRS:
            if name == "EPSG:0":
                raise RuntimeError("crs not found")
            return cls(name)

    class Transformer:
        def __init__(self, same: bool) -> None:
            self.scale = 1.0 if same else 111_000.0

        @classmethod
        def from_crs(cls, crs: CRS, to: CRS | str, always_xy: bool) -> Transformer:
            assert always_xy
            return cls(to == "EPSG:4326")

        def transform(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.where(np.abs(y) > 89, np.inf, x * self.scale), y * self.scale

    monkeypatch.setitem(sys.modules, "pyproj", types.SimpleNamespace(CRS=CRS, Transformer=Transformer))
    data = {"t": np.arange(3.0), "x": [10.0, 10.1, 10.2], "y": [51.0, 51.0, 51.1]}
    made = read(data, crs="EPSG:4326")
    np.testing.assert_allclose(np.diff(made.x), 11_100.0)
    assert "+proj=aeqd +lat_0=51.033333 +lon_0=10.1" in made.notes[0]
    with pytest.raises(DataError, match=r"1 of 3 fixes cannot be projected from EPSG:4326 to EPSG:3035, first row 1"):
        read({**data, "y": [51.0, 89.5, 51.0]}, crs="EPSG:4326", to="EPSG:3035")
    assert made.unit == "m"
    for system in ({"crs": "EPSG:0"}, {"crs": "EPSG:4326", "to": "EPSG:0"}):
        with pytest.raises(InputError, match="not a coordinate system that PROJ knows"):
            read(data, **system)
    with pytest.raises(InputError, match="to= must be a projection"):
        read(data, crs="EPSG:4326", to="EPSG:4326")
    metres = {**data, "x": [510_000.0, 510_100.0, 510_200.0]}
    with pytest.raises(DataError, match=r"has degrees, and 3 of 3 fixes .* the first, row 0 \(rows.*leave crs= out"):
        read(metres, crs="EPSG:4326")


def test_projected_coordinates_by_proj() -> None:
    """Lengths of steps on the ellipsoid, over the date line too, and the sentences for systems that do not exist."""
    pyproj = pytest.importorskip("pyproj", reason="pyproj is not installed (the extra 'geo')")
    rng = np.random.default_rng(3)
    lon, lat = 179.9 + np.cumsum(rng.normal(0, 0.02, 30)), -17.0 + np.cumsum(rng.normal(0, 0.02, 30))
    data = {"t": np.arange(30.0) * 60, "x": np.where(lon > 180, lon - 360, lon), "y": lat}
    made = read(data, crs="EPSG:4326")
    geodesic = pyproj.Geod(ellps="WGS84").inv(lon[:-1], lat[:-1], lon[1:], lat[1:])[2]
    np.testing.assert_allclose(made.steps()["step"], geodesic, rtol=1e-5)
    with pytest.raises(InputError, match="not a coordinate system that PROJ knows"):
        read(data, crs="EPSG:99999")
    with pytest.raises(InputError, match="to= must be a projection"):
        read(data, crs="EPSG:4326", to="EPSG:4326")
    there = read({**data, "x": np.abs(lon) - 170}, crs="EPSG:4326", to="EPSG:32632")
    assert there.unit == "m"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": "keep"}, "order"),
        ({"repeated": "last"}, "repeated"),
        ({"zero_steps": "drop"}, "zero_steps"),
        ({"columns": ("step",)}, "columns"),
        ({"columns": ("night_start", "night")}, "night_start"),
        ({"unit": "feet"}, "unit"),
    ],
)
def test_what_it_refuses(options: dict[str, object], said: str) -> None:
    with pytest.raises(un.errors.UnnormError, match=said):
        read(table(6, step=np.arange(6.0), night=np.ones(6), night_start=np.ones(6)), **options)


def test_uneven_times_are_noted() -> None:
    rng = np.random.default_rng(1)
    data = {"t": np.cumsum(rng.uniform(1, 10, 50)) * 3600, "x": 1000 * rng.random(50), "y": 1000 * rng.random(50)}
    assert any("steps took" in note and "median" in note for note in read(data).observations().notes)
    assert not any("steps took" in note for note in read(table(20)).observations().notes)


def test_a_gap_that_dropped_fixes_leave_is_noted() -> None:
    """One step of 12 h among steps of 6 h."""
    data = table(20)
    data["x"][7] = np.nan
    notes = read(data, missing="drop").observations().notes
    assert any(note.startswith("1 of 17 steps took 6 h to 12 h, where the median is 6 h") for note in notes)
    assert not any("steps took" in note for note in read(data, missing="drop", max_gap="7h").observations().notes)


def test_steps_without_a_turn_are_counted() -> None:
    made = read(table(9, b=[0, 0, 0, 0, 1, 1, 2, 2, 2]), burst="b")
    notes = made.observations().notes
    assert any(note.startswith("3 of 6 steps are the first of their burst") for note in notes)
    assert made.observations().n == 3


def test_a_clock_that_was_set_back_between_bursts() -> None:
    """The remedy that the sentence names works: times may run backwards, or repeat, from one burst to the next."""
    data = {**table(8), "t": [0.0, 60.0, 120.0, 180.0, 120.0, 180.0, 240.0, 300.0]}
    with pytest.raises(DataError, match=r"backwards at 1 of 8 fixes.*animal=.*burst="):
        read(data)
    made = read({**data, "b": [0, 0, 0, 0, 1, 1, 1, 1]}, burst="b")
    np.testing.assert_array_equal(made.burst, [0, 0, 0, 0, 1, 1, 1, 1])
    assert read({**data, "t": [0, 1, 2, 3, 3, 4, 5, 6], "b": [0, 0, 0, 0, 1, 1, 1, 1]}, burst="b").n == 8


def test_zero_steps_are_said_whether_or_not_the_kernel_is_known() -> None:
    data = table(20)
    data["x"][5], data["y"][5] = data["x"][4], data["y"][4]
    known = un.StepKernel(un.references.Gamma(2.0, 100.0), "uniform")
    for kernel in (None, known):
        for call in (un.random_steps, lambda made, kernel: un.fit_steps(made, "x", kernel=kernel)):
            with pytest.raises(
                DataError, match=r"1 of 18 steps have length zero, the first at row 5.*zero_steps='join'"
            ):
                call(read(data), kernel=kernel)


def test_a_track_beside_its_map() -> None:
    points = 5_000.0 + np.cumsum(np.random.default_rng(2).normal(0, 100, (60, 2)), axis=0)
    made = read({"t": np.arange(60.0), "x": points[:, 0], "y": points[:, 1]})
    axis = np.linspace(0.0, 1_000.0, 11)
    elsewhere = un.Map("forest", np.ones((11, 11)), axis, axis)
    with pytest.raises(un.errors.OutsideError, match=r"58 of 58 steps .* the first at row 2.*another projection"):
        un.fit_steps(made, "forest", maps=elsewhere)
    with pytest.raises(InputError, match="do not overlap"):
        un.fit_steps(made, "forest", maps=[elsewhere, un.Map("hill", np.ones((11, 11)), axis + 9_000, axis)])
    wide = np.linspace(0.0, 20_000.0, 201)
    holes = np.ones((201, 201))
    holes[45:55, 45:55] = np.nan
    with pytest.raises(un.errors.OutsideError, match=r"Map 'forest' has no value at .*outside='nearest'"):
        un.fit_steps(made, "forest", maps=un.Map("forest", holes, wide, wide))


def test_missing_fixes() -> None:
    data = table(6)
    data["x"] = [1000.0, np.nan, 1200.0, 1300.0, 1400.0, 1500.0]
    with pytest.raises(DataError, match="missing"):
        read(data)
    assert read(data, missing="drop").n == 5
    with pytest.raises(DataError, match="must hold times"):
        read({**table(6), "t": ["noon"] * 6})
