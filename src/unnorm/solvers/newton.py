"""Newton's method with step control, and the diagnosis of estimates that do not exist or are not identified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.numerics import Rng
from ..errors import CombinationError, ConvergenceError, InputError, NoEstimateError, NotIdentifiedError, listing
from ..objectives.base import Derivatives, ParametricProblem, Problem
from .base import Solution, Solver

FLAT = 1e-10  # relative to the statistics' own scale: below this a direction changes nothing that floats can see
MOST_PARAMETERS = 2000  # the Hessian and the covariance are dense
FARTHEST = 1e150  # a parameter beyond it is on its way to infinity, and its square is not a number
NEAR_EDGE = 1e-5  # curvature lost since the start: look whether the maximum is at infinity


@dataclass(frozen=True)
class Path:
    """Where the iterations ended, and why."""

    theta: np.ndarray
    converged: bool
    reason: str
    iterations: int


@final
@dataclass(frozen=True)
class Newton(Solver):
    """Maximise by Newton steps, halved until the objective rises; an indefinite Hessian becomes its absolute value.

    Args:
        tolerance: stop when half the Newton decrement, the predicted gain of one more step, is below this.
        max_steps: give up after so many steps.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> un.fit(toy, obs, solver=un.Newton(max_steps=50)).converged
        True
    """

    tolerance: float = 1e-11
    max_steps: int = 100

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.max_steps >= 1):
            raise InputError(f"Newton needs tolerance > 0 and max_steps ≥ 1; got {self.tolerance}, {self.max_steps}.")

    def solve(self, problem: Problem, rng: Rng) -> Solution:
        """The maximum over the model's flat θ."""
        size = problem.model.flat().size
        if size > MOST_PARAMETERS:
            raise CombinationError(
                f"Newton forms a matrix of {size:,} × {size:,} second derivatives; the limit is "
                f"{MOST_PARAMETERS:,} parameters. Use solver=un.LBFGS() or un.SGD(…), which need none."
            )
        end, path = self.climb(problem.parametric(rng))
        notes, figures = end.report(path.theta)
        return Solution(
            names=end.names,
            estimate=path.theta,
            index=np.arange(path.theta.size),
            constants=end.constants(path.theta),
            value=end.value(path.theta),
            loglik=end.loglik(path.theta),
            converged=path.converged,
            reason=path.reason,
            iterations=path.iterations,
            solver=self.to_dict(),
            scores=end.scores(path.theta),
            notes=notes,
            figures=figures,
            chosen=end.chosen(path.theta, None),
            source=end.made_of(),
        )

    def climb(self, problem: ParametricProblem, start: np.ndarray | None = None) -> tuple[ParametricProblem, Path]:
        """The maximum of a function of θ, refined (finer quadrature) until its accuracy is enough."""
        origin = problem.start if start is None else start
        if problem.linear:
            require_identified(problem.identifying(problem.derivatives(origin)), problem)
        begin = origin
        while True:
            try:
                path = self._climb(problem, begin)
                finer = problem.refined(path.theta)
                begin = path.theta if path.converged else origin  # integrals that miss a peak send θ far away
                if finer is None:
                    return problem, path
            except (NoEstimateError, NotIdentifiedError):
                # a rule too coarse to see the data's peak puts the maximum at infinity: look again with a finer one
                finer, begin = problem.finer(), origin
                if finer is None:
                    raise
            problem = finer

    def _climb(self, problem: ParametricProblem, theta: np.ndarray) -> Path:
        first = now = problem.derivatives(theta)
        if not np.isfinite(now.value):
            raise ConvergenceError(f"The objective is {now.value} at the starting values; start nearer to the data.")
        step, iteration = np.zeros_like(theta), 0
        for iteration in range(1, self.max_steps + 1):
            step, gain = _step(now, problem.concave)
            if np.max(np.abs(theta)) > FARTHEST:
                break
            small = gain <= self.tolerance * (1 + 1e-3 * abs(now.value))
            theta, now, moved = _move(problem, theta, now, step, gain)
            if small or not moved:
                if problem.concave and _lost_curvature(first, now) and _edge(problem, step, theta) is not None:
                    break
                if small:
                    require_identified(problem.identifying(now), problem)
                    return Path(theta, True, f"gain of the last step {gain:.1e}", iteration)
                if gain < 1e-6 * (1 + abs(now.value)):  # as high as rounding allows
                    require_identified(problem.identifying(now), problem)
                    return Path(theta, True, f"no higher value within rounding; predicted gain {gain:.1e}", iteration)
                return Path(theta, False, f"no step raised the objective; predicted gain {gain:.1e}", iteration)
        if problem.concave:
            direction = _edge(problem, step, theta)
            if direction is not None:
                raise NoEstimateError(_at_infinity(direction, first, problem.names))
        return Path(theta, False, f"still rising after {iteration} steps", iteration)

    def to_dict(self) -> dict[str, Any]:
        return {"solver": "Newton", "tolerance": self.tolerance, "max_steps": self.max_steps}


def _step(now: Derivatives, concave: bool) -> tuple[np.ndarray, float]:
    """The Newton step and the gain that the quadratic model predicts for it, ½ gᵀ H⁻¹ g."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(now.information)), 1e-300))
    values, vectors = np.linalg.eigh(now.information / np.outer(scale, scale))
    values = np.maximum(np.abs(values), FLAT)  # a saddle becomes a hill (non-concave energies)
    with np.errstate(over="ignore", invalid="ignore"):  # all mass on one node: no curvature, and the step is refused
        g = vectors.T @ (now.gradient / scale)
        return (vectors @ (g / values)) / scale, float(0.5 * np.sum(g**2 / values))


def _move(
    problem: ParametricProblem, theta: np.ndarray, now: Derivatives, step: np.ndarray, gain: float
) -> tuple[np.ndarray, Derivatives, bool]:
    """Halve the step until the objective rises (Armijo); a step whose gain is below rounding is taken as it is."""
    if not np.isfinite(step).all():  # no curvature left: see `_step`
        return theta, now, False
    length = 1.0
    rounding = 1e-13 * (1 + abs(now.value))
    ahead = problem.derivatives(theta + step)  # most full steps are taken, and their derivatives are needed next
    if np.isfinite(ahead.value) and ahead.value >= now.value + 1e-4 * gain - rounding:
        return theta + step, ahead, True
    for _ in range(40):
        length /= 2
        trial = theta + length * step
        if np.array_equal(trial, theta):  # where θ is large, rounding hides shorter steps than that of the value
            break
        value = problem.value(trial)
        if np.isfinite(value) and value >= now.value + 1e-4 * length * gain - rounding:
            return trial, problem.derivatives(trial), True
    return theta, now, False


def require_identified(now: Derivatives, problem: ParametricProblem) -> None:
    """Refuse a direction of θ along which the objective is flat, and name what lies in it."""
    names = problem.names
    diagonal = np.diag(now.information)
    still = [name for name, value, scale in zip(names, diagonal, now.scale) if value <= FLAT * max(scale, 1e-300)]
    if still:
        raise NotIdentifiedError(f"{listing(still)} cannot be estimated: {problem.why_flat}")
    scale = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(now.information / np.outer(scale, scale))
    if values[0] < FLAT:
        loading = np.abs(vectors[:, 0])
        involved = [name for name, size in zip(names, loading) if size > 0.05 * loading.max()]
        raise NotIdentifiedError(f"{listing(involved)} cannot be told apart: {problem.why_alike}")


def _lost_curvature(first: Derivatives, now: Derivatives) -> bool:
    scale = np.sqrt(np.abs(np.diag(first.information)))
    return float(np.linalg.eigvalsh(now.information / np.outer(scale, scale))[0]) < NEAR_EDGE


def _edge(problem: ParametricProblem, step: np.ndarray, theta: np.ndarray) -> np.ndarray | None:
    """A direction along which the objective never falls, if the last step or the way travelled so far is one."""
    for direction in (step, theta - problem.start):
        size = np.max(np.abs(direction))
        if size > 0 and np.isfinite(size) and problem.unbounded(direction / size):
            return direction / size
    return None


def _at_infinity(direction: np.ndarray, first: Derivatives, names: tuple[str, ...]) -> str:
    loading = direction * np.sqrt(np.abs(np.diag(first.information)))
    involved = [
        f"{name} → {'+' if size > 0 else '−'}∞"
        for name, size in zip(names, loading)
        if abs(size) > 0.05 * np.max(np.abs(loading))
    ]
    return (
        f"The estimate does not exist: the likelihood rises without end as {', '.join(involved)}. Every observation "
        "lies at the edge of what the statistic can be (perfect separation, or a statistic that is extreme on all the "
        "data). Remove the statistic, or add data or a penalty."
    )
