"""A stochastic problem put together: a `Step` with the arrays that it works on, the data in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final, get_args

import numpy as np

from ..._base.numerics import x64
from ...data.observations import Observations
from ...errors import CombinationError, InputError, OutsideError, unknown
from ...models.base import Model, context_arguments
from ...models.normalisers import Layout, Normaliser
from ...models.priors import Priors, priors
from ...objectives.base import LossName
from ...references.base import BoundReference, Reference
from ...references.points import IID, PointScheme
from .chi import Chi, LayoutChi, chi_of
from .sources import Plan, Sampling, Source, ordered, plan, source
from .step import (
    CANCELLING,
    Dtype,
    Step,
    compiled,
    curvature_product,
    gradients,
    mean_gradient,
    mean_hessian,
    precision,
    prior_gradient,
    prior_hessian,
    values,
)

MOST_NUMBERS = 2**23  # drawn ahead on the host at one time: 64 MB


@final
@dataclass(frozen=True, eq=False)
class Estimator:
    """The parts of one stochastic problem: everything that a step needs, with the data already in order."""

    model: Model
    obs: Observations  # ordered
    position: np.ndarray  # (n,) where each ordered observation stood in the input
    chi: Chi
    reference: BoundReference
    scheme: PointScheme | None
    plan: Plan
    source: Source
    loss: LossName
    prior: Priors
    control: bool
    dtype: Dtype
    data: dict[str, Any] = field(repr=False)  # arrays for the device
    W: float  # Σ w

    @property
    def p(self) -> int:
        return self.model.size

    @property
    def size(self) -> int:
        return self.model.size + self.chi.size

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.model.names, *self.chi.names())

    @cached_property
    def step(self) -> Step:
        """What a step computes, apart from the arrays."""
        return Step(self.model, self.loss, self.plan, self.chi.curve, self.prior, self.source.draw)

    # --- evaluating many steps -------------------------------------------------------------------------------------

    @cached_property
    def device_data(self) -> Any:
        """The arrays, once on the device."""
        import jax

        with precision(self.dtype):
            return jax.device_put(self.data)

    @cached_property
    def device_constants(self) -> Any:
        import jax

        with precision(self.dtype):
            return jax.device_put(self.source.constants())

    def _many(self, function: Any, phi: np.ndarray, seed: int, first: int, count: int) -> Any:
        """The function over `count` independent steps, a bounded number of them at a time."""
        import jax

        size = min(count, max(1, MOST_NUMBERS // self.source.numbers))
        size = -(-count // -(-count // size))  # in equal parts: one shape is compiled
        with precision(self.dtype):
            fixed = (np.asarray(phi, dtype=self.dtype), self.device_data, self.device_constants, jax.random.key(seed))
            parts = [
                jax.device_get(compiled(function)(self.step, *fixed, self.source.block(seed, begin, size)))
                for begin in range(first, first + count, size)
            ]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)

    def values(self, phi: np.ndarray, seed: int, count: int, first: int = 0) -> tuple[np.ndarray, Any]:
        """`count` independent estimates of the likelihood part, and diagnostics."""
        value, health = self._many(values, phi, seed, first, count)
        return value.astype(np.float64), health

    def gradients(self, phi: np.ndarray, seed: int, count: int, first: int = 0) -> tuple[np.ndarray, np.ndarray, Any]:
        """`count` independent estimates of the likelihood part: values, gradients (count, size), diagnostics."""
        value, g, health = self._many(gradients, phi, seed, first, count)
        return value, g.astype(np.float64), health

    def hessian(self, phi: np.ndarray, seed: int, count: int, first: int = 0, nu_only: bool = False) -> np.ndarray:
        """The mean Hessian of the likelihood part over `count` independent steps, in φ or in ν alone."""
        import jax

        with precision(self.dtype):
            run = compiled(mean_hessian, (0, 1))
            fixed = (np.asarray(phi, dtype=self.dtype), self.device_data, self.device_constants, jax.random.key(seed))
            return np.asarray(run(self.step, nu_only, *fixed, self.source.block(seed, first, count)), dtype=np.float64)

    def prior_hessian(self, phi: np.ndarray) -> np.ndarray | float:
        """∂² log π, in float64."""
        return self._prior(prior_hessian, phi)

    def prior_gradient(self, phi: np.ndarray) -> np.ndarray | float:
        """∂ log π, in float64."""
        return self._prior(prior_gradient, phi)

    def _prior(self, function: Any, phi: np.ndarray) -> np.ndarray | float:
        """A derivative of log π; zero where nothing is penalised."""
        if self.prior.flat and "penalty" not in self.data:
            return 0.0
        penalty = {name: np.asarray(self.data[name], dtype=np.float64) for name in ("penalty",) if name in self.data}
        with precision("float64"):
            return np.asarray(compiled(function)(self.step, np.asarray(phi, dtype=np.float64), penalty))

    def grouped_gradients(
        self, phi: np.ndarray, seed: int, groups: int, each: int
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Independent estimates of the likelihood part: values, mean gradients by group (groups, size), diagnostics."""
        import jax

        with precision(self.dtype):
            fixed = (np.asarray(phi, dtype=self.dtype), self.device_data, self.device_constants, jax.random.key(seed))
            run = compiled(mean_gradient)
            parts = [
                jax.device_get(run(self.step, *fixed, self.source.block(seed, each * group, each)))
                for group in range(groups)
            ]
        value, g, health = jax.tree.map(lambda *leaves: np.stack(leaves), *parts)
        return value.astype(np.float64).ravel(), g.astype(np.float64), health

    def curvature_product(self, phi: np.ndarray, seed: int, count: int, v: np.ndarray) -> np.ndarray:
        """−∂²(𝓜 + log π) v, Gauss–Newton, from `count` fresh steps that are the same for every v."""
        import jax

        seed = (seed + 0x9E3779B9) % 2**31
        with precision(self.dtype):
            at, v = np.asarray(phi, dtype=self.dtype), np.asarray(v, dtype=self.dtype)
            fixed = (at, self.device_data, self.device_constants, jax.random.key(seed))
            run = compiled(curvature_product)
            return np.asarray(run(self.step, *fixed, self.source.block(seed, 0, count), v), dtype=np.float64)

    def start(self, rng: np.random.Generator, theta: np.ndarray | None = None) -> np.ndarray:
        """θ0, with constants that roughly normalise it: −log of a small Monte Carlo integral for each context."""
        theta = self.model.start if theta is None else theta
        if self.loss in CANCELLING or self.chi.size == 0:
            return np.concatenate([theta, np.zeros(self.chi.size)])
        n = self.obs.n
        if self.plan.shared:
            at, k = np.zeros(1, dtype=np.intp), 4096
        else:
            many = 2 * self.chi.size >= n
            at = np.arange(n) if many else np.unique(np.linspace(0, n - 1, min(n, 2000)).astype(np.intp))
            k = 16 if many else 64
        rows = np.repeat(at, k)
        y = self.reference.sample(self.obs, rows, rng)
        arguments = _take(self.data["arguments"], rows)
        log_w = self.model.log_f(theta, y, arguments) - self.reference.log_density(y, self.obs, rows)
        wrong = int(np.sum(np.isnan(log_w) | np.isposinf(log_w)))
        if wrong:
            raise InputError(
                f"At the starting values f is NaN or +∞ at {wrong:,} of {log_w.size:,} reference points; it must be "
                "finite on all of Ω (−∞ where there is no density). Correct f, or give other starting values: "
                "un.SGD(start=...)."
            )
        log_w = log_w.reshape(len(at), k)
        top = log_w.max(axis=1)
        log_z = top + np.log(np.mean(np.exp(log_w - top[:, None]), axis=1))
        log_z += float(self.data["shared_offset"]) if self.plan.shared else self.obs.offsets[at]
        return np.concatenate([theta, self.chi.start(-log_z, at)])

    def part(self, some: np.ndarray) -> Estimator:
        """The same problem on some of the (ordered) observations, all of them in every step."""
        obs, chi = self.obs.take(some), self.chi.take(some)
        steps = plan(obs, None, self.plan.references, self.plan.sampling, self.plan.shared)
        data = {
            name: _take(value, some) if name in ("y", "arguments", "weight", "offset", "chi", "log_q") else value
            for name, value in self.data.items()
            if name not in ("theta_total", "nu_total")
        }
        with precision(self.dtype):
            draws = source(self.reference, obs, steps, self.scheme, self.dtype)
        W = float(obs.weights.sum())
        data["W"] = np.asarray(W, dtype=self.dtype)
        position = np.arange(obs.n)
        return replace(
            self, obs=obs, chi=chi, plan=steps, data=data, source=draws, W=W, position=position, control=False
        )

    def nu_rows(self, phi: np.ndarray) -> np.ndarray:
        """χ at every observation, in the input's order."""
        with x64():
            values = np.asarray(self.chi.curve(np.asarray(phi[self.p :], dtype=np.float64), self.chi.rows))
        out = np.empty(self.obs.n)
        out[self.position] = values
        return out


def _take(tree: Any, index: np.ndarray) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf[index], tree)


@final
@dataclass(frozen=True)
class StepDesign:
    """What one step draws, and in which precision."""

    batch: int | None = None  # observations; None for all
    references: int = 10  # reference points for each of them
    points: PointScheme | None = None  # default Lattice; IID for ranking
    sampling: Sampling = "stratified"
    control: bool = True  # whether sums over the data that are known exactly replace those of the batch
    dtype: Dtype = "float64"
    anchors: bool = False  # whether constants may follow θ, with an integral for each observation of the batch


def estimator(
    model: Model,
    obs: Observations,
    reference: Reference,
    normaliser: Normaliser,
    design: StepDesign | None = None,
    loss: LossName = "poisson",
    prior: Any = None,
) -> Estimator:
    """Put the parts together, once; everything is checked here."""
    design = StepDesign() if design is None else design
    if loss not in get_args(LossName):
        raise InputError(unknown("loss", loss, get_args(LossName)))
    if design.dtype not in get_args(Dtype):
        raise InputError(unknown("dtype", design.dtype, get_args(Dtype)))
    if not isinstance(reference, Reference):
        raise InputError(f"reference must be a reference such as un.Uniform(); got {reference!r}.")
    model.check(obs)
    if obs.n == 0:
        raise InputError("There are no observations.")
    position = ordered(obs)
    obs = obs.take(position)
    bound = reference.bind(model.domain, obs)
    points = _points(bound, loss, design.points)
    cancels = loss in CANCELLING
    chi = _no_chi(normaliser, obs) if cancels else chi_of(normaliser, obs, model, design.anchors)
    shared = not obs.has_context and chi.shared and not cancels
    steps = plan(obs, design.batch, design.references, design.sampling, shared)
    data = _arrays(model, obs, chi)
    if normaliser.anchored:
        rule = model.domain.quadrature()
        data |= {"nodes": rule.points, "log_w": np.log(rule.weights)}
    if loss == "poisson":
        data |= _totals(model, obs, chi, data["arguments"]) if design.control else {}
    elif bound.given != "outcome":
        data["log_q"] = _log_q(bound, obs, shared)
    data = _cast(data, design.dtype)
    with precision(design.dtype):
        draws = source(bound, obs, steps, points, design.dtype)
    return Estimator(
        model=model,
        obs=obs,
        position=position,
        chi=chi,
        reference=bound,
        scheme=points,
        plan=steps,
        source=draws,
        loss=loss,
        prior=priors(prior, model),
        control=design.control,
        dtype=design.dtype,
        data=data,
        W=float(obs.weights.sum()),
    )


def _points(bound: BoundReference, loss: LossName, points: PointScheme | None) -> PointScheme | None:
    """How this loss draws its points, where it matters."""
    if bound.given == "outcome" and loss != "conditional":
        raise CombinationError(
            "A reference around the observed outcome is for un.ConditionalNCE; other losses take references that "
            "depend on nothing or on the context, e.g. un.Uniform() or un.Gaussian(around='context')."
        )
    if loss != "ranking":
        return points
    if points is not None and not points.iid:
        raise CombinationError("The ranking loss is biased with points that are not independent; use points=un.IID().")
    return IID()


def _arrays(model: Model, obs: Observations, chi: Chi) -> dict[str, Any]:
    """What every loss gathers from."""
    w, o = obs.weights, obs.offsets
    data = {
        "y": obs.outcome,
        "arguments": context_arguments(obs, model.domain.scalar, model.context_arity),
        "weight": w,
        "offset": o,
        "chi": chi.rows,
        "shared_offset": np.asarray(np.log(w @ np.exp(o) / w.sum())),  # the offset of IID data's shared points
        "W": np.asarray(w.sum()),
    }
    if chi.penalties:
        data["penalty"] = chi.penalty(np.zeros(len(chi.penalties)))
    return data


def _totals(model: Model, obs: Observations, chi: Chi, arguments: Any) -> dict[str, Any]:
    """Σ_t w_t ∂f(y_t|x_t) and Σ_t w_t ∂χ(x_t) where f and χ are linear: exact, at no cost."""
    w, data = obs.weights, {}
    if model.linear:
        data["theta_total"] = model.data_terms(obs.outcome, arguments, w).derivatives(model.start)[1]
    total = chi.total(w)
    if total is not None:
        data |= {"nu_total": total, "constant": np.asarray(w @ obs.offsets + w.sum() * chi.constant)}
    return data


def _log_q(bound: BoundReference, obs: Observations, shared: bool) -> np.ndarray:
    """log q at the data, for losses that compare them with points of q."""
    log_q = bound.log_density(obs.outcome, obs, np.arange(obs.n))
    if not np.isfinite(log_q).all():
        raise OutsideError(
            f"The reference has no density at {int((~np.isfinite(log_q)).sum())} observations; use one that covers "
            "them, e.g. un.Mixture((0.1, un.Uniform()), (0.9, …))."
        )
    if shared and np.ptp(obs.offsets) > 0:
        raise InputError("An offset that differs between IID observations is unknown at shared reference points.")
    return log_q


def _no_chi(normaliser: Normaliser, obs: Observations) -> Chi:
    """Nothing to estimate: the constants cancel."""
    try:
        size = normaliser.layout(obs).size
    except CombinationError:
        size = -1
    if size not in (0, obs.n):
        raise CombinationError(
            f"In this loss the normalising constants cancel: leave normaliser out (got {normaliser!r})."
        )
    return LayoutChi(Layout(np.zeros(obs.n, dtype=np.intp), 0, 0.0))


def _cast(tree: Any, dtype: Dtype) -> Any:
    import jax

    def one(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return array.astype(dtype) if array.dtype.kind == "f" else array

    return jax.tree.map(one, tree)
