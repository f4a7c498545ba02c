"""The long tables of an analysis: effects.csv and parameters.csv."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.intervals import normal_quantile
from .analysis import Analysis, Columns

_KEPT = ("estimate", "se", "se_reference", "lower", "upper")
_NUMBERS = (*_KEPT, "se_sampling")
_TESTS = ("edf", "ref_df", "statistic", "p")


def effects_table(analysis: Analysis) -> Columns:
    """Long table: by, term, each covariate under its own name, estimate, se, se_reference, lower, upper."""
    effects: list[tuple[str, str, Columns]] = [
        (which, label, analysis.effect(label, which)) for which in analysis.curves for label in analysis.labels
    ]
    names = dict.fromkeys(name for _, _, table in effects for name in table if name not in _NUMBERS)
    text = {name for _, _, table in effects for name in names if name in table and table[name].dtype.kind not in "fiub"}
    out: dict[str, list[Any]] = {name: [] for name in ("by", "term", *names, *_KEPT)}
    for which, label, table in effects:
        rows = len(table["estimate"])
        out["by"].append(np.full(rows, which, dtype=object))
        out["term"].append(np.full(rows, label, dtype=object))
        for name in names:
            absent = np.full(rows, "", dtype=object) if name in text else np.full(rows, np.nan)
            out[name].append(np.asarray(table[name]) if name in table else absent)
        for name in _KEPT:
            out[name].append(table[name])
    return {name: np.concatenate(columns) for name, columns in out.items()}


def parameters_table(analysis: Analysis) -> Columns:
    """Smooth terms (edf, reference df, statistic, p) and parameters (estimate, se, lower, upper), for each fit."""
    z = normal_quantile(analysis.level)
    rows: list[dict[str, Any]] = []
    for which, fit in analysis.all_fits.items():
        part = analysis.smooths(which)
        table = {name: np.asarray(values).tolist() for name, values in part.table.items()}
        for i, label in enumerate(table.get("term", ())):
            kind = "normaliser" if label in part.normaliser_labels else "effect"
            smooth = {name: table[name][i] for name in _TESTS if name in table}
            rows.append({"by": which, "n": fit.n, "term": label, "kind": kind, **smooth})
        for name, value, se in zip(fit.names, fit.estimate, fit.se if fit.names else ()):
            bounds = {"lower": value - z * se, "upper": value + z * se}
            rows.append(
                {"by": which, "n": fit.n, "term": name, "kind": "parameter", "estimate": value, "se": se, **bounds}
            )
    return {
        **{name: np.array([row[name] for row in rows], dtype=object) for name in ("by", "n", "term", "kind")},
        **{
            name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64)
            for name in (*_TESTS, "estimate", "se", "lower", "upper")
        },
    }
