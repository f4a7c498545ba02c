"""One term's effect as a table: where to look at it, the estimate, its standard error and bands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .._base import numerics
from .._base.frames import table as as_table
from ..errors import DataError, InputError, listing
from . import gam_rows, inference

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns

POINTS = {1: 100, 2: 40, 3: 15}  # grid points a covariate, by the number of numeric covariates
FINE = 100  # where the picture has a boundary
MOST = 20_000  # points of a grid
ROWS = 100  # rows of the data in place of a grid that would have more
SLICE = 100  # values of the other covariates over which a slice averages to zero


def coordinates(term: BuiltTerm) -> tuple[str, ...]:
    """The covariates that a term is a function of: not its `by`, nor the factor whose level it belongs to."""
    aside = {term.by, term.level[0] if term.level is not None else None}
    return tuple(name for name in term.covariates if name not in aside)


def is_numeric(column: np.ndarray) -> bool:
    return column.dtype.kind in "fiub"


def factors(term: BuiltTerm, columns: Columns) -> list[str]:
    """Those of its coordinates that are labels, whatever they look like: levels may be numbers."""
    return [name for name in coordinates(term) if name in term.own_levels or not is_numeric(columns[name])]


def numbers(term: BuiltTerm, columns: Columns) -> list[str]:
    """The others: those that are numbers to the term."""
    labelled = factors(term, columns)
    return [name for name in coordinates(term) if name not in labelled]


def is_random(term: BuiltTerm) -> bool:
    """A random effect proper: exchangeable coefficients, an identity penalty."""
    if term.parametric or len(term.penalties) != 1 or term.null_dim or term.smooth_covariates:
        return False
    S = term.penalties[0].block
    return bool(np.array_equal(S, S[0, 0] * np.eye(len(S))))


def grid(term: BuiltTerm, columns: Columns) -> dict[str, np.ndarray]:
    """Equally spaced points over the range of each numeric covariate, crossed with every level of a factor; rows of the
    data where that would be too many points."""
    names = coordinates(term)
    numeric = numbers(term, columns)
    count = FINE if term.outline else POINTS.get(len(numeric), 8)
    axes: list[np.ndarray] = []
    for name in names:
        if name in numeric:
            low, high = float(np.nanmin(columns[name])), float(np.nanmax(columns[name]))  # nan: a row that lacks it
            axes.append(np.linspace(low, high, count) if high > low else np.array([low]))
        else:
            axes.append(_levels(term, name, columns))
    if len(axes) == 1:
        return {names[0]: axes[0]}
    if math.prod(axis.size for axis in axes) > MOST:
        whole = complete_rows(term, {name: np.asarray(columns[name]) for name in names})
        n = len(whole[names[0]])
        rows = np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(np.int64))
        return {name: whole[name][rows] for name in names}
    index = list(product(*(range(axis.size) for axis in axes)))
    where = np.array(index, dtype=np.int64).reshape(len(index), len(axes))
    return {name: axis[where[:, i]] for i, (name, axis) in enumerate(zip(names, axes))}


def _levels(term: BuiltTerm, name: str, columns: Columns) -> np.ndarray:
    """Every level of a factor in its own order: the first of a parametric one has no coefficient, but an effect."""
    levels = term.own_levels.get(name)
    return np.unique(columns[name]) if levels is None else np.asarray(levels)


def complete_rows(term: BuiltTerm, columns: Columns) -> Columns:
    """The rows that have every covariate of the term: a step of length zero has no direction."""
    lacking = [np.isnan(columns[name]) for name in term.partial]
    if not any(one.any() for one in lacking):
        return columns
    here = ~np.logical_or.reduce(lacking)
    return {name: values[here] for name, values in columns.items()}


def read_at(term: BuiltTerm, at: Any) -> dict[str, np.ndarray]:
    """The user's own points for a term: a table with its covariates, or an array where it has only one."""
    names = coordinates(term)
    table_like = isinstance(at, Mapping) or hasattr(at, "columns") or hasattr(at, "column_names")
    if len(names) == 1 and not table_like:  # a pandas Series has keys, and is no table
        at = {names[0]: np.atleast_1d(np.asarray(at))}
    table = as_table(at)
    absent = [name for name in names if not gam_rows.has(table, name)]
    if absent:
        if table.bare:
            gam_rows.named(table, names)
        raise DataError(
            f"at= for {term.label!r} needs the columns {listing(names)}; got {listing(table.names, most=40)}."
        )
    given = [name for name in term.covariates if gam_rows.has(table, name)]
    columns = gam_rows.covariates(table, given, "at")
    gam_rows.complete(columns, "at=")
    return gam_rows.values(columns)


def design(term: BuiltTerm, points: Columns) -> np.ndarray:
    """The term's columns at these points; a numeric `by` not among them is 1, a factor `by` the term's own level."""
    return term.design(completed(term, points))


def design_within(term: BuiltTerm, points: Columns, fixed: tuple[str, ...], grid: Columns) -> np.ndarray:
    """The term's columns less their mean over the grid's values of its other covariates, `fixed` as at the point.

    Of te(y, z) a likelihood with a constant for each z sees how f varies with y, and not its level.
    """
    others = [name for name in coordinates(term) if name not in fixed]
    over = np.unique(np.stack([np.asarray(grid[name], float) for name in others], axis=1), axis=0)
    over = over[np.unique(np.linspace(0, len(over) - 1, min(len(over), SLICE)).astype(np.int64))]
    here = np.stack([np.asarray(points[name], float) for name in fixed], axis=1)
    at, back = np.unique(here, axis=0, return_inverse=True)
    means = np.empty((len(at), term.size))
    for begin in range(0, len(at), SLICE):
        some = at[begin : begin + SLICE]
        rows = {name: np.tile(over[:, j], len(some)) for j, name in enumerate(others)}
        rows |= {name: np.repeat(some[:, j], len(over)) for j, name in enumerate(fixed)}
        means[begin : begin + SLICE] = design(term, rows).reshape(len(some), len(over), -1).mean(axis=1)
    C = design(term, {name: points[name] for name in coordinates(term)}) - means[back.ravel()]
    return C if term.by is None or term.by not in points else C * np.asarray(points[term.by], float)[:, None]


def completed(term: BuiltTerm, points: Columns) -> Columns:
    """The points with every column that the term reads."""
    n = next(iter(points.values())).size
    full = dict(points)
    if term.by is not None and term.by not in full:
        full[term.by] = np.ones(n)
    if term.level is not None and term.level[0] not in full:
        full[term.level[0]] = np.full(n, term.level[1])
    return full


def check_band(level: float, simultaneous: bool, unconditional: bool) -> None:
    """What bands are asked for."""
    check_level(level)
    numerics.flag(simultaneous, "simultaneous")
    numerics.flag(unconditional, "unconditional")


def check_level(level: float) -> None:
    if not isinstance(level, int | float | np.number) or not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1; got {level!r}. Pass e.g. level=0.95.")


def effect(
    term: BuiltTerm, points: Columns, beta: np.ndarray, V: np.ndarray, level: float, simultaneous: bool, rng: Any
) -> dict[str, np.ndarray]:
    """Columns of the effect table: the points, estimate, se, lower, upper."""
    C = design(term, points)
    estimate, se = C @ beta, inference.standard_errors(C, V)
    if simultaneous:
        width = inference.simultaneous_multiplier(C, V, level, numerics.generator(rng))
    else:
        width = float(ndtri(0.5 * (1.0 + level)))
    band = {"estimate": estimate, "se": se, "lower": estimate - width * se, "upper": estimate + width * se}
    return {**points, **raised(band, known(term, points))}


def known(term: BuiltTerm, points: Columns) -> np.ndarray | None:
    """What the term is at these points whatever its coefficients (a film's boundary values); None where nothing."""
    return term.fixed(completed(term, points))


def raised(band: dict[str, np.ndarray], by: np.ndarray | None) -> dict[str, np.ndarray]:
    """The band about what is known as well."""
    return band if by is None else {name: one if name == "se" else one + by for name, one in band.items()}


def far_from_data(points: Columns, columns: Columns, names: tuple[str, ...], distance: float = 0.1) -> np.ndarray:
    """Grid points farther than a tenth of the range from any row, as in mgcv's `plot` (too.far = 0.1)."""
    from scipy.spatial import KDTree

    def unit(source: Columns) -> np.ndarray:
        return np.column_stack([(source[n] - columns[n].min()) / (np.ptp(columns[n]) or 1.0) for n in names])

    seen = unit(columns)
    if seen.shape[0] > 20_000:  # enough rows to know where the data lie
        seen = seen[:: seen.shape[0] // 20_000 + 1]
    gap, _ = KDTree(seen).query(unit(points))
    return np.asarray(gap) > distance
