"""Weights of close pairs for what the border hides: Ripley's isotropic and the translation correction.

A neighbour at distance d of u is seen as often as the circle of radius d around u lies in the window; a pair with the
step v as often as W and W + v overlap. Each weight is 1 over that share, HEAVIEST at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.cached import njit
from ..domains.base import Domain
from .sorting import sort_with

HEAVIEST = 100.0  # the largest weight of a pair, as in spatstat
AT_ONCE = 20_000  # overlaps of polygons


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def outside_rectangle(left, below, right, above, r):
    """The angle of the circle of radius r that is outside a rectangle whose sides are so far from its centre."""
    a = np.arccos(max(left, 0.0) / r) if left < r else 0.0
    b = np.arccos(max(below, 0.0) / r) if below < r else 0.0
    c = np.arccos(max(right, 0.0) / r) if right < r else 0.0
    d = np.arccos(max(above, 0.0) / r) if above < r else 0.0
    # arcs beyond two adjacent sides overlap where the circle holds their corner
    half = 0.5 * np.pi
    overlap = max(a + b - half, 0.0) + max(b + c - half, 0.0) + max(c + d - half, 0.0) + max(d + a - half, 0.0)
    return 2.0 * (a + b + c + d) - overlap


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def rectangle_weight(left, below, right, above, d):
    """1 over the share of the circle of radius d that lies in a rectangle."""
    share = 1.0 - outside_rectangle(left, below, right, above, d) / (2.0 * np.pi)
    return 1.0 / share if share * HEAVIEST > 1.0 else HEAVIEST


@njit(cache=True, nogil=True, error_model="numpy")
def _inside(px, py, edges):
    odd = False
    for e in range(len(edges)):
        ax, ay, bx, by = edges[e, 0, 0], edges[e, 0, 1], edges[e, 1, 0], edges[e, 1, 1]
        if (ay > py) != (by > py) and px < (bx - ax) * (py - ay) / (by - ay) + ax:
            odd = not odd
    return odd


@njit(cache=True, nogil=True, error_model="numpy")
def outside_polygon(px, py, r, edges, scratch):
    """The angle of the circle of radius r around p that is outside a polygon with the given edges."""
    m = 0
    for e in range(len(edges)):
        ax, ay = edges[e, 0, 0] - px, edges[e, 0, 1] - py
        dx, dy = edges[e, 1, 0] - px - ax, edges[e, 1, 1] - py - ay
        a, b, c = dx * dx + dy * dy, ax * dx + ay * dy, ax * ax + ay * ay - r * r
        disc = b * b - a * c
        if disc <= 0.0:
            continue
        root = np.sqrt(disc)
        for sign in (-1.0, 1.0):
            t = (-b + sign * root) / a
            if 0.0 <= t <= 1.0:
                scratch[m] = np.arctan2(ay + t * dy, ax + t * dx)
                m += 1
    if m == 0:
        return 0.0 if _inside(px + r, py, edges) else 2.0 * np.pi
    sort_with(scratch, scratch, m)
    total = 0.0
    for k in range(m):
        begin = scratch[k]
        end = scratch[k + 1] if k + 1 < m else scratch[0] + 2.0 * np.pi
        mid = 0.5 * (begin + end)
        if end > begin and not _inside(px + r * np.cos(mid), py + r * np.sin(mid), edges):
            total += end - begin
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def polygon_weight(px, py, d, edges, scratch):
    """1 over the share of the circle of radius d around p that lies in a polygon."""
    share = 1.0 - outside_polygon(px, py, d, edges, scratch) / (2.0 * np.pi)
    return 1.0 / share if share * HEAVIEST > 1.0 else HEAVIEST


@njit(cache=True, nogil=True, error_model="numpy")
def _circle_weights(xy, d, gap, low, high, edges, scratch, out):
    for k in range(len(d)):
        if d[k] > gap[k]:
            px, py = xy[k, 0], xy[k, 1]
            if edges is None:
                out[k] = rectangle_weight(px - low[0], py - low[1], high[0] - px, high[1] - py, d[k])
            else:
                out[k] = polygon_weight(px, py, d[k], edges, scratch)


def isotropic(xy: np.ndarray, d: np.ndarray, window: Domain) -> np.ndarray:
    """(P,) 1 over the share of the circle of radius d around each place that lies in the window."""
    from .places import border_distance

    assert window.enclosing_box is not None
    assert window.edges is not None
    low, high = (np.asarray(one, dtype=np.float64) for one in window.enclosing_box)
    gap, out = border_distance(xy, window), np.ones(len(d))
    edges = None if window.sides is not None else np.array(window.edges)  # what reads a polygon's is not compiled then
    scratch = None if edges is None else np.empty(2 * len(edges) + 2)
    _circle_weights(np.ascontiguousarray(xy), d, gap, low, high, edges, scratch, out)
    return out


def translation(step: np.ndarray, window: Domain) -> np.ndarray:
    """(P,) |W|/|W ∩ (W + v)| for steps v."""
    if window.sides is not None:
        low, high = window.sides
        share = np.prod(1.0 - np.abs(step) / (high - low), axis=1)
    else:
        share = overlap(step, window) / window.volume
    return 1.0 / np.maximum(share, 1.0 / HEAVIEST)


def overlap(step: np.ndarray, window: Domain) -> np.ndarray:
    """(P,) the area of W ∩ (W + v), exact, for a polygon."""
    import shapely

    polygon = _polygon(window)
    corners = shapely.get_coordinates(polygon)
    out = np.empty(len(step))
    for first in range(0, len(step), AT_ONCE):
        v = step[first : first + AT_ONCE]
        moved = shapely.set_coordinates(
            np.array([polygon] * len(v), dtype=object), (corners[None] + v[:, None]).reshape(-1, 2)
        )
        out[first : first + AT_ONCE] = shapely.area(shapely.intersection(polygon, moved))
    return out


def _polygon(window: Domain) -> Any:
    """The window as a shapely geometry: those of the faces between its edges that belong to it."""
    import shapely

    assert window.edges is not None
    faces = shapely.get_parts(shapely.polygonize(list(map(shapely.LineString, window.edges))))
    inside = window.contains(shapely.get_coordinates(shapely.point_on_surface(faces)))
    return shapely.union_all(faces[inside])


def weights(
    how: str, xy: np.ndarray, step: np.ndarray, d: np.ndarray, replicate: np.ndarray, windows: Sequence[Domain]
) -> np.ndarray:
    """(P,) weights of pairs at places xy, in the windows of their replicates."""
    out = np.ones(len(d))
    for code, window in enumerate(windows):
        here = replicate == code
        if here.any():
            out[here] = isotropic(xy[here], d[here], window) if how == "isotropic" else translation(step[here], window)
    return out
