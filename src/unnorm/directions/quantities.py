"""What a family's parameters are called by those who use it, with errors by the delta method.

A family gives each quantity as a smooth function of θ (a vector κμ, where the quantity is a direction); a `Quantity`
turns the vector and its covariance into estimate, standard error and interval. A direction's interval is Fieller's: the
directions u for which some r u, r ≥ 0, lies within the confidence ellipse of asinh(κ) μ. Where the ellipse holds 0 that
is every direction, and the row says so. (Of asinh(κ), not κ, as the error of κ̂ grows with κ: six directions with
κ = 100 tell their mean, though κ̂ is less than two standard errors from 0.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from .._base.intervals import quantile
from ..data.units import Unit

WHOLE_CIRCLE = "the interval of {name} is the whole circle: the data do not tell it from any other direction"
WHOLE_SPHERE = "the confidence region of {name} is the whole sphere: the data do not tell it from any other direction"


@final
@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    estimate: float
    se: float
    lower: float
    upper: float
    note: str | None = None


class Quantity(ABC):
    """A named function of θ."""

    name: str
    size: int = 1  # numbers that make its value

    @abstractmethod
    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        """The lines of the table, from the value (size,) and its covariance."""


@final
@dataclass(frozen=True)
class Angle(Quantity):
    """The direction of a vector in the plane, as an angle of `period`; `relative`: a difference of two directions;
    `lost`: the data do not tell it, as is known from elsewhere."""

    name: str
    period: float = 2.0 * np.pi
    relative: bool = False
    lost: bool = False
    size: int = 2

    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        scale = self.period / (2.0 * np.pi)
        given = unit.angles(self.relative)
        angle, se = of_angle(value, V) if value.any() else (np.nan, np.nan)
        ends = None if self.lost or not value.any() else fieller(value, V, level)[2]
        estimate = float(given.outward(angle * scale, self.period))
        se = se * scale / abs(given.scale)
        if ends is None:
            low = float(given.low * scale / abs(given.scale))
            high, note = low + self.period / abs(given.scale), WHOLE_CIRCLE.format(name=self.name)
            return [Row(self.name, estimate, se, low, high, note)]
        lower, upper = (float(given.outward(end * scale, self.period)) for end in ends)
        return [Row(self.name, estimate, se, *((lower, upper) if given.scale > 0 else (upper, lower)))]


@final
@dataclass(frozen=True)
class Direction(Quantity):
    """The direction of a vector in space; an axis is named by its end with z ≥ 0."""

    name: str
    axial: bool = False
    size: int = 3

    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        scale = unit.angles().scale
        most = np.pi / 2 / scale  # the pole's latitude
        if not value.any():  # no resultant
            names = (" longitude", " latitude") if unit.places else ("[0]", "[1]", "[2]")
            ends = ((-2.0 * most, 2.0 * most), (-most, most)) if unit.places else ((-1.0, 1.0),) * 3
            note = WHOLE_SPHERE.format(name=self.name)
            return [Row(self.name + end, np.nan, np.nan, *both, note) for end, both in zip(names, ends)]
        if self.axial and value[np.flatnonzero(value)[-1:]].sum() < 0:
            value = -value
        note = WHOLE_SPHERE.format(name=self.name) if cone(value, V, level) is None else None
        z = quantile(level, None)
        z = z * (stretch(value, V, z**2) or np.inf) if note is None else np.inf
        length = float(np.linalg.norm(value))
        m = value / length
        if not unit.places:
            P = np.eye(3) - np.outer(m, m)
            se = np.sqrt(np.diag(P @ V @ P)) / length
            low, high = np.maximum(m - z * se, -1.0), np.minimum(m + z * se, 1.0)
            four = np.column_stack([m, se, low, high]).tolist()
            return [Row(f"{self.name}[{j}]", *row, note=note) for j, row in enumerate(four)]
        (lon,) = Angle(f"{self.name} longitude").rows(value[:2], V[:2, :2], level, unit)
        flat = float(np.hypot(*value[:2]))
        slope = np.array([*(-value[2] * value[:2] / max(flat, 1e-300)), flat]) / length**2
        lat, se = (float(one / scale) for one in (np.arctan2(value[2], flat), np.sqrt(slope @ V @ slope)))
        ends = max(lat - z * se, -most), min(lat + z * se, most)
        return [replace(lon, note=lon.note or note), Row(f"{self.name} latitude", lat, se, *ends, note)]


def undecided(x: float, se: float, level: float, parts: int) -> bool:
    """Whether the data do not tell x from 0, x being the length of a vector of so many parts, or the largest of as many
    numbers: (x/se)² is then at most χ² with as many degrees of freedom, not one."""
    from scipy.stats import chi2

    return bool(x**2 <= chi2.ppf(level, parts) * se**2)


@final
@dataclass(frozen=True)
class Number(Quantity):
    """A number without bounds. `parts`: of one that is never 0 exactly, as it is the largest of so many; its interval
    holds 0 where the data do not tell it from 0. `either`: its sign is not known, and the interval is even about 0."""

    name: str
    parts: int = 1
    either: bool = False

    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        x, se = float(value[0]), float(np.sqrt(V[0, 0]))
        half = quantile(level, None) * se
        lower, upper = x - half, x + half
        if undecided(x, se, level, self.parts):
            lower, upper = min(lower, 0.0), max(upper, 0.0)
        if self.either:
            lower, upper = -max(-lower, upper), max(-lower, upper)
        return [Row(self.name, x, se, lower, upper)]


@final
@dataclass(frozen=True)
class Size(Quantity):
    """κ ≥ 0, the length of a vector of `parts`. The interval is even on the scale asinh κ, where the error of a
    concentration hardly depends on κ: it is 1/√n times a constant as κ → 0, and proportional to κ as κ → ∞. Of a number
    whose error does not fall to 1/√n with it, such as β, the unit of that scale is `steps` errors at least."""

    name: str
    parts: int = 2
    steps: float = 0.0

    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        x, se = float(value[0]), float(np.sqrt(V[0, 0]))
        one = max(1.0, self.steps * se)
        half = quantile(level, None) * se / np.hypot(one, x)
        with np.errstate(over="ignore"):  # nothing is known of it
            lower, upper = (one * float(np.sinh(np.arcsinh(x / one) + sign * half)) for sign in (-1.0, 1.0))
        return [Row(self.name, x, se, 0.0 if undecided(x, se, level, self.parts) else max(lower, 0.0), upper)]


@final
@dataclass(frozen=True)
class Signed(Quantity):
    """κ of either sign: no length, as other parameters tell its direction. Its interval is even on the scale asinh κ,
    and may hold negative numbers; `parts` and `either` as of a `Number`."""

    name: str
    parts: int = 1
    either: bool = False

    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        x, se = float(value[0]), float(np.sqrt(V[0, 0]))
        slope = np.hypot(1.0, x)
        inner = Number(self.name, self.parts, self.either)
        (row,) = inner.rows(np.arcsinh(value), V / slope**2, level, unit)
        with np.errstate(over="ignore"):
            return [Row(self.name, x, se, float(np.sinh(row.lower)), float(np.sinh(row.upper)))]


@final
@dataclass(frozen=True)
class Length(Quantity):
    """A mean resultant length 0 ≤ ρ < 1, of two parts; its interval is even on the scale atanh ρ."""

    name: str

    def rows(self, value: np.ndarray, V: np.ndarray, level: float, unit: Unit) -> list[Row]:
        x, se = float(value[0]), float(np.sqrt(V[0, 0]))
        room = max(1.0 - x**2, 1e-300)
        half = quantile(level, None) * se / room
        middle = np.arctanh(min(x, 1.0 - 1e-16))
        lower = 0.0 if undecided(x, se, level, 2) else max(float(np.tanh(middle - half)), 0.0)
        return [Row(self.name, x, se, lower, float(np.tanh(middle + half)))]


def steadied(value: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """asinh(κ) μ and its covariance, from κμ and its own."""
    kappa = float(np.linalg.norm(value))
    h = float(np.arcsinh(kappa)) / kappa
    J = h * np.eye(len(value)) + (1.0 / np.hypot(1.0, kappa) - h) / kappa**2 * np.outer(value, value)
    return h * value, J @ V @ J.T


def stretch(value: np.ndarray, V: np.ndarray, c: float) -> float | None:
    """By how much Fieller's region is wider than the delta method's: 1/√(1 − c/vᵀV⁻¹v); None for every direction."""
    value, V = steadied(value, V)
    known = float(value @ np.linalg.solve(V, value))
    return None if known <= c else float(1.0 / np.sqrt(1.0 - c / known))


def of_angle(value: np.ndarray, V: np.ndarray) -> tuple[float, float]:
    """The angle of a vector in the plane and its standard error."""
    angle, length = float(np.arctan2(value[1], value[0])), float(np.hypot(*value))
    across = np.array([-np.sin(angle), np.cos(angle)])
    return angle, float(np.sqrt(across @ V @ across)) / length


def fieller(value: np.ndarray, V: np.ndarray, level: float) -> tuple[float, float, tuple[float, float] | None]:
    """The angle of a vector in the plane, its standard error, and the ends of its interval; None for every angle.

    Where V is the unit matrix the tangents to the ellipse make an angle asin(z/|v|) with v; elsewhere V^½ carries them.
    """
    angle, se = of_angle(value, V)
    value, V = steadied(value, V)
    L = np.linalg.cholesky(V)
    m = np.linalg.solve(L, value)
    sine = quantile(level, None) / float(np.hypot(*m))
    if sine >= 1.0:
        return angle, se, None
    tangent = np.sqrt(1.0 - sine**2)
    ends = [L @ np.array([[tangent, -turn * sine], [turn * sine, tangent]]) @ m for turn in (-1.0, 1.0)]
    return angle, se, (float(np.arctan2(*ends[0][::-1])), float(np.arctan2(*ends[1][::-1])))


@final
@dataclass(frozen=True)
class Cone:
    """A confidence region of a direction: an ellipse in the tangent plane, its half-axes as angles in radians."""

    centre: np.ndarray  # (3,) unit vector
    axes: np.ndarray  # (2, 3) the directions of the half-axes, longer one first
    angles: np.ndarray  # (2,) their lengths

    def outline(self, n: int = 200) -> np.ndarray:
        """(n, 3) points of its edge."""
        t = np.linspace(0.0, 2.0 * np.pi, n)
        u = np.cos(t)[:, None] * self.angles[0] * self.axes[0] + np.sin(t)[:, None] * self.angles[1] * self.axes[1]
        r = np.linalg.norm(u, axis=1, keepdims=True)
        return np.cos(r) * self.centre + np.sin(r) * u / np.maximum(r, 1e-300)


def cone(value: np.ndarray, V: np.ndarray, level: float) -> Cone | None:
    """The confidence region of the direction of a vector in space; None where it is the whole sphere."""
    from scipy.stats import chi2

    if not value.any():
        return None
    c = float(chi2.ppf(level, 2))
    length = float(np.linalg.norm(value))
    m = value / length
    P = np.eye(3) - np.outer(m, m)
    values, vectors = np.linalg.eigh(P @ V @ P / length**2)
    wider = stretch(value, V, c)
    if wider is None:
        return None
    angles = wider * np.sqrt(c * np.maximum(values[[2, 1]], 0.0))
    # beyond a right angle an ellipse in the tangent plane says nothing
    return None if angles[0] >= np.pi / 2 else Cone(m, vectors[:, [2, 1]].T, angles)
