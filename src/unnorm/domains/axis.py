"""Axis: undirected lines, in the plane (angles modulo π) or in space (unit vectors up to their sign)."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from ..errors import InputError
from ._rules import chosen_order, gauss_legendre, refuse_large
from .base import Corners, Domain, Quadrature, outcomes, unit_points
from .round import doubtful_angles, not_unit, turned, unit_length

_PLANE, _SPACE = 2, 3


@final
class Axis(Domain):
    """Axes: lines without a direction, such as fractures, long axes of nests or of crystals.

    `Axis()`: axes in the plane, angles in radians modulo π with arc length (|Ω| = π); outcomes are scalars, `wrap`
    names each by its angle in [−π/2, π/2), and a user's f must have period π. `Axis(3)`: axes in space (the projective
    plane), unit vectors of which y and −y are the same outcome (|Ω| = 2π); f must be even, and `wrap` gives the one
    with z ≥ 0.

    Args:
        space: 2 for the plane, 3 for space.

    >>> Axis().wrap(np.array([0.75 * np.pi]))[:, 0] / np.pi
    array([-0.25])
    >>> Axis(3).wrap(np.array([[0.0, 0.6, -0.8]])).tolist()
    [[0.0, -0.6, 0.8]]
    """

    def __init__(self, space: Literal[2, 3] = 2) -> None:
        if space not in (_PLANE, _SPACE):
            raise InputError(f"Axes lie in the plane, Axis(2), or in space, Axis(3); got {space!r}.")
        self.space = int(space)
        self.dim = 1 if space == _PLANE else 3
        self.scalar = space == _PLANE
        self.period = np.pi if space == _PLANE else None

    @property
    def cube_dim(self) -> int:
        return self.space - 1

    @property
    def volume(self) -> float:
        """π in the plane, 2π in space."""
        return np.pi if self.scalar else 2.0 * np.pi

    @property
    def affine(self) -> Corners | None:
        return (np.array([-np.pi / 2]), np.array([np.pi])) if self.scalar else None

    @property
    def default_order(self) -> int:
        return 256 if self.scalar else 32

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether each angle is finite, or each vector has length 1."""
        y = outcomes(y, self)
        return np.isfinite(y[:, 0]) if self.scalar else unit_length(y)

    def doubt(self, y: np.ndarray) -> tuple[int, str] | None:
        return doubtful_angles(outcomes(y, self)[:, 0]) if self.scalar else None

    def outside_words(self, y: np.ndarray, names: tuple[str, ...]) -> tuple[str, str]:
        return super().outside_words(y, names) if self.scalar else not_unit(y)

    def wrap(self, y: np.ndarray) -> np.ndarray:
        """The angles in [−π/2, π/2), or the vectors of the upper half; those already there are not touched."""
        y = outcomes(y, self)
        if self.scalar:
            return turned(y, np.pi)
        first = y[:, [2, 1, 0]]  # the sign of z decides, or of y where z = 0, …
        sign = np.sign(first[np.arange(len(y)), np.argmax(first != 0.0, axis=1)])
        return np.where(sign < 0, -1.0, 1.0)[:, None] * y + 0.0  # no −0

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """−π/2 + πu; in space, Archimedes' equal-area map of the upper half, z = u₁."""
        u = unit_points(u, self)
        if self.scalar:
            return self.wrap(-np.pi / 2 + np.pi * u)
        z, phi = u[:, 0], 2.0 * np.pi * u[:, 1] - np.pi
        r = np.sqrt((1.0 - z) * (1.0 + z))
        return self.wrap(np.column_stack([r * np.cos(phi), r * np.sin(phi), z]))

    def quadrature(self, order: int | None = None) -> Quadrature:
        """The trapezoid rule; in space Gauss–Legendre in z ≥ 0 times trapezoid in longitude, as on the sphere."""
        order = chosen_order(order, self.default_order)
        nodes = order if self.scalar else 2 * order**2
        refuse_large(nodes, f"A rule of order {order} on {self!r}", "Take a smaller order.")
        if self.scalar:
            u, weights = np.arange(order)[:, None] / order, np.full(order, np.pi / order)
            what = f"trapezoid, {order} axes"
        else:
            s, w = gauss_legendre(order)
            u = np.column_stack([np.repeat(s, 2 * order), np.tile(np.arange(2 * order) / (2 * order), order)])
            weights = self.volume * np.repeat(w / (2 * order), 2 * order)
            what = f"Gauss–Legendre in z ≥ 0 by trapezoid in longitude, {order} × {2 * order} nodes"
        falls = "the error falls geometrically with the order for smooth functions"
        return Quadrature(self.from_unit(u), weights, exact=False, rule=f"{what}: {falls}")

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Axis", "space": self.space}

    @classmethod
    def examples(cls) -> tuple[Axis, ...]:
        return cls(), cls(3)

    def __repr__(self) -> str:
        return "Axis()" if self.scalar else "Axis(3)"
