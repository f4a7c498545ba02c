"""Labelled rows in blocks of contexts, each with reference points from a seed of its own: made when they are asked for,
the same each time, and never held together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .base import BoundReference
from .contrast import Contrast, contrast
from .points import PointScheme

if TYPE_CHECKING:
    from ..data.observations import Observations

MANY = 2_000_000  # rows from which points are drawn block by block
ROWS = 262_144  # of a block, at most


@final
@dataclass(frozen=True)
class Contrasts:
    """What a `Contrast` of all observations would be, in blocks."""

    obs: Observations
    reference: BoundReference
    scheme: PointScheme
    k: int  # reference points of each observation
    seed: tuple[int, ...]
    notes: tuple[str, ...] = ()
    size: int | None = None  # observations of a block, where it does not follow from k

    @property
    def each(self) -> int:
        """Observations of a block: the same whatever memory there is."""
        return max(1, ROWS // (self.k + 1)) if self.size is None else self.size

    @property
    def count(self) -> int:
        """The number of blocks."""
        return -(-self.obs.n // self.each)

    @property
    def rows(self) -> int:
        return self.obs.n * (self.k + 1)

    @property
    def points(self) -> int:
        """The number of reference rows."""
        return self.obs.n * self.k

    @property
    def randomisations(self) -> int:
        """R: the number of independent sets of reference points."""
        return self.scheme.sets

    @property
    def randomisation(self) -> np.ndarray:
        """(k + 1,) of an observation and its points: 0, then 1 … R."""
        sizes = self.scheme.shares(self.k)
        return np.concatenate([[0], np.repeat(np.arange(1, len(sizes) + 1), sizes)]).astype(np.int16)

    def met(self, rows: Callable[[Contrast], Any], blocks: Callable[[Contrasts], Any]) -> Any:
        """What a caller makes of rows in blocks."""
        return blocks(self)

    def first(self, i: int) -> int:
        """The first observation of block i."""
        return i * self.each

    def alone(self, i: int) -> Contrasts:
        """Block i by itself: it knows no other observations, and counts its own from zero."""
        own = np.arange(self.first(i), min(self.first(i) + self.each, self.obs.n))
        return replace(self, obs=self.obs.take(own), seed=(*self.seed, i))

    def block(self, i: int) -> Contrast:
        """Block i, whose rows count their observations among all."""
        own = self.alone(i).whole()
        return replace(own, obs=self.obs, at=own.at + self.first(i))

    def whole(self) -> Contrast:
        """Of a block that is alone, its rows."""
        rng = np.random.default_rng(list(self.seed))
        return contrast(self.obs, self.reference, self.scheme, per_point=self.k, rng=rng)

    def shifts(self) -> np.ndarray | None:
        """(blocks, d) of the lattice in each block, where the points are those of `moved_box` and `lattice_shift`."""
        box = self.reference.moved_box
        if box is None or self.obs.dim not in (2, 3):  # whose contexts are in order along a Hilbert curve
            return None
        rngs = (np.random.default_rng([*self.seed, i]) for i in range(self.count))
        found = [self.scheme.lattice_shift(self.obs.dim, rng) for rng in rngs]
        return None if found[0] is None else np.array(found)

    def blocks(self) -> Iterator[Contrast]:
        return (self.block(i) for i in range(self.count))

    def over(self, y: np.ndarray, w: np.ndarray, at: np.ndarray) -> tuple[Contrast, np.ndarray]:
        """As `Contrast.over`."""
        return self.block(0).over(y, w, at)

    def fresh(self, seed: list[int], times: float) -> Contrasts:
        """The same observations with fresh points, `times` as many, in the same blocks."""
        return replace(self, seed=tuple(seed), k=max(self.scheme.sets, round(times * self.k)), size=self.each)
