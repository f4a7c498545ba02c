"""Newton where the objective's rounding is all that is left to climb."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import unnorm as un
from unnorm.objectives.base import Constants, Derivatives, ParametricProblem
from unnorm.objectives.scores import Scores
from unnorm.solvers.newton import Newton, _move


@dataclass(frozen=True)
class Rounded(ParametricProblem):
    """At θ = 8,381, as high as floats can tell, though the gradient still promises 5·10⁻¹¹ nats."""

    names = ("kappa",)
    start = np.array([8381.0])
    concave = True

    def value(self, theta: np.ndarray) -> float:
        return 310.0 - (1e-10 if theta[0] != self.start[0] else 0.0)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        return Derivatives(self.value(theta), np.array([1e-8]), np.array([[1e-6]]), np.array([1e-6]))

    def scores(self, theta: np.ndarray) -> Scores:
        raise AssertionError

    def constants(self, theta: np.ndarray) -> Constants:
        return Constants(np.zeros(0))


def test_a_step_too_short_for_theta_is_no_step() -> None:
    _, path = Newton(tolerance=1e-12).climb(Rounded())
    assert path.converged
    assert "within rounding" in path.reason
    assert path.iterations == 1
    assert path.theta[0] == 8381.0


def test_directions_within_a_degree_of_each_other() -> None:
    """Two of 2,500 such data sets did not converge: κ is large, its likelihood a difference of large numbers."""
    rng = np.random.default_rng(7)
    for number in range(1544):
        y = rng.vonmises(3.0, 1e4, 100)
        if number in (845, 1543):
            fit = un.fit_direction(un.directions.von_mises(), un.iid(y, unit="radians"))
            assert fit.fit.converged


@dataclass(frozen=True)
class Flat(Rounded):
    """No curvature and a gradient: Newton's step is infinite."""

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        assert np.isfinite(theta).all()
        return Derivatives(0.0, np.array([1e300]), np.array([[0.0]]), np.array([0.0]))


def test_an_infinite_step_is_not_tried() -> None:
    problem, begin = Flat(), np.array([1.0])
    theta, _, moved = _move(problem, begin, problem.derivatives(begin), np.array([np.inf]), np.inf)
    assert not moved
    assert theta is begin
