"""Functions of nearest distances: G from points, F from places, J = (1 − G)/(1 − F)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import InputError, unknown
from ..places import border_distance, borders
from ..point_pattern import Pattern
from .summary import Summary, alone, distances

Censoring = Literal["km", "border", "none"]
CENSORINGS = ("km", "border", "none")


def _default_reach(pattern: Pattern) -> float:
    """Where a Poisson process of this intensity has all but 1e-5 of its nearest distances."""
    return float(np.sqrt(np.log(1e5) / (np.pi * pattern.n / pattern.area)))


def cdf(near: np.ndarray, gap: np.ndarray, grid: np.ndarray, correction: str) -> np.ndarray:
    """The distribution function at the grid of distances `near`, seen only where they are within `gap` of the border.

    "km": Kaplan & Meier's estimator, a distance being censored at the border; "border": of those with gap ≥ r, the
    share with near ≤ r (both by the grid's classes, as spatstat's are); "none": all of them as they are.
    """
    if correction not in CENSORINGS:
        raise InputError(unknown("correction", correction, CENSORINGS))
    bins = len(grid)

    def histogram(values: np.ndarray) -> np.ndarray:
        return np.bincount(np.searchsorted(grid, values, side="left"), minlength=bins + 1)

    if correction == "none":
        return np.cumsum(histogram(near))[:bins] / len(near)
    seen = near <= gap
    events = histogram(near[seen])
    with np.errstate(divide="ignore", invalid="ignore"):
        if correction == "km":
            ends = histogram(np.minimum(near, gap))
            at_risk = len(near) - np.concatenate([[0], np.cumsum(ends)[:-1]])
            hazard = np.where(at_risk > 0, events / at_risk, 0.0)
            return 1.0 - np.cumprod(1.0 - hazard)[:bins]
        known = len(gap) - np.concatenate([[0], np.cumsum(histogram(gap))[:-1]])
        gone = np.concatenate([[0], np.cumsum(histogram(gap[seen]))[:-1]])
        return ((np.cumsum(events) - gone) / known)[:bins]


def G(pattern: Pattern, r: Any = None, *, correction: Censoring = "km") -> Summary:
    """The distribution of the distance from a point to the nearest other one; 1 − exp(−λπr²) for a Poisson process.

    `correction`: "km" (Kaplan–Meier), "border", "none". The estimate refers to the classes that r makes.
    """
    from scipy.spatial import KDTree

    alone(pattern, "G")
    grid = distances(r, _default_reach(pattern))
    near = KDTree(pattern.xy).query(pattern.xy, k=2)[0][:, 1]
    value = cdf(near, borders(pattern.places, pattern.windows), grid, correction)
    return Summary("G", correction, grid, value, _poisson(pattern, grid), pattern.backend)


def F(pattern: Pattern, r: Any = None, *, correction: Censoring = "km", raster: int | tuple[int, int] = 128) -> Summary:
    """The distribution of the distance from a fixed place to the nearest point, over the centres of a raster.

    `raster`: cells across the window's box in x and in y (128 as in spatstat).
    """
    from scipy.spatial import KDTree

    alone(pattern, "F", 1)
    grid = distances(r, _default_reach(pattern))
    nx, ny = (raster, raster) if isinstance(raster, int | np.integer) else raster
    window = pattern.windows[0]
    assert window.enclosing_box is not None
    low, high = window.enclosing_box
    x = low[0] + (np.arange(nx) + 0.5) * (high - low)[0] / nx
    y = low[1] + (np.arange(ny) + 0.5) * (high - low)[1] / ny
    centres = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    centres = centres[window.contains(centres)]
    near = KDTree(pattern.xy).query(centres)[0]
    value = cdf(near, border_distance(centres, window), grid, correction)
    return Summary("F", correction, grid, value, _poisson(pattern, grid), pattern.backend)


def J(pattern: Pattern, r: Any = None, *, correction: Censoring = "km", raster: int | tuple[int, int] = 128) -> Summary:
    """(1 − G)/(1 − F): 1 for a Poisson process, below where points cluster; nan where F has reached 1."""
    alone(pattern, "J")
    grid = distances(r, _default_reach(pattern))
    g, f = G(pattern, grid, correction=correction).value, F(pattern, grid, correction=correction, raster=raster).value
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(f < 1.0, (1.0 - g) / (1.0 - f), np.nan)
    return Summary("J", correction, grid, value, np.ones(len(grid)), pattern.backend)


def _poisson(pattern: Pattern, grid: np.ndarray) -> np.ndarray:
    return -np.expm1(-pattern.n / pattern.area * np.pi * grid**2)
