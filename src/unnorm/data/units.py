"""Units of directions: what the columns hold, said once where the observations are made.

Inside unnorm angles are in radians, counterclockwise from the first axis, and directions in space are unit vectors. A
`Unit` brings the user's columns there, and results back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from .._base.words import at_row
from ..errors import DataError, listing, unknown
from .observations import Observations, lag_suffix

_DEGREE = np.pi / 180.0


class Unit(ABC):
    """How directions are written in the data."""

    name: str
    sign: str  # what follows a number in tables
    places: bool = False  # whether two columns, longitude and latitude, are one direction in space

    def doubt(self, values: np.ndarray) -> str | None:
        """A sentence where all the values (n, k) look as if they were written in another unit."""
        return None

    @abstractmethod
    def inward(self, values: np.ndarray, row: np.ndarray | None = None) -> np.ndarray:
        """(n, k) as in the data → (n, d) as in unnorm; `row` says where values come from, in messages."""

    @abstractmethod
    def outward(self, values: np.ndarray) -> np.ndarray:
        """(n, d) as in unnorm → (n, k) as in the data."""

    def angles(self, relative: bool = False) -> AngleUnit:
        """The unit of single angles; `relative`: of differences, which have no origin and lie about 0."""
        return _DEGREES

    @abstractmethod
    def names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the d columns, from those of the k."""


@final
@dataclass(frozen=True)
class AngleUnit(Unit):
    """y = origin + scale · value."""

    name: str
    sign: str
    scale: float
    origin: float = 0.0
    low: float = -np.pi  # where the unit's own turn begins, in radians of its own sense

    def inward(self, values: np.ndarray, row: np.ndarray | None = None) -> np.ndarray:
        return self.origin + self.scale * np.asarray(values, dtype=np.float64)

    def outward(self, values: np.ndarray | float, period: float = 2.0 * np.pi) -> np.ndarray:
        """In one turn, or one `period`, of the unit: bearings and hours begin at 0, angles at minus half of it."""
        own = (np.asarray(values, dtype=np.float64) - self.origin) * np.sign(self.scale)
        low = self.low * period / (2.0 * np.pi)
        return (np.mod(own - low, period) + low) / abs(self.scale)

    def angles(self, relative: bool = False) -> AngleUnit:
        return replace(self, origin=0.0, low=-np.pi) if relative else self

    def names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        return given


@final
@dataclass(frozen=True)
class LonLat(Unit):
    """Longitude λ and latitude φ ↔ (cos φ cos λ, cos φ sin λ, sin φ)."""

    name: str
    angle: AngleUnit
    certain: bool = True  # whether the user has said that it is this unit and not the other

    places = True

    @property
    def sign(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.angle.sign

    def angles(self, relative: bool = False) -> AngleUnit:
        return self.angle

    def doubt(self, values: np.ndarray) -> str | None:
        """Degrees that would all be radians of the whole sphere: as degrees they lie within 3° of (0, 0)."""
        values = np.asarray(values, dtype=np.float64)
        if self.certain or not len(values) or not values.any():
            return None
        lon, lat = values.T
        east = np.all(np.abs(lon) <= np.pi) or np.all((lon >= 0.0) & (lon <= 2.0 * np.pi))
        if not east or np.abs(lat).max() > np.pi / 2:
            return None
        return (
            f"longitudes from {lon.min():.3g} to {lon.max():.3g} and latitudes from {lat.min():.3g} to "
            f"{lat.max():.3g} look like radians. Pass unit='lonlat_radians'; unit='lonlat_degrees' if they are degrees."
        )

    def inward(self, values: np.ndarray, row: np.ndarray | None = None) -> np.ndarray:
        values = np.asarray(values, dtype=np.float64)
        unit, turn = self.angle.name, 2.0 * np.pi / self.angle.scale
        if values.ndim != 2 or values.shape[1] != 2:
            raise DataError(
                f"unit={self.name!r} takes two columns, longitude and latitude in {unit}, y=('lon', 'lat'); got "
                f"{1 if values.ndim == 1 else values.shape[1]}."
            )
        ends = f"from {-turn / 2:.4g} to {turn / 2:.4g}, or from 0 to {turn:.4g}".replace("-", "−")
        for column, most, remedy in (
            (1, turn / 4, f"Longitude comes first, y=('lon', 'lat'): are the two swapped, or the values no {unit}?"),
            (0, turn, f"Longitudes are {unit} {ends}."),
        ):
            wrong = np.abs(values[:, column]) > most * (1.0 + 1e-12)
            if wrong.any():
                first = int(np.argmax(wrong))
                where = first if row is None else int(row[first])
                what = ("longitude", "latitude")[column]
                raise DataError(
                    f"{at_row(where).capitalize()}: {values[first, column]:g} is no {what} in {unit}. {remedy}"
                )
        lon, lat = values.T * self.angle.scale
        return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])

    def outward(self, values: np.ndarray) -> np.ndarray:
        x, y, z = np.asarray(values, dtype=np.float64).T
        return np.column_stack([np.arctan2(y + 0.0, x), np.arctan2(z, np.hypot(x, y))]) / self.angle.scale

    def names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        return "y1", "y2", "y3"


RADIANS = AngleUnit("radians", "", 1.0)
_DEGREES = AngleUnit("degrees", "°", _DEGREE)
UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in (
        RADIANS,
        _DEGREES,
        AngleUnit("bearings", "°", -_DEGREE, np.pi / 2, low=0.0),  # clockwise from north
        AngleUnit("hours", " h", np.pi / 12, low=0.0),  # of the day
        LonLat("lonlat", _DEGREES, certain=False),
        LonLat("lonlat_degrees", _DEGREES),
        LonLat("lonlat_radians", RADIANS),
    )
}


def unit_of(name: str) -> Unit:
    """The unit of that name."""
    if name not in UNITS:
        raise DataError(unknown("unit", name, UNITS))
    return UNITS[name]


def in_unit(obs: Observations, name: str | None) -> Observations:
    """Observations whose outcomes (and earlier points) come in this unit; None: as they are, and nothing is known."""
    if name is None:
        return obs
    unit = unit_of(name)
    outcome = unit.inward(obs.outcome, obs.row)
    if (doubt := unit.doubt(obs.outcome)) is not None:
        raise DataError(f"unit={name!r} means degrees, and {doubt}")
    names = unit.names(obs.outcome_names)
    earlier: dict[str, np.ndarray] = {}
    for lag in range(1, obs.lags + 1):
        before = unit.inward(obs.previous(lag), obs.row)
        earlier |= {new + lag_suffix(lag): before[:, j].copy() for j, new in enumerate(names)}
    old = {given + lag_suffix(lag) for lag in range(1, obs.lags + 1) for given in obs.outcome_names}
    context = earlier | {column: values for column, values in obs.context.items() if column not in old}
    if taken := [new for new in names if new in obs.context and new not in obs.outcome_names]:
        raise DataError(f"unit={name!r} calls its columns {listing(names)}, and {listing(taken)} is taken: rename it.")
    return replace(obs, outcome=outcome, outcome_names=names, context=context, unit=name)
