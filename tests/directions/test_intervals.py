"""Intervals of directions and concentrations."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.data.units import unit_of
from unnorm.directions.quantities import Angle, Direction, Size, cone, fieller

d = un.directions


def test_fieller_is_the_delta_method_where_the_vector_is_known() -> None:
    V = np.array([[0.02, 0.005], [0.005, 0.01]])
    for length in (0.5, 50.0, 5000.0):
        value = length * np.array([np.cos(2.0), np.sin(2.0)])
        small = V * (length * 1e-3) ** 2
        angle, se, ends = fieller(value, small, 0.95)
        across = np.array([-np.sin(2.0), np.cos(2.0)])
        assert angle == pytest.approx(2.0)
        assert se == pytest.approx(1e-3 * np.sqrt(across @ V @ across))
        assert ends is not None
        np.testing.assert_allclose(ends, [2.0 - 1.959964 * se, 2.0 + 1.959964 * se], atol=1e-6)


def test_the_ends_are_tangents() -> None:
    """asinh(κ) u, for u at either end, touches the ellipse: (r u − v)ᵀ V⁻¹ (r u − v) has its minimum z² there."""
    from unnorm.directions.quantities import steadied

    value, V = np.array([0.6, 0.2]), np.array([[0.02, 0.008], [0.008, 0.03]])
    _, _, ends = fieller(value, V, 0.9)
    assert ends is not None
    v, W = steadied(value, V)
    for end in ends:
        u = np.array([np.cos(end), np.sin(end)])
        W1 = np.linalg.inv(W)
        r = (u @ W1 @ v) / (u @ W1 @ u)
        assert r > 0
        assert (r * u - v) @ W1 @ (r * u - v) == pytest.approx(1.6448536**2)


def test_the_whole_circle() -> None:
    fit = un.fit_direction(d.von_mises(), un.iid(np.linspace(0, 2 * np.pi, 21)[:20] + 0.01 * np.arange(20)))
    row = fit.rows()[0]
    assert (row.lower, row.upper) == (-np.pi, np.pi)
    assert "whole circle" in str(row.note)
    assert "The interval of mean is the whole circle" in fit.summary()
    assert fit.rows()[1].lower == 0.0
    degrees = un.fit_direction(d.von_mises(un.Axis()), un.iid(180 * np.linspace(0, 1, 21)[:20] + 0.1, unit="bearings"))
    assert (degrees.rows()[0].lower, degrees.rows()[0].upper) == (0.0, 180.0)


def test_six_sharp_directions_tell_their_mean() -> None:
    fit = un.fit_direction(d.von_mises(), un.iid([0.1, 0.15, -0.05, 0.0, 0.02, 0.2]))
    assert fit.parameters["kappa"] / fit.rows()[1].se < 1.96
    assert fit.rows()[0].note is None
    assert fit.rows()[0].upper - fit.rows()[0].lower < 0.3


def test_the_whole_sphere() -> None:
    y = un.Sphere().uniform(40, rng=2)
    fit = un.fit_direction(d.von_mises_fisher(), un.iid(y))
    assert fit.cone() is None
    assert "whole sphere" in fit.summary()
    known = cone(np.array([0.0, 0.0, 9.0]), np.diag([0.09, 0.36, 1.0]), 0.95)
    assert known is not None
    wider = 1 / np.sqrt(1 - 2.447747**2 / (np.arcsinh(9.0) * np.hypot(1, 9.0)) ** 2)
    np.testing.assert_allclose(known.angles, wider * 2.447747 * np.array([0.6, 0.3]) / 9.0, rtol=1e-6)
    low = [
        row.lower for row in Direction("mean").rows(np.array([0.01, 0.0, 0.02]), np.eye(3), 0.95, unit_of("radians"))
    ]
    assert low == [-1.0, -1.0, -1.0]
    edge = known.outline()
    np.testing.assert_allclose(np.linalg.norm(edge, axis=1), 1.0)
    assert np.arccos(edge @ known.centre).max() == pytest.approx(known.angles[0], rel=1e-6)


def test_rows_of_a_direction() -> None:
    """By longitude and latitude, or by coordinates; numerical derivatives of both as the oracle."""
    value, V = np.array([2.0, -1.0, 3.0]), np.array([[0.02, 0.005, 0.0], [0.005, 0.03, -0.004], [0.0, -0.004, 0.01]])

    def numerically(g) -> float:
        step = 1e-6
        slope = np.array([(g(value + step * e) - g(value - step * e)) / (2 * step) for e in np.eye(3)])
        return float(np.sqrt(slope @ V @ slope))

    lon, lat = Direction("mean").rows(value, V, 0.95, unit_of("lonlat"))
    assert (lon.estimate, lat.estimate) == pytest.approx(
        (np.degrees(np.arctan2(-1, 2)), np.degrees(np.arcsin(3 / np.sqrt(14))))
    )
    assert lon.se == pytest.approx(numerically(lambda v: np.degrees(np.arctan2(v[1], v[0]))), rel=1e-6)
    assert lat.se == pytest.approx(numerically(lambda v: np.degrees(np.arcsin(v[2] / np.linalg.norm(v)))), rel=1e-6)
    for j, row in enumerate(Direction("mean").rows(value, V, 0.95, unit_of("radians"))):
        assert row.se == pytest.approx(numerically(lambda v, j=j: v[j] / np.linalg.norm(v)), rel=1e-6)
    below = Direction("axis", axial=True).rows(-value, V, 0.95, unit_of("radians"))
    assert below[2].estimate > 0


def test_sizes_and_relative_angles() -> None:
    (row,) = Size("kappa").rows(np.array([1e4]), np.array([[1e6]]), 0.95, unit_of("radians"))
    assert row.upper / 1e4 == pytest.approx(1e4 / row.lower, rel=1e-6)  # even on the log scale where κ is large
    (row,) = Size("kappa").rows(np.array([0.03]), np.array([[1e-4]]), 0.95, unit_of("radians"))
    assert row.upper - 0.03 == pytest.approx(1.96e-2, rel=1e-3)  # and even where it is small, but not below 0
    assert row.lower == pytest.approx(0.0104, rel=0.05)
    (row,) = Size("kappa").rows(np.array([0.02]), np.array([[1e-4]]), 0.95, unit_of("radians"))
    assert row.lower == 0.0  # 2² < 5.99: a vector of two parts that is 0 is as long as that in one of twenty samples
    (row,) = Size("beta", 2, steps=3.0).rows(np.array([20.0]), np.array([[16.0]]), 0.95, unit_of("radians"))
    assert (row.lower, row.upper) == pytest.approx((13.0, 29.0), abs=1.0)
    (row,) = Size("beta", 2, steps=3.0).rows(np.array([0.0]), np.array([[16.0]]), 0.95, unit_of("radians"))
    assert row.upper == pytest.approx(12 * np.sinh(1.96 / 3), rel=1e-3)
    V = 1e-4 * np.eye(2)
    (turn,) = Angle("turn", relative=True).rows(np.array([np.cos(0.3), np.sin(0.3)]), V, 0.95, unit_of("bearings"))
    assert turn.estimate == pytest.approx(-np.degrees(0.3))  # a turn to the left is negative on a compass
    assert turn.lower < turn.estimate < turn.upper


@pytest.mark.parametrize(("parts", "level"), [(2, 0.95), (3, 0.9)])
def test_a_size_of_zero_is_covered(parts: int, level: float) -> None:
    """Lengths of normal vectors about 0: their intervals hold 0 as often as they claim, and not 72 % of the time."""
    length = np.linalg.norm(np.random.default_rng(4).normal(0.0, 0.01, (4000, parts)), axis=1)
    one = Size("kappa", parts)
    rows = [one.rows(np.array([x]), np.array([[1e-4]]), level, unit_of("radians"))[0] for x in length]
    assert np.mean([row.lower == 0.0 for row in rows]) == pytest.approx(level, abs=0.015)


def test_directions_that_balance() -> None:
    """A resultant of exactly 0: no direction, every direction in its interval, and an error of κ that is not 0."""
    balanced = np.concatenate([np.eye(3), -np.eye(3)])
    fit = un.fit_direction(un.directions.von_mises_fisher(), un.iid(balanced))
    rows = {row.name: row for row in fit.rows()}
    assert rows["kappa"].estimate < 1e-12
    assert rows["kappa"].se == pytest.approx(np.sqrt(3 / 6), rel=1e-6)  # information n/3 for each part of κμ
    assert rows["mean[0]"].note is not None
    assert (rows["mean[0]"].lower, rows["mean[0]"].upper) == (-1.0, 1.0)
    assert fit.cone() is None
    assert "whole sphere" in fit.summary()
    quantity = Direction("mean")
    for unit in ("radians", "lonlat"):
        assert all(
            np.isnan(row.estimate) and row.note for row in quantity.rows(np.zeros(3), np.eye(3), 0.95, unit_of(unit))
        )
    (row,) = Angle("mean").rows(np.zeros(2), np.eye(2), 0.95, unit_of("degrees"))
    assert (row.lower, row.upper) == (-180.0, 180.0)


def test_a_wrapped_law_at_zero() -> None:
    """Four directions that balance: ρ is 0 with the error of moments, 1/√(2n), for both wrapped laws."""
    square = un.iid(np.pi / 2 * np.arange(4) - 0.7)
    for family in (un.directions.wrapped_cauchy(), un.directions.wrapped_normal()):
        rows = {row.name: row for row in un.fit_direction(family, square).rows()}
        assert rows["rho"].estimate < 1e-6
        assert rows["rho"].se == pytest.approx(1 / np.sqrt(8), rel=0.01)


def test_errors_in_words() -> None:
    d, rng = un.directions, np.random.default_rng(3)
    sharp = un.iid(1.0 + 1e-5 * rng.normal(size=50))
    with pytest.raises(un.errors.NoEstimateError, match=r"deviation of .*e-05 radians: a concentration of .* normal"):
        un.fit_direction(d.von_mises(), sharp)
    with pytest.raises(un.errors.NoEstimateError, match="von Mises chain family has no finite estimate for these 2"):
        un.fit_direction(d.chain(), un.transitions([0.1, 0.2, 0.3], unit="radians"))
    table = {"y": rng.vonmises(1, 2, 40), "w": np.ones(40), "far": 1e6 + rng.normal(size=40)}
    with pytest.raises(un.errors.InputError, match="'w' is constant"):
        un.fit_direction(d.regression("w"), un.conditional(table, "y", "w"))
    with pytest.warns(un.errors.UnnormWarning, match=r"'far' lies far from 0, at 1e\+06 .* Subtract 1e\+06"):
        d.regression("far").model(un.conditional(table, "y", "far"))
    assert d.generalised_von_mises(4).quantities == d.generalised_von_mises((4,)).quantities
    with pytest.raises(un.errors.InputError, match=r"un\.iid\(…, unit=…\); got ndarray"):
        d.rose(table["y"])
