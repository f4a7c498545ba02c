"""Units are said once; wrong ones and other bad input get a sentence with the first offender and a remedy."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.data.units import UNITS, unit_of
from unnorm.errors import CombinationError, DataError, InputError, NoEstimateError, OutsideError

d = un.directions
DEGREES = np.array([350.0, 10.5, 20.0, 5.0, 340.0, 30.0])
PLACES = ("lonlat", "lonlat_degrees", "lonlat_radians")


@pytest.mark.parametrize(
    ("unit", "given", "radians"),
    [
        ("radians", [0.0, 1.0], [0.0, 1.0]),
        ("degrees", [0.0, 90.0, 270.0], [0.0, np.pi / 2, 3 * np.pi / 2]),
        ("bearings", [0.0, 90.0, 180.0, 270.0], [np.pi / 2, 0.0, -np.pi / 2, -np.pi]),
        ("hours", [0.0, 6.0, 18.0], [0.0, np.pi / 2, 3 * np.pi / 2]),
    ],
)
def test_angles(unit: str, given: list[float], radians: list[float]) -> None:
    obs = un.iid(given, unit=unit)
    assert obs.unit == unit
    np.testing.assert_allclose(obs.outcome[:, 0], radians, atol=1e-12)
    back = unit_of(unit).outward(obs.outcome[:, 0])
    turn = 2 * np.pi / abs(unit_of(unit).angles().scale)
    np.testing.assert_allclose(np.mod(back - given + turn / 2, turn), turn / 2, atol=1e-9)


def test_longitude_and_latitude() -> None:
    lonlat = np.array([[0.0, 0.0], [90.0, 0.0], [-120.0, 60.0], [10.0, -90.0]])
    obs = un.iid(lonlat, unit="lonlat")
    np.testing.assert_allclose(obs.outcome[:2], [[1, 0, 0], [0, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(obs.outcome, axis=1), 1.0)
    np.testing.assert_allclose(unit_of("lonlat").outward(obs.outcome[:3]), lonlat[:3], atol=1e-12)
    table = {"lon": lonlat[:, 0], "lat": lonlat[:, 1], "z": [1, 2, 3, 4]}
    chain = un.transitions(table, ("lon", "lat"), lags=2, extra="z", unit="lonlat")
    assert list(chain.context) == [f"y{j}_prev{k}" for k in ("", "2") for j in (1, 2, 3)] + ["z"]
    np.testing.assert_allclose(chain.previous(2), obs.outcome[:2])


def test_the_unit_does_not_change_the_fit() -> None:
    radians = un.fit_direction(d.von_mises(), un.iid(np.radians(DEGREES), unit="radians"))
    degrees = un.fit_direction(d.von_mises(), un.iid(DEGREES, unit="degrees"))
    bearings = un.fit_direction(d.von_mises(), un.iid(DEGREES, unit="bearings"))
    assert degrees.parameters["kappa"] == pytest.approx(radians.parameters["kappa"])
    assert degrees.parameters["mean"] == pytest.approx(np.degrees(radians.parameters["mean"]))
    assert bearings.parameters["mean"] == pytest.approx(
        degrees.parameters["mean"]
    )  # the sense of rotation is the unit's
    one, two = degrees.rows()[0], bearings.rows()[0]
    np.testing.assert_allclose([two.se, two.lower % 360, two.upper], [one.se, one.lower % 360, one.upper], rtol=1e-9)
    np.testing.assert_allclose(bearings.log_density(DEGREES), radians.log_density(np.radians(DEGREES)), rtol=1e-9)


@pytest.mark.parametrize("unit", ["degrees", "bearings", "lonlat"])
def test_draws_come_in_the_unit(unit: str) -> None:
    if unit == "lonlat":
        y = np.array([[100.0, 40.0], [110.0, 45.0], [95.0, 50.0], [105.0, 38.0]])
        table = un.fit_direction(d.von_mises_fisher(), un.iid(y, unit=unit)).simulate(200, rng=1)
        again = un.iid(table, ("lon", "lat"), unit=unit)
    else:
        table = un.fit_direction(d.von_mises(), un.iid({"a": DEGREES}, "a", unit=unit)).simulate(200, rng=1)
        again = un.iid(table, "a", unit=unit)
    other = un.iid(y if unit == "lonlat" else DEGREES, unit=unit).outcome
    centre = [np.exp(1j * z[:, 0]).mean() if unit != "lonlat" else z.mean(axis=0) for z in (again.outcome, other)]
    np.testing.assert_allclose(centre[0], centre[1], atol=0.05)


class TestBadInput:
    @pytest.mark.parametrize("domain", [un.Circle(), un.Axis()], ids=repr)
    @pytest.mark.parametrize(("values", "row"), [([0.5, 1.0, 200.0], 2), ([1.0, 300.0, 8.0], 1), ([1, 2, 7], 2)])
    def test_degrees_for_radians(self, domain: un.Circle | un.Axis, values: list[float], row: int) -> None:
        angle = f"an angle of {values[row]:g} radians"
        says = rf"Row {row} \(rows count from 0\): {angle} .*look like degrees.*unit='degrees'.*unit='radians'"
        with pytest.raises(InputError, match=says):
            un.fit_direction(d.von_mises(domain), un.iid(values))
        import jax.numpy as jnp

        model = un.ExponentialFamily(lambda y: (jnp.cos(2 * y), jnp.sin(2 * y)), ("a", "b"), domain)
        with pytest.raises(InputError, match=says):
            un.fit(model, un.iid(values))
        assert un.fit(model, un.iid(values, unit="radians")).converged  # said, and so believed
        assert un.fit(model, un.iid(values, unit="degrees")).converged

    def test_the_row_is_the_tables(self) -> None:
        with pytest.raises(InputError, match=r"Row 2 \(rows count from 0\): an angle of 90"):
            un.fit_direction(d.von_mises(), un.iid({"a": [1.0, None, 90.5]}, "a", missing="drop"))

    def test_vectors_that_are_not_units(self) -> None:
        y = [[1.0, 0, 0], [0.6, 0.8, 0.0], [0.0, 2.0, 0.0]]
        with pytest.raises(
            OutsideError, match=r"first is row 2 .*length is 2, not 1. Divide each vector by its length"
        ):
            un.fit_direction(d.von_mises_fisher(), un.iid(y))
        with pytest.raises(InputError, match=r"three coordinates of unit vectors; or .*unit='lonlat'"):
            un.fit_direction(d.von_mises_fisher(), un.iid([[10.0, 20.0], [30.0, 40.0]]))

    def test_latitudes_for_longitudes(self) -> None:
        with pytest.raises(
            DataError, match=r"Row 1 \(rows count from 0\): 120 is no latitude in degrees. Longitude comes first"
        ):
            un.iid([[10.0, 20.0], [45.0, 120.0]], unit="lonlat")
        with pytest.raises(DataError, match=r"Row 0 \(rows count from 0\): 400 is no longitude"):
            un.iid([[400.0, 20.0]], unit="lonlat")
        with pytest.raises(DataError, match="takes two columns"):
            un.iid([1.0, 2.0], unit="lonlat")
        with pytest.raises(DataError, match=r"must be one of .*'bearings'.*got 'grads'"):
            un.iid([1.0, 2.0], unit="grads")
        assert set(UNITS) == {*("radians", "degrees", "bearings", "hours"), *PLACES}

    @pytest.mark.parametrize("turn", [0.0, np.pi])  # longitudes from −π to π, or from 0 to 2π
    def test_radians_for_degrees(self, turn: float) -> None:
        rng = np.random.default_rng(4)
        y = np.column_stack([rng.uniform(-np.pi, np.pi, 60) + turn, np.arcsin(rng.uniform(-0.2, 1.0, 60))])
        with pytest.raises(DataError, match=r"unit='lonlat' means degrees.*look like radians.*'lonlat_radians'"):
            un.iid(y, unit="lonlat")
        radians, degrees = un.iid(y, unit="lonlat_radians"), un.iid(np.degrees(y), unit="lonlat")
        np.testing.assert_allclose(radians.outcome, degrees.outcome, atol=1e-12)
        one, two = (un.fit_direction(d.von_mises_fisher(), obs) for obs in (radians, degrees))
        names = [row.name for row in one.rows()]
        assert names[:2] == ["mean longitude", "mean latitude"]
        for mine, theirs in zip(one.rows()[:2], two.rows()[:2]):
            for of in ("estimate", "se", "lower", "upper"):
                assert np.degrees(getattr(mine, of)) == pytest.approx(getattr(theirs, of), rel=1e-9)
        assert "longitude and latitude in radians" in one.summary()
        np.testing.assert_allclose(one.log_density(y[:3]), two.log_density(np.degrees(y[:3])), rtol=1e-9)
        drawn = one.simulate(50, rng=1)
        assert np.abs(drawn["lon"]).max() <= np.pi
        with pytest.raises(DataError, match="is no latitude in radians"):
            un.iid(np.degrees(y), unit="lonlat_radians")
        small = un.iid(y, unit="lonlat_degrees")  # said, and so believed
        np.testing.assert_allclose(unit_of("lonlat_degrees").outward(small.outcome)[:, 1], y[:, 1], atol=1e-12)

    def test_concentration_at_infinity(self) -> None:
        with pytest.raises(NoEstimateError, match=r"All 4 directions are equal: \[0.5\], as in row 0 \(rows count"):
            un.fit_direction(d.von_mises(), un.iid([0.5, 0.5, 0.5, 0.5 + 2 * np.pi]))
        with pytest.raises(NoEstimateError, match="All 2 directions are equal"):
            un.fit_direction(d.von_mises(un.Axis()), un.iid([0.5, 0.5 + np.pi]))
        with pytest.raises(NoEstimateError, match="All 3 directions are equal"):
            un.fit_direction(d.watson(), un.iid([[0, 0, 1.0], [0, 0, -1.0], [0, 0, 1.0]]))
        angle = np.linspace(0, 2, 20)
        flat = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
        with pytest.raises(NoEstimateError, match="on one great circle: in the Kent family"):
            un.fit_direction(d.kent(), un.iid(flat))
        assert un.fit_direction(d.von_mises_fisher(), un.iid(flat)).fit.converged  # the remedy works

    def test_the_wrong_parts(self) -> None:
        with pytest.raises(CombinationError, match=r"un.directions.von_mises\(\); got VonMises.*references"):
            un.fit_direction(un.VonMises(), un.iid([1.0, 2.0]))  # pyright: ignore[reportArgumentType]
        with pytest.raises(CombinationError, match=r"takes un.transitions\(…\); got iid"):
            un.fit_direction(d.chain(), un.iid([1.0, 2.0]))
        with pytest.raises(InputError, match=r"un.Circle\(\) or, for axes, on un.Axis\(\); got Sphere"):
            d.von_mises(un.Sphere())
        with pytest.raises(InputError, match=r"un.Axis\(3\); got Circle"):
            d.bingham(un.Circle())
        with pytest.raises(InputError, match="folds must be distinct"):
            d.generalised_von_mises((1, 1))
        obs = un.conditional({"a": [1.0, 2.0, 2.5], "g": ["u", "v", "v"]}, y="a", x="g")
        with pytest.raises(InputError, match=r"There is no covariate 'wind'.*g"):
            un.fit_direction(d.regression("wind"), obs)
        with pytest.raises(InputError, match="'g' holds text"):
            un.fit_direction(d.regression("g"), obs)
        with pytest.raises(InputError, match="plane, Axis"):
            un.Axis(4)  # pyright: ignore[reportArgumentType]
        fit = un.fit_direction(d.von_mises(), un.iid([1.0, 2.0, 2.5]))
        with pytest.raises(InputError, match="'mean' is not a direction in space"):
            fit.cone()
        with pytest.raises(InputError, match="must be one of 'mean'"):
            fit.cone("axis")
