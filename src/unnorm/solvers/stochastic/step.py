"""One step's estimate of the objective as a function of arrays alone, and what is compiled of it.

    𝓜̂ = Σ_i a_i {f_θ(y_i|x_i) + χ(x_i)} − Σ_i a_i (1/k) Σ_j exp{f_θ(r_ij|x_i) + χ(x_i) − log q(r_ij|x_i)}

over a batch with weights a_i (E Σ_i a_i g_i = Σ_t w_t g_t) and fresh points r_ij ~ q(·|x_i); IID data share their
points. Where f and χ are linear in their parameters the first sum is known for the whole data set at no cost: an exact
control variate. The logistic, ranking and conditional losses are estimated in the same way.

A `Step` holds no arrays and compares by value: two fits of the same model with arrays of the same shapes run what was
compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, final

import numpy as np

from ..._base.numerics import x64
from ...models.base import Model
from ...models.priors import Priors
from ...objectives import losses
from .chi import Curve
from .sources import Batch, Draw, Plan

LossName = Literal["poisson", "ncd", "ranking", "conditional"]
CANCELLING = ("ranking", "conditional")  # losses in which the normalising constants cancel
Dtype = Literal["float64", "float32"]


@contextmanager
def precision(dtype: Dtype) -> Iterator[None]:
    """JAX in float64, or in float32, inside the block only.

    float32 means float32: without a choice of the user's own, GPUs would multiply matrices in TF32 (ten bits).
    """
    import jax

    if dtype == "float64":
        with x64():
            yield
    else:
        own = getattr(jax.config, "jax_default_matmul_precision", None)
        with jax.enable_x64(False), jax.default_matmul_precision(own or "float32"):
            yield


@final
@dataclass(frozen=True)
class Step:
    """What a step computes: the model, the loss, χ, the prior, and how points are drawn. φ = (θ, ν) is flat."""

    model: Model
    loss: LossName
    plan: Plan
    curve: Curve
    prior: Priors
    draw: Draw

    @property
    def p(self) -> int:
        return self.model.size

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
        if self.loss in CANCELLING:
            return self._cancelling(self.f_data(theta, data, i), f_ref, a, data, batch)
        shared = self.plan.shared
        chi = self.curve(nu, jax.tree.map(lambda leaf: leaf[i], data["chi"]))
        chi_ref = (chi[:1] + data["shared_offset"] if shared else chi + data["offset"][i])[:, None]
        chi = chi + data["offset"][i]
        eta = f_ref + chi_ref - batch.log_q
        mass = jnp.mean(jnp.exp(eta), axis=1)  # (r,): e^{χ} Ẑ
        if self.loss == "ncd":
            f = self.f_data(theta, data, i)
            v = jnp.full(eta.shape, data["W"] / self.plan.b) if shared else jnp.broadcast_to(a[:, None], eta.shape)
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
            return value, health(eta, jnp.mean(mass) if shared else a @ mass / jnp.sum(a))
        integral = data["W"] * mass[0] if shared else a @ mass
        value = data["theta_total"] @ theta if "theta_total" in data else a @ self.f_data(theta, data, i)
        value = value + (data["nu_total"] @ nu + data["constant"] if "nu_total" in data else a @ chi)
        return value - integral, health(eta, integral / data["W"])

    def _cancelling(self, f: Any, f_ref: Any, a: Any, data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """Σ_i a_i of the ranking loss, or of the k pairs of conditional NCE."""
        import jax
        import jax.numpy as jnp

        if self.loss == "ranking":
            value = -losses.ranking(f, f_ref, data["log_q"][batch.index], batch.log_q, weights=a, reduction="sum")
            return value, health(f_ref - batch.log_q, None)
        back = data["log_q"][batch.index][:, None] if isinstance(batch.log_back, tuple) else batch.log_back
        value = -losses.conditional_nce(f, f_ref, batch.log_q, back, weights=a, reduction="sum")
        odds = jax.nn.sigmoid(jax.lax.stop_gradient(f[:, None] - f_ref + batch.log_q - back))
        # what a pair tells, σ(1 − σ), against the most it can: nothing where pairs are told apart with certainty
        return self.plan.k * value, {"mass": jnp.full((), jnp.nan, f.dtype), "ess": jnp.mean(4 * odds * (1 - odds))}

    def log_prior(self, phi: Any, data: Any) -> Any:
        """log π(θ) + log π(ν) − ½ βᵀ S_λ β, the last where χ is a penalised smooth."""
        nu = phi[self.p :]
        value = self.prior.log_density({"theta": phi[: self.p], "nu": nu})
        return value - 0.5 * nu @ data["penalty"] @ nu if "penalty" in data else value

    def objective(self, phi: Any, data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """𝓜̂ + log π."""
        value, about = self.likelihood(phi, data, batch)
        return value + self.log_prior(phi, data), about


def health(eta: Any, mass: Any) -> dict[str, Any]:
    """∫ exp(f + ν), which tends to 1, and the effective share of the reference points (Kong 1992)."""
    import jax
    import jax.numpy as jnp

    eta = jax.lax.stop_gradient(eta)
    w = jnp.exp(eta - jnp.max(eta, axis=1, keepdims=True))
    share = jnp.sum(w, axis=1) ** 2 / (jnp.sum(w**2, axis=1) * eta.shape[1])
    return {"mass": jnp.asarray(jnp.nan if mass is None else mass, dtype=eta.dtype), "ess": jnp.mean(share)}


# --- what is compiled
# --------------------------------------------------------------------------------------------------


@cache
def compiled(function: Callable[..., Any], static: tuple[int, ...] = (0,)) -> Callable[..., Any]:
    """The function under jax.jit, one for the whole session: JAX finds what it compiled by the static arguments."""
    import jax

    return jax.jit(function, static_argnums=static)


def values(step: Step, phi: Any, data: Any, constants: Any, key: Any, xs: Any) -> Any:
    """The likelihood part and its diagnostics, for many independent steps."""
    import jax

    return jax.lax.map(lambda x: step.likelihood(phi, data, step.draw(constants, key, x)), xs)


def gradients(step: Step, phi: Any, data: Any, constants: Any, key: Any, xs: Any) -> Any:
    """Values, gradients and diagnostics of the likelihood part, for many independent steps."""
    import jax

    def one(x: Any) -> Any:
        batch = step.draw(constants, key, x)
        (value, about), slope = jax.value_and_grad(step.likelihood, has_aux=True)(phi, data, batch)
        return value, slope, about

    return jax.lax.map(one, xs)


def mean_hessian(step: Step, nu_only: bool, phi: Any, data: Any, constants: Any, key: Any, xs: Any) -> Any:
    """The mean Hessian of the likelihood part over many independent steps, in φ or in ν alone."""
    import jax
    import jax.numpy as jnp

    at = phi[step.p :] if nu_only else phi

    def add(total: Any, x: Any) -> Any:
        batch = step.draw(constants, key, x)

        def value(part: Any) -> Any:
            return step.likelihood(jnp.concatenate([phi[: step.p], part]) if nu_only else part, data, batch)[0]

        return total + jax.hessian(value)(at), None

    zero = jnp.zeros((at.size, at.size), dtype=phi.dtype)
    return jax.lax.scan(add, zero, xs)[0] / len(jax.tree.leaves(xs)[0])


def prior_hessian(step: Step, phi: Any, data: Any) -> Any:
    """∂² log π."""
    import jax
    import jax.numpy as jnp

    return jax.hessian(lambda value: step.log_prior(value, data) + 0.0 * jnp.sum(value))(phi)
