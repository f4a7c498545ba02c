"""Latitude and longitude of outcomes on the unit sphere, in degrees: what `s(latitude, longitude, bs='sos')` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from ..observations import lag_suffix
from .base import Covariate, CovariateRows, Setting


def _places(setting: Setting) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Suffix and coordinates of the outcome, and of each earlier one of a chain."""
    if not setting.sphere:
        return ()
    names = setting.obs.outcome_names
    earlier = [lag_suffix(lag) for lag in range(1, setting.obs.lags + 1)] if setting.obs.kind == "transitions" else []
    return tuple((suffix, tuple(name + suffix for name in names)) for suffix in ("", *earlier))


@final
@dataclass(frozen=True)
class Latitude(Covariate):
    """The angle of y from the plane of its first two coordinates, from −90 to 90."""

    name: str
    needs: tuple[str, ...]

    def values(self, rows: CovariateRows) -> np.ndarray:
        x, y, z = (rows[name] for name in self.needs)
        return np.degrees(np.arctan2(z, np.hypot(x, y)))

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        return tuple(cls(f"latitude{suffix}", needs) for suffix, needs in _places(setting))


@final
@dataclass(frozen=True)
class Longitude(Covariate):
    """The angle of y's first two coordinates, counterclockwise, in (−180, 180]; 0 at the poles."""

    name: str
    needs: tuple[str, ...]
    period: float | None = 360.0

    def values(self, rows: CovariateRows) -> np.ndarray:
        x, y, _ = (rows[name] for name in self.needs)
        return np.degrees(np.arctan2(y + 0.0, x))  # −0 + 0 is +0: straight back is 180, never −180

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        return tuple(cls(f"longitude{suffix}", needs) for suffix, needs in _places(setting))
