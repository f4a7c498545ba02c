"""A stretch of rows on which the same columns are alive, in compact form, and the three sweeps over it.

X = R C: R is what the kernels see (raw functions: local, factor, dense, context), C the blocks that turn raw
functions into coefficients. Cross-products are formed for R and turned by C at the end, when they are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.threads import apart
from .ahead import kernel
from .products import Product

if TYPE_CHECKING:
    from .gather import Gather

_NONE = np.empty(0)
_NO_PAIRS = np.empty((0, 2))
_RUNS = 1024  # whose raw sums are held at once
_CHUNK = 65_536  # rows of dense columns evaluated at a time, where they are not stored
_COLUMNS = 12  # of the kernels' arguments, those that say which columns a row has
_FACTORS, _CONTEXT = 9, 11  # where f and x, and where z, stand among them
_VALUES = 524_288  # non-zeros of a product that are held at a time
_WITH_LINKS = 3  # the first family of links.py


@dataclass(frozen=True)
class Block:
    """One term's columns: raw functions `raw`, coefficients `at` (in the segment's vector), X = R[:, raw] C."""

    raw: slice
    at: slice
    matrix: np.ndarray  # C
    adds: bool = False  # whether an earlier block has the same coefficients, so that its columns are added to theirs
    less: slice | np.ndarray | None = None  # where C is −1 for one coefficient each, and else zero: which

    @cached_property
    def transposed(self) -> np.ndarray:
        return np.ascontiguousarray(self.matrix.T)

    @cached_property
    def plain(self) -> bool:
        """Whether C is the identity, as that of a product: its multiplications would take as long as a pass."""
        return np.array_equal(self.matrix, np.eye(len(self.matrix)))

    def fold(self, rows: np.ndarray, out: np.ndarray) -> None:
        """out = Cᵀ rows."""
        if self.plain:
            out[:] = rows
        else:
            np.matmul(self.transposed, rows, out=out)

    def spread(self, rows: np.ndarray, out: np.ndarray) -> None:
        """out = C rows."""
        if self.plain:
            out[:] = rows
        else:
            np.matmul(self.matrix, rows, out=out)


@dataclass(frozen=True)
class ResponseRows:
    """The response's side of one segment, in the design's row order; empty arrays where absent."""

    y: np.ndarray
    weights: np.ndarray
    offset: np.ndarray


def _link(family: int) -> int | None:
    """The kernels' `link`: None where they need nothing of links.py."""
    return family if family >= _WITH_LINKS else None


def _offset_by(arguments: tuple[Any, ...], eta: np.ndarray) -> tuple[Any, ...]:
    """The kernels' arguments with a known part of η in the offset, which is the last of them."""
    offset = arguments[-1]
    return (*arguments[:-1], eta + offset[: eta.size] if offset.size else eta)


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
    product: Product | None = None  # a term in product form: the last of the d columns, never stored

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Q, d, c."""
        return self.local, self.x.shape[1] + (self.product.size if self.product else 0), self.z.shape[1]

    @property
    def nonzeros(self) -> int:
        """Of a row, its context's columns aside."""
        own = 0 if self.product is None else 2 * self.product.basis.steps.size  # a band costs twice a table
        return 4 * self.u.shape[1] + self.f.shape[1] + self.x.shape[1] + own

    @property
    def runs(self) -> int:
        return self.ptr.size - 1

    @property
    def bytes(self) -> int:
        """What the compact rows take."""
        own = self.product.bytes if self.product else 0
        return own + sum(a.nbytes for a in (self.ptr, self.u, self.mult, self.f, self.x, self.z))

    def raw_coefficients(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """γ (Q,), δ (d,), ζ (c,) of the coefficients β of this segment."""
        q, d, c = self.sizes
        raw = np.zeros(q + d + c)
        for block in self.blocks:
            raw[block.raw] = block.matrix @ beta[block.at]
        return raw[:q], raw[q : q + d], raw[q + d :]

    def _pieces(self, first: int, last: int):
        """Run ranges small enough for the dense columns at hand: (first, last, x, row shift)."""
        if self.dense is None and self.product is None:
            yield first, last, self.x, 0
            return
        rows = _VALUES // self.product.basis.steps.size if self.product else _CHUNK
        while first < last:
            stop = int(np.searchsorted(self.ptr, self.ptr[first] + rows, side="right")) - 1
            stop = min(max(stop, first + 1), last)
            a, b = int(self.ptr[first]), int(self.ptr[stop])
            yield first, stop, self.x[a:b] if self.dense is None else self.dense(a, b), a
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

    @property
    def bare(self) -> bool:
        """Neither factors nor dense columns: the kernels take None for f, x and what belongs to x."""
        return self.f.shape[1] == 0 and self.x.shape[1] == 0

    def _given(self, *of_x: np.ndarray) -> tuple[np.ndarray | None, ...]:
        return (None,) * len(of_x) if self.bare else of_x

    def _compiled(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """`_arguments`, as kernels.py takes them."""
        return (*arguments[:_FACTORS], *self._given(*arguments[_FACTORS:_CONTEXT]), *arguments[_CONTEXT:])

    @cached_property
    def _gather(self) -> Gather | None:
        """What gathers sums of a segment without factors and dense columns."""
        if not self.bare or self.product is not None or not self.blocks:
            return None
        from .gather import Gather

        return Gather.of(self.blocks, self.local, self.columns.size)

    def sweep(
        self, rows: ResponseRows, family: int, beta: np.ndarray, first: int, last: int
    ) -> tuple[float, tuple[np.ndarray, ...]]:
        """ℓ over runs first…last−1, and sums for `gather`: the raw score, raw XᵀWX with each pair of local blocks once,
        and a product's own sums."""
        cross_products = kernel("cross_products", self.bare and _link(family) is None)

        (q, d, c), s = self.sizes, self.x.shape[1]
        gamma, delta, zeta = self.raw_coefficients(beta)
        local_x, xx, size = np.zeros((q, s)), np.zeros((s, s)), q + d + c
        cross = np.zeros((size, size + (self._gather.beyond if self._gather else 0)))
        context = np.zeros((c, q + s + c))
        score = np.zeros(q + d + c)
        product = self.product.empty(q + s + c) if self.product else ()
        values, total = (_NONE, _NONE), 0.0
        for a, b, x, shift in self._pieces(first, last):
            arguments = self._arguments(a, b, x, shift, rows)
            kept = _NO_PAIRS
            if self.product:
                values, kept = self.product.at(shift, shift + len(x)), np.zeros((len(x), 2))
                arguments = _offset_by(arguments, self.product.predict(delta[s:], values))
            with apart():
                total += cross_products(
                    *self._compiled(arguments), family, _link(family), gamma, *self._given(delta[:s]), zeta,
                    cross, *self._given(local_x, xx), context,
                    score[:q], *self._given(score[q : q + s]), score[q + d :], kept,
                )  # fmt: skip
            if self.product:
                self.product.add(values, arguments[:_COLUMNS], kept, product)
        cross[:q, q : q + s] = local_x
        cross[q : q + s, q : q + s] = xx
        cross[q + d :, : q + s] = context[:, : q + s]
        cross[q + d :, q + d : size] = context[:, q + s :]
        return total, (score, cross, *product)

    def scores(
        self, rows: ResponseRows, family: int, beta: np.ndarray, first: int, last: int
    ) -> tuple[float, np.ndarray]:
        """ℓ over runs first…last−1 and the raw score, without XᵀWX: half of the work of `sweep`, or less."""
        cross_products = kernel("cross_products", self.bare and _link(family) is None)

        (q, d, c), s = self.sizes, self.x.shape[1]
        gamma, delta, zeta = self.raw_coefficients(beta)
        score, none, local_x, total = np.zeros(q + d + c), np.empty((0, 0)), np.zeros((q, s)), 0.0
        for a, b, x, shift in self._pieces(first, last):
            arguments, kept, values = self._arguments(a, b, x, shift, rows), _NO_PAIRS, (_NONE, _NONE)
            if self.product:
                values, kept = self.product.at(shift, shift + len(x)), np.zeros((len(x), 2))
                arguments = _offset_by(arguments, self.product.predict(delta[s:], values))
            total += cross_products(
                *self._compiled(arguments), family, _link(family), gamma, *self._given(delta[:s]), zeta,
                none, *self._given(local_x, none), none, score[:q], *self._given(score[q : q + s]), score[q + d :],
                kept,
            )  # fmt: skip
            if self.product:
                label = np.zeros(len(x), np.int64)
                score[q + s : q + d] += self.product.sums(values, np.ascontiguousarray(kept[:, 0]), label, 1)[0]
        return total, score

    def gather(
        self, score: np.ndarray, cross: np.ndarray, *product: np.ndarray, threads: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Raw score and cross-product (summed over sweeps) → those of the segment's coefficients."""
        if self._gather is not None:
            return self._gather.both(score, cross)
        (q, d, _), s = self.sizes, self.x.shape[1]
        if self.product:
            own = slice(q + s, q + d)
            score[own], cross[own, own], others = self.product.gather(*product, threads=threads)
            cross[:q, own], cross[q + d :, own] = others[:, :q].T, others[:, q + s :].T
            cross[own, q : q + s] = others[:, q : q + s]
            cross[q : q + s, own] = others[:, q : q + s].T
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
                block.fold(cross[block.raw], half[block.at])
                gradient[block.at] = block.transposed @ score[block.raw]
        for block in self.blocks:  # Cᵀ(CᵀR)ᵀ: R is symmetric
            if block.adds:
                out[block.at] += block.transposed @ half[:, block.raw].T
            else:
                block.fold(half[:, block.raw].T, out[block.at])
        return gradient, 0.5 * (out + out.T)

    def leverage(
        self,
        rows: ResponseRows,
        family: int,
        beta: np.ndarray,
        raw_p: np.ndarray,
        lever: tuple[np.ndarray, ...],
        first: int,
        last: int,
        out: np.ndarray,
    ) -> np.ndarray:
        """Raw Σ w'_r h_r x_r over runs first…last−1; `out` (rows of the segment, or empty) receives h. `lever` is what
        `levers` made of the raw P."""
        leverages = kernel("leverages", self.bare and _link(family) is None)

        (q, d, c), s = self.sizes, self.x.shape[1]
        gamma, delta, zeta = self.raw_coefficients(beta)
        score = np.zeros(q + d + c)
        p_local, p_local_x = np.ascontiguousarray(raw_p[:q, :q]), np.ascontiguousarray(raw_p[:q, q : q + s])
        p_xx, p_context = np.ascontiguousarray(raw_p[q : q + s, q : q + s]), raw_p[q + d :]
        if self.product:
            p_context = np.ascontiguousarray(np.delete(p_context, np.s_[q + s : q + d], axis=1))
        values = (_NONE, _NONE)
        for a, b, x, shift in self._pieces(first, last):
            arguments = self._arguments(a, b, x, shift, rows)
            kept = _NONE
            if self.product:
                values = self.product.at(shift, shift + len(x))
                arguments = _offset_by(arguments, self.product.predict(delta[s:], values))
                kept = self.product.leverage(values, arguments[:_COLUMNS], *lever)
            with apart():
                leverages(
                    *self._compiled(arguments), family, _link(family), gamma, *self._given(delta[:s]), zeta,
                    p_local, *self._given(p_local_x, p_xx), p_context,
                    score[:q], *self._given(score[q : q + s]), score[q + d :],
                    out[shift:] if out.size else out, kept,
                )  # fmt: skip
            if self.product:
                score[q + s : q + d] += self.product.sums(values, kept, np.zeros(len(x), np.int64), 1)[0]
        return score

    def levers(self, raw_p: np.ndarray, threads: int) -> tuple[np.ndarray, ...]:
        """What `leverage` needs of the raw P for a product."""
        if self.product is None:
            return ()
        (q, d, _), s = self.sizes, self.x.shape[1]
        own = slice(q + s, q + d)
        return self.product.lever(raw_p[own, own], np.delete(raw_p[own], own, axis=1), threads)

    def raw_inverse(self, p: np.ndarray) -> np.ndarray:
        """C P Cᵀ for P (the segment's coefficients), which is symmetric."""
        size = sum(self.sizes)
        half = np.zeros((size, self.columns.size))
        for block in self.blocks:
            block.spread(p[block.at], half[block.raw])
        out = np.zeros((size, size))
        for block in self.blocks:
            block.spread(half[:, block.at].T, out[block.raw])
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
        predictor = kernel("predictor", self.bare)
        gamma, delta, zeta = self.raw_coefficients(beta)
        s = self.x.shape[1]
        for a, b, x, shift in self._pieces(first, last):
            arguments = self._compiled(self._arguments(a, b, x, shift, None))
            predictor(*arguments, gamma, *self._given(delta[:s]), zeta, out[shift:])
            if self.product:
                out[shift : shift + len(x)] += self.product.predict(delta[s:], self.product.at(shift, shift + len(x)))

    def most(self, beta: np.ndarray) -> float:
        """A bound of |x_rᵀβ| over the rows, infinite where none is cheap: B-splines are not negative and sum to one."""
        gamma, delta, zeta = self.raw_coefficients(beta)
        if self.x.shape[1] or self.dense is not None or self.mult.shape[1]:
            return np.inf
        local = sum(float(np.abs(gamma[at]).max(initial=0.0)) for at in self.tables)
        if self.product is not None:
            by = float(np.abs(self.product.by).max()) if self.product.by.size else 1.0
            local += by * float(np.abs(self.product.basis.coefficients @ delta).max(initial=0.0))
        return local + float(np.abs(self.z @ zeta).max(initial=0.0))

    def run_sums(self, v: np.ndarray, first: int, last: int) -> np.ndarray:
        """(runs, p) Σ_r v_r x_r over runs first…last−1; v (rows of the segment,)."""
        compiled = kernel("run_sums", self.bare)
        out = np.zeros((last - first, self.columns.size))
        (q, d, c), s = self.sizes, self.x.shape[1]
        for begin in range(first, last, _RUNS):
            end = min(begin + _RUNS, last)
            raw = np.zeros((end - begin, q + d + c))
            seen = np.zeros((end - begin, q + s + c)) if self.product else raw
            for a, b, x, shift in self._pieces(begin, end):
                arguments = self._compiled(self._arguments(a, b, x, shift, None))
                compiled(*arguments, v[shift:], seen[a - begin : b - begin])
                if self.product:
                    label = np.repeat(np.arange(b - a), np.diff(self.ptr[a : b + 1]))
                    stop = shift + len(x)
                    own = self.product.sums(self.product.at(shift, stop), v[shift:stop], label, b - a)
                    raw[a - begin : b - begin, q + s : q + d] = own
            if self.product:
                raw[:, : q + s], raw[:, q + d :] = seen[:, : q + s], seen[:, q + s :]
            for block in self.blocks:
                if block.less is None:
                    out[begin - first : end - first, block.at] += raw[:, block.raw] @ block.matrix
                else:
                    out[begin - first : end - first, block.less] -= raw[:, block.raw]
        return out

    def integrals(self, beta: np.ndarray, log_w: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """log Σ w e^η (runs,) and the weighted means of the columns (runs, p), over runs first…last−1."""
        log_z, v = self.log_integrals(beta, log_w, first, last)
        return log_z, self.run_sums(v, first, last)

    def log_integrals(
        self, beta: np.ndarray, log_w: np.ndarray, first: int, last: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """log Σ w e^η (runs,) over runs first…last−1, and w e^η of each row over its run's sum."""
        v = np.zeros(self.hi - self.lo)
        self.predict(beta, v, first, last)
        here = slice(int(self.ptr[first]), int(self.ptr[last]))
        v[here] += log_w[self.lo : self.hi][here]
        starts, lengths = self.ptr[first:last] - self.ptr[first], np.diff(self.ptr[first : last + 1])
        v[here] -= np.repeat(top := np.maximum.reduceat(v[here], starts), lengths)
        np.exp(v[here], out=v[here])
        v[here] /= np.repeat(total := np.add.reduceat(v[here], starts), lengths)
        return top + np.log(total), v

    def less(self, mean: np.ndarray, live: np.ndarray | None = None) -> Segment:
        """The segment with `mean` (runs, p) subtracted from its columns, run by run: X = R C − M, M one row a run.
        `live`: the columns where some mean is not zero, found in these runs unless given."""
        live = np.flatnonzero(np.any(mean != 0.0, axis=0)) if live is None else live
        raw = sum(self.sizes)
        matrix = np.zeros((live.size, self.columns.size))
        matrix[np.arange(live.size), live] = -1.0
        stretch = live.size > 0 and live[-1] - live[0] + 1 == live.size
        which = slice(int(live[0]), int(live[-1]) + 1) if stretch else live
        block = Block(slice(raw, raw + live.size), slice(0, self.columns.size), matrix, adds=True, less=which)
        z = np.ascontiguousarray(np.concatenate([self.z, mean[:, which]], axis=1))
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
            x, self.z[runs], dense, self.local, self.product.take(rows) if self.product else None,
        )  # fmt: skip
        return part, rows
