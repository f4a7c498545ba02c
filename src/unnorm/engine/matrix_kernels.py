"""Small matrices, compiled: the inverse of one that is positive definite, and splines through values at their sites."""

from __future__ import annotations

import math

import numpy as np

from .cached import njit

_FAST = {"contract", "nsz", "arcp", "reassoc"}


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def cholesky_inverse(a, scale):
    """(A⁻¹, Σ log L_ii, the least L_ii) with DAD = L Lᵀ, D = diag(scale); the least is −1 where A is not positive
    definite."""
    p = a.shape[0]
    low = np.zeros((p, p))
    logs, least = 0.0, np.inf
    for j in range(p):
        row_j = low[j]
        for k in range(j):
            row_k = low[k]
            s = 0.0
            for i in range(k):
                s += row_j[i] * row_k[i]
            row_j[k] = (a[j, k] * (scale[j] * scale[k]) - s) / row_k[k]
        s = 0.0
        for i in range(j):
            s += row_j[i] * row_j[i]
        s = a[j, j] * (scale[j] * scale[j]) - s
        if not s > 0.0:
            return low, np.nan, -1.0
        pivot = math.sqrt(s)
        row_j[j] = pivot
        logs += math.log(pivot)
        least = min(least, pivot)
    inverse = np.zeros((p, p))  # of L, row by row
    for j in range(p):
        row = inverse[j]
        for k in range(j):
            v = low[j, k]
            other = inverse[k]
            for i in range(k + 1):
                row[i] -= v * other[i]
        v = 1.0 / low[j, j]
        for i in range(j):
            row[i] *= v
        row[j] = v
    for k in range(p):
        row = inverse[k]
        for i in range(k + 1):
            row[i] *= scale[i]
    out = np.zeros((p, p))
    for k in range(p):
        row = inverse[k]
        for i in range(k + 1):
            v = row[i]
            target = out[i]
            for j in range(i + 1):
                target[j] += v * row[j]
    for i in range(p):
        for j in range(i):
            out[j, i] = out[i, j]
    return out, logs, least


@njit(nogil=True, cache=True, error_model="numpy")
def solve_sites(cell, value, columns):
    """C of B C = columns, in place, B having four non-zeros a row at cell…cell+3: B is totally positive, so no pivots
    are needed."""
    n, p = columns.shape
    band = np.zeros((n, 7))  # band[i, 3 + j − i] = B[i, j]
    for i in range(n):
        for k in range(4):
            j = 3 + cell[i] + k - i
            if 0 <= j < 7:
                band[i, j] = value[i, k]
    for i in range(n):
        for r in range(i + 1, min(i + 4, n)):
            v = band[r, 3 + i - r]
            if v != 0.0:
                v /= band[i, 3]
                for j in range(i, min(i + 4, n)):
                    band[r, 3 + j - r] -= v * band[i, 3 + j - i]
                for k in range(p):
                    columns[r, k] -= v * columns[i, k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, min(i + 4, n)):
            v = band[i, 3 + j - i]
            if v != 0.0:
                for k in range(p):
                    columns[i, k] -= v * columns[j, k]
        for k in range(p):
            columns[i, k] /= band[i, 3]
    return columns
