"""A stretch of rows on which the same columns are alive, in compact form, and the three sweeps over it.

X = R C: R is what the kernels see (raw functions: local, factor, dense, context), C the blocks that turn raw
functions into coefficients. Cross-products are formed for R and turned by C at the end, when they are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .ahead import kernel

_NONE = np.empty(0)
_RUNS = 1024  # whose raw sums are held at once
_CHUNK = 65_536  # rows of dense columns evaluated at a time, where they are not stored


@dataclass(frozen=True)
class Block:
    """One term's columns: raw functions `raw`, coefficients `at` (in the segment's vector), X = R[:, raw] C."""

    raw: slice
    at: slice
    matrix: np.ndarray  # C
    adds: bool = False  # whether an earlier block has the same coefficients, so that its columns are added to theirs

    @cached_property
    def transposed(self) -> np.ndarray:
        return np.ascontiguousarray(self.matrix.T)


@dataclass(frozen=True)
class ResponseRows:
    """The response's side of one segment, in the design's row order; empty arrays where absent."""

    y: np.ndarray
    weights: np.ndarray
    offset: np.ndarray


@dataclass(frozen=True)
class Segment:
    """Rows lo…hi−1 of the design's order: shared columns and, where `level` is a number, that level's own."""

    level: int | None
    lo: int
    hi: int
    columns: np.ndarray  # flat arrow indices of the segment's coefficients
    blocks: tuple[Block, ...]
    tables: tuple[
        slice, ...
    ]  # the raw indices of each local and factor block, for the diagonal blocks of the pair table
    ptr: np.ndarray  # runs, counted from lo
    u: np.ndarray
    cell0: np.ndarray
    poly: np.ndarray
    m: np.ndarray
    mult: np.ndarray
    i0: np.ndarray
    f: np.ndarray
    x: np.ndarray  # (n, d), or (0, d) where `dense` evaluates it
    z: np.ndarray  # (runs, c)
    dense: Callable[[int, int], np.ndarray] | None = None  # rows a…b−1 (from lo) of x
    local: int = 0  # Q

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Q, d, c."""
        return self.local, self.x.shape[1], self.z.shape[1]

    @property
    def runs(self) -> int:
        return self.ptr.size - 1

    @property
    def bytes(self) -> int:
        """What the compact rows take."""
        return sum(a.nbytes for a in (self.ptr, self.u, self.mult, self.f, self.x, self.z))

    def raw_coefficients(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """γ (Q,), δ (d,), ζ (c,) of the coefficients β of this segment."""
        q, d, c = self.sizes
        raw = np.zeros(q + d + c)
        for block in self.blocks:
            raw[block.raw] = block.matrix @ beta[block.at]
        return raw[:q], raw[q : q + d], raw[q + d :]

    def _pieces(self, first: int, last: int):
        """Run ranges small enough for the dense columns at hand: (first, last, x, row shift)."""
        if self.dense is None:
            yield first, last, self.x, 0
            return
        while first < last:
            stop = int(np.searchsorted(self.ptr, self.ptr[first] + _CHUNK, side="right")) - 1
            stop = min(max(stop, first + 1), last)
            a, b = int(self.ptr[first]), int(self.ptr[stop])
            yield first, stop, self.dense(a, b), a
            first = stop

    def _arguments(
        self, first: int, last: int, x: np.ndarray, shift: int, rows: ResponseRows | None
    ) -> tuple[Any, ...]:
        """What every kernel takes first; rows are counted from `shift` where x holds only some of them."""
        a, b = self.lo + shift, self.hi
        side = ()
        if rows is not None:
            pick = slice(a, b)
            side = (
                rows.y[pick],
                rows.weights[pick] if rows.weights.size else _NONE,
                rows.offset[pick] if rows.offset.size else _NONE,
            )
        ptr = self.ptr - shift if shift else self.ptr
        u, mult, f = self.u[shift:], self.mult[shift:], self.f[shift:]
        return (ptr, first, last, u, self.cell0, self.poly, self.m, mult, self.i0, f, x, self.z, *side)

    def sweep(
        self, rows: ResponseRows, family: int, beta: np.ndarray, first: int, last: int
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """(ℓ, raw score, raw XᵀWX with each pair of local blocks once) over runs first…last−1."""
        cross_products = kernel("cross_products")

        q, d, c = self.sizes
        gamma, delta, zeta = self.raw_coefficients(beta)
        table, local_x, xx = np.zeros((q, q)), np.zeros((q, d)), np.zeros((d, d))
        context = np.zeros((c, q + d + c))
        score = np.zeros(q + d + c)
        total = 0.0
        for a, b, x, shift in self._pieces(first, last):
            total += cross_products(
                *self._arguments(a, b, x, shift, rows), family, gamma, delta, zeta,
                table, local_x, xx, context, score[:q], score[q : q + d], score[q + d :],
            )  # fmt: skip
        cross = np.zeros((q + d + c, q + d + c))
        cross[:q, :q] = table
        cross[:q, q : q + d] = local_x
        cross[q : q + d, q : q + d] = xx
        cross[q + d :] = context
        return total, score, cross

    def gather(self, score: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Raw score and cross-product (summed over sweeps) → those of the segment's coefficients."""
        q, d, _ = self.sizes
        pairs = cross[:q, :q]
        for at in self.tables:  # each pair of blocks has its sums on one side of the diagonal, factors' on either
            pairs[at.stop :, at] += pairs[at, at.stop :].T
            pairs[at, at.stop :] = pairs[at.stop :, at].T
        cross[q : q + d, :q] = cross[:q, q : q + d].T
        cross[: q + d, q + d :] = cross[q + d :, : q + d].T
        size = self.columns.size
        half = np.empty((size, len(cross)))
        out, gradient = np.empty((size, size)), np.empty(size)
        for block in self.blocks:
            if block.adds:
                half[block.at] += block.transposed @ cross[block.raw]
                gradient[block.at] += block.transposed @ score[block.raw]
            else:
                np.matmul(block.transposed, cross[block.raw], out=half[block.at])
                gradient[block.at] = block.transposed @ score[block.raw]
        for block in self.blocks:
            if block.adds:
                out[:, block.at] += half[:, block.raw] @ block.matrix
            else:
                np.matmul(half[:, block.raw], block.matrix, out=out[:, block.at])
        return gradient, 0.5 * (out + out.T)

    def leverage(
        self,
        rows: ResponseRows,
        family: int,
        beta: np.ndarray,
        raw_p: np.ndarray,
        first: int,
        last: int,
        out: np.ndarray,
    ) -> np.ndarray:
        """Raw Σ w'_r h_r x_r over runs first…last−1; `out` (rows of the segment, or empty) receives h."""
        leverages = kernel("leverages")

        q, d, c = self.sizes
        gamma, delta, zeta = self.raw_coefficients(beta)
        score = np.zeros(q + d + c)
        p_local, p_local_x = np.ascontiguousarray(raw_p[:q, :q]), np.ascontiguousarray(raw_p[:q, q : q + d])
        p_xx, p_context = np.ascontiguousarray(raw_p[q : q + d, q : q + d]), raw_p[q + d :]
        for a, b, x, shift in self._pieces(first, last):
            leverages(
                *self._arguments(a, b, x, shift, rows), family, gamma, delta, zeta,
                p_local, p_local_x, p_xx, p_context, score[:q], score[q : q + d], score[q + d :],
                out[shift:] if out.size else out,
            )  # fmt: skip
        return score

    def raw_inverse(self, p: np.ndarray) -> np.ndarray:
        """C P Cᵀ for P (the segment's coefficients)."""
        size = sum(self.sizes)
        half = np.zeros((size, self.columns.size))
        for block in self.blocks:
            np.matmul(block.matrix, p[block.at], out=half[block.raw])
        out = np.zeros((size, size))
        for block in self.blocks:
            np.matmul(half[:, block.at], block.transposed, out=out[:, block.raw])
        return out

    def turn(self, score: np.ndarray) -> np.ndarray:
        """Cᵀ of a raw score."""
        out = np.empty(self.columns.size)
        for block in self.blocks:
            own = block.matrix.T @ score[block.raw]
            out[block.at] = out[block.at] + own if block.adds else own
        return out

    def predict(self, beta: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
        """out[r] = x_rᵀβ for the rows of runs first…last−1."""
        from . import kernels

        predictor: Any = kernels.predictor

        coefficients = self.raw_coefficients(beta)
        for a, b, x, shift in self._pieces(first, last):
            predictor(*self._arguments(a, b, x, shift, None), *coefficients, out[shift:])

    def run_sums(self, v: np.ndarray, first: int, last: int) -> np.ndarray:
        """(runs, p) Σ_r v_r x_r over runs first…last−1; v (rows of the segment,)."""
        from . import kernels

        compiled: Any = kernels.run_sums
        out = np.zeros((last - first, self.columns.size))
        for begin in range(first, last, _RUNS):
            end = min(begin + _RUNS, last)
            raw = np.zeros((end - begin, sum(self.sizes)))
            for a, b, x, shift in self._pieces(begin, end):
                compiled(*self._arguments(a, b, x, shift, None), v[shift:], raw[a - begin : b - begin])
            for block in self.blocks:
                out[begin - first : end - first, block.at] += raw[:, block.raw] @ block.matrix
        return out

    def integrals(self, beta: np.ndarray, log_w: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """log Σ w e^η (runs,) and the weighted means of the columns (runs, p), over runs first…last−1."""
        v = np.zeros(self.hi - self.lo)
        self.predict(beta, v, first, last)
        here = slice(int(self.ptr[first]), int(self.ptr[last]))
        v[here] += log_w[self.lo : self.hi][here]
        starts, lengths = self.ptr[first:last] - self.ptr[first], np.diff(self.ptr[first : last + 1])
        v[here] -= np.repeat(top := np.maximum.reduceat(v[here], starts), lengths)
        np.exp(v[here], out=v[here])
        v[here] /= np.repeat(total := np.add.reduceat(v[here], starts), lengths)
        return top + np.log(total), self.run_sums(v, first, last)

    def less(self, mean: np.ndarray) -> Segment:
        """The segment with `mean` (runs, p) subtracted from its columns, run by run: X = R C − M, M one row a run."""
        live = np.flatnonzero(np.any(mean != 0.0, axis=0))
        raw = sum(self.sizes)
        matrix = np.zeros((live.size, self.columns.size))
        matrix[np.arange(live.size), live] = -1.0
        block = Block(slice(raw, raw + live.size), slice(0, self.columns.size), matrix, adds=True)
        z = np.ascontiguousarray(np.concatenate([self.z, mean[:, live]], axis=1))
        return replace(self, blocks=(*self.blocks, block), z=z)

    def take(self, runs: np.ndarray, lo: int) -> tuple[Segment, np.ndarray]:
        """The segment of these runs only, starting at row `lo` of a new design; and the rows taken (from this lo)."""
        lengths = np.diff(self.ptr)[runs]
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.ptr[:-1][runs] - ptr[:-1], lengths) + np.arange(ptr[-1])
        x, dense = self.x, self.dense
        if dense is None:
            x = x[rows]
        elif rows.size:
            x, dense = (
                np.concatenate([dense(int(a), int(b)) for a, b in zip(self.ptr[:-1][runs], self.ptr[1:][runs])]),
                None,
            )
        part = Segment(
            self.level, lo, lo + rows.size, self.columns, self.blocks, self.tables, ptr,
            self.u[rows], self.cell0, self.poly, self.m, self.mult[rows], self.i0, self.f[rows],
            x, self.z[runs], dense, self.local,
        )  # fmt: skip
        return part, rows
