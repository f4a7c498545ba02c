"""Laplace's and Poisson's equations on a region with loops for a boundary, by differences on a square lattice.

Nodes whose square of side h meets the boundary carry the boundary's value at its nearest point (Dirichlet); nodes
inside satisfy the five-point difference equation; nodes outside are no part of the film. A function at a point is
interpolated between the four nodes around it. Values on the boundary are at most h/√2 out of place, so that solutions
converge as O(h); `soap.py` states the error that this makes in a fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..domains import Window
from .basis import chunked

_ROWS = 1 << 20  # entries of one gathered block


@dataclass(frozen=True, eq=False)
class Border:
    """Lattice nodes on the boundary: their numbers, the loop that each lies on, and how far round it."""

    node: np.ndarray
    loop: np.ndarray
    arc: np.ndarray


class Lattice:
    """A region on a lattice with `grid` nodes along the longer side of its box: nodes on the boundary come first.

    loops: closed polygons (m + 1, 2), the last vertex equal to the first; the region is what an odd number of them
    encloses.
    """

    def __init__(self, loops: Sequence[np.ndarray], grid: int) -> None:
        every = np.concatenate(loops)
        self.loops, self.grid = tuple(loops), grid
        self.low = every.min(axis=0)
        sides = every.max(axis=0) - self.low
        self.h = float(sides.max()) / (grid - 1)
        self.shape = tuple(int(n) for n in np.ceil(sides / self.h - 1e-9).astype(int) + 1)
        crossed = self._crossed()
        inside = self._contains(self._places(np.arange(self.shape[0] * self.shape[1])))
        on = np.zeros(inside.size, dtype=bool)
        on[crossed.node] = True
        inner = (inside & ~on).reshape(self.shape)
        border = self._closed(inner, on, crossed)
        self.arc, self.loop = border.arc, border.loop
        self.number = np.full(inside.size, -1)  # lattice node → node of the film
        self.number[border.node] = np.arange(border.node.size)
        rest = np.flatnonzero(inner)
        self.number[rest] = border.node.size + np.arange(rest.size)
        self.edge, self.inner = border.node.size, rest.size

    @cached_property
    def window(self) -> Window:
        """The region itself."""
        return Window(enclosed(self.loops))

    @property
    def nodes(self) -> int:
        return self.edge + self.inner

    def _places(self, at: np.ndarray) -> np.ndarray:
        i, j = np.unravel_index(at, self.shape)
        return self.low + self.h * np.column_stack([i, j])

    def _contains(self, points: np.ndarray) -> np.ndarray:
        return self.window.contains(points)

    def _crossed(self) -> Border:
        """Nodes whose squares the boundary passes through, each with its nearest point on the boundary."""
        nodes, loops, arcs, gaps = [], [], [], []
        for number, loop in enumerate(self.loops):
            start = 0.0
            for a, b in itertools.pairwise(loop):
                length = float(np.hypot(*(b - a)))
                cells = np.unique(self._cells(a, b), axis=0)
                at = cells[:, 0] * self.shape[1] + cells[:, 1]
                share = np.clip((self._places(at) - a) @ (b - a) / length**2, 0.0, 1.0)
                nodes.append(at)
                loops.append(np.full(at.size, number))
                arcs.append(start + share * length)
                gaps.append(np.hypot(*(self._places(at) - a - share[:, None] * (b - a)).T))
                start += length
        return _nearest(*map(np.concatenate, (nodes, loops, arcs, gaps)))

    def _cells(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(r, 2) squares around nodes that the segment from a to b passes through."""
        u, v = (a - self.low) / self.h, (b - self.low) / self.h
        cuts = [np.array([0.0, 1.0])]
        for p, q in zip(u, v):
            if p != q:
                lines = np.arange(np.floor(min(p, q) + 0.5), np.ceil(max(p, q) - 0.5) + 1) + 0.5
                cuts.append((lines - p) / (q - p))
        t = np.unique(np.concatenate(cuts))
        t = t[(t >= 0.0) & (t <= 1.0)]
        middle = 0.5 * (t[:-1] + t[1:])
        cells = np.floor(u + middle[:, None] * (v - u) + 0.5).astype(int)
        return np.clip(cells, 0, np.array(self.shape) - 1)

    def _closed(self, inner: np.ndarray, on: np.ndarray, crossed: Border) -> Border:
        """The border with nodes added that still have a neighbour outside: where the boundary runs along the side of a
        square, rounding decides whose it is."""
        padded = np.pad(inner | on.reshape(self.shape), 1)
        whole = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
        leaks = np.flatnonzero(inner & ~whole)
        if not leaks.size:
            return crossed
        inner.ravel()[leaks] = False
        from scipy.spatial import KDTree

        near = KDTree(self._places(crossed.node)).query(self._places(leaks))[1]
        return Border(*(np.concatenate([old, new]) for old, new in (
            (crossed.node, leaks), (crossed.loop, crossed.loop[near]), (crossed.arc, crossed.arc[near])
        )))  # fmt: skip

    @cached_property
    def _solver(self):
        """−Δ on the nodes inside, factorised, and the part of it that reads the border."""
        from scipy.sparse import csc_array, diags_array
        from scipy.sparse.linalg import splu

        number = np.pad(self.number.reshape(self.shape), 1, constant_values=-1)
        here = number[1:-1, 1:-1]
        inner = here >= self.edge
        around = [number[:-2, 1:-1], number[2:, 1:-1], number[1:-1, :-2], number[1:-1, 2:]]
        rows = np.concatenate([here[inner] - self.edge] * 4)
        columns = np.concatenate([one[inner] for one in around])
        shape = (self.inner, self.nodes)
        neighbours = csc_array((np.full(rows.size, 1 / self.h**2), (rows, columns)), shape=shape)
        A = diags_array(np.full(self.inner, 4 / self.h**2)) - neighbours[:, self.edge :]
        factors = splu(csc_array(A), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        return factors, neighbours[:, : self.edge]

    def laplace(self, border: np.ndarray) -> np.ndarray:
        """(nodes, p): Δu = 0 inside with the values (edge, p) on the border."""
        factors, reads = self._solver
        return np.concatenate([border, factors.solve(np.asarray(reads @ border))])

    def poisson(self, right: np.ndarray) -> np.ndarray:
        """(nodes, p): −Δu = right (inner, p) inside, and u = 0 on the border."""
        return np.concatenate([np.zeros((self.edge, right.shape[1])), self._solver[0].solve(right)])

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """The film's node in whose square each point lies; −1 where it is none."""
        cell = np.floor((points - self.low) / self.h + 0.5)
        near = ((cell >= 0) & (cell < self.shape)).all(axis=1)
        out = np.full(len(points), -1)
        i, j = cell[near].astype(int).T
        out[near] = self.number[i * self.shape[1] + j]
        return out

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether each point lies in the region; only points near the boundary need the polygon."""
        node = self.nearest(points)
        inside = node >= self.edge
        doubtful = np.flatnonzero((node >= 0) & ~inside)
        inside[doubtful] = self._contains(points[doubtful])
        return inside

    def interpolated(self, values: np.ndarray, points: np.ndarray) -> np.ndarray:
        """(n, p): functions with the `values` (nodes, p), bilinear between the nodes; nan outside the region.

        Corners outside the film are left out and the weights of the others made to sum to one; the nearest corner of a
        point inside never is.
        """
        size = values.shape[1]
        return chunked(points, size, max(64, _ROWS // max(size, 1)), lambda some: self._rows(values, some))

    def _rows(self, values: np.ndarray, points: np.ndarray) -> np.ndarray:
        out = np.full((len(points), values.shape[1]), np.nan)
        inside = np.flatnonzero(self.contains(points))
        nodes, shares = self._corners(points[inside], least=0)
        out[inside] = sum(share[:, None] * values[node] for node, share in zip(nodes.T, shares.T))
        return out

    def _corners(self, points: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
        """(n, 4) the nodes around each point and their bilinear weights, nodes below number `least` left out."""
        at = (points - self.low) / self.h
        corner = np.clip(np.floor(at).astype(int), 0, np.array(self.shape) - 2)
        t = np.clip(at - corner, 0.0, 1.0)
        around = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])
        places = corner[:, None] + around
        nodes = self.number[places[..., 0] * self.shape[1] + places[..., 1]]
        shares = np.where(around, t[:, None], 1 - t[:, None]).prod(axis=2)
        shares[nodes < least] = 0.0
        return nodes, shares / shares.sum(axis=1, keepdims=True)

    def sources(self, points: np.ndarray) -> np.ndarray:
        """(inner, r): a unit mass at each point, shared among the nodes around it that are inside."""
        nodes, shares = self._corners(points, least=self.edge)
        out = np.zeros((self.inner, len(points)))
        for node, share in zip(nodes.T, shares.T):
            live = np.flatnonzero(share > 0)
            out[node[live] - self.edge, live] += share[live]
        return out


def _nearest(node: np.ndarray, loop: np.ndarray, arc: np.ndarray, gap: np.ndarray) -> Border:
    """One entry for each node: the piece of boundary nearest to it."""
    order = np.lexsort((arc, gap, node))
    first = np.ones(node.size, dtype=bool)
    first[1:] = node[order][1:] != node[order][:-1]
    keep = order[first]
    return Border(node[keep], loop[keep], arc[keep])


def enclosed(loops: Sequence[np.ndarray]):
    """The shapely geometry of what an odd number of loops encloses."""
    import shapely

    region = shapely.Polygon(loops[0])
    for loop in loops[1:]:
        region = shapely.symmetric_difference(region, shapely.Polygon(loop))
    return region
