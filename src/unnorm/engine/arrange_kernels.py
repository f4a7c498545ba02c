"""Where rows lie, compiled: cells of a column among its breaks, distinct rows numbered, and rows sorted by number."""

from __future__ import annotations

import math

import numpy as np

from .cached import njit


@njit(nogil=True, cache=True, error_model="numpy")
def locate(x, order, breaks, period, out, column):
    """out[i, column] = cell + t of x[order[i]] among the breaks (wrapped by `period` > 0); how many lie outside."""
    cells = breaks.shape[0] - 1
    low, high = breaks[0], breaks[cells]
    slack = 1e-9 * (high - low)
    fine = 4 * cells
    scale = fine / (high - low)
    guess = np.empty(fine + 1, np.int64)  # the cell at each of `fine` equal steps: one look-up, then a short walk
    cell = 0
    for k in range(fine + 1):
        at = low + k / scale
        while cell < cells - 1 and breaks[cell + 1] <= at:
            cell += 1
        guess[k] = cell
    outside = 0
    n = order.shape[0] if order.shape[0] > 0 else x.shape[0]
    for i in range(n):
        v = x[order[i]] if order.shape[0] > 0 else x[i]
        if period > 0.0:
            v = v - period * math.floor((v - low) / period)
            if v >= high:
                v = low
        if not (v >= low - slack and v <= high + slack):
            outside += 1
            v = low
        k = int((v - low) * scale)
        cell = guess[min(max(k, 0), fine)]
        while cell > 0 and breaks[cell] > v:
            cell -= 1
        while cell < cells - 1 and breaks[cell + 1] <= v:
            cell += 1
        t = (v - breaks[cell]) / (breaks[cell + 1] - breaks[cell])
        out[i, column] = cell + min(max(t, 0.0), 0.999999999)  # cell + t must not round up to the next cell
    return outside


@njit(nogil=True, cache=True, error_model="numpy")
def group_rows(keys, most):
    """Number distinct rows of `keys` (n, d) uint64 by first appearance: (ids, count), count = −1 beyond `most`."""
    n, d = keys.shape
    bits = 4
    while (1 << bits) < 2 * (most + 1):
        bits += 1
    slots = np.empty(1 << bits, np.int32)
    for k in range(slots.shape[0]):  # np.full takes longer to compile than the rest
        slots[k] = -1
    first = np.empty(most + 1, np.int64)
    ids = np.empty(n, np.int32)
    count = 0
    mask = np.uint64((1 << bits) - 1)
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
                    return ids, -1
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
    return ids, count


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
