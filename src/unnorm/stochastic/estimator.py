"""𝓜̂(φ), φ = (θ, ν): an unbiased estimate of the objective, whose gradient is unbiased too (Section 3.1 of the paper).

    𝓜̂ = Σ_i a_i {f_θ(y_i|x_i) + χ(x_i)} − Σ_i a_i (1/k) Σ_j exp{f_θ(r_ij|x_i) + χ(x_i) − log q(r_ij|x_i)}

over a batch with weights a_i (E Σ_i a_i g_i = Σ_t w_t g_t) and fresh points r_ij ~ q(·|x_i); IID data share their
points. Where f and χ
are linear in their parameters the first sum is known for the whole data set at no cost: an exact control variate. The
logistic and ranking losses are estimated in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from .. import losses
from .._numerics import x64
from ..data import Observations
from ..errors import CombinationError, InputError, OutsideError, unknown
from ..models.base import Model, context_arguments
from ..normalisers import Normaliser
from ..references.base import BoundReference, Reference
from ..references.points import PointScheme
from .chi import Chi, chi_of
from .priors import Priors, priors
from .sources import Batch, Plan, Sampling, Source, ordered, plan, source

LossName = Literal["poisson", "ncd", "ranking"]
Dtype = Literal["float64", "float32"]


@contextmanager
def precision(dtype: Dtype) -> Iterator[None]:
    """JAX in float64, or in float32, inside the block only."""
    import jax

    if dtype == "float64":
        with x64():
            yield
    else:
        with jax.enable_x64(False):
            yield


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

    # --- 𝓜̂, traceable ------------------------------------------------------------------------------------------------

    def f_data(self, theta: Any, data: Any, index: Any) -> Any:
        import jax

        arguments = jax.tree.map(lambda leaf: leaf[index], data["arguments"])
        return jax.vmap(lambda y, *a: self.model.one(theta, y, *a))(data["y"][index], *arguments)

    def f_reference(self, theta: Any, data: Any, index: Any, y: Any) -> Any:
        """(r, k)."""
        import jax

        arguments = () if self.plan.shared else jax.tree.map(lambda leaf: leaf[index], data["arguments"])
        return jax.vmap(lambda row, *a: jax.vmap(lambda y: self.model.one(theta, y, *a))(row))(y, *arguments)

    def likelihood(self, phi: Any, data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """The estimate of the objective, without the prior, and what the diagnostics need."""
        import jax
        import jax.numpy as jnp

        theta, nu = phi[: self.p], phi[self.p :]
        i = batch.index
        a = batch.scale * data["weight"][i]
        f_ref = self.f_reference(theta, data, i, batch.y)
        shared = self.plan.shared
        if self.loss == "ranking":
            f = self.f_data(theta, data, i)
            value = -losses.ranking(f, f_ref, data["log_q"][i], batch.log_q, weights=a, reduction="sum")
            return value, self._health(jax.lax.stop_gradient(f_ref - batch.log_q), None)
        chi = self.chi.at(nu, jax.tree.map(lambda leaf: leaf[i], data["chi"]))
        chi_ref = (chi[:1] + data["shared_offset"] if shared else chi + data["offset"][i])[:, None]
        chi = chi + data["offset"][i]
        eta = f_ref + chi_ref - batch.log_q
        if self.loss == "ncd":
            f = self.f_data(theta, data, i)
            v = jnp.full(eta.shape, self.W / self.plan.b) if shared else jnp.broadcast_to(a[:, None], eta.shape)
            value = -losses.ncd(
                f,
                f_ref.ravel() if shared else f_ref,
                data["log_q"][i],
                batch.log_q.ravel() if shared else batch.log_q,
                nu=chi,
                nu_reference=chi_ref[0] if shared else chi_ref,
                log_ratio=-float(np.log(self.plan.references)),
                weights=a,
                reference_weights=v.ravel() if shared else v,
                reduction="sum",
            )
            mass = jnp.mean(jnp.exp(eta), axis=1)
            return value, self._health(jax.lax.stop_gradient(eta), jnp.mean(mass) if shared else a @ mass / jnp.sum(a))
        mass = jnp.mean(jnp.exp(eta), axis=1)  # (r,): e^{χ} Ẑ
        integral = self.W * mass[0] if shared else a @ mass
        known = "theta_total" in data
        value = data["theta_total"] @ theta if known else a @ self.f_data(theta, data, i)
        value = value + (data["nu_total"] @ nu + data["constant"] if "nu_total" in data else a @ chi)
        return value - integral, self._health(jax.lax.stop_gradient(eta), integral / self.W)

    def _health(self, eta: Any, mass: Any) -> dict[str, Any]:
        """∫ exp(f + ν), which tends to 1, and the effective share of the reference points (Kong 1992)."""
        import jax.numpy as jnp

        w = jnp.exp(eta - jnp.max(eta, axis=1, keepdims=True))
        share = jnp.sum(w, axis=1) ** 2 / (jnp.sum(w**2, axis=1) * eta.shape[1])
        return {"mass": jnp.asarray(jnp.nan if mass is None else mass, dtype=eta.dtype), "ess": jnp.mean(share)}

    def log_prior(self, phi: Any) -> Any:
        return self.prior.log_density({"theta": phi[: self.p], "nu": phi[self.p :]})

    def objective(self, phi: Any, data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """𝓜̂ + log π."""
        value, health = self.likelihood(phi, data, batch)
        return value + self.log_prior(phi), health

    # --- drawing and evaluating many steps ---------------------------------------------------------------------------

    @cached_property
    def device_data(self) -> Any:
        """The arrays, once on the device."""
        import jax

        with precision(self.dtype):
            return jax.device_put(self.data)

    @cached_property
    def compiled(self) -> dict[Any, Any]:
        """Compiled loops of this estimator, so that a second run has nothing left to compile."""
        return {}

    @cached_property
    def _many(self) -> dict[str, Any]:
        """Compiled: values, gradients and Hessians over many independent steps."""
        import jax

        def value(phi: Any, data: Any, constants: Any, key: Any, x: Any) -> Any:
            return self.likelihood(phi, data, self.source.draw(constants, key, x))

        def gradient(phi: Any, data: Any, constants: Any, key: Any, x: Any) -> Any:
            (v, health), g = jax.value_and_grad(value, has_aux=True)(phi, data, constants, key, x)
            return v, g, health

        def hessian(phi: Any, data: Any, constants: Any, key: Any, x: Any) -> Any:
            return jax.hessian(lambda th: value(th, data, constants, key, x)[0])(phi)

        def mapped(one: Any) -> Any:
            return jax.jit(lambda phi, data, c, key, xs: jax.lax.map(lambda x: one(phi, data, c, key, x), xs))

        def mean_hessian(phi: Any, data: Any, c: Any, key: Any, xs: Any) -> Any:
            def add(total: Any, x: Any) -> Any:
                return total + hessian(phi, data, c, key, x), None

            zero = jax.numpy.zeros((self.size, self.size), dtype=phi.dtype)
            return jax.lax.scan(add, zero, xs)[0] / len(jax.tree.leaves(xs)[0])

        return {"gradient": mapped(gradient), "hessian": jax.jit(mean_hessian)}

    def _arguments(self, phi: np.ndarray, seed: int, first: int, count: int) -> tuple[Any, ...]:
        import jax
        import jax.numpy as jnp

        xs = self.source.block(seed, first, count)
        return jnp.asarray(phi, dtype=self.dtype), self.device_data, self.source.constants(), jax.random.key(seed), xs

    def gradients(self, phi: np.ndarray, seed: int, count: int, first: int = 0) -> tuple[np.ndarray, np.ndarray, Any]:
        """`count` independent estimates of the likelihood part: values, gradients (count, size), diagnostics."""
        with precision(self.dtype):
            value, g, health = self._many["gradient"](*self._arguments(phi, seed, first, count))
            return np.asarray(value), np.asarray(g, dtype=np.float64), {k: np.asarray(v) for k, v in health.items()}

    def hessian(self, phi: np.ndarray, seed: int, count: int, first: int = 0) -> np.ndarray:
        """The mean Hessian of the likelihood part over `count` independent steps."""
        with precision(self.dtype):
            return np.asarray(self._many["hessian"](*self._arguments(phi, seed, first, count)), dtype=np.float64)

    def start(self, rng: np.random.Generator, theta: np.ndarray | None = None) -> np.ndarray:
        """θ0, with constants that roughly normalise it: −log of a small Monte Carlo integral for each context."""
        theta = self.model.start if theta is None else theta
        if self.loss == "ranking" or self.chi.size == 0:
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
        position = np.arange(obs.n)
        return replace(
            self, obs=obs, chi=chi, plan=steps, data=data, source=draws, W=W, position=position, control=False
        )

    def nu_rows(self, phi: np.ndarray) -> np.ndarray:
        """χ at every observation, in the input's order."""
        with x64():
            values = np.asarray(self.chi.at(np.asarray(phi[self.p :], dtype=np.float64), self.chi.rows))
        out = np.empty(self.obs.n)
        out[self.position] = values
        return out

    def nu_natural(self, phi: np.ndarray) -> np.ndarray:
        """The normaliser's parameters with per-observation entries back in the input's order."""
        nu = np.asarray(phi[self.p :], dtype=np.float64)
        if self.chi.size == self.obs.n and self.obs.n > 1:
            out = np.empty_like(nu)
            out[self.position] = nu
            return out
        return nu


def _take(tree: Any, index: np.ndarray) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf[index], tree)


def estimator(
    model: Model,
    obs: Observations,
    reference: Reference,
    normaliser: Normaliser,
    *,
    loss: LossName = "poisson",
    batch: int | None = None,
    references: int = 10,
    points: PointScheme | None = None,
    sampling: Sampling = "stratified",
    prior: Any = None,
    control: bool = True,
    dtype: Dtype = "float64",
) -> Estimator:
    """Put the parts together, once; everything is checked here."""
    if loss not in ("poisson", "ncd", "ranking"):
        raise InputError(unknown("loss", loss, ("poisson", "ncd", "ranking")))
    if dtype not in ("float64", "float32"):
        raise InputError(unknown("dtype", dtype, ("float64", "float32")))
    if not isinstance(reference, Reference):
        raise InputError(f"reference must be a reference such as un.Uniform(); got {reference!r}.")
    model.check(obs)
    if obs.n == 0:
        raise InputError("There are no observations.")
    position = ordered(obs)
    obs = obs.take(position)
    bound = reference.bind(model.domain, obs)
    if bound.given == "outcome":
        raise CombinationError(
            "A reference around the observed outcome is for conditional NCE; stochastic estimation takes "
            "references that depend on "
            "nothing or on the context, e.g. un.Uniform() or un.Gaussian(around='context')."
        )
    if loss == "ranking" and points is not None and not points.iid:
        raise CombinationError("The ranking loss is biased with points that are not independent; use points=un.IID().")
    chi = chi_of(normaliser, obs, model.domain.scalar)
    shared = not obs.has_context and chi.shared and loss != "ranking"
    steps = plan(obs, batch, references, sampling, shared)
    if loss == "ranking" and points is None:
        from ..references.points import IID

        points = IID()
    w, o = obs.weights, obs.offsets
    arguments = context_arguments(obs, model.domain.scalar, model.context_arity)
    data: dict[str, Any] = {"y": obs.outcome, "arguments": arguments, "weight": w, "offset": o, "chi": chi.rows}
    data["shared_offset"] = np.asarray(np.log(w @ np.exp(o) / w.sum()))  # the offset of IID data's shared points
    if loss in ("ncd", "ranking"):
        data["log_q"] = bound.log_density(obs.outcome, obs, np.arange(obs.n))
        if not np.isfinite(data["log_q"]).all():
            raise OutsideError(
                f"The reference has no density at {int((~np.isfinite(data['log_q'])).sum())} observations; use "
                f"one that covers "
                "them, e.g. un.Mixture((0.1, un.Uniform()), (0.9, …))."
            )
        if shared and np.ptp(o) > 0:
            raise InputError("An offset that differs between IID observations is unknown at shared reference points.")
    if loss == "poisson":
        if control and model.linear:
            data["theta_total"] = model.data_terms(obs.outcome, arguments, w).derivatives(model.start)[1]
        total = chi.total(w) if control else None
        if total is not None:
            data["nu_total"], data["constant"] = total, np.asarray(w @ o + w.sum() * chi.constant)
    data = _cast(data, dtype)
    with precision(dtype):
        draws = source(bound, obs, steps, points, dtype)
    return Estimator(
        model,
        obs,
        position,
        chi,
        bound,
        points,
        steps,
        draws,
        loss,
        priors(prior, model),
        control,
        dtype,
        data,
        float(w.sum()),
    )


def _cast(tree: Any, dtype: Dtype) -> Any:
    import jax

    def one(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return array.astype(dtype) if array.dtype.kind == "f" else array

    return jax.tree.map(one, tree)
