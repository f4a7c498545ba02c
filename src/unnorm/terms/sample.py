"""The rows of a term's covariates, summarised: points with weights that stand for the data when a basis is set up.

Up to a few thousand distinct rows are kept as they are. Beyond, rows are gathered into cells and each cell is its
centroid, which moves a basis column's mean by O(h²) of the cell width h: about 5e-8 of its size with the 2,048 cells
in 1-D, 1e-4 with the 45 × 45 cells in 2-D. The functions a term can take do not depend on it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._base.threads import apart
from ..errors import DataError, TermError, warn
from .base import Columns
from .long_columns import LONG, cell_sums, extremes, ranked

_CELLS_1D = 2048  # distinct values kept as they are, and cells beyond that
_CELLS = 2048  # the same in 2 and 3 dimensions
_LONG = 10_000  # rows whose sorting takes longer than a thread takes to wake
_COMPILED = 65_536  # rows from which a compiled pass gains more than importing Numba takes
_ROWS = 4096  # among which knots are placed in 2 and 3 dimensions
_LARGE = 20_000  # rows beyond which each knot of a surface costs more than it gains
_ALL = 300  # distinct rows that are all made knots
_FAR = 3e4  # times its range from zero: a column's squares then leave a digit less than the criterion needs
SMALLEST, LARGEST = 1e-40, 1e40  # a column's range: squares of its cubes must be numbers, and not zero


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
    thin: np.ndarray  # (·, d) data rows at even steps, among which knots are placed

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    def mean(self, columns: np.ndarray) -> np.ndarray:
        return self.weights @ columns


def numeric(columns: Columns, name: str, what: str) -> np.ndarray:
    """Column `name` as float64, or an error that says which term wanted it."""
    column = column_of(columns, name, what)
    if column.dtype.kind not in "iuf":
        kind = {"b": "booleans"}.get(column.dtype.kind, "text or other objects")
        raise DataError(
            f"{what} needs numbers in column {name!r}; it holds {kind}. "
            f"Use factor({name}) for categories, or convert the column."
        )
    return column.astype(np.float64, copy=False)


def column_of(columns: Columns, name: str, what: str) -> np.ndarray:
    """Column `name` as an array of one value a row; objects that are all numbers become floats."""
    if name not in columns:
        raise DataError(f"{what} needs column {name!r}; the data have {', '.join(map(repr, columns)) or 'none'}.")
    column = np.asarray(columns[name])
    if column.ndim != 1:
        raise DataError(f"{what} needs one value a row in column {name!r}; got an array of shape {column.shape}.")
    if column.dtype.kind == "O" and column.size and all(isinstance(v, int | float | np.number) for v in column[:50]):
        with contextlib.suppress(TypeError, ValueError):
            column = column.astype(np.float64)
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
    if not SMALLEST <= high - low <= LARGEST:
        how = "underflow" if high - low < SMALLEST else "overflow"
        raise DataError(
            f"{what}: column {name!r} spans {high - low:.3g}, whose powers {how}. Measure it in other units."
        )


def check_digits(low: float, high: float, name: str, what: str) -> None:
    """Say where a column that enters as it is lies so far from zero that squares of it hide how it varies: the
    criterion is off by .0005 at `_FAR` times its range, and by 100 times as much at ten times that."""
    far = max(abs(low), abs(high)) / (high - low)
    if far > _FAR:
        unit = 10.0 ** np.ceil(np.log10(high - low))
        middle = unit * np.round(0.5 * (low + high) / unit)
        sign = "-" if middle > 0.0 else "+"
        warn(
            f"{what}: column {name!r} lies {far:.1g} times its range from zero, and digits are lost in its squares. "
            f"Take a constant from it: I({name} {sign} {abs(middle):.15g}), which moves the intercept there."
        )


def sorted_unique(x: np.ndarray) -> np.ndarray:
    """The distinct values in order (a plain sort: several times quicker than a hash for floats)."""
    with apart() if x.size > _LONG else contextlib.nullcontext():
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
    lower, upper = (np.array(ends) for ends in zip(*(extremes(x) for x in data)))
    for x, name, low, high in zip(data, names, lower, upper):
        check_finite(low, high, x, name, what)
    return (_one if len(data) == 1 else _several)(tuple(names), data, lower, upper)


def _one(names: tuple[str, ...], data: list[np.ndarray], lower: np.ndarray, upper: np.ndarray) -> Sample:
    (x,) = data
    thin = x[:: max(1, x.size // (2 * _CELLS_1D))]  # a few thousand rows tell continuous from rounded data
    few = _CELLS_1D // 2
    if thin.size == x.size or (sorted_unique(thin[: 5 * few // 4]).size < few and sorted_unique(thin).size < few):
        values, counts = np.unique(x, return_counts=True)
        if values.size <= _CELLS_1D:
            return Sample(names, values[:, None], counts / x.size, lower, upper, values.size, True, values[:, None])
    if x.size >= _COMPILED or "numba" in sys.modules:
        counts, sums = cell_sums(x, lower[0], _CELLS_1D / (upper[0] - lower[0]), _CELLS_1D)
    else:
        cell = ((x - lower[0]) * (_CELLS_1D / (upper[0] - lower[0]))).astype(np.int32)
        np.minimum(cell, _CELLS_1D - 1, out=cell)
        counts = np.bincount(cell, minlength=_CELLS_1D)
        sums = np.bincount(cell, weights=x, minlength=_CELLS_1D)
    full = counts > 0
    points = sums[full] / counts[full]
    points[0], points[-1] = lower[0], upper[0]  # the largest row sum of the design is at an end, as a rule
    return Sample(names, points[:, None], counts[full] / x.size, lower, upper, _CELLS_1D // 2, False, points[:, None])


def _several(names: tuple[str, ...], data: list[np.ndarray], lower: np.ndarray, upper: np.ndarray) -> Sample:
    n, dim = data[0].size, len(data)
    new = np.zeros(n, dtype=bool)  # rows of one context lie together: one row for each run of equal rows
    new[0] = True
    for x in data:
        new[1:] |= x[1:] != x[:-1]
    first = np.flatnonzero(new)
    runs: np.ndarray | None = None
    if 2 * first.size <= n:
        runs, data = np.diff(first, append=n), [x[first] for x in data]
    rows = data[0].size
    thin = some_rows(data, _ROWS)
    if rows <= 2 * _CELLS or len(distinct_rows(thin[:: max(1, len(thin) // _CELLS)])[0]) <= _CELLS // 4:
        points, which = distinct_rows(np.column_stack(data))
        if len(points) <= _CELLS:
            return Sample(names, points, np.bincount(which, weights=runs) / n, lower, upper, len(points), True, points)
    side = round(_CELLS ** (1 / dim))
    code = np.zeros(rows, dtype=np.int32)
    for x, low, high in zip(data, lower, upper):
        cell = ((x - low) * (side / (high - low))).astype(np.int32)
        code *= side
        code += np.minimum(cell, side - 1, out=cell)
    counts = np.bincount(code, weights=runs, minlength=side**dim)
    full = counts > 0
    sums = [np.bincount(code, weights=x if runs is None else runs * x, minlength=side**dim)[full] for x in data]
    points = np.column_stack(sums) / counts[full, None]
    return Sample(names, points, counts[full] / n, lower, upper, int(full.sum()), False, thin)


def some_rows(data: list[np.ndarray], most: int) -> np.ndarray:
    """About `most` rows, at most twice as many: the same values in whatever order the rows come.

    A row is taken where a hash of its values is small, so that copies of a row are taken together: where that leaves
    too few different ones, some copies of more rows are taken.
    """
    n = data[0].size
    if n <= most:
        return np.column_stack(data)
    mixed = np.zeros(n, dtype=np.uint64)
    for x in data:
        mixed ^= (x + 0.0).view(np.uint64)  # −0 is 0
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    taken = most
    while True:
        rows = np.flatnonzero((mixed >> np.uint64(11)) < np.uint64(min(1.0, taken / n) * 2.0**53))
        if taken >= min(n, 64 * most) or np.unique(mixed[rows]).size >= most // 2:
            break
        taken *= 4
    if rows.size > 2 * most:  # many copies: evenly among them in the hash's order
        rows = rows[np.argsort(mixed[rows], kind="stable")][:: rows.size // most]
    return np.column_stack([x[rows] for x in data])


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows in order, and which of them each row is."""
    order = np.argsort(rows[:, 0])
    ordered = rows[order]
    same = ordered[1:, 0] == ordered[:-1, 0]
    if same.any():  # their other columns tell
        ties = np.zeros(len(rows), dtype=bool)
        ties[1:] = same
        ties[:-1] |= same
        tied = order[ties]
        order[ties] = tied[np.lexsort(rows[tied].T[::-1])]
        ordered = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(rows), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return ordered[new], which


def quantile_knots(
    columns: Columns, name: str, what: str, k: int, ends: tuple[float, float] | None = None
) -> np.ndarray:
    """k knots at evenly spaced ranks of the distinct values, interpolated between neighbours (mgcv's place for
    `cr` and `cc`)."""
    x = numeric(columns, name, what)
    low, high = extremes(x) if x.size >= LONG else (0.0, 0.0)
    if 0.0 < high - low < np.inf:
        knots, distinct = ranked(x, () if ends is None else [float(end) for end in ends], k)
    else:
        values = sorted_unique(x if ends is None else np.concatenate([np.asarray(ends), x]))
        distinct = values.size
        place = np.linspace(0, distinct - 1, k)
        below = place.astype(np.int64)
        knots = values[below] + (place - below) * (values[np.minimum(below + 1, distinct - 1)] - values[below])
    if distinct < k:
        raise TermError(f"{what}: k={k} knots need as many distinct values of {name!r}; there are {distinct}. Lower k.")
    return knots


def drawn(columns: Columns, names: Sequence[str], most: int) -> np.ndarray:
    """At most so many of the distinct rows (r, d), drawn at random with a fixed seed."""
    rows, _ = distinct_rows(np.column_stack([numeric(columns, name, "max_knots") for name in names]))
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(1).choice(len(rows), most, replace=False))]


def most_knots(dim: int, k: int, rows: int) -> int:
    """Thin-plate knots for large tables; the measurement is in `gathered`."""
    if dim == 1:
        return 200 if k <= 25 else max(120, 3 * k)
    return max(200, 5 * k) if rows > _LARGE else max(400, 8 * k)


def gathered(sample: Sample, most: int, every: int = _ALL) -> tuple[np.ndarray, np.ndarray]:
    """Knots (r, d) and their shares (r,): every distinct row with share one, or means of about `most` groups of rows
    where there are more than `every` of them.

    Groups are cut at ranks of the first covariate, then within each slab of the next, and are smaller towards the ends
    (ranks (1 − cos πt)/2), where data are sparse and splines bend; in one dimension the two end points are knots
    themselves. A share is the group's size, and weights the eigenproblem.

    Measured on curves and surfaces that k functions only just hold (edf near k: the hardest case), rms distance of the
    fit from the one with every one of 2,000 rows as a knot, in standard errors (uniform, normal, log-normal rows):
    1-D, k = 10, 200 knots: .005, .002, .003 (80 knots: .03, .02, .21); k = 40, 120 knots: .008, .016, .011.
    2-D, k = 50, 400 knots: .15, .09, .24; 200 knots: .5, .2, .2. With smoothing that binds, as in the 29,148 rows of a
    fixation model (subject 10 of the benchmark), s(px, py, k=40) on 200 knots is .001 away. So surfaces in tables of up
    to 5,000 rows get every row. As many knots drawn at random are far worse: 1-D, k = 10, 200 knots: 1 to 5.
    """
    if sample.exact and len(sample.points) <= max(most, every):
        return sample.points, np.ones(len(sample.points))
    rows, weights = sample.thin, np.full(len(sample.thin), 1 / len(sample.thin))
    if sample.dim == 1 and not sample.exact:  # distinct values count once, as in mgcv
        weights = sample.weights
    side = int(most ** (1 / sample.dim))
    cuts = [most // side ** (sample.dim - 1)] + [side] * (sample.dim - 1)
    group = np.zeros(len(rows), dtype=np.int64)
    for j, parts in enumerate(cuts):
        if j > 0 or not (sample.exact or sample.dim == 1):  # these are in order
            order = np.lexsort(
                (*rows.T[::-1], rows[:, j], group)
            )  # other covariates decide ties, not the table's order
            rows, weights, group = rows[order], weights[order], group[order]
        mass = np.bincount(group, weights=weights)
        before = np.cumsum(mass) - mass
        rank = (np.cumsum(weights) - weights / 2 - before[group]) / np.where(mass > 0, mass, 1)[group]
        place = np.arccos(1 - 2 * np.clip(rank, 0, 1)) / np.pi
        group = group * parts + np.minimum((place * parts).astype(np.int64), parts - 1)
    if sample.dim == 1:  # the ends by themselves: beyond the last knot a spline is a straight line
        group += 1
        group[0], group[-1] = 0, group.max() + 1
    size = np.bincount(group, weights=weights)
    full = size > 0
    means = np.column_stack([np.bincount(group, weights=weights * x)[full] for x in rows.T]) / size[full, None]
    if sample.dim == 1:
        means[0], means[-1] = rows[0], rows[-1]  # to the last digit
    return means, size[full] * full.sum()
