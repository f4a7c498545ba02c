"""From a job to what it names: the table, the window, maps and covariates, the model, the objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, final

import numpy as np

from .._base import frames
from .._base.words import by_word
from ..data.chains import order_key
from ..data.covariates import Covariate, Expression
from ..data.observations import Observations, transitions
from ..domains import Domain
from ..errors import DataError, EstimationError, InputError, listing, overhear, warn
from ..groups import fit_each
from ..models import Additive
from ..models.normalisers import Normaliser, Smooth
from ..objectives import Logistic, Poisson, Ranking
from ..objectives.base import Objective
from ..references import IID, SCHEMES
from ..report.analysis import GROUP
from ..report.sections.durations import positive
from ..results.fit import Fit
from ..results.fitting import fit, keep_inside
from ..solvers.smoothing import Smoothing
from ..terms import parse
from ..terms.levels import level_name
from .config import BUNDLED, POISSON_NORMALISER, Job
from .maps import map_keys, read_distance, read_map
from .windows import window, window_key

BUILT_IN = ("x", "y", "x_prev", "y_prev", "step", "angle", "turn", "dcenter")  # these hide columns of the table


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """What a job names, read and built, before anything is fitted."""

    job: Job
    obs: Observations
    table_rows: int
    model: Additive
    objective: Objective
    normaliser: Normaliser | None

    def inside(self) -> Observations:
        """The observations within the window: those that are fitted."""
        return keep_inside(self.model.domain, self.obs, cast(Any, self.job.outside))[0]


def prepare(job: Job, terms: Sequence[str] = ()) -> Prepared:
    """Read and build everything; whatever is wrong with the input is found here, before the fit.

    `terms` are those of other models, whose columns must be read too.
    """
    domain = window(job)
    objective, normaliser = _objective(job)
    with overhear() as said:  # of the file's encoding: for the report, and for whoever watches
        table = read(job, terms)
    for one in said:
        warn(one)
    obs = observations(job, table, terms)
    obs = replace(obs, notes=(*said, *obs.notes)) if said else obs
    model = additive(job, domain)
    check_names(model, obs, normaliser)
    if job.duration is not None:
        positive(obs, job.duration)
    if job.by is not None and GROUP in {level_name(value) for value in np.unique(obs.group[job.by]).tolist()}:
        raise DataError(f"A level of {job.by!r} is called {GROUP!r}, which names the population's curve; rename it.")
    return Prepared(job, obs, len(next(iter(table.values()))), model, objective, normaliser)


def read(job: Job, terms: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The table of points."""
    if job.data == BUNDLED:
        from ..studies.datasets import eye

        return eye()
    named = frames.only(y=job.y, order=job.order, group=job.group, duration=job.duration)
    more = wanted(job, terms)

    def choose(names: list[str]) -> list[str]:
        needed = {*named(names)}
        return [name for name in names if name in needed or name in more or f"{name}_prev" in more]

    return frames.read_table(job.data, choose, job.columns or None)


def wanted(job: Job, terms: Sequence[str] = ()) -> set[str]:
    """Names that terms, covariates, maps and windows read, some of which may be columns of the table."""
    names = {name for text in (job.terms, *terms) for name in parse(text).columns} | {*map_keys(job.map)}
    if job.normaliser is not None:
        names |= {*parse(job.normaliser).columns}
    names |= {need for one in _expressions(job) for need in one.needs}
    key = window_key(job)
    return {name for name in (*names, *(() if key is None else (key,))) if name not in BUILT_IN}


def additive(job: Job, domain: Domain, terms: str | None = None) -> Additive:
    """The model; `terms` in place of the job's own."""
    return Additive(
        terms or job.terms,
        domain,
        covariates=covariates(job, domain),
        centre=tuple(c * job.scale for c in job.centre) or None,
        y_down=job.y_down,
    )


def observations(job: Job, table: Mapping[str, np.ndarray], terms: Sequence[str] = ()) -> Observations:
    """The transitions of the table, first points removed where asked."""
    if len(job.y) != 2:
        raise InputError(f"--y must name two columns, as --y x,y; got {listing(job.y)}.")
    notes: tuple[str, ...] = ()
    if job.scale != 1.0:
        table = {**table, **{name: _degrees(table[name], job.scale) for name in job.y}}
    if job.drop_first:
        table, notes = _drop_first(job, table)
    obs = transitions(
        table,
        y=job.y,
        order=job.order,
        group=job.group or None,
        lags=job.lags,
        extra=_extra(job, table, terms) or None,
        beside=job.duration,
        max_gap=job.max_gap,
        missing=cast(Any, job.missing),
    )
    notes = (*notes, *_between_conditions(job, table, obs))
    if np.all(obs.outcome == obs.outcome[0]) and np.all(obs.previous() == obs.outcome[0]):
        raise DataError(
            f"All points are the same, {job.y[0]}, {job.y[1]} = {obs.outcome[0].tolist()}: there is nothing to fit."
        )
    return replace(obs, notes=(*notes, *obs.notes)) if notes else obs


def _between_conditions(job: Job, table: Mapping[str, np.ndarray], obs: Observations) -> tuple[str, ...]:
    """A note of the steps that lead from one condition to another, which are none of either."""
    rest = tuple(name for name in job.group if name != job.between)
    if job.between is None or rest == job.group:
        return ()
    options: Any = {"lags": job.lags, "max_gap": job.max_gap, "missing": job.missing}
    lost = transitions(table, y=job.y, order=job.order, group=rest or None, **options).n - obs.n
    if lost <= 0:
        return ()
    return (
        f"{job.between!r} changes along sequences: {lost:,} steps lead from one condition to another, or follow such a "
        "step too closely, and are left out.",
    )


def _degrees(values: np.ndarray, by: float) -> np.ndarray:
    """Pixels as degrees; what is no number is left for the check of the columns to name."""
    return values * by if values.dtype.kind in "iuf" else values


def _extra(job: Job, table: Mapping[str, np.ndarray], terms: Sequence[str]) -> tuple[str, ...]:
    """Columns of the table that terms read, at the end point of a step or (`duration_prev`) at its start."""
    taken = {*job.y, *job.group}
    names = sorted(wanted(job, terms))
    here = [name for name in names if name in table and name not in taken]
    earlier = [name for name in names if name not in table and name.removesuffix("_prev") in {*table} - taken]
    return (*here, *earlier)


def _drop_first(job: Job, data: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    table = frames.table(data)
    codes = np.zeros(table.n, dtype=np.int64)
    for name in job.group:
        code, bound = table.column(name, "group").codes()
        _, codes = np.unique(codes * bound + code, return_inverse=True)
    along = np.arange(table.n) if job.order is None else order_key(table, job.order).data
    order = np.lexsort((along, codes))
    first = order[np.flatnonzero(np.diff(codes[order], prepend=-1))]
    keep = np.ones(table.n, dtype=bool)
    keep[first] = False
    if not keep.any():
        raise DataError(f"--drop-first leaves nothing: each of the {len(first):,} sequences has one point.")
    notes = (f"The first point of each of {len(first):,} sequences was removed before pairs were formed.",)
    return {name: np.asarray(column)[keep] for name, column in data.items()}, notes


def covariates(job: Job, domain: Domain) -> list[Covariate]:
    """Maps and expressions, in the order given."""
    unscaled = domain if job.scale == 1.0 else domain.scaled(1.0 / job.scale)  # files are in the data's units
    maps = [read_map(text, unscaled, job.group) for text in job.map]
    distances = [read_distance(text) for text in job.distance]
    places = [*maps, *distances] if job.scale == 1.0 else [one.scaled(job.scale) for one in (*maps, *distances)]
    built: list[Covariate] = [*places, *_expressions(job)]
    names = [covariate.name for covariate in built]
    if twice := frames.duplicates(names):
        raise InputError(f"Covariates need different names; {listing(twice)} came more than once.")
    return built


def _expressions(job: Job) -> list[Expression]:
    built = []
    for text in job.covariate:
        name, mark, expression = text.partition("=")
        if not mark or not name.strip() or not expression.strip() or expression.startswith("="):
            raise InputError(
                f"--covariate must be NAME=EXPRESSION, as logstep='log(step + 1)' after --covariate; got {text!r}."
            )
        built.append(Expression(name.strip(), expression.strip()))
    return built


def _objective(job: Job) -> tuple[Objective, Normaliser | None]:
    if job.objective == "poisson":
        return Poisson(), _smooth(job, POISSON_NORMALISER)
    if job.objective == "ranking":
        return Ranking(per_point=job.references, points=IID()), None  # the constants cancel
    scheme = by_word(SCHEMES)[job.points or "lattice"]()
    return Logistic(per_point=job.references, points=scheme), _smooth(job)


def _smooth(job: Job, default: str | None = None) -> Normaliser | None:
    """χ with the job's terms; None, for constants that follow the effects, where there are none."""
    terms = default if job.normaliser is None else job.normaliser
    smoothing = "reml" if job.normaliser_smoothing == "reml" else None
    return None if terms is None else Smooth(terms, smoothing=smoothing)


def check_names(model: Additive, obs: Observations, normaliser: Normaliser | None) -> None:
    """Unknown names before any work; terms of the normaliser read the context only."""
    covariates = model.covariates(obs)
    for name in model.terms.columns:
        covariates.period(name)
    if normaliser is None or normaliser.terms is None:
        return
    for name in normaliser.terms.columns:
        if not covariates.context_only(name):
            raise InputError(
                f"--normaliser may read the context only, as x_prev and y_prev; {name!r} depends on the outcome."
            )


def refit(prepared: Prepared, model: Additive, obs: Observations, seed: int, strict: bool = False) -> dict[str, Fit]:
    """The fits of a job to other observations: `GROUP` is the one pooled model, or there is one for each level.

    Without the error of the reference points and the test of δ, which held-out data do not need. With `strict`, a level
    that cannot be fitted is an error; else it is left out.
    """
    job = prepared.job
    options: dict[str, Any] = {
        "objective": prepared.objective,
        "normaliser": prepared.normaliser,
        "smoothing": Smoothing(job.smoothing, reference_error=False),
        "rng": seed,
    }
    if job.by is None:
        return {GROUP: fit(model, obs, **options)}
    each = fit_each(model, obs, job.by, group=False, between=job.between, **options)
    if strict and each.failures:
        level, why = next(iter(each.failures.items()))
        raise EstimationError(f"{job.by} {level} could not be fitted without one fold: {why}")
    return dict(each.fits)
