"""Compiled sums over close pairs, by cells: nothing is kept of a pair but its share of a histogram.

A rectangle's edges are None here, so that numba leaves out what reads a polygon's, and NumPy sorts points into cells:
both save seconds of compiling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._base.cached import njit
from ..edge_weights import polygon_weight, rectangle_weight
from ..sorting import first_at_least

NONE, ISOTROPIC, TRANSLATE, BORDER = 0, 1, 2, 3


class Cells(NamedTuple):
    """Cells no smaller than the reach, and where the points of each begin among those sorted by cell."""

    start: np.ndarray  # (nx·ny + 1,)
    nx: int
    ny: int
    side: float


def cells(xy: np.ndarray, reach: float, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, Cells]:
    """The order of points by cell, and the cells."""
    width, height = (float(one) for one in high - low)
    nx, ny = (max(1, min(int(one / reach), 1000)) for one in (width, height))
    side = max(width / nx, height / ny, reach)
    cx, cy = (np.clip(((xy[:, k] - low[k]) / side).astype(np.int64), 0, (nx, ny)[k] - 1) for k in (0, 1))
    code = cy * nx + cx
    start = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=nx * ny))])
    return np.argsort(code, kind="stable"), Cells(start, nx, ny, side)


def _border(edges: np.ndarray, rectangle: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The edges of a polygon and room for the crossings of a circle with them; None for a rectangle."""
    return (None, None) if rectangle else (edges, np.empty(2 * len(edges) + 2))


def pair_sums(
    xy: np.ndarray,
    share: np.ndarray,
    which: tuple[np.ndarray, np.ndarray],
    border: tuple[np.ndarray, np.ndarray],
    grid: np.ndarray,
    how: int,
    window: tuple[np.ndarray, np.ndarray, np.ndarray, bool],
) -> np.ndarray:
    """A histogram over r of Σ_{i≠j} e_ij share_i share_j, i among the first of `which` and j among the second, to be
    summed up.

    e is 1, Ripley's isotropic weight of j seen from i, the translation weight, or, with BORDER, 1 for d ≤ r < b_i (a
    pair then leaves the sum where r reaches b_i): `border` has b and the place of b in the grid.
    """
    low, high, edges, rectangle = window
    order, table = cells(xy, float(grid[-1]), low, high)
    points = tuple(np.ascontiguousarray(one[order]) for one in (xy[:, 0], xy[:, 1], *border, share, *which))
    out = np.zeros(len(grid) + 1)
    _pair_sums(points, tuple(table), grid, how, (*low, *high), *_border(edges, rectangle), out)
    return out[:-1]


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_sums(points, table, grid, how, box, edges, scratch, out):
    x, y, b, leaves, s, is_first, is_second = points
    start, nx, ny, side = table
    left, below, right, above = box
    n, bins = len(x), len(grid)
    reach = grid[-1]
    width, height = right - left, above - below
    step = grid[1] - grid[0]
    for i in range(n):
        cx, cy = min(max(int((x[i] - left) / side), 0), nx - 1), min(max(int((y[i] - below) / side), 0), ny - 1)
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
                            elif edges is None:
                                w += rectangle_weight(x[k] - left, y[k] - below, right - x[k], above - y[k], d)
                            else:
                                w += polygon_weight(x[k], y[k], d, edges, scratch)
                    out[at] += w * s[i] * s[j]


def smoothed_pairs(
    xy: np.ndarray,
    share: np.ndarray,
    gap: np.ndarray,
    grid: np.ndarray,
    band: float,
    how: int,
    window: tuple[np.ndarray, np.ndarray, np.ndarray, bool],
) -> np.ndarray:
    """Σ_{i≠j} e_ij share_i share_j k_h(r − d) for each r, k the Epanechnikov kernel with standard deviation h."""
    low, high, edges, rectangle = window
    half = band * float(np.sqrt(5.0))
    order, table = cells(xy, float(grid[-1]) + half, low, high)
    points = tuple(np.ascontiguousarray(one[order]) for one in (xy[:, 0], xy[:, 1], gap, share))
    out = np.zeros(len(grid))
    _smoothed_pairs(points, tuple(table), grid, half, how, (*low, *high), *_border(edges, rectangle), out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _smoothed_pairs(points, table, grid, half, how, box, edges, scratch, out):
    x, y, gap, share = points
    start, nx, ny, side = table
    left, below, right, above = box
    n, bins = len(x), len(grid)
    reach = grid[-1] + half
    width, height = right - left, above - below
    for i in range(n):
        cx, cy = min(max(int((x[i] - left) / side), 0), nx - 1), min(max(int((y[i] - below) / side), 0), ny - 1)
        for gy in range(max(0, cy - 1), min(ny, cy + 2)):
            for gx in range(max(0, cx - 1), min(nx, cx + 2)):
                for j in range(start[gy * nx + gx], start[gy * nx + gx + 1]):
                    dx, dy = x[j] - x[i], y[j] - y[i]
                    d = np.sqrt(dx * dx + dy * dy)
                    if j == i or d > reach:
                        continue
                    if how == TRANSLATE:
                        w = width * height / ((width - abs(dx)) * (height - abs(dy)))
                    else:
                        w = 1.0
                        if how != NONE and d > gap[i]:
                            if edges is None:
                                w = rectangle_weight(x[i] - left, y[i] - below, right - x[i], above - y[i], d)
                            else:
                                w = polygon_weight(x[i], y[i], d, edges, scratch)
                    w *= share[i] * share[j]
                    for q in range(first_at_least(grid, d - half), bins):
                        t = (grid[q] - d) / half
                        if t >= 1.0:
                            break
                        out[q] += w * 0.75 * (1.0 - t * t) / half
