"""Tracks with a known law on a known landscape, drawn here without the library: candidates picked by their weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import unnorm as un

SIDE = 20_000.0
CANDIDATES = 2_000


def wood(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A landscape between 0 and 1 with features of a few steps' width."""
    return 0.5 + 0.25 * np.sin(2 * np.pi * x / 1_900.0) + 0.25 * np.cos(2 * np.pi * (0.6 * x + y) / 2_300.0)


def wood_map(name: str = "forest") -> un.Map:
    """The landscape as a raster of 50 m, which bilinear interpolation follows to 1e-3."""
    axis = np.linspace(0.0, SIDE, 401)
    return un.Map(name, wood(axis[None, :], axis[:, None]), axis, axis)


def walk(
    n: int,
    rng: np.random.Generator,
    f: Callable[..., np.ndarray],
    shape: float = 2.0,
    scale: float = 150.0,
    kappa: float = 0.5,
    mean: float = 0.0,
    side: float = SIDE,
) -> np.ndarray:
    """(n, 2) fixes of p(y|x) ∝ gamma(r) vonmises(turn) exp f(y, x, t), kept within the landscape."""
    points = np.empty((n, 2))
    points[0] = rng.uniform(0.4 * side, 0.6 * side, 2)
    heading = rng.uniform(-np.pi, np.pi)
    for t in range(1, n):
        r = rng.gamma(shape, scale, CANDIDATES)
        phi = heading + rng.vonmises(mean, kappa, CANDIDATES)
        y = points[t - 1] + r[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])
        inside = np.all((y > 0.0) & (y < side), axis=1)
        y, phi = y[inside], phi[inside]
        w = np.exp(f(y, points[t - 1], t))
        pick = rng.choice(len(y), p=w / w.sum())
        points[t], heading = y[pick], phi[pick]
    return points


def fixes(points: np.ndarray, seconds: float = 3600.0, **columns: np.ndarray) -> dict[str, np.ndarray]:
    """The points as a table."""
    return {"t": np.arange(len(points)) * seconds, "x": points[:, 0], "y": points[:, 1], **columns}


def deer_walk(
    n: int = 301, seed: int = 7, beta: float = 2.0, night: float = -1.5, edge: float = 0.0, **laws: float
) -> un.Track:
    """A track that likes the wood by day, at night less, and its `edge` best."""
    dark = (np.arange(n) % 4 >= 2).astype(float)

    def f(y: np.ndarray, before: np.ndarray, t: int) -> np.ndarray:
        here = wood(*y.T)
        return (beta + night * dark[t]) * here - edge * (here - 0.5) ** 2

    points = walk(n, np.random.default_rng(seed), f, **laws)
    return un.track(fixes(points, night=dark), time="t", x="x", y="y", columns=("night",))
