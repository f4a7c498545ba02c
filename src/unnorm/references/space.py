"""What a reference must know of Ω beyond the contract of `Domain`: its sides, its edges, whether it is round or binary.

Domains are asked what they have, not what they are called: a rectangular `Window` is a box here, and so is a domain
written by a user that says `lower` and `upper` and has their volume.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CombinationError

if TYPE_CHECKING:
    from ..domains import Domain


@dataclass(frozen=True)
class Space:
    """The shape of Ω, as far as the references need it."""

    domain: Domain
    sides: tuple[np.ndarray, np.ndarray] | None = None  # (lower, upper), each (d,): Ω is the box between them
    edges: np.ndarray | None = None  # (E, 2, 2) directed edges, Ω on their left: Ω is a polygon in the plane
    period: float | None = None  # Ω is a circle of this length
    sphere: bool = False  # Ω is the unit sphere in R³
    bits: bool = False  # Ω is {0, 1}^d
    finite: bool = False

    @property
    def planar(self) -> bool:
        return self.edges is not None

    def inside(self, y: np.ndarray) -> np.ndarray:
        """`domain.contains` for draws from a continuous law, which never lie on the boundary: quicker on polygons."""
        polygon = getattr(self.domain, "polygon", None)
        if self.sides is not None or polygon is None:
            return self.domain.contains(y)
        import shapely

        return shapely.contains_xy(polygon, y[:, 0], y[:, 1])

    def works(self) -> str:
        """The references that this Ω takes."""
        names = ["Uniform()"]
        if self.bits:
            names += ["ProductBernoulli()", "BitFlip() (conditional NCE)"]
        if self.finite:
            names += ["Marginal()"]
        if self.period is not None:
            names += ["Gaussian() (wrapped)", "VonMises()", "Empirical()"]
        if self.sphere:
            names += ["VonMisesFisher()", "Empirical()"]
        if self.sides is not None or self.planar:
            names += ["Gaussian()", "Empirical()"]
        if self.planar:
            names += ["StepKernel()"]
        return ", ".join([*names, "Mixture(…)", "Custom(sample, log_density)"])


def space(domain: Domain) -> Space:
    """The shape of Ω."""
    d = domain.dim
    if domain.finite:
        corners = np.array([np.zeros(d), np.ones(d)])
        bits = (
            bool(np.all(domain.contains(corners)))
            and domain.cube_dim == d
            and abs(domain.log_volume - d * np.log(2.0)) < 1e-9 * d
        )
        return Space(domain, bits=bits, finite=True)
    if domain.period is not None and d == 1:
        return Space(domain, period=domain.period)
    lower, upper = getattr(domain, "lower", None), getattr(domain, "upper", None)
    if lower is not None and upper is not None:
        a, b = (np.atleast_1d(np.asarray(side, dtype=np.float64)) for side in (lower, upper))
        if np.isclose(np.sum(np.log(b - a)), domain.log_volume, rtol=1e-12, atol=1e-12):
            return Space(domain, sides=(a, b), edges=_rectangle(a, b) if d == 2 else None)
    polygon = getattr(domain, "polygon", None)
    if polygon is not None and d == 2:
        return Space(domain, edges=_edges(polygon))
    sphere = d == 3 and domain.cube_dim == 2 and bool(np.all(domain.contains(np.vstack([np.eye(3), -np.eye(3)]))))
    return Space(domain, sphere=sphere)


def refusal(reference: str, shape: Space, why: str = "") -> CombinationError:
    """The error for a reference that this Ω does not take."""
    reason = f": {why}" if why else ""
    return CombinationError(
        f"{reference} does not work on {shape.domain!r}{reason}. What works there: {shape.works()}."
    )


def _rectangle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    corners = np.array([[a[0], a[1]], [b[0], a[1]], [b[0], b[1]], [a[0], b[1]]])
    return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)


def _edges(polygon: Any) -> np.ndarray:
    """The directed edges of a shapely polygon, exterior counter-clockwise and holes clockwise."""
    import shapely

    edges = []
    for part in shapely.get_parts(polygon):
        rings = [shapely.get_exterior_ring(part), *part.interiors]
        for number, ring in enumerate(rings):
            vertices = shapely.get_coordinates(ring)
            if bool(shapely.is_ccw(ring)) != (number == 0):
                vertices = vertices[::-1]
            edges.append(np.stack([vertices[:-1], vertices[1:]], axis=1))
    return np.concatenate(edges)
