"""The rows of a term's covariates, summarised: points with weights that stand for the data when a basis is set up.

Up to a few thousand distinct rows are kept as they are. Beyond, rows are gathered into cells and each cell is its centroid, which moves a
basis column's mean by O(h²) of the cell width h (1-D: 4,096 cells, relative 1e-8; 2-D: 45 × 45 cells, 1e-4). The function space does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError, TermError
from .base import Columns

_CELLS_1D = 4096  # distinct values kept as they are, and cells beyond that
_CELLS = 2048  # the same in 2 and 3 dimensions


@dataclass(frozen=True, eq=False)
class Sample:
    """Points (r, d) with weights (r,) summing to one, the data's box, and up to `distinct` different rows."""

    names: tuple[str, ...]
    points: np.ndarray
    weights: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    distinct: int  # exact while small, else a lower bound
    exact: bool  # the points are all the distinct rows

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    def mean(self, columns: np.ndarray) -> np.ndarray:
        return self.weights @ columns


def numeric(columns: Columns, name: str, what: str) -> np.ndarray:
    """Column `name` as float64, or an error that says which term wanted it."""
    column = _column(columns, name, what)
    if column.dtype.kind not in "iuf":
        kind = {"b": "booleans"}.get(column.dtype.kind, "text or other objects")
        raise DataError(
            f"{what} needs numbers in column {name!r}; it holds {kind}. Use factor({name}) for categories, or convert the column."
        )
    return column.astype(np.float64, copy=False)


def _column(columns: Columns, name: str, what: str) -> np.ndarray:
    if name not in columns:
        raise DataError(f"{what} needs column {name!r}; the data have {', '.join(map(repr, columns)) or 'none'}.")
    column = np.asarray(columns[name])
    if column.ndim != 1:
        raise DataError(f"{what} needs one value a row in column {name!r}; got an array of shape {column.shape}.")
    if column.dtype.kind == "O" and column.size and all(isinstance(v, int | float | np.number) for v in column[:50]):
        try:
            column = column.astype(np.float64)
        except (TypeError, ValueError):
            pass
    return column


def check_finite(low: float, high: float, column: np.ndarray, name: str, what: str) -> None:
    if not (np.isfinite(low) and np.isfinite(high)):
        bad = int(np.sum(~np.isfinite(column)))
        raise DataError(
            f"{what}: column {name!r} has {bad} missing or infinite of {column.size} values. Drop those rows first."
        )
    if low == high:
        raise TermError(
            f"{what}: column {name!r} is constant ({low:g}), so nothing can be estimated. Leave the term out."
        )


def sorted_unique(x: np.ndarray) -> np.ndarray:
    """The distinct values in order (a plain sort: several times quicker than a hash for floats)."""
    ordered = np.sort(x)
    new = np.empty(ordered.size, dtype=bool)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def summarise(columns: Columns, names: Sequence[str], what: str) -> Sample:
    """The sample of these numeric columns."""
    data = [numeric(columns, name, what) for name in names]
    sizes = {column.size for column in data}
    if len(sizes) > 1:
        raise DataError(f"{what}: its columns have different lengths {sorted(sizes)}. Give one value a row in each.")
    if data[0].size == 0:
        raise DataError(f"{what}: the data have no rows.")
    lower, upper = np.array([x.min() for x in data]), np.array([x.max() for x in data])
    for x, name, low, high in zip(data, names, lower, upper):
        check_finite(low, high, x, name, what)
    return (_one if len(data) == 1 else _several)(tuple(names), data, lower, upper)


def _one(names: tuple[str, ...], data: list[np.ndarray], lower: np.ndarray, upper: np.ndarray) -> Sample:
    (x,) = data
    thin = x[:: max(1, x.size // (2 * _CELLS_1D))]  # a few thousand rows tell continuous from rounded data
    if thin.size == x.size or sorted_unique(thin).size < _CELLS_1D // 2:
        values, counts = np.unique(x, return_counts=True)
        if values.size <= _CELLS_1D:
            return Sample(names, values[:, None], counts / x.size, lower, upper, values.size, True)
    cell = ((x - lower[0]) * (_CELLS_1D / (upper[0] - lower[0]))).astype(np.int32)
    np.minimum(cell, _CELLS_1D - 1, out=cell)
    counts = np.bincount(cell, minlength=_CELLS_1D)
    sums = np.bincount(cell, weights=x, minlength=_CELLS_1D)
    full = counts > 0
    points = sums[full] / counts[full]
    points[0], points[-1] = lower[0], upper[0]  # the largest row sum of the design is at an end, as a rule
    return Sample(names, points[:, None], counts[full] / x.size, lower, upper, _CELLS_1D // 2, False)


def _several(names: tuple[str, ...], data: list[np.ndarray], lower: np.ndarray, upper: np.ndarray) -> Sample:
    n, dim = data[0].size, len(data)
    new = np.zeros(n, dtype=bool)  # rows of one context lie together: one row for each run of equal rows
    new[0] = True
    for x in data:
        new[1:] |= x[1:] != x[:-1]
    first = np.flatnonzero(new)
    runs = np.diff(first, append=n)
    rows = np.column_stack([x[first] for x in data])
    if len(rows) <= 8 * _CELLS:
        rows, where = np.unique(rows, axis=0, return_inverse=True)
        runs = np.bincount(where.ravel(), weights=runs)
    if len(rows) <= _CELLS:
        return Sample(names, rows, runs / n, lower, upper, len(rows), True)
    side = int(round(_CELLS ** (1 / dim)))
    code = np.zeros(len(rows), dtype=np.int64)
    for j in range(dim):
        cell = ((rows[:, j] - lower[j]) * (side / (upper[j] - lower[j]))).astype(np.int64)
        code = code * side + np.minimum(cell, side - 1)
    counts = np.bincount(code, weights=runs, minlength=side**dim)
    full = counts > 0
    points = (
        np.column_stack([np.bincount(code, weights=runs * x, minlength=side**dim)[full] for x in rows.T])
        / counts[full, None]
    )
    return Sample(names, points, counts[full] / n, lower, upper, len(np.unique(code)), False)


def quantile_knots(
    columns: Columns, name: str, what: str, k: int, ends: tuple[float, float] | None = None
) -> np.ndarray:
    """k knots at evenly spaced ranks of the distinct values, interpolated between neighbours (mgcv's place for `cr` and `cc`)."""
    x = numeric(columns, name, what)
    values = sorted_unique(x if ends is None else np.concatenate([np.asarray(ends), x]))
    if values.size < k:
        raise TermError(
            f"{what}: k={k} knots need as many distinct values of {name!r}; there are {values.size}. Lower k."
        )
    return np.interp(np.linspace(0, values.size - 1, k), np.arange(values.size), values)


def spread(columns: Columns, names: Sequence[str], sample: Sample, most: int) -> np.ndarray:
    """At most `most` knots (r, d) that lie as the data do: every distinct row, else evenly spaced ranks along x or a Morton curve."""
    if sample.exact and len(sample.points) <= most:
        return sample.points
    if sample.dim == 1:  # ranks of the values (mgcv draws at random among them)
        if sample.exact:
            share = np.linspace(0, 1, len(sample.points))
        else:
            share = np.cumsum(sample.weights) - sample.weights / 2
            share = (share - share[0]) / (share[-1] - share[0])
        return np.interp(np.linspace(0, 1, most), share, sample.points[:, 0])[:, None]
    data = [np.asarray(columns[name], dtype=np.float64) for name in names]
    step = max(1, data[0].size // 8192)
    rows = np.unique(np.column_stack([x[::step] for x in data]), axis=0)
    if len(rows) <= most:
        return rows
    bits = np.minimum(((rows - sample.lower) / (sample.upper - sample.lower) * 1024).astype(np.int64), 1023)
    code = np.zeros(len(rows), dtype=np.int64)
    for b in range(10):
        for j in range(sample.dim):
            code |= ((bits[:, j] >> b) & 1) << (sample.dim * b + j)
    order = np.argsort(code, kind="stable")
    return rows[order[((np.arange(most) + 0.5) * (len(rows) / most)).astype(np.int64)]]
