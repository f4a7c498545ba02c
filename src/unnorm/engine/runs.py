"""Contexts whose rows lie together, as rows usually come: found by comparing neighbours, on every core."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._base.threads import run_tasks
from .arrange import Order, number

_STRETCH = 262_144  # rows that are compared at a time


def consecutive(columns: Sequence[np.ndarray], most: int, threads: int) -> Order | None:
    """The order of the rows by distinct combinations of the columns' values, where these come in at most `most`
    stretches of rows; None otherwise. Every one of these columns is then constant along the runs."""
    n = len(columns[0])
    if n == 0 or any(column.dtype.kind not in "iufb" for column in columns):
        return None

    def starts(a: int, b: int) -> np.ndarray:
        new = np.zeros(b - a, bool)
        for column in columns:
            new |= column[a:b] != column[a - 1 : b - 1]
        return np.flatnonzero(new) + a

    few = min(n, 4_096)
    if starts(1, few).size > few // 2:
        return None
    stretches = [(a, min(a + _STRETCH, n)) for a in range(1, n, _STRETCH)]
    first = np.concatenate([np.zeros(1, np.int64), *run_tasks(starts, stretches, threads)])
    if first.size > most:
        return None
    ids, count = number([column[first] for column in columns])
    if count < first.size:  # some context comes back later
        return _joined(first, ids, count, n)
    return Order(None, np.append(first, n), np.zeros(first.size, np.int64), first, True)


def _joined(first: np.ndarray, ids: np.ndarray, count: int, n: int) -> Order:
    """As `arrange`, from stretches of rows (their first rows) that belong to contexts `ids`."""
    stretches = np.argsort(ids, kind="stable")
    lengths = np.diff(first, append=n)[stretches]
    ends = np.cumsum(lengths)
    order = np.repeat((first[stretches] - (ends - lengths)).astype(np.int32), lengths)
    order += np.arange(n, dtype=np.int32)
    new = np.flatnonzero(np.diff(ids[stretches], prepend=-1))  # the first stretch of each context
    starts = np.append((ends - lengths)[new], n)
    return Order(order, starts, np.zeros(count, np.int64), first[stretches[new]], True)
