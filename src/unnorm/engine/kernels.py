"""The row pass, compiled: rows × coefficients → (log-likelihood, score, weighted cross-product), in one sweep.

Rows come in runs (`ptr`): those of one context, or any stretch where there is none. In raw coordinates a row has
- LOCAL blocks: u[r, b] = cell + t; four non-zero cubics a0 + t(a1 + t(a2 + t a3)) at raw indices i0[b] + cell + 0…3;
- FACTOR blocks: one non-zero, at raw index f[r, j];
- d DENSE columns x[r, :];
- c CONTEXT columns z[run, :], constant along the run (the intercept is one of them).

`m[b]` names the column of `mult` that multiplies local block b (−1: none). Local and factor functions share one index
set of size Q. All kernels release the GIL, are cached on disk and are not specialised to a shape. Where a design has
neither factor blocks nor dense columns, f and x are None (and so is what belongs to x), and so is `link` where the
family needs nothing of links.py: Numba then leaves out what handles them, and a first fit compiles half as much.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
import numpy as np

from .._base.cached import inner, njit
from .block_products import add_products, padded
from .likelihood_kernels import BLOCK, FAST, bends, slopes
from .simd import axpy4, cubic4, dot4, fma4, outer4, quadratic4, set4, sum4, whole

# NumPy's functions, min, max and int are compiled as functions of their own, for each kind of argument: few kinds of
# arrays are made here, and conditions are written out.

# Helpers that take arrays are written out in the loops over rows: a call, even inlined, counts references at every row.
# They are called for a block of rows that is held: each step then meets its tables in the first-level cache.
_PRODUCT = 600_000  # multiplications at a time: more are no quicker, and take the tables' place in the cache
_RUNS = 64  # at most at a time


@njit(inline="always")
def _together(size):
    """Runs per matrix product, each of `size` multiplications."""
    return _RUNS if _RUNS * size <= _PRODUCT else _PRODUCT // size if size <= _PRODUCT else 1


@inner(error_model="numpy")
def _clear(matrix):
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = 0.0


@inner(fastmath=FAST, error_model="numpy")
def _add_pairs(table, squares, value, index, cells, w, rows):
    """Add w v_a v_bᵀ of the rows held: to the table for every pair of local blocks a < b, to `squares` by cell for
    a = b. In a table the sums of neighbouring cells overlap, and each waits for the last to be written; by cell they
    are the same or apart."""
    size, held = table.shape[1], index.shape[1]
    for a in range(index.shape[0]):
        for n in range(rows):
            outer4(squares, 16 * cells[a, n], 4, w[n], value, 4 * (a * held + n), 4 * (a * held + n))
        for b in range(a + 1, index.shape[0]):
            for n in range(rows):
                at = index[a, n] * size + index[b, n]
                outer4(table, at, size, w[n], value, 4 * (a * held + n), 4 * (b * held + n))


@inner(fastmath=FAST, error_model="numpy")
def _from_cells(cell0, i0, g_cells, squares, curved, g_local, table):
    """Add sums by cell, of four functions and (where `curved`) of their pairs, to those of functions."""
    for b in range(cell0.shape[0]):
        end = cell0[b + 1] if b + 1 < cell0.shape[0] else g_cells.shape[0]
        for cell in range(cell0[b], end):
            i = i0[b] + cell - cell0[b]
            axpy4(g_local, i, 1.0, g_cells, 4 * cell)
            if curved:
                for k in range(4):
                    axpy4(table, (i + k) * table.shape[1] + i, 1.0, squares, 16 * cell + 4 * k)


# long: arrays of a compiled loop
@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def cross_products(
    ptr, first, last, u, cell0, poly, m, mult, i0, f, x, z, y, wt, offset, family, link,
    gamma, delta, zeta, table, local_x, xx, context, g_local, g_x, g_z, kept,
):  # fmt: skip
    """Sweep runs first…last−1; add to the tables and to the scores; return the log-likelihood without its constants.

    gamma (Q,), delta (d,), zeta (c,): coefficients. table (≥ Q, ≥ Q): pairs of local and factor functions, each pair of
    blocks once. local_x (Q, d), xx (d, d); context (c, Q + d + c): context columns against local, dense and context
    columns. kept (n, 2), or empty, receives dℓ/dη and w. Where `context` has no columns, the scores alone
    are wanted, and `table` and `xx` may be empty.
    """
    n_local, n_factor, d, c, size, n = u.shape[1], 0, 0, z.shape[1], gamma.shape[0], 0
    if x is not None:
        n_factor, d = f.shape[1], x.shape[1]
    index, cells = np.empty((n_local, BLOCK), np.int64), np.empty((n_local, BLOCK), np.int64)
    value, parts, eta = np.empty((n_local, 4 * BLOCK)), np.empty((BLOCK, 4)), np.empty(BLOCK)  # η in four parts
    ys, wts, es, gs, ws = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    held = np.empty((2, BLOCK), np.int64)  # rows and their runs
    squares, g_cells = np.empty((poly.size // 16, 16)), np.empty((poly.size // 16, 4))
    weighted, offsets, keep = wt.shape[0] > 0, offset.shape[0] > 0, kept.shape[0] > 0
    width, curved = size + d + c, context.shape[1] > 0
    together = _together(c * width)
    room = padded(width)
    along = np.empty((together, room))  # Σ w (local, dense, context) over the rows of each run
    by_run = np.empty((2, together))  # Σ dℓ/dη and Σ w
    products, crossed = np.empty((c, room)), np.empty((d, padded(d)))
    wx = np.empty((256 if d > 0 else 0, padded(d)))
    n_wx, wx_from = 0, ptr[first]
    total = 0.0
    _clear(squares)
    _clear(g_cells)
    _clear(products)
    _clear(crossed)
    _clear(wx)
    for run0 in range(first, last, together):
        run1 = run0 + together if run0 + together < last else last
        _clear(along)
        _clear(by_run)
        run, begin, at_run, end = run0 - 1, ptr[run0], 0.0, ptr[run1]  # the next run begins at row `begin`
        for r in range(ptr[run0], end + 1):  # after the last row, what is held is added
            if r < end:
                while r >= begin:
                    run += 1
                    begin = ptr[run + 1]
                    at_run = 0.0
                    for k in range(c):
                        at_run += z[run, k] * zeta[k]
                weight = wt[r] if weighted else 1.0
                if weight == 0.0 and d == 0:
                    continue
                set4(parts, 4 * n, at_run + offset[r] if offsets else at_run)
                for b in range(n_local):
                    at = u[r, b]
                    cell = whole(at)
                    i = i0[b] + cell
                    index[b, n], cells[b, n] = i, cell0[b] + cell
                    s = mult[r, m[b]] if m[b] >= 0 else 1.0
                    cubic4(poly, cells[b, n] * 16, at - cell, s, value, 4 * (b * BLOCK + n))
                    fma4(parts, 4 * n, value, 4 * (b * BLOCK + n), gamma, i)
                if x is not None:
                    for j in range(n_factor):
                        parts[n, 1] += gamma[f[r, j]]
                    for k in range(d):
                        parts[n, 2] += x[r, k] * delta[k]
                ys[n], wts[n], held[0, n], held[1, n] = y[r], weight, r, run - run0
                n += 1
                if n < BLOCK:
                    continue
            for h in range(n):
                eta[h] = sum4(parts, 4 * h)
            total += slopes(family, link, ys, wts, weighted, eta, n, es, gs, ws)
            for h in range(n):
                g, w, row, of = gs[h], ws[h], held[0, h], held[1, h]
                by_run[0, of] += g
                by_run[1, of] += w
                if keep:
                    kept[row, 0], kept[row, 1] = g, w
                for a in range(n_local):
                    axpy4(g_cells, 4 * cells[a, h], g, value, 4 * (a * BLOCK + h))
                    axpy4(along, of * room + index[a, h], w, value, 4 * (a * BLOCK + h))
                if x is not None:
                    for j in range(n_factor):
                        i = f[row, j]
                        g_local[i] += g
                        along[of, i] += w
                        if not curved:
                            continue
                        table[i, i] += w
                        for k in range(j):
                            table[i, f[row, k]] += w
                        for b in range(n_local):
                            axpy4(table, i * table.shape[1] + index[b, h], w, value, 4 * (b * BLOCK + h))
                    if d > 0:
                        for k in range(d):
                            v = w * x[row, k]
                            g_x[k] += g * x[row, k]
                            along[of, size + k] += v
                            wx[n_wx, k] = v
                        for b in range(n_local):
                            for j in range(4):
                                v = value[b, 4 * h + j]
                                for k in range(d):
                                    local_x[index[b, h] + j, k] += v * wx[n_wx, k]
                        for j in range(n_factor):
                            for k in range(d):
                                local_x[f[row, j], k] += wx[n_wx, k]
                        n_wx += 1
                        if n_wx == 256:
                            if curved:
                                add_products(crossed, d, d, x, wx_from * d, 1, d, wx, 0, wx.shape[1], n_wx)
                            wx_from += n_wx
                            n_wx = 0
            if curved:
                _add_pairs(table, squares, value, index, cells, ws, n)
            n = 0
        for run in range(run0, run1):
            for k in range(c):
                g_z[k] += by_run[0, run - run0] * z[run, k]
                along[run - run0, size + d + k] = by_run[1, run - run0] * z[run, k]
        if curved:
            add_products(products, c, width, z, run0 * c, 1, c, along, 0, room, run1 - run0)
    if curved:
        for k in range(c):
            for j in range(width):
                context[k, j] += products[k, j]
    _from_cells(cell0, i0, g_cells, squares, curved, g_local, table)
    if x is not None and curved:
        add_products(crossed, d, d, x, wx_from * d, 1, d, wx, 0, wx.shape[1], n_wx)
        for j in range(d):
            for k in range(d):
                xx[j, k] += crossed[j, k]
    return total


@inner(fastmath=FAST, error_model="numpy")
def _pair_leverages(p_local, value, index, h, rows):
    """Add v_aᵀP_ab v_b of every pair of local blocks to h, of the rows held."""
    size, held = p_local.shape[0], index.shape[1]
    for a in range(index.shape[0]):
        for b in range(a, index.shape[0]):
            twice = 1.0 if a == b else 2.0
            for n in range(rows):
                at = index[a, n] * size + index[b, n]
                h[n] += twice * quadratic4(p_local, at, size, value, 4 * (a * held + n), 4 * (b * held + n))


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def leverages(
    ptr, first, last, u, cell0, poly, m, mult, i0, f, x, z, y, wt, offset, family, link,
    gamma, delta, zeta, p_local, p_local_x, p_xx, p_context, g_local, g_x, g_z, out, kept,
):  # fmt: skip
    """Add Σ_r w'_r h_r x_r to the scores, h_r = x_rᵀPx_r, w' = dw/dη; fill `out` with h (or leave it, if empty).

    kept (n,), or empty, holds what other columns add to h, and receives w'h.
    P in raw coordinates: p_local (Q, Q), p_local_x (Q, d), p_xx (d, d), p_context (c, Q + d + c).
    """
    n_local, n_factor, d, c, size, n = u.shape[1], 0, 0, z.shape[1], gamma.shape[0], 0
    if x is not None:
        n_factor, d = f.shape[1], x.shape[1]
    index, runs = np.empty((n_local, BLOCK), np.int64), np.empty((1, BLOCK), np.int64)
    value, hs, dws = np.empty((n_local, 4 * BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    ys, wts, etas, es = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    weighted, offsets, keep = wt.shape[0] > 0, offset.shape[0] > 0, out.shape[0] > 0
    more = kept.shape[0] > 0
    width = size + d + c
    together = _together(c * width)
    room = padded(width)
    along, spread = np.empty((together, room)), np.empty((c, room))  # P z for each run, and that part of P
    _clear(spread)
    for k in range(c):
        for j in range(width):
            spread[k, j] = p_context[k, j]
    turned = np.empty((256 if d > 0 else 0, padded(d)))  # x P for a block of rows
    p_dense = np.empty((d, padded(d)))
    _clear(p_dense)
    if x is not None:
        for j in range(d):
            for k in range(d):
                p_dense[j, k] = p_xx[j, k]
    by_run = np.empty((1, last - first))  # Σ w'h over the rows of each run
    _clear(by_run)
    block_from = block_to = ptr[first]
    for run0 in range(first, last, together):
        run1 = run0 + together if run0 + together < last else last
        _clear(along)
        add_products(along, run1 - run0, width, z, run0 * c, c, 1, spread, 0, room, c)
        for run in range(run0, run1):
            row = (run - run0) * room
            at_run, h_run = 0.0, 0.0
            for k in range(c):
                at_run += z[run, k] * zeta[k]
                h_run += z[run, k] * along[run - run0, size + d + k]
            for r in range(ptr[run], ptr[run + 1]):
                eta = at_run + offset[r] if offsets else at_run
                h = 0.0  # half the pairs of unlike columns
                for b in range(n_local):
                    at = u[r, b]
                    cell = whole(at)
                    i = i0[b] + cell
                    index[b, n] = i
                    s = mult[r, m[b]] if m[b] >= 0 else 1.0
                    cubic4(poly, (cell0[b] + cell) * 16, at - cell, s, value, 4 * (b * BLOCK + n))
                    eta += dot4(value, 4 * (b * BLOCK + n), gamma, i)
                    h += dot4(along, row + i, value, 4 * (b * BLOCK + n))
                if x is not None:
                    for j in range(n_factor):
                        i = f[r, j]
                        eta += gamma[i]
                        h += along[run - run0, i]
                        for k in range(j):
                            h += p_local[i, f[r, k]]
                        for b in range(n_local):
                            h += dot4(p_local, i * size + index[b, n], value, 4 * (b * BLOCK + n))
                    for k in range(d):
                        eta += x[r, k] * delta[k]
                        s = along[run - run0, size + k]
                        for b in range(n_local):
                            i = index[b, n]
                            s += value[b, 4 * n] * p_local_x[i, k] + value[b, 4 * n + 1] * p_local_x[i + 1, k]
                            s += value[b, 4 * n + 2] * p_local_x[i + 2, k] + value[b, 4 * n + 3] * p_local_x[i + 3, k]
                        for j in range(n_factor):
                            s += p_local_x[f[r, j], k]
                        h += s * x[r, k]
                h = 2.0 * h + h_run
                if x is not None:
                    for j in range(n_factor):
                        h += p_local[f[r, j], f[r, j]]
                    if d > 0 and r >= block_to:
                        block_from = r
                        block_to = r + 256 if r + 256 < ptr[last] else ptr[last]
                        _clear(turned)
                        n_rows = block_to - block_from
                        add_products(turned, n_rows, d, x, block_from * d, d, 1, p_dense, 0, p_dense.shape[1], d)
                    for k in range(d):
                        h += turned[r - block_from, k] * x[r, k]
                if more:
                    h += kept[r]
                ys[n], wts[n], etas[n] = y[r], wt[r] if weighted else 1.0, eta
                hs[n], runs[0, n] = h, run
                n += 1
                if n < BLOCK and r + 1 < ptr[last]:
                    continue
                bends(family, link, ys, wts, etas, n, es, dws)
                _pair_leverages(p_local, value, index, hs, n)
                for k in range(n):
                    held = r + 1 - n + k
                    h = hs[k]
                    if keep:
                        out[held] = h
                    h *= dws[k]
                    if more:
                        kept[held] = h
                    by_run[0, runs[0, k] - first] += h
                    for a in range(n_local):
                        axpy4(g_local, index[a, k], h, value, 4 * (a * BLOCK + k))
                    if x is not None:
                        for j in range(n_factor):
                            g_local[f[held, j]] += h
                        for j in range(d):
                            g_x[j] += h * x[held, j]
                n = 0
    for run in range(first, last):
        for k in range(c):
            g_z[k] += by_run[0, run - first] * z[run, k]


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def predictor(ptr, first, last, u, cell0, poly, m, mult, i0, f, x, z, gamma, delta, zeta, out):
    """out[r] = x_rᵀβ, without the offset."""
    value = np.empty(4)
    for run in range(first, last):
        at_run = 0.0
        for k in range(z.shape[1]):
            at_run += z[run, k] * zeta[k]
        for r in range(ptr[run], ptr[run + 1]):
            eta = at_run
            for b in range(u.shape[1]):
                at = u[r, b]
                cell = whole(at)
                s = mult[r, m[b]] if m[b] >= 0 else 1.0
                cubic4(poly, (cell0[b] + cell) * 16, at - cell, s, value, 0)
                eta += dot4(value, 0, gamma, i0[b] + cell)
            if x is not None:
                for j in range(f.shape[1]):
                    eta += gamma[f[r, j]]
                for k in range(x.shape[1]):
                    eta += x[r, k] * delta[k]
            out[r] = eta


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def run_sums(ptr, first, last, u, cell0, poly, m, mult, i0, f, x, z, v, totals):
    """totals[run − first] += Σ_r v_r R_r over the run's rows: local, factor, dense and context functions."""
    value = np.empty(4)
    d = 0 if x is None else x.shape[1]
    q = totals.shape[1] - d - z.shape[1]
    for run in range(first, last):
        total = 0.0
        for r in range(ptr[run], ptr[run + 1]):
            e = v[r]
            if e == 0.0:
                continue
            total += e
            for b in range(u.shape[1]):
                at = u[r, b]
                cell = whole(at)
                s = mult[r, m[b]] if m[b] >= 0 else 1.0
                cubic4(poly, (cell0[b] + cell) * 16, at - cell, s * e, value, 0)
                for j in range(4):
                    totals[run - first, i0[b] + cell + j] += value[j]
            if x is not None:
                for j in range(f.shape[1]):
                    totals[run - first, f[r, j]] += e
                for k in range(d):
                    totals[run - first, q + k] += e * x[r, k]
        for k in range(z.shape[1]):
            totals[run - first, q + d + k] += total * z[run, k]
