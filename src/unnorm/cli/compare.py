"""`unnorm compare`: models by NCIC and by held-out bits for each point, with folds by image or by subject."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ..errors import InputError, UnnormWarning, listing
from .config import job, read_config, whole
from .fit import Flag, Many, Text
from .output import csv_text, whole_file
from .progress import Progress

MOST = 400  # held-out points asked about in each fold: each costs an integral over the window


def compare(
    data: str | None = None,
    /,
    *,
    model: Many = None,
    y: Text = None,
    order: Text = None,
    group: Text = None,
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
    """Compare pooled models on the same points: NCIC, and bits for each point of sequences left out.

    Args:
        data: as for unnorm fit, and so are the options not named here.
        model: NAME=TERMS, given once for each model, as --model full="s(step) + s(dcenter) + s(angle, bs='cc')".
        folds: the column of --group whose levels are left out together (an image, a subject); default the last one.
        k: folds.
        out: a .csv file for the table.
        force: replace an existing file.
        quiet: print nothing but the table.
    """
    from pathlib import Path

    settings = {} if config is None else {name.replace("-", "_"): v for name, v in read_config(config).items()}
    settings.pop("by", None)
    given = {
        "data": data, "y": y, "order": order, "group": group, "window": window, "normaliser": normaliser,
        "references": references, "points": points, "smoothing": smoothing, "seed": seed, "lags": lags,
        "max_gap": max_gap, "map": map, "covariate": covariate, "centre": centre, "drop_first": drop_first,
        "y_down": y_down, "outside": outside, "missing": missing,
    }  # fmt: skip
    made = job({**settings, **{name: value for name, value in given.items() if value is not None}})
    models = _models(model)
    if not made.group:
        raise InputError("--group is needed: folds leave out whole sequences.")
    column = made.group[-1] if folds is None else folds
    if column not in made.group:
        raise InputError(f"--folds must be one of the columns of --group, {listing(made.group)}; got {column!r}.")
    count = whole("--k", k, 2, 1000)
    if out is not None and Path(out).exists() and not force:
        raise InputError(f"{out!r} exists; choose another --out, or pass --force to replace it.")
    with Progress(2 + count * len(models), quiet) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        table = compared(made, models, column, count, progress)
    if out is not None:
        whole_file(out, csv_text(table), force)
    print(as_text(table, column, count))


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


def compared(made: Any, models: dict[str, str], column: str, k: int, progress: Progress) -> dict[str, np.ndarray]:
    """One row for each model: NCIC, bits held out with their standard error over the folds, edf."""
    from .. import comparison, fitting
    from ..solvers.smoothing import Smoothing
    from .fit import inside
    from .held_out import bits_of
    from .jobs import additive, check_names, prepare, window

    with progress.step("reading"):
        parts = prepare(made)
        domain = window(made)
        built = {name: additive(made, domain, terms) for name, terms in models.items()}
        for one in built.values():
            check_names(one, parts.obs, parts.normaliser)
        obs = inside(parts, made)
        levels, code = np.unique(obs.group[column], return_inverse=True)
        if levels.size < k:
            raise InputError(f"--k {k} folds need as many levels of {column!r}; there are {levels.size}.")
        fold = np.random.default_rng(made.seed).permutation(levels.size)[code] % k
    common = {"objective": parts.objective, "normaliser": parts.normaliser}
    with progress.step("fitting"):
        specs = {name: {"model": one, "smoothing": made.smoothing, **common} for name, one in built.items()}
        whole_fits = comparison.compare(parts.model, obs, specs, rng=made.seed).fits
    bits = np.full((len(models), k), np.nan)
    lean = Smoothing(made.smoothing, reference_error=False)
    for f in range(k):
        train, test = obs.take(fold != f), np.flatnonzero(fold == f)
        some = obs.take(test[np.unique(np.linspace(0, test.size - 1, min(MOST, test.size)).astype(int))])
        for i, one in enumerate(built.values()):
            with progress.step(f"fold {f + 1} of {k}"):
                fit = fitting.fit(one, train, smoothing=lean, rng=made.seed + 1 + f, **common)
                bits[i, f] = float(np.mean(bits_of(fit, some)))
    ncic = np.array([_ncic(fit) for fit in whole_fits.values()])
    edf = np.array([sum(fit.smooths.edf.values()) if fit.smooths else np.nan for fit in whole_fits.values()])
    return {
        "model": np.array(list(models), dtype=object),
        "terms": np.array(list(models.values()), dtype=object),
        "edf": edf,
        "ncic": ncic,
        "ncic_above_best": ncic - np.nanmin(ncic) if np.isfinite(ncic).any() else ncic,
        "bits": bits.mean(axis=1),
        "bits_se": bits.std(axis=1, ddof=1) / np.sqrt(k),
        # folds are common to all models, so that differences are known better than the bits themselves
        "bits_below_best": (bits[np.argmax(bits.mean(axis=1))] - bits).mean(axis=1),
        "bits_below_best_se": (bits[np.argmax(bits.mean(axis=1))] - bits).std(axis=1, ddof=1) / np.sqrt(k),
    }


def _ncic(fit: Any) -> float:
    try:
        return float(fit.ncic)
    except InputError:  # ranking, quadrature
        return float("nan")


def as_text(table: dict[str, np.ndarray], column: str, k: int) -> str:
    wide = max(5, *(len(str(name)) for name in table["model"]))
    lines = [f"{'model':<{wide}}  {'edf':>7}  {'NCIC':>12}  {'above best':>10}  {'bits':>8}  {'below best':>18}"]
    for i, name in enumerate(table["model"]):
        below = f"{table['bits_below_best'][i]:.4f} ± {table['bits_below_best_se'][i]:.4f}"
        lines.append(
            f"{name:<{wide}}  {table['edf'][i]:>7.1f}  {table['ncic'][i]:>12.1f}  "
            f"{table['ncic_above_best'][i]:>10.1f}  {table['bits'][i]:>8.4f}  {below:>18}"
        )
    lines.append(
        f"NCIC: smaller is better. bits: gain over a uniform choice for each held-out point, {k} folds by {column}; "
        "larger is better."
    )
    return "\n".join(lines)
