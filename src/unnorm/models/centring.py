"""Covariates far from zero: f in terms of z − m, where the level m is absorbed by a parameter that is free to take it.

A covariate of 10⁸ + N(0, 1) is all but proportional to the constant: sums of its squares lose every digit that tells it
from the field (bits) or from the edges (graphs). About its mean m nothing is lost, and as
Σ_c B_c z_c + h = Σ_c B_c (z_c − m_c) + h', the parameters of the user's scale are linear in those of the centred one:

    h = h' − Σ_c m_c B_c,        B = B'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from .base import Model

FAR = 10.0  # standard deviations from zero beyond which a covariate is centred


@final
@dataclass(frozen=True, eq=False)
class Centred:
    """A model in which covariates count from their means, and θ = θ' − Σ_k by_k θ'_{of_k} e_{to_k} of the one meant."""

    model: Model
    to: np.ndarray  # (K,) the parameters that take the levels
    of: np.ndarray  # (K,) those of the covariates
    by: np.ndarray  # (K,) m

    def estimate(self, theta: np.ndarray) -> np.ndarray:
        """θ from θ', or matrices (p, …) by rows."""
        out = np.array(theta, dtype=np.float64)
        np.subtract.at(out, self.to, (self.by * np.asarray(theta)[self.of].T).T)
        return out

    def covariance(self, V: np.ndarray) -> np.ndarray:
        """T V Tᵀ of all parameters; V may have further coordinates behind them, which stay as they are."""
        return self.estimate(self.estimate(V).T).T

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of θ' that θ[index] reads, and the matrix (q, r) from these to those."""
        mine = np.isin(self.to, index)
        needed = np.unique(np.concatenate([index, self.of[mine]]))
        T = (index[:, None] == needed).astype(np.float64)
        place = {int(j): row for row, j in enumerate(index)}
        at = np.searchsorted(needed, self.of[mine])
        T[[place[int(j)] for j in self.to[mine]], at] -= self.by[mine]
        return needed, T


def level(z: np.ndarray) -> float:
    """m of a covariate that lies far from zero; 0 of one that does not, and of one that does not vary."""
    z = np.asarray(z, dtype=np.float64)
    if z.size == 0 or not np.isfinite(z).all():
        return 0.0
    middle = float(np.median(z))
    mean = middle + float(np.mean(z - middle))  # about the median, as a sum of large numbers rounds
    spread = float(np.std(z - mean))
    return mean if 0.0 < FAR * spread < abs(mean) else 0.0
