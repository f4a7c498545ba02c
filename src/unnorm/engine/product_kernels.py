"""Products of cubic splines of two or three covariates, compiled: 4^d non-zeros a row, whatever the number of columns.

A row has u[r, j] = cell + t for each margin j; its non-zeros are V = v₁ ⊗ v₂ (⊗ v₃), four cubics a margin, at raw
indices i + `steps`, i the first of them. V is filled four at a time: group g holds V[4g…4g+3], consecutive functions of
the last margin. The cross-product of these functions is a band: `band[i, near[a, b]]` holds the pair (i + steps[a],
i + steps[b]) with a ≤ b, counted at its first member.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
import numpy as np

from .._base.cached import njit
from .simd import axpy4, axpy4_of_4, cubic4, dot4, outer4, quadratic4

_FAST = {"contract", "nsz", "arcp", "reassoc"}


# long: compiled, with arrays as arguments
@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_values(u, begin, end, cell0, poly, sizes, by, value, first):
    """value[r − begin] = V (times by[r], where given) and first[r − begin] = i of rows begin…end−1."""
    d, n = u.shape[1], value.shape[1]
    margin = np.empty(4 * d)
    for r in range(begin, end):
        i = 0
        for j in range(d):
            at = u[r, j]
            cell = int(at)
            i = i * sizes[j] + cell
            cubic4(poly, (cell0[j] + cell) * 16, at - cell, 1.0, margin, 4 * j)
        first[r - begin] = i
        row = r - begin
        value[row, 0] = by[r] if by.shape[0] > 0 else 1.0
        count = 1
        for j in range(d):
            for g in range(count - 1, -1, -1):
                s = value[row, g]
                for k in range(4):
                    value[row, 4 * g + k] = s * margin[4 * j + k]
            count *= 4
    return n


@njit(nogil=True, cache=True)
def by_cell(first, size):
    """The rows sorted by their first function."""
    starts = np.zeros(size + 1, np.int64)
    for r in range(first.shape[0]):
        starts[first[r] + 1] += 1
    for k in range(size):
        starts[k + 1] += starts[k]
    order = np.empty(first.shape[0], np.int32)
    for r in range(first.shape[0]):
        order[starts[first[r]]] = r
        starts[first[r]] += 1
    return order


# long: compiled, with arrays as arguments
@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_gram(value, first, order, steps, near, kept, side, band, score, beside):
    """Add Σ w V Vᵀ to the band, Σ g V to the score and, where `side` is given, Σ side V to `beside`; kept[r] = (g, w),
    rows in the order of their cells. Four rows of a cell at once: the tile is then read and written a quarter as
    often."""
    n, count, sided = value.shape[1], order.shape[0], side.shape[0] > 0
    tile, pull, mass, four = np.zeros((n, n)), np.zeros(n), np.zeros(n), np.empty((4, n))
    at = 0
    while at < count:
        i, end = first[order[at]], at + 1
        while end < count and first[order[end]] == i:
            end += 1
        while at + 4 <= end:
            for k in range(4):
                r = order[at + k]
                g, e = kept[r, 0], side[r] if sided else 0.0
                for a in range(n):
                    v = value[r, a]
                    four[k, a] = v
                    pull[a] += g * v
                    mass[a] += e * v
            w0, w1 = kept[order[at], 1], kept[order[at + 1], 1]
            w2, w3 = kept[order[at + 2], 1], kept[order[at + 3], 1]
            for a in range(n):
                s0, s1, s2, s3 = w0 * four[0, a], w1 * four[1, a], w2 * four[2, a], w3 * four[3, a]
                for b in range(a - a % 4, n, 4):
                    axpy4_of_4(tile, a * n + b, four, b, n, s0, s1, s2, s3)
            at += 4
        while at < end:
            r = order[at]
            w, g, e = kept[r, 1], kept[r, 0], side[r] if sided else 0.0
            for a in range(0, n, 4):
                for b in range(a, n, 4):
                    outer4(tile, a * n + b, n, w, value, r * n + a, r * n + b)
            for a in range(n):
                pull[a] += g * value[r, a]
                mass[a] += e * value[r, a]
            at += 1
        for a in range(n):
            score[i + steps[a]] += pull[a]
            if sided:
                beside[i + steps[a]] += mass[a]
            pull[a] = mass[a] = 0.0
            for b in range(a, n):
                band[i + steps[a], near[a, b]] += tile[a, b]
        tile[:] = 0.0


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_leverage(value, first, order, steps, near, band, out):
    """out[r] += VᵀMV, M the band (its pairs off the diagonal once)."""
    n = value.shape[1]
    tile = np.zeros((n, n))
    last = -1
    for at in range(order.shape[0]):
        r = order[at]
        i = first[r]
        if i != last:
            for a in range(n):
                for b in range(a, n):
                    tile[a, b] = band[i + steps[a], near[a, b]]
            last = i
        h = 0.0
        for a in range(0, n, 4):
            for b in range(a, n, 4):
                h += quadratic4(tile, a * n + b, n, value, r * n + a, r * n + b)
        out[r] += h


# long: compiled, with arrays as arguments
@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_cross(
    value, first, steps, ptr, begin, end, u, cell0, poly, m, mult, i0, f, x, z, kept, table,
):  # fmt: skip
    """Add Σ w V (local, factor, dense, context)ᵀ to table (raw functions, columns) over runs begin…end−1, whose rows
    are those of `value`, `x` and `kept`."""
    n, width, origin = value.shape[1], table.shape[1], ptr[begin]
    d, c = x.shape[1], z.shape[1]
    q = width - d - c
    near = np.empty(4)
    for run in range(begin, end):
        for r in range(ptr[run], ptr[run + 1]):
            row = r - origin
            w, i = kept[row, 1], first[row]
            for b in range(u.shape[1]):
                at = u[r, b]
                cell = int(at)
                s = mult[r, m[b]] if m[b] >= 0 else 1.0
                cubic4(poly, (cell0[b] + cell) * 16, at - cell, s * w, near, 0)
                j = i0[b] + cell
                for a in range(n):
                    axpy4(table, (i + steps[a]) * width + j, value[row, a], near, 0)
            for a in range(n):
                v = w * value[row, a]
                to = i + steps[a]
                for j in range(f.shape[1]):
                    table[to, f[r, j]] += v
                for k in range(d):
                    table[to, q + k] += v * x[row, k]
                for k in range(c):
                    table[to, q + d + k] += v * z[run, k]


# long: compiled, with arrays as arguments
@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_across(
    value, first, steps, ptr, begin, end, u, cell0, poly, m, mult, i0, f, x, z, table, out,
):  # fmt: skip
    """out[r] += Vᵀ T (local, factor, dense, context) over runs begin…end−1: the other half of `product_cross`."""
    n, width, origin = value.shape[1], table.shape[1], ptr[begin]
    d, c = x.shape[1], z.shape[1]
    q = width - d - c
    near, along = np.empty(4), np.empty(width)
    for run in range(begin, end):
        for r in range(ptr[run], ptr[run + 1]):
            row = r - origin
            i = first[row]
            h = 0.0
            for b in range(u.shape[1]):
                at = u[r, b]
                cell = int(at)
                j = i0[b] + cell
                s = mult[r, m[b]] if m[b] >= 0 else 1.0
                cubic4(poly, (cell0[b] + cell) * 16, at - cell, s, near, 0)
                for a in range(n):
                    h += value[row, a] * dot4(table, (i + steps[a]) * width + j, near, 0)
            for k in range(d + c):
                along[k] = x[row, k] if k < d else z[run, k - d]
            for a in range(n):
                s = 0.0
                for j in range(f.shape[1]):
                    s += table[i + steps[a], f[r, j]]
                for k in range(d + c):
                    s += table[i + steps[a], q + k] * along[k]
                h += value[row, a] * s
            out[row] += h


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_sums(value, first, steps, v, label, totals):
    """totals[label[r]] += v_r V_r."""
    for r in range(value.shape[0]):
        for a in range(value.shape[1]):
            totals[label[r], first[r] + steps[a]] += v[r] * value[r, a]


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_predict(value, first, steps, gamma, out):
    """out[r] = Vᵀγ."""
    n = value.shape[1]
    for r in range(value.shape[0]):
        s = 0.0
        for a in range(0, n, 4):
            s += dot4(value, r * n + a, gamma, first[r] + steps[a])
        out[r] = s


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def product_dot(value, first, steps, coefficients, out):
    """out[r] += Vᵀ C, (rows, p)."""
    p = coefficients.shape[1]
    for r in range(value.shape[0]):
        for a in range(value.shape[1]):
            v, i = value[r, a], first[r] + steps[a]
            for k in range(p):
                out[r, k] += v * coefficients[i, k]


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def band_times(band, offsets, matrix, begin, out):
    """out += B M, B rows begin… of the band with half its diagonal (offset 0), so that B and Bᵀ add to the whole."""
    size, p = matrix.shape
    for i in range(band.shape[0]):
        for n in range(offsets.shape[0]):
            j = begin + i + offsets[n]
            v = band[i, n]
            if v == 0.0 or j >= size:
                continue
            if offsets[n] == 0:
                v *= 0.5
            for k in range(p):
                out[i, k] += v * matrix[j, k]


@njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def band_of(left, right, offsets, begin, band):
    """band[i, n] = left_i · right_j with j = begin + i + offset; twice that off the diagonal."""
    for i in range(left.shape[0]):
        for n in range(offsets.shape[0]):
            j = begin + i + offsets[n]
            if j >= right.shape[0]:
                continue
            s = 0.0
            for k in range(right.shape[1]):
                s += left[i, k] * right[j, k]
            band[i, n] = s if offsets[n] == 0 else 2.0 * s
