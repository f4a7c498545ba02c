"""What a fit evaluates compiled is what NumPy evaluates."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from unnorm.terms import sample, thin_plate
from unnorm.terms.base import BuiltTerm
from unnorm.terms.parser import parse
from unnorm.terms.thin_plate import ThinPlate


def term(formula: str) -> BuiltTerm:
    rng = np.random.default_rng(2)
    columns = {"x": rng.gamma(2.0, 1.0, 3_000), "z": rng.normal(size=3_000), "angle": rng.uniform(-3, 3, 3_000)}
    (built,) = parse(formula).build(columns, knots={"angle": (-np.pi, np.pi)} if "angle" in formula else {})
    return built


@pytest.mark.parametrize(
    "formula", ["s(x, k=12)", "s(x, bs='cr', k=7)", "s(angle, bs='cc', k=9)", "s(x, bs='cr', k=3)"]
)
def test_cubic_splines_have_the_same_numbers_compiled_and_not(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import numba  # noqa: F401

    built = term(formula)
    basis = built.basis  # pyright: ignore[reportAttributeAccessIssue]
    low, high = basis.knots[0], basis.knots[-1]
    inside = np.random.default_rng(3).uniform(low, high, 500)
    reach = high - low
    points = np.concatenate([inside, np.sort(inside), basis.knots, [low - reach, high + 2.3 * reach, np.nan]])
    points.setflags(write=False)
    compiled = basis.evaluate(points)
    strided = basis.evaluate(np.repeat(points, 2)[::2])
    monkeypatch.delitem(sys.modules, "numba")
    plain = basis.evaluate(points)
    monkeypatch.undo()
    assert np.isnan(compiled[-1]).all()
    assert np.isnan(plain[-1]).all()
    np.testing.assert_allclose(compiled, plain, rtol=1e-14, atol=1e-14 * np.abs(plain[:-1]).max())
    assert np.array_equal(compiled, strided, equal_nan=True)


@pytest.mark.parametrize("far", [-0.1, 2.0])
def test_points_beyond_one_end_alone_lie_on_straight_lines(far: float) -> None:
    import numba  # noqa: F401

    basis = term("s(x, bs='cr', k=7)").basis  # pyright: ignore[reportAttributeAccessIssue]
    low, high = basis.knots[0], basis.knots[-1]
    end, way = (0, low) if far < 0.0 else (-1, high)
    steps = np.array([0.0, 0.5, 1.0, 4.0])[:, None] * far * (high - low)
    expected = basis.values[end] + steps * basis.slopes(end)
    np.testing.assert_allclose(basis.evaluate(way + steps[:, 0]), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("dim", "m"), [(1, 1), (1, 3), (3, 2), (3, 3)])
def test_plates_of_odd_dimension_have_no_logarithms(dim: int, m: int) -> None:
    rng = np.random.default_rng(11)
    size = len(thin_plate.null_powers(m, dim))
    plate = ThinPlate(
        m, rng.normal(size=dim), rng.normal(size=(200, dim)), rng.normal(size=(200, 4)), np.ones((size, 4))
    )
    points = rng.normal(size=(400, dim))
    assert np.array_equal(plate.first(points), plate.evaluate(points))


@pytest.mark.parametrize("order", ["", ", m=3", ", m=4"])
def test_a_plate_is_set_up_with_the_functions_that_it_has(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = term(f"s(x, z, k=20{order})")
    basis: ThinPlate = built.basis  # pyright: ignore[reportAttributeAccessIssue]
    points = np.random.default_rng(4).gamma(2.0, 1.0, (700, 2))
    points[0] = basis.knots[0] + basis.centre  # at a knot
    plain = basis.evaluate(points)
    size = np.abs(plain).max()
    for held in (thin_plate._HELD, 100 * len(basis.knots)):
        monkeypatch.setattr(thin_plate, "_HELD", held)
        np.testing.assert_allclose(basis.first(points), plain, rtol=1e-9, atol=1e-11 * size)
    called = []
    monkeypatch.setattr(ThinPlate, "evaluate", lambda self, points: called.append(len(points)) or plain)
    basis.first(points)
    assert called == []
    basis.first(points[:10])
    assert called == [10], "few distances are no work for a compiler"


def test_functions_times_numbers() -> None:
    factors = np.random.default_rng(5).normal(size=11)
    for formula in ("s(x, k=12)", "s(x, z, k=12)", "s(x, bs='ps', k=12)"):
        basis = term(formula).basis  # pyright: ignore[reportAttributeAccessIssue]
        points = np.random.default_rng(6).gamma(2.0, 1.0, (40, basis.dim))
        np.testing.assert_allclose(
            basis.scaled(factors).evaluate(points), basis.evaluate(points) * factors, rtol=1e-9, atol=1e-12
        )


def test_a_scaled_plate_still_knows_its_rows() -> None:
    points = np.unique(np.random.default_rng(7).normal(size=(50, 2)), axis=0)
    columns = np.random.default_rng(8).normal(size=(50, 3))
    plate = ThinPlate(2, np.zeros(2), points, np.zeros((50, 3)), np.zeros((3, 3)), thin_plate.Seen.of(points, columns))
    known = plate.scaled(np.array([1.0, -2.0, 0.5])).known(points[::-1])
    assert known is not None
    np.testing.assert_allclose(known, columns[::-1] * [1.0, -2.0, 0.5], rtol=1e-15)


@pytest.mark.parametrize("ties", [0, 3, 40, 400])
def test_distinct_rows_are_in_order_whatever_is_tied(ties: int) -> None:
    rng = np.random.default_rng(ties)
    rows = rng.normal(size=(400, 3))
    rows[:ties, 0] = rng.integers(0, 3, ties)
    rows[: ties // 2, 1] = rng.integers(0, 2, ties // 2)
    rows = rng.permutation(np.concatenate([rows, rows[:50]]))
    found, which = sample.distinct_rows(rows)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(found, expected)
    assert np.array_equal(which, inverse.ravel())


def test_cells_are_the_same_compiled_and_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba  # noqa: F401

    x = np.random.default_rng(9).gamma(1.5, 2.0, 20_000)
    compiled = sample.summarise({"x": x}, ("x",), "s(x)")
    monkeypatch.delitem(sys.modules, "numba")
    plain = sample.summarise({"x": x}, ("x",), "s(x)")
    assert np.array_equal(compiled.points, plain.points)
    assert np.array_equal(compiled.weights, plain.weights)


def test_knots_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(10)
    rows = np.column_stack([rng.integers(0, 60, 3_000) / 7.0, rng.normal(size=3_000)])  # many share the first covariate
    for dim in (1, 2):
        found = []
        for order in (np.arange(3_000), rng.permutation(3_000), np.argsort(rows[:, 0], kind="stable")):
            columns = {str(j): rows[order, j] for j in range(dim)}
            one = sample.summarise(columns, tuple(columns), "s()")
            found.append(sample.gathered(one, 30, every=20))
        for knots, share in found[1:]:
            np.testing.assert_allclose(knots, found[0][0], rtol=1e-12)
            np.testing.assert_allclose(share, found[0][1], rtol=1e-12)
