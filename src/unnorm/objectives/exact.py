"""𝓛(θ) by quadrature or enumeration, and 𝓜(θ, ν) by the same integrals (Section 2 and Appendix A of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.numerics import Rng
from ..data.observations import Observations
from ..domains.base import Quadrature
from ..errors import CombinationError, InputError, warn
from ..models.base import DataTerms, Model, Moments, Unnormalised
from ..models.normalisers import Constant, Layout, Normaliser, PerContext
from .additive import AdditiveProblem
from .base import Cluster, Constants, Derivatives, ModelProblem, Objective, ParametricProblem
from .integrals import CentredIntegrals, ContextIntegrals, Integrals, centred_integrals
from .likelihood import POISSON, RowLikelihood
from .rows import ArrayRows, Rows
from .scores import Drawn, Reselection, Scores, frequency, sum_by

QUADRATURE_TOLERANCE = 1e-9  # of log Z, against the rule of twice the order; far below any standard error
AT_EDGE = 1e-10  # of a statistic's range: beside steps of 1e-4 of Ω, squares within 1e-8 of their maximum are inside
MOST_DOUBLINGS = 5
FEWEST = 12  # nodes along an axis to begin with, and a third of the domain's own: two doublings show how fast f̂ settles
MOST_REFINED = 1_000_000  # rows of contexts and nodes up to which a rule is doubled
MOST_ORDER = 2048  # nodes along an axis: a Gauss rule of m costs m², a second at 4,000 and minutes at 50,000
MOST_SHARED = 300_000  # nodes, where all observations share them
MOST_ROWS = 50_000_000  # of the Poisson likelihood with smooth terms


@dataclass(frozen=True)
class IntegratedProblem(ModelProblem):
    """What 𝓛 and 𝓜 share: Σ_t w_t f_θ(y_t|x_t), and integrals over Ω for each distinct context."""

    model: Model
    obs: Observations
    data: DataTerms
    integrals: ContextIntegrals
    layout: Layout
    offset: np.ndarray  # (n,) known part of f
    centred: CentredIntegrals | None = None  # for a chain whose f is too sharp for the shared rule

    @cached_property
    def weight(self) -> np.ndarray:
        """(n,) w_t."""
        return self.obs.weights

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

    def constants(self, theta: np.ndarray) -> Constants:
        """ν*, and −dν*/dθ = E_θ[∂f], weighted over the observations that share it.

        The joint inverse of 𝓜's Hessian adds 1/Σw to var(ν), the noise of a Poisson count that the data do not have: n
        is known (as for the intercept of a case-control study, Prentice & Pyke 1979).
        """
        if self.layout.fixed is not None:
            return Constants(np.array([self.layout.fixed]), known=True)
        m = self.integrals.moments(theta, self._log_context_weight, tilt=False)
        nu = self.nu_star(m.log_z)
        return Constants(nu, self._slope(nu, m)[0])

    def _slope(self, nu: np.ndarray, m: Moments) -> tuple[np.ndarray, np.ndarray]:
        """−dν*/dθ (q, p), and e^{offset_t + ν_t} Z_t (n,): one where an observation has a ν of its own."""
        of = self.integrals.context.of
        mass = np.exp(self.offset + m.log_z[of] + nu[self.layout.of])
        share = self._live * mass / self._sum(self._live)[self.layout.of]
        return np.stack([self._sum(share * m.mean[of, j]) for j in range(m.mean.shape[1])], axis=1), mass

    def scores(self, theta: np.ndarray) -> IntegratedScores:
        information = self.derivatives(theta).information
        return IntegratedScores(self, theta, information, float(self.weight.sum()))

    def by_observation(self, theta: np.ndarray) -> np.ndarray:
        """(n, p) the score of one copy of each observation, ν profiled out: g_t = ∂f_t − e_t E_t − (1 − e_t) Ē, where
        e_t = e^{ν_t} Z_t, E_t = E_θ[∂f|x_t] and Ē is its mean over the observations that share ν_t."""
        m = self.integrals.moments(theta, self._log_context_weight, tilt=False)
        mean = m.mean[self.integrals.context.of]
        if self.layout.fixed is None:
            slope, mass = self._slope(self.nu_star(m.log_z), m)
            shared = slope[self.layout.of]
        else:
            mass = np.exp(self.offset + m.log_z[self.integrals.context.of] + self.layout.fixed)
            shared = np.zeros_like(mean)
        context = self.integrals.context
        J = self.model.jacobian(theta, self.obs.outcome, context.at(context.of))
        return J - mass[:, None] * mean - (1.0 - mass)[:, None] * shared

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        return _accuracy(self.integrals, theta)

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether every observation sits at the edge in direction d: Σ_t w_t d·s(y_t|x_t) = Σ_t w_t max_y d·s(y|x_t).

        max_y d·s is log Z(c d)/c for large c, so that no further integral is needed.
        """
        if not self.concave or self.layout.fixed is not None:
            return False

        def edge(c: float) -> float:
            return float(self.context_weight @ self.integrals.log_z(c * direction)) / c

        c = 1e9 / max(np.max(np.abs(direction)), 1e-300)
        width = edge(c) - edge(-c)
        c *= max(1.0, 50.0 * float(self.weight.sum()) / max(width * c * AT_EDGE, 1e-6))  # log |Ω| / c must vanish
        top = edge(c)
        return self.data.value(direction) >= top - AT_EDGE * width - 1e-13 * abs(top)

    def finer(self) -> ParametricProblem | None:
        """Centred rules, where there are any: a shared one that puts the maximum at infinity has missed the peaks."""
        return self._with(_finer(self.integrals) if self.centred is None else self.centred)

    def _with(self, integrals: ContextIntegrals | None) -> ParametricProblem | None:
        if integrals is None:
            return None
        return replace(self, integrals=integrals, centred=None if integrals is self.centred else self.centred)

    def refined(self, theta: np.ndarray) -> ParametricProblem | None:
        """Twice the order, or centred rules where these serve better."""
        if self.integrals.error(theta) <= QUADRATURE_TOLERANCE:
            return None
        doubled = _finer(self.integrals)
        if self.centred is None or doubled is None:
            return self._with(self.centred if doubled is None else doubled)
        twice = doubled.error(theta)
        enough = twice <= QUADRATURE_TOLERANCE or twice <= self.centred.error(theta)
        return self._with(doubled if enough else self.centred)


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
        value, gradient, hessian = self.data.derivatives(theta)
        top = np.full(self.integrals.context.size, -np.inf)  # in logs: ν = −log Z may be far beyond what exp can take
        np.maximum.at(top, of, self.offset + nu_t)
        a = np.bincount(of, weights=self.weight * np.exp(self.offset + nu_t - top[of]), minlength=len(top))
        with np.errstate(divide="ignore"):
            log_a = top + np.log(a)
        m = self.integrals.moments(theta, log_a, tilt=True)
        mass = self.weight * np.exp(self.offset + nu_t + m.log_z[of])  # (n,) w_t e^{ν_t} Z_t
        context_mass = np.exp(log_a + m.log_z)
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

    def loglik(self, theta: np.ndarray) -> float:
        """𝓛 = 𝓜 + n at ν*, which takes the offsets up."""
        return self.value(theta) + float(self.weight.sum())


@final
@dataclass(frozen=True)
class IntegratedScores(Scores):
    """Scores of 𝓛 and 𝓜 with their constants profiled out: no reference points, one unit for each observation."""

    problem: IntegratedProblem
    theta: np.ndarray
    information: np.ndarray
    weight: float
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None

    drawn = Drawn.NONE
    model_based = True
    shared = False

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.theta)

    def points_spread(self, power: int) -> np.ndarray:
        return np.zeros((self.size, self.size))

    def data_spread(self) -> np.ndarray:
        return self.information

    def empirical_spread(self) -> np.ndarray:
        g = self.problem.by_observation(self.theta)
        return frequency(self.weight) * g.T @ (self.problem.weight[:, None] * g)

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        return sum_by(self.problem.weight[:, None] * self.problem.by_observation(self.theta), label, count)

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(label, self.problem.weight, count)


def _accuracy(integrals: ContextIntegrals, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Notes and figures on how well the integrals are known at the estimate."""
    error, (rule, order) = integrals.error(theta), integrals.named
    about: dict[str, Any] = {"quadrature": rule, "nodes": integrals.each, "quadrature_error": error, "order": order}
    notes: tuple[str, ...] = ()
    if error > 1e-4:
        note = (
            f"The normalising integrals are off by up to {error:.1g} on the log scale with "
            f"{integrals.each} nodes; pass a larger order= to the objective, or use un.Logistic."
        )
        warn(note, stacklevel=2)
        notes = (note,)
    return notes, about


def _refuse_anchored(objective: Objective, normaliser: Normaliser) -> None:
    if normaliser.anchored:
        raise CombinationError(
            f"{objective.name}() integrates over Ω itself, and there is nothing to anchor: leave normaliser out (got "
            f"{normaliser!r}), or use objective=un.Logistic(…)."
        )


def _own(obs: Observations) -> Normaliser:
    """One constant for IID data, else one for each context: what 𝓛 integrates out, and 𝓜 needs to equal it."""
    return PerContext() if obs.has_context else Constant()


def _finer(integrals: ContextIntegrals) -> ContextIntegrals | None:
    """The rule of twice the order, where the user left the order open and the domain has one."""
    if integrals.exact or not integrals.open or integrals.doublings >= MOST_DOUBLINGS:
        return None
    try:
        return integrals.finer()
    except InputError:  # the domain refuses so many nodes
        return None


def _parts(model: Model, obs: Observations, order: int | None, layout: Layout) -> tuple[Any, ...]:
    """The fields that every `IntegratedProblem` has."""
    context = model.contexts(obs)
    default = model.domain.default_order
    is_open = order is None and default is not None
    if order is None and default is not None:
        order = max(8, default // 4)  # smooth f needs few nodes; `refined` doubles them until log Z is known to 1e-9
    integrals = Integrals(model, context, model.quadrature(order), order, is_open)
    offset = obs.offsets if obs.has_context else np.full(obs.n, obs.shared_offset)
    data = model.data_terms(obs.outcome, context.at(context.of), obs.weights)
    centred = centred_integrals(model, context, obs, 2 * order) if is_open and order is not None else None
    return model, obs, data, integrals, layout, offset, centred


def _quadrature_rows(obs: Observations, rule: Quadrature) -> ArrayRows:
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
        at = np.concatenate([np.arange(obs.n), np.full(N, -1)])
        data = np.arange(obs.n + N) < obs.n
        a = np.concatenate([weights, np.zeros(N)])
        b = np.concatenate([np.zeros(obs.n), weights.sum() * rule.weights])
        offset = np.full(obs.n + N, obs.shared_offset)
    weight = None
    if obs.weight is not None:
        weight = np.repeat(weights, N + 1) if obs.has_context else np.concatenate([weights, np.ones(N)])
    return ArrayRows(Rows(y, at, data, RowLikelihood(POISSON, a, b), offset, weight), shared=not obs.has_context)


@final
@dataclass(frozen=True)
class Exact(Objective):
    """The log-likelihood 𝓛(θ), its integrals by quadrature or enumeration.

    Args:
        order: size of the quadrature rule; left open, it is doubled until log Z is known to 1e-9.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.
    """

    order: int | None = None
    cluster: Cluster = None

    loss = "poisson"  # 𝓛 and 𝓜 have the same maximum (Theorem 1), and 𝓜's gradient is the unbiased one

    def is_likelihood(self, obs: Observations, normaliser: Normaliser) -> bool:
        return True

    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        return _own(obs)

    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> ExactProblem:
        _refuse_anchored(self, normaliser)
        layout = normaliser.layout(obs)
        if layout.size != _own(obs).layout(obs).size:
            raise CombinationError(
                f"Exact() integrates the constants out, so its normaliser can only be {_own(obs)!r} "
                f"here; got {normaliser!r}. Leave normaliser out, or use objective=un.Poisson()."
            )
        return ExactProblem(*_parts(model, obs, self.order, layout))

    def to_dict(self) -> dict[str, Any]:
        return {"objective": "Exact", "order": self.order, "cluster": self.cluster}


@final
@dataclass(frozen=True)
class Poisson(Objective):
    """The Poisson transform 𝓜(θ, ν), its integrals by quadrature or enumeration.

    Args:
        order: size of the quadrature rule; left open, it is doubled until log Z is known to 1e-9, and with smooth terms
            in f or χ until f̂ moves by less than 0.05 standard errors (a note says so where that takes too many rows).
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.
    """

    order: int | None = None
    cluster: Cluster = None

    loss = "poisson"

    def is_likelihood(self, obs: Observations, normaliser: Normaliser) -> bool:
        """𝓜's maximum is 𝓛's where each constant is free (Theorems 1 and 2); a χ that is not leaves 𝓜 below 𝓛 − n."""
        if normaliser.of_context:
            return False
        return normaliser.layout(obs).size == _own(obs).layout(obs).size

    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        return _own(obs)

    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> PoissonProblem:
        _refuse_anchored(self, normaliser)
        layout = normaliser.layout(obs)
        layout.check(obs)
        return PoissonProblem(*_parts(model, obs, self.order, layout))

    def by_rows(self, obs: Observations, normaliser: Normaliser) -> bool:
        return normaliser.terms is not None or normaliser.layout(obs).size == 1

    def coarsest(self, model: Unnormalised) -> int | None:
        default = model.domain.default_order
        return self.order if self.order is not None or default is None else max(FEWEST, default // 3)

    def finer(self, model: Unnormalised, obs: Observations, order: int) -> Poisson | None:
        if self.order is not None or model.domain.default_order is None:
            return None
        if 2 * order > MOST_ORDER:
            return None
        contexts = obs.n if obs.has_context else 1
        try:
            nodes = len(model.domain.quadrature(2 * order).points)
        except InputError:  # the domain refuses so many
            return None
        most = MOST_REFINED if obs.has_context else MOST_SHARED
        return replace(self, order=2 * order) if contexts * nodes <= most else None

    def additive(
        self, model: Unnormalised, obs: Observations, normaliser: Normaliser, rng: Rng = None
    ) -> AdditiveProblem:
        """𝓜_χ (eq. 2.6) as Poisson rows: each context's observation, then the nodes of the rule with their weights."""
        _refuse_anchored(self, normaliser)
        order = self.coarsest(model)
        rule = model.domain.quadrature(order)
        n, nodes = (obs.n if obs.has_context else 1), len(rule.points)
        if n * nodes > MOST_ROWS:
            raise InputError(
                f"Poisson() by quadrature needs {n * nodes:,} rows here ({n:,} contexts × {nodes:,} nodes; the limit "
                f"is {MOST_ROWS:,}). Pass a smaller order=, or use un.Logistic(…)."
            )
        return AdditiveProblem(
            model=model,
            normaliser=normaliser,
            obs=obs,
            source=_quadrature_rows(obs, rule),
            drawn=Drawn.NONE,
            figures={"quadrature": rule.rule, "nodes": nodes, "order": order},
        )

    def to_dict(self) -> dict[str, Any]:
        return {"objective": "Poisson", "order": self.order, "cluster": self.cluster}


__all__ = ["Exact", "ExactProblem", "JointDerivatives", "Poisson", "PoissonProblem"]
