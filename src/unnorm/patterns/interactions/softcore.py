"""The soft-core process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ...errors import InputError
from .base import positive, refuse_duplicates
from .pairwise import Pairwise

if TYPE_CHECKING:
    from ..point_pattern import Pattern

STEPS = 4096  # of ψ in a simulation


@final
@dataclass(frozen=True)
class Softcore(Pairwise):
    """t(u, x) = −Σ_v (σ₀/‖u − v‖)^(2/κ) over points within r, 0 < κ < 1; φ = (σ/σ₀)^(2/κ).

    The sum has no end of its own: points farther than r are left out. `sigma0` is a unit of distance; with the
    smallest distance between points φ is of the order of one.

    Args:
        r: the distance beyond which points are left out.
        kappa: κ, which says how steeply the interaction falls.
        sigma0: σ₀, a unit of distance.

    >>> import unnorm as un
    >>> un.Softcore(20.0, kappa=0.5).reach
    20.0
    """

    r: float
    kappa: float
    sigma0: float = 1.0

    def __post_init__(self) -> None:
        positive(self.r, "r", "Softcore")
        positive(self.sigma0, "sigma0", "Softcore")
        if not positive(self.kappa, "kappa", "Softcore") < 1.0:
            raise InputError(f"kappa of Softcore must be between 0 and 1; got {self.kappa!r}.")

    def check(self, pattern: Pattern) -> None:
        super().check(pattern)
        refuse_duplicates(self, pattern)

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        return ("softcore",)

    def potential(self, d: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        d = np.maximum(d, 1e-12 * self.r)
        return -((self.sigma0 / d) ** (2.0 / self.kappa))[:, None]

    def breaks(self) -> np.ndarray:
        return self.r * np.sqrt(np.arange(1, STEPS + 1) / STEPS)

    def stable(self, phi: np.ndarray) -> bool:
        return bool(phi[0] >= 0.0)

    @classmethod
    def examples(cls) -> tuple[Softcore, ...]:
        return (cls(0.1, 0.8, 0.02),)
