"""From rows to chains: sort by group and order, and cut where a step is not allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from .._base.column_checks import any_missing, check_finite, check_numeric, incomplete
from .._base.frames import Column, Missing, Table
from .._base.words import at_row, option
from ..errors import DataError, InputError, listing

# seconds of each unit of time, by the names that people write
UNITS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}


@dataclass(frozen=True)
class Chains:
    """The usable rows, chain by chain and in order within a chain."""

    row: np.ndarray  # (m,) positions in the table
    label: np.ndarray  # (m,) non-decreasing: which chain
    notes: tuple[str, ...]


def chains(
    table: Table,
    outcome: Sequence[Column],
    groups: Mapping[str, Column],
    key: Column | None,
    max_gap: Any,
    missing: Missing,
) -> Chains:
    """Sort the usable rows by group and order, and cut where a step is not allowed."""
    needed = [*outcome, *groups.values(), *([] if key is None else [key])]
    gone, note = incomplete(needed, missing, None, "rows")
    notes = [note] if note else []
    code = _group_codes(groups, table.n)
    if key is None:
        if max_gap is not None:
            raise InputError(f"{option('max_gap')} needs {option('order')}: name the column that holds the times.")
        # A row without a group belongs to a chain that we cannot name: it breaks the chain in which it lies.
        lost = any_missing(groups.values(), table.n)
        if lost.any():
            code = code[np.maximum.accumulate(np.where(lost, 0, np.arange(table.n)))]
        row = _sorted_rows(code, None)
        kept = ~gone[row]
        # positions among all rows, dropped ones included, so that a dropped row breaks its chain
        position = np.flatnonzero(kept)
        row = row[kept]
        step_ok = np.diff(position) == 1
    else:
        rows = np.flatnonzero(~gone)
        row = rows[_sorted_rows(code[rows], key.data[rows])]
        _check_repeats(code, key, row, groups)
        step = np.diff(key.data[row])
        step_ok, cut = _allowed(key, step, max_gap)
        same = np.diff(code[row]) == 0
        if broken := int(np.sum(same & ~step_ok)):
            hint = _gap(step[same]) if max_gap is None else ""
            notes.append(f"Steps of {key.name!r} {cut}: {broken:,}; each breaks a sequence.{hint}")
        if max_gap is None and key.kind != "integers" and same.any():
            largest = np.max(step[same])
            seconds = f"{largest / np.timedelta64(1, 's'):g} s" if step.dtype.kind == "m" else f"{largest:g}"
            notes.append(
                f"{key.name!r} holds {key.kind} and no largest gap (max_gap) is given, so none breaks a sequence "
                f"(the largest is {seconds})."
            )
    label = np.zeros(row.size, dtype=np.int64)
    if row.size:
        np.cumsum((np.diff(code[row]) != 0) | ~step_ok, out=label[1:])
    return Chains(row, label, tuple(notes))


def _group_codes(groups: Mapping[str, Column], n: int) -> np.ndarray:
    """(n,) codes of the groups, numbered as they first appear."""
    code, count = np.zeros(n, dtype=np.int64), 1
    for column in groups.values():
        part, size = column.codes()
        code, count = code * size + part, count * size
        if count > 4 * n + 1000:
            _, code = np.unique(code, return_inverse=True)
            count = int(code.max()) + 1 if n else 1
    first = np.full(count, n)
    first[code[::-1]] = np.arange(n)[::-1]
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(count)
    return rank[code]


def _sorted_rows(code: np.ndarray, key: np.ndarray | None) -> np.ndarray:
    """Positions sorted by code, then key, then as they come; at no cost where they are in order already."""
    same = np.diff(code)
    if np.all(same >= 0) and (key is None or np.all((same > 0) | (key[1:] >= key[:-1]))):
        return np.arange(code.size)
    return np.argsort(code, kind="stable") if key is None else np.lexsort((key, code))


def _check_repeats(code: np.ndarray, key: Column, row: np.ndarray, groups: Mapping[str, Column]) -> None:
    values = key.data[row]
    twice = np.flatnonzero((values[1:] == values[:-1]) & (np.diff(code[row]) == 0))
    if twice.size:
        first = row[twice + 1].min()
        where = f" within {listing(groups)}" if groups else ""
        raise DataError(
            f"Column {key.name!r} must not repeat a value{where}: {twice.size:,} rows do, first "
            f"{key.name} = {key.data[first]} in {at_row(first)}. Remove them, or name in "
            f"{option('group')} the columns that tell the sequences apart."
        )


def _allowed(key: Column, step: np.ndarray, max_gap: Any) -> tuple[np.ndarray, str]:
    """Which steps keep a chain together, and what messages call those that do not."""
    if max_gap is None:
        if key.kind == "integers":
            return step == 1, "other than 1"
        return np.ones(step.size, dtype=bool), ""
    gap = max_gap
    if key.kind in ("times", "durations"):
        if isinstance(max_gap, str):
            gap = span(max_gap)
        elif isinstance(max_gap, timedelta):
            gap = np.timedelta64(max_gap)
        elif isinstance(max_gap, int | float | np.number) and not isinstance(max_gap, bool | np.timedelta64):
            gap = np.timedelta64(round(float(max_gap) * 1e6), "us")
        valid = isinstance(gap, np.timedelta64) and gap > np.timedelta64(0, "us")
        expected = "a number of seconds, a time such as '20min' or '6h', or a datetime.timedelta"
    else:
        valid = (
            isinstance(max_gap, int | float | np.integer | np.floating)
            and not isinstance(max_gap, bool)
            and max_gap > 0
        )
        expected = f"a positive number, in the units of {key.name!r}"
    if not valid:
        raise InputError(f"max_gap must be {expected}; got {max_gap!r}.")
    return step <= gap, f"above {max_gap}"


def _gap(step: np.ndarray) -> str:
    """What to do about steps that break sequences, and, in a column that does not count, how large most of them are."""
    most = float(np.quantile(step, 0.9))
    large = "" if most == 1.0 else f": nine steps in ten are at most {most:,.5g}"
    return f" If it holds times, say how large a gap may be (max_gap){large}."


def span(text: str) -> np.timedelta64 | None:
    """A stretch of time from text such as '20min', '1.5 h' or '1h 30min'; None where it is none.

    >>> span("1h 30min")
    np.timedelta64(5400000000,'us')
    """
    found = re.findall(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)", text.strip().lower())
    if not found or re.sub(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)|[\s,]", "", text.strip().lower()):
        return None
    if any(unit not in UNITS for _, unit in found):
        return None
    return np.timedelta64(round(sum(float(count) * UNITS[unit] for count, unit in found) * 1e6), "us")


def order_key(table: Table, order: Any) -> Column:
    column = table.column(order, "order").whole().as_times()
    if column.levels is not None:
        check_numeric([column], "order", "integers, floats or dates")
    check_finite([column])
    return column
