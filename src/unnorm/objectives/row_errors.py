"""Errors of chosen parameters where rows of a likelihood have too many for a matrix: NCE with thousands of couplings.

With ν profiled out a row has the score ℓ'_r (∂f_r − h̄_{g(r)}), h̄ the curvature's mean of ∂f over the rows of its ν, so
that for v = H⁻¹ e_c only the numbers u_r = ∂f_rᵀ v − h̄ᵀ v are needed:

    Var(θ̂_c) = Σ_data (ℓ' u)² about their mean  +  Σ_points (ℓ' u)² about theirs,

both over independent draws (IID data share their points); with contexts the sum over units, each an observation with
its points. Points that are spread evenly vary less than that, and their part is measured on fresh sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from ..errors import InputError
from ..models.operators import Operator, conjugate_gradients
from .base import ChosenErrors
from .flips import SOLVED
from .rows import Rows, RowSource
from .scores import Drawn, sum_by

if TYPE_CHECKING:
    from .row_problem import RowProblem

SETS = 8  # fresh sets of evenly spread points


class Weighed(NamedTuple):
    """A block at θ̂."""

    rows: Rows
    of: np.ndarray  # (N,) its ν
    slope: np.ndarray  # (N,) ℓ'
    curvature: np.ndarray  # (N,) −ℓ''


@final
@dataclass(frozen=True)
class RowErrors(ChosenErrors):
    """Covariances of chosen parameters: H⁻¹ e_c by conjugate gradients over passes through the rows."""

    problem: RowProblem
    theta: np.ndarray
    given: Operator | None  # a curvature that is nearly the rows': the preconditioner
    ridge: np.ndarray | float = 0.0  # diagonal of a penalty

    @cached_property
    def _nu(self) -> np.ndarray:
        return self.problem.nu_at(self.theta)

    def _weighed(self, source: RowSource) -> Iterator[Weighed]:
        for base in self.problem.light(self.theta, source):
            slope, curvature = base.rows.likelihood.slopes(base.eta + self.problem.nu_rows(base.rows, self._nu))
            yield Weighed(base.rows, self.problem.layout.of[base.rows.context], slope, curvature)

    @cached_property
    def _blocks(self) -> list[Weighed]:
        return list(self._weighed(self.problem.source))

    @cached_property
    def _mass(self) -> np.ndarray:
        """(q,) Σ_r −ℓ''_r for each ν."""
        q = self.problem.layout.size
        return np.maximum(sum((np.bincount(b.of, b.curvature, q) for b in self._blocks), start=np.zeros(q)), 1e-300)

    def _along(self, v: np.ndarray, rows: Rows) -> np.ndarray:
        """(N,) ∂fᵀ v."""
        model = self.problem.model
        return model.log_f(v, rows.y, model.arguments(self.problem.obs, rows.context))

    def _means(self, u: list[np.ndarray]) -> np.ndarray:
        """(q,) h̄ᵀ v for each ν; one zero where ν is given."""
        if self.problem.layout.fixed is not None:
            return np.zeros(1)
        q = self.problem.layout.size
        each = (np.bincount(b.of, b.curvature * one, q) for b, one in zip(self._blocks, u))
        return sum(each, start=np.zeros(q)) / self._mass

    def _of(self, b: Weighed) -> np.ndarray | int:
        return 0 if self.problem.layout.fixed is not None else b.of

    def _times(self, v: np.ndarray) -> np.ndarray:
        """−H v, ν profiled out."""
        u, model = [self._along(v, b.rows) for b in self._blocks], self.problem.model
        means, out = self._means(u), self.ridge * v
        for b, one in zip(self._blocks, u):
            arguments = model.arguments(self.problem.obs, b.rows.context)
            out = out + model.row_sums(self.theta, b.rows.y, arguments, b.curvature * (one - means[self._of(b)]))
        return out

    def _near(self, v: np.ndarray) -> np.ndarray:
        return v / self.problem.scale if self.given is None else self.given.solve(v, SOLVED)

    def columns(self, index: np.ndarray) -> np.ndarray:
        """(q, p) H⁻¹ e_c."""
        unit = np.zeros((len(index), len(self.theta)))
        unit[np.arange(len(index)), index] = 1.0
        return np.array([conjugate_gradients(self._times, e, self._near, SOLVED) for e in unit])

    @property
    def weights(self) -> np.ndarray:
        return self.problem.obs.weights

    def influences(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        V = self.columns(index)
        u = [[self._along(v, b.rows) for b in self._blocks] for v in V]
        means = np.stack([self._means(one) for one in u], axis=1)
        G = [
            b.slope[:, None] * (np.stack([one[i] for one in u], axis=1) - means[self._of(b)])
            for i, b in enumerate(self._blocks)
        ]
        data = np.concatenate([b.rows.data for b in self._blocks])
        g, weights = np.concatenate(G), self.weights
        if not self.problem.source.shared:
            at = np.concatenate([b.rows.at for b in self._blocks])
            return sum_by(g, at, len(weights)), 0.0
        about = g[data] - weights[:, None] * (g[data].sum(axis=0) / weights.sum())
        return about, self._measured(V, means) if self._evenly else _centred(g[~data])

    @property
    def _evenly(self) -> bool:
        return self.problem.drawn is Drawn.EVENLY and self.problem.redraw is not None

    def _measured(self, V: np.ndarray, means: np.ndarray) -> np.ndarray:
        """The variance of the points' sums over fresh sets."""
        assert self.problem.redraw is not None
        sums = np.zeros((SETS, len(V)))
        for i in range(SETS):
            for b in self._weighed(self.problem.redraw(i, 1.0)):
                points = np.where(b.rows.data, 0.0, b.slope)
                u = np.stack([self._along(v, b.rows) for v in V], axis=1) - means[self._of(b)]
                sums[i] += points @ u
        return np.atleast_2d(np.cov(sums, rowvar=False))

    def simulated(self, index: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
        raise InputError(
            "Simulated errors are those of a pseudo-likelihood, objective=un.ConditionalNCE(un.BitFlip(every=True)). "
            "Leave simulated out."
        )


def _centred(g: np.ndarray) -> np.ndarray:
    """m/(m − 1) Σ (g − ḡ)(g − ḡ)ᵀ."""
    g = g - g.mean(axis=0)
    return len(g) / max(len(g) - 1, 1) * g.T @ g
