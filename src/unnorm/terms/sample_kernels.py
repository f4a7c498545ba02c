"""Passes over long columns, compiled, a stretch of rows at a time so that threads share them."""

from __future__ import annotations

# pyright: reportCallIssue=false
import numpy as np

from .._base.cached import njit


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def add_cells(x, low, scale, counts, sums):
    """Count the values of each of the equal cells from `low` on, and add them up."""
    last = counts.shape[0] - 1
    for i in range(x.shape[0]):
        cell = min(int((x[i] - low) * scale), last)
        counts[cell] += 1
        sums[cell] += x[i]


@njit(nogil=True, cache=True, no_cfunc_wrapper=True)
def into_cells(x, low, scale, place, out):
    """Write the values cell by cell: out[place[cell]] is where the next one of a cell goes."""
    last = place.shape[0] - 1
    for i in range(x.shape[0]):
        cell = min(int((x[i] - low) * scale), last)
        out[place[cell]] = x[i]
        place[cell] += 1


def zeros(cells: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(cells, np.int64), np.zeros(cells)
