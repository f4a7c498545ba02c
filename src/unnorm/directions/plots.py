"""Rose diagrams, maps of the sphere and of the torus. matplotlib is loaded on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.numerics import whole
from ..data.observations import Observations
from ..data.units import unit_of
from ..domains import Circle, Domain
from ..errors import InputError
from ..models.base import check_outcomes
from ..results.fit import Fit
from ..results.plots import INK, INNER, intervals

if TYPE_CHECKING:
    from .quantities import Cone
    from .result import DirectionFit

_GRID = 721


def rose(
    obs: Observations, fit: Fit | None = None, *, bins: int = 36, domain: Domain | None = None, ax: Any = None
) -> Any:
    """A rose diagram: bars whose area is the share of the data, and the density of a fit as a line; returns the Axes.

    Bearings are drawn as on a compass. Axes are drawn twice, at both ends.

    Args:
        obs: angles, from `un.iid(…, unit=…)`.
        fit: a fit of `un.Circle()` or `un.Axis()` to draw (of a `DirectionFit`, its `fit`).
        bins: bars in a whole turn.
        domain: Ω; default the fit's, or a circle.
        ax: polar Axes to draw on.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import unnorm as un
    >>> un.directions.rose(un.iid([10.0, 20.0, 35.0], unit="bearings")).name
    'polar'
    """
    bins = whole(bins, "bins", 1)
    _observed(obs)
    if domain is None:
        domain = Circle() if fit is None or fit.model is None else fit.model.domain
    if domain.period is None:
        raise InputError(f"A rose diagram is of angles on un.Circle() or un.Axis(); got {domain!r}.")
    check_outcomes(domain, obs)
    ax = _axes(ax, "polar")
    copies = round(2.0 * np.pi / domain.period)
    angles = np.concatenate([obs.outcome[:, 0] + j * domain.period for j in range(copies)]) % (2.0 * np.pi)
    share, edges = np.histogram(angles, np.linspace(0.0, 2.0 * np.pi, bins + 1), weights=np.tile(obs.weights, copies))
    density = share / (obs.weights.sum() * np.diff(edges))  # of one copy, per radian
    look = {"align": "edge", "color": INNER, "edgecolor": "white", "linewidth": 0.5}
    ax.bar(edges[:-1], np.sqrt(density), width=np.diff(edges), **look)
    if fit is not None:
        grid = np.linspace(0.0, 2.0 * np.pi, _GRID)
        ax.plot(grid, np.sqrt(np.exp(fit.log_density(domain.wrap(grid)[:, 0]))), color=INK, linewidth=1.8)
    if obs.unit is not None and unit_of(obs.unit).angles().scale < 0:
        north = ("E", "NE", "N", "NW", "W", "SW", "S", "SE")
        ax.set_xticks(np.arange(8) * np.pi / 4, north)
    ax.set_yticklabels([])
    ax.grid(color="0.85", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def sphere_map(
    obs: Observations, fit: Fit | None = None, *, cone: Cone | None = None, axial: bool = False, ax: Any = None
) -> Any:
    """Directions on a map of the whole sphere (Mollweide's, equal areas), with the density of a fit; returns the Axes.

    Args:
        obs: unit vectors, or `un.iid(…, unit="lonlat")`.
        fit: a fit on `un.Sphere()` or `un.Axis(3)`, drawn as shades of its density.
        cone: a confidence region, `DirectionFit.cone()`, drawn as a closed line.
        axial: draw each direction at both its ends.
        ax: Axes of projection "mollweide" to draw on.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import unnorm as un
    >>> un.directions.sphere_map(un.iid([[10.0, 60.0], [20.0, 50.0]], unit="lonlat")).name
    'mollweide'
    """
    _observed(obs)
    if obs.dim != 3:
        raise InputError(
            f"A map of the sphere takes unit vectors, or un.iid(…, unit='lonlat'); these have {obs.dim} column(s)."
        )
    ax = _axes(ax, "mollweide")
    if fit is not None:
        lon, lat = np.linspace(-np.pi, np.pi, 241), np.linspace(-np.pi / 2, np.pi / 2, 121)
        L, P = np.meshgrid(lon, lat)
        y = np.stack([np.cos(P) * np.cos(L), np.cos(P) * np.sin(L), np.sin(P)], axis=-1).reshape(-1, 3)
        density = np.exp(fit.log_density(y)).reshape(L.shape)
        ax.pcolormesh(L, P, density, shading="gouraud", cmap="Blues", rasterized=True)
    points = np.concatenate([obs.outcome, -obs.outcome]) if axial else obs.outcome
    ax.plot(*_plane(points).T, ".", ms=3, color="#c44e52", alpha=0.7)
    if cone is not None:
        edge = _plane(cone.outline())
        jump = np.abs(np.diff(edge[:, 0])) > np.pi  # over the edge of the map
        edge[1:][jump] = np.nan
        ax.plot(*edge.T, color="black", linewidth=1.5)
        ax.plot(*_plane(cone.centre[None]).T, "+", color="black", ms=9)
    ax.grid(color="0.8", linewidth=0.5)
    return ax


def projection(found: DirectionFit) -> str | None:
    """Of the Axes that `plot_direction` draws on."""
    domain = found.family.domain
    if found.family.kind != "iid" or (domain.period is None and domain.coordinate_period is not None):
        return None
    return "mollweide" if domain.period is None else "polar"


def plot_direction(found: DirectionFit, ax: Any = None) -> Any:
    """The picture that suits a fit: rose, map, square of two angles; intervals where there is a context."""
    fit, domain = found.fit, found.family.domain
    if found.family.kind != "iid":
        rows = found.rows()
        estimate, se = (np.array([getattr(row, name) for row in rows]) for name in ("estimate", "se"))
        return intervals([row.name for row in rows], estimate, se, 0.95, ax)
    if fit.obs is None:
        raise InputError("A loaded fit has no data to draw; un.directions.rose and sphere_map take data and a fit.")
    if domain.period is not None:
        return rose(fit.obs, fit, ax=ax)
    if domain.coordinate_period is not None:
        return _square(found, ax)
    name = next(one.name for one in found.family.quantities if one.size == 3)
    return sphere_map(fit.obs, fit, cone=found.cone(name), axial=found.family.even and not domain.sphere, ax=ax)


def _square(found: DirectionFit, ax: Any) -> Any:
    """Two angles with contours of their density."""
    import matplotlib.pyplot as plt

    fit = found.fit
    assert fit.obs is not None
    ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")[1] if ax is None else ax
    side = np.linspace(-np.pi, np.pi, 121)
    A, B = np.meshgrid(side, side)
    density = np.exp(fit.log_density(np.column_stack([A.ravel(), B.ravel()]))).reshape(A.shape)
    scale = 1.0 / abs(found.unit.angles().scale)
    ax.contourf(A * scale, B * scale, density, 10, cmap="Blues")
    ax.plot(*(fit.obs.outcome * scale).T, ".", ms=3, color="#c44e52", alpha=0.7)
    ax.set(xlabel=fit.obs.outcome_names[0], ylabel=fit.obs.outcome_names[1], aspect="equal")
    return ax


def _observed(obs: Any) -> None:
    if not isinstance(obs, Observations):
        raise InputError(f"obs must be the result of un.iid(…, unit=…); got {type(obs).__name__}.")


def _plane(y: np.ndarray) -> np.ndarray:
    """(n, 3) unit vectors → longitude and latitude in radians."""
    return np.column_stack([np.arctan2(y[:, 1], y[:, 0]), np.arctan2(y[:, 2], np.hypot(y[:, 0], y[:, 1]))])


def _axes(ax: Any, projection: str) -> Any:
    if ax is None:
        import matplotlib.pyplot as plt

        size = (4.4, 4.4) if projection == "polar" else (6.4, 3.6)
        return plt.subplots(figsize=size, layout="constrained", subplot_kw={"projection": projection})[1]
    if ax.name != projection:
        raise InputError(
            f"ax must have the projection {projection!r}, e.g. plt.subplot(projection={projection!r}); got {ax.name!r}."
        )
    return ax
