"""Circle and Sphere: outcomes without a boundary."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from ._rules import chosen_order, gauss_legendre, refuse_large
from .base import Corners, Domain, Quadrature, outcomes, unit_points

_TURN = 2.0 * np.pi
_UNIT_TOLERANCE = 1e-6  # unit vectors stored in single precision are off by 1e-7


TWO_TURNS = 2.0 * _TURN


def turned(y: np.ndarray, period: float) -> np.ndarray:
    """The angles in [−period/2, period/2); those already there are not touched."""
    half = period / 2
    wrapped = np.mod(y + half, period) - half
    wrapped = np.where(wrapped >= half, -half, wrapped)  # mod may round up to the period
    return np.where((y >= -half) & (y < half), y, wrapped)


def doubtful_angles(angles: np.ndarray) -> tuple[int, str] | None:
    """The first angle that cannot well be in radians: more than two turns, or whole numbers of more than one turn."""
    size = np.abs(angles)
    whole = bool(np.all(angles == np.round(angles)))
    wrong = size > (_TURN if whole else TWO_TURNS)
    if not wrong.any():
        return None
    first = int(np.argmax(wrong))
    why = "is more than one turn, and all angles are whole numbers" if whole else "is more than two turns"
    return first, (
        f"an angle of {angles[first]:g} radians {why}: these look like degrees. Pass unit='degrees' (or 'bearings', "
        "clockwise from north) where the observations are made, un.iid(…), un.transitions(…) or un.conditional(…); "
        "unit='radians' if they are radians."
    )


def unit_length(y: np.ndarray) -> np.ndarray:
    """(n, 3) → whether |‖y‖ − 1| ≤ 1e-6."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(np.linalg.norm(y, axis=1) - 1.0) <= _UNIT_TOLERANCE


def not_unit(y: np.ndarray) -> tuple[str, str]:
    """What is wrong with a vector that is not of length 1, and the remedy."""
    return (
        f"y = {np.array2string(y, precision=6)}, whose length is {np.linalg.norm(y):.6g}, not 1",
        "Divide each vector by its length, correct the data (longitudes and latitudes: unit='lonlat')",
    )


@final
class Circle(Domain):
    """Angles in radians with arc length, 2π-periodic; outcomes are scalars.

    Every finite angle is a member: y and y + 2π are the same outcome, so a user's f must be 2π-periodic. `wrap` names
    each angle by its value in [−π, π). `quadrature(order=256)` is the trapezoid rule with `order` equal steps:
    exact for trigonometric polynomials of degree order − 1, and with the default order to 1e-12 (relative) for von
    Mises densities with κ ≤ 1000.

    >>> Circle().wrap(np.array([3 * np.pi / 2, np.pi]))[:, 0] / np.pi
    array([-0.5, -1. ])
    """

    dim = 1
    scalar = True
    period = _TURN

    @property
    def volume(self) -> float:
        """2π."""
        return _TURN

    @property
    def affine(self) -> Corners:
        """−π and 2π."""
        return np.array([-np.pi]), np.array([_TURN])

    @property
    def default_order(self) -> int:
        return 256

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether each angle is finite."""
        return np.isfinite(outcomes(y, self)[:, 0])

    def wrap(self, y: np.ndarray) -> np.ndarray:
        """The angles in [−π, π); those already there are not touched."""
        return turned(outcomes(y, self), _TURN)

    def doubt(self, y: np.ndarray) -> tuple[int, str] | None:
        return doubtful_angles(outcomes(y, self)[:, 0])

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """−π + 2πu, wrapped."""
        return self.wrap(-np.pi + _TURN * unit_points(u, self))

    def quadrature(self, order: int | None = None) -> Quadrature:
        """The trapezoid rule: `order` equally spaced angles with equal weights."""
        order = chosen_order(order, self.default_order)
        refuse_large(order, f"A trapezoid rule of order {order}", "Take a smaller order.")
        return Quadrature(
            points=self.from_unit(np.arange(order)[:, None] / order),
            weights=np.full(order, _TURN / order),
            exact=False,
            rule=f"trapezoid, {order} angles: exact for trigonometric polynomials of degree {order - 1}; "
            "the error falls geometrically with the order for smooth periodic functions",
        )

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Circle"}

    @classmethod
    def examples(cls) -> tuple[Circle, ...]:
        return (cls(),)

    def __repr__(self) -> str:
        return "Circle()"


@final
class Sphere(Domain):
    """The unit sphere in R³ with area measure (4π); outcomes are unit vectors, shape (3,), to a tolerance of 1e-6.

    `quadrature(order=32)` is Gauss–Legendre in z (`order` nodes) times the trapezoid rule in longitude (2·order): exact
    for spherical harmonics of degree 2·order − 1, and with the default order to 1e-12 (relative) for von Mises–Fisher
    densities with κ ≤ 50.

    >>> rule = Sphere().quadrature()
    >>> (rule.weights @ rule.points**2 / (4 * np.pi / 3)).round(12).tolist()
    [1.0, 1.0, 1.0]
    """

    dim = 3
    sphere = True
    columns_words = (
        "Pass y= with the three coordinates of unit vectors; or longitude and latitude in degrees, y=('lon', 'lat') "
        "with unit='lonlat'."
    )

    @property
    def cube_dim(self) -> int:
        return 2

    @property
    def volume(self) -> float:
        """4π."""
        return 2.0 * _TURN

    @property
    def default_order(self) -> int:
        return 32

    def contains(self, y: np.ndarray) -> np.ndarray:
        """|‖y‖ − 1| ≤ 1e-6."""
        return unit_length(outcomes(y, self))

    def outside_words(self, y: np.ndarray, names: tuple[str, ...]) -> tuple[str, str]:
        return not_unit(y)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """Archimedes' equal-area map: z = 2u₁ − 1, longitude 2πu₂ − π."""
        u = unit_points(u, self)
        z, phi = 2.0 * u[:, 0] - 1.0, _TURN * u[:, 1] - np.pi
        r = 2.0 * np.sqrt(u[:, 0] * (1.0 - u[:, 0]))  # √(1 − z²) without cancellation at the poles
        return np.column_stack([r * np.cos(phi), r * np.sin(phi), z])

    def quadrature(self, order: int | None = None) -> Quadrature:
        """Gauss–Legendre in z (`order` nodes) times trapezoid in longitude (2·order nodes)."""
        order = chosen_order(order, self.default_order)
        refuse_large(2 * order**2, f"A spherical rule of order {order}", "Take a smaller order.")
        s, w = gauss_legendre(order)
        phi = np.arange(2 * order) / (2 * order)
        u = np.column_stack([np.repeat(s, 2 * order), np.tile(phi, order)])
        return Quadrature(
            points=self.from_unit(u),
            weights=self.volume * np.repeat(w / (2 * order), 2 * order),
            exact=False,
            rule=f"Gauss–Legendre in z by trapezoid in longitude, {order} × {2 * order} nodes: exact for spherical "
            f"harmonics of degree {2 * order - 1}; the error falls geometrically with the order for smooth functions",
        )

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Sphere"}

    @classmethod
    def examples(cls) -> tuple[Sphere, ...]:
        return (cls(),)

    def __repr__(self) -> str:
        return "Sphere()"
