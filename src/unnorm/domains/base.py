"""Ω: the space of outcomes with its base measure.

Inside unnorm an array of n outcomes always has shape (n, d) and dtype float64, also for intervals and circles (d = 1).
Users' functions of one point see a scalar where `scalar` is true, else an array of shape (d,).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics import Rng, generator


@dataclass(frozen=True)
class Quadrature:
    """Points and weights with Σ w g(y) ≈ ∫ g dμ; `exact` where the rule is an enumeration of Ω."""

    points: np.ndarray  # (N, d)
    weights: np.ndarray  # (N,), summing to the volume
    exact: bool
    rule: str  # what the rule is and how its error falls, for people


class Domain(ABC):
    """Ω with its base measure: volume, membership, uniform draws, quadrature or enumeration."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of columns d of an array of outcomes."""

    @property
    @abstractmethod
    def cube_dim(self) -> int:
        """Dimension of the unit cube that `from_unit` maps onto Ω."""

    @property
    @abstractmethod
    def volume(self) -> float:
        """|Ω| = ∫ dμ (the number of states, or the sum of the weights, of a finite domain)."""

    @property
    def scalar(self) -> bool:
        """Whether users' functions of one point see a scalar."""
        return False

    @property
    def finite(self) -> bool:
        """Whether Ω is a finite set under a counting or weighted measure."""
        return False

    @property
    def period(self) -> float | None:
        """The period of each coordinate where Ω wraps around."""
        return None

    @abstractmethod
    def contains(self, y: np.ndarray) -> np.ndarray:
        """(n, d) outcomes → (n,) booleans."""

    @abstractmethod
    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """(n, cube_dim) points of the unit cube → (n, d) outcomes; carries the uniform law to μ/|Ω|."""

    def uniform(self, n: int, rng: Rng = None) -> np.ndarray:
        """n IID draws from μ/|Ω|, shape (n, d)."""
        return self.from_unit(generator(rng).random((n, self.cube_dim)))

    @abstractmethod
    def quadrature(self, order: int | None = None) -> Quadrature:
        """A rule for integrals over Ω; `order` sets its size (nodes per axis, or as the class says)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description, {'domain': class name, …}; `unnorm.domains.from_dict` reads it."""
