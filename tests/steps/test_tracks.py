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
        DataError, match=r"1 of 6 fixes repeat the time of the one before, first row 2 .* repeated='first'"
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
    with pytest.raises(un.errors.OutsideError, match="zero_steps='join'"):
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

    class Transformer:
        def __init__(self, to: str) -> None:
            self.scale = 1.0 if to == "EPSG:4326" else 111_000.0

        @classmethod
        def from_crs(cls, crs: str, to: str, always_xy: bool) -> Transformer:
            assert always_xy
            return cls(to)

        def transform(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.where(np.abs(y) > 90, np.inf, x * self.scale), y * self.scale

    monkeypatch.setitem(sys.modules, "pyproj", types.SimpleNamespace(Transformer=Transformer))
    data = {"t": np.arange(3.0), "x": [10.0, 10.1, 10.2], "y": [51.0, 51.0, 51.1]}
    made = read(data, crs="EPSG:4326")
    np.testing.assert_allclose(np.diff(made.x), 11_100.0)
    assert "+proj=aeqd +lat_0=51.033333 +lon_0=10.1" in made.notes[0]
    with pytest.raises(DataError, match=r"1 of 3 fixes cannot be projected from EPSG:4326 to EPSG:3035, first row 1"):
        read({**data, "y": [51.0, 95.0, 51.0]}, crs="EPSG:4326", to="EPSG:3035")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": "keep"}, "order"),
        ({"repeated": "last"}, "repeated"),
        ({"zero_steps": "drop"}, "zero_steps"),
        ({"columns": ("step",)}, "columns"),
        ({"unit": "feet"}, "unit"),
    ],
)
def test_what_it_refuses(options: dict[str, object], said: str) -> None:
    with pytest.raises(un.errors.UnnormError, match=said):
        read(table(6, step=np.arange(6.0)), **options)


def test_uneven_times_are_noted() -> None:
    rng = np.random.default_rng(1)
    data = {"t": np.cumsum(rng.uniform(1, 10, 50)) * 3600, "x": 1000 * rng.random(50), "y": 1000 * rng.random(50)}
    assert any("The time between fixes varies from" in note for note in read(data).observations().notes)
    assert not any("varies" in note for note in read(table(20)).observations().notes)


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
