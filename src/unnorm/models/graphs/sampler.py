"""Toggles of many graphs side by side, for simulation and annealing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..gibbs import Base, ChangeSampler

if TYPE_CHECKING:
    from .model import GraphStatistics


@final
@dataclass(frozen=True)
class GraphSampler(ChangeSampler):
    """Metropolis–Hastings, tie / no tie; a sweep proposes as many toggles as there are free dyads."""

    model: GraphStatistics
    theta: np.ndarray
    arguments: tuple[Any, ...]
    quick = True

    def _free(self, free: np.ndarray | None, chains: int) -> np.ndarray:
        every = np.broadcast_to(self.model.domain.free, (chains, self.model.domain.dim))
        return every if free is None else every & np.atleast_2d(free)

    def sweep(
        self,
        y: np.ndarray,
        sweeps: int,
        rng: np.random.Generator,
        free: np.ndarray | None = None,
        either_way: bool = False,
    ) -> np.ndarray:  # toggles at random are reversible as they are
        out = np.empty(y.shape)
        for c, mask in enumerate(self._free(free, len(y))):
            wave = self.model.wave(y[c], self.arguments, c)
            wave.move(self.theta, mask, sweeps * int(mask.sum()), rng, None)
            out[c] = wave.ties
        return out

    def anneal(
        self, y: np.ndarray, base: Base, betas: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        out, log_w = np.empty(y.shape), np.zeros(len(y))
        for c, mask in enumerate(self._free(None, len(y))):
            wave = self.model.wave(y[c], self.arguments, c)
            log_w[c] = wave.anneal(self.theta, mask, base, betas, rng)
            out[c] = wave.ties
        return out, log_w
