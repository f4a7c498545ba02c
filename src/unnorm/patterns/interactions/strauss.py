"""The Strauss process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from .base import positive
from .pairwise import Pairwise

if TYPE_CHECKING:
    from ..point_pattern import Pattern


@final
@dataclass(frozen=True)
class Strauss(Pairwise):
    """t(u, x) = the number of points within r of u; exp φ = γ is what each close pair multiplies the density by.

    Args:
        r: the distance up to which pairs are close.

    >>> import unnorm as un
    >>> un.Strauss(9.0).reach
    9.0
    """

    r: float

    @property
    def multiplies(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    def __post_init__(self) -> None:
        positive(self.r, "r", "Strauss")

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        return ("strauss",)

    def potential(self, d: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.ones((len(d), 1))

    def breaks(self) -> np.ndarray:
        return np.array([self.r])

    def stable(self, phi: np.ndarray) -> bool:
        return bool(phi[0] <= 0.0)

    @classmethod
    def examples(cls) -> tuple[Strauss, ...]:
        return (cls(0.05),)
