"""Small matrices, compiled: the inverse of one that is positive definite, and splines through values at their sites.
What a kernel needs room for, its caller makes: NumPy's functions would be compiled with it."""

from __future__ import annotations

import math

import numpy as np

from .._base.cached import njit

_FAST = {"contract", "nsz", "arcp", "reassoc"}


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def cholesky_inverse(a, scale, low, out):
    """Add A⁻¹ to `out`; return Σ log L_ii and the least L_ii, DAD = L Lᵀ, D = diag(scale). The least is −1 where A is
    not positive definite. low: room for L, and then for its inverse."""
    p = a.shape[0]
    logs, least = 0.0, np.inf
    for j in range(p):
        for k in range(j):
            s = 0.0
            for i in range(k):
                s += low[j, i] * low[k, i]
            low[j, k] = (a[j, k] * (scale[j] * scale[k]) - s) / low[k, k]
        s = 0.0
        for i in range(j):
            s += low[j, i] * low[j, i]
        s = a[j, j] * (scale[j] * scale[j]) - s
        if not s > 0.0:
            return np.nan, -1.0
        pivot = math.sqrt(s)
        low[j, j] = pivot
        logs += math.log(pivot)
        least = pivot if pivot < least else least
    for j in range(p):  # the inverse of L, row by row
        pivot = 1.0 / low[j, j]
        for k in range(j):
            v = low[j, k]
            low[j, k] = 0.0
            for i in range(k + 1):
                low[j, i] -= v * low[k, i]
        for i in range(j):
            low[j, i] *= pivot
        low[j, j] = pivot
    for k in range(p):
        for i in range(k + 1):
            low[k, i] *= scale[i]
    for k in range(p):
        for i in range(k + 1):
            v = low[k, i]
            for j in range(i + 1):
                out[i, j] += v * low[k, j]
    for i in range(p):
        for j in range(i):
            out[j, i] = out[i, j]
    return logs, least


def solve_sites(cell: np.ndarray, value: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """C of B C = columns, in place, B having four non-zeros a row at cell…cell+3."""
    n = len(columns)
    at = 3 + cell[:, None] + np.arange(4) - np.arange(n)[:, None]
    row, k = np.nonzero((at >= 0) & (at < 7))
    band = np.zeros((n, 7))  # band[i, 3 + j − i] = B[i, j]
    band[row, at[row, k]] = value[row, k]
    solve_band(band, columns)
    return columns


@njit(nogil=True, cache=True, error_model="numpy")
def solve_band(band, columns):
    """C of B C = columns, in place: B is totally positive, so no pivots are needed."""
    n, p = columns.shape
    for i in range(n):
        end = i + 4 if i + 4 < n else n
        for r in range(i + 1, end):
            v = band[r, 3 + i - r]
            if v != 0.0:
                v /= band[i, 3]
                for j in range(i, end):
                    band[r, 3 + j - r] -= v * band[i, 3 + j - i]
                for k in range(p):
                    columns[r, k] -= v * columns[i, k]
    for i in range(n - 1, -1, -1):
        end = i + 4 if i + 4 < n else n
        for j in range(i + 1, end):
            v = band[i, 3 + j - i]
            if v != 0.0:
                for k in range(p):
                    columns[i, k] -= v * columns[j, k]
        for k in range(p):
            columns[i, k] /= band[i, 3]
