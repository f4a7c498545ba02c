"""Score sums of fresh sets of reference points, at the estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np

KEPT = 4  # sets whose sums are kept: the test of δ and the standard errors both read them


@final
@dataclass(frozen=True)
class Probed:
    """Sums over fresh points, where ℓ' = −w p and −ℓ'' = w p(1 − p) for w copies."""

    total: np.ndarray  # (q,) Σ ℓ' h, over all observations
    by: np.ndarray  # (s, q) Σ_j ℓ' h of some observations
    mass: np.ndarray  # (s, 2) Σ_j ω and Σ_j ω², ω = ℓ'²/−ℓ'' = w p/(1 − p): f/kq of each point
    squares: np.ndarray  # (s, q, q) Σ_j −ℓ'' h hᵀ

    def __add__(self, other: Probed) -> Probed:
        names = ("total", "by", "mass", "squares")
        return Probed(*(getattr(self, name) + getattr(other, name) for name in names))


@final
@dataclass(frozen=True)
class Probe:
    """q functions of a row, h_r = b_{t(r)} − K x_r, of which the test of δ needs sums over fresh points."""

    B: np.ndarray  # (n, q) by observation
    K: np.ndarray  # (q, p)
    some: np.ndarray  # (s,) the observations whose own sums are needed
    squared: bool = True  # whether their squares are, too

    def read(self, slopes: tuple[np.ndarray, np.ndarray], at: np.ndarray, Kx: np.ndarray) -> Probed:
        """From ℓ' and −ℓ'' (N,), zero for the data's rows, the observation (N,) and K x (q, N) of rows."""
        h, (n, q), s = self.B.T[:, at] - Kx, self.B.shape, len(self.some)
        total = h @ slopes[0]
        if s < n:
            place = np.full(n, -1)
            place[self.some] = np.arange(s)
            keep = place[at] >= 0
            slopes, at, h = (slopes[0][keep], slopes[1][keep]), place[at[keep]], h[:, keep]
        slope, curvature = slopes
        by = np.stack([np.bincount(at, slope * row, s) for row in h], axis=1)
        omega = slope**2 / np.maximum(curvature, 1e-300)
        mass = np.stack([np.bincount(at, omega, s), np.bincount(at, omega**2, s)], axis=1)
        squares = np.zeros((s if self.squared else 0, q, q))
        for i in range(q if self.squared else 0):
            for j in range(i + 1):
                squares[:, i, j] = squares[:, j, i] = np.bincount(at, curvature * h[i] * h[j], s)
        return Probed(total, by, mass, squares)


def points_only(slopes: tuple[np.ndarray, np.ndarray], data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ℓ' and −ℓ'' of the reference points, zero for the data's rows."""
    return np.where(data, 0.0, slopes[0]), np.where(data, 0.0, slopes[1])


# (i, times, probe) → (p,) Σ_r ℓ'_r x_r, and what the probe reads
Sums = Callable[[int, float, Probe | None], tuple[np.ndarray, Probed | None]]
ByLabel = Callable[[int, float, np.ndarray, int], np.ndarray]  # (i, times, label, count) → (count, p)


@final
@dataclass(frozen=True)
class Redraws:
    """The i-th set of fresh points, i = 0, 1, …; the same i gives the same points."""

    sums: Sums
    by_label: ByLabel
    _kept: dict[int, np.ndarray] = field(default_factory=dict)

    def __call__(self, i: int, times: float = 1.0, label: np.ndarray | None = None, count: int = 1) -> np.ndarray:
        """(count, p) by label of the observation, or (1, p) over all; `times` as many points as there are."""
        if label is not None:
            return self.by_label(i, times, label, count)
        if times == 1.0 and i in self._kept:
            return self._kept[i][None]
        return self._keep(i, times, self.sums(i, times, None)[0])[None]

    def probed(self, i: int, probe: Probe) -> Probed:
        """What the probe reads on the i-th set."""
        total, found = self.sums(i, 1.0, probe)
        assert found is not None
        self._keep(i, 1.0, total)
        return found

    def _keep(self, i: int, times: float, total: np.ndarray) -> np.ndarray:
        if times == 1.0 and i < KEPT:
            self._kept[i] = total
        return total
