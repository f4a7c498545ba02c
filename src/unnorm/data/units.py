"""Units of directions: what the columns hold, said once where the observations are made.

Inside unnorm angles are in radians, counterclockwise from the first axis, and directions in space are unit vectors. A
`Unit` brings the user's columns there, and results back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ..errors import DataError, listing, unknown
from .observations import Observations, lag_suffix

_DEGREE = np.pi / 180.0


class Unit(ABC):
    """How directions are written in the data."""

    name: str
    sign: str  # what follows a number in tables

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
    """Longitude and latitude in degrees ↔ (cos φ cos λ, cos φ sin λ, sin φ)."""

    name: str = "lonlat"
    sign: str = "°"

    def inward(self, values: np.ndarray, row: np.ndarray | None = None) -> np.ndarray:
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != 2:
            raise DataError(
                "unit='lonlat' takes two columns, longitude and latitude in degrees, y=('lon', 'lat'); got "
                f"{1 if values.ndim == 1 else values.shape[1]}."
            )
        for column, most, remedy in (
            (1, 90.0, "Longitude comes first, y=('lon', 'lat'): are the two swapped, or the values no degrees?"),
            (0, 360.0, "Longitudes are degrees from −180 to 180, or from 0 to 360."),
        ):
            wrong = np.abs(values[:, column]) > most
            if wrong.any():
                first = int(np.argmax(wrong))
                where = first if row is None else int(row[first])
                what = ("longitude", "latitude")[column]
                raise DataError(f"Row {where}: {values[first, column]:g} is no {what} in degrees. {remedy}")
        lon, lat = values.T * _DEGREE
        return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])

    def outward(self, values: np.ndarray) -> np.ndarray:
        x, y, z = np.asarray(values, dtype=np.float64).T
        return np.column_stack([np.arctan2(y + 0.0, x), np.arctan2(z, np.hypot(x, y))]) / _DEGREE

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
        LonLat(),
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
