"""Rules for integrands with a kink at a point x of their own, as a chain's density given its previous point.

A function of step length and direction has a peak or a dip and no derivative at y = x, where the angle has no value
either: a rule that does not know x misses it (on the OSIE scanpaths the 40 × 40 Gauss rule is off by 0.05 in log Z).
Here Ω is cut into triangles with a corner at x, in Duffy's coordinates y = x + ρ [(1 − τ) u + τ v]: the angle depends
on τ alone and the step is ρ times a smooth function of τ (Duffy 1982, SIAM J. Numer. Anal. 19), with nodes in ρ = s²
that crowd towards x. What does not reach x is cut until it is as far away as it is large, and is smooth there.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from ._rules import gauss_cone, gauss_legendre

Rules = tuple[np.ndarray, np.ndarray, np.ndarray]  # points (M, d), weights (M,), which centre (M,), ascending
DEEPEST = 8  # halvings of a triangle that comes near x: what is left is 1/256 of its size
SECTORS = 4  # of a triangle around x, so that none is wider than 45°
_SPARE = 2
TINY = 1e-9  # of a side: a triangle so thin has no area to speak of


def nodes(order: int) -> tuple[int, int]:
    """Nodes along ρ and τ: a box has eight triangles, and as many nodes in all as a tensor rule of this order."""
    return max(3, -(-order // 2)), max(3, -(-order // 5))


@lru_cache(maxsize=16)
def corner(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(1 − τ)ρ, τρ and weights over the unit right triangle with its corner at the origin (area ½)."""
    radial, angular = nodes(order)
    (s, ws), (t, wt) = gauss_legendre(radial), gauss_legendre(angular)
    rho = s**2
    weight = np.outer(2.0 * s * ws * rho, wt).ravel()
    return np.outer(rho, 1.0 - t).ravel(), np.outer(rho, t).ravel(), weight


def split_interval(lower: float, upper: float, centres: np.ndarray, order: int) -> Rules:
    """[a, x] and [x, b] apart, nodes at distances ρ = s² from x."""
    root, w = gauss_legendre(max(3, -(-order // 2)))
    s, w = root**2, 2.0 * root * w
    x = np.clip(centres[:, :1], lower, upper)
    left, right = x - lower, upper - x
    points = np.concatenate([(x - left * s)[:, ::-1], x + right * s], axis=1)
    weights = np.concatenate([left * w[::-1], right * w], axis=1)
    return np.clip(points, lower, upper).reshape(-1, 1), weights.ravel(), np.repeat(np.arange(len(x)), points.shape[1])


def split_box(lower: np.ndarray, upper: np.ndarray, centres: np.ndarray, order: int) -> Rules:
    """The box cut at x into four, each along the diagonal through x.

    A triangle at distance a of its far side, which is b long, has its nodes along it at τ = sinh(w t)/sinh(w), sinh w =
    b/a: even steps of t are even in the angle close to x and even in log τ beyond, so that a previous point near the
    border of Ω is no harder than others (Johnston & Elliott 2005, Int. J. Numer. Methods Eng. 62).
    """
    x = np.clip(centres, lower, upper)
    radial, angular = nodes(order)
    (s, ws), (t, wt) = gauss_legendre(radial), gauss_legendre(angular)
    rho, along = s**2, 2.0 * s * ws * s**2
    signs = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
    room = np.where(signs > 0, (upper - x)[:, None], (x - lower)[:, None])  # (c, 4, 2)
    points = np.empty((len(x), 4, 2, radial, angular, 2))
    weights = np.empty(points.shape[:-1])
    for far in range(2):  # the coordinate that is `room` away on the far side; the other runs along it
        near = 1 - far
        w = np.arcsinh(room[:, :, near] / np.maximum(room[:, :, far], TINY * (room[:, :, near] + TINY)))[:, :, None]
        w = np.maximum(w, TINY)
        tau = np.sinh(w * t) / np.sinh(w)  # (c, 4, angular)
        edge = wt * np.cosh(w * t)
        edge *= (room.prod(axis=2) / edge.sum(axis=2))[:, :, None]  # so that areas are exact
        weights[:, :, far] = along[:, None] * edge[:, :, None, :]
        for k, share in ((far, np.ones_like(tau)), (near, tau)):
            at = rho[:, None] * ((signs[:, k] * room[:, :, k])[:, :, None] * share)[:, :, None, :]
            at += x[:, k, None, None, None]
            np.clip(at, lower[k], upper[k], out=points[:, :, far, :, :, k])
    count, points = weights[0].size, points.reshape(-1, 2)
    return points, weights.ravel(), np.repeat(np.arange(len(x)), count)


def split_triangles(triangles: np.ndarray, diameter: float, centres: np.ndarray, order: int) -> Rules:
    """A union of triangles (T, 3, 2): the one around x cut at x, those near it cut until they are not near."""
    c = len(centres)
    of = np.repeat(np.arange(c), len(triangles))
    T = np.tile(triangles, (c, 1, 1))
    around = _inside(T, centres[of])
    x = centres[of[around]]
    pieces = [piece for i in range(3) for piece in _sectors(x, T[around][:, i] - x, T[around][:, (i + 1) % 3] - x)]
    parts = [_corners(piece, of[around], order) for piece in pieces]
    T, of = T[~around], of[~around]
    for depth in range(DEEPEST + 1):
        size = _longest(T)
        far = (_distance(T, centres[of]) >= size) | (depth == DEEPEST)
        parts.append(_smooth(T[far], of[far], size[far], _distance(T[far], centres[of[far]]), diameter, order))
        T, of = _quarters(T[~far]), np.repeat(of[~far], 4)
        if not len(of):
            break
    points, weights, of = (np.concatenate(columns) for columns in zip(*parts))
    sort = np.argsort(of, kind="stable")
    return points[sort], weights[sort], of[sort]


def _sectors(x: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """The triangle (x, x + u, x + v) as SECTORS triangles, of equal angle at x."""
    angle = np.abs(np.arctan2(cross(u, v), np.sum(u * v, axis=1)))
    cuts = []
    for j in range(SECTORS + 1):
        a = np.hypot(*u.T) * np.sin(angle * j / SECTORS)
        b = np.hypot(*v.T) * np.sin(angle * (SECTORS - j) / SECTORS)
        with np.errstate(divide="ignore", invalid="ignore"):  # x on the side itself: no area
            t = np.where(a + b > 0, a / (a + b), j / SECTORS)[:, None]
        cuts.append(x + (1.0 - t) * u + t * v)
    return [np.stack([x, first, second], axis=1) for first, second in pairwise(cuts)]


def _corners(T: np.ndarray, of: np.ndarray, order: int) -> Rules:
    """Triangles whose first corner is x."""
    first, second, weight = corner(order)
    u, v = T[:, 1] - T[:, 0], T[:, 2] - T[:, 0]
    points = T[:, None, 0] + first[:, None] * u[:, None] + second[:, None] * v[:, None]
    weights = np.abs(cross(u, v))[:, None] * weight
    return points.reshape(-1, 2), weights.ravel(), np.repeat(of, weight.size)


def _smooth(
    T: np.ndarray, of: np.ndarray, size: np.ndarray, distance: np.ndarray, diameter: float, order: int
) -> Rules:
    """Triangles away from x, by conical products; nodes by their size in Ω and as seen from x."""
    across = np.maximum(order * size / diameter, (order / 8) * np.minimum(size / np.maximum(distance, 1e-300), 1.0))
    count = _SPARE + np.ceil(across * (1 - 1e-12)).astype(int)
    points, weights, owner = [np.empty((0, 2))], [np.empty(0)], [np.empty(0, dtype=int)]
    for p in np.unique(count):
        some = count == p
        (s, ws), (t, wt) = gauss_cone(int(p)), gauss_legendre(int(p))
        a, u, v = T[some, 0], T[some, 1] - T[some, 0], T[some, 2] - T[some, 0]
        first, second = np.outer(s, 1.0 - t).ravel(), np.outer(s, t).ravel()
        points.append((a[:, None] + first[:, None] * u[:, None] + second[:, None] * v[:, None]).reshape(-1, 2))
        weights.append((np.abs(cross(u, v))[:, None] * np.outer(ws, wt).ravel()).ravel())
        owner.append(np.repeat(of[some], p * p))
    return np.concatenate(points), np.concatenate(weights), np.concatenate(owner)


def _quarters(T: np.ndarray) -> np.ndarray:
    """Each triangle as four, at the middles of its sides."""
    a, b, c = T.swapaxes(0, 1)
    ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
    four = [np.stack(corners, axis=1) for corners in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
    return np.stack(four, axis=1).reshape(-1, 3, 2)


def cross(v: np.ndarray, w: np.ndarray) -> np.ndarray:
    """v₁w₂ − v₂w₁ of each row: twice the signed area of the triangle (0, v, w)."""
    return v[:, 0] * w[:, 1] - v[:, 1] * w[:, 0]


def _longest(T: np.ndarray) -> np.ndarray:
    return np.sqrt(((T - T[:, [1, 2, 0]]) ** 2).sum(axis=2)).max(axis=1)


def _inside(T: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Whether x lies in the triangle or on its boundary."""
    turns = np.stack([cross(T[:, (i + 1) % 3] - T[:, i], x - T[:, i]) for i in range(3)], axis=1)
    return np.all(turns >= 0, axis=1) | np.all(turns <= 0, axis=1)


def _distance(T: np.ndarray, x: np.ndarray) -> np.ndarray:
    """From x to the triangle's nearest side."""
    out = np.full(len(T), np.inf)
    for i in range(3):
        a, side = T[:, i], T[:, (i + 1) % 3] - T[:, i]
        along = np.sum((x - a) * side, axis=1) / np.maximum(np.sum(side**2, axis=1), 1e-300)
        foot = a + np.clip(along, 0.0, 1.0)[:, None] * side
        out = np.minimum(out, np.hypot(*(x - foot).T))
    return out
