"""Compiled sums over the rows of each level: what a level's own columns have in common with the shared ones.

The first twelve arguments are a segment's, as in kernels.py: runs, local, factor, dense and context functions. `of` is
the level of each run, counted from the first that is asked for, and x (n, k) holds the rows' own columns.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
import numpy as np

from .._base.cached import njit
from .likelihood_kernels import FAST, weight_of
from .simd import axpy4, cubic4, dot4


# long: arrays of a compiled loop
@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def row_slopes(family, y, eta, wt, begin, end, g, w, dw):
    """dℓ/dη, w = −d²ℓ/dη² and dw/dη of rows begin…end−1."""
    weighted = wt.shape[0] > 0
    for r in range(begin, end):
        g[r], w[r], dw[r], _ = weight_of(family, family, y[r], eta[r], wt[r] if weighted else 1.0)


# long: arrays of a compiled loop
@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def level_sums(ptr, first, last, u, cell0, poly, m, mult, i0, f, x, z, of, own, v, totals):
    """totals[level, j] += Σ_r v_r own_rj R_r over the level's rows, R the segment's raw functions."""
    value = np.empty(4)
    k, d, c = own.shape[1], x.shape[1], z.shape[1]
    width = totals.shape[2]
    q = width - d - c
    along = np.empty(k)  # Σ v own over the run
    for run in range(first, last):
        level = of[run]
        along[:] = 0.0
        for r in range(ptr[run], ptr[run + 1]):
            if v[r] == 0.0:
                continue
            for j in range(k):
                along[j] += v[r] * own[r, j]
            for b in range(u.shape[1]):
                at = u[r, b]
                cell = int(at)
                s = mult[r, m[b]] if m[b] >= 0 else 1.0
                cubic4(poly, (cell0[b] + cell) * 16, at - cell, s * v[r], value, 0)
                i = i0[b] + cell
                for j in range(k):
                    axpy4(totals, (level * k + j) * width + i, own[r, j], value, 0)
            for b in range(f.shape[1]):
                for j in range(k):
                    totals[level, j, f[r, b]] += v[r] * own[r, j]
            for j in range(k):
                e = v[r] * own[r, j]
                for h in range(d):
                    totals[level, j, q + h] += e * x[r, h]
        for j in range(k):
            for h in range(c):
                totals[level, j, q + d + h] += along[j] * z[run, h]


# long: arrays of a compiled loop
@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def level_products(ptr, first, last, u, cell0, poly, m, mult, i0, f, x, z, of, own, raw, out):
    """out[r] = Σ_j own_rj raw[level, j]ᵀ R_r: each row's functions with its level's own coefficients `raw`."""
    value = np.empty(4)
    k, d, c = own.shape[1], x.shape[1], z.shape[1]
    width = raw.shape[2]
    q = width - d - c
    for run in range(first, last):
        level = of[run]
        for r in range(ptr[run], ptr[run + 1]):
            total = 0.0
            for j in range(k):
                e = own[r, j]
                part = 0.0
                for h in range(c):
                    part += raw[level, j, q + d + h] * z[run, h]
                for h in range(d):
                    part += raw[level, j, q + h] * x[r, h]
                for b in range(f.shape[1]):
                    part += raw[level, j, f[r, b]]
                total += e * part
            for b in range(u.shape[1]):
                at = u[r, b]
                cell = int(at)
                s = mult[r, m[b]] if m[b] >= 0 else 1.0
                cubic4(poly, (cell0[b] + cell) * 16, at - cell, s, value, 0)
                i = i0[b] + cell
                for j in range(k):
                    total += own[r, j] * dot4(raw, (level * k + j) * width + i, value, 0)
            out[r] = total
