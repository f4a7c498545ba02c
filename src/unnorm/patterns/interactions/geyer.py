"""Geyer's saturation process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from .base import GEYER, Energy, Interaction, Neighbours, positive

if TYPE_CHECKING:
    from ..point_pattern import Pattern


@final
@dataclass(frozen=True)
class Geyer(Interaction):
    """The change of Σ_v min(s, points within r of v) that u brings: clusters that saturate, so that φ > 0 is a process.

    >>> import unnorm as un
    >>> un.Geyer(2.0, sat=3.0).reach  # a neighbour's own neighbours matter
    4.0
    """

    r: float
    sat: float

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

        own = near.among.pairs.within(self.r)
        count = np.bincount(own.a, minlength=near.x.n)
        pairs = near.pairs.within(self.r)
        return geyer_rows(pairs.starts(near.u.n), pairs.b, near.own, count, float(self.sat))[:, None]

    def without(self, near: Neighbours) -> np.ndarray:
        from .kernels import geyer_without

        close = near.pairs.within(self.r)
        start = close.starts(near.x.n)
        return geyer_without(near.pairs.a, near.pairs.b, start, close.b, float(self.sat))[:, None]

    def energy(self, pattern: Pattern, phi: np.ndarray) -> Energy:
        numbers = np.array([phi[0], self.r**2, self.sat])
        return Energy(GEYER, self.reach, np.array([self.reach**2]), np.zeros((1, 1, 1)), numbers)

    @classmethod
    def examples(cls) -> tuple[Geyer, ...]:
        return (cls(0.05, 2.0),)
