"""Contexts whose rows lie together already, as rows usually come: found by comparing neighbours, on every core."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._base.threads import run_tasks
from .arrange import Order, number

_STRETCH = 262_144  # rows that are compared at a time


def consecutive(columns: Sequence[np.ndarray], most: int, threads: int) -> Order | None:
    """The order of the rows where each distinct combination of the columns' values is one stretch of rows and there are
    at most `most` of them; None otherwise. Every one of these columns is then constant along the runs."""
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
    _, count = number([column[first] for column in columns])
    if count < first.size:  # some context comes back later
        return None
    return Order(None, np.append(first, n), np.zeros(first.size, np.int64), first, True)
