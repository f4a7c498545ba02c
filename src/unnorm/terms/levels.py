"""Categories: the levels of a column, and which level each row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.categories import Category, Level
from ..errors import DataError
from .base import Columns
from .sample import column_of

__all__ = ["Category", "Level", "codes", "is_category", "level_name", "levels_of", "unseen"]


def is_category(columns: Columns, name: str, what: str) -> bool:
    """Whether the column holds text, booleans or other objects (numbers are read as numbers unless `factor(name)`
    is written)."""
    return column_of(columns, name, what).dtype.kind not in "iuf"


def _plain(value: Any) -> Level:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | bool) else str(value)


def _runs(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row of each run of equal values, and each row's run: rows of one subject mostly lie together."""
    new = np.ones(column.size, dtype=bool)
    new[1:] = column[1:] != column[:-1]
    return np.flatnonzero(new), np.cumsum(new) - 1


def levels_of(columns: Columns, name: str, what: str, category: Category | None = None) -> tuple[Level, ...]:
    """The distinct values: in the category's own order, else sorted (numbers by size, text by code points)."""
    column = column_of(columns, name, what)
    if column.size == 0:
        raise DataError(f"{what}: the data have no rows.")
    first, _ = _runs(column)
    found = set(column[first].tolist())
    if any(value is None or value != value for value in found):
        missing = sum(value is None or value != value for value in column.tolist())
        raise DataError(
            f"{what}: column {name!r} has {missing} missing of {column.size} values. Drop those rows first."
        )
    plain: set[Any] = {_plain(value) for value in found}
    if category is not None and plain <= set(category.levels):
        return tuple(level for level in category.levels if level in plain)
    try:
        return tuple(sorted(plain))
    except TypeError:
        return tuple(sorted(plain, key=str))


def level_name(level: object) -> str:
    """The level as it stands in a label: 3.0 is '3'."""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


def codes(columns: Columns, name: str, levels: Sequence[Level], what: str) -> np.ndarray:
    """(n,) position of each row's value among the levels, −1 where it is none of them."""
    column = column_of(columns, name, what)
    if column.size == 0:
        return np.zeros(0, dtype=np.int64)
    first, run = _runs(column)
    position: dict[Any, int] = {level: i for i, level in enumerate(levels)}
    names = {level_name(level): i for i, level in enumerate(levels)}  # a saved table may hold '3' where the data had 3
    at = np.array(
        [position.get(v, names.get(level_name(v), -1)) for v in map(_plain, column[first].tolist())], dtype=np.int64
    )
    return at[run]


def unseen(columns: Columns, name: str, at: np.ndarray) -> list[Level]:
    """The values that are no level."""
    return sorted({_plain(v) for v in np.asarray(columns[name])[at < 0].tolist()}, key=str)
