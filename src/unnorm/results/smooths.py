"""The smooth side of a fit: f's and χ's terms with their coefficients and errors, light enough to be saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.intervals import quantile
from .._base.numerics import flag, quadratic_forms
from ..engine import gam_effects
from ..engine.gam_result import Gam
from ..engine.smoothed import INTERCEPT
from ..errors import InputError, hush, unknown
from ..inference.sandwich import ErrorParts, Robust
from ..solvers.base import FittedTerms
from ..terms import from_dict as term_from_dict
from ..terms.base import BuiltTerm, Columns
from ..terms.curves import CurveTable, combined, curve_table

CHUNK = 16_384  # rows at a time: what is held of them stays in the cache
TABULATED = 20_000  # rows from which a table is made of each curve, which are then read from it
NO_ROBUST = "Robust errors were not computed with these errors: fit again with un.fit, which computes them when asked."


@dataclass(frozen=True)
class SmoothPart:
    """η = β₀ + Σ_j f_j(x_j): f is the sum of the model's terms, χ = β₀ + the normaliser's terms.

    Each smooth sums to zero over the fitted rows, so that β₀, and with it χ, carries the level.
    """

    terms: tuple[BuiltTerm, ...]
    model_labels: tuple[str, ...]
    normaliser_labels: tuple[str, ...]
    slices: Mapping[str, slice]
    beta: np.ndarray
    errors: ErrorParts  # covariances of all coefficients
    grids: Mapping[str, Mapping[str, np.ndarray]]  # label → where to look at the effect
    edf: Mapping[str, float]
    sp: Mapping[str, float]
    table: Mapping[str, np.ndarray]  # term, edf, ref_df, statistic, p
    score: float
    method: str
    gam: Gam | None = field(default=None, repr=False)  # the additive fit itself; not saved
    within: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # label → covariates of the context, as in te(y, z)
    _tables: dict[str, CurveTable | None] = field(init=False, default_factory=dict, repr=False, compare=False)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Those that the terms of f name."""
        return tuple(dict.fromkeys(name for label in self.model_labels for name in self.term(label).covariates))

    def term(self, label: str) -> BuiltTerm:
        for term in self.terms:
            if term.label == label.replace(" ", ""):
                return term
        raise InputError(unknown("label", label, [term.label for term in self.terms]))

    def effect(
        self, label: str, at: Any = None, level: float = 0.95, zero: Columns | None = None, robust: bool = False
    ) -> dict[str, np.ndarray]:
        """Columns: the covariates, estimate, se, se_sampling, se_reference, lower, upper.

        `zero`: rows over which the effect averages to zero; default those fitted, data and reference points alike. An
        effect of y and z, where z belongs to the context, averages to zero over the grid of y at each z.
        `robust`: se and band from the robust covariance, without the parts of se, which assume the model.
        """
        total, df = robust_covariance(self.errors) if flag(robust, "robust") else (self.errors.total, None)
        term = self.term(label)
        points = dict(self.grids[term.label]) if at is None else gam_effects.read_at(term, at)
        C = columns_shown(self, term, points)
        if zero is not None and term.label not in self.within:
            own = {name: np.asarray(zero[name]) for name in gam_effects.coordinates(term)}
            C = C - gam_effects.design(term, gam_effects.complete_rows(term, own)).mean(axis=0)
        span = self.slices[term.label]
        z = quantile(level, df)
        estimate = C @ self.beta[span]
        parts = {} if robust else {"se_sampling": self.errors.sampling, "se_reference": self.errors.reference}
        shown = {
            name: np.sqrt(np.maximum(quadratic_forms(C, V[span, span]), 0.0))
            for name, V in {"se": total, **parts}.items()
        }
        se = shown["se"]
        return {**points, "estimate": estimate, **shown, "lower": estimate - z * se, "upper": estimate + z * se}

    def f(self, columns: Columns) -> np.ndarray:
        """Σ of the model's terms at rows."""
        return self._sum(self.model_labels, columns)

    @property
    def level(self) -> float:
        """β₀."""
        return float(self.beta[self.slices[INTERCEPT]][0])

    def chi(self, columns: Columns, rows: int) -> np.ndarray:
        """χ = β₀ + Σ of the normaliser's terms at rows."""
        return self.level + (self._sum(self.normaliser_labels, columns) if self.normaliser_labels else np.zeros(rows))

    def _sum(self, labels: tuple[str, ...], columns: Columns) -> np.ndarray:
        rows = len(next(iter(columns.values())))
        out = np.zeros(rows)
        for label in labels:
            term = self.term(label)
            beta, table = self.beta[self.slices[label]], self._table(label, rows)
            for begin in range(0, rows, CHUNK):
                here = slice(begin, begin + CHUNK)
                out[here] += combined(term, beta, {name: columns[name][here] for name in term.covariates}, table)
        return out

    def _table(self, label: str, rows: int) -> CurveTable | None:
        """The term's curve as a table, once there are rows enough."""
        if label not in self._tables and rows >= TABULATED:
            term, beta = self.term(label), self.beta[self.slices[label]]
            with hush():  # a table reaches beyond the data
                self._tables[label] = curve_table(term, lambda x: term.design({term.covariates[0]: x}) @ beta)
        return self._tables.get(label)

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON-ready description and arrays."""
        about = {
            "terms": [term.to_dict() for term in self.terms],
            "model_labels": list(self.model_labels),
            "normaliser_labels": list(self.normaliser_labels),
            "slices": {label: [s.start, s.stop] for label, s in self.slices.items()},
            "edf": dict(self.edf),
            "sp": dict(self.sp),
            "score": self.score,
            "method": self.method,
            "columns": list(self.table),
            "grids": {label: list(grid) for label, grid in self.grids.items()},
            "within": {label: list(names) for label, names in self.within.items()},
        }
        about["errors"], errors = saved_errors(self.errors, "smooth.")
        arrays = {
            "smooth.beta": self.beta,
            **errors,
            **{f"smooth.table.{name}": np.asarray(values) for name, values in self.table.items()},
            **{
                f"smooth.grid.{i}.{j}": np.asarray(values)
                for i, grid in enumerate(self.grids.values())
                for j, values in enumerate(grid.values())
            },
        }
        return about, arrays

    @classmethod
    def load(cls, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> SmoothPart:
        """What `save` described."""
        grids = {
            label: {name: arrays[f"smooth.grid.{i}.{j}"] for j, name in enumerate(names)}
            for i, (label, names) in enumerate(about["grids"].items())
        }
        return cls(
            terms=tuple(term_from_dict(one) for one in about["terms"]),
            model_labels=tuple(about["model_labels"]),
            normaliser_labels=tuple(about["normaliser_labels"]),
            slices={label: slice(*ends) for label, ends in about["slices"].items()},
            beta=arrays["smooth.beta"],
            errors=loaded_errors(about["errors"], arrays, "smooth."),
            grids=grids,
            edf=about["edf"],
            sp=about["sp"],
            table={name: arrays[f"smooth.table.{name}"] for name in about["columns"]},
            score=float(about["score"]),
            method=about["method"],
            within={label: tuple(names) for label, names in about["within"].items()},
        )


def columns_shown(part: SmoothPart | FittedTerms, term: BuiltTerm, points: Columns) -> np.ndarray:
    """The columns of a term's effect at these points: its own, or less a level where the likelihood sees none."""
    fixed = part.within.get(term.label)
    if fixed is None:
        return gam_effects.design(term, points)
    return gam_effects.design_within(term, points, fixed, part.grids[term.label])


def smooth_part(fitted: FittedTerms, errors: ErrorParts, table: Mapping[str, np.ndarray]) -> SmoothPart:
    """The terms that a solver fitted, with their errors and tests."""
    given = {
        name: getattr(fitted, name) for name in FittedTerms.__dataclass_fields__ if name not in ("edf1", "anchored")
    }
    return SmoothPart(**given, errors=errors, table=table)


def robust_covariance(errors: ErrorParts) -> tuple[np.ndarray, float | None]:
    """The robust covariance and the degrees of freedom of its intervals; a sentence where there is none."""
    if errors.robust is None:
        raise InputError(NO_ROBUST)
    if errors.robust.refusal is not None:
        raise InputError(errors.robust.refusal)
    return errors.robust.covariance, errors.robust.df


def saved_errors(errors: ErrorParts, prefix: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What to store: a description, and the covariances as arrays, the robust one or the sentence why there is none."""
    arrays = {f"{prefix}{name}": getattr(errors, name) for name in ("total", "sampling", "reference")}
    about: dict[str, Any] = {"points": errors.points, "robust": False, "df": None, "refusal": NO_ROBUST}
    if (robust := errors.robust) is not None:
        about |= {"robust": robust.refusal is None, "df": robust.df, "refusal": robust.refusal}
        if robust.refusal is None:
            arrays[f"{prefix}robust"] = robust.covariance
    return about, arrays


def loaded_errors(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str) -> ErrorParts:
    """What `saved_errors` stored."""
    matrix = arrays[f"{prefix}robust"] if about["robust"] else np.empty((0, 0))
    robust = Robust(lambda: matrix, about["df"], about["refusal"])
    parts = (arrays[f"{prefix}{name}"] for name in ("total", "sampling", "reference"))
    return ErrorParts(*parts, points=bool(about["points"]), robust=robust)
