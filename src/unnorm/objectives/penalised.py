"""A parametric objective less a ridge or a lasso penalty: W {½ λ₂ Σ_j θ_j² + λ₁ Σ_j |θ_j|} over penalised parameters.

W = Σ w, so that λ means the same for 100 observations and for 10⁶. Fields and the like are left alone: the model says
which parameters are penalised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ..models.operators import Operator
from .base import ChosenErrors, Constants, Derivatives, ParametricProblem
from .rows import RowSource
from .scores import Scores


@final
@dataclass(frozen=True)
class Penalised(ParametricProblem):
    """`problem` less its penalty; `lasso` is for the solver to treat, as it has no slope at zero."""

    problem: ParametricProblem
    ridge: np.ndarray  # (p,) W λ₂, zero where nothing is penalised
    lasso: np.ndarray | float  # (p,) W λ₁

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.names

    @property
    def start(self) -> np.ndarray:
        return self.problem.start

    @property
    def concave(self) -> bool:
        return self.problem.concave

    def value(self, theta: np.ndarray) -> float:
        return self.problem.value(theta) - 0.5 * float(self.ridge @ theta**2) - float(self.lasso @ np.abs(theta))

    def slope(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value, and the gradient without the lasso's part."""
        value, g = self.problem.slope(theta)
        value -= 0.5 * float(self.ridge @ theta**2) + float(self.lasso @ np.abs(theta))
        return value, g - self.ridge * theta

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        now = self.problem.derivatives(theta)
        value, g = self.slope(theta)
        return replace(now, value=value, gradient=g, information=now.information + np.diag(self.ridge))

    @property
    def scale(self) -> np.ndarray:
        return self.problem.scale + self.ridge

    def curvature(self, theta: np.ndarray) -> Operator | None:
        found = self.problem.curvature(theta)
        return None if found is None else found.shifted(self.ridge)

    def part(self, rng: np.random.Generator) -> tuple[ParametricProblem, float] | None:
        found = self.problem.part(rng)
        if found is None:
            return None
        small, share = found
        return Penalised(small, self.ridge * share, self.lasso * share), share

    def unbounded(self, direction: np.ndarray) -> bool:
        free = (self.ridge + self.lasso) == 0
        return bool(np.all(free[direction != 0])) and self.problem.unbounded(direction)

    def constants(self, theta: np.ndarray) -> Constants:
        return self.problem.constants(theta)

    def made_of(self) -> RowSource | None:
        return self.problem.made_of()

    def loglik(self, theta: np.ndarray) -> float:
        return self.problem.loglik(theta)

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        return self.problem.report(theta)

    def scores(self, theta: np.ndarray) -> Scores:
        found: Any = self.problem.scores(theta)
        return replace(found, penalty=np.diag(self.ridge)) if self.ridge.any() else found

    def chosen(
        self, theta: np.ndarray, curvature: Operator | None, ridge: np.ndarray | float = 0.0
    ) -> ChosenErrors | None:
        return None if np.any(self.lasso) else self.problem.chosen(theta, curvature, self.ridge)


def penalised(problem: ParametricProblem, which: np.ndarray, weight: float, ridge: float, lasso: float) -> Penalised:
    """The problem with penalties on the parameters `which`."""
    on = which.astype(np.float64) * weight
    return Penalised(problem, ridge * on, lasso * on)
