"""From a grid of contexts to the observations' own: cubic splines through the values on the grid, axis by axis.

On the cell [a_i, a_{i+1}] of width h, with s and t the shares of the two ends (s + t = 1), a cubic spline is

    s f_i + t f_{i+1} + h²/6 [(s³ − s) m_i + (t³ − t) m_{i+1}],

m = F f its second derivatives at the points of the axis, here those of the spline without a knot at the second and the
last but one of them (de Boor 1978, ch. IV). Its error is about a ninth of that of the cubic through the four nearest
points, so that a grid in the plane needs a third of the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse


def spaced(x: np.ndarray, points: int) -> np.ndarray:
    """An axis over the range of x: half of its points crowd to the ends, a quarter is even, a quarter where x has its
    values.

    log Z bends most where Ω ends, and its second derivative has no limit there: on OSIE 18 points of such an axis are
    as good as 33 of one that is even and follows the values.
    """
    values = np.unique(x)
    if len(values) == 1:
        return values[0] + np.linspace(0.0, 1.0, points)
    even = (values - values[0]) / (values[-1] - values[0])
    ends = np.arccos(np.clip(1.0 - 2.0 * even, -1.0, 1.0)) / np.pi
    level = 0.5 * ends + 0.25 * even + 0.25 * np.linspace(0.0, 1.0, len(values))
    return np.interp(np.linspace(0.0, 1.0, points), level, values)


def curvatures(axis: np.ndarray) -> np.ndarray:
    """F (G, G): the second derivatives at the points of the axis, of the spline through values there."""
    h, size = np.diff(axis), len(axis)
    A, R, inner = np.zeros((size, size)), np.zeros((size, size)), np.arange(1, size - 1)
    A[inner, inner - 1], A[inner, inner], A[inner, inner + 1] = h[:-1], 2 * (h[:-1] + h[1:]), h[1:]
    R[inner, inner - 1], R[inner, inner + 1] = 6 / h[:-1], 6 / h[1:]
    R[inner, inner] = -6 / h[:-1] - 6 / h[1:]
    A[0, :3] = h[1], -h[0] - h[1], h[0]  # the third derivative does not jump at the second point, …
    A[-1, -3:] = h[-1], -h[-1] - h[-2], h[-2]  # nor at the last but one
    return np.linalg.solve(A, R)


def cell_weights(x: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first point of each x's cell (n,), and the weights (n, 4) of f_i, f_{i+1}, m_i, m_{i+1}."""
    first = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
    h = axis[first + 1] - axis[first]
    t = (x - axis[first]) / h
    s = 1.0 - t
    return first, np.stack([s, t, (s**3 - s) * h**2 / 6, (t**3 - t) * h**2 / 6], axis=1)


@final
@dataclass(frozen=True)
class Between:
    """`between @ values`: from the grid (G^d, …), the last axis fastest, to the observations (n, …)."""

    local: sparse.csr_array  # (n, (2G)^d) on values and second derivatives
    turns: tuple[np.ndarray, ...]  # (2G, G) of each axis: [1; F]

    def __matmul__(self, values: np.ndarray) -> np.ndarray:
        out = values.reshape(*(turn.shape[1] for turn in self.turns), -1)
        for k, turn in enumerate(self.turns):
            out = np.moveaxis(np.tensordot(turn, out, (1, k)), 0, k)
        sides = int(np.prod([len(turn) for turn in self.turns]))
        found = self.local @ np.ascontiguousarray(out).reshape(sides, -1)
        return found.reshape(len(found), *values.shape[1:])


def spline_between(columns: Sequence[np.ndarray], axes: Sequence[np.ndarray]) -> Between:
    """The tensor product of the axes' splines, at the rows of the columns."""
    from scipy import sparse

    n = len(columns[0])
    at, values = np.zeros((n, 1), dtype=int), np.ones((n, 1))
    for x, axis in zip(columns, axes):
        first, w = cell_weights(x, axis)
        here = first[:, None] + np.array([0, 1, len(axis), len(axis) + 1])
        at = (at[:, :, None] * (2 * len(axis)) + here[:, None, :]).reshape(n, -1)
        values = (values[:, :, None] * w[:, None, :]).reshape(n, -1)
    each, size = at.shape[1], int(np.prod([2 * len(axis) for axis in axes]))
    local = sparse.csr_array((values.ravel(), at.ravel(), np.arange(0, n * each + 1, each)), shape=(n, size))
    return Between(local, tuple(np.concatenate([np.eye(len(axis)), curvatures(axis)]) for axis in axes))


@final
@dataclass(frozen=True)
class Pieces:
    """Several grids one after the other, each for some of the observations."""

    parts: tuple[tuple[np.ndarray, int, Between | None], ...]  # observations, points, the way; None: at each its own

    def __matmul__(self, values: np.ndarray) -> np.ndarray:
        out, begin = np.empty((sum(len(rows) for rows, _, _ in self.parts), *values.shape[1:])), 0
        for rows, points, way in self.parts:
            here = values[begin : begin + points]
            out[rows] = here if way is None else way @ here
            begin += points
        return out
