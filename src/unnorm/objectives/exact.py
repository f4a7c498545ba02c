"""𝓛(θ) by quadrature or enumeration, and 𝓜(θ, ν) by the same integrals (Section 2 and Appendix A of the paper)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.numerics import Rng, quadratic_forms
from ..data.observations import Observations
from ..domains.base import Quadrature
from ..errors import CombinationError, InputError, UnnormWarning
from ..inference.sandwich import ErrorParts, clustered, sum_by
from ..models.base import Context, DataTerms, Model, Moments, Unnormalised
from ..models.normalisers import Constant, Layout, Normaliser, PerContext
from .base import Derivatives, Objective, Problem, Solution, View, cluster_labels
from .smooth import SmoothProblem, SmoothRows, poisson_rows

QUADRATURE_TOLERANCE = 1e-9  # of log Z, against the rule of twice the order; far below any standard error
MOST_DOUBLINGS = 5
MOST_ROWS = 50_000_000  # of the Poisson likelihood with smooth terms


@dataclass(frozen=True)
class Integrals:
    """∫ · exp f_θ(y|x_u) dy for every distinct context, by one rule on Ω."""

    model: Model
    context: Context
    rule: Quadrature
    order: int | None  # None on finite domains: enumeration
    open: bool = True  # whether the order is ours to raise
    doublings: int = 0

    @cached_property
    def log_w(self) -> np.ndarray:
        return np.log(self.rule.weights)

    def log_z(self, theta: np.ndarray) -> np.ndarray:
        return self.model.log_z(theta, self.rule.points, self.log_w, self.context)

    def moments(self, theta: np.ndarray, log_a: np.ndarray, tilt: bool) -> Any:
        return self.model.moments(theta, self.rule.points, self.log_w, self.context, log_a, tilt)

    def finer(self) -> Integrals:
        """The rule of twice the order."""
        order = 2 * (self.order or 1)
        return replace(self, rule=self.model.domain.quadrature(order), order=order, doublings=self.doublings + 1)

    def finest(self) -> Integrals:
        """The yardstick: twice the order, and never below the domain's own default, to miss no narrow peak."""
        order = max(2 * (self.order or 1), self.model.domain.default_order or 1)
        return replace(self, rule=self.model.domain.quadrature(order), order=order)

    def error(self, theta: np.ndarray, most: int = 200) -> float:
        """max_u |log Z_u − log Z_u by the finest rule| over at most `most` contexts spread over the data."""
        if self.rule.exact:
            return 0.0
        some = np.unique(np.linspace(0, self.context.size - 1, min(most, self.context.size)).astype(int))
        part = replace(self, context=Context(self.context.at(some), np.arange(len(some)), len(some)))
        return float(np.max(np.abs(part.log_z(theta) - part.finest().log_z(theta))))


@dataclass(frozen=True)
class IntegratedProblem(Problem):
    """What 𝓛 and 𝓜 share: Σ_t w_t f_θ(y_t|x_t), and integrals over Ω for each distinct context."""

    model: Model
    data: DataTerms
    integrals: Integrals
    weight: np.ndarray  # (n,) w_t
    layout: Layout
    offset: np.ndarray  # (n,) known part of f
    group: np.ndarray | None = None  # (n,) cluster of each observation, for robust errors
    jacobian: Callable[[np.ndarray], np.ndarray] | None = None  # θ → (n, p) ∂f at the observations, where clustered

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
    def context_weight(self) -> np.ndarray:
        """(U,) total weight of the observations in each distinct context."""
        return np.bincount(self.integrals.context.of, self.weight, self.integrals.context.size)

    @cached_property
    def _log_context_weight(self) -> np.ndarray:
        with np.errstate(divide="ignore"):  # −∞ where nothing weighs
            return np.log(self.context_weight)

    def _sum(self, rows: np.ndarray) -> np.ndarray:
        """Σ over the observations that share a ν."""
        return np.bincount(self.layout.of, weights=rows, minlength=self.layout.size)[: self.layout.size]

    def nu_star(self, log_z: np.ndarray) -> np.ndarray:
        """ν*(θ) = log Σ w_t − log Σ w_t e^{offset_t} Z_t over the observations that share it (−log Z where alone)."""
        if self.layout.fixed is not None:
            return np.zeros(0)
        rows = self.offset + log_z[self.integrals.context.of]
        top = np.full(self.layout.size, -np.inf)
        np.maximum.at(top, self.layout.of, rows)
        return np.log(self._sum(self._live)) - top - np.log(self._sum(self._live * np.exp(rows - top[self.layout.of])))

    @cached_property
    def _live(self) -> np.ndarray:
        """w_t, or 1 where nothing that shares its ν weighs: ν is −log Z there all the same."""
        return np.where(self._sum(self.weight)[self.layout.of] > 0, self.weight, 1.0)

    def constants(self, theta: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ν* and its standard errors, by dν*/dθ = −E_θ[∂f], weighted over the observations that share it.

        The joint inverse of 𝓜's Hessian adds 1/Σw to var(ν), the noise of a Poisson count that the data do not have: n
        is known (as for the intercept of a case-control study, Prentice & Pyke 1979).
        """
        if self.layout.fixed is not None:
            return np.array([self.layout.fixed]), np.zeros(1)
        m = self.integrals.moments(theta, self._log_context_weight, tilt=False)
        nu = self.nu_star(m.log_z)
        return nu, np.sqrt(quadratic_forms(self._slope(nu, m)[0], covariance))

    def _slope(self, nu: np.ndarray, m: Moments) -> tuple[np.ndarray, np.ndarray]:
        """−dν*/dθ (q, p), and e^{offset_t + ν_t} Z_t (n,): one where an observation has a ν of its own."""
        of = self.integrals.context.of
        mass = np.exp(self.offset + m.log_z[of] + nu[self.layout.of])
        share = self._live * mass / self._sum(self._live)[self.layout.of]
        return np.stack([self._sum(share * m.mean[of, j]) for j in range(m.mean.shape[1])], axis=1), mass

    def errors(self, theta: np.ndarray, covariance: np.ndarray, view: View | None) -> ErrorParts | None:
        """With clusters, the covariance and its robust version, from g_t = w_t {∂f_t − e_t E_t − (1 − e_t) Ē}, where
        e_t = e^{ν_t} Z_t, E_t = E_θ[∂f|x_t] and Ē is its mean over the observations that share ν_t."""
        if self.group is None or self.jacobian is None:
            return None
        m = self.integrals.moments(theta, self._log_context_weight, tilt=False)
        mean = m.mean[self.integrals.context.of]
        if self.layout.fixed is None:
            slope, mass = self._slope(self.nu_star(m.log_z), m)
            shared = slope[self.layout.of]
        else:
            mass = np.exp(self.offset + m.log_z[self.integrals.context.of] + self.layout.fixed)
            shared = np.zeros_like(mean)
        g = self.jacobian(theta) - mass[:, None] * mean - (1.0 - mass)[:, None] * shared
        sums = sum_by(self.weight[:, None] * g, self.group, int(self.group.max()) + 1)
        robust = clustered(sums, covariance, None if view is None else view.penalty)
        return ErrorParts(covariance, covariance, np.zeros_like(covariance), (), robust)

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether every observation sits at the edge in direction d: Σ_t w_t d·s(y_t|x_t) = Σ_t w_t max_y d·s(y|x_t).

        max_y d·s is had as log Z(c d)/c for large c, so that no further integral is needed.
        """
        if not self.concave or self.layout.fixed is not None:
            return False

        def edge(c: float) -> float:
            return float(self.context_weight @ self.integrals.log_z(c * direction)) / c

        c = 1e9 / max(np.max(np.abs(direction)), 1e-300)  # log |Ω| / c must vanish beside the tolerance
        width = edge(c) - edge(-c)
        c *= max(1.0, float(self.weight.sum()) / max(width * c * 1e-6, 1e-6))
        return self.data.value(direction) >= edge(c) - 1e-6 * width

    def finer(self) -> Problem | None:
        finer = _finer(self.integrals)
        return None if finer is None else replace(self, integrals=finer)

    def refined(self, theta: np.ndarray) -> Problem | None:
        return self.finer() if self.integrals.error(theta) > QUADRATURE_TOLERANCE else None


@final
@dataclass(frozen=True)
class ExactProblem(IntegratedProblem):
    """𝓛(θ) = Σ_t w_t {f_θ(y_t|x_t) − log ∫ exp f_θ(y|x_t) dy} (eqs 2.2 and 2.4)."""

    def value(self, theta: np.ndarray) -> float:
        return self.data.value(theta) - float(self.context_weight @ self.integrals.log_z(theta))

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        value, gradient, hessian = self.data.derivatives(theta)
        m = self.integrals.moments(theta, self._log_context_weight, tilt=False)
        weighted = self.context_weight[:, None] * m.mean
        return Derivatives(
            value - float(self.context_weight @ m.log_z),
            gradient - weighted.sum(axis=0),
            m.second - weighted.T @ m.mean - hessian,  # n Cov(∂f) where f is linear: Appendix B.2, corrected
            np.diag(m.second),
        )

    def solution(self, theta: np.ndarray, view: View | None = None) -> Solution:
        d = self.derivatives(theta)
        covariance = np.linalg.inv(d.information if view is None else d.information + view.penalty)
        nu, nu_se = self.constants(theta, covariance)
        errors = self.errors(theta, covariance, view)
        return Solution(theta, covariance, nu, nu_se, d.value, d.value, *_accuracy(self.integrals, theta), errors)


@dataclass(frozen=True)
class JointDerivatives:
    """𝓜 at (θ, ν) with its blocks: the ν block is diagonal, since each integral has one ν."""

    value: float
    gradient_theta: np.ndarray  # (p,)
    gradient_nu: np.ndarray  # (q,)
    hessian_theta: np.ndarray  # (p, p)
    hessian_cross: np.ndarray  # (q, p)
    hessian_nu: np.ndarray  # (q,) diagonal


@final
@dataclass(frozen=True)
class PoissonProblem(IntegratedProblem):
    """𝓜(θ, ν) = Σ_t w_t {f_θ(y_t|x_t) + ν_t} − Σ_t w_t ∫ exp{f_θ(y|x_t) + ν_t} dy (eqs 2.3 and 2.5).

    θ is what the solver moves; ν is eliminated by its closed form ν*(θ) and, in the Hessian, by its Schur complement.
    """

    @cached_property
    def constant(self) -> float:
        """Σ w_t offset_t."""
        return float(self.weight @ self.offset)

    def per_row(self, nu: np.ndarray) -> np.ndarray:
        """ν_t for each observation."""
        return np.full(len(self.weight), self.layout.fixed) if self.layout.fixed is not None else nu[self.layout.of]

    def joint_value(self, theta: np.ndarray, nu: np.ndarray) -> float:
        """𝓜(θ, ν)."""
        return self._joint_value(theta, nu, self.integrals.log_z(theta))

    def _joint_value(self, theta: np.ndarray, nu: np.ndarray, log_z: np.ndarray) -> float:
        nu_t = self.per_row(nu)
        mass = self.weight * np.exp(self.offset + nu_t + log_z[self.integrals.context.of])
        return self.data.value(theta) + float(self.weight @ nu_t) + self.constant - float(mass.sum())

    def joint_derivatives(self, theta: np.ndarray, nu: np.ndarray) -> JointDerivatives:
        """Appendix A: value, gradient and Hessian of 𝓜 in (θ, ν), by blocks."""
        of = self.integrals.context.of
        nu_t = self.per_row(nu)
        a = np.bincount(of, weights=self.weight * np.exp(self.offset + nu_t), minlength=self.integrals.context.size)
        value, gradient, hessian = self.data.derivatives(theta)
        with np.errstate(divide="ignore"):
            m = self.integrals.moments(theta, np.log(a), tilt=True)
        mass = self.weight * np.exp(self.offset + nu_t + m.log_z[of])  # (n,) w_t e^{ν_t} Z_t
        context_mass = a * np.exp(m.log_z)
        cross = np.stack([self._sum(mass * m.mean[of, j]) for j in range(m.mean.shape[1])], axis=1)
        total = self._sum(mass)
        return JointDerivatives(
            value=value + float(self.weight @ nu_t) + self.constant - float(mass.sum()),
            gradient_theta=gradient - context_mass @ m.mean,
            gradient_nu=self._sum(self.weight) - total,
            hessian_theta=hessian - m.second,
            hessian_cross=-cross,
            hessian_nu=-total,
        )

    def value(self, theta: np.ndarray) -> float:
        log_z = self.integrals.log_z(theta)
        return self._joint_value(theta, self.nu_star(log_z), log_z)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        d = self.joint_derivatives(theta, self.nu_star(self.integrals.log_z(theta)))
        # Block inversion (Appendix B.1): C⁻¹ = −(H_θθ − H_θν H_νν⁻¹ H_νθ); ∂𝓜/∂ν = 0 at ν*.
        schur = d.hessian_theta - (d.hessian_cross.T / np.minimum(d.hessian_nu, -1e-300)) @ d.hessian_cross
        return Derivatives(d.value, d.gradient_theta, -schur, -np.diag(d.hessian_theta))

    def solution(self, theta: np.ndarray, view: View | None = None) -> Solution:
        d = self.derivatives(theta)
        covariance = np.linalg.inv(d.information if view is None else d.information + view.penalty)
        nu, nu_se = self.constants(theta, covariance)
        loglik = d.value + float(self.weight.sum())  # 𝓛 = 𝓜 + n at ν*, which takes the offsets up
        errors = self.errors(theta, covariance, view)
        return Solution(theta, covariance, nu, nu_se, loglik, d.value, *_accuracy(self.integrals, theta), errors)


def _accuracy(integrals: Integrals, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Notes and figures on how well the integrals are known at the estimate."""
    error = integrals.error(theta)
    about = {"quadrature": integrals.rule.rule, "nodes": len(integrals.rule.points), "quadrature_error": error}
    about["order"] = integrals.order
    notes: tuple[str, ...] = ()
    if error > 1e-4:
        note = (
            f"The normalising integrals are off by up to {error:.1g} on the log scale with "
            f"{len(integrals.rule.points)} nodes; pass a larger order= to the objective, or use un.Logistic."
        )
        warnings.warn(note, UnnormWarning, stacklevel=2)
        notes = (note,)
    return notes, about


def _finer(integrals: Integrals) -> Integrals | None:
    """The rule of twice the order, where the user left the order open and the domain has one."""
    if integrals.rule.exact or not integrals.open or integrals.doublings >= MOST_DOUBLINGS:
        return None
    try:
        return integrals.finer()
    except InputError:  # the domain refuses so many nodes
        return None


def _parts(
    model: Model, obs: Observations, order: int | None, layout: Layout, cluster: str | tuple[str, ...] | None
) -> tuple[Any, ...]:
    """The fields that every `IntegratedProblem` has."""
    context = model.contexts(obs)
    rows = context.at(context.of)
    default = model.domain.default_order
    is_open = order is None and default is not None
    if order is None and default is not None:
        order = max(8, default // 4)  # smooth f needs few nodes; `refined` doubles them until log Z is known to 1e-9
    integrals = Integrals(model, context, model.domain.quadrature(order), order, is_open)
    offset = obs.offsets if obs.has_context else np.full(obs.n, obs.shared_offset)
    data = model.data_terms(obs.outcome, rows, obs.weights)
    group = cluster_labels(cluster, obs)

    def jacobian(theta: np.ndarray) -> np.ndarray:
        return model.jacobian(theta, obs.outcome, rows)

    return model, data, integrals, obs.weights, layout, offset, group, None if group is None else jacobian


def _quadrature_rows(obs: Observations, rule: Quadrature) -> SmoothRows:
    """Σ_t w_t η_t − Σ_t w_t Σ_j W_j exp η_tj as rows, those of one context together; IID data share the nodes."""
    N, d = rule.points.shape
    weights = obs.weights
    if obs.has_context:
        y = np.empty((obs.n, N + 1, d))
        y[:, 0], y[:, 1:] = obs.outcome, rule.points
        at = np.repeat(np.arange(obs.n), N + 1)
        data = np.zeros((obs.n, N + 1), dtype=bool)
        data[:, 0] = True
        b = np.concatenate([np.zeros((obs.n, 1)), weights[:, None] * rule.weights], axis=1).ravel()
        y, data = y.reshape(-1, d), data.ravel()
        a = np.where(data, np.repeat(weights, N + 1), 0.0)
        offset = np.repeat(obs.offsets, N + 1)
    else:
        y = np.concatenate([obs.outcome, rule.points])
        at = np.concatenate([np.arange(obs.n), np.zeros(N, dtype=np.intp)])
        data = np.arange(obs.n + N) < obs.n
        a = np.concatenate([weights, np.zeros(N)])
        b = np.concatenate([np.zeros(obs.n), weights.sum() * rule.weights])
        offset = np.full(obs.n + N, obs.shared_offset)
    response, row_weights = poisson_rows(a, b)
    return SmoothRows(y, at, data, response, row_weights, offset)


@final
@dataclass(frozen=True)
class Exact(Objective):
    """The log-likelihood 𝓛(θ), its integrals by quadrature or enumeration.

    Args:
        order: size of the quadrature rule; left open, it is doubled until log Z is known to 1e-9.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.
    """

    order: int | None = None
    cluster: str | tuple[str, ...] | None = None

    def default_normaliser(self, obs: Observations) -> Normaliser:
        return PerContext() if obs.has_context else Constant()

    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> ExactProblem:
        layout = normaliser.layout(obs)
        if layout.size != self.default_normaliser(obs).layout(obs).size:
            raise CombinationError(
                f"Exact() integrates the constants out, so its normaliser can only be {self.default_normaliser(obs)!r} "
                f"here; got {normaliser!r}. Leave normaliser out, or use objective=un.Poisson()."
            )
        return ExactProblem(*_parts(model, obs, self.order, layout, self.cluster))

    def to_dict(self) -> dict[str, Any]:
        return {"objective": "Exact", "order": self.order}


@final
@dataclass(frozen=True)
class Poisson(Objective):
    """The Poisson transform 𝓜(θ, ν), its integrals by quadrature or enumeration.

    Args:
        order: size of the quadrature rule; left open, it is doubled until log Z is known to 1e-9.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.
    """

    order: int | None = None
    cluster: str | tuple[str, ...] | None = None

    def default_normaliser(self, obs: Observations) -> Normaliser:
        return PerContext() if obs.has_context else Constant()

    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> PoissonProblem:
        layout = normaliser.layout(obs)
        layout.check(obs)
        return PoissonProblem(*_parts(model, obs, self.order, layout, self.cluster))

    def by_rows(self, obs: Observations, normaliser: Normaliser) -> bool:
        return normaliser.terms is not None or normaliser.layout(obs).size == 1

    def smooth(self, model: Unnormalised, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> SmoothProblem:
        """𝓜_χ (eq. 2.6) as Poisson rows: each context's observation, then the nodes of the rule with their weights."""
        default = model.domain.default_order
        order = self.order if self.order is not None or default is None else max(12, default // 3)
        rule = model.domain.quadrature(order)
        n, nodes = (obs.n if obs.has_context else 1), len(rule.points)
        if n * nodes > MOST_ROWS:
            raise InputError(
                f"Poisson() by quadrature needs {n * nodes:,} rows here ({n:,} contexts × {nodes:,} nodes; the limit "
                f"is {MOST_ROWS:,}). Pass a smaller order=, or use un.Logistic(…)."
            )
        return SmoothProblem(
            model=model,
            normaliser=normaliser,
            obs=obs,
            family="poisson",
            rows=_quadrature_rows(obs, rule),
            iid_points=None,
            clusters=cluster_labels(self.cluster, obs),
            about={"quadrature": rule.rule, "nodes": nodes, "order": order},
        )

    def to_dict(self) -> dict[str, Any]:
        return {"objective": "Poisson", "order": self.order}


__all__ = ["Exact", "ExactProblem", "JointDerivatives", "Poisson", "PoissonProblem"]
