"""`unnorm compare`: models by NCIC and by held-out bits for each point, with folds by image or by subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.workers import mapped
from ..errors import EstimationError, InputError, UnnormError, hush, listing
from .config import Job, whole
from .options import NONE_GIVEN, Force, Many, Number, Options, Quiet, Text, shell_workers
from .output import check_file, csv_text, whole_file
from .progress import Progress

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..models import Additive
    from .jobs import Prepared

MOST = 400  # held-out points asked about in each fold: each costs an integral over the window
MOST_EACH = 60  # at least, of each level
MOST_FOLDS = 1000


def compare(
    data: str | None = None,
    /,
    *,
    model: Many = None,
    options: Options = NONE_GIVEN,
    folds: Text = None,
    k: Number = "5",
    workers: Text = None,
    out: str | None = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Compare models on the same points: NCIC, and bits for each point of sequences left out.

    With --by, NCIC is summed over the levels, and bits are those of all points left out.

    Args:
        data: as for unnorm fit, and so are the options not named here.
        model: NAME=TERMS, given once for each model, as --model full="s(step) + s(dcenter) + s(angle, bs='cc')".
        options: shared with unnorm fit.
        folds: the column of --group whose levels are left out together (an image, a subject); default the last one.
        k: folds.
        workers: a number of processes, or the address of a Dask scheduler, as tcp://host:8786, which share the folds.
        out: a .csv file for the table.
        force: replace an existing file.
        quiet: print nothing but the table.
    """
    job, models = replace(options.job(data=data), between=None), _models(model)
    column, count = _column(job, folds), whole("--k", k, 2, MOST_FOLDS)
    if out is not None:
        check_file(out, force)
    where = shell_workers(workers)
    with Progress(("reading", "fitting", "folds"), quiet) as progress, hush():
        with progress.step("reading"):
            plan = _plan(job, models, column, count)
        table = compared(plan, progress, where)
    if out is not None:
        whole_file(out, csv_text(table), force)
    print(as_text(table, column, count, f"{len(plan.levels)} levels of {job.by}" if job.by else None))


def _models(given: list[str] | None) -> dict[str, str]:
    models: dict[str, str] = {}
    for text in given or ():
        name, mark, terms = text.partition("=")
        if not mark or not name.strip() or not terms.strip() or "(" in name:
            raise InputError(f'--model must be NAME=TERMS, as full="s(step) + s(dcenter)"; got {text!r}.')
        if name.strip() in models:
            raise InputError(f"--model {name.strip()!r} is given twice; models need different names.")
        models[name.strip()] = terms.strip()
    if len(models) < 2:
        raise InputError(f"--model NAME=TERMS must be given at least twice; got {len(models)}.")
    return models


def _column(job: Job, folds: str | None) -> str:
    """The column whose levels are left out together."""
    if not job.group:
        raise InputError("--group is needed: folds leave out whole sequences.")
    others = [name for name in job.group if name != job.by]
    column = folds if folds is not None else others[-1] if others else ""
    if column not in others:
        each = f" other than --by {job.by}, whose levels have functions of their own" if job.by else ""
        raise InputError(f"--folds must be one of the columns of --group, {listing(job.group)}{each}; got {column!r}.")
    return column


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """What is compared: models on observations, the rows that are fitted together, and the fold of each row."""

    prepared: Prepared
    terms: Mapping[str, str]  # model → its terms
    models: Mapping[str, Additive]
    obs: Observations
    levels: Mapping[str, np.ndarray]  # level → its rows; the group's are all of them
    fold: np.ndarray  # (n,) from 0
    folds: int


def _plan(job: Job, terms: Mapping[str, str], column: str, folds: int) -> Plan:
    from ..report.analysis import GROUP, level_rows
    from ..terms.levels import level_name
    from .jobs import additive, check_names, prepare

    prepared = prepare(job, list(terms.values()))
    models = {name: additive(job, prepared.model.domain, text) for name, text in terms.items()}
    for one in models.values():
        check_names(one, prepared.obs, prepared.normaliser)
    obs = prepared.inside()
    values, code = np.unique(obs.group[column], return_inverse=True)
    if values.size < folds:
        raise InputError(f"--k {folds} folds need as many levels of {column!r}; there are {values.size}.")
    levels = {GROUP: np.arange(obs.n)}
    if job.by is not None:
        by = obs.group[job.by]
        names = [level_name(value) for value in np.unique(by).tolist()]
        levels = {name: np.flatnonzero(level_rows(by, name)) for name in names}
    fold = np.random.default_rng(job.seed).permutation(values.size)[code] % folds
    return Plan(prepared, terms, models, obs, levels, fold, folds)


def compared(plan: Plan, progress: Progress, workers: Any = None) -> dict[str, np.ndarray]:
    """One row for each model: edf, NCIC, bits held out with their standard error over the folds."""
    with progress.step("fitting"):
        fits = mapped(_all_data, list(plan.levels.items()), workers, common=(plan,))
    with progress.step("folds"):
        tasks = [(name, f) for f in range(plan.folds) for name in plan.models]
        found = dict(zip(tasks, mapped(_fold_bits, tasks, workers, common=(plan,))))
    bits = np.array([[found[name, f] for f in range(plan.folds)] for name in plan.models])
    ncic = np.array([sum(_ncic(each[name]) for each in fits) for name in plan.models])
    best = bits[np.argmax(bits.mean(axis=1))]
    return {
        "model": np.array(list(plan.models), dtype=object),
        "terms": np.array(list(plan.terms.values()), dtype=object),
        "edf": np.array([sum(float(sum(each[name].edf.values())) for each in fits) for name in plan.models]),
        "ncic": ncic,
        "ncic_above_best": ncic - np.nanmin(ncic) if np.isfinite(ncic).any() else ncic,
        "bits": bits.mean(axis=1),
        "bits_se": bits.std(axis=1, ddof=1) / np.sqrt(plan.folds),
        # folds are common to all models, so that differences are known better than the bits themselves
        "bits_below_best": (best - bits).mean(axis=1),
        "bits_below_best_se": (best - bits).std(axis=1, ddof=1) / np.sqrt(plan.folds),
    }


def _all_data(plan: Plan, level: str, rows: np.ndarray) -> Mapping[str, Any]:
    """Every model on all rows of a level, with the same reference points."""
    from ..groups.each import level_seed
    from ..results import comparison

    prepared, job = plan.prepared, plan.prepared.job
    common = {"objective": prepared.objective, "normaliser": prepared.normaliser, "smoothing": job.smoothing}
    specs = {name: {"model": one, **common} for name, one in plan.models.items()}
    seed = job.seed if job.by is None else level_seed(job.seed, level)
    try:
        return comparison.compare(prepared.model, plan.obs.take(rows), specs, rng=seed).fits
    except UnnormError as error:
        if job.by is None:
            raise
        raise EstimationError(f"{job.by} {level}: {error}") from error


def _fold_bits(plan: Plan, name: str, f: int) -> float:
    """Mean bits of the points in a fold, each under a model's fit to its level's other folds."""
    from ..report.held_out import ORDER
    from ..results.held_out import evenly
    from .jobs import refit

    model, out, seed = plan.models[name], plan.fold == f, plan.prepared.job.seed + 1 + f
    fits = refit(plan.prepared, model, plan.obs.take(~out), seed, strict=True)
    most = max(MOST_EACH, MOST // len(plan.levels))
    total = count = 0.0
    for level, rows in plan.levels.items():
        test = rows[out[rows]]
        if test.size == 0:
            continue
        if level not in fits:
            by = plan.prepared.job.by
            raise InputError(f"{by} {level} has no sequences left when one fold is taken out; ask for more folds.")
        some = plan.obs.take(test[evenly(test.size, most)])
        weight = float(plan.obs.weights[test].sum())
        total += weight * fits[level].held_out(some, order=ORDER).bits_uniform
        count += weight
    return total / count


def _ncic(fit: Any) -> float:
    try:
        return float(fit.ncic)
    except InputError:  # ranking, quadrature
        return float("nan")


def as_text(table: dict[str, np.ndarray], column: str, k: int, levels: str | None = None) -> str:
    """The table for people."""
    wide = max(5, *(len(str(name)) for name in table["model"]))
    lines = [f"{'model':<{wide}}  {'edf':>7}  {'NCIC':>12}  {'above best':>10}  {'bits':>8}  {'below best':>18}"]
    for i, name in enumerate(table["model"]):
        below = f"{table['bits_below_best'][i]:.4f} ± {table['bits_below_best_se'][i]:.4f}"
        lines.append(
            f"{name:<{wide}}  {table['edf'][i]:>7.1f}  {table['ncic'][i]:>12.1f}  "
            f"{table['ncic_above_best'][i]:>10.1f}  {table['bits'][i]:>8.4f}  {below:>18}"
        )
    each = f", summed over {levels}" if levels else ""
    lines.append(
        f"NCIC: smaller is better{each}. bits: gain over a uniform choice for each held-out point, {k} folds by "
        f"{column}; larger is better."
    )
    return "\n".join(lines)
