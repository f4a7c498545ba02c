"""One fitted curve of one covariate as cubics on even cells: a point costs ten nanoseconds, whatever the basis.

A spline with thousands of break points needs a search among them for every point. The table's cell is found by a
multiplication; its cubic passes through the curve at four points. Cells are made smaller until the error, measured
between these points, is below `ERROR` of the curve's range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from ..errors import hush
from .base import BuiltTerm, Columns

CELLS, MOST_CELLS = 1024, 16_384  # tried first; a table of half a megabyte
ERROR = 1e-9  # of the curve's range
WIDER = 0.1  # of the breaks' range on either side: from there on a term says that it is extrapolated
_TIMES = np.array([0.0, 1 / 3, 2 / 3, 1.0])
_FROM_VALUES = np.linalg.inv(_TIMES[:, None] ** np.arange(4))  # values at four points of a cell → powers of t
_BETWEEN = np.array([0.13, 0.5, 0.87])

Curve = Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True)
class CurveTable:
    """The curve between `low` and `high`, or all round its period."""

    low: float
    high: float
    periodic: bool
    powers: np.ndarray  # (cells, 4): those of t in [0, 1)

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The curve at x, and which x lie beyond the table's ends (their values mean nothing); None: none does."""
        cells, beyond = len(self.powers), None
        u = x - self.low
        if self.periodic and u.size and not (u.min() >= 0.0 and u.max() < self.high - self.low):
            np.mod(u, self.high - self.low, out=u)
        u *= cells / (self.high - self.low)
        if u.size and not (u.min() >= 0.0 and u.max() <= cells):
            beyond = np.flatnonzero(~((u >= 0.0) & (u <= cells)))  # nan is
            u[beyond] = 0.0
        cell = u.astype(np.intp)
        np.minimum(cell, cells - 1, out=cell)
        u -= cell
        powers = self.powers.take(cell, axis=0)
        out = powers[:, 3] * u
        for k in (2, 1):
            out += powers[:, k]
            out *= u
        out += powers[:, 0]
        return out, beyond


def curve_table(term: BuiltTerm, curve: Curve) -> CurveTable | None:
    """The table of a term's curve; None where the term is no spline of one covariate, or too rough for a table."""
    if term.breaks is None or len(term.covariates) != 1 or len(term.breaks) < 2:
        return None
    low, high = float(term.breaks[0]), float(term.breaks[-1])
    if term.period:
        high = low + term.period
    else:
        low, high = low - WIDER * (high - low), high + WIDER * (high - low)
    cells = CELLS
    while cells <= MOST_CELLS:
        first, width = low + (high - low) / cells * np.arange(cells), (high - low) / cells
        at = (first[:, None] + width * np.concatenate([_TIMES, _BETWEEN])).ravel()
        values = curve(at).reshape(cells, -1)
        powers = values[:, :4] @ _FROM_VALUES.T
        error = np.max(np.abs(powers @ (_BETWEEN[:, None] ** np.arange(4)).T - values[:, 4:]))
        if error <= ERROR * max(float(np.ptp(values)), 1e-300):
            return CurveTable(low, high, bool(term.period), np.ascontiguousarray(powers))
        cells *= 4
    return None


def combined(term: BuiltTerm, beta: np.ndarray, columns: Columns, table: CurveTable | None = None) -> np.ndarray:
    """(n,) `term.design(columns) @ beta`, from the table where there is one; zero where a row lacks the covariate."""
    if table is None:
        return term.design(columns) @ beta
    (name,) = term.covariates
    x = np.asarray(columns[name], dtype=np.float64)
    gone = np.flatnonzero(np.isnan(x)) if term.partial else np.empty(0, dtype=np.intp)
    if len(gone):
        x = x.copy()
        x[gone] = table.low
    out, beyond = table(x)
    if beyond is not None:
        with hush():
            out[beyond] = term.design({name: x[beyond]}) @ beta
        term.warn_if_far({name: x})
    out[gone] = 0.0
    return out
