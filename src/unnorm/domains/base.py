"""Ω: the space of outcomes with its base measure.

Inside unnorm an array of n outcomes always has shape (n, d) and dtype float64, also for intervals and circles (d = 1).
Users' functions of one point see a scalar where `scalar` is true, else an array of shape (d,).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._base.numerics import Rng, floats, generator
from ..errors import InputError


@dataclass(frozen=True)
class Quadrature:
    """Points and weights with Σ w g(y) ≈ ∫ g dμ; `exact` where the rule is an enumeration of Ω."""

    points: np.ndarray  # (N, d)
    weights: np.ndarray  # (N,), summing to the volume
    exact: bool
    rule: str  # what the rule is and how its error falls, for people


class Domain(ABC):
    """Ω with its base measure: volume, membership, uniform draws, quadrature or enumeration.

    Domains are immutable; two are equal when `to_dict` says the same.
    """

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
    def log_volume(self) -> float:
        """log |Ω|, finite also where |Ω| itself overflows (2**5000 binary vectors)."""
        return float(np.log(self.volume))

    @property
    def enclosing_box(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The corners of the smallest box around Ω, where Ω is a region of R^d with Lebesgue measure."""
        return None

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

    @property
    def default_order(self) -> int | None:
        """The order that `quadrature()` takes when none is given; None where there is no default or Ω is enumerated."""
        return None

    @abstractmethod
    def contains(self, y: np.ndarray) -> np.ndarray:
        """(n, d) outcomes → (n,) booleans."""

    @abstractmethod
    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """(n, cube_dim) points of the unit cube → (n, d) outcomes; carries the uniform law to μ/|Ω|."""

    def uniform(self, n: int, rng: Rng = None) -> np.ndarray:
        """n IID draws from μ/|Ω|, shape (n, d)."""
        n = whole(n, "The number n of uniform draws", least=0)
        return self.from_unit(generator(rng).random((n, self.cube_dim)))

    def wrap(self, y: np.ndarray) -> np.ndarray:
        """(n, d) outcomes → the same outcomes by their one canonical name (angles in [−π, π) on the circle)."""
        return outcomes(y, self)

    @abstractmethod
    def quadrature(self, order: int | None = None) -> Quadrature:
        """A rule for integrals over Ω; `order` sets its size (nodes per axis, or as the class says)."""

    def centred(self, x: np.ndarray, order: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Rules for integrands with a kink at a point x[i] of their own: points (M, d), weights (M,), and the i of
        each, ascending. None where Ω has no such rules, and `quadrature` serves."""
        return None

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description, {'domain': class name, …}; `unnorm.domains.from_dict` reads it."""

    @classmethod
    @abstractmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The domain that `to_dict` described."""

    @cached_property
    def _key(self) -> str:
        return json.dumps(self.to_dict(), sort_keys=True)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Domain):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def whole(value: Any, what: str, least: int) -> int:
    """`value` as an int that is at least `least`, or an error that names `what`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def outcomes(y: Any, domain: Domain) -> np.ndarray:
    """`y` as an (n, d) array of outcomes of this domain; a flat array is taken as n outcomes where d = 1."""
    array = floats(y, f"Outcomes on {domain!r}")
    if array.ndim == 1 and domain.dim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != domain.dim:
        raise InputError(
            f"Outcomes on {domain!r} must have shape (n, {domain.dim}), one row per outcome; got shape {array.shape}."
        )
    return array


def unit_points(u: Any, domain: Domain) -> np.ndarray:
    """`u` as an (n, cube_dim) array in the unit cube."""
    array = floats(u, "Points of the unit cube")
    k = domain.cube_dim
    if array.ndim != 2 or array.shape[1] != k:
        raise InputError(
            f"from_unit of {domain!r} takes points of the unit cube, shape (n, {k}); got shape {array.shape}."
        )
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):  # NaN fails too
        raise InputError(
            f"from_unit of {domain!r} takes points of the unit cube, every coordinate in [0, 1]; "
            f"got values from {array.min()} to {array.max()}."
        )
    return array
