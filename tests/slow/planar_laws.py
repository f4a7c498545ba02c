"""Planar chains whose f reads maps and columns of the context, drawn exactly by rejection from the uniform law.

- `images`: −6 |y − x| + saliency(y), with a map of its own for each of 20 images;
- `night`: −6 |y − x| + .5 forest(y) + 1.2 night forest(y): a column of the context that enters by interaction;
- `short`: −60 r + forest(y), r² = |y − x|² + .02², rounded off for Exact's rule: steps of 1/20 of the window, near
  which few uniform points fall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

import unnorm as un

AXIS = np.linspace(0.0, 1.0, 13)
SEQUENCES, STEPS = 20, 12
TRIES = 400  # candidates at a time
SQUARE = un.Box((0, 1), (0, 1))


def _bumps(seed: int) -> np.ndarray:
    """(13, 13) a map with three bumps, of mean 0 and sd 1."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(AXIS, AXIS)
    z = sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.03) for a, b in rng.random((3, 2)))
    return (z - z.mean()) / z.std()


MAPS = np.array([_bumps(seed) for seed in range(SEQUENCES)])


def interpolated(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bilinear: z (…, 13, 13) on AXIS at y (…, N, 2)."""
    at = y * (len(AXIS) - 1)
    low = np.clip(np.floor(at).astype(int), 0, len(AXIS) - 2)
    u, v = np.moveaxis(at - low, -1, 0)
    i, j = low[..., 0], low[..., 1]
    which = np.arange(len(z))[:, None]
    return (
        (1 - u) * (1 - v) * z[which, j, i]
        + u * (1 - v) * z[which, j, i + 1]
        + (1 - u) * v * z[which, j + 1, i]
        + u * v * z[which, j + 1, i + 1]
    )


@final
@dataclass(frozen=True, eq=False)
class PlanarLaw:
    """f = θ₁ step + Σ θ_j s_j, the sum over maps and their products with a column of the context."""

    name: str
    terms: str
    names: tuple[str, ...]
    theta: tuple[float, ...]
    covariates: tuple[Any, ...]
    seen: Callable[[np.ndarray], np.ndarray]  # night (SEQUENCES,) → the map that f adds, (SEQUENCES, 13, 13)
    order: int = 40  # of Exact
    soft: float = 0.0  # r² = |y − x|² + soft²
    extra: str | None = None  # the column of the context that f reads

    @property
    def truth(self) -> np.ndarray:
        return np.array(self.theta)

    @cached_property
    def model(self) -> un.Additive:
        return un.Additive(self.terms, SQUARE, covariates=list(self.covariates))

    def simulate(self, rng: np.random.Generator) -> un.Observations:
        """SEQUENCES chains of STEPS steps each, the first point uniform; half of the steps at night."""
        rate = -self.theta[0]
        at = rng.random((SEQUENCES, 2))
        rows = [at]
        nights = [np.zeros(SEQUENCES)]
        for _ in range(STEPS):
            night = (rng.random(SEQUENCES) < 0.5).astype(float)
            z = self.seen(night)
            at = self._step(rng, at, rate, z, self.soft)
            rows.append(at)
            nights.append(night)
        path = np.stack(rows, axis=1)  # (SEQUENCES, STEPS + 1, 2)
        table = {
            "x": path[..., 0].ravel(),
            "y": path[..., 1].ravel(),
            "image": np.repeat(np.arange(SEQUENCES), STEPS + 1),
            "fix": np.tile(np.arange(STEPS + 1), SEQUENCES),
            "night": np.stack(nights, axis=1).ravel(),
        }
        return un.transitions(table, y=("x", "y"), order="fix", group="image", extra=self.extra)

    @staticmethod
    def _step(rng: np.random.Generator, x: np.ndarray, rate: float, z: np.ndarray, soft: float) -> np.ndarray:
        """One y for each row of x: steps of rate r e^{−rate r} in all directions, kept in Ω, thinned by the map."""
        out, left = np.empty_like(x), np.arange(len(x))
        top = z.max(axis=(1, 2))  # bilinear interpolation is largest at a node
        while left.size:
            r, phi = rng.gamma(2.0, 1 / rate, (left.size, TRIES)), rng.uniform(0, 2 * np.pi, (left.size, TRIES))
            y = x[left, None] + np.stack([r * np.cos(phi), r * np.sin(phi)], axis=-1)
            inside = np.all((y >= 0) & (y <= 1), axis=-1)
            log_p = interpolated(z[left], np.clip(y, 0, 1)) - top[left, None] - rate * (np.hypot(r, soft) - r)
            taken = inside & (np.log(rng.random(inside.shape)) < log_p)
            done = taken.any(axis=1)
            out[left[done]] = y[done, np.argmax(taken[done], axis=1)]
            left = left[~done]
        return out


def _map(name: str, values: Any, key: str | None = None) -> un.Map:
    return un.Map(name, values, AXIS, AXIS, key=key)


FOREST = MAPS[0]
PLANAR: Mapping[str, PlanarLaw] = {
    law.name: law
    for law in (
        PlanarLaw(
            "images",
            "step + saliency",
            ("step", "saliency"),
            (-6.0, 1.0),
            (_map("saliency", dict(enumerate(MAPS)), "image"),),
            lambda night: MAPS,
        ),
        PlanarLaw(
            "night",
            "step + forest + dark",
            ("step", "forest", "dark"),
            (-6.0, 0.5, 1.2),
            (_map("forest", FOREST), un.Expression("dark", "night * forest")),
            lambda night: (0.5 + 1.2 * night)[:, None, None] * FOREST,
            extra="night",
        ),
        PlanarLaw(
            "short",
            "r + forest",
            ("r", "forest"),
            (-60.0, 1.0),
            (_map("forest", FOREST), un.Expression("r", "sqrt(step**2 + 0.0004)")),
            lambda night: np.broadcast_to(FOREST, MAPS.shape),
            order=60,
            soft=0.02,
        ),
    )
}
