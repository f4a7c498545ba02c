"""A polygon cut into vertical slabs at its vertices: a measure-preserving map from the unit square, and triangles.

Between two neighbouring vertex abscissae the polygon is a stack of trapezoids whose sides are pieces of its edges. The
map takes u₁ to the abscissa by the inverse of the area to its left (the width is linear within a slab, so the area is
quadratic) and u₂ to a height by the inverse of the length below it: the conditional transform of Rosenblatt (1952).
It is affine on a rectangle and continuous wherever the cross-section is, so a lattice or a Sobol net stays one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Slabs:
    """M slabs with the trapezoids of each, from below to above."""

    x: np.ndarray  # (M + 1,) abscissae of the cuts
    first: np.ndarray  # (M + 1,) the trapezoids of slab k are first[k] … first[k+1] − 1
    low: np.ndarray  # (T, 2) height of the lower side at the left and right end of the slab
    high: np.ndarray  # (T, 2) the same of the upper side
    width: np.ndarray  # (M, 2) total length of the cross-section at the left and right end
    area: np.ndarray  # (M,)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """(n, 2) points of the unit square → (n, 2) points of the polygon."""
        edges = np.cumsum(self.area)
        target = u[:, 0] * edges[-1]
        k = np.searchsorted(edges[:-1], target, side="right")
        r = np.clip(target - (edges[k] - self.area[k]), 0.0, self.area[k])
        step = self.x[k + 1] - self.x[k]
        w0, w1 = self.width[k].T
        with np.errstate(divide="ignore", invalid="ignore"):
            # the root in [0, 1] of step·(w0 s + ½(w1 − w0) s²) = r, in the form that does not cancel
            s = 2.0 * (r / step) / (w0 + np.sqrt(np.maximum(w0**2 + 2.0 * (w1 - w0) * (r / step), 0.0)))
        s = np.clip(np.where(np.isfinite(s), s, 0.0), 0.0, 1.0)
        rest = u[:, 1] * (w0 + (w1 - w0) * s)
        y = np.empty(len(u))
        at, left = self.first[k].copy(), np.arange(len(u))
        while left.size:
            low = _between(self.low, at[left], s[left])
            length = _between(self.high, at[left], s[left]) - low
            here = (rest[left] <= length) | (at[left] + 1 == self.first[k[left] + 1])
            y[left[here]] = low[here] + np.minimum(rest[left][here], length[here])
            rest[left] -= length
            at[left] += 1
            left = left[~here]
        return np.column_stack([self.x[k] + step * s, y])

    def triangles(self) -> np.ndarray:
        """(T', 3, 2): every trapezoid cut along a diagonal."""
        k = np.repeat(np.arange(len(self.area)), np.diff(self.first))
        x0, x1 = self.x[k], self.x[k + 1]
        a, b = np.column_stack([x0, self.low[:, 0]]), np.column_stack([x1, self.low[:, 1]])
        c, d = np.column_stack([x1, self.high[:, 1]]), np.column_stack([x0, self.high[:, 0]])
        return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def _between(side: np.ndarray, at: np.ndarray, s: np.ndarray) -> np.ndarray:
    return side[at, 0] + (side[at, 1] - side[at, 0]) * s


def slabs(rings: list[np.ndarray]) -> Slabs:
    """The slabs of the polygon whose boundary is the given closed rings (exteriors and holes alike: even–odd rule)."""
    edges = np.concatenate([np.stack([ring[:-1], ring[1:]], axis=1) for ring in rings])  # (E, 2 ends, 2)
    edges = edges[edges[:, 0, 0] != edges[:, 1, 0]]  # vertical edges bound no trapezoid from below or above
    flip = edges[:, 0, 0] > edges[:, 1, 0]
    edges[flip] = edges[flip, ::-1]
    x = np.unique(np.concatenate([ring[:, 0] for ring in rings]))
    begin, end = np.searchsorted(x, edges[:, 0, 0]), np.searchsorted(x, edges[:, 1, 0])
    spans = end - begin
    e = np.repeat(np.arange(len(edges)), spans)  # one entry per edge and slab that it crosses
    k = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans) + begin[e]
    (xl, yl), (xr, yr) = edges[e, 0].T, edges[e, 1].T

    def height(at: np.ndarray) -> np.ndarray:
        t = (at - xl) / (xr - xl)
        return yl * (1.0 - t) + yr * t  # exact at both ends

    heights = np.column_stack([height(x[k]), height(x[k + 1])])
    order = np.lexsort([heights.sum(axis=1), k])
    low, high, k = heights[order][0::2], heights[order][1::2], k[order][0::2]
    first = np.searchsorted(k, np.arange(len(x)))
    high = np.maximum(low, high)  # sides that meet in a vertex may cross by a rounding error there
    width = np.stack([np.bincount(k, (high - low)[:, end], minlength=len(x) - 1) for end in (0, 1)], axis=1)
    return Slabs(x, first, low, high, width, 0.5 * width.sum(axis=1) * np.diff(x))
