"""Rows for `gam`: columns out of the user's table, checked, with missing values refused or dropped by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.frames import Column, Table
from ..errors import DataError, InputError, listing, unknown
from ..terms import arithmetic
from ..terms.base import BuiltTerm, Columns
from ..terms.levels import Category, level_name


@dataclass(frozen=True)
class TableRows:
    """What a fit reads of the rows kept, and sentences on those that were not."""

    y: np.ndarray
    columns: Mapping[str, np.ndarray]
    weights: np.ndarray | None
    offset: np.ndarray | None
    groups: np.ndarray | None
    notes: tuple[str, ...]
    categories: Mapping[str, Category] = field(default_factory=dict)  # columns whose levels have an order of their own


def categories(columns: Mapping[str, Column]) -> dict[str, Category]:
    """The declared levels of those columns that have any."""
    return {
        name: Category(tuple(levels), column.ordered)
        for name, column in columns.items()
        if column.declared and (levels := _labels(column)) is not None
    }


def _labels(column: Column) -> list[str] | None:
    """The levels of a column of labels; a category of numbers is one, as R's factor(1:3) is."""
    if column.order is not None:
        return [level_name(level) for level in column.order]
    return None if column.levels is None else column.levels.tolist()


def covariates(table: Table, names: Iterable[str], role: str) -> dict[str, Column]:
    """The named columns, or those computed from others ("log(x)"); an unknown one is an error that lists those there
    are."""
    names = tuple(names)
    if names:
        named(table, names)
    return {name: column(table, name, role) for name in names}


def named(table: Table, names: Sequence[str]) -> None:
    """Refuse an array without names of columns."""
    if table.bare:
        raise DataError(
            f"The data must be a table with the columns {listing(names)}; got an array, whose columns have no names. "
            "Pass a mapping from names to columns, e.g. {" + f"{names[0]!r}: values" + "}, or a data frame."
        )


def has(table: Table, name: str) -> bool:
    """Whether the table has the column, or what it is computed from."""
    return name in table.names or (
        arithmetic.is_arithmetic(name) and all(one in table.names for one in arithmetic.needs(name))
    )


def column(table: Table, ref: Any, role: str) -> Column:
    """A column by name, computed where its name is arithmetic on others; or an array of n values."""
    if not isinstance(ref, str) or ref in table.names or not arithmetic.is_arithmetic(ref):
        return table.column(ref, role)
    read = {name: table.column(name, role) for name in arithmetic.needs(ref)}
    for name, one in read.items():
        if not one.numeric:
            raise DataError(f"{ref}: arithmetic needs numbers, and column {name!r} holds {one.kind}.")
    masks = [one.missing for one in read.values() if one.missing is not None]
    missing = np.logical_or.reduce(masks) if masks else None
    plain = {name: np.asarray(one.data, dtype=np.float64) for name, one in read.items()}
    made = arithmetic.values(ref, plain, missing)
    return Column(ref, made if missing is None else np.where(missing, np.nan, made), missing)


def values(columns: Mapping[str, Column], keep: np.ndarray | slice = slice(None)) -> dict[str, np.ndarray]:
    """The columns as arrays: numbers as float64, text as labels."""
    return {name: _values(column, keep) for name, column in columns.items()}


def _values(column: Column, keep: np.ndarray | slice) -> np.ndarray:
    taken = column.take(keep)
    if column.order is not None:
        values, which = np.unique(taken, return_inverse=True)
        return np.array([level_name(value) for value in values.tolist()])[which]
    return taken.astype(np.float64) if column.kind == "floats" and taken.dtype != np.float64 else taken


def complete(columns: Mapping[str, Column], what: str) -> None:
    """Refuse missing and infinite values in rows that have to be predicted."""
    for name, column in columns.items():
        if column.missing is not None:
            raise DataError(
                f"{what}: column {name!r} is missing in {int(column.missing.sum())} of {column.data.size} rows. "
                "Drop or fill these rows first."
            )
        if column.kind == "floats" and not np.all(np.isfinite(column.data)):
            raise DataError(f"{what}: column {name!r} has infinite values. Drop or replace them first.")


def numbers(table: Table, ref: Any, role: str) -> Column:
    """A numeric column by name, or an array of one number a row (a single number is repeated)."""
    if isinstance(ref, int | float | np.number) and not isinstance(ref, bool):
        if not np.isfinite(ref):
            raise DataError(f"{role} must be a finite number, an array or a column's name; got {ref!r}.")
        return Column(role, np.full(table.n, float(ref)))
    found = column(table, ref, role)
    if not found.numeric:
        remedy = " Recode it, e.g. labels to 0 and 1." if role == "response" else ""
        raise DataError(f"{role} must be numeric; column {found.name!r} holds {found.kind}.{remedy}")
    return found


def proportions(table: Table, response: str) -> tuple[Column, Column] | None:
    """y = k/(k + f) and the trials k + f of a response "cbind(k, f)"; None for any other."""
    pair = None if response in table.names else arithmetic.counts(response)
    if pair is None:
        return None
    k, f = (numbers(table, one, "response") for one in pair)
    masks = [one.missing for one in (k, f) if one.missing is not None]
    missing = np.logical_or.reduce(masks) if masks else None
    parts = [np.asarray(one.data, dtype=np.float64) for one in (k, f)]
    here = slice(None) if missing is None else ~missing
    for part, name in zip(parts, pair):
        if np.any(part[here] < 0.0):
            raise DataError(f"{response}: {name} must not be negative; the smallest is {part[here].min():g}.")
    trials = parts[0] + parts[1]
    y = np.divide(parts[0], trials, out=np.zeros_like(trials), where=trials > 0)
    return Column(response, y, missing), Column("trials", trials, missing)


def read(
    table: Table, response: str, names: Iterable[str], weights: Any, offset: Any, groups: Any, missing: str, what: str
) -> TableRows:
    """Everything the fit needs from the table, copied: what is done to the table later is not done to the fit.
    missing="error" refuses, "drop" leaves rows out and says how many."""
    if missing not in ("error", "drop"):
        raise InputError(unknown("missing", missing, ("error", "drop")))
    if table.n == 0:
        raise DataError("The table has no rows.")
    names = tuple(names)
    named(table, (response, *names))
    pair = proportions(table, response)
    y = numbers(table, response, "response") if pair is None else pair[0]
    read_ = covariates(table, names, what)
    w = None if weights is None else numbers(table, weights, "weights")
    if pair is not None:
        w = pair[1] if w is None else _times(w, pair[1])
    o = None if offset is None else _total(table, offset)
    g = None if groups is None else table.column(groups, "groups")
    used = {response: y, **read_, **{c.name: c for c in (w, o, g) if c is not None}}
    gone = {name: _gone(column) for name, column in used.items()}
    gone = {name: mask for name, mask in gone.items() if mask is not None}
    keep: np.ndarray | slice = slice(None)
    notes: tuple[str, ...] = ()
    if gone:
        counts = ", ".join(f"{name!r}: {int(mask.sum())}" for name, mask in gone.items())
        lost = np.logical_or.reduce(list(gone.values()))
        if missing == "error":
            raise DataError(
                f"{int(lost.sum())} of {table.n} rows have missing or infinite values ({counts}). "
                "Pass missing='drop' to leave them out, or fill them first."
            )
        if lost.all():
            raise DataError(f"Every row has a missing or infinite value ({counts}): no row is left to fit.")
        keep = ~lost
        notes = (f"{int(lost.sum())} of {table.n} rows were left out: missing or infinite values in {counts}.",)
    if w is not None:
        _check_weights(w.take(keep))
    return TableRows(
        np.array(y.take(keep), dtype=np.float64),
        {name: one if one.dtype.kind == "U" else np.array(one) for name, one in values(read_, keep).items()},
        None if w is None else np.array(w.take(keep), dtype=np.float64),
        None if o is None else np.array(o.take(keep), dtype=np.float64),
        None if g is None else g.codes()[0][keep],
        notes,
        categories(read_),
    )


def _times(a: Column, b: Column) -> Column:
    masks = [one.missing for one in (a, b) if one.missing is not None]
    return Column(a.name, a.data * b.data, np.logical_or.reduce(masks) if masks else None)


def _total(table: Table, offset: Any) -> Column:
    """The sum of offsets: those of the formula, and the argument's."""
    parts = [numbers(table, one, "offset") for one in (offset if isinstance(offset, tuple) else (offset,))]
    if len(parts) == 1:
        return parts[0]
    masks = [one.missing for one in parts if one.missing is not None]
    total = np.sum([np.asarray(one.data, dtype=np.float64) for one in parts], axis=0)
    return Column("offset", total, np.logical_or.reduce(masks) if masks else None)


def _gone(column: Column) -> np.ndarray | None:
    gone = column.missing
    if column.kind == "floats":
        infinite = np.isinf(column.data)
        if infinite.any():
            gone = infinite if gone is None else gone | infinite
    return gone


def _check_weights(w: np.ndarray) -> None:
    if np.any(w < 0.0):
        raise DataError(f"weights must not be negative; {int(np.sum(w < 0.0))} are, the smallest {w.min():g}.")


LEAST, MOST = 1e-16, 1e100  # of the mean weight: beyond, criteria lose digits, and then the curve


def check_total(weight: float, rows: int) -> None:
    """Refuse weights that are zero in every row of the table (in a part of it they may be), or too small or large to
    compute with: their sum, and the rows where they are not zero."""
    if not rows:
        raise DataError("weights are zero in every row: there is nothing to fit.")
    if not LEAST <= weight / rows <= MOST:
        raise DataError(
            f"weights are {weight / rows:.3g} on average, and must lie between {LEAST:g} and {MOST:g}: beyond, sums of "
            "squares lose their digits. Divide them by their mean (of a Gaussian response this changes the scale and "
            "nothing else)."
        )


def plus_fixed(offset: np.ndarray | None, terms: Sequence[BuiltTerm], columns: Columns) -> np.ndarray | None:
    """The known part of η: the offset, and what terms know without coefficients (a soap film's boundary values)."""
    for term in terms:
        found = term.fixed(columns) if set(term.covariates) <= columns.keys() else None
        if found is not None:
            offset = found if offset is None else offset + found
    return offset
