"""Missing bits: their flips are skipped, and where the flips of others read them, Gibbs draws of them stand in.

The equation that is solved is Σ_t E_θ[g_t | observed bits] = 0, g_t = Σ_{i observed} ∂ log p_θ(y_ti|rest): unbiased
where bits go missing without regard to their values. It is solved by stochastic EM: fill in by Gibbs sweeps at the
present θ, maximise, and again; the estimate is the mean over `draws` such rounds after `burn` others. Its errors are
in objectives/imputed.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._base.numerics import Rng, generator
from ..errors import DataError, InputError
from ..objectives.base import Problem
from ..objectives.flips import FlipProblem
from ..objectives.imputed import ImputedErrors, ImputedScores
from .base import Solution, Solver
from .lbfgs import AFTER_SELECTION, LBFGS, SHRUNKEN
from .newton import MOST_PARAMETERS

NOTE = (
    "Missing bits ({share:.1%}): their flips were skipped, and Gibbs draws filled them in {K} times. Estimates and "
    "errors average over these; bits must go missing without regard to their values."
)


@final
@dataclass(frozen=True)
class Imputing(Solver):
    """Stochastic EM over missing bits, around `LBFGS`: what `un.fit` takes where outcomes have missing entries.

    Args:
        draws: K, rounds that are averaged.
        burn: rounds before them.
        sweeps: Gibbs sweeps over the missing bits in each round.
        solver: of each round.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(0).integers(0, 2, (500, 3)).astype(float)
        >>> y[:20, 0] = np.nan
        >>> fit = un.fit(un.Ising(3), un.iid(y, missing="keep"), un.ConditionalNCE(un.BitFlip(every=True)), rng=1)
        >>> fit.converged
        True
    """

    draws: int = 10
    burn: int = 5
    sweeps: int = 10
    solver: LBFGS = field(default_factory=LBFGS)

    imputes = True

    def __post_init__(self) -> None:
        if not (self.draws >= 2 and self.burn >= 0 and self.sweeps >= 1):
            raise InputError(
                f"Imputing needs draws ≥ 2, burn ≥ 0 and sweeps ≥ 1; got {self.draws}, {self.burn}, {self.sweeps}."
            )

    def solve(self, problem: Problem, rng: Rng) -> Solution:
        """The mean of the rounds' maxima."""
        random, obs, model = generator(rng), problem.obs, problem.model.flat()
        holes = np.zeros(obs.outcome.shape, dtype=bool) if obs.holes is None else obs.holes
        if (never := np.flatnonzero(holes.all(axis=0))).size:
            raise DataError(
                f"{obs.outcome_names[never[0]]!r} was observed in no vector ({never.size} of {obs.dim} bits "
                "were not). Leave such bits out of the outcome."
            )
        arguments = model.arguments(obs, np.arange(obs.n))
        y = _first(obs.outcome, holes, obs.weights, random)
        bound = FlipProblem(model, replace(obs, outcome=y))
        path, curvature = self.solver.climb(self.solver.penalised(bound, model, obs), random)
        found = [path.theta]
        while len(found) < self.burn + self.draws:
            y = model.sampler(path.theta, arguments).sweep(y, self.sweeps, random, holes)
            bound = FlipProblem(model, replace(obs, outcome=y))
            path, curvature = self.solver.climb(self.solver.penalised(bound, model, obs), random, path.theta)
            found.append(path.theta)
        theta = np.mean(found[self.burn :], axis=0)
        filled = []
        for _ in range(self.draws):
            y = model.sampler(theta, arguments).sweep(y, self.sweeps, random, holes)
            filled.append(FlipProblem(model, replace(obs, outcome=y)))
        share, lasso = float(holes.mean()), self.solver.lasso > 0
        ridge = self.solver.ridge * float(obs.weights.sum()) * model.penalised
        few = theta.size <= MOST_PARAMETERS
        refusal = AFTER_SELECTION.format(k=np.count_nonzero(theta), p=theta.size) if lasso else None
        scores = ImputedScores(tuple(filled), theta, np.diag(ridge) if few and self.solver.ridge else None)
        notes, figures = bound.report(theta)
        return Solution(
            names=bound.names,
            estimate=theta,
            index=np.arange(theta.size),
            constants=bound.constants(theta),
            value=bound.value(theta),
            loglik=bound.loglik(theta),
            converged=path.converged,
            reason=f"the last of {self.burn + self.draws} rounds: {path.reason}",
            iterations=self.burn + self.draws,
            solver=self.to_dict(),
            scores=scores if few and not lasso else None,
            notes=(
                *notes,
                NOTE.format(share=share, K=self.draws),
                *_apart(holes, obs.outcome_names),
                *([refusal] if refusal else [SHRUNKEN] if self.solver.ridge else []),
            ),
            no_errors=refusal,
            figures={**figures, "missing": share},
            chosen=None if lasso else ImputedErrors(tuple(filled), theta, curvature, self.sweeps, ridge),
        )

    def to_dict(self) -> dict[str, Any]:
        own = {"draws": self.draws, "burn": self.burn, "sweeps": self.sweeps, "each": self.solver.to_dict()}
        return {"solver": "Imputing", **own}


def _apart(holes: np.ndarray, names: tuple[str, ...]) -> tuple[str, ...]:
    """What there is to say of bits that were never observed in one vector."""
    seen = (~holes).astype(np.float32)
    i, j = np.nonzero(np.triu(seen.T @ seen == 0, 1))
    if not i.size:
        return ()
    return (
        f"{names[i[0]]!r} and {names[j[0]]!r} were never observed together ({i.size} such pairs): no data speak of "
        "their coupling directly, and more rounds may move it. Do not interpret it.",
    )


def _first(y: np.ndarray, holes: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Missing bits drawn from the frequencies of their column."""
    seen = np.where(holes, 0.0, y)
    p = (weight @ seen + 0.5) / (weight @ ~holes + 1.0)
    return np.where(holes, rng.random(y.shape) < p, seen)
