"""`fit_each`: the same model for each level of a group column, as one batch on all cores."""

from __future__ import annotations

import os
import time
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.numerics import Rng
from .._base.threads import cores, run_tasks
from ..data.observations import Observations
from ..engine import gam_effects
from ..errors import DataError, InputError, NoEstimateError, UnnormError, UnnormWarning, listing
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from ..objectives.base import Objective
from ..results.constants import worst
from ..results.fit import Fit
from ..results.fitting import Outside, Weights, fit, keep_inside, weighted
from ..solvers.smoothing import Smoothing
from ..terms.levels import level_name
from .kept import KeptLevels
from .population import Parts, population
from .result import FitGroup


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
        group: whether to fit the population's curves too.
        outside: what to do with points outside Ω: "error", or "drop" them and say so.
        weights: as in `un.fit`.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), which share
            the levels. The numbers are the same.
        checkpoint: a folder in which each level's fit is kept as it ends (with workers, when all have ended): after an
            interruption the same call goes on with the levels that are missing, to the same numbers. Needs `rng`, a
            seed; the folder stays until you remove it.

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
    kept = None if checkpoint is None else _kept(checkpoint, parts, by, rng)
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # each fit keeps its own as notes; those that matter are below
        fits, failures = _fit_levels(parts, by, workers, kept)
        separate = time.perf_counter() - began
        joint, reason = None, None
        if group:
            try:
                rows = fits if kept is None else kept.with_rows(fits)
                joint = population(by, rows, parts, min(cores(), len(fits)))
            except UnnormError as error:  # a bug is not a missing group curve
                reason = f"There is no group curve: {error}"
    doubts = _doubts(by, fits)
    for doubt in doubts:
        warnings.warn(doubt, UnnormWarning, stacklevel=2)
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
        settings={**first.settings, "by": by, "levels": [*fits, *failures]},
        notes=(*obs.notes, *notes, *_notes(by, fits, failures, reason), *doubts, *(kept.notes if kept else ())),
        no_group=reason,
        seed=parts.seed,
        model=model,
        backend=obs.backend,
        diagnostics={
            "seconds": seconds,
            "rows": sum(int(one.diagnostics.get("rows", one.rows)) for one in fits.values()),
        },
    )


def _levels(obs: Observations, by: str) -> dict[str, Any]:
    """Name → value of every level."""
    values = np.unique(obs.group[by]).tolist()
    names = [level_name(value) for value in values]
    if len(set(names)) < len(names):
        raise DataError(
            f"Levels of {by!r} have the same name: {listing(sorted({n for n in names if names.count(n) > 1}))}."
        )
    return dict(zip(names, values))


def _kept(folder: str | os.PathLike[str], parts: Parts, by: str, rng: Rng) -> KeptLevels:
    if not isinstance(rng, int | np.integer):
        raise InputError(
            f"checkpoint= needs rng=, a whole number, to go on with the same reference points; got {rng!r}."
        )
    seeds = {name: level_seed(parts.seed, name) for name in _levels(parts.obs, by)}
    return KeptLevels(folder, parts, by, seeds, partial(_fit_level, parts))


def _fit_levels(
    parts: Parts, by: str, workers: Any = None, kept: KeptLevels | None = None
) -> tuple[dict[str, Fit], dict[str, str]]:
    """A fit for each level, or the sentence why it has none: read where it was kept, else made on all cores or by
    workers."""
    column, levels = parts.obs.group[by], _levels(parts.obs, by)
    threads = min(cores(), len(levels)) if workers is None else 2  # or one for each level with its worker
    alone = replace(parts, smoothing=replace(parts.smoothing, threads=1)) if threads > 1 else parts
    bare = replace(alone, obs=parts.obs.take(np.arange(0)))
    found: dict[str, Fit | str] = {}
    left = []
    for name, value in levels.items():
        obs = parts.obs.take(column == value)
        if (read := None if kept is None else kept.read(name, obs)) is None:
            left.append((bare, obs, name))
        else:
            found[name] = read
    missing = [name for *_, name in left]
    if workers is None:
        found |= zip(missing, run_tasks(partial(_fit_level, kept=kept), left, threads))
    else:
        from ..engine.dask_parts import client_of, gathered

        with client_of(workers) as client:
            found |= zip(missing, gathered(client, [(_fit_elsewhere, *task) for task in left]))
        if kept is not None:
            for name in missing:
                kept.keep(name, found[name])
    found = {name: found[name] for name in levels}
    fits = {name: one for name, one in found.items() if isinstance(one, Fit)}
    failures = {name: one for name, one in found.items() if isinstance(one, str)}
    if not fits:
        first, why = next(iter(failures.items()))
        raise NoEstimateError(f"None of the {len(failures)} levels of {by!r} could be fitted; {first}: {why}")
    return fits, failures


def _fit_level(parts: Parts, obs: Observations, name: str, kept: KeptLevels | None = None) -> Fit | str:
    """One level's fit, or the sentence why it has none. `parts` need not have the observations of other levels."""
    try:
        made = fit(
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
    if kept is not None:
        kept.keep(name, made)
    return made


def _fit_elsewhere(parts: Parts, obs: Observations, name: str) -> Fit | str:
    """`_fit_level` in another process, whose warnings nobody sees: the fit has them as notes."""
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
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
