"""Places in windows, each with the code of its mark and of its replicate; distances to borders, and close pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ..domains.base import Domain


@final
@dataclass(frozen=True, eq=False)
class Places:
    """N points u of the plane, with codes of their marks and replicates."""

    xy: np.ndarray  # (N, 2)
    mark: np.ndarray  # (N,) int, 0 where there are no marks
    replicate: np.ndarray  # (N,) int, 0 where there is one pattern

    @property
    def n(self) -> int:
        return len(self.xy)

    def take(self, which: np.ndarray | slice) -> Places:
        """Some of them."""
        return Places(self.xy[which], self.mark[which], self.replicate[which])

    @classmethod
    def of(cls, xy: np.ndarray, mark: np.ndarray | int = 0, replicate: np.ndarray | int = 0) -> Places:
        """Places with codes given one by one, or one for all."""
        xy = np.ascontiguousarray(xy, dtype=np.float64).reshape(-1, 2)
        codes = [np.array(np.broadcast_to(code, len(xy)), dtype=np.int64) for code in (mark, replicate)]
        return cls(xy, *codes)

    @classmethod
    def joined(cls, parts: Sequence[Places]) -> Places:
        """One after the other."""
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("xy", "mark", "replicate")))


@final
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs (a, b) of a row u_a and a point x_b of the same replicate at distance d, sorted by a and then b."""

    a: np.ndarray
    b: np.ndarray
    d: np.ndarray

    def within(self, r: float) -> Pairs:
        """Those at distance r or less."""
        near = self.d <= r
        return Pairs(self.a[near], self.b[near], self.d[near])

    def less(self, own: np.ndarray) -> Pairs:
        """Without the pairs of a row with the point that it is: own[a] = b."""
        other = own[self.a] != self.b
        return Pairs(self.a[other], self.b[other], self.d[other])

    def reverse(self) -> np.ndarray:
        """Of pairs among the same points: where the pair (b, a) stands."""
        return np.lexsort((self.a, self.b))

    def starts(self, n: int) -> np.ndarray:
        """(n + 1,) where the pairs of each row begin."""
        return np.searchsorted(self.a, np.arange(n + 1))


def close_pairs(u: Places, x: Places, r: float, period: np.ndarray | None = None) -> Pairs:
    """All pairs at distance r or less, found by trees; `period`: side lengths of a rectangle whose sides are joined."""
    from scipy.spatial import KDTree

    if not (u.n and x.n):
        nothing = np.zeros(0, dtype=np.int64)
        return Pairs(nothing, nothing, np.zeros(0))
    reach = r * (1 + 1e-9)  # a little more than r, and then r itself on distances computed in one way
    low = np.minimum(u.xy.min(axis=0), x.xy.min(axis=0))
    high = np.maximum(u.xy.max(axis=0), x.xy.max(axis=0))
    reach = min(reach, 2 * float(np.hypot(*(high - low))) + 1.0)
    apart = 3.0 * reach + 1.0  # replicates lie in different layers, too far apart to meet
    box = None if period is None else np.array([*period, 0.0])

    def tree(one: Places) -> KDTree:
        xy = one.xy if period is None else (one.xy - low) % period
        return KDTree(np.column_stack([xy, apart * one.replicate]), boxsize=box)

    found = tree(u).sparse_distance_matrix(tree(x), reach, output_type="ndarray")
    a, b = found["i"].astype(np.int64), found["j"].astype(np.int64)
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    step = u.xy[a] - x.xy[b]
    if period is not None:
        step -= period * np.round(step / period)
    squared = step[:, 0] ** 2 + step[:, 1] ** 2
    near = squared <= r * r
    return Pairs(a[near], b[near], np.sqrt(squared[near]))


def border_distance(xy: np.ndarray, window: Domain) -> np.ndarray:
    """(N,) distance of points inside a window to its border, holes included."""
    if window.sides is not None:  # exact to the last digit, as coordinates on a grid need it
        low, high = window.sides
        return np.minimum(xy - low, high - xy).min(axis=1)
    import shapely

    assert window.edges is not None
    border = shapely.MultiLineString(list(window.edges))
    shapely.prepare(border)
    return np.asarray(shapely.distance(border, shapely.points(xy)))


def borders(places: Places, windows: Sequence[Domain]) -> np.ndarray:
    """(N,) distance of each place to the border of its replicate's window."""
    out = np.empty(places.n)
    for code, window in enumerate(windows):
        here = places.replicate == code
        out[here] = border_distance(places.xy[here], window)
    return out
