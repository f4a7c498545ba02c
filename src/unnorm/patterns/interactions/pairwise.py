"""Pairwise interactions: t(u, x) = Σ_v ψ(‖u − v‖), with what they share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from .base import PAIRWISE, Energy, Interaction, Neighbours

if TYPE_CHECKING:
    from ..point_pattern import Pattern


class Pairwise(Interaction):
    """t(u, x∖u) = Σ_{v ∈ x∖u, ‖u − v‖ ≤ R} w_uv ψ(‖u − v‖, mark u, mark v), w the edge correction's weight."""

    weighs = True

    @abstractmethod
    def potential(self, d: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(P, k) ψ at distances d ≤ R between marks u and v."""

    @abstractmethod
    def breaks(self) -> np.ndarray:
        """Increasing distances, the last R, between which a simulation may take ψ as constant."""

    def statistics(self, near: Neighbours) -> np.ndarray:
        psi = self._weighted(near)
        return np.stack([near.summed(column) for column in psi.T], axis=1) if psi.shape[1] else np.zeros((near.u.n, 0))

    def without(self, near: Neighbours) -> np.ndarray:
        return self.statistics(near)[near.pairs.a] - self._weighted(near)

    def _weighted(self, near: Neighbours) -> np.ndarray:
        """(P, k) w ψ of every pair."""
        pairs = near.pairs
        psi = self.potential(pairs.d, near.u.mark[pairs.a], near.x.mark[pairs.b])
        return psi if near.weights is None else near.weights[:, None] * psi

    def energy(self, pattern: Pattern, phi: np.ndarray) -> Energy:
        ends = self.breaks()
        middle = 0.5 * (np.concatenate([[0.0], ends[:-1]]) + ends)
        steps = np.zeros((pattern.types, pattern.types, len(ends)))
        for u in range(pattern.types):
            for v in range(pattern.types):
                mark_u, mark_v = np.full(len(ends), u), np.full(len(ends), v)
                steps[u, v] = self.potential(middle, mark_u, mark_v) @ phi
        if self.core:
            steps[..., ends <= self.core] = -np.inf
        return Energy(PAIRWISE, self.reach, ends**2, steps, np.zeros(3))
