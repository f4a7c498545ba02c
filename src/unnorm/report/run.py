"""`Run`: a finished fit, pooled or with levels, in the one shape that tables, figures and the report read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.intervals import normal_quantile
from ..data.observations import Observations
from ..errors import UnnormWarning
from ..models import Additive
from ..results.fit import Fit

Columns = dict[str, np.ndarray]
GROUP = "group"  # the population's curve with levels; the one pooled model without


@final
@dataclass(frozen=True, eq=False)
class Run:
    """The fits by level (none where the model is pooled), the group's fit, and the observations behind them."""

    model: Additive
    obs: Observations
    group: Fit | None
    fits: Mapping[str, Fit] = field(default_factory=dict)
    by: str | None = None
    level: float = 0.95
    mean: Callable[[str], Columns] | None = None  # label → plain mean of the separate fits
    grids: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)  # label → where effects are tabulated
    failures: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    save: Callable[[str], None] | None = None
    summary: str = ""
    _effects: dict[tuple[str, str], Columns] = field(default_factory=dict, repr=False)  # each computed once

    @property
    def everything(self) -> dict[str, Fit]:
        """`group` and the levels, in the order of the tables."""
        return {**({} if self.group is None else {GROUP: self.group}), **self.fits}

    @property
    def main(self) -> Fit:
        """The group's fit; where there is none, the first level's."""
        return next(iter(self.everything.values()))

    @property
    def labels(self) -> tuple[str, ...]:
        """The terms of f."""
        part = self.main.smooths
        return () if part is None else part.model_labels

    def effect(self, label: str, which: str) -> Columns:
        """One term's effect: covariates, estimate, se, se_sampling, se_reference, lower, upper."""
        key = (label, which)
        if key not in self._effects:
            part = self.everything[which].smooths
            assert part is not None
            with warnings.catch_warnings():  # the common grid may reach beyond a level's data; its band says so
                warnings.simplefilter("ignore", UnnormWarning)
                self._effects[key] = part.effect(label, self.grids.get(label), self.level)
        return self._effects[key]

    @property
    def sparse(self) -> str | None:
        """The level with the fewest observations, whose reference points say most about what more would bring."""
        return min(self.fits, key=lambda which: self.fits[which].n) if self.fits else None


def pooled(fit: Fit, model: Additive, obs: Observations, level: float) -> Run:
    """One model for all."""
    return Run(model, obs, fit, level=level, notes=fit.notes, save=fit.save, summary=fit.summary())


def grouped(each: Any, model: Additive, obs: Observations, level: float) -> Run:
    """The fits of `un.fit_each`."""

    def mean(label: str) -> Columns:
        table = each.effect(label, which="mean", level=level)
        return {name: np.asarray(table[name]) for name in table}

    return Run(
        model,
        obs,
        each.group,
        each.fits,
        each.by,
        level,
        mean if len(each.fits) > 1 else None,
        each.grids,
        each.failures,
        tuple(dict.fromkeys((*obs.notes, *each.notes))),
        each.save,
        each.summary(),
    )


def effects_table(run: Run) -> Columns:
    """Long table: by, term, each covariate under its own name, estimate, se, se_reference, lower, upper."""
    parts: list[tuple[str, str, Columns, tuple[str, ...]]] = []
    names: dict[str, None] = {}
    for which, fit in run.everything.items():
        assert fit.smooths is not None
        for label in run.labels:
            table = run.effect(label, which)
            own = tuple(name for name in table if name not in _NUMBERS)
            names |= dict.fromkeys(own)
            parts.append((which, label, table, own))
    text = {name for _, _, table, own in parts for name in own if np.asarray(table[name]).dtype.kind not in "fiub"}
    out: dict[str, list[Any]] = {name: [] for name in ("by", "term", *names, *_KEPT)}
    for which, label, table, own in parts:
        rows = len(table["estimate"])
        out["by"].append(np.full(rows, which, dtype=object))
        out["term"].append(np.full(rows, label, dtype=object))
        for name in names:
            absent = np.full(rows, "", dtype=object) if name in text else np.full(rows, np.nan)
            out[name].append(np.asarray(table[name]) if name in own else absent)
        for name in _KEPT:
            out[name].append(table[name])
    return {name: np.concatenate(columns) for name, columns in out.items()}


_KEPT = ("estimate", "se", "se_reference", "lower", "upper")
_NUMBERS = (*_KEPT, "se_sampling")


def parameters_table(run: Run) -> Columns:
    """Smooth terms (edf, reference df, statistic, p) and parameters (estimate, se, lower, upper), for each fit."""
    z = normal_quantile(run.level)
    rows: list[dict[str, Any]] = []
    for which, fit in run.everything.items():
        part = fit.smooths
        if part is not None:
            table = {name: np.asarray(values).tolist() for name, values in part.table.items()}
            for i, label in enumerate(table.get("term", ())):
                kind = "normaliser" if label in part.normaliser_labels else "effect"
                smooth = {name: table[name][i] for name in ("edf", "ref_df", "statistic", "p") if name in table}
                rows.append({"by": which, "n": fit.n, "term": label, "kind": kind, **smooth})
        for name, value, se in zip(fit.names, fit.estimate, fit.se if fit.names else ()):
            bounds = {"lower": value - z * se, "upper": value + z * se}
            rows.append(
                {"by": which, "n": fit.n, "term": name, "kind": "parameter", "estimate": value, "se": se, **bounds}
            )
    numbers = ("edf", "ref_df", "statistic", "p", "estimate", "se", "lower", "upper")
    return {
        **{name: np.array([row[name] for row in rows], dtype=object) for name in ("by", "n", "term", "kind")},
        **{name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in numbers},
    }
