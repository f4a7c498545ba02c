"""`so`: soap films, smooth functions on a region that do not smooth across its boundary (Wood, Bravington & Hedley
2008, JRSS B 70: 931–955).

f = Σ_j α_j a_j + Σ_i γ_i g_i. The a_j are harmonic (Δa_j = 0) and equal a cyclic cubic spline's functions on the
boundary; −Δg_i = ρ_i and −Δρ_i = δ(· − knot i), with both zero on the boundary. Penalties: ∫ of the squared second
derivative round each loop whose values are not known, and ∫∫(Δf)² = γᵀ(∫∫ρ_iρ_j)γ inside.

Functions are computed on a lattice (`film.py`). Measured on the fits of tests/oracles/mgcv/soap.R, the linear predictor
on the default lattice of 200 nodes is .00 to .04 standard errors (rms over the rows) away from that on 500; .2 where
boundary values are given that the data contradict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from ..errors import DataError, TermError, listing, unknown
from .arguments import integer, not_too_many
from .basis import Basis, Setup, saved_basis
from .cubic import cyclic_cubic
from .film import Lattice
from .kinds import BasisKind, Request
from .sample import Sample

GRID = 200  # lattice nodes along the longer side
INTERIOR = 30  # knots inside, about so many where none are given
_MOST_GRID = 2000
_ROWS = 5000  # rows at which the scale of the functions is measured
_KEYS = ("boundary", "grid", "interior", "k")
_WAYS = (
    "xt={'boundary': loops}, where a loop is a list of points (x, y), or a mapping from the two covariates (and 'f', "
    "values that are known there) to lists; a polygon of shapely or an un.Window does as well"
)


@dataclass(frozen=True, eq=False)
class Film:
    """What a soap film is made of: the boundary, the functions round it, the knots inside, the lattice."""

    lattice: Lattice
    known: tuple[np.ndarray | None, ...]  # values at a loop's vertices, where they are known
    sizes: tuple[int, ...]  # k of the cyclic spline round each loop
    knots: np.ndarray  # (r, 2)

    @cached_property
    def rings(self) -> tuple[Setup | None, ...]:
        """The cyclic spline round each loop at its border nodes; None where the values are known."""
        return tuple(None if f is not None else self._ring(i) for i, f in enumerate(self.known))

    def _ring(self, i: int) -> Setup:
        """Knots at quantiles of the border nodes' places, as mgcv has them."""
        arc, k = self.lattice.arc[self.lattice.loop == i], self.sizes[i]
        places = np.unique(np.concatenate([[0.0, _lengths(self.lattice.loops[i])[-1]], arc]))
        if places.size < 2 * k:
            raise TermError(
                f"Loop {i + 1} of the boundary has {arc.size} nodes of the lattice, too few for k={k}. Lower k, or "
                f"raise grid, now {self.lattice.grid}, in xt."
            )
        knots = np.interp(np.linspace(0, places.size - 1, k), np.arange(places.size), places)
        at = arc[:, None]
        return cyclic_cubic(knots, Sample(("arc",), at, np.full(arc.size, 1 / arc.size), at[0], at[0], k, True, at))

    @cached_property
    def sources(self) -> np.ndarray:
        """ρ (inner nodes, r): −Δρ_i = δ at knot i, with a maximum of one."""
        rho = self.lattice.poisson(self.lattice.sources(self.knots))[self.lattice.edge :]
        return rho / rho.max(axis=0)

    @cached_property
    def values(self) -> np.ndarray:
        """(nodes, functions): the harmonic functions loop by loop, then g."""
        lattice = self.lattice
        border = np.zeros((lattice.edge, sum(ring.basis.size for ring in self.rings if ring is not None)))
        start = 0
        for i, ring in enumerate(self.rings):
            if ring is not None:
                border[lattice.loop == i, start : start + ring.basis.size] = ring.columns
                start += ring.basis.size
        return np.concatenate([lattice.laplace(border), lattice.poisson(self.sources)], axis=1)

    @cached_property
    def fixed(self) -> np.ndarray | None:
        """(nodes, 1): the harmonic function of the known values, zero on the other loops; None where it is zero."""
        lattice, border = self.lattice, np.zeros((self.lattice.edge, 1))
        for i, f in enumerate(self.known):
            if f is not None:
                here = lattice.loop == i
                border[here, 0] = np.interp(lattice.arc[here], _lengths(self.lattice.loops[i]), f)
        return lattice.laplace(border) if border.any() else None

    def roots(self) -> tuple[np.ndarray, ...]:
        """E of each penalty: one a free loop, and that of the film."""
        own = [*(ring.roots[0] for ring in self.rings if ring is not None)]
        own.append(np.asarray(np.linalg.qr(self.lattice.h * self.sources, mode="r")))
        out, start, size = [], 0, sum(E.shape[1] for E in own)
        for E in own:
            out.append(np.zeros((len(E), size)))
            out[-1][:, start : start + E.shape[1]] = E
            start += E.shape[1]
        return tuple(out)

    def to_dict(self) -> dict[str, Any]:
        """What it is made of; the functions are computed again."""
        known = [None if f is None else f.tolist() for f in self.known]
        loops = [loop.tolist() for loop in self.lattice.loops]
        sizes, knots = list(self.sizes), self.knots.tolist()
        return {"loops": loops, "grid": self.lattice.grid, "known": known, "sizes": sizes, "knots": knots}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Film:
        grid = integer("A saved film", "grid", saved["grid"], 2, _MOST_GRID)  # nothing is computed on more nodes
        not_too_many("A saved film", "k", sum(saved["sizes"]) + len(saved["knots"]))
        known = tuple(None if f is None else np.array(f, dtype=np.float64) for f in saved["known"])
        lattice = Lattice([np.array(loop, dtype=np.float64) for loop in saved["loops"]], grid)
        return cls(lattice, known, tuple(saved["sizes"]), np.array(saved["knots"], dtype=np.float64))


@saved_basis
@dataclass(frozen=True, eq=False)
class SoapFilm(Basis):
    """The film's functions times T; nan outside the boundary."""

    kind: ClassVar[str] = "soap-film"
    film: Film
    transform: np.ndarray  # T

    def __post_init__(self) -> None:
        self._describe(2, self.transform.shape[1])

    @property
    def larger(self) -> str:
        return f"{2 * len(self.film.knots)} knots inside, and k={2 * max(self.film.sizes)}"

    @property
    def outline(self) -> tuple[np.ndarray, ...]:
        return self.film.lattice.loops

    @property
    def mesh(self) -> float:
        return self.film.lattice.h

    @cached_property
    def _values(self) -> np.ndarray:
        return self.film.values @ self.transform

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        return self.film.lattice.interpolated(self._values, np.asarray(points, dtype=np.float64).reshape(-1, 2))

    def fixed(self, points: np.ndarray) -> np.ndarray | None:
        if self.film.fixed is None:
            return None
        return self.film.lattice.interpolated(self.film.fixed, np.asarray(points, dtype=np.float64))[:, 0]

    def times(self, transform: np.ndarray) -> SoapFilm:
        return replace(self, transform=self.transform @ transform)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "film": self.film.to_dict(), "transform": self.transform.tolist()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> SoapFilm:
        return cls(Film.from_dict(saved["film"]), np.array(saved["transform"], dtype=np.float64))


@final
class SoapFilms(BasisKind):
    """`so`: a soap film on a region of the plane, s(x, y, bs='so', xt={'boundary': …})."""

    name = "so"
    covariates = (2, 2)
    usage = "s(x, y, bs='so', xt={'boundary': loops})"
    takes_xt = True
    margin = False

    def checked_xt(self, label: str, names: tuple[str, ...], xt: Any) -> Any:
        if xt is None:
            return None
        if not isinstance(xt, Mapping):
            raise TermError(f"{label}: bs='so' takes {_WAYS}; got xt={xt!r}.")
        if strange := [key for key in xt if key not in _KEYS]:
            raise TermError(f"{label}: " + unknown("xt of bs='so'", strange[0], _KEYS))
        out = {key: value for key, value in xt.items() if key != "boundary"}
        if "grid" in xt:
            out["grid"] = integer(label, "grid in xt", xt["grid"], 20, _MOST_GRID)
        if "interior" in xt:
            out["interior"] = integer(label, "interior in xt", xt["interior"], 1)
        if "k" in xt:
            out["k"] = tuple(integer(label, "k in xt", k, 4) for k in np.atleast_1d(xt["k"]))
        if "boundary" in xt:
            out["boundary"] = tuple(_written(label, names, loop) for loop in _loops(xt["boundary"]))
        return out

    def setup(self, request: Request) -> Setup:
        film = self.film(request)
        rows, roots = request.rows(), film.roots()
        free = [ring for ring in film.rings if ring is not None]
        basis = SoapFilm(film, np.eye(roots[0].shape[1]))
        refuse_outside(film.lattice.contains(rows), rows, request.names, request.label)
        low, high, mean = _over(basis, rows)
        if not (high > low).all():
            raise TermError(
                f"{request.label}: {int(np.sum(high <= low))} of the film's functions are constant over the rows. Drop "
                "knots and loops that are far from the rows, or raise grid in xt."
            )
        scale = 1 / (high - low)  # as in mgcv: REML depends on the scale of what is not penalised
        thin = rows[:: max(1, len(rows) // _ROWS)]
        return Setup(
            basis.times(np.diag(scale)),
            basis.evaluate(thin) * scale,
            tuple(E * scale for E in roots),
            (*(ring.ranks[0] for ring in free), len(film.knots)),
            len(free),
            mean=mean * scale,
            centred=len(free) == len(film.known),
        )

    def film(self, request: Request) -> Film:
        """The film that the term asks for."""
        what, xt = request.label, request.xt or {}
        written = xt.get("boundary", request.boundary(request.names))
        if written is None:
            raise TermError(
                f"{what}: bs='so' needs the region's boundary: {_WAYS}. On a domain that is an un.Window, "
                "s(x, y, bs='so') takes the window's."
            )
        if not isinstance(written[0], Mapping):  # the domain's own
            written = tuple(_written(what, request.names, loop) for loop in written)
        loops = tuple(np.column_stack([loop[name] for name in request.names]) for loop in written)
        known = tuple(np.array(loop["f"], dtype=np.float64) if "f" in loop else None for loop in written)
        _check_loops(loops, what)
        k = xt.get("k", (10 if request.k is None else request.k,))
        k = k * len(loops) if len(k) == 1 else k
        if len(k) != len(loops) or min(k) < 4:
            raise TermError(
                f"{what}: k is the size of the cyclic spline round the boundary, at least 4; for several loops k in xt "
                f"takes one value for each of the {len(loops)}. Got {listing(k)}."
            )
        lattice = Lattice(loops, xt.get("grid", GRID))
        if lattice.inner < 25:
            raise TermError(f"{what}: the lattice has {lattice.inner} nodes inside the boundary. Raise grid in xt.")
        knots = _given_knots(request, lattice)
        if knots is None:
            knots = even_knots(lattice, xt.get("interior", INTERIOR))
        return Film(lattice, known, k, knots)

    def examples(self) -> tuple[str, ...]:
        square = "{'x': (-0.1, 1.1, 1.1, -0.1), 'z': (-4, -4, 4.5, 4.5)}"
        hole = "{'x': (0.3, 0.7, 0.5), 'z': (2.6, 2.6, 3.6)}"
        return (
            f"s(x, z, bs='so', k=8, xt={{'boundary': ({square},), 'grid': 60, 'interior': 12}})",
            f"s(x, z, bs='so', xt={{'boundary': ({square}, {hole}), 'grid': 80, 'interior': 12, 'k': (8, 4)}})",
        )


def even_knots(lattice: Lattice, count: int) -> np.ndarray:
    """About `count` knots (r, 2) on a square lattice, at least a quarter of its spacing away from the boundary."""
    import shapely

    step, places = float(np.sqrt(lattice.window.volume / count)), np.empty((0, 2))
    for _ in range(40):
        low, high = lattice.window.lower, lattice.window.upper
        axes = [a + (np.arange(n) + 0.5) * (b - a) / n for a, b, n in zip(low, high, np.ceil((high - low) / step))]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        places = places[lattice.nearest(places) >= lattice.edge]
        gap = shapely.distance(lattice.window.polygon.boundary, shapely.points(places))
        places = places[gap > 0.25 * step]
        if len(places) >= count:
            break
        step *= 0.95
    return places


def _given_knots(request: Request, lattice: Lattice) -> np.ndarray | None:
    """The user's knots, each in a square of its own inside; None where there are none."""
    what, names = request.label, request.names
    given = [request.given_knots(name) for name in names]
    x, y = given
    if x is None and y is None:
        return None
    if x is None or y is None or x.size != y.size or x.size == 0:
        raise TermError(f"{what}: knots are two lists of equal length, one number for each of {listing(names)} a knot.")
    knots = np.column_stack([x, y])
    node = lattice.nearest(knots)
    out = np.flatnonzero(node < lattice.edge)
    if out.size:
        i = int(out[0])
        raise TermError(
            f"{what}: {out.size} of {len(knots)} knots are outside the boundary or within a square of the lattice "
            f"(side {lattice.h:.3g}) of it, first knot {i} at {_at(knots[i], names)}. Move or drop them, or raise grid "
            "in xt."
        )
    if np.unique(node).size < node.size:
        raise TermError(f"{what}: two knots lie in the same square of the lattice. Drop one, or raise grid in xt.")
    return knots


def refuse_outside(inside: np.ndarray, rows: np.ndarray, names: Sequence[str], what: str) -> None:
    """Rows that lie outside are an error that names the first."""
    out = np.flatnonzero(~inside)
    if out.size:
        i = int(out[0])
        raise DataError(
            f"{what}: {out.size} of {len(rows)} rows lie outside the boundary, first row {i} at {_at(rows[i], names)}. "
            "Drop them, or widen the boundary."
        )


def _at(point: np.ndarray, names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, point))


def _over(basis: SoapFilm, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least, largest and mean value of each function over the rows."""
    low, high, total = np.full(basis.size, np.inf), np.full(basis.size, -np.inf), np.zeros(basis.size)
    step = max(256, (1 << 22) // basis.size)
    for start in range(0, len(rows), step):
        columns = basis.evaluate(rows[start : start + step])
        low, high = np.minimum(low, columns.min(axis=0)), np.maximum(high, columns.max(axis=0))
        total += columns.sum(axis=0)
    return low, high, total / len(rows)


def _lengths(loop: np.ndarray) -> np.ndarray:
    """How far round the loop each vertex is."""
    return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(loop, axis=0).T))])


# ---- the boundary as users write it ----


def _loops(boundary: Any) -> list[Any]:
    """The loops: of a geometry, a single one by itself, or a list of them."""
    if hasattr(boundary, "__geo_interface__"):
        import shapely.geometry

        shape = shapely.geometry.shape(boundary)
        return [np.array(ring.coords)[:, :2] for ring in shapely.get_rings(shapely.get_parts(shape))]
    if isinstance(boundary, Mapping):
        return [boundary]
    if not isinstance(boundary, list | tuple | np.ndarray) or len(boundary) == 0:
        return [boundary]
    first = boundary[0]
    single = not isinstance(first, Mapping) and np.ndim(first) == 1
    return [boundary] if single else list(boundary)


def _written(label: str, names: tuple[str, ...], loop: Any) -> dict[str, tuple[float, ...]]:
    """One closed loop as a mapping from the covariates, and 'f' where values are known, to numbers."""
    try:
        if isinstance(loop, Mapping):
            points = np.column_stack([np.asarray(loop[name], dtype=np.float64) for name in names])
        else:
            points = np.asarray(loop, dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        raise TermError(f"{label}: a loop of the boundary is not as expected: {_WAYS}; got {loop!r}.") from None
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise TermError(f"{label}: a loop of the boundary is finite points (x, y); got shape {points.shape}.")
    f = None
    if isinstance(loop, Mapping) and "f" in loop:
        f = np.asarray(loop["f"], dtype=np.float64)
        if f.shape not in ((), (len(points),)) or not np.isfinite(f).all():
            raise TermError(f"{label}: 'f' is one known value, or one for each of the loop's {len(points)} points.")
        f = np.broadcast_to(f, len(points))
    if (points[0] != points[-1]).any():
        points = np.concatenate([points, points[:1]])
        f = None if f is None else np.concatenate([f, f[:1]])
    new = np.ones(len(points), dtype=bool)
    new[1:] = (points[1:] != points[:-1]).any(axis=1)
    if new.sum() < 4:
        raise TermError(f"{label}: a loop of the boundary needs three points or more that differ; got {loop!r}.")
    out = {name: tuple(points[new, j].tolist()) for j, name in enumerate(names)}
    return out if f is None else {**out, "f": tuple(f[new].tolist())}


def _check_loops(loops: tuple[np.ndarray, ...], what: str) -> None:
    """Loops that are simple, and apart from each other."""
    import shapely

    for i, loop in enumerate(loops):
        if not shapely.Polygon(loop).is_valid:
            reason = shapely.is_valid_reason(shapely.Polygon(loop))
            raise TermError(f"{what}: loop {i + 1} of the boundary must not cross itself; shapely says: {reason}.")
    for i, loop in enumerate(loops):
        for j in range(i):
            if shapely.LineString(loop).intersects(shapely.LineString(loops[j])):
                raise TermError(
                    f"{what}: the loops of the boundary must not cross or touch; loops {j + 1} and {i + 1} do. Draw "
                    "holes apart from each other and from the outer loop."
                )
