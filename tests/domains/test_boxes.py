import numpy as np
import pytest
from scipy.stats import norm

from unnorm.domains import Box, Interval
from unnorm.errors import InputError


def bump(y: np.ndarray, centre: list[float], sd: float) -> np.ndarray:
    return np.exp(-0.5 * (((y - centre) / sd) ** 2).sum(axis=1))


def bump_integral(a: float, b: float, centre: float, sd: float) -> float:
    return np.sqrt(2 * np.pi) * sd * (norm.cdf((b - centre) / sd) - norm.cdf((a - centre) / sd))


@pytest.mark.parametrize("order", [1, 2, 5, 100, 400])
def test_gauss_legendre_is_exact_up_to_its_degree(order: int) -> None:
    omega = Interval(2.5, 7)
    rule = omega.quadrature(order)
    for degree in {0, 1, order, 2 * order - 1}:
        # Chebyshev polynomials, which stay of size one: ∫₋₁¹ T_k = 2/(1 − k²) for even k
        z = (2 * rule.points[:, 0] - 9.5) / 4.5
        exact = 0.0 if degree % 2 else 2.25 * 2 / (1 - degree**2)
        assert rule.weights @ np.cos(degree * np.arccos(z)) == pytest.approx(exact, abs=1e-11)
    beyond = rule.weights @ np.cos(2 * order * np.arccos(z))
    assert abs(beyond - 2.25 * 2 / (1 - 4 * order**2)) > 1e-3  # and not beyond


def test_stated_error_on_an_interval() -> None:
    omega, sd = Interval(-3, 7), 10 / 50
    rule = omega.quadrature()
    for centre in np.linspace(-3, 7, 37):
        assert rule.weights @ bump(rule.points, [centre], sd) == pytest.approx(
            bump_integral(-3, 7, centre, sd), rel=1e-10
        )


def test_stated_error_on_a_box() -> None:
    omega, scale = Box((0, 800), (0, 600)), np.array([800, 600])
    rule = omega.quadrature()
    for centre in np.random.default_rng(1).random((30, 2)):
        exact = 800 * 600 * np.prod([bump_integral(0, 1, c, 1 / 20) for c in centre])
        assert rule.weights @ bump(rule.points / scale, centre.tolist(), 1 / 20) == pytest.approx(exact, rel=1e-10)


def test_tensor_rule_is_exact_up_to_its_degree_in_each_coordinate() -> None:
    rule = Box((0, 2), (1, 2), (-1, 1)).quadrature(4)
    x, y, z = rule.points.T
    assert rule.weights @ (x**7 * y**6 * z**4) == pytest.approx((2**8 / 8) * ((2**7 - 1) / 7) * (2 / 5), rel=1e-13)
    assert rule.weights @ (x**8) != pytest.approx(2**9 / 9 * 2, rel=1e-6)


def test_from_unit_is_affine_and_keeps_the_ends() -> None:
    awkward = Interval(0.1, 0.7)  # 0.1 + (0.7 − 0.1)·1 rounds to something other than 0.7
    assert awkward.from_unit(np.array([[0.0], [1.0]]))[:, 0].tolist() == [0.1, pytest.approx(0.7, abs=2e-16)]
    assert awkward.contains(awkward.from_unit(np.array([[1.0]]))).all()
    np.testing.assert_allclose(Box((0, 4), (-1, 1)).from_unit(np.array([[0.25, 0.75]])), [[1.0, 0.5]])


def test_boundaries_belong() -> None:
    assert Interval(-1, 1).contains(np.array([-1.0, 1.0, np.nextafter(1, 2), -1.0000001])).tolist() == [1, 1, 0, 0]
    box = Box((0, 1), (0, 2))
    assert box.contains(np.array([[0, 0], [1, 2], [0.5, 2.0001], [-1e-9, 1]])).tolist() == [1, 1, 0, 0]


def test_properties() -> None:
    omega = Interval(2, 5)
    assert (omega.lower, omega.upper, omega.bounds) == (2.0, 5.0, (2.0, 5.0))
    assert omega.centre.tolist() == [3.5]
    assert omega.scalar
    assert repr(omega) == "Interval(2, 5)"
    box = Box((0, 800), (100, 600))
    assert box.lower.tolist() == [0, 100]
    assert box.upper.tolist() == [800, 600]
    assert box.bounds == (0, 100, 800, 600)
    assert box.centre.tolist() == [400, 350]
    assert not box.scalar
    assert repr(box) == "Box((0, 800), (100, 600))"
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 3
    assert Box((0, 1)) != Interval(0, 1)


def test_four_dimensions_need_a_chosen_order() -> None:
    omega = Box(*[(0, 1)] * 4)
    with pytest.raises(InputError, match=r"has order\*\*4 nodes \(4,096 with 8 per axis, 65,536 with 16\)"):
        omega.quadrature()
    assert omega.quadrature(3).weights.sum() == pytest.approx(1.0)
    with pytest.raises(InputError, match="100,000,000 nodes, more than the limit of 4,194,304"):
        omega.quadrature(100)
    assert Box(*[(0, 1)] * 40).log_volume == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ((1, 0), r"\(a, b\) with a < b; got \(1.0, 0.0\)"),
        ((2, 2), "a < b"),
        ((0, np.inf), "must be finite"),
        ((np.nan, 1), "must be finite"),
        ((-1.7e308, 1.7e308), "finite length"),
        (("a", "b"), "must be numeric"),
    ],
)
def test_bad_bounds(bounds: tuple[float, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Interval(*bounds)
    with pytest.raises(InputError, match=sentence):
        Box((0, 1), bounds)


def test_bad_boxes() -> None:
    with pytest.raises(InputError, match="one pair"):
        Box()
    with pytest.raises(InputError, match=r"coordinate 2 of a Box must be a pair"):
        Box((0, 1), (0, 1, 2))  # pyright: ignore[reportArgumentType]
