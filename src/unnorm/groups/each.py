"""`fit_each`: the same model for each level of a group column, as one batch on all cores."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.numerics import Rng
from .._base.threads import cores
from .._base.workers import mapped
from ..data.observations import Observations
from ..engine import gam_effects
from ..errors import DataError, InputError, NoEstimateError, UnnormError, hush, listing, warn
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from ..objectives.base import Objective
from ..results.constants import worst
from ..results.fit import Fit
from ..results.fitting import Outside, Weights, fit, keep_inside, weighted
from ..solvers.smoothing import Smoothing
from ..terms.levels import level_name
from .between import Crossing, crossing
from .conditions import Conditions, conditions
from .kept import KeptLevels
from .population import Parts, population
from .result import FitGroup

UNEVEN = 10  # times as many observations in one of two levels


def fit_each(
    model: Unnormalised,
    obs: Observations,
    by: str,
    objective: Objective | None = None,
    normaliser: Normaliser | None = None,
    smoothing: str | Smoothing = "reml",
    rng: Rng = None,
    group: bool = True,
    outside: Outside = "error",
    weights: Weights = "frequencies",
    workers: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    between: str | None = None,
) -> FitGroup:
    """Fit the model separately to each level of `by`, and jointly for the population's curves.

    The separate fits are those of `un.fit` on each level's observations, each with its own seed (`fits[level].seed`,
    which depends on `rng` and the level's name, not on the other levels). A level whose fit fails is named in
    `failures` and does not lose the others.

    Args:
        model: f on its domain.
        obs: observations with the column `by` among their groups.
        by: the group column, e.g. "subject".
        objective: default `un.Logistic()` where there is a context.
        normaliser: how the constants are represented, each level having its own; default the objective's.
        smoothing: "reml", "ml", "gcv", "cv" or `un.Smoothing(...)`; the joint fit takes REML or ML.
        rng: seed or generator.
        group: whether to fit the population's curves too, and to compare conditions.
        outside: what to do with points outside Ω: "error", or "drop" them and say so.
        weights: as in `un.fit`.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), which share
            the levels. The numbers are the same.
        checkpoint: a folder in which each level's fit is kept as it ends: after an interruption the same call goes on
            with the levels that are missing, to the same numbers. Needs `rng`, a seed; the folder stays until you
            remove it.
        between: a column of conditions to compare, e.g. "condition": their population curves, differences and tests
            are in `conditions`. Whether they are between levels of `by` (each in one condition) or within them (each in
            several) is found from the data; within, there is a separate fit for each level in each condition, named
            "3 · A".

    Example:
        >>> import unnorm as un
        >>> obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
        >>> three = obs.take(obs.group["subject"] <= 3)
        >>> model = un.Additive("s(step) + s(dcenter) + s(angle, bs='cc')", un.Box((0, 800), (0, 600)), y_down=True)
        >>> each = un.fit_each(model, three, by="subject", normaliser=un.Smooth("s(x_prev, y_prev)"), rng=1)
        >>> each.levels
        ('1', '2', '3')
    """
    began = time.perf_counter()
    _column(obs, by)
    model.check(obs)
    obs, notes = keep_inside(model.domain, obs, outside)
    obs = weighted(obs, weights)
    if objective is None and obs.has_context:
        from ..objectives import Logistic

        objective = Logistic()
    chosen = smoothing if isinstance(smoothing, Smoothing) else Smoothing(smoothing)
    parts = Parts(model, obs, objective, normaliser, chosen, _seed(rng), weights)
    crossed = None if between is None else crossing(obs, by, between)
    named = _named_levels(obs, by, crossed)
    kept = None if checkpoint is None else _kept(checkpoint, parts, named[0], {"by": by, "between": between}, rng)
    with single_threaded(), hush():  # each fit keeps its own as notes; those that matter are below
        fits, failures = _fit_levels(parts, *named, by, workers, kept)
        separate = time.perf_counter() - began
        joint, compared, reason = None, None, None
        if group:
            try:
                rows = fits if kept is None else kept.with_rows(fits)
                joint, compared = _jointly(by, crossed, rows, parts)
            except UnnormError as error:  # a bug is not a missing group curve
                reason = f"There is no group curve: {error}"
    doubts = _doubts(by, fits) + (() if joint is None else _uneven(by, fits))
    for doubt in doubts:
        warn(doubt, stacklevel=2)
    labels, grids = _common(fits)
    first = next(iter(fits.values()))
    seconds = {"separate": separate, "joint": time.perf_counter() - began - separate}
    return FitGroup(
        by=by,
        fits=fits,
        group=joint,
        failures=failures,
        labels=labels,
        grids=grids,
        settings={**first.settings, "by": by, "levels": [*fits, *failures]}
        | ({} if between is None else {"between": between}),
        notes=(*obs.notes, *notes, *_notes(by, fits, failures, reason), *doubts, *(kept.notes if kept else ())),
        no_group=reason,
        seed=parts.seed,
        model=model,
        backend=obs.backend,
        conditions=compared,
        diagnostics={
            "seconds": seconds,
            "rows": sum(int(one.diagnostics.get("rows", one.n_rows)) for one in fits.values()),
        },
    )


def _jointly(by: str, crossed: Crossing | None, fits: Mapping[str, Fit], parts: Parts) -> tuple[Fit, Conditions | None]:
    """The population's curves, and the conditions' where there are any."""
    threads = min(cores(), len(fits))
    return (
        (population(by, fits, parts, threads), None) if crossed is None else conditions(crossed, fits, parts, threads)
    )


def _named_levels(obs: Observations, by: str, crossed: Crossing | None) -> tuple[list[str], np.ndarray]:
    """The levels that have a fit of their own, or the cells of levels and conditions, and that of each observation."""
    if crossed is not None:
        return list(crossed.names), crossed.of
    values, of = np.unique(obs.group[by], return_inverse=True)
    names = [level_name(value) for value in values.tolist()]
    if len(set(names)) < len(names):
        raise DataError(
            f"Levels of {by!r} have the same name: {listing(sorted({n for n in names if names.count(n) > 1}))}."
        )
    return names, of


def _kept(
    folder: str | os.PathLike[str], parts: Parts, names: list[str], levels: Mapping[str, Any], rng: Rng
) -> KeptLevels:
    if not isinstance(rng, int | np.integer):
        raise InputError(
            f"checkpoint= needs rng=, a whole number: the reference points must be the same after an interruption; got "
            f"{rng!r}."
        )
    seeds = {name: level_seed(parts.seed, name) for name in names}
    alone = replace(parts, smoothing=replace(parts.smoothing, threads=1))
    return KeptLevels(folder, parts, levels, seeds, partial(_fit_level, alone))


def _fit_levels(
    parts: Parts, names: list[str], of: np.ndarray, by: str, workers: Any = None, kept: KeptLevels | None = None
) -> tuple[dict[str, Fit], dict[str, str]]:
    """A fit for each level, or the sentence why it has none: read where it was kept, else made on all cores or by
    workers."""
    threads = min(cores(), len(names)) if workers is None else 2  # or one for each level with its worker
    alone = replace(parts, smoothing=replace(parts.smoothing, threads=1)) if threads > 1 else parts
    bare = replace(alone, obs=parts.obs.take(np.arange(0)))
    levels = {name: parts.obs.take(of == i) for i, name in enumerate(names)}
    read = {} if kept is None else {name: one for name, obs in levels.items() if (one := kept.read(name, obs))}
    left = [name for name in names if name not in read]
    left.sort(key=lambda name: -levels[name].n)  # long ones first: no core waits for a last one
    tasks = [(bare, levels[name], name) for name in left]
    work = _fit_level if workers is None else _fit_elsewhere
    done = None if kept is None else lambda i, one: kept.keep(left[i], one)
    made = dict(zip(left, mapped(work, tasks, workers, threads=threads, done=done)))
    found = {name: read[name] if name in read else made[name] for name in names}
    fits = {name: one for name, one in found.items() if isinstance(one, Fit)}
    failures = {name: one for name, one in found.items() if isinstance(one, str)}
    if not fits:
        first, why = next(iter(failures.items()))
        raise NoEstimateError(f"None of the {len(failures)} levels of {by!r} could be fitted; {first}: {why}")
    return fits, failures


def _fit_level(parts: Parts, obs: Observations, name: str) -> Fit | str:
    """One level's fit, or the sentence why it has none. `parts` need not have the observations of other levels."""
    try:
        return fit(
            parts.model,
            obs,
            parts.objective,
            parts.normaliser,
            smoothing=parts.smoothing,
            rng=level_seed(parts.seed, name),
            weights=parts.weights,  # relative ones: their mean in each level is one
        )
    except UnnormError as error:
        return f"{type(error).__name__}: {error}"


def _fit_elsewhere(parts: Parts, obs: Observations, name: str) -> Fit | str:
    """`_fit_level` in another process, whose warnings nobody sees: the fit has them as notes."""
    with single_threaded(), hush():
        return _fit_level(parts, obs, name)


def _notes(by: str, fits: Mapping[str, Fit], failures: Mapping[str, str], reason: str | None) -> tuple[str, ...]:
    """What there is to say about the whole."""
    notes = []
    if failures:
        count = len(fits) + len(failures)
        notes.append(f"{len(failures)} of {count} levels of {by!r} could not be fitted: {listing(list(failures))}.")
    if reason:
        notes.append(reason)
    return tuple(notes)


def _uneven(by: str, fits: Mapping[str, Fit]) -> tuple[str, ...]:
    """What a population of two is worth of which one says little: bands covered 89 % of it (40 and 1,500 points)."""
    short, *_, long = sorted(fits, key=lambda name: fits[name].n)
    if len(fits) != 2 or fits[long].n < UNEVEN * fits[short].n:
        return ()
    return (
        f"Of two levels of {by!r}, {short} has {fits[short].n:,} observations and {long} {fits[long].n:,}: the group's "
        f"curve is nearly {long}'s own, and its band may be too narrow, as the differences between levels can hardly "
        "be estimated. Look at the two one by one.",
    )


def _doubts(by: str, fits: Mapping[str, Fit]) -> tuple[str, ...]:
    """Levels whose numbers are not to be trusted, and what the worst of them says."""
    doubts = []
    if astray := [name for name, one in fits.items() if not one.converged]:
        doubts.append(f"These levels did not converge, and should not be trusted: {listing(astray)}.")
    if failed := [name for name, one in fits.items() if one.constants_failed]:
        which = worst(fits)
        what = "The model of" if fits[which].anchored else "The constants of"
        verb = "fails" if len(failed) == 1 else "fail"
        doubts.append(
            f"{what} {len(failed)} of {len(fits)} levels of {by!r} {verb} the check of constants ({listing(failed)}). "
            f"The worst, {which}: {fits[which].constants}"
        )
    return tuple(doubts)


def level_seed(seed: int, level: str) -> int:
    """The seed of one level's reference points: it depends on the level's name, not on the other levels."""
    return int(np.random.SeedSequence([seed, zlib.crc32(level.encode("utf-8"))]).generate_state(1)[0])


def _seed(rng: Rng) -> int:
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**32))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InputError(f"rng must be a seed (a whole number, not negative) or a numpy Generator; got {rng!r}.")
    return int(rng)


def _column(obs: Observations, by: str) -> np.ndarray:
    if not isinstance(obs, Observations):
        raise InputError(f"obs must come from un.iid, un.transitions or un.conditional; got {type(obs).__name__}.")
    if by not in obs.group:
        raise InputError(
            f"by must name a group column ({listing(list(obs.group)) or 'there are none'}); got {by!r}. "
            f"Pass group=({by!r}, …) when the observations are made."
        )
    if obs.n == 0:
        raise InputError(f"There are no observations to fit. {' '.join(obs.notes)}".strip())
    return obs.group[by]


def _common(fits: Mapping[str, Fit]) -> tuple[tuple[str, ...], dict[str, dict[str, np.ndarray]]]:
    """f's terms, and one grid for each over the range of all levels together."""
    parts = [one.smooths for one in fits.values() if one.smooths is not None]
    if not parts:
        return (), {}
    labels = parts[0].model_labels
    grids: dict[str, dict[str, np.ndarray]] = {}
    for label in labels:
        seen: dict[str, list[np.ndarray]] = {}
        for part in parts:
            for name, values in part.grids[label].items():
                seen.setdefault(name, []).append(np.asarray(values))
        columns = {name: np.unique(np.concatenate(values)) for name, values in seen.items()}
        grids[label] = gam_effects.grid(parts[0].term(label), columns)
    return labels, grids
