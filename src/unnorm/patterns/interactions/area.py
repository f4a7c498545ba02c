"""The area-interaction process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from .base import AREA, Energy, Interaction, Neighbours, positive

if TYPE_CHECKING:
    from ..point_pattern import Pattern


@final
@dataclass(frozen=True)
class AreaInteraction(Interaction):
    """t(u, x) = the share of the disc of radius r around u that discs around the points of x cover, 0 to 1.

    φ > 0 clusters, φ < 0 keeps apart, and both are processes. Areas are exact (circular arcs by Green's theorem), and
    discs are not cut at the window's border.

    Args:
        r: the radius of the discs.

    >>> import unnorm as un
    >>> un.AreaInteraction(3.0).reach
    6.0
    """

    r: float

    def __post_init__(self) -> None:
        positive(self.r, "r", "AreaInteraction")

    @property
    def reach(self) -> float:
        return 2.0 * self.r

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        return ("area",)

    def statistics(self, near: Neighbours) -> np.ndarray:
        from .kernels import area_rows  # compiled: not before it is needed

        pairs = near.pairs
        step = _steps(near)
        return area_rows(pairs.starts(near.u.n), step, float(self.r))[:, None]

    def without(self, near: Neighbours) -> np.ndarray:
        from .kernels import area_without

        pairs = near.pairs
        return area_without(pairs.a, pairs.starts(near.u.n), _steps(near), float(self.r))[:, None]

    def energy(self, pattern: Pattern, phi: np.ndarray) -> Energy:
        numbers = np.array([phi[0], self.r, 0.0])
        return Energy(AREA, self.reach, np.array([self.reach**2]), np.zeros((1, 1, 1)), numbers)

    @classmethod
    def examples(cls) -> tuple[AreaInteraction, ...]:
        return (cls(0.04),)


def _steps(near: Neighbours) -> np.ndarray:
    """(P, 2) x_b − u_a."""
    step = near.x.xy[near.pairs.b] - near.u.xy[near.pairs.a]
    return step if near.period is None else step - near.period * np.round(step / near.period)
