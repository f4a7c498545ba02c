import itertools

import numpy as np
import pytest

from unnorm.domains import BinaryVectors, FiniteSet
from unnorm.errors import InputError


def test_scalars_and_vectors() -> None:
    dice = FiniteSet(range(1, 7))
    assert dice.scalar
    assert dice.dim == 1
    assert dice.quadrature().points[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    places = FiniteSet([[0.0, 1.0], [2.0, 3.5]], weights=[1, 3])
    assert not places.scalar
    assert places.dim == 2
    assert places.volume == 4.0
    assert repr(dice) == "FiniteSet([1, 2, 3, 4, 5, 6])"
    assert repr(places) == "FiniteSet([(0.0, 1.0), (2.0, 3.5)], weighted)"
    assert repr(FiniteSet(range(10))) == "FiniteSet([0, 1, 2, 3, 4, 5, …]) (10 values)"
    assert FiniteSet([[1.0], [2.0]]) != FiniteSet([1.0, 2.0])


def test_membership_is_exact() -> None:
    omega = FiniteSet([[0.1, 0.2], [0.3, 0.0]])
    y = np.array([[0.3, -0.0], [0.1, 0.2], [0.1, np.nextafter(0.2, 1)], [0.2, 0.1], [np.nan, 0.2]])
    assert omega.index(y).tolist() == [1, 0, -1, -1, -1]
    assert omega.contains(y).tolist() == [True, True, False, False, False]


def test_membership_at_size() -> None:
    rng = np.random.default_rng(1)
    values = rng.permutation(10_000).astype(float)
    omega = FiniteSet(values)
    y = rng.integers(0, 20_000, 200_000).astype(float)
    at = omega.index(y)
    assert ((at >= 0) == (y < 10_000)).all()
    np.testing.assert_array_equal(values[at[at >= 0]], y[at >= 0])


def test_inverse_distribution_function() -> None:
    omega = FiniteSet([10, 20, 30], weights=[1, 2, 1])
    u = np.array([[0.0], [0.2499], [0.25], [0.7499], [0.75], [1.0]])
    assert omega.from_unit(u)[:, 0].tolist() == [10, 10, 20, 20, 30, 30]


@pytest.mark.parametrize(
    ("values", "weights", "sentence"),
    [
        ([], None, "non-empty"),
        (np.zeros((2, 2, 2)), None, r"shape \(2, 2, 2\)"),
        ([1, 2, 1], None, "must be distinct; .*1.0.* more than once"),
        ([0.0, -0.0], None, "must be distinct"),
        ([1, np.nan], None, "must be finite; value 1"),
        ([1, 2], [1], r"one weight per value, shape \(2,\)"),
        ([1, 2], [1, 0], "finite and positive; weight 1 is 0.0"),
        ([1, 2], [1, np.inf], "finite and positive"),
        (["a"], None, "must be numeric"),
    ],
)
def test_bad_finite_sets(values: object, weights: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        FiniteSet(values, weights)


def test_the_set_does_not_follow_the_caller() -> None:
    values = np.array([1.0, 2.0])
    omega = FiniteSet(values)
    values[0] = 7.0
    assert omega.values[:, 0].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        omega.values[0] = 3.0


def test_binary_vectors_are_all_there() -> None:
    rule = BinaryVectors(5).quadrature()
    assert list(map(tuple, rule.points)) == list(itertools.product([0.0, 1.0], repeat=5))
    assert BinaryVectors(5).volume == 32.0


def test_one_coordinate_of_the_cube_per_bit() -> None:
    assert BinaryVectors(3).from_unit(np.array([[0.49, 0.5, 1.0]])).tolist() == [[0, 1, 1]]


def test_the_limit_of_enumeration() -> None:
    assert len(BinaryVectors(20).quadrature().weights) == 2**20
    with pytest.raises(InputError, match=r"2\*\*21 = 2,097,152 states, more than the 1,048,576"):
        BinaryVectors(21).quadrature()
    with pytest.raises(InputError, match=r"2\*\*5000 \(about 1e1505\) states"):
        BinaryVectors(5000).quadrature()
    large = BinaryVectors(5000)
    assert large.volume == np.inf
    assert large.log_volume == pytest.approx(5000 * np.log(2))
    assert large.contains(large.uniform(3, rng=1)).all()


@pytest.mark.parametrize("d", [0, -1, 2.0, True, "3"])
def test_bad_lengths(d: object) -> None:
    with pytest.raises(InputError, match="length d of BinaryVectors must be a whole number of at least 1"):
        BinaryVectors(d)  # pyright: ignore[reportArgumentType]
