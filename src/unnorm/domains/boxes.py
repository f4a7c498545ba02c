"""Interval and Box: Lebesgue measure, with the Gauss–Legendre rules of `Domain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np

from .._base.numerics import floats, read_only
from ..errors import InputError
from ._centred import Rules, split_box, split_interval
from ._rules import chosen_order
from .base import Corners, Domain, outcomes, unit_points


def _bounds(pair: Any, what: str) -> tuple[float, float]:
    array = floats(pair, what)
    if array.shape != (2,):
        raise InputError(f"{what} must be a pair of numbers (a, b) with a < b; got {pair!r}.")
    a, b = float(array[0]), float(array[1])
    if not (np.isfinite(a) and np.isfinite(b)):
        raise InputError(
            f"{what} must be finite; got ({a}, {b}). Take bounds that hold all the mass, or transform the outcome."
        )
    if not a < b:
        raise InputError(f"{what} must be (a, b) with a < b; got ({a}, {b}).")
    if not np.isfinite(b - a):
        raise InputError(f"{what} must have a finite length; got ({a}, {b}).")
    return a, b


@final
class Interval(Domain):
    """[a, b] with Lebesgue measure; outcomes are scalars.

    `quadrature(order=100)` is Gauss–Legendre with `order` nodes: exact for polynomials of degree 2·order − 1, and with
    the default order to 1e-10 (relative) for Gaussian bumps with standard deviation (b − a)/50 or more.

    Args:
        a: the lower end.
        b: the upper end.

    >>> omega = Interval(-1, 1)
    >>> rule = omega.quadrature()
    >>> bool(abs(rule.weights @ np.exp(rule.points[:, 0]) - 2 * np.sinh(1)) < 1e-14)
    True
    """

    dim = 1
    scalar = True

    def __init__(self, a: float, b: float) -> None:
        self._a, self._b = _bounds((a, b), "The bounds of an Interval")

    @property
    def lower(self) -> float:
        """a."""
        return self._a

    @property
    def upper(self) -> float:
        """b."""
        return self._b

    @property
    def bounds(self) -> tuple[float, float]:
        """(a, b)."""
        return self._a, self._b

    @property
    def sides(self) -> Corners:
        """a and b."""
        return np.array([self._a]), np.array([self._b])

    @property
    def centre(self) -> np.ndarray:
        """(a + b)/2."""
        return np.array([self._a + 0.5 * (self._b - self._a)])

    @property
    def volume(self) -> float:
        """b − a."""
        return self._b - self._a

    def contains(self, y: np.ndarray) -> np.ndarray:
        """a ≤ y ≤ b."""
        y = outcomes(y, self)[:, 0]
        return (y >= self._a) & (y <= self._b)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """a + (b − a) u."""
        return np.clip(self._a + self.volume * unit_points(u, self), self._a, self._b)

    def centred(self, x: np.ndarray, order: int | None = None) -> Rules:
        """Gauss–Legendre on either side of each x, `order` nodes in all."""
        return split_interval(self._a, self._b, x, chosen_order(order, self.default_order or 0))

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Interval", "lower": self._a, "upper": self._b}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        return cls(description["lower"], description["upper"])

    @classmethod
    def examples(cls) -> tuple[Interval, ...]:
        return cls(-1, 1), cls(2.5, 7)

    def __repr__(self) -> str:
        return f"Interval({self._a:g}, {self._b:g})"


@final
class Box(Domain):
    """[a₁, b₁] × … × [a_d, b_d] with Lebesgue measure; outcomes have shape (d,).

    `quadrature(order)` is the tensor product of Gauss–Legendre rules with `order` nodes per axis (default 40 in the
    plane, 20 in space, 100 on a line): exact for polynomials of degree 2·order − 1 in each coordinate, and with the
    default order in the plane to 1e-10 (relative) for Gaussian bumps with standard deviation a twentieth of the sides
    or more. From d = 4 on there is no default: the order must be chosen; the error says how many nodes it takes.

    Args:
        bounds: a pair (a, b) for each coordinate.

    >>> screen = Box((0, 800), (0, 600))
    >>> screen.volume, screen.quadrature().points.shape
    (480000.0, (1600, 2))
    """

    def __init__(self, *bounds: tuple[float, float]) -> None:
        if not bounds:
            raise InputError("A Box needs one pair (a, b) per coordinate, e.g. Box((0, 800), (0, 600)); got none.")
        pairs = [_bounds(pair, f"The bounds of coordinate {k} of a Box") for k, pair in enumerate(bounds, start=1)]
        self._lower = read_only(np.array([a for a, _ in pairs]))
        self._upper = read_only(np.array([b for _, b in pairs]))
        self.dim = len(pairs)

    @property
    def lower(self) -> np.ndarray:
        """(a₁, …, a_d)."""
        return self._lower

    @property
    def upper(self) -> np.ndarray:
        """(b₁, …, b_d)."""
        return self._upper

    @property
    def bounds(self) -> tuple[float, ...]:
        """(a₁, …, a_d, b₁, …, b_d), shapely's order."""
        return (*self._lower.tolist(), *self._upper.tolist())

    @property
    def centre(self) -> np.ndarray:
        """The middle of the box, shape (d,)."""
        return self._lower + 0.5 * (self._upper - self._lower)

    @property
    def sides(self) -> Corners:
        """(a₁, …, a_d) and (b₁, …, b_d)."""
        return self._lower, self._upper

    @property
    def volume(self) -> float:
        """Π (b_k − a_k)."""
        return float(np.prod(self._upper - self._lower))

    @property
    def log_volume(self) -> float:
        return float(np.sum(np.log(self._upper - self._lower)))

    def contains(self, y: np.ndarray) -> np.ndarray:
        """a_k ≤ y_k ≤ b_k for every k."""
        y = outcomes(y, self)
        return np.all((y >= self._lower) & (y <= self._upper), axis=1)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """a + (b − a) u, coordinate by coordinate."""
        return np.clip(self._lower + (self._upper - self._lower) * unit_points(u, self), self._lower, self._upper)

    def scaled(self, by: float) -> Box:
        """Every bound times `by`."""
        return Box(*zip((self._lower * by).tolist(), (self._upper * by).tolist()))

    def centred(self, x: np.ndarray, order: int | None = None) -> Rules | None:
        """In the plane: eight triangles with a corner at each x, about `order`² nodes in all."""
        if self.dim != 2:
            return None
        return split_box(self._lower, self._upper, x, chosen_order(order, self.default_order or 0))

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Box", "lower": self._lower.tolist(), "upper": self._upper.tolist()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        return cls(*zip(description["lower"], description["upper"], strict=True))

    @classmethod
    def examples(cls) -> tuple[Box, ...]:
        return cls((0, 800), (0, 600)), cls((-1, 1), (0, 1), (2, 5)), cls((0, 2))

    def __repr__(self) -> str:
        pairs = [f"({a:g}, {b:g})" for a, b in zip(self._lower, self._upper)]
        return f"Box({', '.join(pairs if self.dim <= 8 else [*pairs[:3], f'… {self.dim - 4} more …', pairs[-1]])})"
