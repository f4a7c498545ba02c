"""How strong a ridge or lasso penalty should be: the held-out pseudo-likelihood along a path of strengths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from .._base.numerics import Rng, generator, whole
from .._base.workers import mapped
from ..data.observations import Observations
from ..errors import CombinationError, InputError, unknown
from ..models.base import Model
from ..objectives.flips import FlipProblem
from ..objectives.ranking import ConditionalNCE
from ..references import BitFlip
from ..solvers.imputing import Imputing
from ..solvers.lbfgs import LBFGS
from .fit import Fit
from .fitting import fit

RANGE = {"ridge": (1e-5, 0.3), "lasso": (1e-3, 1.0)}  # of λ; the lasso's relative to the λ that leaves no coupling
FILLING = 20  # Gibbs sweeps over missing bits of held-out rows


@final
@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """Held-out pseudo-log-likelihoods (per observation) by strength of the penalty, and the fit at the chosen one.

    `chosen` is the largest strength within one standard error of the best, a cautious choice (Breiman et al. 1984);
    `best` the best itself. Errors of `fit` do not count that the strength was chosen on the same data.
    """

    kind: str
    strengths: np.ndarray  # descending
    score: np.ndarray  # mean held-out pseudo-log-likelihood of an observation
    se: np.ndarray  # of its difference from the best, over folds
    nonzero: np.ndarray  # penalised parameters that are not zero, mean over folds
    best: float
    chosen: float
    fit: Fit

    def table(self) -> dict[str, np.ndarray]:
        """The path by column."""
        return {"strength": self.strengths, "score": self.score, "se": self.se, "nonzero": self.nonzero}

    def __repr__(self) -> str:
        return f"PenaltyPath({self.kind}: best {self.best:.3g}, chosen {self.chosen:.3g} of {len(self.strengths)})"


def penalty_path(
    model: Model,
    obs: Observations,
    kind: Literal["ridge", "lasso"] = "lasso",
    strengths: Any = None,
    folds: int = 5,
    rng: Rng = None,
    workers: Any = None,
) -> PenaltyPath:
    """Choose a penalty on the couplings of a model of bits by cross-validated pseudo-likelihood.

    Args:
        model: on binary vectors or graphs and linear in its parameters, such as `un.Ising`.
        obs: the observations; folds keep sequences whole where there are at least as many as folds.
        kind: "ridge" or "lasso", as in `un.LBFGS`.
        strengths: values of λ; default 15 of them, evenly spaced in log λ.
        folds: of the cross-validation.
        rng: for the folds.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), which share
            the folds. The numbers are the same.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(0).integers(0, 2, (300, 4))
        >>> path = un.penalty_path(un.Ising(4), un.iid(y), folds=3, rng=1)
        >>> bool(path.chosen >= path.best)
        True
    """
    if kind not in RANGE:
        raise InputError(unknown("kind", kind, tuple(RANGE)))
    if model.domain.free is None or not model.linear:
        raise CombinationError(f"penalty_path is for linear models on bits, such as un.Ising; got {model!r}.")
    folds, random = whole(folds, "folds", least=2), generator(rng)
    model.check(obs)
    fold = _folds(obs, folds, random)
    lams = _strengths(model, obs, kind, strengths, random)
    weight = np.array([obs.weights[fold == k].sum() for k in range(folds)])
    tasks = [(k, own) for k, own in enumerate(random.spawn(folds))]
    found = mapped(_fold_path, tasks, workers, common=(model, obs, kind, lams, fold))
    score, nonzero = (np.array(values) for values in zip(*found))
    mean = weight @ score / weight.sum()
    best = int(np.argmax(mean))
    gap = score - score[:, [best]]
    se = gap.std(axis=0, ddof=1) / np.sqrt(folds)
    chosen = int(np.flatnonzero(mean >= mean[best] - se)[0])  # strengths descend
    solver = LBFGS(**{kind: lams[chosen]})
    objective = ConditionalNCE(BitFlip(every=True))
    final = fit(model, obs, objective, solver=solver if obs.holes is None else Imputing(solver=solver), rng=random)
    note = (
        f"λ = {lams[chosen]:.3g} of the {kind} was chosen by {folds}-fold cross-validation on the same data; errors do "
        "not count that choice."
    )
    final = replace(final, notes=(*final.notes, note))
    return PenaltyPath(kind, lams, mean, se, nonzero.mean(axis=0), float(lams[best]), float(lams[chosen]), final)


# long: what all folds share
def _fold_path(
    model: Model, obs: Observations, kind: str, lams: np.ndarray, fold: np.ndarray, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Along the path without fold k: its held-out pseudo-log-likelihoods, and how many couplings are not zero."""
    train, test = obs.take(fold != k), obs.take(fold == k)
    score, nonzero = np.empty(len(lams)), np.empty(len(lams))
    theta: np.ndarray | None = None
    for j, lam in enumerate(lams):
        theta = _estimate(model, train, LBFGS(1e-5, **{kind: lam}), theta, rng)
        score[j] = _held_out(model, test, theta, rng)
        nonzero[j] = np.count_nonzero(theta[model.penalised])
    return score, nonzero


def _folds(obs: Observations, folds: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) the fold of each observation: whole sequences where there are enough, else stretches; rows of IID data."""
    unit = np.arange(obs.n)
    if obs.sequence is not None:
        many = np.unique(obs.sequence).size >= folds
        unit = np.unique(obs.sequence, return_inverse=True)[1] if many else unit * 5 * folds // obs.n
    count = int(unit.max()) + 1
    if count < folds:
        raise InputError(f"There are {count} independent units for {folds} folds. Use fewer folds.")
    return rng.permutation(np.arange(count) % folds)[unit]


def _strengths(model: Model, obs: Observations, kind: str, given: Any, rng: np.random.Generator) -> np.ndarray:
    if given is not None:
        lams = np.sort(np.atleast_1d(np.asarray(given, dtype=np.float64)))[::-1]
        if lams.size == 0 or not (lams > 0).all():
            raise InputError(f"strengths must be positive numbers; got {given!r}.")
        return lams
    low, high = RANGE[kind]
    if kind == "lasso":
        done = FlipProblem(model, _completed(model, model.start, obs, rng))
        theta = LBFGS(1e-6, lasso=1e6).climb(LBFGS(lasso=1e6).penalised(done, model, obs), rng)[0].theta
        largest = float(np.abs(done.slope(theta)[1][model.penalised]).max() / obs.weights.sum())
        low, high = low * largest, largest
    return np.geomspace(high, low, 15)


def _completed(model: Model, theta: np.ndarray, obs: Observations, rng: np.random.Generator) -> Observations:
    """Missing bits drawn from the model given the others."""
    if obs.holes is None:
        return obs
    y = np.where(obs.holes, rng.random(obs.outcome.shape) < 0.5, np.nan_to_num(obs.outcome))
    sampler = model.sampler(theta, model.arguments(obs, np.arange(obs.n)))
    return replace(obs, outcome=sampler.sweep(y, FILLING, rng, obs.holes))


def _estimate(
    model: Model, obs: Observations, solver: LBFGS, start: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """One maximum, from the one before; missing bits are filled in at the present θ, twice."""
    theta = model.start if start is None else start
    for _ in range(1 if obs.holes is None else 2):
        problem = FlipProblem(model, _completed(model, theta, obs, rng))
        theta = solver.climb(solver.penalised(problem, model, obs), rng, theta)[0].theta
    return theta


def _held_out(model: Model, obs: Observations, theta: np.ndarray, rng: np.random.Generator) -> float:
    return FlipProblem(model, _completed(model, theta, obs, rng)).value(theta) / float(obs.weights.sum())
