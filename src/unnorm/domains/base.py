"""Ω: the space of outcomes with its base measure.

Inside unnorm an array of n outcomes always has shape (n, d) and dtype float64, also for intervals and circles (d = 1).
Users' functions of one point see a scalar where `scalar` is true, else an array of shape (d,).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from .._base.numerics import Rng, floats, generator, whole
from .._base.registry import Registry
from ..errors import InputError
from ._rules import chosen_order, gauss_legendre, refuse_large

# Nodes per axis by dimension. Gauss–Legendre with N nodes integrates a Gaussian bump of standard deviation σ over a
# length L to about exp(−2 (σN/(L/2))²) (the trapezoid rule's error at its widest spacing, πL/2N).
_NODES = {1: 100, 2: 40, 3: 20}
Corners = tuple[np.ndarray, np.ndarray]  # lower and upper, each (d,)


@dataclass(frozen=True)
class Quadrature:
    """Points and weights with Σ w g(y) ≈ ∫ g dμ; `exact` where the rule is an enumeration of Ω."""

    points: np.ndarray  # (N, d)
    weights: np.ndarray  # (N,), summing to the volume
    exact: bool
    rule: str  # what the rule is and how its error falls, for people

    def __repr__(self) -> str:
        return f"Quadrature({self.rule})"


class Domain(ABC):  # long: one property for each thing that other parts may ask of Ω
    """Ω with its base measure: volume, membership, uniform draws, quadrature or enumeration.

    A domain states what it is (the attributes and properties below), and other parts go by these statements alone.
    Domains are immutable; two are equal when `to_dict` says the same.
    """

    dim: int  # d: the number of columns of an array of outcomes
    scalar: bool = False  # whether users' functions of one point see a scalar
    finite: bool = False  # whether Ω is a finite set under a counting or weighted measure
    period: float | None = None  # of each coordinate, where Ω is a circle
    sphere: bool = False  # whether Ω is the unit sphere: outcomes are directions, vectors of length 1
    of_contexts: bool = False  # whether each context has its own Ω, named by its column `key`
    key: str | None = None  # that column; None where all contexts share Ω

    @property
    def windows(self) -> tuple[Domain, ...]:
        """The regions that contexts have: Ω itself where they share it."""
        return (self,)

    @property
    def hull(self) -> Domain:
        """A region around all of them."""
        return self

    def codes(self, values: np.ndarray) -> np.ndarray:
        """(n,) values of the column `key` → (n,) positions in `windows`."""
        return np.zeros(len(values), dtype=np.intp)

    @property
    def coordinate_period(self) -> float | None:
        """The period of each coordinate, where every coordinate is an angle (also where there are several)."""
        return self.period

    columns_words: str = "Pass y= with matching columns."  # the remedy where the number of columns is wrong

    @property
    def cube_dim(self) -> int:
        """Dimension of the unit cube that `from_unit` maps onto Ω."""
        return self.dim

    @property
    @abstractmethod
    def volume(self) -> float:
        """|Ω| = ∫ dμ (the number of states, or the sum of the weights, of a finite domain)."""

    @property
    def log_volume(self) -> float:
        """log |Ω|, finite also where |Ω| itself overflows (2**5000 binary vectors)."""
        return float(np.log(self.volume))

    @property
    def bits(self) -> int | None:
        """d where Ω is {0, 1}^d with counting measure; None elsewhere."""
        return None

    @property
    def free(self) -> np.ndarray | None:
        """(d,) the coordinates that can be 0 or 1 whatever the others are, where these are all of Ω; the rest are 0."""
        return None

    @property
    def sides(self) -> Corners | None:
        """The corners between which Ω is a box with Lebesgue measure; None where it is none."""
        return None

    @property
    def enclosing_box(self) -> Corners | None:
        """The corners of the smallest box around Ω, where Ω is a region of R^d with Lebesgue measure."""
        return self.sides

    @property
    def centre(self) -> np.ndarray | None:
        """The centre of mass, shape (d,), where Ω is a region of R^d."""
        return None

    @property
    def edges(self) -> np.ndarray | None:
        """(E, 2, 2) directed edges with Ω on their left, where Ω is a polygon in the plane."""
        if self.sides is None or self.dim != 2:
            return None
        (a0, a1), (b0, b1) = self.sides
        corners = np.array([[a0, a1], [b0, a1], [b0, b1], [a0, b1]])
        return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)

    @property
    def affine(self) -> Corners | None:
        """(low, width), each (d,), where from_unit(u) = low + width·u; None elsewhere."""
        return None if self.sides is None else (self.sides[0], self.sides[1] - self.sides[0])

    @property
    def default_order(self) -> int | None:
        """The order that `quadrature()` takes when none is given; None where there is no default or Ω is enumerated."""
        return None if self.finite else _NODES.get(self.cube_dim)

    @property
    def rule(self) -> Literal["quadrature", "enumeration"] | None:
        """What `quadrature()` gives without an order; None where it refuses, since Ω is too large."""
        if self.finite:
            return "enumeration"
        return None if self.default_order is None else "quadrature"

    @abstractmethod
    def contains(self, y: np.ndarray) -> np.ndarray:
        """(n, d) outcomes → (n,) booleans."""

    def contains_interior(self, y: np.ndarray) -> np.ndarray:
        """`contains`, but a point of the boundary may count as outside: enough for continuous draws, and quicker."""
        return self.contains(y)

    def outside_words(self, y: np.ndarray, names: tuple[str, ...]) -> tuple[str, str]:
        """What is wrong with one outcome (d,) that is not in Ω, and what to do about it."""
        return f"y = {np.array2string(y, precision=6)}", "Enlarge the domain, correct the data"

    def doubt(self, y: np.ndarray) -> tuple[int, str] | None:
        """The first of the outcomes (n, d) that is a member of Ω but looks like a mistake, and a sentence about it."""
        return None

    @abstractmethod
    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """(n, cube_dim) points of the unit cube → (n, d) outcomes; carries the uniform law to μ/|Ω|."""

    def uniform(self, n: int, rng: Rng = None) -> np.ndarray:
        """n IID draws from μ/|Ω|, shape (n, d)."""
        n = whole(n, "The number n of uniform draws", least=0)
        return self.from_unit(generator(rng).random((n, self.cube_dim)))

    def scaled(self, by: float) -> Domain:
        """The same region in other units of length, every coordinate times `by`."""
        raise InputError(f"{self!r} has no units of length to change.")

    def wrap(self, y: np.ndarray) -> np.ndarray:
        """(n, d) outcomes → the same outcomes by their one canonical name (angles in [−π, π) on the circle)."""
        return outcomes(y, self)

    def quadrature(self, order: int | None = None) -> Quadrature:
        """A rule for integrals over Ω; `order` sets its size (nodes per axis, or as the class says).

        Unless the class has its own: ∫ g dμ = |Ω| ∫ g(from_unit(u)) du by Gauss–Legendre on each axis of the cube.
        """
        d = self.cube_dim
        if order is None and self.default_order is None:
            raise InputError(
                f"A tensor quadrature rule on {self!r} has order**{d} nodes "
                f"({8**d:,} with 8 per axis, {16**d:,} with 16), so there is no default. Pass the order yourself, or "
                "use an objective with reference points (Importance, Logistic) in place of a quadrature."
            )
        order = chosen_order(order, self.default_order or 0)
        refuse_large(
            order**d,
            f"A Gauss–Legendre rule with {order} nodes on each of {d} axes",
            "Take a smaller order, or an objective with reference points (Importance, Logistic).",
        )
        s, w = gauss_legendre(order)
        u = np.stack(np.meshgrid(*[s] * d, indexing="ij"), axis=-1).reshape(-1, d)
        weights = np.ones(1)
        for _ in range(d):
            weights = np.multiply.outer(weights, w).ravel()
        exact = f"exact for polynomials of degree {2 * order - 1} in each coordinate; " if self.affine else ""
        return Quadrature(
            points=self.from_unit(u),
            weights=self.volume * weights,
            exact=False,
            rule=f"Gauss–Legendre, {f'{order}**{d}' if d > 1 else order} nodes: {exact}"
            "the error falls geometrically with the order for smooth functions",
        )

    def centred(self, x: np.ndarray, order: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Rules for integrands with a kink at a point x[i] of their own: points (M, d), weights (M,), and the i of
        each, ascending. None where Ω has no such rules, and `quadrature` serves."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description, {'domain': class name, …}; `unnorm.domains.from_dict` reads it.

        Of a dataclass: its fields. Any other class writes its own.
        """
        return {"domain": type(self).__name__, **{f.name: getattr(self, f.name) for f in fields(self)}}  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The domain that `to_dict` described."""
        return cls(**{name: value for name, value in description.items() if name != "domain"})

    @classmethod
    def examples(cls) -> tuple[Domain, ...]:
        """Small instances for the generic tests; every registered domain has some."""
        return ()

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


REGISTRY: Registry[Domain] = Registry("domain", Domain)  # filled by registry.py


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
