"""`DeviceRows`: a design's rows on a device, with the sums that the engine asks of them.

It is met where the engine meets rows (`Design.sweep`, `leverage`, `predict`, …) and gives back NumPy arrays of the size
of the coefficients, so that PIRLS, REML and all that follows are the engine's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ..._base.numerics import x64
from ..arrow import Arrow
from ..design import RowsElsewhere
from ..segment import ResponseRows, Segment
from .spec import Device

_PRODUCT = 4_096  # rows in one matrix product of a batch
TILE = 1 << 30  # bytes of a tile's columns, which lie in the device's memory while they are met with each other


@dataclass(frozen=True)
class Turn:
    """How the device's columns become the design's: tables of cells and levels, and T (K + c, p), X_flat = [X, z] T."""

    local: tuple[np.ndarray, ...]  # (cells, 4, k)
    factor: tuple[np.ndarray, ...]  # (levels, k)
    at: tuple[np.ndarray, ...]  # flat coefficients of each local block, then of each factor block
    by: tuple[int, ...]  # multiplier of each local block, −1 for none
    T: np.ndarray
    dense: int  # d: the last of the K columns

    @property
    def size(self) -> int:
        """K."""
        return sum(at.size for at in self.at) + self.dense

    @property
    def context(self) -> int:
        """c."""
        return len(self.T) - self.size


def turn_of(segment: Segment) -> Turn:
    """The tables of a segment: the cubics of each cell times C, so that a row's columns come without raw functions."""
    n_local, n_factor = segment.u.shape[1], segment.f.shape[1]
    q, d, c = segment.sizes
    local, factor, at = [], [], []
    for b, block in enumerate(segment.blocks[:n_local]):
        cells = len(block.matrix) - 3
        first = int(segment.cell0[b]) * 16
        poly = segment.poly[first : first + 16 * cells].reshape(cells, 4, 4)
        near = block.matrix[np.arange(cells)[:, None] + np.arange(4)]  # (cells, function, k)
        local.append(np.einsum("gpf,gfk->gpk", poly, near))
        at.append(np.arange(block.at.start, block.at.stop))
    for block in segment.blocks[n_local : n_local + n_factor]:
        factor.append(block.matrix)
        at.append(np.arange(block.at.start, block.at.stop))
    K = sum(one.size for one in at) + d
    T = np.zeros((K + c, segment.columns.size))
    begin = 0
    for one in at:
        T[np.arange(begin, begin + one.size), one] = 1.0
        begin += one.size
    for block in segment.blocks[n_local + n_factor :]:  # dense and context functions
        T[block.raw.start - q + K - d : block.raw.stop - q + K - d, block.at] += block.matrix
    return Turn(tuple(local), tuple(factor), tuple(at), tuple(int(m) for m in segment.m), T, d)


@final
@dataclass(frozen=True)
class DeviceRows:
    """The rows of one segment, with their response, in tiles on a device."""

    device: Device
    turn: Turn
    made: Any  # passes.Rows
    response: ResponseRows
    place: np.ndarray | None  # (runs, R) the row at each place, the run's first where it is shorter; None: in order
    count: int  # rows
    run: np.ndarray | None = None  # the design's run of each row, where rows lie by themselves

    @property
    def runs(self) -> int:
        return int(self.made.z.shape[0])

    @property
    def bytes(self) -> int:
        """What the rows take on the device."""
        import jax

        return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(self.made))

    @property
    def tile(self) -> int:
        """Bytes of a tile's columns."""
        plan = self._plan(0, "float64")
        return 8 * plan.chunk * plan.chunks * int(self.made.y.shape[1]) * (self.turn.size + 1)

    def _plan(self, family: int, precision: str) -> Any:
        from .passes import Plan

        each = int(self.made.y.shape[1])
        chunk = min(max(1, _PRODUCT // each), self.runs)
        most = TILE // (8 * (self.turn.size + 1) * chunk * each)
        chunks = min(max(1, most), self.runs // chunk)
        return Plan(self.turn.by, family, precision == "float32", chunk, chunks)

    def _coefficients(self, beta: np.ndarray, single: bool) -> tuple[Any, Any, Any]:
        """Tables of η for each block, δ and ζ."""
        from .passes import Tables

        kind = np.float32 if single else np.float64
        parts = [beta[at] for at in self.turn.at]
        n = len(self.turn.local)
        local = tuple((table @ part).astype(kind) for table, part in zip(self.turn.local, parts))
        factor = tuple((table @ part).astype(kind) for table, part in zip(self.turn.factor, parts[n:]))
        K, d = self.turn.size, self.turn.dense
        raw = (self.turn.T @ beta).astype(kind)
        return Tables(local, factor), raw[K - d : K], raw[K:]

    def _run(self, program: Callable[..., Any], plan: Any, *arguments: Any) -> Any:
        import jax

        with x64(), jax.default_device(self.device.jax):
            return jax.tree.map(np.asarray, jax.device_get(program(plan, *arguments)))

    def _tables(self, single: bool) -> Any:
        """The columns' tables in the arithmetic of a pass."""
        from .passes import Tables

        kind = np.float32 if single else np.float64
        return Tables(*(tuple(t.astype(kind) for t in some) for some in (self.turn.local, self.turn.factor)))

    def sweep(
        self, family: int, beta: np.ndarray, precision: str | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """(ℓ, Xᵀ(dℓ/dη), XᵀWX) at β (flat)."""
        from . import passes

        plan = self._plan(family, precision or self.device.precision)
        value, gram, met = self._run(passes.sweep, plan, *self._arguments(beta, plan.single), self.made)
        K, T = self.turn.size, self.turn.T
        raw = np.zeros((len(T), len(T)))
        raw[:K, :K] = gram[:K, :K]
        raw[K:, :K], raw[K:, K:] = met[:, :K], met[:, K + 1 :]
        raw[:K, K:] = raw[K:, :K].T
        score = T.T @ np.concatenate([gram[:K, K], met[:, K]])
        cross = T.T @ raw @ T
        return float(value), score, 0.5 * (cross + cross.T)

    def _arguments(self, beta: np.ndarray, single: bool) -> tuple[Any, ...]:
        """The arguments of a program that depend on β, and the columns' tables."""
        eta, delta, zeta = self._coefficients(beta, single)
        return eta, self._tables(single), delta, zeta

    def leverage(self, family: int, beta: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Σ_r w'_r h_r x_r (flat), h_r = x_rᵀPx_r."""
        from . import passes

        plan = self._plan(family, self.device.precision)
        K, T = self.turn.size, self.turn.T
        raw = (T @ P @ T.T).astype(np.float32 if plan.single else np.float64)
        parts = raw[:K, :K], raw[K:, :K], raw[K:, K:]
        score, context = self._run(passes.leverage, plan, *self._arguments(beta, plan.single), parts, self.made)
        return T.T @ np.concatenate([score, context])

    def _eta(self, beta: np.ndarray, program: Callable[..., Any]) -> Any:
        """Xβ without the offset, all of it or its ends."""
        eta, delta, zeta = self._coefficients(beta, False)
        return self._run(program, self._plan(0, "float64"), eta, delta, zeta, self.made._replace(offset=None))

    def predict(self, beta: np.ndarray) -> np.ndarray:
        """Xβ in the design's row order."""
        from . import passes

        eta = self._eta(beta, passes.predicted)
        if self.place is None:
            return eta.ravel()
        out = np.empty(self.count)
        out[self.place.ravel()] = eta.ravel()
        return out

    def extremes(self, beta: np.ndarray) -> tuple[float, float]:
        """The least and the largest of Xβ."""
        from . import passes

        low, high = self._eta(beta, passes.extremes)
        return float(low), float(high)

    def put(self) -> DeviceRows:
        """The same on the device."""
        import jax

        with x64():
            return replace(self, made=jax.device_put(self.made, self.device.jax))

    @property
    def design_runs(self) -> int:
        """The runs that these rows had in the design."""
        return self.runs if self.run is None else int(self.run[-1]) + 1

    def every(self, k: int, first: int) -> DeviceRows:
        """Every k-th run from the first on."""
        import jax

        which: Any = slice(first, None, k) if self.run is None else np.flatnonzero(self.run % k == first)
        with x64():
            made = jax.tree.map(lambda a: a[which], self.made)
        place, each = self.place, int(made.y.shape[1])
        run = None if self.run is None else self.run[which] // k
        if place is not None:
            kept = np.unique(place[which])
            place, count = np.searchsorted(kept, place[which]), kept.size
            response = _picked(self.response, lambda a: a[kept])
        else:
            count = each * int(made.y.shape[0])
            with x64():
                response = _picked(self.response, lambda a: a.reshape(-1, each)[first::k].reshape(-1))
        return replace(self, made=made, response=response, place=place, count=count, run=run)


def _picked(rows: ResponseRows, pick: Callable[[Any], Any]) -> ResponseRows:
    return ResponseRows(*(pick(a) if a.size else a for a in (rows.y, rows.weights, rows.offset)))


@final
@dataclass(frozen=True)
class DeviceParts(RowsElsewhere):
    """All rows of a design, segment by segment; `response` is what they hold, and no other is met with them."""

    parts: tuple[DeviceRows, ...]
    response: ResponseRows

    def _held(self, rows: ResponseRows) -> None:
        assert rows is self.response, "the device holds another response"

    def _swept(self, family: int, beta: np.ndarray, precision: str | None = None) -> tuple[Any, ...]:
        sums = [part.sweep(family, beta, precision) for part in self.parts]
        return tuple(sum(column[1:], column[0]) for column in zip(*sums))

    def sweep(self, rows: ResponseRows, family: int, beta: np.ndarray) -> tuple[float, np.ndarray, Arrow]:
        self._held(rows)
        value, score, cross = self._swept(family, beta)
        return value, score, Arrow(cross)

    def precisely(self, rows: ResponseRows, family: int, beta: np.ndarray) -> np.ndarray:
        self._held(rows)
        return self._swept(family, beta, "float64")[1]

    def leverage(self, rows: ResponseRows, family: int, beta: np.ndarray, P: np.ndarray) -> np.ndarray:
        self._held(rows)
        return np.sum([part.leverage(family, beta, P) for part in self.parts], axis=0)

    def predict(self, beta: np.ndarray) -> np.ndarray:
        return np.concatenate([part.predict(beta) for part in self.parts])

    def extremes(self, beta: np.ndarray) -> tuple[float, float]:
        low, high = zip(*(part.extremes(beta) for part in self.parts))
        return min(low), max(high)

    def every(self, k: int) -> tuple[DeviceParts, ResponseRows, int]:
        before = np.cumsum([0, *(part.design_runs for part in self.parts)])
        parts = tuple(part.every(k, int(-first % k)) for part, first in zip(self.parts, before))
        response = parts[0].response
        if len(parts) > 1:
            sides = ([getattr(part.response, name) for part in parts] for name in ("y", "weights", "offset"))
            response = ResponseRows(*(np.concatenate(side) for side in sides))
        return DeviceParts(parts, response), response, sum(part.count for part in parts)
