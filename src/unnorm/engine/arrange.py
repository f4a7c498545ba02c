"""The order of the rows: by level of the partitioning factor, then by context, so that what is shared lies together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

RUN = 64  # rows in a run where there are no contexts


def _keys(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The columns as rows of uint64, equal where the values are equal."""
    parts = []
    for column in map(np.asarray, columns):
        if column.dtype.kind == "f":
            parts.append((column.astype(np.float64) + 0.0).view(np.uint64)[:, None])  # −0 is 0
        elif column.dtype.kind in "iub":
            parts.append(column.astype(np.int64).view(np.uint64)[:, None])
        elif column.dtype.kind in "US":
            width = -(-column.dtype.itemsize // 8)
            padded = np.zeros((column.size, 8 * width), np.uint8)
            padded[:, : column.dtype.itemsize] = np.ascontiguousarray(column).view(np.uint8).reshape(column.size, -1)
            parts.append(padded.view(np.uint64))
        else:
            seen: dict[object, int] = {}
            numbers = (seen.setdefault(value, len(seen)) for value in column.tolist())
            parts.append(np.fromiter(numbers, np.int64, column.size).view(np.uint64)[:, None])
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def number(columns: Sequence[np.ndarray], most: int | None = None) -> tuple[np.ndarray, int]:
    """Distinct combinations numbered by first appearance, and how many; −1 if there are more than `most`."""
    from .arrange_kernels import group_rows

    keys = _keys(columns)
    return group_rows(keys, len(keys) if most is None else most)


def first_rows(ids: np.ndarray, count: int) -> np.ndarray:
    """The first row of each id."""
    first = np.full(count, -1, np.int64)
    first[ids[::-1]] = np.arange(ids.size - 1, -1, -1)
    return first


@dataclass(frozen=True)
class Order:
    """Rows sorted by level and context, in runs."""

    order: np.ndarray | None  # place i holds the caller's row order[i]; None: the same
    starts: np.ndarray  # (runs + 1,)
    level: np.ndarray  # of each run
    first: np.ndarray  # each run's first row, in the caller's order
    contexts: bool  # whether runs are contexts, or mere stretches

    def pick(self, lo: int, hi: int) -> slice | np.ndarray:
        """What picks rows lo…hi−1 from a caller's column."""
        return slice(lo, hi) if self.order is None else self.order[lo:hi]

    def constant(self, column: np.ndarray) -> bool:
        """Whether the column is constant along every run."""
        lengths = np.diff(self.starts)
        for runs in (min(50, lengths.size), lengths.size):  # a few first: most columns that vary, vary at once
            values = column[self.pick(0, int(self.starts[runs]))]
            again = np.repeat(column[self.first[:runs]], lengths[:runs])
            if not np.array_equal(values, again, equal_nan=values.dtype.kind == "f"):
                return False
        return True


def arrange(n: int, codes: np.ndarray | None, levels: int, context: np.ndarray | None) -> Order:
    """The order for `codes` (the level of each row, or None) and `context` (numbers by first appearance, or None)."""
    from .arrange_kernels import counting_sort

    if context is not None:
        ids, count = (context, int(context.max()) + 1) if codes is None else number([context, codes])
        first = first_rows(ids, count)
        level = np.zeros(count, np.int64) if codes is None else codes[first].astype(np.int64)
        if codes is not None:
            by_level = np.argsort(level, kind="stable")
            rank = np.empty(count, np.int32)
            rank[by_level] = np.arange(count, dtype=np.int32)
            ids, first, level = rank[ids], first[by_level], level[by_level]
        order, starts = counting_sort(ids, count)
    elif codes is not None:
        order, bounds = counting_sort(codes, levels)
        cuts = [np.arange(a, b, RUN) for a, b in pairwise(bounds)]
        level = np.repeat(np.arange(levels), [cut.size for cut in cuts])
        starts = np.concatenate([*cuts, [n]])
        first = order[starts[:-1]].astype(np.int64)
    else:
        starts = np.append(np.arange(0, n, RUN), n)
        return Order(None, starts, np.zeros(starts.size - 1, np.int64), starts[:-1], False)
    in_place = bool(np.all(order[1:] > order[:-1]))
    return Order(None if in_place else order, starts, level, first, context is not None)
