"""A `Gam` with many levels that are alike: combinations of its coefficients row by row, without the zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .._base import numerics
from .level_covariance import LevelCovariance, LevelRows, LevelUnconditional
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .gam_result import Gam


def covariance(fit: Gam, unconditional: bool) -> LevelCovariance:
    """V_β, or V_c, by blocks."""
    if not unconditional:
        return fit.smoothed.levels
    found = fit.required_unconditional()
    assert isinstance(found, LevelUnconditional)
    return found.parts


def rows_of(fit: Gam, columns: Columns, rows: int, labels: Sequence[str]) -> LevelRows:
    """The rows of X, in the engine's coordinates: columns of other terms are zero, their covariates are not read."""
    out = _nothing(fit, rows)
    if INTERCEPT in labels:
        out.shared[:, 0] = 1.0
    for term in fit.terms:
        if term.label in labels:
            _add(fit, term, {name: columns[name] for name in term.covariates}, out)
    return out


def term_rows(fit: Gam, term: BuiltTerm, columns: Columns) -> LevelRows:
    """The same of one term."""
    out = _nothing(fit, len(columns[term.covariates[0]]))
    _add(fit, term, columns, out)
    return out


def _nothing(fit: Gam, rows: int) -> LevelRows:
    design = fit.smoothed.design
    assert design.own is not None
    s, k = int(design.penalties.starts[1]), design.own.width
    return LevelRows(np.zeros((rows, s)), np.zeros((rows, k)), np.full(rows, -1, np.int64))


def _add(fit: Gam, term: BuiltTerm, columns: Columns, out: LevelRows) -> None:
    """Put the term's columns in their places, in `out`."""
    design = fit.smoothed.design
    for place in design.placements:
        if place.term < 0 or design.terms[place.term] is not term:
            continue
        if not place.every:
            out.shared[:, place.flat] = term.design(columns) @ place.rotation
            continue
        of, x = term.level_rows(columns)
        s = out.shared.shape[1]
        out.own[:, place.flat.start - s : place.flat.stop - s] = x @ place.rotation
        known = of >= 0
        out.level[known] = np.argsort(place.user[:, 0])[of[known]]  # blocks lie in the order of the rows' levels


def banded(
    fit: Gam, rows: LevelRows, unconditional: bool, level: float, simultaneous: bool, rng: Any
) -> dict[str, np.ndarray]:
    """estimate, se, lower and upper of the rows' combinations."""
    V = covariance(fit, unconditional)
    estimate, se = rows.dot(fit.smoothed.design.to_flat(fit.smoothed.beta)), V.errors(rows)
    width = V.multiplier(rows, level, numerics.generator(rng)) if simultaneous else float(ndtri(0.5 * (1.0 + level)))
    return {"estimate": estimate, "se": se, "lower": estimate - width * se, "upper": estimate + width * se}
