"""Any C² cubic spline with given breaks, written in B-splines: four non-zeros a row, X = B C.

C is found by interpolating the term's own `design` at the Greville sites (de Boor 1978, ch. XIII), so that the engine
needs to know nothing of the basis but its breaks; the error of X = B C is measured at other sites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

_TIMES = np.array([0.0, 1 / 3, 2 / 3, 1.0])
_FROM_VALUES = np.linalg.inv(_TIMES[:, None] ** np.arange(4))  # values at four points of a cell → powers of t


# Of a column's largest value (docs/performance.md), and where more cells cost nothing.
# 2e-4 moves no estimate by .001 se, but the criterion by up to .03 nats where counts are large (250 rows, edf 39 of
# 40).
_THIN = 2e-4, 1e-5


@dataclass(frozen=True)
class LocalBasis:
    """Breaks b_0 < … < b_G; the G+3 B-splines as cubics of t on every cell; and C (G+3, p)."""

    breaks: np.ndarray
    period: float  # 0: none
    poly: np.ndarray  # (G, 4, 4): power of t, function
    coefficients: np.ndarray  # C
    error: float  # largest |X − B C| between the sites, over the largest |X|


def with_empty_cell(basis: LocalBasis) -> LocalBasis:
    """One more cell, number G, on which every function is zero: rows without a value of the covariate lie there."""
    poly = np.concatenate([basis.poly, np.zeros((1, 4, 4))])
    coefficients = np.concatenate([basis.coefficients, np.zeros((1, basis.coefficients.shape[1]))])
    return replace(basis, poly=poly, coefficients=coefficients)


def _values(knots: np.ndarray, span: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The four B-splines that live on each span, at points of it (Cox–de Boor), (len(at), 4)."""
    value = np.zeros((4, at.size))
    value[0] = 1.0
    right = [knots[span + r] - at for r in (1, 2, 3)]
    left = [at - knots[span - r] for r in (0, 1, 2)]
    for degree in range(1, 4):
        saved = 0.0
        for r in range(degree):
            part = value[r] / (right[r] + left[degree - 1 - r])
            value[r] = saved + right[r] * part
            saved = left[degree - 1 - r] * part
        value[degree] = saved
    return np.ascontiguousarray(value.T)


@dataclass(frozen=True)
class Margin:
    """The B-splines on some breaks: their cubics on every cell, and the Greville sites with the values there."""

    breaks: np.ndarray
    period: float  # 0: none
    poly: np.ndarray  # (G, 4, 4): power of t, function
    knots: np.ndarray
    sites: np.ndarray  # (G + 3,)
    site_cells: np.ndarray
    site_values: np.ndarray  # (G + 3, 4)


def margin(breaks: np.ndarray, period: float | None) -> Margin:
    """The B-splines on these breaks."""
    return _with_points(np.ascontiguousarray(breaks, dtype=np.float64), period, np.arange(0), np.empty(0))[0]


def _with_points(
    breaks: np.ndarray, period: float | None, cells: np.ndarray, points: np.ndarray
) -> tuple[Margin, np.ndarray]:
    """The B-splines on these breaks, and the four that live on each of `cells`, at a point of it."""
    count = breaks.size - 1
    knots = np.concatenate([np.repeat(breaks[0], 3), breaks, np.repeat(breaks[-1], 3)])
    each = (breaks[:-1, None] + np.diff(breaks)[:, None] * _TIMES).ravel()
    sites = (knots[1 : count + 4] + knots[2 : count + 5] + knots[3 : count + 6]) / 3.0
    of_sites = breaks[1:-1].searchsorted(sites, side="right")
    cell = np.concatenate([np.repeat(np.arange(count), 4), of_sites, cells])
    found = _values(knots, cell + 3, np.concatenate([each, sites, points]))
    at_each, at_sites, at_points = np.split(found, [each.size, each.size + sites.size])
    poly = np.matmul(_FROM_VALUES, at_each.reshape(count, 4, 4))
    return Margin(breaks, float(period or 0.0), poly, knots, sites, of_sites, at_sites), at_points


@dataclass(frozen=True)
class _Checked:
    """A margin, and three points of every cell with the B-splines there."""

    margin: Margin
    cells: np.ndarray  # of the points
    points: np.ndarray
    values: np.ndarray  # (·, 4)


def _checked(breaks: np.ndarray) -> _Checked:
    cells = np.tile(np.arange(breaks.size - 1), 3)
    points = np.concatenate([breaks[:-1] + np.diff(breaks) * part for part in (0.15, 0.5, 0.85)])
    one, values = _with_points(breaks, None, cells, points)
    return _Checked(one, cells, points, values)


@lru_cache(maxsize=64)
def _even(cells: int) -> _Checked:
    """Of cells of length one: those of other even breaks are the same functions of t."""
    return _checked(np.arange(cells + 1.0))


def _interpolate(
    breaks: np.ndarray,
    design: Callable[[np.ndarray], np.ndarray],
    scale: np.ndarray | None = None,
    even: bool = False,
) -> tuple[np.ndarray, np.ndarray, float]:
    """(cubics on every cell, C, error between the sites) of the B-splines on the breaks, the error of each column over
    its `scale`: its largest value, or what is given."""
    from .matrix_kernels import solve_sites

    cells = breaks.size - 1
    seen = _even(cells) if even else _checked(breaks)
    one, at = seen.margin, np.concatenate([seen.margin.sites, seen.points])
    if even:
        at = np.minimum(breaks[0] + ((breaks[-1] - breaks[0]) / cells) * at, breaks[-1])
    columns = np.asarray(design(at), dtype=np.float64)
    coefficients = solve_sites(one.site_cells, one.site_values, columns[: cells + 3].copy())
    error = -columns[cells + 3 :]
    for k in range(4):
        error += seen.values[:, k, None] * coefficients[seen.cells + k]
    largest = np.abs(columns).max(axis=0) if scale is None else scale
    return one.poly, coefficients, float(np.max(np.abs(error).max(axis=0) / np.where(largest > 0, largest, 1.0)))


def _least(size: int) -> int:
    """Even cells for so many columns."""
    return max(24, 4 * size)


def thins(breaks: np.ndarray, size: int) -> bool:
    """Whether `local_basis` tries even breaks for the columns, as there are many more breaks."""
    return _least(size) < 0.75 * (breaks.size - 1)


def local_basis(
    breaks: np.ndarray,
    period: float | None,
    design: Callable[[np.ndarray], np.ndarray],
    size: int,
    fine: bool = False,
) -> LocalBasis:
    """The B-spline form of the `size` columns design(x). Where there are many more breaks than columns (thin plates:
    every knot is one), even breaks do as well: 4 to 16 cells a column, as many as it takes to be within `_THIN` of
    every column's largest value; where rows are few, of its mean square over the breaks, which are rows: of a skewed
    covariate most rows lie where a column is far below its largest value."""
    breaks = np.ascontiguousarray(breaks, dtype=np.float64)
    cells = _least(size)
    thin = fine and thins(breaks, size)
    scale = np.sqrt(np.mean(np.asarray(design(breaks)) ** 2, axis=0)) if thin else None
    while cells < 0.75 * (breaks.size - 1):
        even = np.linspace(breaks[0], breaks[-1], cells + 1)
        poly, coefficients, error = _interpolate(even, design, scale, even=True)
        if error <= _THIN[fine]:
            return LocalBasis(even, float(period or 0.0), poly, coefficients, error)
        cells = (3 * cells) // 2
    poly, coefficients, error = _interpolate(breaks, design)
    return LocalBasis(breaks, float(period or 0.0), poly, coefficients, error)
