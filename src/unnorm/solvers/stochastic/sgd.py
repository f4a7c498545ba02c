"""`SGD`: un.fit(…, solver=un.SGD(…)), stochastic maximisation of 𝓜 and its relatives with any optax optimiser."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np

from ..._base.extras import extra
from ..._base.numerics import Rng, flag, generator
from ...data.observations import Observations
from ...domains.base import whole
from ...errors import InputError, warn
from ...models.base import Model
from ...models.normalisers import Normaliser
from ...objectives.base import Objective, Problem
from ...references.base import Reference
from ...references.points import PointScheme
from ...references.uniform import Uniform
from ..base import Solution, Solver
from . import row_steps
from .checkpoint import Settings
from .estimator import Estimator, StepDesign, estimator
from .finish import solution
from .loop import DivergenceError, Trace, block, climb
from .renewal import MOST_DENSE
from .row_steps import RowAdagrad
from .sources import Sampling
from .step import Dtype

FAR = 0.02  # effective share of the reference points below which the reference is called too far from the model


@final
@dataclass(frozen=True, eq=False)
class SGD(Solver):
    """Stochastic gradient ascent with averaged iterates (Polyak & Juditsky 1992), ended by one Newton step.

    Fresh gradients at the averaged iterate, with the curvature there, predict how far the maximum still is. Where that
    is near, and the parameters are few enough for a curvature matrix, one Newton step goes there; where it is not, the
    fit warns that it has not converged.

    Args:
        optimiser: any optax optimiser, on the loss divided by Σ w. Default: for small models (200 parameters, 50 of a
            nonlinear f) steps of length ½ preconditioned by the estimated inverse curvature; else Adam with a cosine
            schedule.
        steps: how many.
        batch: observations in a step; None for all.
        references: reference points for each observation of the batch; IID data share them. Default: the objective's,
            or 10.
        points: point scheme; default the objective's, or Lattice (IID for ranking).
        sampling: "stratified" batches along the contexts, or "iid".
        reference: q, where the objective has none; default Uniform.
        prior: log π(θ), a penalty: `un.Normal(scale)` or a function of the parameters' tree; the fit is the posterior
            mode. A normaliser `un.Smooth(...)` is penalised by itself, its smoothing chosen by REML along the way.
        precondition: multiply gradients by the inverse curvature, re-estimated after 1, 2, 4, … blocks (≤ 500
            parameters).
        average: share of the run after which iterates are averaged.
        block: steps compiled as one loop; diagnostics, stopping and checkpoints happen between blocks.
        tolerance: stop when the Monte Carlo error of the averaged θ is below half of this many standard errors, and
            fresh gradients predict no larger move.
        patience: stop when the objective has not risen for so many blocks.
        refresh: refit an adaptive reference (un.GaussianMixture) to the model every so many steps.
        start: starting values of θ, as the model knows them; default the model's own.
        checkpoint: folder to write every `checkpoint_every` blocks, and when the run is interrupted or diverges. If it
            exists already, the run continues from it, to the same numbers as an unbroken run.
        checkpoint_every: blocks from one checkpoint to the next.
        dtype: "float64", or "float32": half the memory and many times the speed on a GPU. Rounding then moves estimates
            by less than 1e-4 standard errors where the model is small (docs/stochastic.md).
        row_rate: learning rate (Adagrad) of tables of which a point reads a few rows, un.Energy(by_outcome=…): a step
            then moves only the rows that it reads. None moves all parameters by `optimiser`.
        progress: a progress bar.

    Example:
        >>> import unnorm as un
        >>> model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 1))
        >>> obs = un.iid(un.datasets.toy_chain(2000, 0.8, 0.0, rng=1))
        >>> fit = un.fit(model, obs, un.Poisson(), solver=SGD(steps=200, batch=200), rng=1)
        >>> exact = un.fit(model, obs)
        >>> bool((abs(fit.estimate - exact.estimate) < 0.05 * exact.se).all())
        True
    """

    optimiser: Any = None
    steps: int = 2000
    batch: int | None = None
    references: int | None = None
    points: PointScheme | None = None
    sampling: Sampling = "stratified"
    reference: Reference | None = None
    prior: Any = None
    precondition: bool | None = None
    average: float = 0.5
    block: int = 50
    tolerance: float | None = None
    patience: int | None = None
    refresh: int | None = None
    start: Any = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 10
    dtype: Dtype = "float64"
    row_rate: float | None = 0.3
    progress: bool = False

    def __post_init__(self) -> None:
        whole(self.steps, "steps", 1)
        whole(self.block, "block", 2)
        object.__setattr__(self, "progress", flag(self.progress, "progress"))
        if self.precondition is not None:
            object.__setattr__(self, "precondition", flag(self.precondition, "precondition"))
        whole(self.checkpoint_every, "checkpoint_every", 1)
        for name in ("patience", "refresh"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name, 1)
        if not 0 <= self.average < 1:
            raise InputError(f"average must be a share of the run in [0, 1); got {self.average!r}.")
        if self.row_rate is not None and not self.row_rate > 0:
            raise InputError(f"row_rate must be positive, or None for dense steps; got {self.row_rate!r}.")
        if self.tolerance is not None and not self.tolerance > 0:
            raise InputError(f"tolerance must be positive (in standard errors, e.g. 0.1); got {self.tolerance!r}.")
        if self.optimiser is not None and not (hasattr(self.optimiser, "init") and hasattr(self.optimiser, "update")):
            raise InputError(f"optimiser must be an optax optimiser such as optax.adam(1e-2); got {self.optimiser!r}.")

    smooth_normaliser = True
    anchors = False
    takes_base = False

    # --- the hook of un.fit ------------------------------------------------------------------------------------------

    def solve(self, problem: Problem, rng: Rng) -> Solution:
        """The maximum."""
        random = generator(rng)
        e = self.estimator(problem.model.flat(), problem.obs, problem.objective, problem.normaliser)
        trace = self.climb(e, random)
        end = solution(trace, int(random.integers(2**31)), self.to_dict(), self.optimiser is not None)
        ess = float(np.mean(trace.history["ess"][-max(1, len(trace.history["ess"]) // 4) :]))
        if ess < FAR:
            note = (
                f"The reference is far from the fitted model: its points are worth {100 * ess:.2g} % of their number. "
                "Use one nearer to the data (un.GaussianMixture(), un.Gaussian(...), un.Empirical()), or refresh= an "
                "adaptive one."
            )
            warn(note, stacklevel=3)
            end = _with_note(end, note)
        return end

    def estimator(self, model: Model, obs: Observations, objective: Objective, normaliser: Normaliser) -> Estimator:
        """The stochastic problem that this objective becomes."""
        reference = objective.reference or self.reference or Uniform()
        points = self.points if self.points is not None else objective.points
        references = self.references
        if references is None:
            total = objective.total
            references = objective.per_point or (max(1, round(total / obs.n)) if total else 10)
        batch = None if self.batch is not None and self.batch >= obs.n else self.batch
        design = StepDesign(batch, references, points, self.sampling, dtype=self.dtype)
        return estimator(model, obs, reference, normaliser, design, objective.loss, self.prior)

    def climb(self, e: Estimator, random: np.random.Generator) -> Trace:
        """Run the loop from the starting values."""
        extra("optax", "stochastic", "un.SGD")
        seed = int(random.integers(2**31))
        theta = None if self.start is None else e.model.flatten(self.start)
        return climb(e, self.settings(e), seed, e.start(random, theta))

    def settings(self, e: Estimator) -> Settings:
        precondition = self.precondition
        by_rows = self.row_rate is not None and bool(e.model.tables)
        if precondition is None:
            precondition = self.optimiser is None and not by_rows and e.size <= (200 if e.model.linear else 50)
        if precondition and e.size > MOST_DENSE:
            raise InputError(
                f"precondition=True forms a curvature matrix, for at most {MOST_DENSE} parameters; got {e.size}."
            )
        optimiser = self.optimiser
        if optimiser is None:
            optimiser = default_optimiser(None if precondition else self.steps)
        if by_rows:
            _check_rows(e, precondition)
            optimiser = RowAdagrad(float(self.row_rate or 0.0), optimiser, e.model.tables)
        return Settings(
            optimiser=optimiser,
            loop=row_steps.block if by_rows else block,
            steps=self.steps,
            block=min(self.block, self.steps),
            average=self.average,
            precondition=precondition,
            tolerance=self.tolerance,
            patience=self.patience,
            refresh=self.refresh,
            checkpoint=self.checkpoint,
            checkpoint_every=self.checkpoint_every,
            progress=self.progress,
            about={
                "batch": self.batch,
                "references": e.plan.references,
                "sampling": self.sampling,
                "points": type(e.scheme).__name__,
                "precondition": precondition,
                "row_rate": self.row_rate if by_rows else None,
                "prior": e.prior.to_dict(),
            },
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "solver": "SGD",
            "steps": self.steps,
            "batch": self.batch,
            "references": self.references,
            "sampling": self.sampling,
            "average": self.average,
            "dtype": self.dtype,
        }


def _check_rows(e: Estimator, precondition: bool) -> None:
    """Refuse what needs every row at every step."""
    remedy = "use row_rate=None, which moves all parameters at every step"
    if precondition:
        raise InputError(f"precondition=True needs the gradient of every row; {remedy}.")
    if not e.prior.flat:
        raise InputError(f"prior= pulls at every row of the tables; {remedy}.")


@cache
def default_optimiser(steps: int | None) -> Any:
    """Steps of length ½ (preconditioned), or Adam over so many; one object each, so that compiled loops are found."""
    import optax

    if steps is None:
        return optax.sgd(0.5)
    return optax.adam(optax.cosine_decay_schedule(1e-2, steps, alpha=0.02))


def _with_note(end: Solution, note: str) -> Solution:
    from dataclasses import replace

    return replace(end, notes=(*end.notes, note))


__all__ = ["SGD", "DivergenceError"]
