"""Where rows lie, compiled: cells of a column among its breaks, distinct rows numbered, and rows sorted by number."""

from __future__ import annotations

# pyright: reportCallIssue=false
import math

import numpy as np

from .._base.cached import njit
from .simd import whole


def locate(x: np.ndarray, order: np.ndarray, breaks: np.ndarray, period: float, out: np.ndarray, column: int) -> int:
    """out[i, column] = cell + t of x[order[i]] among the breaks (wrapped by `period` > 0); how many lie outside."""
    cells = breaks.size - 1
    fine = 4 * cells  # the cell at each of so many equal steps: one look-up, then a short walk
    at = breaks[0] + np.arange(fine + 1) * ((breaks[-1] - breaks[0]) / fine)
    guess = np.clip(np.searchsorted(breaks, at, side="right") - 1, 0, cells - 1)
    return locate_from(x, order, breaks, guess, period, out, column)


@njit(nogil=True, cache=True, error_model="numpy")
def locate_from(x, order, breaks, guess, period, out, column):
    """`locate`, the cell at equal steps being `guess`."""
    cells, fine = breaks.shape[0] - 1, guess.shape[0] - 1
    low, high = breaks[0], breaks[cells]
    slack = 1e-9 * (high - low)
    scale = fine / (high - low)
    outside = 0
    n = order.shape[0] if order.shape[0] > 0 else x.shape[0]
    for i in range(n):
        v = x[order[i]] if order.shape[0] > 0 else x[i]
        if period > 0.0 and not (v >= low and v < high):
            v = v - period * math.floor((v - low) / period)
            if v >= high:
                v = low
        if not (v >= low - slack and v <= high + slack):
            outside += 1
            v = low
        k = whole((v - low) * scale)
        cell = guess[0 if k < 0 else fine if k > fine else k]
        while cell > 0 and breaks[cell] > v:
            cell -= 1
        while cell < cells - 1 and breaks[cell + 1] <= v:
            cell += 1
        t = (v - breaks[cell]) / (breaks[cell + 1] - breaks[cell])
        t = 0.0 if t < 0.0 else t
        out[i, column] = cell + (t if t < 0.999999999 else 0.999999999)  # cell + t must not round up to the next cell
    return outside


def group_rows(keys: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """Number distinct rows of `keys` (n, d) uint64 by first appearance: (ids, count), count = −1 beyond `most`."""
    slots = np.full(1 << max(4, (2 * most + 1).bit_length()), -1, np.int32)
    ids = np.empty(len(keys), np.int32)
    return ids, number_rows(keys, slots, np.empty(most + 1, np.int64), ids)


@njit(nogil=True, cache=True, error_model="numpy")
def number_rows(keys, slots, first, ids):
    """Fill ids by a table of `slots`, all −1, twice as many as there may be numbers; first: room for the first row of
    each. How many there are, or −1 if `first` is too short."""
    n, d = keys.shape
    most, count = first.shape[0] - 1, 0
    mask = np.uint64(slots.shape[0] - 1)
    for r in range(n):
        if r > 0:
            same = True
            for k in range(d):
                if keys[r, k] != keys[r - 1, k]:
                    same = False
            if same:
                ids[r] = ids[r - 1]
                continue
        h = np.uint64(0x9E3779B97F4A7C15)
        for k in range(d):
            h = (h ^ keys[r, k]) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
        at = h & mask
        while True:
            who = slots[at]
            if who < 0:
                if count >= most:
                    return -1
                slots[at] = count
                first[count] = r
                ids[r] = count
                count += 1
                break
            same = True
            for k in range(d):
                if keys[r, k] != keys[first[who], k]:
                    same = False
            if same:
                ids[r] = who
                break
            at = (at + np.uint64(1)) & mask
    return count


@njit(nogil=True, cache=True)
def counting_sort(ids, count):
    """Stable order of the rows by id, and the (count + 1) starts."""
    starts = np.zeros(count + 1, np.int64)
    for r in range(ids.shape[0]):
        starts[ids[r] + 1] += 1
    for k in range(count):
        starts[k + 1] += starts[k]
    place = starts[:-1].copy()
    order = np.empty(ids.shape[0], np.int32)
    for r in range(ids.shape[0]):
        k = ids[r]
        order[place[k]] = r
        place[k] += 1
    return order, starts
