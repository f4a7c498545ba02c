"""Compiled loops of the interactions that are not sums over pairs."""

from __future__ import annotations

import numpy as np

from ..._base.cached import njit
from ..sorting import first_at_least, sort_with


@njit(cache=True, nogil=True)
def geyer_rows(start, b, own, count, sat, there, back):
    """min(s, N_u) + Σ_v [min(s, c_v + w_vu) − min(s, c_v)], c_v the weights of points within r of v, u not counted."""
    out = np.empty(len(own))
    for a in range(len(own)):
        n, total = 0.0, 0.0
        for k in range(start[a], start[a + 1]):
            n += there[k]
            c = count[b[k]] - (back[k] if own[a] >= 0 else 0.0)
            total += min(sat, c + back[k]) - min(sat, c)
        out[a] = total + min(sat, n)
    return out


@njit(cache=True, nogil=True)
def geyer_without(i, j, start, b, count, sat, there, back):
    """Geyer's statistic of x_i given x less x_i and x_j, for each pair."""
    out = np.empty(len(i))
    for p in range(len(i)):
        n, total = 0.0, 0.0
        jb, je = start[j[p]], start[j[p] + 1]
        for k in range(start[i[p]], start[i[p] + 1]):
            v = b[k]
            if v == j[p]:
                continue
            n += there[k]
            c = count[v] - back[k]  # x_i is one of them
            at = jb + first_at_least(b[jb:je], v)
            if at < je and b[at] == v:
                c -= back[at]  # and x_j
            total += min(sat, c + back[k]) - min(sat, c)
        out[p] = total + min(sat, n)
    return out


@njit(cache=True, nogil=True)
def _exposed(cx, cy, r, xs, ys, n, skip, lo, hi):
    """½∮(x dy − y dx) over the arcs of the circle around (cx, cy) that n discs of the same radius, less `skip`, leave
    free; None of it counts where another disc is the same one."""
    m = 0
    for k in range(n):
        if k == skip:
            continue
        dx, dy = xs[k] - cx, ys[k] - cy
        d2 = dx * dx + dy * dy
        if d2 >= 4.0 * r * r:
            continue
        if d2 <= 1e-24 * r * r:
            if k < skip:  # of equal discs the first keeps its arcs
                return 0.0
            continue
        half = np.arccos(min(1.0, np.sqrt(d2) / (2.0 * r)))
        mid = np.arctan2(dy, dx)
        a, e = mid - half, mid + half
        if a < -np.pi:
            lo[m], hi[m] = a + 2 * np.pi, np.pi
            m += 1
            a = -np.pi
        if e > np.pi:
            lo[m], hi[m] = -np.pi, e - 2 * np.pi
            m += 1
            e = np.pi
        lo[m], hi[m] = a, e
        m += 1
    sort_with(lo, hi, m)
    total, at = 0.0, -np.pi
    for q in range(m + 1):
        begin = np.pi if q == m else lo[q]
        if begin > at:  # the free arc from `at` to `begin`
            total += 0.5 * (
                r * r * (begin - at) + r * cx * (np.sin(begin) - np.sin(at)) - r * cy * (np.cos(begin) - np.cos(at))
            )
        if q < m and hi[q] > at:
            at = hi[q]
    return total


@njit(cache=True, nogil=True)
def _union(xs, ys, n, r, lo, hi):
    """The area of the union of n discs."""
    total = 0.0
    for k in range(n):
        total += _exposed(xs[k], ys[k], r, xs, ys, n, k, lo, hi)
    return total


@njit(cache=True, nogil=True)
def covered(xs, ys, n, r, lo, hi):
    """The share of the disc around 0 that discs around the n points (xs, ys), all within 2r, cover."""
    if n == 0:
        return 0.0
    xs[n], ys[n] = 0.0, 0.0
    gained = _union(xs, ys, n + 1, r, lo, hi) - _union(xs, ys, n, r, lo, hi)
    return min(1.0, max(0.0, 1.0 - gained / (np.pi * r * r)))


@njit(cache=True, nogil=True)
def area_rows(start, step, r):
    """The covered share of each row's disc."""
    out = np.zeros(len(start) - 1)
    most = 1
    for a in range(len(out)):
        most = max(most, start[a + 1] - start[a])
    xs, ys, lo, hi = np.empty(most + 1), np.empty(most + 1), np.empty(3 * most + 3), np.empty(3 * most + 3)
    for a in range(len(out)):
        n = 0
        for k in range(start[a], start[a + 1]):
            xs[n], ys[n] = step[k, 0], step[k, 1]
            n += 1
        out[a] = covered(xs, ys, n, r, lo, hi)
    return out


@njit(cache=True, nogil=True)
def area_without(i, start, step, r):
    """The covered share of the disc of i, were the pair's other point not there."""
    out = np.zeros(len(i))
    most = 1
    for a in range(len(start) - 1):
        most = max(most, start[a + 1] - start[a])
    xs, ys, lo, hi = np.empty(most + 1), np.empty(most + 1), np.empty(3 * most + 3), np.empty(3 * most + 3)
    for p in range(len(i)):
        n = 0
        for k in range(start[i[p]], start[i[p] + 1]):
            if k != p:
                xs[n], ys[n] = step[k, 0], step[k, 1]
                n += 1
        out[p] = covered(xs, ys, n, r, lo, hi)
    return out
