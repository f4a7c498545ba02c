"""A combination of the curves of a crossed fit, as if it were the main effects of a joint fit.

With ω = (ω_0, ω_1 … ω_C−1) the view is ω_0 f + Σ_i ω_i δ_i: ω = w_c is condition c's population curve, (1, 0 …) the
mean over conditions, and w_a − w_b the difference of two. The prior variances of independent curves add, so that its
precision is the parallel sum P_f/ω_0² : P_δ/Σ ω_i² (A : B = A (A + B)⁺ B), zero on the null space of either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from ..engine.arrow import ArrowInverse
from ..terms.base import BuiltTerm
from .crossed import Crossed, CrossedDesign
from .joint import slices_of


def parallel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A : B, the precision of a sum of two independent parts with precisions A and B.

    >>> parallel(np.diag([1.0, 2.0]), np.diag([1.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A) + np.diag(B), 1e-300))
    total = (A + B) * scale * scale[:, None]
    values, vectors = np.linalg.eigh(total)
    keep = values > 1e-12
    inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T * scale * scale[:, None]
    out = A @ inverse @ B
    return (out + out.T) / 2


@final
@dataclass(frozen=True)
class View:  # long: what is asked of a joint fit
    """One combination; it has what `GroupScores` and a `Solution` read of a joint fit."""

    crossed: Crossed
    omega: np.ndarray  # (C,)

    @property
    def design(self) -> CrossedDesign:
        return self.crossed.design

    @property
    def terms(self) -> tuple[BuiltTerm, ...]:
        return self.crossed.design.terms[: self.crossed.cells.count]

    @property
    def slices(self) -> dict[str, slice]:
        return slices_of(self.terms)

    @property
    def inverse(self) -> ArrowInverse:
        return self.crossed.inverse

    @property
    def blocks(self) -> list[np.ndarray]:
        return self.crossed.blocks

    @cached_property
    def L(self) -> np.ndarray:
        """(q, shared): from the shared columns to the view."""
        return np.kron(self.omega, np.eye(self.design.q))

    @cached_property
    def prior(self) -> np.ndarray:
        """(q, q) its penalty, in the engine's coordinates."""
        q, shared = self.design.q, self.crossed.blocks[0]
        of_f, of_delta = shared[:q, :q], shared[q : 2 * q, q : 2 * q]
        square = float(np.sum(self.omega[1:] ** 2))
        if self.omega[0] == 0:
            return of_delta / square
        f = of_f / self.omega[0] ** 2
        return f if square == 0 else parallel(f, of_delta / square)

    def covariance(self, inverse: ArrowInverse) -> np.ndarray:
        """(q, q), in the engine's coordinates."""
        return self.L @ inverse.sigma @ self.L.T

    def influence(self, inverse: ArrowInverse, u: int) -> np.ndarray:
        """K_u (q, p_u): d(view)/d(score of cell u)."""
        shared, own = self.design.maps[u]
        s = self.design.layout.crossing.cells[u][0]
        return self.L @ inverse.sigma @ (shared - own @ inverse.slopes[s]).T

    def to_terms(self, matrix: np.ndarray) -> np.ndarray:
        """A (q, q) matrix from the engine's coordinates to the terms'."""
        return self.crossed.turn @ matrix @ self.crossed.turn.T

    @cached_property
    def beta(self) -> np.ndarray:
        """(1 + q,): the mean level of the cells (none of a difference), then the curves, in the terms' coordinates."""
        layout, flat = self.design.layout, self.crossed.flat
        levels = [flat[int(layout.starts[s + 1]) + layout.chi_at(u)] for u, (s, _) in enumerate(layout.crossing.cells)]
        curves = self.crossed.turn @ (self.L @ flat[: layout.starts[1]])
        return np.concatenate([[self.omega[0] * np.mean(levels)], curves])

    @cached_property
    def smoothing(self) -> np.ndarray:
        """(1 + q, 1 + q) what not knowing λ adds to the covariance, in the terms' coordinates."""
        root = self.crossed.turn @ (self.L @ self.crossed.root)
        out = np.zeros((1 + len(root), 1 + len(root)))
        out[1:, 1:] = root @ root.T
        return out

    @cached_property
    def _shares(self) -> np.ndarray:
        """F = I − V S_λ, in the terms' coordinates."""
        turn = self.crossed.turn
        return turn @ (np.eye(self.design.q) - self.covariance(self.inverse) @ self.prior) @ turn.T

    @cached_property
    def edf(self) -> dict[str, float]:
        return {label: float(np.trace(self._shares[at, at])) for label, at in self.slices.items()}

    @cached_property
    def edf1(self) -> dict[str, float]:
        F = 2 * self._shares - self._shares @ self._shares
        return {label: float(np.trace(F[at, at])) for label, at in self.slices.items()}

    @property
    def sp(self) -> dict[str, float]:
        return dict(zip(self.design.penalties.labels, np.exp(self.crossed.rho).tolist()))

    @cached_property
    def deviations(self) -> dict[str, float]:
        """label → root mean square of the subjects' random curves over rows and cells."""
        layout, flat, total = self.design.layout, self.crossed.flat, dict.fromkeys(self.slices, 0.0)
        for u, member in enumerate(self.design.members):
            begin = self.design.own(u).start
            curves = flat[begin : begin + layout.random * layout.q].reshape(layout.random, layout.q)
            d = layout.random_weights(u) @ curves
            for label, at in self.slices.items():
                mine = np.zeros(member.design.size)
                mine[1 + at.start : 1 + at.stop] = d[at]
                total[label] += float(np.mean(member.design.predict(mine) ** 2))
        return {label: float(np.sqrt(value / len(self.design.members))) for label, value in total.items()}

    @property
    def df(self) -> int:
        """Degrees of freedom of the variance that its error rests on: between subjects, or of their differences."""
        crossing = self.design.layout.crossing
        subjects, conditions = len(crossing.subjects), len(crossing.conditions)
        if crossing.design == "between":
            return subjects - conditions
        return subjects - 1 if self.omega[0] else len(crossing.cells) - subjects - (conditions - 1)

    @property
    def effective_df(self) -> float:
        """Of its whole variance, df/s² (Satterthwaite): a share s of it is due to the spread of random curves, which is
        estimated on df degrees of freedom; the rest is the sampling error within cells, which is known."""
        q, V = self.design.q, self.covariance(self.inverse)
        metric = self.crossed.common[:q, :q]
        share = 1.0 - float(np.sum(metric * (self.L @ self.crossed.inner @ self.L.T))) / float(np.sum(metric * V))
        return self.df / max(share, 0.05) ** 2

    @property
    def floors(self) -> tuple[str, ...]:
        return self.crossed.cells.floors

    @property
    def score(self) -> float:
        return self.crossed.score

    @property
    def loglik(self) -> float:
        return self.crossed.loglik

    @property
    def converged(self) -> bool:
        return self.crossed.converged

    @property
    def reason(self) -> str:
        return self.crossed.reason

    @property
    def iterations(self) -> int:
        return self.crossed.iterations

    @property
    def passes(self) -> int:
        return self.crossed.passes
