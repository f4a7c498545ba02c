"""The engine's entry points: `build_design` (terms × columns → rows), `smooth_fit` (one problem), `fit_many` (several)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .smoothed import INTERCEPT, Smoothed

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .design import Design

__all__ = ["INTERCEPT", "Smoothed", "build_design", "fit_many", "smooth_fit"]


def build_design(
    terms: Sequence[BuiltTerm],
    columns: Columns,
    *,
    intercept: bool = True,
    context: np.ndarray | None = None,
) -> Design:
    """Rows in compact form. `context` (n,) integers: rows of one context share the covariates of context-level terms.

    Without it, contexts are found where a term's covariates take at most n/4 distinct combinations.
    """
    raise NotImplementedError


def smooth_fit(
    design: Design,
    y: np.ndarray,
    family: str = "binomial",
    *,
    weights: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    method: str = "REML",
    sp: Mapping[str, float] | Sequence[float] | None = None,
    groups: np.ndarray | None = None,
    folds: int = 10,
    rng: Any = 0,
    start: Smoothed | None = None,
    threads: int | None = None,
    max_outer: int = 200,
) -> Smoothed:
    """Fit one penalised model and choose its smoothing parameters.

    y, weights, offset: in the caller's row order, as `columns` were. `sp`: smoothing parameters that the user fixes, by penalty
    label or one per penalty (negative = estimate), on top of the terms' own `fixed_sp`. `groups` (n,), `folds`, `rng` serve method="CV"
    (rows of one group, by default of one context, stay together). `start`: a fit of the same design to start from.

    Raises NotIdentifiedError (rank deficiency, names the terms), NoEstimateError (separation, names the term); warns UnnormWarning
    where it stops before convergence (also in `.converged`, `.reason`).
    """
    raise NotImplementedError


def fit_many(problems: Sequence[Mapping[str, Any]], *, threads: int | None = None) -> list[Smoothed]:
    """Independent problems on all cores: each a mapping with `terms`, `columns` (or `design`) and `smooth_fit`'s arguments."""
    raise NotImplementedError
