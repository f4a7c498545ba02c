import numpy as np
import pytest

from unnorm.domains import Box, Circle, Interval, quadrature_error
from unnorm.errors import InputError


def bump(sd: float):
    return lambda y: np.exp(-0.5 * ((y / sd) ** 2).sum(axis=1))


@pytest.mark.parametrize("order", [4, 6, 8, 12])
def test_the_estimate_is_close_to_the_true_error(order: int) -> None:
    omega = Interval(-1, 1)
    rule = omega.quadrature(order)
    g = lambda y: 1 / (1 + 4 * y[:, 0] ** 2)  # noqa: E731
    true = abs(rule.weights @ g(rule.points) - np.arctan(2))
    assert quadrature_error(omega, g, order) == pytest.approx(true, rel=0.2)


def test_too_coarse_is_seen() -> None:
    omega = Box((-1, 1), (-1, 1))
    assert quadrature_error(omega, bump(0.2), relative=True) < 1e-10
    assert quadrature_error(omega, bump(0.01), relative=True) > 0.1


def test_several_functions_at_once() -> None:
    g = lambda y: np.column_stack([np.ones(len(y)), np.exp(100 * np.cos(y[:, 0])), np.zeros(len(y))])  # noqa: E731
    errors = quadrature_error(Circle(), g, order=10, relative=True)
    assert isinstance(errors, np.ndarray)
    assert errors[0] < 1e-14
    assert errors[1] > 0.1
    assert errors[2] == 0.0


def test_g_must_give_one_value_per_point() -> None:
    with pytest.raises(InputError, match=r"shape \(100,\) or \(100, k\); got shape \(1, 100\)"):
        quadrature_error(Interval(0, 1), lambda y: y.T)
