"""Window: a polygon with holes in the plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from .._base.numerics import floats, read_only
from ..errors import InputError
from ._centred import Rules, cross, split_triangles
from ._rules import chosen_order, gauss_cone, gauss_legendre, refuse_large
from ._slabs import Slabs, slabs
from .base import Corners, Domain, Quadrature, outcomes, unit_points

_SPARE_NODES = 2  # per direction of a triangle: at least 3 in all, so that every rule is exact for degree 5
_ROUNDING = 1e-12  # of the largest coordinate: how far outside a point may be and still count as on the boundary


@final
class Window(Domain):
    """A polygon in the plane, possibly with holes or of several pieces, with area measure; outcomes have shape (2,).

    The boundary belongs to the window.

    `quadrature(order=40)` triangulates the window and puts on every triangle a conical product of Gauss rules with
    2 + `order` × (length of the triangle / diameter of the window) nodes, rounded up, along and across the triangle.
    It is exact for polynomials of degree 5 at every order (the rule's text gives the degree reached on this window, up
    to 2·order + 3), and with the default order to 1e-8 (relative) for Gaussian bumps with standard deviation a tenth
    of the diameter or more. `from_unit` is affine on rectangles and keeps the structure of low-discrepancy points.

    Args:
        polygon: a shapely Polygon or MultiPolygon (or anything with `__geo_interface__`), or the exterior's vertices,
            shape (k, 2).
        holes: the vertices of each hole, where `polygon` is vertices.

    >>> island = Window([(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]])
    >>> island.volume, island.contains(np.array([[0.5, 0.5], [1.5, 1.5], [1.0, 1.5]])).tolist()
    (11.0, [True, False, True])
    """

    dim = 2

    def __init__(self, polygon: Any, holes: Sequence[Any] = ()) -> None:
        import shapely

        geometry = _geometry(polygon, holes)
        if geometry.geom_type not in ("Polygon", "MultiPolygon"):
            raise InputError(
                f"A Window needs a Polygon or a MultiPolygon; got a {geometry.geom_type}. "
                "Join several geometries first: shapely.union_all(…)."
            )
        geometry = shapely.force_2d(geometry)
        if geometry.is_empty:
            raise InputError("A Window needs a polygon with some area; got an empty one.")
        if not np.isfinite(shapely.get_coordinates(geometry)).all():
            raise InputError(
                "The vertices of a Window must be finite; the polygon has a missing or infinite coordinate."
            )
        if not geometry.is_valid:
            raise InputError(
                f"The polygon of a Window must be simple, with its holes inside and apart; shapely says: "
                f"{shapely.is_valid_reason(geometry)}. shapely.make_valid(polygon) may repair it."
            )
        if not geometry.area > 0.0:
            raise InputError("A Window needs a polygon with some area; got one of area 0.")
        self._polygon = shapely.normalize(geometry)
        shapely.prepare(self._polygon)

    @property
    def polygon(self) -> Any:
        """The shapely geometry."""
        return self._polygon

    def scaled(self, by: float) -> Window:
        """Every vertex times `by`."""
        import shapely.affinity

        return Window(shapely.affinity.scale(self._polygon, by, by, origin=(0, 0)))

    @property
    def __geo_interface__(self) -> Mapping[str, Any]:
        """The polygon as GeoJSON, which other libraries read."""
        return self._polygon.__geo_interface__

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(xmin, ymin, xmax, ymax) of the enclosing box."""
        return self._polygon.bounds

    @property
    def lower(self) -> np.ndarray:
        """(xmin, ymin)."""
        return np.array(self.bounds[:2])

    @property
    def upper(self) -> np.ndarray:
        """(xmax, ymax)."""
        return np.array(self.bounds[2:])

    @property
    def centre(self) -> np.ndarray:
        """The centroid, shape (2,); of a hollow or bent window it may lie outside."""
        return np.array(self._polygon.centroid.coords[0])

    @property
    def enclosing_box(self) -> Corners:
        return self.lower, self.upper

    @property
    def sides(self) -> Corners | None:
        """The corners of the enclosing box, where the window fills it."""
        box = float(np.prod(self.upper - self.lower))
        return self.enclosing_box if abs(self.volume - box) <= 1e-12 * box else None

    @cached_property
    def edges(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]  (a property all the same)
        """(E, 2, 2) directed edges: exteriors counter-clockwise, holes clockwise."""
        import shapely

        edges = []
        for part in shapely.get_parts(self._polygon):
            for number, ring in enumerate([shapely.get_exterior_ring(part), *part.interiors]):
                vertices = shapely.get_coordinates(ring)
                if bool(shapely.is_ccw(ring)) != (number == 0):
                    vertices = vertices[::-1]
                edges.append(np.stack([vertices[:-1], vertices[1:]], axis=1))
        return read_only(np.concatenate(edges))

    @property
    def volume(self) -> float:
        """The area."""
        return float(self._polygon.area)

    @property
    def default_order(self) -> int:
        return 40

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether each point is inside or on the boundary (to a rounding error of 1e-12 of the largest coordinate)."""
        import shapely

        y = outcomes(y, self)
        slack = _ROUNDING * float(np.abs(self.bounds).max())
        inside = np.all((y >= self.lower - slack) & (y <= self.upper + slack), axis=1)  # false for NaN
        near = np.flatnonzero(inside)
        inside[near] = shapely.intersects_xy(self._polygon, y[near, 0], y[near, 1])
        doubtful = near[~inside[near]]
        inside[doubtful] = shapely.dwithin(self._polygon, shapely.points(y[doubtful]), slack)
        return inside

    def contains_interior(self, y: np.ndarray) -> np.ndarray:
        import shapely

        return shapely.contains_xy(self._polygon, y[:, 0], y[:, 1])

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """The conditional transform: abscissa by the area to its left, then height by the length below it."""
        return self._slabs.from_unit(unit_points(u, self))

    def quadrature(self, order: int | None = None) -> Quadrature:
        """Conical product Gauss rules on a triangulation; `order` is the number of nodes across the window."""
        order = chosen_order(order, self.default_order)
        a, b, c = self._triangles.swapaxes(0, 1)
        diameter = float(np.hypot(*(self.upper - self.lower)))
        along = np.maximum(np.hypot(*(b - a).T), np.hypot(*(c - a).T))
        across = np.hypot(*(c - b).T)
        ps, pt = (  # the factor keeps a rounding error from adding a node
            _SPARE_NODES + np.maximum(np.ceil(order * length / diameter * (1 - 1e-12)), 1).astype(int)
            for length in (along, across)
        )
        nodes = int(ps @ pt)
        refuse_large(
            nodes,
            f"The rule of order {order} on the {len(a):,} triangles of {self!r}",
            "Take a smaller order, or a polygon with fewer vertices (polygon.simplify(…)).",
        )
        area = 0.5 * np.abs(cross(b - a, c - a))
        points, weights = [], []
        for p, q in np.unique(np.column_stack([ps, pt]), axis=0):
            T = np.flatnonzero((ps == p) & (pt == q))
            (s, ws), (t, wt) = gauss_cone(int(p)), gauss_legendre(int(q))
            # y = a + s[(1 − t)(b − a) + t(c − a)], with Jacobian 2|T|s; s runs along the triangle, t across it
            first, second = np.outer(s, 1.0 - t).reshape(-1, 1), np.outer(s, t).reshape(-1, 1)
            y = a[T, None] + first * (b - a)[T, None] + second * (c - a)[T, None]
            points.append(y.reshape(-1, 2))
            weights.append((2.0 * area[T, None] * np.outer(ws, wt).ravel()).ravel())
        degree = 2 * int(min(ps.min(), pt.min())) - 1
        return Quadrature(
            points=np.concatenate(points),
            weights=np.concatenate(weights),
            exact=False,
            rule=f"conical Gauss products on {len(a):,} triangles, {nodes:,} nodes: exact for polynomials of degree "
            f"{degree}; the error falls geometrically with the order for smooth functions",
        )

    def centred(self, x: np.ndarray, order: int | None = None) -> Rules:
        """The triangulation cut at each x."""
        diameter = float(np.hypot(*(self.upper - self.lower)))
        return split_triangles(self._triangles, diameter, x, chosen_order(order, self.default_order))

    @cached_property
    def _rings(self) -> list[np.ndarray]:
        import shapely

        return [shapely.get_coordinates(ring) for ring in shapely.get_rings(shapely.get_parts(self._polygon))]

    @cached_property
    def _slabs(self) -> Slabs:
        return slabs(self._rings)

    @cached_property
    def _triangles(self) -> np.ndarray:
        """(T, 3, 2) triangles covering the window, the vertex opposite the shortest side first."""
        triangles = _constrained_delaunay(self._polygon)
        if triangles is None:
            triangles = self._slabs.triangles()
        a, b, c = triangles.swapaxes(0, 1)
        triangles = triangles[np.abs(cross(b - a, c - a)) > 0.0]
        opposite = np.hypot(*(triangles[:, [1, 2, 0]] - triangles[:, [2, 0, 1]]).transpose(2, 0, 1))  # (T, 3)
        turn = (opposite.argmin(axis=1)[:, None] + np.arange(3)) % 3
        return read_only(np.take_along_axis(triangles, turn[:, :, None], axis=1))

    def to_dict(self) -> dict[str, Any]:
        import shapely

        pieces = shapely.get_parts(self._polygon)
        polygons = [[shapely.get_coordinates(ring).tolist() for ring in shapely.get_rings(piece)] for piece in pieces]
        return {"domain": "Window", "polygons": polygons}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        import shapely

        pieces = [shapely.Polygon(exterior, holes) for exterior, *holes in description["polygons"]]
        return cls(pieces[0] if len(pieces) == 1 else shapely.MultiPolygon(pieces))

    @classmethod
    def examples(cls) -> tuple[Window, ...]:
        """A rectangle with a hole; a star with a hole and an island: concave, hollow, in two pieces."""
        from shapely import MultiPolygon, Polygon

        angle = np.arange(14) * np.pi / 7
        r = np.where(np.arange(14) % 2, 1.0, 2.2)
        star = np.column_stack([r * np.cos(angle), r * np.sin(angle)])
        hole = 0.4 * np.column_stack([np.cos(angle[::2]), np.sin(angle[::2])])
        island = Polygon([(3, -1), (3.5, 1), (4, -0.5)])
        rectangle = cls([(0, 0), (4, 0), (4, 3), (0, 3)], [[(1, 1), (2, 1), (2, 2)]])
        return rectangle, cls(MultiPolygon([Polygon(star, [hole]), island]))

    def __repr__(self) -> str:
        import shapely

        pieces = int(shapely.get_num_geometries(self._polygon))
        vertices = int(shapely.get_num_coordinates(self._polygon)) - len(self._rings)
        parts = [f"{pieces} pieces"] if pieces > 1 else []
        holes = len(self._rings) - pieces
        parts += [f"{vertices} vertices"] + ([f"{holes} hole{'s' * (holes > 1)}"] if holes else [])
        return f"Window({', '.join(parts)}, area {self.volume:g})"


def _geometry(polygon: Any, holes: Sequence[Any]) -> Any:
    """A shapely geometry from one, from an object with `__geo_interface__`, or from coordinates."""
    import shapely
    import shapely.geometry

    if isinstance(polygon, shapely.Geometry) or hasattr(polygon, "__geo_interface__"):
        if len(holes):
            raise InputError("holes go with exterior coordinates; a polygon object already holds its own.")
        return polygon if isinstance(polygon, shapely.Geometry) else shapely.geometry.shape(polygon)
    return shapely.Polygon(
        _ring(polygon, "The exterior of a Window"),
        [_ring(hole, f"Hole {k} of a Window") for k, hole in enumerate(holes, start=1)],
    )


def _ring(vertices: Any, what: str) -> np.ndarray:
    array = floats(vertices, what)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) < 3:
        raise InputError(f"{what} must be at least three vertices, shape (k, 2); got shape {array.shape}.")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InputError(f"{what} must have finite vertices; vertex {row} is {array[row].tolist()}.")
    return array


def _constrained_delaunay(polygon: Any) -> np.ndarray | None:
    """(T, 3, 2) triangles by shapely, or None where it cannot (before shapely 2.1 or GEOS 3.10) or does not cover."""
    import shapely

    try:
        collection = shapely.constrained_delaunay_triangles(polygon)
    except (AttributeError, shapely.errors.UnsupportedGEOSVersionError, shapely.errors.GEOSException):
        return None
    triangles = shapely.get_coordinates(collection).reshape(-1, 4, 2)[:, :3]
    a, b, c = triangles.swapaxes(0, 1)
    covered = 0.5 * np.abs(cross(b - a, c - a)).sum()
    return triangles if abs(covered - polygon.area) <= 1e-9 * polygon.area else None
