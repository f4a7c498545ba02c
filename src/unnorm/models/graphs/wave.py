"""One graph in its surroundings, with its change statistics and a chain of toggles that starts from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ..gibbs import Base, Sampled
from . import kernels
from .base import Statistic, Surroundings
from .kernels import DYADIC


@final
@dataclass(frozen=True, eq=False)
class Compiled:
    """Statistics as the kernels read them."""

    codes: np.ndarray  # (p,)
    tables: np.ndarray  # (p, 2n)
    directed: bool
    paths: bool

    @classmethod
    def of(cls, statistics: Sequence[Statistic], n: int, directed: bool) -> Compiled:
        tables = np.stack([one.table(2 * n) for one in statistics])
        codes = np.array([one.code for one in statistics], dtype=np.int64)
        return cls(codes, tables, directed, any(one.paths for one in statistics))


@final
class Wave:
    """A graph y, the weights W of its dyadic statistics, and the state that the kernels keep of it."""

    def __init__(self, compiled: Compiled, statistics: Sequence[Statistic], A: np.ndarray, x: Surroundings) -> None:
        self._compiled, self._pairs = compiled, np.ascontiguousarray(x.domain.pairs)
        weights = [one.weights(x) for one in statistics if one.code == DYADIC]
        n = x.domain.n
        self._W = np.stack([np.zeros((n, n)) if W is None else W for W in weights]) if weights else np.zeros((1, n, n))
        self._s = np.array([one.value(A, x) for one in statistics])
        B = A.astype(np.uint8)
        self._G = np.stack([B, B.T])
        P = (A @ A).astype(np.int32) if compiled.paths else np.zeros((n, n), dtype=np.int32)
        np.fill_diagonal(P, 0)
        self._P = P
        self._deg = np.stack([A.sum(axis=1), A.sum(axis=0)]).astype(np.int64)

    @property
    def statistics(self) -> np.ndarray:
        """(p,) s of the state."""
        return self._s.copy()

    @property
    def weights(self) -> np.ndarray:
        """(dyadic statistics, n, n) W."""
        return self._W

    @property
    def ties(self) -> np.ndarray:
        """(d,) y of the state."""
        i, j = self._pairs.T
        return self._G[0, i, j].astype(np.float64)

    def _state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._G, self._P, self._deg

    def changes(self) -> np.ndarray:
        """(d, p) s(y with the tie) − s(y without)."""
        c = self._compiled
        out = np.empty((len(self._pairs), len(c.codes)))
        kernels.all_changes(c.codes, c.tables, c.directed, *self._state(), self._W, self._pairs, out)
        return out

    def score(self, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
        """(p,) Σ (y_ij − p_ij) Δ_ij s over the free dyads: the score of the pseudo-likelihood."""
        change = self.changes()[free]
        eta = change @ theta
        return (self.ties[free] - 0.5 - 0.5 * np.tanh(0.5 * eta)) @ change

    def move(
        self, theta: np.ndarray, free: np.ndarray, proposals: int, rng: np.random.Generator, offset: np.ndarray | None
    ) -> None:
        """So many toggles proposed, f + Σ offset_i y_i in place of f."""
        self.sample(theta, free, (proposals, 0), 1, rng, offset=offset)

    def anneal(
        self, theta: np.ndarray, free: np.ndarray, base: Base, betas: np.ndarray, rng: np.random.Generator
    ) -> float:
        """The log weight of annealing from q to the model, less that at the start; the state moves on."""
        c, parts = self._compiled, base.components(self.ties[None])[0]
        log_odds = np.ascontiguousarray(base.log_odds[:, free])
        return kernels.anneal(
            c.codes, c.tables, c.directed, c.paths, *self._state(), self._W, self._pairs[free],
            np.asarray(theta, dtype=np.float64), log_odds, parts, betas, rng,
        )  # fmt: skip

    # long: its arguments are a chain's
    def sample(
        self,
        theta: np.ndarray,
        free: np.ndarray,
        plan: tuple[int, int],
        draws: int,
        rng: np.random.Generator,
        keep: bool = False,
        offset: np.ndarray | None = None,
    ) -> Sampled:
        """Draws of the statistics, and of the free dyads where they are kept.

        The state moves on; `plan` is how many toggles are proposed before the first draw and between draws.
        """
        c, pairs = self._compiled, self._pairs[free]
        stats = np.empty((draws, len(c.codes)))
        kept = np.empty((draws if keep else 0, len(pairs)), dtype=np.uint8)
        if len(pairs) == 0:
            stats[:] = self._s
            return Sampled(stats, kept, 0.0, 0.0)
        accepted, tied = kernels.sample(
            c.codes, c.tables, c.directed, c.paths, *self._state(), self._W, pairs,
            np.zeros(len(pairs)) if offset is None else offset[free],
            np.asarray(theta, dtype=np.float64), self._s, np.array(plan, dtype=np.int64), rng, stats, kept,
        )  # fmt: skip
        return Sampled(stats, kept, float(accepted), float(tied))
