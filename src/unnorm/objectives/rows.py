"""Objectives that are sums over rows, Σ_r ℓ_r(η_r) with η = f_θ + ν + offset: logistic and importance-weighted Poisson.

The ν block is diagonal (each row has one ν), so it is profiled out whatever its size: 10⁵ constants cost a few sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from ..models.base import Model
from ..normalisers import Layout
from .base import Derivatives, Problem, Solution
from .sandwich import Scores, error_parts


@dataclass(frozen=True)
class RowTerms:
    """Σ ℓ, and for each row ℓ'(η) and −ℓ''(η)."""

    value: float
    slope: np.ndarray
    curvature: np.ndarray


class RowLikelihood(ABC):
    """ℓ_r(η_r), concave in η."""

    @abstractmethod
    def at(self, eta: np.ndarray) -> RowTerms: ...

    def slopes(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ℓ'(η) and −ℓ''(η) alone."""
        t = self.at(eta)
        return t.slope, t.curvature


@final
@dataclass(frozen=True)
class LogisticRows(RowLikelihood):
    """w {z η − log(1 + e^η)}: 𝓡^m of Theorem 7."""

    z: np.ndarray  # 1 for data, 0 for reference points
    w: np.ndarray

    def at(self, eta: np.ndarray) -> RowTerms:
        small, slope, curvature = self._parts(eta)
        value = float(self.w @ (self.z * eta - np.maximum(eta, 0.0) - np.log1p(small)))
        return RowTerms(value, slope, curvature)

    def slopes(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._parts(eta)[1:]

    def _parts(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """e^{−|η|}, ℓ', −ℓ'': one exponential, no overflow and no cancellation at either end."""
        small = np.exp(-np.abs(eta))
        less = 1.0 / (1.0 + small)  # max(p, 1 − p)
        p = np.where(eta >= 0, less, small * less)
        return small, self.w * (self.z - p), self.w * small * less * less


@final
@dataclass(frozen=True)
class PoissonRows(RowLikelihood):
    """a η − b e^η: data have a = w, b = 0; reference points a = 0, b = w/(k q)."""

    a: np.ndarray
    b: np.ndarray

    def at(self, eta: np.ndarray) -> RowTerms:
        with np.errstate(over="ignore"):
            mass = np.where(self.b > 0, self.b * np.exp(eta), 0.0)
        return RowTerms(float(self.a @ eta - mass.sum()), self.a - mass, mass)


@dataclass(frozen=True)
class Rows:
    """The rows of a contrast as a problem sees them; `unit` says which rows form one independent piece of the sum."""

    y: np.ndarray  # (N, d)
    arguments: tuple[Any, ...]  # contexts as f sees them, first axis N
    offset: np.ndarray  # (N,)
    data: np.ndarray  # (N,) bool: True for observations, False for reference points
    unit: np.ndarray  # (N,) int: the observation that the row belongs to (its context)
    randomisation: np.ndarray  # (N,) int: 0 for data, 1..R for reference points
    scheme: str  # "iid" where reference points are independent draws, else the name of the point scheme
    per_context: bool  # reference points belong to contexts (chains, regressions), or to all data alike (IID)
    group: np.ndarray | None = None  # (n,) cluster of each observation, for robust errors


@final
@dataclass(frozen=True)
class RowProblem(Problem):
    """max over (θ, ν) of Σ_r ℓ_r(f_θ(y_r|x_r) + ν_{g(r)} + offset_r)."""

    model: Model
    rows: Rows
    likelihood: RowLikelihood
    layout: Layout  # ν of each ROW: `of` has length N
    information_equality: bool  # with IID points and a correct model, −H is the covariance of the score
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    redraws: Callable[[], list[tuple[Rows, RowLikelihood]]] | None = None  # fresh points, to see how much they matter

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def start(self) -> np.ndarray:
        return self.model.start

    @property
    def concave(self) -> bool:
        return self.model.linear

    @cached_property
    def _statistics(self) -> np.ndarray | None:
        """∂f/∂θ once for all where f is linear."""
        return self.model.jacobian(self.start, self.rows.y, self.rows.arguments) if self.model.linear else None

    def log_f(self, theta: np.ndarray) -> np.ndarray:
        if self._statistics is not None:
            return self._statistics @ theta
        return self.model.log_f(theta, self.rows.y, self.rows.arguments)

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        if self._statistics is not None:
            return self._statistics
        return self.model.jacobian(theta, self.rows.y, self.rows.arguments)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.layout.of, weights=values, minlength=self.layout.size)[: self.layout.size]

    @cached_property
    def _near(self) -> dict[str, np.ndarray]:
        """The last ν*: the next θ is near, so that two or three steps from here do, where zero needs eight."""
        return {}

    def nu_star(self, base: np.ndarray) -> np.ndarray:
        """The maximising ν for η = base + ν: Newton in all constants at once, each step bounded (ℓ is concave)."""
        if self.layout.fixed is not None:
            return np.zeros(0)
        nu = self._near.get("nu", np.zeros(self.layout.size)).copy()
        for _ in range(200):
            slope, curvature = self.likelihood.slopes(base + nu[self.layout.of])
            step = np.clip(self._sum(slope) / np.maximum(self._sum(curvature), 1e-12), -2.0, 2.0)
            nu += step
            if np.max(np.abs(step)) < 1e-11 * (1 + np.max(np.abs(nu))):
                break
        if np.isfinite(nu).all():  # a wild trial step must not spoil the next
            self._near["nu"] = nu
        return nu.copy()

    def eta(self, theta: np.ndarray, nu: np.ndarray) -> np.ndarray:
        constant = self.layout.fixed if self.layout.fixed is not None else nu[self.layout.of]
        return self.log_f(theta) + constant + self.rows.offset

    def joint_value(self, theta: np.ndarray, nu: np.ndarray) -> float:
        """The objective at any (θ, ν)."""
        return self.likelihood.at(self.eta(theta, nu)).value

    def value(self, theta: np.ndarray) -> float:
        base = self.log_f(theta) + self.rows.offset
        return self.joint_value(theta, self.nu_star(base))

    def _blocks(self, theta: np.ndarray) -> tuple[RowTerms, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Terms, ν*, J, −H_θθ, −H_νθ (q, p), −H_νν (q,) at (θ, ν*(θ))."""
        nu = self.nu_star(self.log_f(theta) + self.rows.offset)
        t = self.likelihood.at(self.eta(theta, nu))
        J = self.jacobian(theta)
        WJ = t.curvature[:, None] * J
        A = J.T @ WJ - self.model.curvature(theta, self.rows.y, self.rows.arguments, t.slope)
        cross = np.stack([self._sum(WJ[:, j]) for j in range(J.shape[1])], axis=1)
        return t, nu, J, A, cross, self._sum(t.curvature)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        t, _, J, A, cross, d = self._blocks(theta)
        schur = A - (cross.T / np.maximum(d, 1e-300)) @ cross
        return Derivatives(t.value, J.T @ t.slope, schur, np.einsum("np,n,np->p", J, t.curvature, J))

    def unbounded(self, direction: np.ndarray) -> bool:
        """Complete separation along d: data lie at or beyond all reference points of their ν (Albert & Anderson)."""
        if not self.concave or self.layout.fixed is not None or self._statistics is None:
            return False
        score = self._statistics @ direction
        low = np.full(self.layout.size, np.inf)
        high = np.full(self.layout.size, -np.inf)
        data = self.rows.data
        np.minimum.at(low, self.layout.of[data], score[data])
        np.maximum.at(high, self.layout.of[~data], score[~data])
        width = float(np.max(score) - np.min(score))
        return bool(np.all(low >= high - 1e-9 * width)) and width > 0

    def solution(self, theta: np.ndarray) -> Solution:
        rows, p = self.rows, len(theta)
        t, nu, J, A, cross, d = self._blocks(theta)
        d = np.maximum(d, 1e-300)
        # Coordinates of the score: (θ, ν) jointly for one ν; θ alone for a fixed one; θ after profiling for many, where
        # a row's score becomes ℓ' (∂f + dν*/dθ).
        if self.layout.size == 1:
            X = np.column_stack([J, np.ones(len(J))])
            information = np.block([[A, cross.T], [cross, d[:, None]]])
        elif self.layout.fixed is not None:
            X, information = J, A
        else:
            X, information = J - (cross / d[:, None])[self.layout.of], A - (cross.T / d) @ cross
        errors = error_parts(
            Scores(t.slope[:, None] * X, rows.data, rows.unit, rows.randomisation, rows.group),
            information,
            iid_points=rows.scheme == "iid",
            per_context=rows.per_context,
            information_equality=self.information_equality,
            spread=None if self.redraws is None else self._reference_spread(theta, nu, cross, d),
        )
        nu_se = None
        if self.layout.fixed is not None:
            nu, nu_se = np.array([self.layout.fixed]), np.zeros(1)
        elif self.layout.size == 1:
            nu_se = np.sqrt(np.diag(errors.total)[p:])
        errors = errors.leading(p)
        notes = (*self.notes, *errors.notes)
        return Solution(theta, errors.total, nu, nu_se, t.value, t.value, notes, dict(self.about), errors)

    def _reference_spread(self, theta: np.ndarray, nu: np.ndarray, cross: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Σ2: the variance of the reference points' score sum at the estimate, over independent randomisations."""
        assert self.redraws is not None
        sums = []
        for rows, likelihood in self.redraws():
            again = replace(self, rows=rows, likelihood=likelihood, redraws=None)
            slope = np.where(rows.data, 0.0, likelihood.at(again.eta(theta, nu)).slope)
            total = slope @ again.jacobian(theta)
            if self.layout.size == 1:
                total = np.append(total, slope.sum())
            elif self.layout.fixed is None:
                total = total - self._sum(slope) @ (cross / d[:, None])
            sums.append(total)
        centred = np.array(sums) - np.mean(sums, axis=0)
        return centred.T @ centred / (len(sums) - 1)
