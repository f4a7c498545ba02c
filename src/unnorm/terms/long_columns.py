"""Sums by cell, extremes and ranks of long columns, on every core.

Stretches have a fixed length and are added in order, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._base.threads import cores, run_tasks

LONG = 262_144  # rows from which a column is taken in stretches
_STRETCH = 131_072
_BUCKETS = 1_024
_GROUPS = 64  # of buckets, each sorted by itself


def _run(work: Callable[..., Any], tasks: Sequence[tuple]) -> list:
    return run_tasks(work, tasks, cores(), within=True)


def _stretches(x: np.ndarray) -> list[np.ndarray]:
    return [np.require(x[a : a + _STRETCH], requirements=("C", "W")) for a in range(0, x.size, _STRETCH)]


def extremes(x: np.ndarray) -> tuple[float, float]:
    """The least and the largest value."""
    if x.size < LONG:
        return x.min(), x.max()
    found = np.array(_run(lambda part: (part.min(), part.max()), [(one,) for one in _stretches(x)]))
    return found[:, 0].min(), found[:, 1].max()  # not a number stays one


def cell_sums(x: np.ndarray, low: float, scale: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """How many values lie in each of the equal cells of width 1/scale from `low` on, and their sums."""
    from .sample_kernels import add_cells, zeros

    def work(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts, sums = zeros(cells)
        add_cells(part, low, scale, counts, sums)
        return counts, sums

    found = _run(work, [(part,) for part in _stretches(x)])
    return np.sum([counts for counts, _ in found], axis=0), np.sum([sums for _, sums in found], axis=0)


def ranked(x: np.ndarray, more: Sequence[float], places: int) -> tuple[np.ndarray, int]:
    """Values at `places` even ranks, from the first to the last, of the distinct values of x and of `more`,
    interpolated between neighbours; and how many distinct values there are.

    Values go to equal buckets, and neighbouring buckets are sorted together.
    """
    from .sample_kernels import add_cells, into_cells, zeros

    low, high = extremes(x)
    low, high = min(low, *more) if more else low, max(high, *more) if more else high
    scale = _BUCKETS / (high - low)
    parts = [*_stretches(x), *([np.array(more, dtype=np.float64)] if more else [])]

    def count(part: np.ndarray) -> np.ndarray:
        counts, sums = zeros(_BUCKETS)
        add_cells(part, low, scale, counts, sums)
        return counts

    counts = np.array(_run(count, [(part,) for part in parts]))
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    place = starts[:-1] + np.cumsum(counts, axis=0) - counts
    ordered = np.empty(int(starts[-1]))
    _run(lambda k: into_cells(parts[k], low, scale, place[k], ordered), [(k,) for k in range(len(parts))])
    cuts = np.unique(np.searchsorted(starts, np.linspace(0, starts[-1], _GROUPS + 1)))
    edges = np.unique(starts[cuts])

    def distinct(a: int, b: int) -> int:
        group = ordered[a:b]
        group.sort()
        return 1 + int(np.count_nonzero(group[1:] != group[:-1]))

    groups = list(pairwise(edges.tolist()))
    before = np.concatenate([[0], np.cumsum(_run(distinct, groups))])
    total = int(before[-1])

    def value(rank: int) -> float:
        k = int(np.searchsorted(before, rank, side="right")) - 1
        group = ordered[slice(*groups[k])]
        new = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        return float(group[int(new[rank - before[k]])])

    at = np.linspace(0, total - 1, places)
    below = np.minimum(at.astype(int), total - 1)
    lower = np.array([value(int(r)) for r in below])
    upper = np.array([value(min(int(r) + 1, total - 1)) for r in below])
    return lower + (at - below) * (upper - lower), total
