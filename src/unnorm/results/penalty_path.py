"""How strong a ridge or lasso penalty should be: held-out pseudo-likelihood, or NCIC, along a path of strengths.

Cross-validation fits each strength to all but one fold. NCIC (Matsuda, Uehara & Hyvärinen 2021; Takeuchi's criterion of
a pseudo-likelihood) fits it once, to all the data, and takes off what fitting gained by chance:

    NCIC(λ) = −2 ℓ(θ̂_λ) + 2 tr{Î (Ĵ + S_λ)⁻¹},        Î = n/(n − 1) Σ_t (g_t − ḡ)(g_t − ḡ)ᵀ,        Ĵ = −∂²ℓ,

g_t the score of observation t, S_λ the ridge. A lasso has no S, and its trace is over the parameters that are not zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, final

import numpy as np

from .._base.numerics import Rng, generator, whole
from .._base.workers import mapped
from ..data.observations import Observations
from ..errors import CombinationError, InputError, unknown
from ..models.base import Model
from ..objectives.flips import FlipProblem
from ..objectives.ranking import ConditionalNCE
from ..objectives.scores import frequency
from ..references import BitFlip
from ..solvers.imputing import Imputing
from ..solvers.lbfgs import LBFGS
from ..solvers.newton import MOST_PARAMETERS
from .fit import Fit
from .fitting import fit

RANGE = {"ridge": (1e-5, 0.3), "lasso": (1e-3, 1.0)}  # of λ; the lasso's relative to the λ that leaves no coupling
FILLING = 20  # Gibbs sweeps over missing bits of held-out rows
Selection = Literal["cv", "ncic"]


@final
@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """Pseudo-log-likelihoods of new data (per observation) by strength of the penalty, and the fit at the chosen one.

    They are those of held-out folds, or −NCIC/2n. `best` is the best strength; `chosen` by cross-validation the largest
    within one standard error of the best, a cautious choice (Breiman et al. 1984), and by NCIC the best itself. Errors
    of `fit` do not count that the strength was chosen on the same data.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(0).integers(0, 2, (200, 3))
        >>> path = un.penalty_path(un.Ising(3), un.iid(y), folds=3, rng=1)
        >>> path.selection, path.score.shape == path.strengths.shape
        ('cv', True)
    """

    kind: str  #: "ridge" or "lasso"
    strengths: np.ndarray  #: descending
    score: np.ndarray  #: mean held-out pseudo-log-likelihood of an observation, or −NCIC/2n
    se: np.ndarray  #: of its difference from the best, over folds; NaN with NCIC, which has none
    nonzero: np.ndarray  #: penalised parameters that are not zero, mean over folds
    best: float  #: the strength with the best score
    chosen: float  #: the strength of `fit`
    fit: Fit  #: at the chosen strength, to all observations
    selection: str = "cv"  #: "cv" or "ncic"

    def table(self) -> dict[str, np.ndarray]:
        """The path by column."""
        return {"strength": self.strengths, "score": self.score, "se": self.se, "nonzero": self.nonzero}

    def __repr__(self) -> str:
        which = f"best {self.best:.3g}, chosen {self.chosen:.3g} of {len(self.strengths)}"
        return f"PenaltyPath({self.kind}, {self.selection}: {which})"


def penalty_path(
    model: Model,
    obs: Observations,
    kind: Literal["ridge", "lasso"] = "lasso",
    strengths: Any = None,
    folds: int = 5,
    rng: Rng = None,
    selection: Selection = "cv",
    workers: Any = None,
) -> PenaltyPath:
    """Choose a penalty on the couplings of a model of bits by cross-validated pseudo-likelihood, or by NCIC.

    Args:
        model: on binary vectors or graphs and linear in its parameters, such as `un.Ising`.
        obs: the observations; folds keep sequences whole where there are at least as many as folds.
        kind: "ridge" or "lasso", as in `un.LBFGS`.
        strengths: values of λ; default 15 of them, evenly spaced in log λ.
        folds: of the cross-validation.
        rng: for the folds.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), which share
            the folds. The numbers are the same.
        selection: "cv", or "ncic": one fit for each strength in place of one for each fold, for observations that are
            many more than parameters, none of them with missing bits.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(0).integers(0, 2, (300, 4))
        >>> path = un.penalty_path(un.Ising(4), un.iid(y), folds=3, rng=1)
        >>> bool(path.chosen >= path.best)
        True
    """
    if kind not in RANGE:
        raise InputError(unknown("kind", kind, tuple(RANGE)))
    if selection not in ("cv", "ncic"):
        raise InputError(unknown("selection", selection, ("cv", "ncic")))
    if model.domain.free is None or not model.linear:
        raise CombinationError(f"penalty_path is for linear models on bits, such as un.Ising; got {model!r}.")
    folds, random = whole(folds, "folds", least=2), generator(rng)
    model.check(obs)
    given, moved = model, model.centred(obs)
    model = model if moved is None else moved.model
    lams = _strengths(model, obs, kind, strengths, random)
    scored = (
        _by_ncic(model, obs, kind, lams, random)
        if selection == "ncic"
        else _by_folds(model, obs, kind, lams, folds, random, workers)
    )
    chosen = int(np.flatnonzero(scored.mean >= scored.mean[scored.best] - np.nan_to_num(scored.se))[0])  # they descend
    solver = LBFGS(**{kind: lams[chosen]})
    objective = ConditionalNCE(BitFlip(every=True))
    final = fit(given, obs, objective, solver=solver if obs.holes is None else Imputing(solver=solver), rng=random)
    how = "NCIC" if selection == "ncic" else f"{folds}-fold cross-validation"
    note = (
        f"λ = {lams[chosen]:.3g} of the {kind} was chosen by {how} on the same data; errors do not count that choice."
    )
    final = replace(final, notes=(*final.notes, note))
    best = float(lams[scored.best])
    return PenaltyPath(kind, lams, scored.mean, scored.se, scored.nonzero, best, float(lams[chosen]), final, selection)


class _Scored(NamedTuple):
    """By strength."""

    mean: np.ndarray  # NaN where there is none
    se: np.ndarray
    nonzero: np.ndarray

    @property
    def best(self) -> int:
        return int(np.nanargmax(self.mean))


# long: what all folds share
def _by_folds(
    model: Model, obs: Observations, kind: str, lams: np.ndarray, folds: int, random: np.random.Generator, workers: Any
) -> _Scored:
    fold = _folds(obs, folds, random)
    weight = np.array([obs.weights[fold == k].sum() for k in range(folds)])
    tasks = [(k, own) for k, own in enumerate(random.spawn(folds))]
    found = mapped(_fold_path, tasks, workers, common=(model, obs, kind, lams, fold))
    score, nonzero = (np.array(values) for values in zip(*found))
    mean = weight @ score / weight.sum()
    gap = score - score[:, [int(np.argmax(mean))]]
    return _Scored(mean, gap.std(axis=0, ddof=1) / np.sqrt(folds), nonzero.mean(axis=0))


def _by_ncic(model: Model, obs: Observations, kind: str, lams: np.ndarray, random: np.random.Generator) -> _Scored:
    if obs.holes is not None or model.size > MOST_PARAMETERS:
        why = (
            "bits are missing"
            if obs.holes is not None
            else f"{model.size:,} parameters need matrices that are too large"
        )
        raise CombinationError(f"selection='ncic' is not available, as {why}: use selection='cv'.")
    problem, n = FlipProblem(model, obs), float(obs.weights.sum())
    mean, nonzero, theta = np.full(len(lams), np.nan), np.empty(len(lams)), None
    for j, lam in enumerate(lams):
        theta = _estimate(model, obs, LBFGS(1e-10, **{kind: lam}), theta, random)
        nonzero[j] = np.count_nonzero(theta[model.penalised])
        ridge = lam * n * model.penalised if kind == "ridge" else np.zeros(model.size)
        by_chance, free = optimism(problem, theta, ridge, np.flatnonzero((theta != 0) | ~model.penalised))
        if free < n:
            mean[j] = (problem.value(theta) - by_chance) / n
    if np.isnan(mean).all():
        raise InputError(
            f"{n:,.0f} observations are too few for NCIC: at every strength there are as many parameters. Use "
            "selection='cv', or larger strengths."
        )
    return _Scored(mean, np.full(len(lams), np.nan), nonzero)


def optimism(problem: FlipProblem, theta: np.ndarray, ridge: np.ndarray, at: np.ndarray) -> tuple[float, float]:
    """tr{Î (Ĵ + S)⁻¹} and the effective number of parameters tr{Ĵ (Ĵ + S)⁻¹}, over the parameters `at`."""
    J, n = problem.information(theta)[np.ix_(at, at)], float(problem.obs.weights.sum())
    meat, total = np.zeros_like(J), np.zeros(len(at))
    for b, g in problem.by_observation(theta):
        g, w = g[:, at].astype(np.float64), np.maximum(problem.obs.weights[b.at], 1e-300)
        meat += (g / w[:, None]).T @ g
        total += g.sum(axis=0)
    V = np.linalg.inv(J + np.diag(ridge[at]))
    return float(np.sum(V * (meat - np.outer(total, total) / n))) * frequency(n), float(np.sum(V * J))


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
