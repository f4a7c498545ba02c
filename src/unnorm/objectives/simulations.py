"""Draws of sufficient statistics in every context, their moments and Monte Carlo errors, and ℓ along a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from ..data.observations import Observations
from ..models.base import Model
from ..models.gibbs import Chain

BURN = 10  # sweeps before the first draw of a chain that starts at the data; a fifth of it when θ has moved a little
NODES = 12  # of the Gauss–Legendre rule along the path
PATH_DRAWS = 600  # at each node, over all contexts
EMPTY = 0.05  # of the observed ties (or gaps): with fewer, simulated graphs count as empty (or complete)


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """M draws of s in each of n contexts at θ₀, (n, M, p) centred at their mean, and the observed statistics."""

    theta: np.ndarray
    mean: np.ndarray  # (n, p) s̄_t
    centred: np.ndarray  # (n, M, p)
    observed: np.ndarray  # (n, p) s(y_t); where ties are missing, their mean given the others
    weight: np.ndarray  # (n,)
    accepted: float = 0.0
    density: float = 0.0  # share of free bits that are one
    given: Draws | None = None  # draws of the missing ties given the others

    @property
    def size(self) -> int:
        return self.centred.shape[0] * self.centred.shape[1]

    def _weights(self, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) log of the mean weight, and (n, M) weights that sum to one."""
        f = self.centred @ delta
        top = f.max(axis=1, keepdims=True)
        e = np.exp(f - top)
        total = e.sum(axis=1, keepdims=True)
        return (top + np.log(total / f.shape[1]))[:, 0], e / total

    def means(self, delta: np.ndarray) -> np.ndarray:
        """(n, p) E_θ s − s̄."""
        return np.einsum("tm,tmp->tp", self._weights(delta)[1], self.centred)

    def tilted(self, delta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Σ_t w_t log mean exp δᵀ(s − s̄), its gradient and its Hessian."""
        log_mean, pi = self._weights(delta)
        mean = np.einsum("tm,tmp->tp", pi, self.centred)
        flat = self.centred.reshape(-1, len(delta))
        second = flat.T @ (flat * (self.weight[:, None] * pi).reshape(-1, 1))
        return float(self.weight @ log_mean), self.weight @ mean, second - mean.T @ (self.weight[:, None] * mean)

    def error(self, delta: np.ndarray, batches: int | None = None) -> np.ndarray:
        """(p, p) Σ_t w_t² Var of the weighted means, by batch means: draws of one chain depend on each other."""
        n, M, p = self.centred.shape
        _, pi = self._weights(delta)
        mean = np.einsum("tm,tmp->tp", pi, self.centred)
        influence = pi[:, :, None] * (self.centred - mean[:, None])  # sums to zero over m
        if batches is None:
            batches = max(2, round(M ** (1 / 3)))  # few and long: chains near degeneracy forget slowly
        length = M // batches
        sums = influence[:, : batches * length].reshape(n, batches, length, p).sum(axis=2)
        sums = sums - sums.mean(axis=1, keepdims=True)
        spread = np.einsum("t,tbp,tbq->pq", self.weight**2, sums, sums)
        return spread * batches / (batches - 1) * (M / (batches * length)) ** 2


def beyond(draws: Sequence[Draws], others: np.ndarray) -> np.ndarray | None:
    """A direction v in which no draw goes further than the data, vᵀs ≤ vᵀs(y_t) in every context; None where there is
    none. Then the data lie at the edge of what the statistics can be, as far as these draws tell, and `others`: rows
    s(y_t) − s of further outcomes."""
    from scipy.optimize import linprog

    if any(one.given is not None for one in draws):
        return None
    gap = np.concatenate([(one.observed - one.mean)[:, None] - one.centred for one in draws], axis=1)
    gap = np.unique(np.concatenate([gap.reshape(-1, gap.shape[2]), others]).round(9), axis=0)
    scale = gap.std(axis=0)
    if not scale.all():
        return None
    found = linprog(-gap.mean(axis=0) / scale, A_ub=-gap / scale, b_ub=np.zeros(len(gap)), bounds=(-1.0, 1.0))
    return found.x / scale if found.status == 0 and -found.fun > 1e-6 else None


@final
class Simulator:
    """Chains of a model, one in each context, that go on from set to set of draws."""

    def __init__(self, model: Model, obs: Observations, thin: int | None, rng: np.random.Generator) -> None:
        self.model, self.obs, self._thin, self._rng = model, obs, thin, rng
        at = np.arange(obs.n)
        self.held = model.held_bits(obs, at)  # as they are, in the data and in every draw
        self.missing = np.zeros_like(self.held) if obs.masks is None else obs.masks.missing & ~self.held
        self._free = ~self.held
        self.restart()

    @property
    def left_absent(self) -> int:
        """Missing bits that no draw can fill in, as f reads their previous value, which is unknown too."""
        if self.obs.masks is None:
            return 0
        here = self.obs.masks.missing & self.held & ~self.obs.masks.fixed
        return int(here.sum() if self.model.domain.free is None else here[:, self.model.domain.free].sum())

    def restarted(self) -> Simulator:
        """The same, its chains back at the data."""
        self.restart()
        return self

    def restart(self) -> None:
        """Put the chains back to the data."""
        at = np.arange(self.obs.n)
        self._chains = self.model.chains(self.obs, at)
        self._given = self.model.chains(self.obs, at) if self.missing.any() else None

    @cached_property
    def observed(self) -> np.ndarray:
        """(n, p) s(y_t)."""
        return np.stack([chain.statistics for chain in self.model.chains(self.obs, np.arange(self.obs.n))])

    def others(self) -> np.ndarray:
        """(N, p) s(y_t) − s of the outcomes one flip away, of those without any free one, and of those with all."""
        at = np.arange(self.obs.n)
        flips = self.model.changes(self.obs.outcome, self.model.arguments(self.obs, at))[self._free]
        far = [
            self.observed - np.stack([one.statistics for one in self.model.chains(replace(self.obs, outcome=y), at)])
            for y in (np.where(self.held, self.obs.outcome, value) for value in (0.0, 1.0))
        ]
        return np.concatenate([-flips, *far])

    def __call__(self, theta: np.ndarray, size: int, first: bool = False) -> Draws:
        """`size` draws over all contexts together, at θ."""
        M = max(-(-size // self.obs.n), 40)
        stats, accepted, ones = self._draw(self._chains, self._free, theta, M, first)
        mean = stats.mean(axis=1)
        given, observed = None, self.observed
        if self._given is not None:
            inside, _, _ = self._draw(self._given, self.missing, theta, M, first)
            observed = inside.mean(axis=1)
            given = Draws(theta, observed, inside - observed[:, None], observed, self.obs.weights)
        return Draws(theta, mean, stats - mean[:, None], observed, self.obs.weights, accepted, ones, given)

    def _draw(
        self, chains: Sequence[Chain], free: np.ndarray, theta: np.ndarray, M: int, first: bool
    ) -> tuple[np.ndarray, float, float]:
        """(n, M, p) statistics, the share of proposals accepted, and of free bits that are one."""
        drawn = []
        for chain, mask in zip(chains, free):
            F = int(mask.sum())
            thin = max(F, 1) if self._thin is None else self._thin
            drawn.append(chain.sample(theta, mask, ((BURN if first else BURN // 5) * F, thin), M, self._rng))
        number = free.sum(axis=1)
        ones = float(number @ [one.ones for one in drawn] / max(number.sum(), 1))
        return np.stack([one.statistics for one in drawn]), float(np.mean([one.accepted for one in drawn])), ones

    def degenerate(self, draws: Draws) -> bool:
        """Whether the draws are all but empty or all but complete, unlike the data."""
        y = float(self.obs.outcome[self._free & ~self.missing].mean())
        return not EMPTY * y <= draws.density <= 1 - EMPTY * (1 - y)


def path_loglik(simulator: Simulator, theta: np.ndarray) -> tuple[float, float]:
    """ℓ(θ) and its Monte Carlo error: ∫₀¹ (s − E_{θ(u)} s)ᵀ (θ − θ') du from a θ' at which dyads are independent."""
    model = simulator.model
    begin, known = model.independent(simulator.obs)
    step = theta - begin
    if not step.any():
        return known, 0.0
    u, w = np.polynomial.legendre.leggauss(NODES)
    total, variance = known, 0.0
    for at, weight in zip(0.5 + 0.5 * u[::-1], 0.5 * w[::-1]):  # from θ on, where the chains are
        draws = simulator(begin + at * step, PATH_DRAWS, first=True)
        total += weight * float(draws.weight @ ((draws.observed - draws.mean) @ step))
        # two batches: as long as can be, and the nodes together still have degrees of freedom
        variance += weight**2 * float(step @ draws.error(np.zeros_like(step), 2) @ step)
    return total, float(np.sqrt(variance))
