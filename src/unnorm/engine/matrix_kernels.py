"""Small matrices, compiled: the inverse of one that is positive definite, and splines through values at their sites.
What a kernel needs room for, its caller makes: NumPy's functions would be compiled with it."""

from __future__ import annotations

# pyright: reportCallIssue=false
import math

import numpy as np

from .._base.cached import njit
from .simd import axpy4, axpy4_of_4, scale4, set4

_FAST = {"contract", "nsz", "arcp", "reassoc"}


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def cholesky_inverse(a, scale, both, out):
    """Write A⁻¹ to `out`; return Σ log U_ii and the least U_ii, DAD = UᵀU, D = diag(scale). The least is −1 where A is
    not positive definite. both (w, 2w): room for U and, beside it, for its inverse transposed; w ≥ p is a multiple of
    four, and rows and columns beyond A's are those of the identity, so that every loop goes in fours."""
    p, w, wide = a.shape[0], both.shape[0], both.shape[1]
    logs, least = 0.0, np.inf
    for c in range(0, both.size, 4):
        set4(both, c, 0.0)
    for j in range(w):
        both[j, j] = both[j, w + j] = 1.0
    for j in range(p):
        for k in range(p):
            both[j, k] = a[j, k] * (scale[j] * scale[k])
    for four in range(0, w, 4):
        end = w + four + 4  # beyond, its rows are zero still
        for k in range(four, four + 4):
            for i in range(four, k):
                for c in range(four, end, 4):
                    axpy4(both, k * wide + c, -both[i, k], both, i * wide + c)
            if not both[k, k] > 0.0:
                return np.nan, -1.0
            pivot = math.sqrt(both[k, k])
            if k < p:
                logs += math.log(pivot)
                least = pivot if pivot < least else least
            for c in range(four, end, 4):
                scale4(both, k * wide + c, 1.0 / pivot)
        for j in range(four + 4, w):  # what these four rows leave of those below
            s0, s1, s2, s3 = both[four, j], both[four + 1, j], both[four + 2, j], both[four + 3, j]
            for c in range(j - j % 4, end, 4):
                axpy4_of_4(both, j * wide + c, both, four * wide + c, wide, -s0, -s1, -s2, -s3)
    for j in range(p):
        for c in range(0, w, 4):
            set4(both, j * wide + c, 0.0)
    for four in range(0, w, 4):
        for j in range(four + 4):
            s0, s1, s2, s3 = both[four, w + j], both[four + 1, w + j], both[four + 2, w + j], both[four + 3, w + j]
            for c in range(0, j + 1, 4):
                axpy4_of_4(both, j * wide + c, both, four * wide + w + c, wide, s0, s1, s2, s3)
    for j in range(p):
        for k in range(j + 1):
            out[j, k] = out[k, j] = both[j, k] * (scale[j] * scale[k])
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
