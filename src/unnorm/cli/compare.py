"""`unnorm compare`: models by NCIC and by held-out bits for each point, with folds by image or by subject."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ..errors import EstimationError, InputError, UnnormError, UnnormWarning, listing
from .config import job, read_config, whole
from .fit import Flag, Many, Text
from .output import check_file, csv_text, whole_file
from .progress import Progress

MOST = 400  # held-out points asked about in each fold: each costs an integral over the window
ALL = ""  # the one level of a pooled model
MOST_EACH = 60  # at least, of each level


def compare(
    data: str | None = None,
    /,
    *,
    model: Many = None,
    y: Text = None,
    order: Text = None,
    group: Text = None,
    by: Text = None,
    window: Text = None,
    normaliser: Text = None,
    references: Text = None,
    points: Text = None,
    smoothing: Text = None,
    seed: Text = None,
    lags: Text = None,
    max_gap: Text = None,
    map: Many = None,
    covariate: Many = None,
    centre: Text = None,
    drop_first: Flag = None,
    y_down: Flag = None,
    outside: Text = None,
    missing: Text = None,
    config: str | None = None,
    folds: Text = None,
    k: Annotated[str, Parameter(allow_leading_hyphen=True)] = "5",
    out: str | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> None:
    """Compare models on the same points: NCIC, and bits for each point of sequences left out.

    Args:
        data: as for unnorm fit, and so are the options not named here.
        model: NAME=TERMS, given once for each model, as --model full="s(step) + s(dcenter) + s(angle, bs='cc')".
        by: one of --group: separate functions for each of its levels; NCIC is summed over them, bits are those of all
            points left out.
        folds: the column of --group whose levels are left out together (an image, a subject); default the last one.
        k: folds.
        out: a .csv file for the table.
        force: replace an existing file.
        quiet: print nothing but the table.
    """
    settings = {} if config is None else {name.replace("-", "_"): v for name, v in read_config(config).items()}
    given = {
        "data": data, "y": y, "order": order, "group": group, "by": by, "window": window, "normaliser": normaliser,
        "references": references, "points": points, "smoothing": smoothing, "seed": seed, "lags": lags,
        "max_gap": max_gap, "map": map, "covariate": covariate, "centre": centre, "drop_first": drop_first,
        "y_down": y_down, "outside": outside, "missing": missing,
    }  # fmt: skip
    made = job({**settings, **{name: value for name, value in given.items() if value is not None}})
    models = _models(model)
    if not made.group:
        raise InputError("--group is needed: folds leave out whole sequences.")
    others = [name for name in made.group if name != made.by]
    column = folds if folds is not None else others[-1] if others else ""
    if column not in others:
        each = f" other than --by {made.by}, whose levels have functions of their own" if made.by else ""
        raise InputError(f"--folds must be one of the columns of --group, {listing(made.group)}{each}; got {column!r}.")
    count = whole("--k", k, 2, 1000)
    if out is not None:
        check_file(out, force)
    with Progress(2 + count * len(models), quiet) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        table, levels = compared(made, models, column, count, progress)
    if out is not None:
        whole_file(out, csv_text(table), force)
    print(as_text(table, column, count, f"{levels} levels of {made.by}" if made.by else None))


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


def compared(
    made: Any, models: dict[str, str], column: str, k: int, progress: Progress
) -> tuple[dict[str, np.ndarray], int]:
    """One row for each model: edf, NCIC, bits held out with their standard error over the folds; and the levels."""
    from .fit import inside
    from .jobs import additive, check_names, prepare, window

    with progress.step("reading"):
        parts = prepare(made)
        domain = window(made)
        built = {name: additive(made, domain, terms) for name, terms in models.items()}
        for one in built.values():
            check_names(one, parts.obs, parts.normaliser)
        obs = inside(parts, made)
        values, code = np.unique(obs.group[column], return_inverse=True)
        if values.size < k:
            raise InputError(f"--k {k} folds need as many levels of {column!r}; there are {values.size}.")
        fold = np.random.default_rng(made.seed).permutation(values.size)[code] % k
    pieces = _levels(made, obs)
    with progress.step("fitting"):
        fits = [_whole_fits(made, parts, built, obs.take(rows), level) for level, rows in pieces.items()]
    bits = np.empty((len(models), k))
    for f in range(k):
        for i, one in enumerate(built.values()):
            with progress.step(f"fold {f + 1} of {k}"):
                bits[i, f] = _fold_bits(made, parts, one, obs, pieces, fold == f, made.seed + 1 + f)
    ncic = np.array([sum(_ncic(each[name]) for each in fits) for name in models])
    edf = np.array([sum(_edf(each[name]) for each in fits) for name in models])
    best = bits[np.argmax(bits.mean(axis=1))]
    table = {
        "model": np.array(list(models), dtype=object),
        "terms": np.array(list(models.values()), dtype=object),
        "edf": edf,
        "ncic": ncic,
        "ncic_above_best": ncic - np.nanmin(ncic) if np.isfinite(ncic).any() else ncic,
        "bits": bits.mean(axis=1),
        "bits_se": bits.std(axis=1, ddof=1) / np.sqrt(k),
        # folds are common to all models, so that differences are known better than the bits themselves
        "bits_below_best": (best - bits).mean(axis=1),
        "bits_below_best_se": (best - bits).std(axis=1, ddof=1) / np.sqrt(k),
    }
    return table, len(pieces)


def _levels(made: Any, obs: Any) -> dict[str, np.ndarray]:
    """The rows that are fitted together: all, or those of each level."""
    from ..terms.levels import level_name

    if made.by is None:
        return {ALL: np.arange(obs.n)}
    column = obs.group[made.by]
    return {level_name(value): np.flatnonzero(column == value) for value in np.unique(column).tolist()}


def _whole_fits(made: Any, parts: Any, built: dict[str, Any], obs: Any, level: str) -> Mapping[str, Any]:
    """Every model on the same points."""
    from ..groups.each import level_seed
    from ..results import comparison

    common = {"objective": parts.objective, "normaliser": parts.normaliser, "smoothing": made.smoothing}
    specs = {name: {"model": one, **common} for name, one in built.items()}
    try:
        return comparison.compare(
            parts.model, obs, specs, rng=made.seed if made.by is None else level_seed(made.seed, level)
        ).fits
    except UnnormError as error:
        if made.by is None:
            raise
        raise EstimationError(f"{made.by} {level}: {error}") from error


def _fold_bits(
    made: Any, parts: Any, model: Any, obs: Any, pieces: dict[str, np.ndarray], out: np.ndarray, seed: int
) -> float:
    """Mean bits of points in the fold, each under the fit to its level's other folds."""
    from ..groups import fit_each
    from ..results import fitting
    from ..solvers.smoothing import Smoothing
    from .held_out import bits_of

    options: dict[str, Any] = {
        "objective": parts.objective,
        "normaliser": parts.normaliser,
        "smoothing": Smoothing(made.smoothing, reference_error=False),
        "rng": seed,
    }
    train = obs.take(~out)
    if made.by is None:
        fits = {ALL: fitting.fit(model, train, **options)}
    else:
        each = fit_each(model, train, made.by, group=False, **options)
        for level, why in each.failures.items():
            raise EstimationError(f"{made.by} {level} could not be fitted without one fold: {why}")
        fits = dict(each.fits)
    most = max(MOST_EACH, MOST // len(pieces))
    total = count = 0.0
    for level, rows in pieces.items():
        test = rows[out[rows]]
        if test.size == 0:
            continue
        if level not in fits:
            raise InputError(f"{made.by} {level} has no sequences left when one fold is taken out; ask for more folds.")
        some = test[np.unique(np.linspace(0, test.size - 1, min(most, test.size)).astype(int))]
        total += test.size * float(np.mean(bits_of(fits[level], obs.take(some))))
        count += test.size
    return total / count


def _edf(fit: Any) -> float:
    return float(sum(fit.smooths.edf.values())) if fit.smooths else float("nan")


def _ncic(fit: Any) -> float:
    try:
        return float(fit.ncic)
    except InputError:  # ranking, quadrature
        return float("nan")


def as_text(table: dict[str, np.ndarray], column: str, k: int, levels: str | None = None) -> str:
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
