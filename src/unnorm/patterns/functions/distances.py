"""Functions of nearest distances: G from points, F from places, J = (1 − G)/(1 − F)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..._base.numerics import whole
from ...errors import InputError, unknown
from ..places import Places, border_distance, borders
from ..point_pattern import Pattern
from .inhomogeneous import survival, thinning
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


def G(
    pattern: Pattern,
    r: Any = None,
    *,
    correction: Censoring | None = None,
    intensity: Any = None,
    least: float | None = None,
) -> Summary:
    """The distribution of the distance from a point to the nearest other one; 1 − exp(−λπr²) for a Poisson process.

    Args:
        pattern: one pattern.
        r: distances. The estimate refers to the classes that they make.
        correction: "km" (Kaplan–Meier, the default), "border", "none".
        intensity: (n,) λ at the points, for a process whose intensity varies (van Lieshout 2011); "border" only.
        least: a lower bound of the intensity in the window; default 0.95 of the smallest at a point.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> un.patterns.G(points, r=[0.0, 0.05]).value.shape
        (2,)
    """
    from scipy.spatial import KDTree

    alone(pattern, "G")
    grid = distances(r, _default_reach(pattern), pattern)
    gap = borders(pattern.places, pattern.windows)
    if intensity is not None:
        log_keep, lowest = thinning(pattern, intensity, least)
        value = 1.0 - survival(pattern.places, gap, pattern.places, log_keep, grid, own=True)
        return _varying("G", pattern, grid, value, lowest, correction)
    near = KDTree(pattern.xy).query(pattern.xy, k=2)[0][:, 1]
    how = correction or "km"
    return Summary("G", how, grid, cdf(near, gap, grid, how), _poisson(pattern, grid), pattern.backend)


def F(
    pattern: Pattern,
    r: Any = None,
    *,
    correction: Censoring | None = None,
    raster: int | tuple[int, int] = 128,
    intensity: Any = None,
    least: float | None = None,
) -> Summary:
    """The distribution of the distance from a fixed place to the nearest point, over the centres of a raster.

    Args:
        pattern: one pattern.
        r: distances.
        correction: "km" (Kaplan–Meier, the default), "border", "none".
        raster: cells across the window's box in x and in y (128 as in spatstat).
        intensity: (n,) λ at the points, for a process whose intensity varies; "border" only.
        least: a lower bound of the intensity in the window; default 0.95 of the smallest at a point.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> un.patterns.F(points, r=[0.0, 0.05]).value.shape
        (2,)
    """
    from scipy.spatial import KDTree

    alone(pattern, "F", 1)
    grid = distances(r, _default_reach(pattern), pattern)
    centres, window = _raster(pattern, raster), pattern.windows[0]
    gap = border_distance(centres, window)
    if intensity is not None:
        log_keep, lowest = thinning(pattern, intensity, least)
        value = 1.0 - survival(Places.of(centres), gap, pattern.places, log_keep, grid, own=False)
        return _varying("F", pattern, grid, value, lowest, correction)
    near = KDTree(pattern.xy).query(centres)[0]
    how = correction or "km"
    return Summary("F", how, grid, cdf(near, gap, grid, how), _poisson(pattern, grid), pattern.backend)


def J(
    pattern: Pattern,
    r: Any = None,
    *,
    correction: Censoring | None = None,
    raster: int | tuple[int, int] = 128,
    intensity: Any = None,
    least: float | None = None,
) -> Summary:
    """(1 − G)/(1 − F): 1 for a Poisson process, below where points cluster; nan where F has reached 1.

    Args:
        pattern: one pattern.
        r: distances.
        correction: "km" (Kaplan–Meier, the default), "border", "none".
        raster: cells across the window's box in x and in y, for F.
        intensity: (n,) λ at the points, for a process whose intensity varies; "border" only.
        least: a lower bound of the intensity in the window; default 0.95 of the smallest at a point.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> float(un.patterns.J(points, r=[0.0, 0.05]).value[0])
        1.0
    """
    alone(pattern, "J")
    grid = distances(r, _default_reach(pattern), pattern)
    g = G(pattern, grid, correction=correction, intensity=intensity, least=least)
    f = F(pattern, grid, correction=correction, raster=raster, intensity=intensity, least=least)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(f.value < 1.0, (1.0 - g.value) / (1.0 - f.value), np.nan)
    return Summary("J", g.correction, grid, value, np.ones(len(grid)), pattern.backend)


def _raster(pattern: Pattern, raster: int | tuple[int, int]) -> np.ndarray:
    """Centres of the cells that lie in the window."""
    nx, ny = (raster, raster) if isinstance(raster, int | np.integer) else raster
    nx, ny = whole(nx, "raster", 1), whole(ny, "raster", 1)
    window = pattern.windows[0]
    assert window.enclosing_box is not None
    low, high = window.enclosing_box
    x = low[0] + (np.arange(nx) + 0.5) * (high - low)[0] / nx
    y = low[1] + (np.arange(ny) + 0.5) * (high - low)[1] / ny
    centres = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return centres[window.contains(centres)]


def _varying(
    name: str, pattern: Pattern, grid: np.ndarray, value: np.ndarray, lowest: float, correction: str | None
) -> Summary:
    if correction not in (None, "border"):
        raise InputError(f"{name} with an intensity has the correction 'border' only; got {correction!r}.")
    return Summary(name, "border", grid, value, -np.expm1(-lowest * np.pi * grid**2), pattern.backend)


def _poisson(pattern: Pattern, grid: np.ndarray) -> np.ndarray:
    return -np.expm1(-pattern.n / pattern.area * np.pi * grid**2)
