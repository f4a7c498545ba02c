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
from typing import Any, Literal, NamedTuple, final

import numpy as np

from ..._base.numerics import x64
from ...models.base import Model
from ...models.priors import Priors
from ...objectives import losses
from ...objectives.base import LossName
from ...objectives.likelihood import LOGISTIC
from ...objectives.traced import logistic, poisson
from .chi import Curve
from .sources import Batch, Draw, Plan

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


class Read(NamedTuple):
    """What a batch reads of one table: rows of the observations (or of their contexts), and of the reference points."""

    index: Any  # (b, …)
    reference: Any  # (r, k), or nothing where the context chooses


class Predictors(NamedTuple):
    """All that a step's value depends on φ through: linear in φ where f and χ are."""

    total: Any  # Σ_t w_t (f + χ) of the data, or its estimate from the batch, where the loss is linear in it (𝓜)
    data: Any  # (b,) η of the batch's observations, where it is not
    reference: Any  # (r, k) η of the reference points


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

    @property
    def log_ratio(self) -> float:
        """log(n/m) of the logistic loss."""
        return -float(np.log(self.plan.references))

    def f_data(self, theta: Any, data: Any, index: Any) -> Any:
        import jax

        arguments = jax.tree.map(lambda leaf: leaf[index], data["arguments"])
        return jax.vmap(lambda y, *a: self.model.one(theta, y, *a))(data["y"][index], *arguments)

    def f_reference(self, theta: Any, data: Any, index: Any, y: Any) -> Any:
        """(r, k)."""
        import jax

        arguments = () if self.plan.shared else jax.tree.map(lambda leaf: leaf[index], data["arguments"])
        return jax.vmap(lambda row, *a: jax.vmap(lambda y: self.model.one(theta, y, *a))(row))(y, *arguments)

    def log_z(self, theta: Any, data: Any, index: Any) -> Any:
        """(b,) log ∫ exp f_θ(y|x_i) dy with the offset, by the domain's rule: what anchored constants follow."""
        import jax

        def one(*x: Any) -> Any:
            f = jax.vmap(lambda y: self.model.one(theta, y, *x))(data["nodes"])
            return jax.scipy.special.logsumexp(f + data["log_w"])

        arguments = jax.tree.map(lambda leaf: leaf[index], data["arguments"])
        return jax.vmap(one)(*arguments) + data["offset"][index]

    def predictors(self, phi: Any, data: Any, batch: Batch) -> Predictors:
        """f and χ at the batch's observations and points, as the loss takes them."""
        theta, nu = phi[: self.p], phi[self.p :]
        i = batch.index
        known = self.loss == "poisson" and "theta_total" in data  # Σ w f of all data, exactly: no need of the batch's
        f_data = data["theta_total"] @ theta if known else self.f_data(theta, data, i)
        log_z = self.log_z(theta, data, i) if "nodes" in data else 0.0
        return self._predictors(f_data, self.f_reference(theta, data, i, batch.y), (nu, log_z), data, batch)

    def _predictors(self, f_data: Any, f_reference: Any, constants: Any, data: Any, batch: Batch) -> Predictors:
        """From f at the observations (or its sum over all data, where that is known) and at the reference points."""
        import jax

        i, (nu, log_z) = batch.index, constants
        if self.loss in CANCELLING:
            return Predictors((), f_data, f_reference)
        chi = self.curve(nu, jax.tree.map(lambda leaf: leaf[i], data["chi"])) - log_z
        level = (chi[:1] + data["shared_offset"] if self.plan.shared else chi + data["offset"][i])[:, None]
        reference = f_reference + level - batch.log_q
        if self.loss == "ncd":
            eta = f_data + chi + data["offset"][i] - data["log_q"][i]
            return Predictors((), eta + self.log_ratio, reference + self.log_ratio)
        a = batch.scale * data["weight"][i]
        total = f_data if "theta_total" in data else a @ f_data
        total += data["nu_total"] @ nu + data["constant"] if "nu_total" in data else a @ (chi + data["offset"][i])
        return Predictors(total, (), reference)

    # --- models with tables of which a point reads a few rows --------------------------------------------------------

    def reads(self, data: Any, batch: Batch) -> tuple[Read, ...]:
        """The rows that the batch reads of each table."""
        import jax.numpy as jnp

        y, points = data["y"][batch.index][:, 0].astype(jnp.int32), batch.y[..., 0].astype(jnp.int32)
        lookup, by = self.model.lookup, dict.fromkeys(self.model.lookup.outcome, Read(y, points))
        if lookup.context:
            around = Read(data["arguments"][0][batch.index].astype(jnp.int32), ())
            by |= dict.fromkeys(lookup.context, around)
        return tuple(by[table.name] for table in self.model.tables)

    def by_rows(self, rest: Any, gathered: tuple[Read, ...], data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """`objective` from the gathered rows and the rest of φ, the flat prior left out."""
        import jax

        i, model = batch.index, self.model
        p = self.p - sum(table.end - table.begin for table in model.tables)
        tree, nu = model.unravel_rest(rest[:p]), rest[p:]
        arguments = jax.tree.map(lambda leaf: leaf[i], data["arguments"])
        named = {table.name: rows for table, rows in zip(model.tables, gathered)}
        own = {name: rows.index for name, rows in named.items()}
        points = {name: named[name].reference for name in model.lookup.outcome}
        around = {name: own[name] for name in model.lookup.context}

        def f(y: Any, rows: Any, *x: Any) -> Any:
            return model.at_rows({**tree, **rows}, y, *x)

        def f_points(y: Any, rows: Any, around: Any, *x: Any) -> Any:
            return jax.vmap(lambda y, rows: f(y, {**rows, **around}, *x))(y, rows)

        f_data = jax.vmap(f)(data["y"][i], own, *arguments)
        if self.plan.shared:
            f_reference = jax.vmap(lambda y, rows: f_points(y, rows, {}))(batch.y, points)
        else:
            f_reference = jax.vmap(f_points)(batch.y, points, around, *arguments)
        eta = self._predictors(f_data, f_reference, (nu, 0.0), data, batch)
        value = self.value(eta, data, batch)
        if "penalty" in data:
            value = value - 0.5 * nu @ data["penalty"] @ nu
        return value, self.health(eta, data, batch)

    def value(self, eta: Predictors, data: Any, batch: Batch) -> Any:
        """The estimate of the objective, without the prior: the likelihood of the step's rows, or of its choices."""
        import jax.numpy as jnp

        a = batch.scale * data["weight"][batch.index]
        if self.loss == "poisson":
            return eta.total - self._integral(eta.reference, a, data)
        if self.loss == "ncd":
            v = data["W"] / self.plan.b if self.plan.shared else a[:, None]
            return -(a @ logistic(-eta.data)) - jnp.sum(v * logistic(eta.reference))
        if self.loss == "ranking":
            at = data["log_q"][batch.index]
            return -losses.ranking(eta.data, eta.reference, at, batch.log_q, weights=a, reduction="sum")
        back = self._log_back(data, batch)
        pairs = losses.conditional_nce(eta.data, eta.reference, batch.log_q, back, weights=a, reduction="sum")
        return -self.plan.k * pairs

    def _integral(self, reference: Any, a: Any, data: Any) -> Any:
        """Σ_t w_t ∫ exp(f + χ): each point is a row with the k-th part of its observation's weight."""
        import jax.numpy as jnp

        mass = jnp.mean(poisson(reference), axis=1)  # (r,)
        return data["W"] * mass[0] if self.plan.shared else a @ mass

    def _log_back(self, data: Any, batch: Batch) -> Any:
        """log q(y|y') of the step back; that of the data themselves where q does not look at the outcome."""
        return data["log_q"][batch.index][:, None] if batch.log_back is None else batch.log_back

    def likelihood(self, phi: Any, data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """The estimate of the objective, without the prior, and what the diagnostics need."""
        eta = self.predictors(phi, data, batch)
        return self.value(eta, data, batch), self.health(eta, data, batch)

    def health(self, eta: Predictors, data: Any, batch: Batch) -> dict[str, Any]:
        """∫ exp(f + ν), which tends to 1, and the effective share of the reference points (Kong 1992)."""
        import jax
        import jax.numpy as jnp

        eta = jax.lax.stop_gradient(eta)
        nothing = jnp.full((), jnp.nan, eta.reference.dtype)
        if self.loss == "conditional":
            odds = eta.data[:, None] - eta.reference + batch.log_q - self._log_back(data, batch)
            # what a pair tells, σ(1 − σ), against the most it can: nothing where pairs are told apart with certainty
            return {"mass": nothing, "ess": jnp.mean(4 * LOGISTIC.variance(odds, jnp))}
        if self.loss == "ranking":
            return {"mass": nothing, "ess": effective_share(eta.reference - batch.log_q)}
        reference = eta.reference - (self.log_ratio if self.loss == "ncd" else 0.0)
        a = batch.scale * data["weight"][batch.index]
        W = data["W"] if self.plan.shared or self.loss == "poisson" else jnp.sum(a)
        return {"mass": self._integral(reference, a, data) / W, "ess": effective_share(reference)}

    def log_prior(self, phi: Any, data: Any) -> Any:
        """log π(θ) + log π(ν) − ½ βᵀ S_λ β, the last where χ is a penalised smooth."""
        nu = phi[self.p :]
        value = self.prior.log_density({"theta": phi[: self.p], "nu": nu})
        return value - 0.5 * nu @ data["penalty"] @ nu if "penalty" in data else value

    def objective(self, phi: Any, data: Any, batch: Batch) -> tuple[Any, dict[str, Any]]:
        """𝓜̂ + log π."""
        value, about = self.likelihood(phi, data, batch)
        return value + self.log_prior(phi, data), about


def effective_share(log_weight: Any) -> Any:
    """(Σ w)²/(k Σ w²) by row, on average."""
    import jax.numpy as jnp

    w = jnp.exp(log_weight - jnp.max(log_weight, axis=1, keepdims=True))
    return jnp.mean(jnp.sum(w, axis=1) ** 2 / (jnp.sum(w**2, axis=1) * w.shape[1]))


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


def mean_gradient(step: Step, phi: Any, data: Any, constants: Any, key: Any, xs: Any) -> Any:
    """As `gradients`, with the mean of the gradients alone: for parameters so many that each cannot be kept."""
    import jax
    import jax.numpy as jnp

    def add(total: Any, x: Any) -> Any:
        batch = step.draw(constants, key, x)
        (value, about), slope = jax.value_and_grad(step.likelihood, has_aux=True)(phi, data, batch)
        return total + slope, (value, about)

    total, (value, about) = jax.lax.scan(add, jnp.zeros_like(phi), xs)
    return value, total / len(value), about


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


def prior_gradient(step: Step, phi: Any, data: Any) -> Any:
    """∂ log π."""
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda value: step.log_prior(value, data) + 0.0 * jnp.sum(value))(phi)


def curvature_product(step: Step, phi: Any, data: Any, constants: Any, key: Any, xs: Any, v: Any) -> Any:
    """−∂²(𝓜 + log π) v on average over many independent steps, as Jᵀ (−∂²𝓜/∂η²) J v with J = ∂η/∂φ (Gauss–Newton).

    The Hessian itself where f and χ are linear; never indefinite where they are not, apart from the prior.
    """
    import jax
    import jax.numpy as jnp

    def add(total: Any, x: Any) -> Any:
        batch = step.draw(constants, key, x)

        def predictors(phi: Any) -> Any:
            return step.predictors(phi, data, batch)

        eta, pull = jax.vjp(predictors, phi)
        push = jax.jvp(predictors, (phi,), (v,))[1]
        bent = jax.jvp(jax.grad(lambda eta: step.value(eta, data, batch)), (eta,), (push,))[1]
        return total - pull(bent)[0], None

    total = jax.lax.scan(add, jnp.zeros_like(phi), xs)[0] / len(jax.tree.leaves(xs)[0])
    prior = jax.grad(lambda value: step.log_prior(value, data) + 0.0 * jnp.sum(value))
    return total - jax.jvp(prior, (phi,), (v,))[1]
