"""The distance to the nearest of some points, lines or areas: a road, a den, the edge of a wood."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import numpy as np

from ...errors import InputError
from .base import Covariate, CovariateRows
from .columns import check_name


@final
class Distance(Covariate):
    """The distance from the points at `coordinates` (default: the outcome) to the nearest of some geometries.

    Distances are in the units of the coordinates, and 0 within an area.

    Args:
        name: of the covariate, as terms call it.
        to: a shapely geometry or several, anything with `__geo_interface__`, GeoJSON as a mapping (a geometry, a
            Feature or a FeatureCollection), or an array of points (m, 2).
        coordinates: the two covariates that say from where.

    >>> Distance("road", [[0.0, 0.0], [3.0, 4.0]]).needs
    ('x', 'y')
    """

    reads_outcome = False

    def __init__(self, name: str, to: Any, *, coordinates: tuple[str, str] = ("x", "y")) -> None:
        import shapely

        self.name = check_name(name)
        if len(coordinates) != 2:
            raise InputError(f"Distance {name!r}: coordinates must name two covariates; got {coordinates!r}.")
        self.needs = (coordinates[0], coordinates[1])
        self.geometry: Any = shapely.force_2d(_geometry(name, to))
        if self.geometry.is_empty:
            raise InputError(f"Distance {name!r}: there is nothing to measure to; the geometry is empty.")
        if not np.isfinite(shapely.get_coordinates(self.geometry)).all():
            raise InputError(f"Distance {name!r}: a coordinate of the geometry is missing or infinite.")

    @cached_property
    def _tree(self) -> Any:
        """Pieces of the geometry, found by place: lines by their segments."""
        import shapely

        return shapely.STRtree(_pieces(self.geometry))

    def values(self, rows: CovariateRows) -> np.ndarray:
        import shapely

        places: Any = shapely.points(*(np.asarray(rows[name], dtype=np.float64) for name in self.needs))
        (row, _), distance = self._tree.query_nearest(places, return_distance=True, all_matches=False)
        out = np.empty(len(places))
        out[row] = distance
        return out

    def scaled(self, by: float) -> Distance:
        """The same in other units of length."""
        import shapely.affinity

        moved = shapely.affinity.scale(self.geometry, by, by, origin=(0, 0))
        return Distance(self.name, moved, coordinates=(self.needs[0], self.needs[1]))

    def to_dict(self) -> dict[str, Any]:
        import shapely

        return {
            "covariate": "Distance",
            "name": self.name,
            "to": shapely.to_wkt(self.geometry, rounding_precision=-1),
            "coordinates": list(self.needs),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Distance:
        import shapely

        to, coordinates = shapely.from_wkt(description["to"]), tuple(description["coordinates"])
        return cls(description["name"], to, coordinates=coordinates)

    @classmethod
    def examples(cls) -> tuple[Covariate, ...]:
        import shapely

        road = shapely.LineString([(0.0, 0.2), (1.0, 0.7)])
        return cls("road", road), cls("dens", [[0.1, 0.9], [0.5, 0.5]], coordinates=("x_prev", "y_prev"))

    def __repr__(self) -> str:
        return f"Distance({self.name!r}, to a {self.geometry.geom_type})"


def _pieces(geometry: Any) -> np.ndarray:
    """The parts of a geometry; a line as its segments, so that a long one is searched quickly."""
    import shapely

    pieces: list[Any] = []
    for part in shapely.get_parts(geometry, return_index=False).tolist():
        if part.geom_type in ("GeometryCollection",) or part.geom_type.startswith("Multi"):
            pieces += _pieces(part).tolist()
        elif part.geom_type in ("LineString", "LinearRing"):
            at = shapely.get_coordinates(part)
            segments: Any = shapely.linestrings(np.stack([at[:-1], at[1:]], axis=1))
            pieces += segments.tolist()
        else:
            pieces.append(part)
    return np.array(pieces, dtype=object)


def _geometry(name: str, to: Any) -> Any:
    import shapely
    import shapely.geometry

    try:
        if isinstance(to, shapely.Geometry):
            return to
        if isinstance(to, Mapping) and to.get("type") in ("Feature", "FeatureCollection"):
            features = to["features"] if to["type"] == "FeatureCollection" else [to]
            if not features:
                raise InputError(f"Distance {name!r}: there is nothing to measure to; the GeoJSON has no features.")
            if empty := [i for i, one in enumerate(features) if not one.get("geometry")]:
                raise InputError(
                    f"Distance {name!r}: {len(empty)} of {len(features)} features have no geometry, first feature "
                    f"{empty[0]} (from 0): remove them from the file."
                )
            return shapely.GeometryCollection([shapely.geometry.shape(one["geometry"]) for one in features])
        if isinstance(to, Mapping) or hasattr(to, "__geo_interface__"):
            return shapely.geometry.shape(dict(to) if isinstance(to, Mapping) else to)
        if isinstance(to, list | tuple) and to and all(isinstance(one, shapely.Geometry) for one in to):
            return shapely.GeometryCollection(list(to))
        points = np.asarray(to, dtype=np.float64)
        if points.ndim == 2 and points.shape[1] == 2 and len(points):
            return shapely.multipoints(points)
    except InputError:
        raise
    except Exception as error:  # shapely has its own errors for each kind of damage
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"Distance {name!r}: the geometry could not be read: {line}") from error
    raise InputError(
        f"Distance {name!r} needs points of shape (m, 2), a shapely geometry or GeoJSON; got {type(to).__name__}."
    )
