"""Limited-memory BFGS for many parameters: no matrix of p × p, and the curvature of a part of the data as its start.

The step is −H_k g, H_k the inverse Hessian by the last few changes of θ and g (Nocedal 1980) on top of H_0. Where the
problem knows its curvature by products, H_0 = A⁻¹ with A that of a few thousand observations, scaled: the first step on
all the data is then all but Newton's, and a handful of passes over them is enough. The part's own maximum, found first,
is where they start. Elsewhere H_0 = γ diag(1/scale). SciPy's L-BFGS takes no H_0, and no lasso: hence one of our own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.numerics import Rng, generator
from ..data.observations import Observations
from ..errors import ConvergenceError, InputError, NoEstimateError, listing
from ..models.base import Model
from ..models.operators import Operator
from ..objectives.base import ParametricProblem, Problem
from ..objectives.penalised import penalised
from .base import Solution, Solver
from .newton import MOST_PARAMETERS, Path

INNER = 1e-4  # relative residual of A⁻¹ g
LARGE, LARGEST = 8.0, 30.0  # |θ|, in logits, from which the way to infinity is looked at: at the end, and before
SINGLY = 20  # large parameters that are looked at one by one
Inverse = Callable[[np.ndarray], np.ndarray]

MANY = (
    "Standard errors of all {p:,} parameters at once were not computed: fit.errors_of([{example!r}, …]) gives those of "
    "the parameters that you name."
)
AFTER_SELECTION = (
    "The lasso left {k:,} of {p:,} parameters. No standard errors: intervals that ignore the selection are too short. "
    "Fit the selected parameters to other data, or use ridge=."
)
SHRUNKEN = (
    "Standard errors are those of the penalised estimate. The ridge draws parameters towards zero, and intervals "
    "around them do not make up for all of it."
)


@final
@dataclass(frozen=True)
class LBFGS(Solver):
    """Maximise by limited-memory BFGS: the solver for more than 2,000 parameters.

    Args:
        tolerance: stop when the predicted gain ½ gᵀH⁻¹g, for each parameter, is below this: 1e-7 is a further move of
            √(2e-7) ≈ 0.0005 standard errors in the mean.
        max_steps: give up after so many steps.
        memory: how many past steps make the inverse Hessian.
        ridge: λ of a penalty W ½ λ Σ θ_j², W the number of observations; on an Ising model's couplings, not its fields.
        lasso: λ of a penalty W λ Σ |θ_j|, which sets parameters to zero; no errors are given then.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(0).integers(0, 2, (500, 3))
        >>> flips = un.ConditionalNCE(un.BitFlip(every=True))
        >>> a, b = (un.fit(un.Ising(3), un.iid(y), flips, solver=s) for s in (un.Newton(), un.LBFGS(1e-14)))
        >>> bool(np.abs(a.estimate - b.estimate).max() < 1e-6)
        True
    """

    tolerance: float = 1e-7
    max_steps: int = 300
    memory: int = 10
    ridge: float = 0.0
    lasso: float = 0.0

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.max_steps >= 1 and self.memory >= 1):
            raise InputError(
                f"LBFGS needs tolerance > 0, max_steps ≥ 1 and memory ≥ 1; got {self.tolerance}, {self.max_steps}, "
                f"{self.memory}."
            )
        if not (0 <= self.ridge < np.inf and 0 <= self.lasso < np.inf):
            raise InputError(f"ridge and lasso must be non-negative numbers; got {self.ridge!r}, {self.lasso!r}.")

    def solve(self, problem: Problem, rng: Rng) -> Solution:
        """The maximum over the model's flat θ."""
        random = generator(rng)
        bound = self.penalised(problem.parametric(random), problem.model.flat(), problem.obs)
        path, curvature = self.climb(bound, random)
        notes, figures = bound.report(path.theta)
        few = path.theta.size <= MOST_PARAMETERS
        some = bound.chosen(path.theta, curvature)
        refusal = None
        if self.lasso:
            refusal = AFTER_SELECTION.format(k=np.count_nonzero(path.theta), p=path.theta.size)
            notes, few = (*notes, refusal), False
        elif self.ridge:
            notes = (*notes, SHRUNKEN)
        if not few and some is not None:
            notes = (*notes, MANY.format(p=path.theta.size, example=bound.names[-1]))
        return Solution(
            names=bound.names,
            estimate=path.theta,
            index=np.arange(path.theta.size),
            constants=bound.constants(path.theta),
            value=bound.value(path.theta),
            loglik=bound.loglik(path.theta),
            converged=path.converged,
            reason=path.reason,
            iterations=path.iterations,
            solver=self.to_dict(),
            scores=bound.scores(path.theta) if few else None,
            notes=notes,
            figures=figures,
            chosen=some,
            no_errors=refusal,
            source=bound.made_of(),
        )

    def penalised(self, problem: ParametricProblem, model: Model, obs: Observations) -> ParametricProblem:
        """The problem less the penalties, where there are some."""
        if not (self.ridge or self.lasso):
            return problem
        return penalised(problem, model.penalised, float(obs.weights.sum()), self.ridge, self.lasso)

    def climb(
        self, problem: ParametricProblem, rng: np.random.Generator, start: np.ndarray | None = None
    ) -> tuple[Path, Operator | None]:
        """The maximum of a function of θ, from its own part's where it has one; and the curvature of that part."""
        theta = problem.start if start is None else start
        if self.lasso:
            return orthant_wise(self, problem, theta), None
        part = problem.part(rng)
        if part is None:
            curvature = problem.curvature(theta)
            return self._climb(problem, theta, curvature, renew=True)
        small, share = part
        path, curvature = self.climb(small, rng, theta) if small.part(rng) else self._small(small, theta)
        assert curvature is not None
        return self._climb(problem, path.theta, curvature.scaled(1.0 / share), renew=False)

    def _small(self, small: ParametricProblem, theta: np.ndarray) -> tuple[Path, Operator | None]:
        return self._climb(small, theta, small.curvature(theta), renew=True)

    def _climb(
        self, problem: ParametricProblem, theta: np.ndarray, curvature: Operator | None, renew: bool
    ) -> tuple[Path, Operator | None]:
        """`renew`: take the curvature again at each step, where it is cheap: Newton's method."""
        value, g = problem.slope(theta)
        if not np.isfinite(value):
            raise ConvergenceError(f"The objective is {value} at the starting values; start nearer to the data.")
        past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=self.memory)
        for iteration in range(1, self.max_steps + 1):
            step = two_loops(g, past, inverse_of(problem, curvature, past))
            gain = 0.5 * float(g @ step)
            if gain <= self.tolerance * theta.size:
                _refuse_infinite(problem, theta, LARGE)
                return Path(theta, True, f"predicted gain {gain:.1e}", iteration - 1), curvature
            moved = line_search(problem, theta, value, g, step)
            if moved is None:
                return Path(theta, False, f"no step raised the objective; gain {gain:.1e}", iteration), curvature
            after, value, slope = moved
            change = g - slope  # of the gradient of −objective
            if float(change @ (after - theta)) > 0:
                past.append((after - theta, change))
            theta, g = after, slope
            _refuse_infinite(problem, theta, LARGEST)
            if renew and curvature is not None:
                curvature, past = problem.curvature(theta), deque(maxlen=self.memory)
        reason = f"still rising after {self.max_steps} steps"
        return Path(theta, False, reason, self.max_steps), curvature

    def to_dict(self) -> dict[str, Any]:
        own = ("tolerance", "max_steps", "memory", "ridge", "lasso")
        return {"solver": "LBFGS", **{name: getattr(self, name) for name in own}}


def inverse_of(problem: ParametricProblem, curvature: Operator | None, past: Any) -> Inverse:
    """H_0."""
    if curvature is not None:
        if not past:
            return lambda g: curvature.solve(g, INNER)
        s, c = past[-1]
        ratio = float(s @ c) / float(c @ curvature.solve(c, INNER))
        return lambda g: ratio * curvature.solve(g, INNER)
    scale = np.maximum(problem.scale, 1e-300)
    if not past:
        return lambda g: 4.0 * g / scale  # the curvature of a logistic row is at most ¼
    s, c = past[-1]
    gamma = float(s @ c) / float(c @ (c / scale))
    return lambda g: gamma * g / scale


def two_loops(g: np.ndarray, past: Any, inverse: Inverse) -> np.ndarray:
    """H_k g from H_0 and the past changes (s, c) of θ and of the gradient (Nocedal & Wright 2006, algorithm 7.4)."""
    q, kept = g.copy(), []
    for s, c in reversed(past):
        rho = 1.0 / float(s @ c)
        alpha = rho * float(s @ q)
        q -= alpha * c
        kept.append((s, c, rho, alpha))
    z = inverse(q)
    for s, c, rho, alpha in reversed(kept):
        z = z + (alpha - rho * float(c @ z)) * s
    return z


def line_search(
    problem: ParametricProblem, theta: np.ndarray, value: float, g: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """The step, halved until the objective rises.

    The rise is measured by slopes, ½ (g + g')ᵀ step, where values of large sums differ by less than their rounding.
    """
    length, up = 1.0, float(g @ step)
    for _ in range(30):
        after = theta + length * step
        new, slope = problem.slope(after)
        rise = max(new - value, 0.5 * length * (up + float(slope @ step)) if problem.concave else -np.inf)
        if np.isfinite(new) and rise > 1e-4 * length * up:
            return after, new, slope
        length /= 2
    return None


def orthant_wise(solver: LBFGS, problem: ParametricProblem, theta: np.ndarray) -> Path:
    """L-BFGS within the orthant that the steepest ascent points into (OWL-QN: Andrew & Gao 2007), for a lasso."""
    lam = np.broadcast_to(problem.lasso, theta.shape)
    value, g = problem.slope(theta)
    past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=solver.memory)
    for iteration in range(1, solver.max_steps * 4 + 1):
        up = _ascent(theta, g, lam)
        step = two_loops(up, past, inverse_of(problem, None, past))
        step = np.where(step * up > 0, step, 0.0)
        gain = 0.5 * float(up @ step)
        if gain <= solver.tolerance * theta.size:
            return Path(theta, True, f"predicted gain {gain:.1e}", iteration - 1)
        orthant, length = np.where(theta != 0, np.sign(theta), np.sign(up)), 1.0
        while True:
            after = theta + length * step
            after = np.where((np.sign(after) == orthant) | (lam == 0), after, 0.0)
            new, slope = problem.slope(after)
            if new >= value + 1e-4 * float(up @ (after - theta)) - 1e-12 * abs(value):
                break
            length /= 2
            if length < 1e-9:
                return Path(theta, gain < 1e-3, f"no step raised the objective; gain {gain:.1e}", iteration)
        s, c = after - theta, g - slope
        if float(s @ c) > 1e-12 * float(s @ s):
            past.append((s, c))
        theta, value, g = after, new, slope
    return Path(theta, False, f"still rising after {4 * solver.max_steps} steps", 4 * solver.max_steps)


def _ascent(theta: np.ndarray, g: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The steepest ascent of the objective with Σ λ|θ|: zero where |g| ≤ λ at θ = 0."""
    at_zero = np.sign(g) * np.maximum(np.abs(g) - lam, 0.0)
    return np.where(theta != 0, g - lam * np.sign(theta), at_zero)


def _refuse_infinite(problem: ParametricProblem, theta: np.ndarray, least: float) -> None:
    """Refuse an estimate that is on its way to infinity, along the large parameters together or one by one."""
    far = np.flatnonzero(np.abs(theta) > least)
    if not problem.concave or not far.size:
        return
    ways = [np.where(np.abs(theta) > least, theta, 0.0)]
    for j in far[:SINGLY]:
        one = np.zeros_like(theta)
        one[j] = np.sign(theta[j])
        ways.append(one)
    for way in ways:
        if problem.unbounded(way / np.abs(way).max()):
            named = [f"{problem.names[j]} → {'+' if way[j] > 0 else '−'}∞" for j in np.flatnonzero(way)[:5]]
            raise NoEstimateError(
                f"The estimate does not exist: the objective rises without end as {listing(named)}. The data are "
                "separated along it (a bit that never changes, or bits that are never or always 1 together). Remove "
                "it, or add data or a ridge."
            )
