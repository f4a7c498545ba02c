"""Birth–death–move Metropolis–Hastings of Gibbs processes, compiled, with cell lists.

A birth proposes a uniform place u (and mark) and is taken with probability min(1, λ(u | x) |W| M/(n + 1)), a death of
one of n points with min(1, n/(λ(x_i | x∖x_i) |W| M)), M marks; a move is a death and a birth at once, taken with
min(1, λ(u | x∖x_i)/λ(x_i | x∖x_i)) (Geyer & Møller 1994). The trend is looked up at proposed places, which are drawn
and evaluated in batches outside.

Arrays that an interaction does not need are None, so that numba leaves out what would read them: compiling every
interaction at once took twice as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.cached import njit
from .interactions.base import Energy
from .interactions.kernels import covered
from .sorting import first_at_least

BIRTH = DEATH = 0.3  # shares of the steps; the others are moves


_INNER: Any = {
    "cache": True,
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}  # called by `run` alone


@njit(**_INNER)
def _cell(x, y, low, side, nx, ny):
    cx = min(max(int((x - low[0]) / side[0]), 0), nx - 1)
    cy = min(max(int((y - low[1]) / side[1]), 0), ny - 1)
    return cy * nx + cx


@njit(**_INNER)
def _step(a, b, period):
    d = b - a
    return d - period * np.floor(d / period + 0.5) if period > 0.0 else d


@njit(**_INNER)
def _near(x, y, skip, r2, state, grid, found):
    """How many points are within √r2 of a place, `skip` not counted; their numbers go to `found`."""
    xs, ys, head, after = state
    low, side, nx, ny, period = grid
    c = _cell(x, y, low, side, nx, ny)
    cx, cy = c % nx, c // nx
    n = 0
    for oy in range(-1, 2):
        for ox in range(-1, 2):
            gx, gy = cx + ox, cy + oy
            if period[0] > 0.0:
                gx, gy = gx % nx, gy % ny
                if (nx < 3 and ox != 0 and gx == cx) or (ny < 3 and oy != 0 and gy == cy):
                    continue
                if (nx == 2 and ox == 1) or (ny == 2 and oy == 1):
                    continue
            elif gx < 0 or gy < 0 or gx >= nx or gy >= ny:
                continue
            j = head[gy * nx + gx]
            while j >= 0:
                if j != skip:
                    dx, dy = _step(x, xs[j], period[0]), _step(y, ys[j], period[1])
                    if dx * dx + dy * dy <= r2 and n < len(found):
                        found[n] = j
                        n += 1
                j = after[j]
    return n


@njit(cache=True, nogil=True)
def interaction(x, y, mark, skip, marks, state, grid, law, found, more, work):
    """φᵀt(u, x∖u), the point `skip` left out of x; −∞ inside a hard core.

    Geyer's has `more` to find neighbours' neighbours in, area interaction has `work`, pairwise interactions neither.
    """
    near2, breaks, steps, numbers = law
    xs, ys = state[0], state[1]
    period = grid[4]
    phi, second, sat = numbers[0], numbers[1], numbers[2]
    n = _near(x, y, skip, near2, state, grid, found)
    total = 0.0
    if more is not None:
        total = min(sat, float(n))
        for k in range(n):
            j = found[k]
            c = _near(xs[j], ys[j], j, second, state, grid, more)
            if skip >= 0:
                for q in range(c):
                    if more[q] == skip:
                        c -= 1
                        break
            total += min(sat, c + 1.0) - min(sat, float(c))
        return phi * total
    if work is not None:
        px, py, lo, hi = work
        for k in range(n):
            px[k], py[k] = _step(x, xs[found[k]], period[0]), _step(y, ys[found[k]], period[1])
        return phi * covered(px, py, n, second, lo, hi)
    for k in range(n):
        j = found[k]
        dx, dy = _step(x, xs[j], period[0]), _step(y, ys[j], period[1])
        at = first_at_least(breaks, dx * dx + dy * dy)
        if at < len(breaks):
            total += steps[mark, marks[j], at]
    return total


@njit(**_INNER)
def _add(i, c, head, before, after):
    after[i], before[i] = head[c], -1
    if head[c] >= 0:
        before[head[c]] = i
    head[c] = i


@njit(**_INNER)
def _remove(i, c, head, before, after):
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        head[c] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]


# long: compiled, and its arguments are arrays
@njit(cache=True, nogil=True)
def _run(xs, ys, marks, trend, n, proposals, uniforms, log_size, grid, law, trace, links, found, more, work):
    low, side, nx, ny, _ = grid
    room = len(xs)
    head, before, after = links
    for i in range(n):
        _add(i, _cell(xs[i], ys[i], low, side, nx, ny), head, before, after)
    state = (xs, ys, head, after)
    for b in range(len(proposals)):
        x, y, mark, log_b = proposals[b, 0], proposals[b, 1], int(proposals[b, 2]), proposals[b, 3]
        accept, what = np.log(uniforms[b, 2]), uniforms[b, 0]
        birth, death = what < BIRTH, BIRTH <= what < BIRTH + DEATH  # else a move, which is both
        trace[b] = n
        if n == 0 and not birth:
            continue
        if n == room and birth:
            return -1
        i = -1 if birth else min(int(uniforms[b, 1] * n), n - 1)
        log_ratio = log_size - np.log(n + 1.0) if birth else (np.log(float(n)) - log_size if death else 0.0)
        for new in range(2):  # log λ of the point that may go, then of the one that may come
            if (birth and new == 0) or (death and new == 1):
                continue
            u, v, m, e = (x, y, mark, log_b) if new else (xs[i], ys[i], marks[i], trend[i])
            e += interaction(u, v, m, i, marks, state, grid, law, found, more, work)
            log_ratio += e if new else -e
        if not accept < log_ratio:
            continue
        if not birth:
            _remove(i, _cell(xs[i], ys[i], low, side, nx, ny), head, before, after)
        if death:
            n -= 1
            if i != n:  # the last point takes the free number
                c = _cell(xs[n], ys[n], low, side, nx, ny)
                _remove(n, c, head, before, after)
                xs[i], ys[i], marks[i], trend[i] = xs[n], ys[n], marks[n], trend[n]
                _add(i, c, head, before, after)
        else:
            at = n if birth else i
            xs[at], ys[at], marks[at], trend[at] = x, y, mark, log_b
            _add(at, _cell(x, y, low, side, nx, ny), head, before, after)
            n += 1 if birth else 0
        trace[b] = n
    return n


def run(
    state: list[np.ndarray],
    n: int,
    steps: tuple[np.ndarray, np.ndarray],
    log_size: float,
    grid: tuple[Any, ...],
    law: Energy,
    trace: np.ndarray,
) -> int:
    """A batch of steps from n points at the front of the state's arrays; the new n, or −1 where room ran out.

    `steps`: (B, 4) proposed place, mark and log trend; (B, 3) uniforms for the kind of step, the point and acceptance.
    `trace` receives n after every step.
    """
    x, y, marks, trend = state
    room = len(x)
    links = tuple(np.full(size, -1, np.int64) for size in (grid[2] * grid[3], room, room))
    arrays, found = (law.near2, law.breaks, law.steps, law.numbers), np.empty(room, np.int64)
    more, work = law.scratch(room)
    proposals, uniforms = steps
    return _run(
        x, y, marks, trend, n, proposals, uniforms, log_size, grid, arrays, trace, links, found, more, work
    )  # fmt: skip
