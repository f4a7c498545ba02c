"""Objectives that are sums over rows, Σ_r ℓ_r(η_r) with η = f_θ + ν + offset: logistic and importance-weighted Poisson.

The ν block is diagonal (each row has one ν), so it is profiled out whatever its size: 10⁵ constants cost a few sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from ..inference.evidence import Later, contrast_evidence
from ..inference.sandwich import ErrorParts, Scores, error_parts, iid_spread, penalty
from ..models.base import Model
from ..models.normalisers import Layout
from .base import Derivatives, Problem, Solution, View


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

    @abstractmethod
    def take(self, rows: np.ndarray) -> RowLikelihood:
        """The same for some of the rows."""

    @abstractmethod
    def more(self, c: float, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ℓ'(η) and −ℓ''(η) of a row had there been c times as many reference points, at the same (θ, ν)."""

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

    def more(self, c: float, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.slopes(eta - np.log(c))  # the log-odds hold log(n/m)

    def take(self, rows: np.ndarray) -> LogisticRows:
        return LogisticRows(self.z[rows], self.w[rows])

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

    def more(self, c: float, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return PoissonRows(self.a, self.b / c).slopes(eta)

    def take(self, rows: np.ndarray) -> PoissonRows:
        return PoissonRows(self.a[rows], self.b[rows])


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
    log_q: np.ndarray | None = None  # (N,) log q(y|x)
    weight: np.ndarray | None = None  # (N,) of the row's observation; None for all one


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
    redraws: Callable[[float], list[RowProblem]] | None = None  # on fresh points, c times as many

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

    def _sum(self, values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
        of = self.layout.of if of is None else of
        return np.bincount(of, weights=values, minlength=self.layout.size)[: self.layout.size]

    @cached_property
    def _near(self) -> dict[str, np.ndarray]:
        """The last ν*: the next θ is near, so that two or three steps from here do, where zero needs eight."""
        return {}

    def nu_star(self, base: np.ndarray) -> np.ndarray:
        """The maximising ν for η = base + ν: Newton in all constants at once, each step bounded (ℓ is concave)."""
        if self.layout.fixed is not None:
            return np.zeros(0)
        nu = self._near.get("nu", np.zeros(self.layout.size)).copy()
        likelihood, of = self.likelihood, self.layout.of
        for _ in range(200):
            slope, curvature = likelihood.slopes(base + nu[of])
            step = np.clip(self._sum(slope, of) / np.maximum(self._sum(curvature, of), 1e-12), -2.0, 2.0)
            nu += step
            moving = np.abs(step) >= 1e-6  # |ℓ'''| ≤ |ℓ''|: a step s leaves an error of at most about s²/2
            left = np.count_nonzero(moving)
            if not left:
                break
            if 4 * left < 3 * len(moving):  # go on with the rows whose constant still moves
                rows = np.flatnonzero(moving[of])
                likelihood, of, base = likelihood.take(rows), of[rows], base[rows]
        if np.isfinite(nu).all():  # a wild trial step must not spoil the next
            self._near["nu"] = nu
        return nu.copy()

    def eta(self, theta: np.ndarray, nu: np.ndarray) -> np.ndarray:
        return self.log_f(theta) + self._nu_rows(nu) + self.rows.offset

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

    def solution(self, theta: np.ndarray, view: View | None = None) -> Solution:
        rows, p = self.rows, len(theta)
        t, nu, J, A, cross, d = self._blocks(theta)
        d = np.maximum(d, 1e-300)
        X, information = self._coordinates(J, A, cross, d)
        errors = error_parts(
            Scores(t.slope[:, None] * X, rows.data, rows.unit, rows.randomisation, rows.group),
            information,
            iid_points=rows.scheme == "iid",
            per_context=rows.per_context,
            information_equality=self.information_equality,
            spread=None if self.redraws is None else self._reference_spread(theta, nu, cross, d),
            data_spread=self._model_spread(t, X) if self.information_equality and not rows.per_context else None,
            penalty=None if view is None else view.penalty,
        )
        nu_se = None
        if self.layout.fixed is not None:
            nu, nu_se = np.array([self.layout.fixed]), np.zeros(1)
        elif self.layout.size == 1:
            nu_se = np.sqrt(np.diag(errors.total)[p:])
        errors = errors.leading(p)
        notes = (*self.notes, *errors.notes)
        evidence = Later(lambda: self.evidence(theta, errors, view), rows.y.size + J.size)
        return Solution(theta, errors.total, nu, nu_se, t.value, t.value, notes, dict(self.about), errors, evidence)

    def _model_spread(self, t: RowTerms, X: np.ndarray) -> np.ndarray:
        """Σ1 of IID data under the model, from all rows: Σ p(1−p)² x xᵀ − g gᵀ/n, g = Σ p(1−p) x.

        Rows have intensity n f + m q, of which p is the data's share, so that ∫ h n f = Σ_rows p h; −g gᵀ/n as n is
        fixed (Prentice & Pyke 1979). With g from the data's scores alone, −g gᵀ/n is not along ν where the model
        is wrong, and spoils the slopes.
        """
        size = np.maximum(np.abs(t.slope), 1e-300)
        q = np.where(self.rows.data, 1.0 - t.curvature / size, t.curvature / size)  # 1 − p
        g = t.curvature @ X
        n = float(np.sum(self.rows.data))
        return X.T @ ((t.curvature * np.clip(q, 0.0, 1.0))[:, None] * X) - np.outer(g, g) / n

    def _coordinates(
        self, J: np.ndarray, A: np.ndarray, cross: np.ndarray, d: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """∂η by row and −H in the coordinates of the score: (θ, ν) jointly for one ν; θ alone for a fixed one; θ after
        profiling for many, where a row's score becomes ℓ' (∂f + dν*/dθ)."""
        if self.layout.size == 1:
            return np.column_stack([J, np.ones(len(J))]), np.block([[A, cross.T], [cross, d[:, None]]])
        if self.layout.fixed is not None:
            return J, A
        return J - (cross / d[:, None])[self.layout.of], A - (cross.T / d) @ cross

    def evidence(self, theta: np.ndarray, errors: ErrorParts, view: View | None) -> dict[str, Any]:
        rows, p = self.rows, len(theta)
        t, nu, J, A, cross, d = self._blocks(theta)
        d = np.maximum(d, 1e-300)
        eta = self.eta(theta, nu)

        names, variances, S = self.names, _diagonal(p), 0.0
        if view is not None:
            names, variances, S = view.names, view.variances, view.penalty

        def bread(c: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """ℓ' and ∂η by row, and H⁻¹, with c times as many points."""
            slope, curvature = self.likelihood.more(c, eta)
            curvature = np.where(rows.data, curvature, c * curvature)
            WJ = curvature[:, None] * J
            here = np.maximum(self._sum(curvature), 1e-300)
            crossed = np.stack([self._sum(WJ[:, j]) for j in range(p)], axis=1)
            X, information = self._coordinates(J, J.T @ WJ, crossed, here)
            return slope, X, np.linalg.inv(information + S)

        def parts(c: float) -> tuple[np.ndarray, np.ndarray]:
            """Variances of θ̂ with c times as many IID points: total (had it the information equality), reference."""
            slope, X, V = bread(c)
            r = (slope[:, None] * X)[~rows.data]
            meat = c * iid_spread(r, rows.unit[~rows.data], rows.per_context, evenly=rows.scheme != "iid")
            return variances(V), variances(V @ meat @ V)

        def measured(c: float) -> np.ndarray:
            V = bread(c)[2]
            return variances(V @ self._reference_spread(theta, nu, cross, d, c) @ V)

        ncic = None
        if self.layout.size <= 1:
            X, information = self._coordinates(J, A, cross, d)
            spread = None if self.redraws is None else self._reference_spread(theta, nu, cross, d)
            scores = Scores(t.slope[:, None] * X, rows.data, rows.unit, rows.randomisation, None)
            ncic = penalty(scores, information, rows.scheme == "iid", rows.per_context, spread, rows.weight)
        log_w = None if rows.log_q is None else self.log_f(theta) + self._nu_rows(nu) - rows.log_q
        total, sampling, reference = (variances(V) for V in (errors.total, errors.sampling, errors.reference))
        return contrast_evidence(
            names,
            parts,
            ErrorParts(np.diag(total), np.diag(sampling), np.diag(reference)),
            self.information_equality,
            log_w,
            rows.data,
            value=t.value,
            penalty=ncic,
            measured=None if self.redraws is None else measured,
            least=self.about["sets"] / (self.about["k"] or self.about["m"]),
        )

    def _nu_rows(self, nu: np.ndarray) -> np.ndarray | float:
        return self.layout.fixed if self.layout.fixed is not None else nu[self.layout.of]

    def _reference_spread(
        self, theta: np.ndarray, nu: np.ndarray, cross: np.ndarray, d: np.ndarray, times: float = 1.0
    ) -> np.ndarray:
        """Σ2: the variance of the reference points' score sum at the estimate, over independent randomisations."""
        assert self.redraws is not None
        sums = []
        for again in self.redraws(times):
            slope = np.where(again.rows.data, 0.0, again.likelihood.slopes(again.eta(theta, nu))[0])
            total = slope @ again.jacobian(theta)
            if self.layout.size == 1:
                total = np.append(total, slope.sum())
            elif self.layout.fixed is None:
                total = total - again._sum(slope) @ (cross / d[:, None])
            sums.append(total)
        centred = np.array(sums) - np.mean(sums, axis=0)
        return centred.T @ centred / (len(sums) - 1)


def _diagonal(p: int) -> Callable[[np.ndarray], np.ndarray]:
    """The variances of the first p coordinates."""
    return lambda V: np.diag(V)[:p]
