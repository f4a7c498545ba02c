"""Smoothing criteria on the current working model, with gradient and Hessian in ρ = log λ: p × p algebra, no rows.

At β_k the rows gave ℓ_k, the score s and A = XᵀWX, so that −ℓ(β) ≈ c₀ − rᵀβ + ½βᵀAβ with r = Aβ_k + s, and β(ρ) = P r
with P = (A + S_λ)⁻¹, computed as β_k + P(s − S_λβ_k), which rounds what moves and not what stays. W moves with β: the
leverage pass gives g = ∂ log|XᵀWX + S_λ| / ∂β = Σ w' h x, and the criterion uses log|A + S_λ| + gᵀ(β(ρ) − β_k). Value
and gradient then agree with those of the exact Laplace criterion (Wood 2011) at the fixed point ρ = ρ_k, β = β_k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from ..errors import EstimationError
from .arrow import Arrow, ArrowInverse, Singular, tall
from .design import Lever
from .penalties import Penalties

LOG_2PI = float(np.log(2 * np.pi))
_ROUNDING = 1e-15  # of c₀


@dataclass(frozen=True)
class Working:
    """The working model at β_k."""

    beta: np.ndarray  # β_k, flat
    loglik: float  # ℓ_k without constants
    score: np.ndarray
    cross: Arrow  # A
    constant: float  # what ℓ lacks
    rows: int
    scale_known: bool
    tilt: np.ndarray  # g; zeros before the first leverage pass

    @cached_property
    def c0(self) -> float:
        return -self.loglik + float(self.score @ self.beta) + 0.5 * float(self.beta @ self.cross.dot(self.beta))

    @cached_property
    def least(self) -> float:
        """What rounding leaves of ½D_p where the rows are fitted exactly and the scale is to be estimated."""
        return max(_ROUNDING * abs(self.c0), 1e-150)


@dataclass(frozen=True)
class State:
    """The working model solved at ρ."""

    rho: np.ndarray
    inverse: ArrowInverse  # P
    beta: np.ndarray
    forces: np.ndarray  # (p, M): λ_j S_j β

    @cached_property
    def slopes(self) -> np.ndarray:
        """(p, M): dβ/dρ_j = −P λ_j S_j β."""
        return -self.inverse.dot(self.forces)


def solve(working: Working, penalties: Penalties, rho: np.ndarray) -> State:
    """β(ρ), and what its derivative is made of."""
    lam = np.exp(rho)
    inverse = penalties.added(working.cross, lam).invert()
    beta = working.beta + inverse.dot(working.score - penalties.columns(working.beta) @ lam)
    forces = penalties.columns(beta) * lam
    return State(rho, inverse, beta, forces)


def half_deviance(working: Working, state: State) -> float:
    """−ℓ(β) on the working model, as −ℓ_k − sᵀd + ½dᵀAd with d = β − β_k: an error of β, which may be 1e-6 of it where
    A is ill-conditioned, comes in squared. In c₀ − ½rᵀβ it would come in as it is, times r."""
    d = state.beta - working.beta
    return -working.loglik - float(working.score @ d) + 0.5 * float(d @ working.cross.dot(d))


def penalised_deviance(working: Working, state: State) -> float:
    """½D_p = −ℓ(β) + ½βᵀS_λβ."""
    return half_deviance(working, state) + 0.5 * float(state.beta @ state.forces.sum(axis=1))


@dataclass(frozen=True)
class Value:
    """A criterion at ρ: value, gradient, Hessian (on the working model), and the state. Of a trial that is refused, or
    from which ρ does not go on, nobody reads the derivatives: `derive` gives both when they are first asked for."""

    value: float
    state: State = field(repr=False)
    derive: Callable[[], tuple[np.ndarray, np.ndarray]] = field(repr=False)

    @cached_property
    def _derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        return self.derive()

    @property
    def gradient(self) -> np.ndarray:
        return self._derivatives[0]

    @property
    def hessian(self) -> np.ndarray:
        return self._derivatives[1]


def principal(hessian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Its eigenvalues and eigenvectors; refused where it is not a number, as where means overflow."""
    if not np.isfinite(hessian).all():
        raise EstimationError(
            "The smoothing criterion overflows: the terms have too many functions for these rows. Lower their k, or "
            "fix their smoothing parameters (sp)."
        )
    return np.linalg.eigh(hessian)


def _moved(rho: np.ndarray, j: int, at: float) -> np.ndarray:
    out = rho.copy()
    out[j] = at
    return out


class Criterion(ABC):
    """A function of ρ to be minimised."""

    doubt: ClassVar[float] = 1e-3  # nats by which it is lower at hardly any smoothing where a fit is not to be trusted

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def value(self, working: Working, penalties: Penalties, rho: np.ndarray) -> float:
        """The criterion alone."""

    def along(self, working: Working, penalties: Penalties, rho: np.ndarray, j: int, values: np.ndarray) -> np.ndarray:
        """The criterion alone at ρ with each of `values` for ρ_j; nan where H is singular."""
        return np.array([self._or_nan(working, penalties, _moved(rho, j, at)) for at in values.tolist()])

    def _or_nan(self, working: Working, penalties: Penalties, rho: np.ndarray) -> float:
        try:
            return self.value(working, penalties, rho)
        except Singular:
            return np.nan

    @abstractmethod
    def full(self, working: Working, penalties: Penalties, rho: np.ndarray) -> Value:
        """With gradient and Hessian."""

    @abstractmethod
    def lever(self, working: Working, penalties: Penalties, state: State) -> Lever:
        """The matrix whose leverages give the tilt, on the shared columns and those of one level."""

    def at(self, working: Working, penalties: Penalties, state: State) -> Value:
        """With gradient and Hessian, where the working model is solved already; its tilt may be another."""
        return self.full(working, penalties, state.rho)

    def report(self, working: Working, value: float) -> float:
        """The minimum on the scale in which the criterion is known."""
        return value


@dataclass(frozen=True)
class Laplace(Criterion):
    """REML and ML by Laplace's approximation (Wood 2011, JRSS-B 73(1), sections 2.1 and 6):

    V = −ℓ(β̂) + ½β̂ᵀS_λβ̂ + ½log|H| − ½log|S_λ|₊ − ½M_p log 2π, and for ML H on the range of the penalties, without
    the last term. Where the scale φ is unknown it is profiled out: φ̂ = D_p/(n − M_p).
    """

    doubt: ClassVar[float] = 3.0  # where rows can be separated log|H| has no lower bound: a little less tells nothing
    restricted: bool = True  # REML; False: ML

    @property
    def name(self) -> str:
        return "REML" if self.restricted else "ML"

    def _determinant(self, working: Working, penalties: Penalties, state: State) -> ArrowInverse:
        """The inverse that log|H| and its derivatives need."""
        if self.restricted or not penalties.free.any():
            return state.inverse
        ranged = ~penalties.free
        h = penalties.added(working.cross, np.exp(state.rho))
        return h.keep(ranged).invert().embed(ranged, penalties.starts)

    def _assemble(
        self, working: Working, penalties: Penalties, state: State, inverse: ArrowInverse, log_s: float
    ) -> float:
        half_dp, tilted = penalised_deviance(working, state), float(working.tilt @ state.beta)
        return float(self._sum(working, penalties, inverse.logdet - log_s, half_dp, tilted))

    def _sum(self, working: Working, penalties: Penalties, logdets: Any, half_dp: Any, tilted: Any) -> Any:
        """V from log|H| − log|S_λ|₊, ½D_p and gᵀβ, of one ρ or of several."""
        null = int(penalties.free.sum()) if self.restricted else 0
        value = 0.5 * logdets + 0.5 * (tilted - float(working.tilt @ working.beta)) - working.constant
        if working.scale_known:
            return value + half_dp - 0.5 * null * LOG_2PI
        left = working.rows - null
        return value + 0.5 * left * (np.log(2 * np.maximum(half_dp, working.least) / left) + 1.0 + LOG_2PI)

    def along(self, working: Working, penalties: Penalties, rho: np.ndarray, j: int, values: np.ndarray) -> np.ndarray:
        """From one inverse P₀, at the least of the values: with S_j = EᵀE, E P₀ Eᵀ = QMQᵀ and t = λ_j − λ_j0,

        log|H| = log|H₀| + Σ log(1 + tμ_i),   aᵀPb = aᵀP₀b − Σ t/(1 + tμ_i) (QᵀEP₀a)_i (QᵀEP₀b)_i.
        """
        root = penalties.root(j)
        if root is None or not self.restricted or values.size < 3:
            return super().along(working, penalties, rho, j, values)
        low = float(values.min())
        try:
            state = solve(working, penalties, _moved(rho, j, low))
        except Singular:
            return super().along(working, penalties, rho, j, values)
        at, E = root
        mu, Q = np.linalg.eigh(E @ state.inverse.sigma[at, at] @ E.T)
        turned = Q.T @ (E @ np.stack([state.beta, state.inverse.dot(working.tilt)], axis=1)[at])
        t = np.exp(values)[:, None] - np.exp(low)
        grown = 1.0 + t * np.maximum(mu, 0.0)
        half_dp = penalised_deviance(working, state) + 0.5 * ((t / grown) @ turned[:, 0] ** 2)
        tilted = float(working.tilt @ state.beta) - (t / grown) @ (turned[:, 0] * turned[:, 1])
        log_s = np.array([penalties.logdet(_moved(rho, j, value))[0] for value in values.tolist()])
        logdets = state.inverse.logdet + np.log(grown).sum(axis=1) - log_s
        return self._sum(working, penalties, logdets, half_dp, tilted)

    def value(self, working: Working, penalties: Penalties, rho: np.ndarray) -> float:
        state = solve(working, penalties, rho)
        inverse = self._determinant(working, penalties, state)
        return self._assemble(working, penalties, state, inverse, penalties.logdet(rho)[0])

    def full(self, working: Working, penalties: Penalties, rho: np.ndarray) -> Value:
        return self.at(working, penalties, solve(working, penalties, rho))

    def at(self, working: Working, penalties: Penalties, state: State) -> Value:
        inverse = self._determinant(working, penalties, state)
        log_s, *slopes_s = penalties.logdet(state.rho)
        value = self._assemble(working, penalties, state, inverse, log_s)
        return Value(value, state, lambda: self._derived(working, penalties, state, inverse, slopes_s))

    def _derived(
        self, working: Working, penalties: Penalties, state: State, inverse: ArrowInverse, slopes_s: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian; `slopes_s`: those of log|S_λ|₊."""
        lam, (slope_s, curve_s) = np.exp(state.rho), slopes_s
        first, pairs = penalties.traces(inverse)
        first = first * lam
        q = state.beta @ state.forces  # λ_j βᵀS_jβ = dD_p/dρ_j
        curve = state.forces.T @ state.slopes  # half of d²D_p/dρ² but for q on the diagonal
        if working.scale_known:
            gradient, hessian, diagonal = 0.5 * q, curve, q
        else:
            half_dp = max(penalised_deviance(working, state), working.least)
            left = working.rows - (int(penalties.free.sum()) if self.restricted else 0)
            share, each = 0.5 * left / half_dp, q / (2 * half_dp)
            gradient, hessian, diagonal = (
                0.5 * left * each,
                share * curve - 0.5 * left * np.outer(each, each),
                share * q,
            )
        gradient = gradient + 0.5 * (first - slope_s)
        hessian = hessian - 0.5 * (pairs * (lam[:, None] * lam) + curve_s)
        diagonal = diagonal + first
        if working.tilt.any():
            pull = working.tilt @ state.slopes
            mixed = (penalties.columns(state.inverse.dot(working.tilt)) * lam).T @ state.slopes
            gradient, diagonal = gradient + 0.5 * pull, diagonal + pull
            hessian -= mixed  # made symmetric below
        hessian = 0.5 * (hessian + hessian.T)
        hessian.ravel()[:: len(lam) + 1] += 0.5 * diagonal
        return gradient, hessian

    def lever(self, working: Working, penalties: Penalties, state: State) -> Lever:
        return InverseLever(self._determinant(working, penalties, state))


@dataclass(frozen=True)
class PredictionError(Criterion):
    """GCV = nD/(n − τ)² where the scale is unknown, UBRE = D/n + 2τ/n − 1 where it is 1; τ = tr(PA) (mgcv's "GCV.Cp").

    `saturated`: the log-likelihood of the saturated model, so that D = 2(saturated − ℓ).
    """

    saturated: float

    @property
    def name(self) -> str:
        return "GCV"

    def _parts(self, working: Working, penalties: Penalties, rho: np.ndarray):
        state = solve(working, penalties, rho)
        s_beta = state.forces.sum(axis=1)
        deviance = 2 * half_deviance(working, state)
        deviance += 2 * (self.saturated - working.constant)
        if not working.scale_known:
            deviance = max(deviance, 2 * working.least)
        lam = np.exp(rho)
        first, pairs = penalties.traces(state.inverse)
        first, pairs = first * lam, pairs * np.outer(lam, lam)
        tau = len(state.beta) - first.sum() + float(working.tilt @ (state.beta - working.beta))
        slope_d = -2.0 * s_beta @ state.slopes
        slope_tau = -first + pairs.sum(axis=1) + working.tilt @ state.slopes
        return state, deviance, tau, slope_d, slope_tau

    def value(self, working: Working, penalties: Penalties, rho: np.ndarray) -> float:
        return self._score(working, penalties, rho)[0]

    def _score(self, working: Working, penalties: Penalties, rho: np.ndarray) -> tuple[float, np.ndarray, State]:
        """Minimised as ½D + τ or ½n log GCV: the same minimum, on the scale of a log-likelihood."""
        state, deviance, tau, slope_d, slope_tau = self._parts(working, penalties, rho)
        if working.scale_known:
            return 0.5 * deviance + tau, 0.5 * slope_d + slope_tau, state
        n, left = working.rows, working.rows - tau
        return 0.5 * n * np.log(n * deviance / left**2), 0.5 * n * (slope_d / deviance + 2 * slope_tau / left), state

    def report(self, working: Working, value: float) -> float:
        n = working.rows
        return 2 * value / n - 1.0 if working.scale_known else float(np.exp(2 * value / n))

    def full(self, working: Working, penalties: Penalties, rho: np.ndarray) -> Value:
        value, gradient, state = self._score(working, penalties, rho)
        hessian = np.zeros((rho.size, rho.size))
        step = 1e-4  # third derivatives of τ have no short form; differences of the exact gradient do
        for j in range(rho.size):
            moved = rho.copy()
            moved[j] += step
            hessian[j] = (self._score(working, penalties, moved)[1] - gradient) / step
        hessian = 0.5 * (hessian + hessian.T)
        return Value(value, state, lambda: (gradient, hessian))

    def lever(self, working: Working, penalties: Penalties, state: State) -> Lever:
        """dτ/dW = P − PAP = P S P."""
        return SandwichLever(state.inverse, penalties, np.exp(state.rho))


@final
@dataclass(frozen=True)
class InverseLever(Lever):
    """P."""

    inverse: ArrowInverse

    def __call__(self, level: int | None) -> np.ndarray:
        return self.inverse.segment(level)

    def every(self) -> tuple[np.ndarray, np.ndarray]:
        return self.inverse.every


@final
@dataclass(frozen=True)
class SandwichLever(Lever):
    """P S_λ P."""

    inverse: ArrowInverse
    penalties: Penalties
    lam: np.ndarray

    def __call__(self, level: int | None) -> np.ndarray:
        return sandwich(self.inverse, self.penalties, self.lam, level)

    def every(self) -> tuple[np.ndarray, np.ndarray]:
        """With T = AΣAᵀ of a level, (PSP)_l0 = −(AΣKΣ + H_ll⁻¹S_lAΣ), and (PSP)_ll as in `core`."""
        assert self.inverse.stacked is not None
        (own, slope), sigma = self.inverse.stacked, self.inverse.sigma
        below, whole = self.inverse.every
        shared, (s, *_) = self.penalties.parts(self.lam)
        flat = tall(slope)
        turned = np.matmul(s, slope)
        middle = sigma @ (shared + flat.T @ turned.reshape(flat.shape)) @ sigma
        through = whole - own
        cross = np.matmul(own @ s, below) - np.matmul(slope, middle)
        return cross, np.matmul(slope @ middle, slope.transpose(0, 2, 1)) + whole @ s @ whole - through @ s @ through


def sandwich(inverse: ArrowInverse, penalties: Penalties, lam: np.ndarray, level: int | None) -> np.ndarray:
    """P S_λ P on the shared columns and one level's own."""
    at = penalties.starts
    which = np.arange(at[1])
    if level is not None:
        which = np.concatenate([which, np.arange(at[level + 1], at[level + 2])])
    rows = inverse.rows(which) if len(inverse.own) else inverse.sigma
    middle = np.empty(rows.shape)
    for block, s in enumerate(penalties.blocks(lam)):
        here = slice(at[block], at[block + 1])
        middle[:, here] = rows[:, here] @ s
    return middle @ rows.T
