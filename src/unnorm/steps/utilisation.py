"""Where an animal that moves by the fitted model spends its time: the chain's stationary law on a grid, by simulation.

The redistribution kernel p(y|x) has a stationary law, but none in closed form: many tracks are simulated side by side,
their first steps left out, and their points counted in cells. Tracks are independent, so that the spread of their
counts gives the Monte Carlo error of every cell; and the two halves of each track agree where they are long enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from ..errors import InputError
from ..results.planar import box_around

CELLS = 60  # along the longer side


@final
@dataclass(frozen=True, eq=False)
class Utilisation:
    """Probabilities of cells (ny, nx) on centres x, y; they sum to one."""

    x: np.ndarray
    y: np.ndarray
    probability: np.ndarray
    se: np.ndarray  # Monte Carlo, from the spread between tracks
    settled: float  # correlation of the first and second half of the tracks, as maps
    backend: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        size = f"{len(self.x)} × {len(self.y)} cells"
        return f"Utilisation({size}, Monte Carlo error {self.error:.2g}, halves agree to {self.settled:.3f})"

    @property
    def error(self) -> float:
        """Half the expected sum of absolute errors: total variation by which the map may be off."""
        return float(0.5 * np.sqrt(2.0 / np.pi) * self.se.sum())

    def tidy(self) -> Any:
        """A table: x, y, probability, se."""
        gx, gy = np.meshgrid(self.x, self.y)
        columns = {"x": gx.ravel(), "y": gy.ravel(), "probability": self.probability.ravel(), "se": self.se.ravel()}
        return to_native(columns, self.backend)

    def plot(self, ax: Any = None) -> Any:
        """The map; returns the Axes."""
        from .plots import utilisation

        return utilisation(self, ax)


def counted(domain: Any, tracks: np.ndarray, cell: float | None, backend: Any) -> Utilisation:
    """The map from tracks (chains, steps, 2)."""
    lower, upper = box_around(domain)
    side = float((upper - lower).max()) / CELLS if cell is None else float(cell)
    if not side > 0.0:
        raise InputError(f"cell must be a positive length; got {cell!r}.")
    nx, ny = (max(1, int(np.ceil(width / side - 1e-9))) for width in upper - lower)
    chains, steps, _ = tracks.shape
    i = np.clip(((tracks - lower) / side).astype(int), 0, [nx - 1, ny - 1])
    flat = i[..., 1] * nx + i[..., 0]
    each = np.stack([np.bincount(one, minlength=nx * ny) for one in flat]) / steps
    half = steps // 2
    ends = [np.bincount(part.ravel(), minlength=nx * ny) for part in (flat[:, :half], flat[:, half:])]
    settled = float(np.corrcoef(*ends)[0, 1]) if half else float("nan")
    x, y = (lower[j] + side * (np.arange(n) + 0.5) for j, n in enumerate((nx, ny)))
    se = each.std(axis=0, ddof=1) / np.sqrt(chains) if chains > 1 else np.full(nx * ny, np.nan)
    return Utilisation(x, y, each.mean(axis=0).reshape(ny, nx), se.reshape(ny, nx), settled, backend)
