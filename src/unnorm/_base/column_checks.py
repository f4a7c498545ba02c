"""What columns must be: numbers, finite, complete. Checks name the column, the count, the first row and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import DataError
from .files import reads_as_number
from .frames import Column, Missing
from .words import at_row, option, row_number, rows_count


def check_numeric(columns: Iterable[Column], role: str, what: str = "numeric") -> None:
    """Columns of text are refused; `what`: what else they must be."""
    for column in columns:
        if column.numeric or (column.missing is not None and column.missing.all()):
            continue
        if column.levels is None:
            raise DataError(f"Column {column.name!r} ({option(role)}) must be {what}; got {column.kind}.")
        odd = np.array([not reads_as_number(str(label)) for label in column.levels])[column.data]
        if column.missing is not None:
            odd &= ~column.missing
        if not odd.any():
            raise DataError(f"Column {column.name!r} ({option(role)}) holds numbers as text; make it numeric.")
        first = int(np.argmax(odd))
        raise DataError(
            f"Column {column.name!r} ({option(role)}) must be {what}; {int(odd.sum()):,} of {odd.size:,} values are "
            f"text, first {str(column.levels[column.data[first]])!r} in {at_row(first)}. Where text "
            f"stands for missing values, leave the cell empty and pass {option('missing', 'drop')}."
        )


def check_finite(columns: Iterable[Column]) -> None:
    for column in columns:
        if column.data.dtype.kind != "f":
            continue
        infinite = np.flatnonzero(np.isinf(column.data))
        if infinite.size:
            raise DataError(
                f"Column {column.name!r} has {infinite.size:,} infinite values, first {at_row(infinite[0])}. "
                "Where they stand for missing values, replace them by NaN and pass "
                f"{option('missing', 'drop')}."
            )


def any_missing(columns: Iterable[Column], n: int) -> np.ndarray:
    gone = np.zeros(n, dtype=bool)
    for column in columns:
        if column.missing is not None:
            gone |= column.missing
    return gone


def incomplete(
    columns: Sequence[Column], missing: Missing, row: np.ndarray | None, what: str
) -> tuple[np.ndarray, str | None]:
    """Which rows (of `row`, or of all) have a missing value, and the note that says so; an error unless dropped."""
    parts: list[str] = []
    gone: np.ndarray | None = None
    for column in columns:
        mask = column.missing if column.missing is None or row is None else column.missing[row]
        if mask is None or not mask.any():
            continue
        first = int(np.argmax(mask)) if row is None else int(row[mask].min())
        parts.append(f"column {column.name!r} has {int(mask.sum()):,} (first row {row_number(first)})")
        gone = mask if gone is None else gone | mask
    if gone is None:
        n = columns[0].data.size if row is None and columns else 0 if row is None else row.size
        return np.zeros(n, dtype=bool), None
    if missing == "error":
        more = f" and {len(parts) - 8} more columns" if len(parts) > 8 else ""
        raise DataError(
            f"There are missing values: {', '.join(parts[:8])}{more}; {rows_count()}. "
            f"Pass {option('missing', 'drop')} to leave them out."
        )
    dropped = f"{int(gone.sum()):,} of {gone.size:,} {what} were dropped for missing values: "
    return gone, f"{dropped}{', '.join(parts)}; {rows_count()}."
