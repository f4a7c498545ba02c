"""Columns that only one level's rows touch, the same functions for every level: random effects and factor smooths.

A row of level l has η = x_sᵀβ_s + xᵀβ_l, with x (k,) its own columns. The shared side is one segment, for which the
levels' part of η is an offset; what is left are sums over the rows of each level,

    H_ll = Σ w x xᵀ,   H_l0 = Σ w x x_sᵀ,   score_l = Σ (dℓ/dη) x,

so that a level costs k² + k s numbers, and no pair of levels is ever met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import numpy as np

from .._base.threads import run_tasks
from .segment import ResponseRows, Segment

_HELD = 1_000_000  # numbers of raw sums held at once


@dataclass(frozen=True)
class Slopes:
    """Of each row: dℓ/dη, w = −d²ℓ/dη², dw/dη."""

    g: np.ndarray
    w: np.ndarray
    dw: np.ndarray


@final
@dataclass(frozen=True)
class LevelColumns:
    """x (n, k) in the design's row order, and where each level's runs and rows begin, in one segment of all rows."""

    x: np.ndarray
    runs: np.ndarray  # (L + 1,)
    rows: np.ndarray  # (L + 1,)

    @property
    def levels(self) -> int:
        """L."""
        return self.runs.size - 1

    @property
    def width(self) -> int:
        """k."""
        return self.x.shape[1]

    @cached_property
    def counts(self) -> np.ndarray:
        """(L,) rows of each level."""
        return np.diff(self.rows)

    def per_level(self, beta: np.ndarray) -> np.ndarray:
        """(L, k): the levels' coefficients, the last L k of β."""
        return beta[beta.size - self.levels * self.width :].reshape(self.levels, self.width)

    def predict(self, beta: np.ndarray) -> np.ndarray:
        """(n,) xᵀβ_l."""
        return np.einsum("nk,nk->n", self.x, np.repeat(self.per_level(beta), self.counts, axis=0))

    def known(self, rows: ResponseRows, beta: np.ndarray) -> ResponseRows:
        """The rows with the levels' part of η among the offsets."""
        eta = self.predict(beta)
        return replace(rows, offset=rows.offset + eta if rows.offset.size else eta)

    def totals(self, v: np.ndarray) -> np.ndarray:
        """(L, …): the sum of (n, …) over each level's rows."""
        out = np.zeros((self.levels, *v.shape[1:]))
        seen = self.counts > 0
        if len(v):
            out[seen] = np.add.reduceat(v, self.rows[:-1][seen], axis=0)
        return out

    def tasks(self, segment: Segment, threads: int) -> list[tuple[int, int]]:
        """Ranges of levels: a share for each thread, and none with more raw sums than are held at once."""
        most = max(1, _HELD // max(1, self.width * sum(segment.sizes)))
        share = max(1, -(-self.rows[-1] // max(threads, 1)))
        cuts, a = [0], 0
        while a < self.levels:
            b = int(np.searchsorted(self.rows, self.rows[a] + share))
            a = min(max(b, a + 1), a + most, self.levels)
            cuts.append(a)
        return list(pairwise(cuts))

    # the three sweeps

    def slopes(self, segment: Segment, rows: ResponseRows, family: int, beta: np.ndarray, threads: int) -> Slopes:
        """g, w and dw of each row; `rows` have the levels' η among their offsets."""
        from . import level_kernels

        compiled: Any = level_kernels.row_slopes
        n = len(self.x)
        eta = np.zeros(n)
        out = Slopes(np.empty(n), np.empty(n), np.empty(n))

        def work(a: int, b: int) -> None:
            segment.predict(beta[segment.columns], eta, int(self.runs[a]), int(self.runs[b]))
            here = slice(int(self.rows[a]), int(self.rows[b]))
            eta[here] += rows.offset[here]
            compiled(family, rows.y, eta, rows.weights, here.start, here.stop, out.g, out.w, out.dw)

        run_tasks(work, self.tasks(segment, threads), threads)
        return out

    def sweep(self, segment: Segment, slopes: Slopes, threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """score (L, k), H_ll (L, k, k), H_l0 (L, k, s)."""
        x, k = self.x, self.width
        score = self.totals(slopes.g[:, None] * x)
        own = np.empty((self.levels, k, k))
        for j in range(k):
            own[:, j] = self.totals((slopes.w * x[:, j])[:, None] * x)
        return score, 0.5 * (own + own.transpose(0, 2, 1)), self.crossed(segment, slopes.w, threads)

    def crossed(self, segment: Segment, v: np.ndarray, threads: int) -> np.ndarray:
        """(L, k, s): Σ v x x_sᵀ over each level's rows."""
        from . import level_kernels

        compiled: Any = level_kernels.level_sums
        k, raw, s = self.width, sum(segment.sizes), segment.columns.size
        out = np.zeros((self.levels, k, s))

        def work(a: int, b: int) -> None:
            sums = np.zeros((b - a, k, raw))
            self._each(compiled, segment, a, b, lambda here: (v[here], sums))
            flat, turned = sums.reshape((b - a) * k, raw), out[a:b].reshape((b - a) * k, s)
            for block in segment.blocks:
                turned[:, block.at] += flat[:, block.raw] @ block.matrix

        run_tasks(work, self.tasks(segment, threads), threads)
        return out

    def leverage(
        self, segment: Segment, dw: np.ndarray, hats: np.ndarray, every: tuple[np.ndarray, np.ndarray], threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the levels' columns add to Σ w'hx of the shared columns (s,), and their own (L, k).

        `hats` holds x_sᵀP_00x_s and receives h = x_sᵀP_00x_s + 2 xᵀP_l0x_s + xᵀP_llx; `every` = (P_l0, P_ll).
        """
        from . import level_kernels

        compiled: Any = level_kernels.level_products
        cross, own = every
        both = np.empty(len(self.x))

        def work(a: int, b: int) -> None:
            flat = np.zeros(((b - a) * self.width, sum(segment.sizes)))
            here = cross[a:b].reshape(len(flat), cross.shape[2])
            for block in segment.blocks:
                flat[:, block.raw] += here[:, block.at] @ block.transposed
            raw = flat.reshape(b - a, self.width, flat.shape[1])
            self._each(compiled, segment, a, b, lambda rows: (raw, both[rows]))

        run_tasks(work, self.tasks(segment, threads), threads)
        more = 2.0 * both
        for j in range(self.width):
            more += self.x[:, j] * np.einsum("nk,nk->n", self.x, np.repeat(own[:, j], self.counts, axis=0))
        hats += more
        return self._column_sums(segment, dw * more), self.totals((dw * hats)[:, None] * self.x)

    def _column_sums(self, segment: Segment, v: np.ndarray) -> np.ndarray:
        """Σ v x_s over all rows."""
        from . import level_kernels

        compiled: Any = level_kernels.level_sums
        sums, ones = np.zeros((1, 1, sum(segment.sizes))), np.ones((len(v), 1))
        of = np.zeros(segment.runs, np.int64)
        for a, b, x, shift in segment._pieces(0, segment.runs):
            compiled(*segment._arguments(a, b, x, shift, None), of, ones[shift:], v[shift:], sums)
        return segment.turn(sums[0, 0])

    def _each(
        self, compiled: Any, segment: Segment, a: int, b: int, rest: Callable[[slice], tuple[np.ndarray, ...]]
    ) -> None:
        """The kernel on the runs of levels a…b−1; `rest` are its last arguments for rows from `here` on."""
        first, last = int(self.runs[a]), int(self.runs[b])
        of = np.empty(segment.runs, np.int64)
        of[first:last] = np.repeat(np.arange(b - a), np.diff(self.runs[a : b + 1]))
        for begin, end, x, shift in segment._pieces(first, last):
            here = slice(shift, None)
            compiled(*segment._arguments(begin, end, x, shift, None), of, self.x[here], *rest(here))

    # other rows

    def less(self, mean: np.ndarray, segment: Segment) -> LevelColumns:
        """With `mean` (runs, k) taken off, run by run."""
        return replace(self, x=self.x - np.repeat(mean, np.diff(segment.ptr), axis=0))

    def take(self, runs: np.ndarray, rows: np.ndarray, part: Segment) -> LevelColumns:
        """The columns of some runs (ascending) alone: `rows` of this design, in the new segment `part`."""
        first = np.searchsorted(runs, self.runs)
        return LevelColumns(np.ascontiguousarray(self.x[rows]), first, part.ptr[first])

    def run_sums(self, v: np.ndarray, segment: Segment) -> np.ndarray:
        """(runs, k) Σ v x over the rows of each run."""
        weighted, out = v[:, None] * self.x, np.zeros((segment.runs, self.width))
        lengths = np.diff(segment.ptr)
        if len(v):
            out[lengths > 0] = np.add.reduceat(weighted, segment.ptr[:-1][lengths > 0], axis=0)
        return out

    def columns(self, shared: int) -> np.ndarray:
        """(runs, k) the flat indices of each run's own coefficients."""
        at = shared + np.arange(self.levels * self.width).reshape(self.levels, self.width)
        return np.repeat(at, np.diff(self.runs), axis=0)
