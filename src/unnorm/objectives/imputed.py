"""Errors of a pseudo-likelihood whose missing bits are filled in by K draws from p_θ(missing|observed).

With ḡ_t = E_θ[g_t|observed] the estimate solves Σ_t w_t ḡ_t = 0. Its derivative counts that the draws follow θ too: as
∂ log p_θ(missing|observed) = s − E[s|observed] for the statistics s of an exponential family,

    A = −∂ Σ w ḡ = Σ_t w_t { E[−∂g_t|observed] − Cov(g_t, s_t|observed) } = H − C,        V = A⁻¹ (Σ w ḡ ḡᵀ) A⁻ᵀ

(Louis 1982 for likelihoods; Robins & Wang 2000 for imputation). E and Cov are over the K draws; what their number adds
to ḡ stays in V, as it does in the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from ..models.batching import tree_take
from ..models.operators import Operator
from .base import ChosenErrors
from .flips import SOLVED, SWEEPS, FlipErrors, FlipProblem, projections
from .scores import Drawn, Reselection, Scores, frequency, sum_by

MOST = 50  # rounds of (H − C)ᵀ v = e by v ← H⁻¹ (e + Cᵀ v)


@final
@dataclass(frozen=True)
class ImputedScores(Scores):
    """Scores averaged over K completed data sets."""

    filled: tuple[FlipProblem, ...]
    theta: np.ndarray
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None

    drawn = Drawn.NONE
    shared = False
    model_based = False

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.theta)

    @cached_property
    def weight(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return float(self.filled[0].obs.weights.sum())

    @cached_property
    def information(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """H, the mean over the draws."""
        return np.mean([one.information(self.theta) for one in self.filled], axis=0)

    def _means(self) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
        """Blocks of observations: which, w ḡ, and w g of each draw."""
        for blocks in zip(*(one.by_observation(self.theta) for one in self.filled), strict=True):
            each = [g for _, g in blocks]
            yield blocks[0][0].at, np.mean(each, axis=0), each

    @cached_property
    def _correction(self) -> np.ndarray:
        """H A⁻¹."""
        K, model = len(self.filled), self.filled[0].model
        C = np.zeros((self.size, self.size))
        for at, mean, each in self._means():
            arguments = tree_take(self.filled[0].arguments, at)
            s = [model.jacobian(self.theta, one.obs.outcome[at], arguments) for one in self.filled]
            about = np.mean(s, axis=0)
            for g, one in zip(each, s):
                C += (g - mean).T @ (one - about) / (K - 1)
        H = self.information if self.penalty is None else self.information + self.penalty
        return H @ np.linalg.inv(H - C)

    def points_spread(self, power: int) -> np.ndarray:
        return np.zeros((self.size, self.size))

    def data_spread(self) -> np.ndarray:
        return self.empirical_spread()

    def empirical_spread(self) -> np.ndarray:
        """H A⁻¹ (Σ w ḡ ḡᵀ) A⁻ᵀ H, so that H⁻¹ on both sides gives V."""
        out, weights = np.zeros((self.size, self.size)), self.filled[0].obs.weights
        for at, g, _ in self._means():
            out += (g / np.maximum(weights[at], 1e-300)[:, None]).T @ g
        return frequency(self.weight) * self._correction @ out @ self._correction.T

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        out = np.zeros((count, self.size))
        for at, g, _ in self._means():
            out += sum_by(g, label[at], count)
        return out @ self._correction.T

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(label, self.filled[0].obs.weights, count)


@final
@dataclass(frozen=True)
class ImputedErrors(ChosenErrors):
    """The same for chosen parameters: no matrix of p × p."""

    filled: tuple[FlipProblem, ...]
    theta: np.ndarray
    curvature: Operator | None
    sweeps: int
    ridge: np.ndarray | float = 0.0

    def _columns(self, index: np.ndarray) -> np.ndarray:
        """(q, p) A⁻ᵀ e_c, H from the last of the draws."""
        plain = FlipErrors(self.filled[-1], self.theta, self.curvature, self.ridge)
        out = first = plain.columns(index)
        for _ in range(MOST):
            after = first + plain.solved(self._covaried(out))
            moved = np.abs(after - out).max(axis=1)
            out = after
            if np.all(moved <= SOLVED * np.abs(out).max(axis=1)):
                break
        return out

    def _covaried(self, V: np.ndarray) -> np.ndarray:
        """(q, p) Cᵀ v = Σ_t w_t Cov(vᵀg_t, s_t|observed) for each row of V."""
        G = np.array([projections(one, self.theta, V) for one in self.filled])  # (K, n, q), w g
        G = (G - G.mean(axis=0)) / (len(G) - 1)
        model, out = self.filled[0].model, np.zeros_like(V)
        for one, weight in zip(self.filled, G):
            for c in range(len(V)):
                terms = model.data_terms(one.obs.outcome, one.arguments, weight[:, c])
                out[c] += terms.derivatives(self.theta)[1]
        return out

    @property
    def weights(self) -> np.ndarray:
        return self.filled[0].obs.weights

    def influences(self, index: np.ndarray) -> tuple[np.ndarray, float]:
        V = self._columns(index)
        return np.mean([projections(one, self.theta, V) for one in self.filled], axis=0), 0.0

    def simulated(self, index: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Outcomes of the model with the holes of the observations, filled in as these were."""
        V, one = self._columns(index), self.filled[0]
        at = rng.choice(one.obs.n, draws, p=one.obs.weights / one.obs.weights.sum())
        like = replace(one.obs.take(at), weight=None)
        sampler = one.model.sampler(self.theta, one.model.arguments(like, np.arange(draws)))
        y = sampler.sweep(like.outcome, SWEEPS, rng)
        G = np.zeros((draws, len(index)))
        for _ in self.filled:
            y = sampler.sweep(y, self.sweeps, rng, like.holes)
            G += projections(FlipProblem(one.model, replace(like, outcome=y)), self.theta, V) / len(self.filled)
        return float(one.obs.weights.sum()) * (G.T @ G) / draws
