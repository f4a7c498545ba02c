"""Geyer's saturation process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ..places import Pairs
from .base import GEYER, Energy, Interaction, Neighbours, positive

if TYPE_CHECKING:
    from ..point_pattern import Pattern


@final
@dataclass(frozen=True)
class Geyer(Interaction):
    """The change of Σ_v min(s, points within r of v) that u brings: clusters that saturate, so that φ > 0 is a process.

    With an edge correction that weights pairs, the points within r of v are a sum of weights seen from v.

    Args:
        r: the distance up to which points are neighbours.
        sat: s, the most neighbours of a point that count.

    >>> import unnorm as un
    >>> un.Geyer(2.0, sat=3.0).reach  # a neighbour's own neighbours matter
    4.0
    """

    r: float
    sat: float
    weighs = True

    @property
    def multiplies(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    def __post_init__(self) -> None:
        positive(self.r, "r", "Geyer")
        positive(self.sat, "sat", "Geyer")

    @property
    def reach(self) -> float:
        return 2.0 * self.r

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        return ("geyer",)

    def statistics(self, near: Neighbours) -> np.ndarray:
        from .kernels import geyer_rows  # compiled: not before it is needed

        own, weight, _ = self._close(near.among)
        count = np.bincount(own.a, weight, near.x.n)
        pairs, there, back = self._close(near)
        start = pairs.starts(near.u.n)
        return geyer_rows(start, pairs.b, near.own, count, float(self.sat), there, back)[:, None]

    def without(self, near: Neighbours) -> np.ndarray:
        from .kernels import geyer_without

        close, there, back = self._close(near)
        start, count = close.starts(near.x.n), np.bincount(close.a, there, near.x.n)
        pairs = near.pairs
        return geyer_without(pairs.a, pairs.b, start, close.b, count, float(self.sat), there, back)[:, None]

    def _close(self, near: Neighbours) -> tuple[Pairs, np.ndarray, np.ndarray]:
        """Pairs within r, and their weights seen from the row and from the point."""
        here = near.pairs.d <= self.r
        close = near.pairs.within(self.r)
        both = [np.ones(len(close.d)) if w is None else w[here] for w in (near.weights, near.weights_back)]
        return close, both[0], both[1]

    def energy(self, pattern: Pattern, phi: np.ndarray) -> Energy:
        numbers = np.array([phi[0], self.r**2, self.sat])
        return Energy(GEYER, self.reach, np.array([self.reach**2]), np.zeros((1, 1, 1)), numbers)

    @classmethod
    def examples(cls) -> tuple[Geyer, ...]:
        return (cls(0.05, 2.0),)
