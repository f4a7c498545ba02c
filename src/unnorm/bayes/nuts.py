"""`NUTS`: the No-U-Turn sampler with full gradients, its integrals by quadrature: the check on Langevin.

Under a flat prior, ν integrates out in closed form: ∫ exp(Wν − W e^ν Z) dν ∝ Z^{−W}, so that only θ is sampled, from
the posterior of the untransformed model, and ν | θ is drawn exactly afterwards (e^ν ~ Gamma(W)/(W Z)). χ(x) has no
such form and is sampled with θ; where it is a penalised smooth, at the smoothing parameters that REML chooses at the
mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast, final

import numpy as np

from .._base.extras import extra
from .._base.numerics import x64
from ..data.observations import Observations
from ..domains.base import Quadrature, whole
from ..errors import CombinationError, EstimationError, warn
from ..models.base import Model, context_arguments
from ..models.normalisers import PerContext
from ..models.priors import Priors, priors
from ..objectives.exact import Exact, ExactProblem
from ..objectives.integrals import Integrals
from ..solvers.newton import Newton
from ..solvers.stochastic.chi import Chi, Curve, chi_of
from ..solvers.stochastic.smoothing import smoothed
from ..solvers.stochastic.step import compiled
from .draws import Draws
from .sampling import Sampler, Target

MOST_CELLS = 20_000_000  # contexts × nodes of one gradient
TOO_COARSE = 1e-4  # error of log Z at the mode
COARSE = (
    "The posterior may be wrong: one rule of {nodes} nodes serves all contexts, and log Z is off by up to {error:.1g} "
    "at the mode. Pass a larger order= to un.NUTS, or use un.Langevin, which needs no rule."
)


@final
@dataclass(frozen=True)
class NUTS(Sampler):
    """Full-gradient sampling where ∫ exp f is cheap (blackjax; Hoffman & Gelman 2014).

    Args:
        draws, warmup, chains: how many are kept, used to adapt the step size and the metric, and how many chains.
        order: of the quadrature rule; default what `un.Exact` needs at the mode.
        target_acceptance: of the step-size adaptation.

    Example:
        >>> NUTS(draws=500, chains=2).to_dict()
        {'sampler': 'NUTS', 'draws': 500, 'warmup': 500, 'chains': 2}
    """

    draws: int = 1000
    warmup: int = 500
    chains: int = 4
    order: int | None = None
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("warmup", 20), ("chains", 1)):
            whole(getattr(self, name), name, least)

    def sample(self, target: Target, rng: np.random.Generator) -> Draws:
        """Draws from exp(𝓜 + log π)."""
        extra("blackjax", "stochastic", "un.NUTS")
        model, obs, prior = target.model, target.obs, priors(target.prior, target.model)
        chi = chi_of(target.normaliser, obs, model, anchors=True)
        anchored = target.normaliser.anchored
        if anchored:  # the posterior of θ is that of free constants, and δ is independent of it
            if not prior.nu.flat:
                raise CombinationError("δ of un.Anchored() has a flat prior: give prior={'theta': …} alone.")
            chi = chi_of(PerContext(), obs, model)
        layout = chi.layout if prior.nu.flat else None  # constants under a flat prior are integrated out
        seed = int(rng.integers(2**31))
        mode, rule, notes = self._mode(model, obs)
        data = _arrays(model, obs, chi, rule)
        fixed, groups = None, 0
        if layout is not None:
            fixed, groups = layout.fixed, max(layout.size, 1)
            data |= {"share": layout.of, "counts": np.bincount(layout.of, obs.weights, groups)}
        posterior = Posterior(model, chi.curve, prior, layout is not None, fixed, groups)
        with x64():
            start, smoothing = _start(posterior, chi, mode, data, obs)
            phi, stats, step_size = self._chains(posterior, start, data, seed)
            nu = phi[:, :, model.size :]
            if anchored:  # Σ_t w_t (δ − e^δ): e^δ ~ Gamma(W)/W
                nu = np.log(rng.standard_gamma(obs.weights.sum(), (*phi.shape[:2], 1)) / obs.weights.sum())
            elif layout is not None and layout.fixed is None and layout.size <= 2000:
                flat = np.asarray(compiled(masses)(posterior, phi[:, :, : model.size].reshape(-1, model.size), data))
                gamma = rng.standard_gamma(data["counts"], size=flat.shape)
                nu = (np.log(gamma) - flat).reshape(*phi.shape[:2], layout.size)
        bad = int(stats["diverging"].sum())
        return Draws(
            model.names,
            phi[:, :, : model.size],
            nu,
            {"sampler": self.to_dict(), "prior": prior.to_dict()},
            {"divergences": bad, "step_size": step_size, "nodes": len(rule.weights)} | smoothing,
            (*notes, f"{bad} divergent transitions; raise target_acceptance.") if bad else notes,
            seed,
            model,
            stats,
        )

    def _chains(
        self, posterior: Posterior, start: np.ndarray, data: dict[str, Any], seed: int
    ) -> tuple[np.ndarray, dict[str, np.ndarray], float]:
        """(chains, draws, size) positions, what is known of each transition, and the step size."""
        import jax

        H = -np.asarray(compiled(hessian)(posterior, start, data))
        scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
        values, vectors = np.linalg.eigh((H + H.T) / 2 / np.outer(scale, scale))
        L = (vectors / np.sqrt(np.maximum(np.abs(values), 1e-4))) / scale[:, None]
        keys = jax.random.split(jax.random.key(seed), 3)
        tuned = compiled(adapt, (0, 1))(posterior, self, start, L, keys[0], data)
        z0 = 1.5 * jax.random.normal(keys[1], (self.chains, len(start)))
        each = jax.random.split(keys[2], self.chains)
        path, info = compiled(chains, (0, 1))(posterior, self, start, L, tuned, each, z0, data)
        phi = start + np.asarray(path)[:, -self.draws :] @ L.T
        if not np.isfinite(phi).all():
            raise EstimationError(
                "NUTS left the range of floating-point numbers: the posterior may be improper; give a prior such as "
                "un.Normal(10)."
            )
        stats = {name: np.asarray(values)[:, -self.draws :] for name, values in info.items()}
        return phi, stats, float(tuned["step_size"])

    def _mode(self, model: Model, obs: Observations) -> tuple[np.ndarray, Quadrature, tuple[str, ...]]:
        """The MLE, the quadrature rule that is accurate there, and a note where none is."""
        exact = Exact(self.order)
        problem = exact.bind(model, obs, exact.default_normaliser(model, obs))
        problem = replace(problem, centred=None)  # one rule for all contexts: one compiled sum
        try:
            end, path = Newton().climb(problem)
            problem, theta = cast(ExactProblem, end), path.theta
        except EstimationError:
            theta = model.start
        integrals = cast(Integrals, problem.integrals)
        error = integrals.error(theta)
        if error <= TOO_COARSE:
            return theta, integrals.rule, ()
        note = COARSE.format(error=error, nodes=integrals.each)
        warn(note, stacklevel=4)
        return theta, integrals.rule, (note,)

    def to_dict(self) -> dict[str, Any]:
        return {"sampler": "NUTS", "draws": self.draws, "warmup": self.warmup, "chains": self.chains}


def _arrays(model: Model, obs: Observations, chi: Chi, rule: Quadrature) -> dict[str, Any]:
    """What the posterior is a function of, apart from φ."""
    contexts = model.contexts(obs)
    cells = contexts.size * len(rule.weights)
    if cells > MOST_CELLS:
        raise CombinationError(
            f"NUTS would evaluate f {cells:,} times for one gradient ({contexts.size:,} contexts × "
            f"{len(rule.weights):,} nodes); use un.Langevin, or a smaller order=."
        )
    arguments = context_arguments(obs, model.domain.scalar, model.context_arity)
    data: dict[str, Any] = {
        "y": obs.outcome,
        "arguments": arguments,
        "contexts": contexts.arguments,
        "of": contexts.of,
        "nodes": rule.points,
        "log_q": np.log(rule.weights),
        "w": obs.weights,
        "log_wo": np.log(obs.weights) + obs.offsets,
        "chi": chi.rows,
    }
    if model.linear:
        data["totals"] = model.data_terms(obs.outcome, arguments, obs.weights).derivatives(model.start)[1]
    return data


def _start(
    posterior: Posterior, chi: Chi, mode: np.ndarray, data: dict[str, Any], obs: Observations
) -> tuple[np.ndarray, dict[str, Any]]:
    """Where chains begin: the mode of θ with a χ that normalises it, at REML's smoothing parameters (put in `data`)."""
    if posterior.collapse or not chi.size:
        return mode, {}
    log_z = np.asarray(compiled(Posterior.log_z)(posterior, mode, data))
    start = np.concatenate([mode, chi.start(-log_z - obs.offsets, np.arange(obs.n))])
    if not chi.penalties:
        return start, {}
    start, data["penalty"], smoothing = _smoothed_mode(posterior, chi, start, data)
    return start, smoothing


# --- the posterior, and what is compiled of it
# ---------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Posterior:
    """log posterior of φ = (θ, ν), or of θ alone where ν is integrated out, as a function of arrays alone."""

    model: Model
    curve: Curve
    prior: Priors
    collapse: bool
    fixed: float | None
    groups: int  # how many constants there are, where they are integrated out

    def log_z(self, theta: Any, data: Any) -> Any:
        """(n,)"""
        import jax
        import jax.numpy as jnp

        def one(*x: Any) -> Any:
            f = jax.vmap(lambda y: self.model.one(theta, y, *x))(data["nodes"])
            return jax.scipy.special.logsumexp(f + data["log_q"])

        return jax.vmap(one)(*data["contexts"])[data["of"]] if data["contexts"] else jnp.full(len(data["w"]), one())

    def log_mass(self, theta: Any, data: Any) -> Any:
        """log Σ_t w_t e^{o_t} Z_t over the observations that share a ν."""
        import jax
        import jax.numpy as jnp

        rows, of = data["log_wo"] + self.log_z(theta, data), data["share"]
        top = jax.ops.segment_max(rows, of, self.groups)
        return top + jnp.log(jax.ops.segment_sum(jnp.exp(rows - top[of]), of, self.groups))

    def __call__(self, phi: Any, data: Any) -> Any:
        import jax
        import jax.numpy as jnp

        p = self.model.size
        theta, nu = phi[:p], phi[p:]
        if self.collapse and self.fixed is not None:
            value = -jnp.sum(jnp.exp(data["log_wo"] + self.fixed + self.log_z(theta, data)))
        elif self.collapse:
            value = -data["counts"] @ self.log_mass(theta, data)
        else:
            chi = self.curve(nu, data["chi"])
            value = data["w"] @ chi - jnp.sum(jnp.exp(data["log_wo"] + chi + self.log_z(theta, data)))
        if "totals" in data:
            value = value + data["totals"] @ theta
        else:
            value = value + data["w"] @ jax.vmap(lambda y, *x: self.model.one(theta, y, *x))(
                data["y"], *data["arguments"]
            )
        if "penalty" in data:
            value = value - 0.5 * nu @ data["penalty"] @ nu
        return value + self.prior.log_density({"theta": theta, "nu": nu})


def hessian(posterior: Posterior, phi: Any, data: Any) -> Any:
    import jax

    return jax.hessian(posterior)(phi, data)


def slope(posterior: Posterior, phi: Any, data: Any) -> Any:
    import jax

    return jax.grad(posterior)(phi, data)


def masses(posterior: Posterior, thetas: Any, data: Any) -> Any:
    import jax

    return jax.lax.map(lambda theta: posterior.log_mass(theta, data), thetas)


def adapt(posterior: Posterior, settings: NUTS, start: Any, L: Any, key: Any, data: Any) -> Any:
    """Step size and metric in whitened coordinates, by blackjax's window adaptation."""
    import blackjax
    import jax.numpy as jnp

    warm: Any = blackjax.window_adaptation(
        blackjax.nuts,
        lambda z: posterior(start + L @ z, data),
        is_mass_matrix_diagonal=True,
        target_acceptance_rate=settings.target_acceptance,
    )
    (_, parameters), _ = warm.run(key, jnp.zeros(len(start)), settings.warmup)
    return {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}


def chains(
    posterior: Posterior, settings: NUTS, start: Any, L: Any, tuned: Any, keys: Any, z0: Any, data: Any
) -> tuple[Any, Any]:
    """(chains, settling + draws, size) whitened positions, and what ArviZ knows of each transition."""
    import blackjax
    import jax

    kernel: Any = blackjax.nuts(lambda z: posterior(start + L @ z, data), **tuned)
    settle = settings.warmup // 5  # from over-dispersed starts to the posterior

    def chain(key: Any, z: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, info = kernel.step(key, state)
            about = {
                "diverging": info.is_divergent,
                "acceptance_rate": info.acceptance_rate,
                "n_steps": info.num_integration_steps,
            }
            return state, (state.position, about)

        return jax.lax.scan(step, kernel.init(z), jax.random.split(key, settle + settings.draws))[1]

    return jax.vmap(chain)(keys, z0)


def _smoothed_mode(
    posterior: Posterior, chi: Chi, phi: np.ndarray, data: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """The posterior mode with χ's smoothing parameters by REML: Newton steps, λ renewed after each."""
    p, lam = posterior.model.size, np.zeros(len(chi.penalties))
    for round in range(50):
        H = -np.asarray(compiled(hessian)(posterior, phi, data))
        new = smoothed(chi.penalties, lam, phi, (H + H.T) / 2, p, first=round == 0)
        moved = np.max(np.abs(np.log(np.maximum(new, 1e-300) / np.maximum(lam, 1e-300)))) if round else np.inf
        lam, S = new, np.zeros_like(H)
        S[p:, p:] = chi.penalty(lam)
        g = np.asarray(compiled(slope)(posterior, phi, data)) - S @ phi
        step = np.linalg.solve(H + S, g)
        phi = phi + step / max(1.0, float(np.abs(step[p:]).max()) / 2.0)  # far from the mode exp overshoots
        if float(g @ step) < 1e-8 and moved < 1e-3:
            break
    labels = {"smoothing_parameters": {piece.label: float(v) for piece, v in zip(chi.penalties, lam)}}
    return phi, chi.penalty(lam), labels
