"""Rows of a likelihood, Σ_r ℓ_r(η_r) with η = f_θ + ν + offset, in blocks that can be made again.

Nothing here needs all rows at once: a `RowSource` hands out blocks of whole contexts as often as they are asked for.
They are slices of arrays in memory, or drawn again from seeds where there are very many; `pieces` are blocks that can
be made elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple, final

import numpy as np

from ..data.observations import Observations
from ..references.blocks import ROWS, Contrasts
from ..references.contrast import Contrast
from .likelihood import LOGISTIC, POISSON, Cumulant, RowLikelihood, together

BLOCK = ROWS  # rows in a block: large enough for BLAS, small beside the memory of a laptop


@final
@dataclass(frozen=True)
class Rows:
    """Observations and the points they are contrasted with; those of one context lie together."""

    y: np.ndarray  # (N, d)
    at: np.ndarray  # (N,) the observation whose context the row uses; −1 for the shared points of IID data
    data: np.ndarray  # (N,) bool: True for observations, False for reference points or quadrature nodes
    likelihood: RowLikelihood
    offset: np.ndarray  # (N,)
    weight: np.ndarray | None = None  # (N,) of the row's observation; None for all one
    log_q: np.ndarray | None = None  # (N,) log q(y|x)
    randomisation: np.ndarray | None = None  # (N,) 0 for data, 1 … R for reference points

    def __len__(self) -> int:
        return len(self.data)

    @property
    def context(self) -> np.ndarray:
        """(N,) an observation whose context f may read: shared points belong to no one, and f reads none there."""
        return self.at if self.at.min(initial=0) >= 0 else np.maximum(self.at, 0)

    def take(self, which: slice | np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(
            self.y[which],
            self.at[which],
            self.data[which],
            RowLikelihood(self.likelihood.cumulant, self.likelihood.a[which], self.likelihood.b[which]),
            self.offset[which],
            None if self.weight is None else self.weight[which],
            None if self.log_q is None else self.log_q[which],
            None if self.randomisation is None else self.randomisation[which],
        )


class RowSource(ABC):
    """Rows in blocks of whole contexts, the same blocks each time."""

    size: int  # N
    most: int = BLOCK  # rows that come as one block
    held: bool = True  # whether rows are in memory; else each block is made again when it is asked for
    shared: bool  # whether reference points belong to all observations alike (IID data)
    each: int = 0  # rows of an observation, where all have as many and lie together; 0 where that is not known

    def spans(self) -> list[tuple[int, int]]:
        """Of rows that are made again: the first observation of each block, and that of the next."""
        raise NotImplementedError(f"{type(self).__name__} holds its rows: they are not made again.")

    @property
    def contrasts(self) -> Contrasts | None:
        """What the blocks are drawn from, where they are drawn again each time."""
        return None

    @abstractmethod
    def blocks(self) -> Iterator[Rows]: ...

    def within(self, most: int) -> RowSource:
        """The same rows in blocks of at most so many, where they can be divided."""
        return self

    def block_rows(self, i: int) -> Rows:
        """Block i."""
        return next(islice(self.blocks(), i, None))

    def numbers(self, i: int, y: np.ndarray, weights: np.ndarray | None, offset: np.ndarray | None) -> Rows:
        """Block i without outcomes, from the engine's response, weights and offset."""
        return replace(self.block_rows(i), y=np.empty((len(y), 0)))

    @abstractmethod
    def pieces(self, obs: Observations) -> Iterator[Piece]:
        """The blocks, each as what can be made by itself and sent to another process."""

    def vectors(self) -> Rows:
        """What there is of all rows at once: numbers of each row, and no outcomes (their `y` has no columns)."""
        blocks = [replace(rows, y=np.empty((len(rows), 0))) for rows in self.blocks()]
        return blocks[0] if len(blocks) == 1 else joined(blocks)


@final
@dataclass(frozen=True)
class ArrayRows(RowSource):
    """Rows that are held in memory; blocks are views of them."""

    rows: Rows
    shared: bool
    block: int = BLOCK

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.rows)

    @property
    def most(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.block

    def within(self, most: int) -> ArrayRows:
        return replace(self, block=most) if most < self.block else self

    def whole(self) -> Rows:
        """All rows, which are in memory here."""
        return self.rows

    def vectors(self) -> Rows:
        return replace(self.rows, y=np.empty((len(self.rows), 0)))

    def blocks(self) -> Iterator[Rows]:
        if len(self.rows) <= self.block:
            yield self.rows
            return
        new = np.ones(len(self.rows), bool) if self.shared else np.diff(self.rows.at, prepend=-1) != 0
        starts = np.append(np.flatnonzero(new), len(self.rows))  # where a context begins
        begin = 0
        while begin < len(self.rows):
            last = int(np.searchsorted(starts, begin + self.block, side="right")) - 1
            end = int(starts[last])
            if end <= begin:  # one context longer than a block
                end = int(starts[last + 1])
            yield self.rows.take(slice(begin, end))
            begin = end

    def pieces(self, obs: Observations) -> Iterator[Piece]:
        for rows in self.blocks():
            if self.shared:  # no context to look up: any observation will do
                yield ArrayPiece(obs.take(np.arange(1)), replace(rows, at=np.zeros_like(rows.at)))
                continue
            first, last = int(rows.at[0]), int(rows.at[-1])
            yield ArrayPiece(obs.take(np.arange(first, last + 1)), replace(rows, at=rows.at - first))


@final
@dataclass(frozen=True)
class SeededRows(RowSource):
    """Rows whose reference points are drawn again from seeds, block by block."""

    drawn: Contrasts
    of: Callable[[Contrast], ArrayRows]  # the objective's
    shared = False
    held = False
    most = ROWS

    @property
    def contrasts(self) -> Contrasts:
        return self.drawn

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.drawn.rows

    @property
    def each(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.drawn.k + 1

    def spans(self) -> list[tuple[int, int]]:
        first = [self.drawn.first(i) for i in range(self.drawn.count)]
        return list(pairwise([*first, self.drawn.obs.n]))

    def blocks(self) -> Iterator[Rows]:
        return (self.of(block).rows for block in self.drawn.blocks())

    def block_rows(self, i: int) -> Rows:
        return self.of(self.drawn.block(i)).rows

    def numbers(self, i: int, y: np.ndarray, weights: np.ndarray | None, offset: np.ndarray | None) -> Rows:
        """Block i without outcomes, from the engine's response a/b, weights b and offset: nothing is drawn."""
        if not self.cumulant.counts_points:  # log q is not in the offset there
            return super().numbers(i, y, weights, offset)
        drawn, k = self.drawn, self.drawn.k
        first, count = drawn.first(i), len(y) // (k + 1)
        at = np.repeat(np.arange(first, first + count), k + 1)
        data = np.tile(np.arange(k + 1) == 0, count)
        b = np.ones(len(y)) if weights is None else weights
        offset = np.zeros(len(y)) if offset is None else offset
        known = 0.0 if drawn.obs.offset is None else drawn.obs.offset[at]
        return Rows(
            np.empty((len(y), 0)),
            at,
            data,
            RowLikelihood(self.cumulant, y * b, b),
            offset,
            None if drawn.obs.weight is None else drawn.obs.weight[at],
            known - np.log(k) - offset,
            np.tile(drawn.randomisation, count),
        )

    @cached_property
    def cumulant(self) -> Cumulant:
        return self.block_rows(0).likelihood.cumulant

    def pieces(self, obs: Observations) -> Iterator[Piece]:
        return (SeededPiece(self.drawn.alone(i), self.of) for i in range(self.drawn.count))


class Piece(ABC):
    """A block by itself: its own observations, and rows that count them from zero."""

    obs: Observations

    @abstractmethod
    def rows(self) -> Rows: ...


@final
@dataclass(frozen=True)
class ArrayPiece(Piece):
    """Rows in memory."""

    obs: Observations
    made: Rows

    def rows(self) -> Rows:
        return self.made


@final
@dataclass(frozen=True)
class SeededPiece(Piece):
    """Rows to be drawn from their seed."""

    drawn: Contrasts
    of: Callable[[Contrast], ArrayRows]

    @property
    def obs(self) -> Observations:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.drawn.obs

    def rows(self) -> Rows:
        return self.of(self.drawn.whole()).rows


class Nodes(NamedTuple):
    """The nodes of a rule as rows of reference points."""

    source: RowSource
    mass: np.ndarray  # (N,) how many points each stands for, k q w
    k: int  # points of each observation


Over = Callable[[np.ndarray, np.ndarray, np.ndarray], Nodes]  # (nodes, weights, observation of each)


def joined(blocks: Sequence[Rows]) -> Rows:
    """Blocks one after the other."""
    names = ("y", "at", "data", "offset", "weight", "log_q", "randomisation")
    return Rows(likelihood=RowLikelihood.joined([rows.likelihood for rows in blocks]), **together(blocks, names))


def logistic_rows(drawn: Contrast) -> ArrayRows:
    """Noise-contrastive divergence: w {z η − log(1 + e^η)}, offset −log q + log(n/m)."""
    w = drawn.weight
    likelihood = RowLikelihood(LOGISTIC, np.where(drawn.z, w, 0.0), w)
    return _from(drawn, likelihood, drawn.log_odds_offset)


def importance_rows(drawn: Contrast) -> ArrayRows:
    """𝓜 with its integrals by importance sampling: data w η, reference points −w e^η/(k q)."""
    share = 1.0 / drawn.k if drawn.k is not None else drawn.n / drawn.m
    b = np.where(drawn.z, 0.0, share * drawn.weight * np.exp(-drawn.log_q))
    offset = np.zeros(len(b)) if drawn.offset is None else drawn.offset
    return _from(drawn, RowLikelihood(POISSON, np.where(drawn.z, drawn.weight, 0.0), b), offset)


def choice_rows(drawn: Contrast, shift: np.ndarray) -> ArrayRows:
    """Each observation and its own points, for objectives in which the constants cancel; `shift` is added to f.

    Their likelihood is of choices and not of rows: the rows' own is empty.
    """
    nothing = np.zeros(0)
    return _from(drawn, RowLikelihood(LOGISTIC, nothing, nothing), shift)


def _from(drawn: Contrast, likelihood: RowLikelihood, offset: np.ndarray) -> ArrayRows:
    rows = Rows(
        drawn.outcome,
        drawn.at,
        drawn.z,
        likelihood,
        offset,
        None if drawn.obs.weight is None else drawn.weight,
        drawn.log_q,
        drawn.randomisation,
    )
    return ArrayRows(rows, shared=drawn.k is None)
