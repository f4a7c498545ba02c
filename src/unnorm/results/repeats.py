"""The same fit again and again: to resampled observations (`bootstrap`), or with fresh reference points (`redraws`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from .._base.numerics import Rng, whole
from .._base.threads import cores
from .._base.workers import mapped
from ..data.observations import Observations
from ..errors import CombinationError, InputError, NoEstimateError, UnnormError, listing
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from ..objectives.base import Objective
from ..solvers.base import Solver
from ..solvers.smoothing import Smoothing
from .fit import Fit
from .fitting import Outside, fit, keep_inside, wrapped

ENOUGH = 20  # sequences that are resampled as wholes; fewer say too little of how sequences differ
_BOOTSTRAP, _REDRAWS = 1, 2  # streams of seeds


@final
@dataclass(frozen=True, eq=False)
class Repeats:
    """Estimates of one model, repeated.

    `estimates` has a row for each repetition and a column for each parameter; `curves` a row for each repetition and a
    column for each point of the effect's grid. Rows of repetitions that failed are nan, and `failures` says why.

    Example:
        >>> import unnorm as un
        >>> model = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
        >>> obs = un.iid(un.datasets.toy_chain(100, 0.8, 0.0, rng=1))
        >>> found = un.bootstrap(model, obs, times=3, rng=2)
        >>> found.what, found.estimates.shape
        ('bootstrap', (3, 1))
    """

    what: str  #: "bootstrap" or "redraws"
    fit: Fit  #: to the observations themselves
    estimates: np.ndarray  #: (B, p)
    curves: Mapping[str, np.ndarray]  #: label → (B, points of the grid)
    failures: Mapping[int, str]  #: number of the repetition → why it has no estimate
    units: str  #: what was resampled

    def tidy(self, level: float = 0.95) -> Any:
        """One row for each parameter: term, estimate, mean, se (standard deviation over repetitions), lower, upper
        (quantiles over repetitions).

        Args:
            level: of the intervals.
        """
        columns = {"term": np.array(self.fit.names, dtype=object), "estimate": self.fit.estimate}
        return to_native({**columns, **_spread(self.estimates, level)}, self.fit.backend)

    def effect(self, label: str, level: float = 0.95) -> Any:
        """A term's effect on the fit's grid: covariates, estimate, and as `tidy` for each point of the grid.

        Args:
            label: the term.
            level: of the intervals.
        """
        if label not in self.curves:
            raise InputError(f"There is no effect {label!r}; there are {listing(self.curves)}.")
        assert self.fit.smooths is not None
        own = self.fit.smooths.effect(label)
        kept = {name: own[name] for name in (*self.fit.smooths.grids[label], "estimate")}
        return to_native({**kept, **_spread(self.curves[label], level)}, self.fit.backend)

    @property
    def se(self) -> np.ndarray:
        """(p,) standard deviations over repetitions."""
        return np.nanstd(self.estimates, axis=0, ddof=1)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Repeats({self.what} of {self.units}, {len(self.estimates)} times{failed})"


# long: what a fit takes
def bootstrap(
    model: Unnormalised,
    obs: Observations,
    objective: Objective | None = None,
    normaliser: Normaliser | None = None,
    solver: Solver | None = None,
    smoothing: str | Smoothing = "reml",
    *,
    times: int = 200,
    by: str | None = None,
    outside: Outside = "error",
    rng: Rng = None,
    workers: Any = None,
) -> Repeats:
    """Fit the model to resampled observations: errors that assume nothing but that the units are independent.

    Each repetition draws as many units as there are, with replacement, and has reference points of its own, so that
    their error is in the spread too. Smoothing parameters are chosen anew each time.

    Args:
        model, obs, objective, normaliser, solver, smoothing: as in `un.fit`.
        times: repetitions.
        by: the group column whose levels are resampled, e.g. "subject". By default sequences where there are 20 or
            more, else single observations.
        outside: as in `un.fit`.
        rng: seed or generator. Repetition i has the same seed whatever else is run.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), which share
            the repetitions. The numbers are the same.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> found = un.bootstrap(toy, obs, un.Logistic(un.Uniform(), per_point=5), times=4, rng=1)
        >>> found.estimates.shape
        (4, 2)
    """
    obs, _ = keep_inside(model.domain, wrapped(model.domain, obs), outside)
    unit, units = _units(obs, by)
    count = int(unit.max()) + 1
    if count < 2:
        raise InputError(f"There is one independent unit ({units}) only, and nothing to resample. Name another by=.")
    given = (objective, normaliser, solver, smoothing)
    return _repeated("bootstrap", model, obs, given, whole(times, "times", least=2), rng, workers, (unit, units))


# long: what a fit takes
def redraws(
    model: Unnormalised,
    obs: Observations,
    objective: Objective,
    normaliser: Normaliser | None = None,
    solver: Solver | None = None,
    smoothing: str | Smoothing = "reml",
    *,
    times: int = 20,
    outside: Outside = "error",
    rng: Rng = None,
    workers: Any = None,
) -> Repeats:
    """Fit the model again with fresh reference points: how far an estimate depends on those that were drawn.

    The standard deviation over repetitions is the Monte Carlo error that `Fit.errors.reference` estimates from one fit.

    Args:
        model, obs, objective, normaliser, solver, smoothing: as in `un.fit`; the objective draws reference points.
        times: repetitions.
        outside: as in `un.fit`.
        rng: seed or generator. Repetition i has the same seed whatever else is run.
        workers: as in `un.bootstrap`.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> found = un.redraws(toy, obs, un.Logistic(un.Uniform(), per_point=5), times=3, rng=1)
        >>> bool((found.se < found.fit.se).all())
        True
    """
    if not isinstance(objective, Objective) or objective.reference is None:
        raise CombinationError(
            "redraws is for objectives that draw reference points, such as un.Logistic(un.Uniform(), per_point=20)."
        )
    obs, _ = keep_inside(model.domain, wrapped(model.domain, obs), outside)
    given = (objective, normaliser, solver, smoothing)
    return _repeated("redraws", model, obs, given, whole(times, "times", least=2), rng, workers, (None, "points"))


def _units(obs: Observations, by: str | None) -> tuple[np.ndarray, str]:
    """(n,) the number of the unit that an observation belongs to, and what the units are."""
    if by is not None:
        if by not in obs.group:
            there = listing(list(obs.group)) or "there are none"
            raise InputError(f"by must name a group column ({there}); got {by!r}.")
        return np.unique(obs.group[by], return_inverse=True)[1], f"levels of {by!r}"
    if obs.sequence is not None:
        values, code = np.unique(obs.sequence, return_inverse=True)
        if values.size >= ENOUGH:
            return code, "sequences"
    return np.arange(obs.n), "observations"


# long: what a repetition needs
def _repeated(
    what: str, model: Unnormalised, obs: Observations, given: tuple[Any, ...], times: int, rng: Rng, workers: Any,
    units: tuple[np.ndarray | None, str],
) -> Repeats:  # fmt: skip
    first = fit(model, obs, *given, rng=rng)
    seed = _seed(rng, first)
    at = {} if first.smooths is None else {label: first.smooths.grids[label] for label in first.smooths.model_labels}
    stream = _BOOTSTRAP if units[0] is not None else _REDRAWS
    tasks = [(i, _own_seed(seed, stream, i)) for i in range(times)]
    found = mapped(_again, tasks, workers, common=(model, obs, given, units[0], at), threads=min(cores(), times))
    failures = {i: one for i, one in enumerate(found) if isinstance(one, str)}
    if len(failures) == times:
        raise NoEstimateError(f"None of {times} repetitions could be fitted; the first says: {failures[0]}")
    nothing = np.full(len(first.names), np.nan), {label: np.full(_length(one), np.nan) for label, one in at.items()}
    rows = [nothing if isinstance(one, str) else one for one in found]
    curves = {label: np.array([own[label] for _, own in rows]) for label in at}
    return Repeats(what, first, np.array([theta for theta, _ in rows]), curves, failures, units[1])


def _again(
    model: Unnormalised, obs: Observations, given: tuple[Any, ...], unit: np.ndarray | None, at: Mapping[str, Any],
    i: int, seed: int,
) -> tuple[np.ndarray, dict[str, np.ndarray]] | str:  # fmt: skip
    """Repetition i: its estimates and curves, or the sentence why there are none."""
    try:
        here = obs if unit is None else _resampled(obs, unit, np.random.default_rng([seed, 1]))
        one = fit(model, here, *given, rng=seed)
        curves = {label: np.asarray(one.smooths.effect(label, grid)["estimate"]) for label, grid in at.items()}  # pyright: ignore[reportOptionalMemberAccess]
        return one.estimate, curves
    except UnnormError as error:
        return f"{type(error).__name__}: {error}"


def _resampled(obs: Observations, unit: np.ndarray, rng: np.random.Generator) -> Observations:
    """As many units as there are, drawn with replacement: those drawn twice weigh twice."""
    count = int(unit.max()) + 1
    drawn = np.bincount(rng.integers(count, size=count), minlength=count)[unit]
    here = obs.take(drawn > 0)
    return replace(here, weight=here.weights * drawn[drawn > 0])


def _own_seed(seed: int, stream: int, i: int) -> int:
    """The seed of repetition i: it does not depend on how many there are."""
    return int(np.random.SeedSequence([seed, stream, i]).generate_state(1)[0])


def _seed(rng: Rng, first: Fit) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**32))
    return int(first.seed) if first.seed is not None else 0


def _length(grid: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(grid.values())))


def _spread(values: np.ndarray, level: float) -> dict[str, np.ndarray]:
    if not 0.0 < level < 1.0:
        raise InputError(f"level must be between 0 and 1; got {level!r}.")
    kept = values[~np.isnan(values).any(axis=1)] if values.size else values
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {"mean": kept.mean(axis=0), "se": kept.std(axis=0, ddof=1), "lower": low, "upper": high}
