"""Torus: several angles at once."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from .._base.numerics import whole
from ._rules import chosen_order, refuse_large
from .base import Corners, Domain, Quadrature, outcomes, unit_points
from .round import doubtful_angles, turned

_TURN = 2.0 * np.pi
_NODES = {2: 64, 3: 24}


@final
class Torus(Domain):
    """d angles in radians, each 2π-periodic, with measure dy₁ … dy_d; outcomes have shape (d,).

    Every finite angle is a member, and a user's f must be 2π-periodic in each. `quadrature` is the trapezoid rule in
    each angle, with `order` equal steps (64 by default where d = 2, 24 where d = 3).

    Args:
        angles: d, at least 2 (for one angle there is `Circle`).

    >>> Torus().wrap(np.array([[4.0, 0.5]])).round(3).tolist()
    [[-2.283, 0.5]]
    """

    def __init__(self, angles: int = 2) -> None:
        self.dim = whole(angles, "The number of angles of a Torus", least=2)

    @property
    def coordinate_period(self) -> float:
        return _TURN

    @property
    def volume(self) -> float:
        """(2π)^d."""
        return _TURN**self.dim

    @property
    def affine(self) -> Corners:
        return np.full(self.dim, -np.pi), np.full(self.dim, _TURN)

    @property
    def default_order(self) -> int | None:
        return _NODES.get(self.dim)

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether all angles are finite."""
        return np.all(np.isfinite(outcomes(y, self)), axis=1)

    def doubt(self, y: np.ndarray) -> tuple[int, str] | None:
        y = outcomes(y, self)
        found = (doubtful_angles(y[:, j]) for j in range(self.dim))
        return next((one for one in found if one is not None), None)

    def wrap(self, y: np.ndarray) -> np.ndarray:
        """Every angle in [−π, π)."""
        return turned(outcomes(y, self), _TURN)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """−π + 2πu, wrapped."""
        return self.wrap(-np.pi + _TURN * unit_points(u, self))

    def quadrature(self, order: int | None = None) -> Quadrature:
        """The product of trapezoid rules with `order` angles each."""
        if order is None and self.default_order is None:
            return super().quadrature(order)  # which says that there is no default
        order = chosen_order(order, self.default_order or 0)
        what = f"A trapezoid rule of order {order} in {self.dim} angles"
        refuse_large(order**self.dim, what, "Take a smaller order.")
        u = np.stack(np.meshgrid(*[np.arange(order) / order] * self.dim, indexing="ij"), axis=-1)
        points = self.from_unit(u.reshape(-1, self.dim))
        return Quadrature(
            points, np.full(len(points), self.volume / len(points)), exact=False,
            rule=f"trapezoid, {order}**{self.dim} angles: exact for trigonometric polynomials of degree {order - 1} in "
            "each; the error falls geometrically with the order for smooth periodic functions",
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Torus", "angles": self.dim}

    @classmethod
    def examples(cls) -> tuple[Torus, ...]:
        return cls(), cls(3)

    def __repr__(self) -> str:
        return f"Torus({'' if self.dim == 2 else self.dim})"
