"""Compiled sums over close pairs, by cells: nothing is kept of a pair but its share of a histogram."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..edge_weights import circle_weight, rectangle_weight
from ..sorting import first_at_least

NONE, ISOTROPIC, TRANSLATE, BORDER = 0, 1, 2, 3


@njit(cache=True, nogil=True, error_model="numpy")
def cells(x, y, low, side, nx, ny):
    """Points sorted by cell: their order, and where each cell begins."""
    n = len(x)
    code = np.empty(n, np.int64)
    start = np.zeros(nx * ny + 1, np.int64)
    for i in range(n):
        cx = min(max(int((x[i] - low[0]) / side), 0), nx - 1)
        cy = min(max(int((y[i] - low[1]) / side), 0), ny - 1)
        code[i] = cy * nx + cx
        start[code[i] + 1] += 1
    for c in range(nx * ny):
        start[c + 1] += start[c]
    fill = start[:-1].copy()
    order = np.empty(n, np.int64)
    for i in range(n):
        order[fill[code[i]]] = i
        fill[code[i]] += 1
    return order, start


@njit(cache=True, nogil=True, error_model="numpy")
def pair_sums(xy, share, first, second, gap, gone, grid, how, low, high, edges, rectangle):
    """A histogram over r of Σ_{i≠j} e_ij share_i share_j, i among `first` and j among `second`, to be summed up.

    e is 1, Ripley's isotropic weight of j seen from i, the translation weight, or, with BORDER, 1 for d ≤ r < b_i (a
    pair then leaves the sum where r reaches b_i, at `gone`)."""
    n, bins = len(xy), len(grid)
    reach = grid[-1]
    width, height = high[0] - low[0], high[1] - low[1]
    nx, ny = max(1, min(int(width / reach), 1000)), max(1, min(int(height / reach), 1000))
    side = max(width / nx, height / ny, reach)
    order, start = cells(xy[:, 0], xy[:, 1], low, side, nx, ny)
    x, y, b, s, is_first, is_second = xy[order, 0], xy[order, 1], gap[order], share[order], first[order], second[order]
    leaves = gone[order]
    out, scratch = np.zeros(bins + 1), np.empty(2 * len(edges) + 2)
    step = grid[1] - grid[0]
    left, below, right, above = low[0], low[1], high[0], high[1]
    for i in range(n):
        cx, cy = min(max(int((x[i] - low[0]) / side), 0), nx - 1), min(max(int((y[i] - low[1]) / side), 0), ny - 1)
        for gy in range(cy, min(ny, cy + 2)):
            # each pair once: the rest of this row of cells, then the row above
            for gx in range(cx if gy == cy else max(0, cx - 1), min(nx, cx + 2)):
                begin = i + 1 if gy == cy and gx == cx else start[gy * nx + gx]
                for j in range(begin, start[gy * nx + gx + 1]):
                    dx, dy = x[j] - x[i], y[j] - y[i]
                    d2 = dx * dx + dy * dy
                    if d2 > reach * reach:
                        continue
                    there, back = is_first[i] and is_second[j], is_first[j] and is_second[i]
                    if not (there or back):
                        continue
                    d = np.sqrt(d2)
                    at = min(int(d / step), bins - 1)
                    while at > 0 and grid[at - 1] >= d:
                        at -= 1
                    while at < bins and grid[at] < d:
                        at += 1
                    if at == bins:
                        continue
                    if how == BORDER:
                        if there and b[i] > d:
                            out[at] += 1.0
                            out[leaves[i]] -= 1.0
                        if back and b[j] > d:
                            out[at] += 1.0
                            out[leaves[j]] -= 1.0
                        continue
                    w = 0.0
                    if how == TRANSLATE:
                        w = (there + back) * width * height / ((width - abs(dx)) * (height - abs(dy)))
                    else:
                        for k in (i, j):
                            if not (there if k == i else back):
                                continue
                            if how == NONE or d <= b[k]:  # most are
                                w += 1.0
                            elif rectangle:  # arrays as arguments would take as long as the sum
                                w += rectangle_weight(x[k] - left, y[k] - below, right - x[k], above - y[k], d)
                            else:
                                w += circle_weight(x[k], y[k], d, low, high, edges, rectangle, scratch)
                    out[at] += w * s[i] * s[j]
    return out[:bins]


@njit(cache=True, nogil=True, error_model="numpy")
def smoothed_pairs(xy, share, gap, grid, band, how, low, high, edges, rectangle):
    """Σ_{i≠j} e_ij share_i share_j k_h(r − d) for each r, k the Epanechnikov kernel with standard deviation h."""
    n, bins = len(xy), len(grid)
    half = band * np.sqrt(5.0)
    reach = grid[-1] + half
    width, height = high[0] - low[0], high[1] - low[1]
    nx, ny = max(1, min(int(width / reach), 1000)), max(1, min(int(height / reach), 1000))
    side = max(width / nx, height / ny, reach)
    x, y = xy[:, 0].copy(), xy[:, 1].copy()
    order, start = cells(x, y, low, side, nx, ny)
    out = np.zeros(bins)
    scratch = np.empty(2 * len(edges) + 2)
    for i in range(n):
        cx, cy = min(max(int((x[i] - low[0]) / side), 0), nx - 1), min(max(int((y[i] - low[1]) / side), 0), ny - 1)
        for gy in range(max(0, cy - 1), min(ny, cy + 2)):
            for gx in range(max(0, cx - 1), min(nx, cx + 2)):
                for k in range(start[gy * nx + gx], start[gy * nx + gx + 1]):
                    j = order[k]
                    dx, dy = x[j] - x[i], y[j] - y[i]
                    d = np.sqrt(dx * dx + dy * dy)
                    if j == i or d > reach:
                        continue
                    if how == TRANSLATE:
                        w = width * height / ((width - abs(dx)) * (height - abs(dy)))
                    else:
                        whole = how == NONE or d <= gap[i]
                        w = 1.0 if whole else circle_weight(x[i], y[i], d, low, high, edges, rectangle, scratch)
                    w *= share[i] * share[j]
                    for q in range(first_at_least(grid, d - half), bins):
                        t = (grid[q] - d) / half
                        if t >= 1.0:
                            break
                        out[q] += w * 0.75 * (1.0 - t * t) / half
    return out
