"""Columns of a table in their roles: the outcome, covariates, groups, weights, and what is missing of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._base import frames
from .._base.categories import Category
from .._base.column_checks import any_missing, check_finite, check_numeric
from .._base.frames import Column, Missing, Table
from .._base.words import at_row
from ..errors import DataError, InputError, listing, unknown

COMPACT = 2**24  # entries of a byte array from which its outcomes stay bytes


def lag_suffix(lag: int) -> str:
    """What the name of the point `lag` steps before ends in: `_prev`, `_prev2`, …"""
    return "_prev" if lag == 1 else f"_prev{lag}"


def compact(data: Any) -> np.ndarray | None:
    """A large array of single bytes (bool, int8, uint8) as int8: binary vectors of which float64 would hold eight times
    the memory. None for any other data, and for values above 127."""
    plain = isinstance(data, np.ndarray) and not isinstance(data, np.ma.MaskedArray)
    if not plain or data.ndim != 2 or data.dtype.names is not None:
        return None
    if data.dtype.itemsize > 1 or data.dtype.kind not in "bui" or data.size < COMPACT:
        return None
    data = np.ascontiguousarray(data)
    return None if data.dtype.kind == "u" and data.max() > 127 else data.view(np.int8)


def stand_ins(table: Table, y: str | Sequence[str] | None) -> list[Column]:
    """Columns with the outcome's names and no values, where the values are kept as one array."""
    names = column_names(y, "y") or table.names
    if len(names) != len(table.names):
        raise DataError(f"The array has {len(table.names)} columns, but y= names {len(names)}: {listing(names)}.")
    nothing = np.broadcast_to(np.zeros(1), (table.n,))
    return [Column(name, nothing) for name in names]


def extra_columns(
    table: Table, extra: Any, names: tuple[str, ...], lags: int
) -> tuple[dict[str, Column], dict[str, Column]]:
    """The columns that join the context, under names that the outcomes and their earlier values leave free: those of
    y_t's row, and those of the row before it (`duration_prev`)."""
    start, before = lag_suffix(1), {}
    if isinstance(extra, Mapping):
        extras = {name: replace(table.column(values, "extra"), name=name) for name, values in extra.items()}
    else:
        wanted = column_names(extra, "extra")
        bases = {name: name.removesuffix(start) for name in wanted if name not in table.names}
        known = set(table.names) - {*names}
        before = {name: table.column(base, "extra") for name, base in bases.items() if base in known}
        extras = {name: table.column(name, "extra") for name in wanted if name not in before}
    check_finite([*extras.values(), *before.values()])
    earlier = [name + lag_suffix(lag) for lag in range(1, lags + 1) for name in names]
    if taken := [name for name in extras if name in (*names, *earlier)]:
        raise DataError(f"extra={listing(taken)} clashes with the outcome and its earlier values; rename the column.")
    return extras, before


def refuse_missing_bits(outcome: Sequence[Column]) -> None:
    """Binary vectors with missing entries can do without them, and the error says so."""
    holes = [column for column in outcome if column.missing is not None and column.missing.any()]
    if len(outcome) < 2 or not holes:
        return
    seen = (column.data if column.missing is None else column.data[~column.missing] for column in outcome)
    if not all(np.isin(values, (0, 1)).all() for values in seen):
        return
    mask: Any = holes[0].missing
    gone = int(any_missing(outcome, mask.size).sum())
    raise DataError(
        f"Entries of {gone:,} of {mask.size:,} binary vectors are missing, the first {holes[0].name!r} of "
        f"{at_row(int(np.argmax(mask)))}. Pass missing='keep' to fit the others of each vector, or "
        "missing='drop' to leave these vectors out."
    )


def holes_of(outcome: Sequence[Column], row: np.ndarray) -> tuple[np.ndarray | None, str | None]:
    """(n, d) which entries of the outcome are missing, and the note that says how many; None where none is."""
    none = np.zeros(row.size, dtype=bool)
    holes = np.column_stack([none if column.missing is None else column.missing[row] for column in outcome])
    if not holes.any():
        return None, None
    share, whole_rows = holes.mean(), int(holes.all(axis=1).sum())
    note = f"{int(holes.sum()):,} of {holes.size:,} entries of the outcome ({share:.1%}) are missing and were kept."
    if whole_rows:
        note += f" Of {whole_rows:,} rows nothing was observed."
    return holes, note


def read_table(data: Any, missing: Missing) -> Table:
    if missing not in ("error", "drop", "keep"):
        raise InputError(unknown("missing", missing, ("error", "drop", "keep")))
    table = frames.table(data)
    if table.n == 0:
        raise DataError("The data have no rows.")
    return table


def column_names(names: str | Sequence[str] | None, role: str) -> tuple[str, ...]:
    given = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if odd := [name for name in given if not isinstance(name, str)]:
        raise DataError(f"{role} must be a column name or a tuple of column names; got {listing(odd)}.")
    if twice := frames.duplicates(given):
        raise DataError(f"{role} names {listing(twice)} more than once.")
    return given


def outcome_columns(table: Table, y: str | Sequence[str] | None) -> list[Column]:
    """The outcome's columns, numeric and finite; the names of a bare array are `y`'s where given."""
    names = column_names(y, "y")
    if not names and not table.bare:
        raise DataError(
            f"y must name the outcome's column or columns; the columns are {listing(table.names, most=40)}."
        )
    if table.bare and names and len(names) != len(table.names):
        raise DataError(f"The array has {len(table.names)} columns, but y= names {len(names)}: {listing(names)}.")
    if table.bare:
        columns = [replace(table.read(name), name=new) for name, new in zip(table.names, names or table.names)]
    else:
        columns = [table.column(name, "y") for name in names]
    check_numeric(columns, "y")
    check_finite(columns)
    return columns


def covariate_columns(table: Table, x: Any) -> dict[str, Column]:
    if x is None:
        raise DataError("x must name the covariates' columns, or give their values where the outcomes are an array.")
    if isinstance(x, Mapping):
        columns = {name: replace(table.column(values, "x"), name=name) for name, values in x.items()}
    elif isinstance(x, str) or (isinstance(x, list | tuple) and x and all(isinstance(name, str) for name in x)):
        columns = {name: table.column(name, "x") for name in column_names(x, "x")}
    else:
        other = frames.table(x)
        if other.n != table.n:
            raise DataError(f"x must have {table.n} rows, as the outcomes have; got {other.n}.")
        columns = {name: replace(other.read(name), name=name) for name in other.names}
        if other.bare:
            columns = {"x" + name[1:]: replace(column, name="x" + name[1:]) for name, column in columns.items()}
    check_finite(columns.values())
    return columns


def declared(columns: Mapping[str, Column]) -> dict[str, Category]:
    """The levels of those columns that have an order of their own; of a category of numbers they are numbers."""
    out = {}
    for name, column in columns.items():
        levels = column.order if column.levels is None else column.levels.tolist()
        if column.declared and levels is not None:
            out[name] = Category(tuple(levels), column.ordered)
    return out


def group_columns(table: Table, group: Any) -> dict[str, Column]:
    if group is None:
        return {}
    if isinstance(group, Mapping):
        return {name: replace(table.column(values, "group"), name=name).whole() for name, values in group.items()}
    if isinstance(group, str) or (isinstance(group, list | tuple) and all(isinstance(name, str) for name in group)):
        return {name: table.column(name, "group").whole() for name in column_names(group, "group")}
    return {"group": table.column(group, "group").whole()}


def attached(table: Table, weight: Any, offset: Any) -> list[Column]:
    """The weight and offset columns, numeric and finite, weights not negative."""
    columns = [table.column(ref, role) for ref, role in ((weight, "weight"), (offset, "offset")) if ref is not None]
    check_numeric(columns, "weight=, offset")
    check_finite(columns)
    if weight is not None:
        negative = np.flatnonzero(columns[0].data < 0)
        if negative.size:
            raise DataError(
                f"Column {columns[0].name!r} holds weights and must not be negative: {negative.size:,} are, first "
                f"{at_row(negative[0])}."
            )
    return columns


def weight_at(table: Table, ref: Any, row: np.ndarray) -> np.ndarray | None:
    if ref is None:
        return None
    values = table.column(ref, "weight").data[row].astype(np.float64)
    if not values.any():
        raise DataError("Every weight is zero; at least one must be positive.")
    return values


def offset_at(table: Table, ref: Any, row: np.ndarray) -> np.ndarray | None:
    return None if ref is None else table.column(ref, "offset").data[row].astype(np.float64)
