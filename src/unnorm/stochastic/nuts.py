"""`NUTS`: the No-U-Turn sampler with full gradients, its integrals by quadrature: the check on Langevin.

Under a flat prior, ν integrates out in closed form: ∫ exp(Wν − W e^ν Z) dν ∝ Z^{−W}, so that only θ is sampled, from
the posterior of the untransformed model, and ν | θ is drawn exactly afterwards (e^ν ~ Gamma(W)/(W Z)). χ(x) has no
such form and is sampled with θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._numerics import x64
from ..domains.base import whole
from ..errors import CombinationError, EstimationError, InputError
from ..models.base import context_arguments
from ..objectives.exact import Exact
from ..solvers.newton import Newton
from .chi import chi_of
from .draws import Draws
from .priors import Flat, priors

MOST_CELLS = 20_000_000  # contexts × nodes of one gradient


@final
@dataclass(frozen=True)
class NUTS:
    """Full-gradient sampling where ∫ exp f is cheap (blackjax; Hoffman & Gelman 2014).

    Args:
        draws, warmup, chains: how many are kept, used to adapt the step size and the metric, and how many chains.
        order: of the quadrature rule; default what `un.Exact` needs at the mode.
        target_acceptance: of the step-size adaptation.
    """

    draws: int = 1000
    warmup: int = 500
    chains: int = 4
    order: int | None = None
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("warmup", 20), ("chains", 1)):
            whole(getattr(self, name), name, least)

    def sample(self, target: Any, rng: np.random.Generator) -> Draws:
        """Draws from exp(𝓜 + log π)."""
        import blackjax
        import jax
        import jax.numpy as jnp

        model, obs, prior = target.model, target.obs, priors(target.prior, target.model)
        chi = chi_of(target.normaliser, obs, model)
        layout: Any = getattr(chi, "layout", ())  # what ν, ν_t and fixed values have, and χ(x) has not
        collapse = hasattr(chi, "layout") and isinstance(prior.nu, Flat)
        q = 0 if collapse else chi.size
        seed = int(rng.integers(2**31))
        mode, rule = self._mode(model, obs)
        context = model.contexts(obs)
        cells = context.size * len(rule.weights)
        if cells > MOST_CELLS:
            raise CombinationError(
                f"NUTS would evaluate f {cells:,} times for one gradient ({context.size:,} contexts × "
                f"{len(rule.weights):,} nodes); "
                "use un.Langevin, or a smaller order=."
            )
        p, w, o = model.size, obs.weights, obs.offsets
        log_wo, of = np.log(w) + o, context.of
        arguments = context_arguments(obs, model.domain.scalar, model.context_arity)
        totals = model.data_terms(obs.outcome, arguments, w).derivatives(model.start)[1] if model.linear else None
        nodes, log_q = rule.points, np.log(rule.weights)

        def log_z(theta: Any) -> Any:
            def one(*x: Any) -> Any:
                f = jax.vmap(lambda y: model.one(theta, y, *x))(nodes)
                return jax.scipy.special.logsumexp(f + log_q)

            return jax.vmap(one)(*context.arguments)[of] if context.arguments else jnp.full(obs.n, one())

        def data_term(theta: Any) -> Any:
            if totals is not None:
                return totals @ theta
            return w @ jax.vmap(lambda y, *x: model.one(theta, y, *x))(obs.outcome, *arguments)

        def log_mass(theta: Any) -> Any:
            """log Σ_t w_t e^{o_t} Z_t over the observations that share a ν."""
            rows = log_wo + log_z(theta)
            size = max(layout.size, 1)
            top = jax.ops.segment_max(rows, layout.of, size)
            return top + jnp.log(jax.ops.segment_sum(jnp.exp(rows - top[layout.of]), layout.of, size))

        def log_posterior(phi: Any) -> Any:
            theta, nu = phi[:p], phi[p:]
            if collapse and layout.fixed is not None:
                value = -jnp.sum(jnp.exp(log_wo + layout.fixed + log_z(theta)))
            elif collapse:
                value = -jnp.asarray(np.bincount(layout.of, w, layout.size)) @ log_mass(theta)
            else:
                chi_t = chi.curve(nu, chi.rows)
                value = w @ chi_t - jnp.sum(jnp.exp(log_wo + chi_t + log_z(theta)))
            return data_term(theta) + value + prior.log_density({"theta": theta, "nu": nu})

        with x64():
            start = np.concatenate(
                [mode, np.zeros(0) if q == 0 else chi.start(-np.asarray(log_z(mode)) - o, np.arange(obs.n))]
            )
            H = -np.asarray(jax.jit(jax.hessian(log_posterior))(start))
            scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
            values, vectors = np.linalg.eigh((H + H.T) / 2 / np.outer(scale, scale))
            L = (vectors / np.sqrt(np.maximum(np.abs(values), 1e-4))) / scale[:, None]

            def white(z: Any) -> Any:
                return log_posterior(start + L @ z)

            keys = jax.random.split(jax.random.key(seed), 3)
            nuts: Any = blackjax.nuts
            warm: Any = blackjax.window_adaptation(
                nuts, white, is_mass_matrix_diagonal=True, target_acceptance_rate=self.target_acceptance
            )
            (_, parameters), _ = warm.run(keys[0], jnp.zeros(p + q), self.warmup)
            kernel: Any = nuts(white, **parameters)

            def chain(key: Any, z: Any) -> Any:
                def step(state: Any, key: Any) -> Any:
                    state, info = kernel.step(key, state)
                    return state, (state.position, info.is_divergent)

                settle = self.warmup // 5  # from over-dispersed starts to the posterior
                return jax.lax.scan(step, kernel.init(z), jax.random.split(key, settle + self.draws))[1]

            z0 = 1.5 * jax.random.normal(keys[1], (self.chains, p + q))
            path, divergent = jax.jit(jax.vmap(chain))(jax.random.split(keys[2], self.chains), z0)
            phi = start + np.asarray(path)[:, -self.draws :] @ L.T
            if not np.isfinite(phi).all():
                raise EstimationError(
                    "NUTS left the numbers: the posterior may be improper; give a prior such as un.Normal(10)."
                )
            nu = phi[:, :, p:]
            if collapse and layout.fixed is None and layout.size <= 2000:
                flat = jax.jit(lambda thetas: jax.lax.map(log_mass, thetas))(phi[:, :, :p].reshape(-1, p))
                shape = np.bincount(layout.of, w, layout.size)
                gamma = rng.standard_gamma(shape, size=(phi.shape[0] * phi.shape[1], layout.size))
                nu = (np.log(gamma) - np.asarray(flat)).reshape(*phi.shape[:2], layout.size)
        bad = int(np.asarray(divergent).sum())
        notes = (f"{bad} divergent transitions; raise target_acceptance.",) if bad else ()
        return Draws(
            model.names,
            phi[:, :, :p],
            nu,
            {"sampler": self.to_dict(), "prior": prior.to_dict()},
            {"divergences": bad, "step_size": float(parameters["step_size"]), "nodes": len(rule.weights)},
            notes,
            seed,
            model,
        )

    def _mode(self, model: Any, obs: Any) -> tuple[np.ndarray, Any]:
        """The MLE and the quadrature rule that is accurate there."""
        exact = Exact(self.order)
        problem = exact.bind(model, obs, exact.default_normaliser(obs))
        try:
            problem, path = Newton().solve(problem)
            theta = path.theta
        except EstimationError:
            theta = model.start
        integrals = getattr(problem, "integrals", None)
        rule = integrals.rule if integrals is not None else model.domain.quadrature(self.order)
        if rule is None:
            raise InputError("NUTS needs a domain with a quadrature rule or an enumeration.")
        return theta, rule

    def to_dict(self) -> dict[str, Any]:
        return {"sampler": "NUTS", "draws": self.draws, "warmup": self.warmup, "chains": self.chains}
