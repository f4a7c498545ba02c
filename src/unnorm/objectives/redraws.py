"""Score sums of fresh sets of reference points, and the scores' law under the model, at the estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from .rows import Over, RowSource

HELD = 200_000  # nodes of rules that are held at once
Rules = tuple[np.ndarray, np.ndarray, np.ndarray]  # nodes (N, d), weights (N,), which of the contexts (N,), ascending
KEPT = 4  # sets whose sums are kept: the test of δ and the standard errors both read them


@final
@dataclass(frozen=True)
class Probe:
    """q functions of a row, h_r = b_{t(r)} − K x_r, of which the test of δ needs sums and integrals."""

    B: np.ndarray  # (n, q) by observation
    K: np.ndarray  # (q, p)

    def read(self, at: np.ndarray, Kx: np.ndarray) -> np.ndarray:
        """(q, N) h of rows, from their observations (N,) and K x (q, N)."""
        return self.B.T[:, at] - Kx


class Read(NamedTuple):
    """What a probe needs of rows."""

    at: np.ndarray  # (N,) the observation
    slopes: tuple[np.ndarray, np.ndarray]  # ℓ' and −ℓ'' (N,)
    h: np.ndarray  # (q, N)


@final
@dataclass(frozen=True)
class Law:
    """Moments of a unit's score Σ ℓ' h under the model, one copy of an observation with k IID points, by context."""

    mean: np.ndarray  # (s, q) a = E_f[ℓ' h] of the observation, and −a of its points
    data: np.ndarray  # (s, q, q) Var_f(ℓ' h) of the observation
    points: np.ndarray  # (s, q, q) the variance of its k points' Σ_j ℓ'_j h_j

    @staticmethod
    def of(read: Read, mass: np.ndarray, some: np.ndarray, k: int) -> Law:
        """By a rule on Ω whose nodes are points, `mass` = k q(y|x) w of them each, so that Σ mass g = ∫ k q g dy.

        The observation's square is ∫ f (1 − p)² h hᵀ = ∫ k q (−ℓ'') h hᵀ, its mean ∫ f (1 − p) h = −∫ k q ℓ' h.
        """
        slopes, h, begin = read.slopes, read.h, np.searchsorted(read.at, some)
        slope, curvature = mass * slopes[0], mass * slopes[1]
        whole = np.add.reduceat(slope**2 / np.maximum(curvature, 1e-300), begin)  # ∫ f e^δ̂ where q > 0
        mean = -np.add.reduceat(slope * h, begin, axis=1).T / whole[:, None]
        data, points = np.empty((2, len(some), len(h), len(h)))
        ends = [*begin[1:].tolist(), len(read.at)]
        for t, (a, b) in enumerate(zip(begin.tolist(), ends)):  # a context's nodes lie together
            here = h[:, a:b]
            np.matmul(curvature[a:b] * here, here.T, out=data[t])
            np.matmul(slope[a:b] * slopes[0][a:b] * here, here.T, out=points[t])
        crossed = mean[:, :, None] * mean[:, None, :]
        return Law(mean, data / whole[:, None, None] - crossed, points / whole[:, None, None] - crossed / k)


@dataclass(frozen=True)
class Laws:
    """Makes the law of the scores by a rule on Ω."""

    rule: Callable[[np.ndarray], Rules]  # at the contexts of some observations
    over: Over
    read: Callable[[RowSource, Probe], Iterator[Read]]  # what a probe needs of a source's rows

    @cached_property
    def nodes(self) -> int:
        """Of a context."""
        return len(self.rule(np.zeros(1, dtype=np.intp))[0])

    def at(self, probe: Probe, some: np.ndarray) -> Law:
        """At some observations (ascending), a few contexts at a time."""
        each = max(1, HELD // self.nodes)
        parts = [self._at(probe, some[begin : begin + each]) for begin in range(0, len(some), each)]
        return Law(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("mean", "data", "points")))

    def _at(self, probe: Probe, some: np.ndarray) -> Law:
        y, w, of = self.rule(some)
        nodes = self.over(y, w, some[of])
        at, slopes, h = zip(*self.read(nodes.source, probe))
        both = np.concatenate([a for a, _ in slopes]), np.concatenate([b for _, b in slopes])
        return Law.of(Read(np.concatenate(at), both, np.concatenate(h, axis=1)), nodes.mass, some, nodes.k)


def points_only(slopes: tuple[np.ndarray, np.ndarray], data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ℓ' and −ℓ'' of the reference points, zero for the data's rows."""
    return np.where(data, 0.0, slopes[0]), np.where(data, 0.0, slopes[1])


# (i, times, probe) → (p,) Σ_r ℓ'_r x_r, and (q,) Σ_r ℓ'_r h_r for a probe
Sums = Callable[[int, float, Probe | None], tuple[np.ndarray, np.ndarray | None]]
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

    def probed(self, i: int, probe: Probe) -> np.ndarray:
        """(q,) Σ_r ℓ'_r h_r on the i-th set."""
        total, found = self.sums(i, 1.0, probe)
        assert found is not None
        self._keep(i, 1.0, total)
        return found

    def _keep(self, i: int, times: float, total: np.ndarray) -> np.ndarray:
        if times == 1.0 and i < KEPT:
            self._kept[i] = total
        return total
