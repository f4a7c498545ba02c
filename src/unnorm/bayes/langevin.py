"""`Langevin`: stochastic-gradient Langevin sampling of (θ, ν) or (θ, χ) with blackjax, from the unbiased gradient of 𝓜.

Coordinates are whitened at the mode, φ = φ̂ + L z with L Lᵀ the inverse curvature, so that one step size suits all
parameters: steps are z ← z + h Lᵀ ĝ + √(2h) ξ. For a Gaussian posterior and gradient noise of variance σ² (whitened)
the stationary variance is

    (1 + h σ²/2) / (1 − h/2)        instead of 1,

the bias that a step size buys; it is estimated for every run and reported. Control variates (Baker, Fearnhead, Fox &
Nemeth 2019), ĝ(φ) = G(φ̂) + g(φ; batch) − g(φ̂; batch) with G an accurate gradient at the mode, make σ² small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from .._base.extras import extra
from .._base.numerics import flag
from ..domains.base import whole
from ..errors import CombinationError, InputError, unknown, warn
from ..objectives.base import LossName
from ..references.points import PointScheme
from ..solvers.stochastic.estimator import MOST_NUMBERS, Estimator, StepDesign, estimator
from ..solvers.stochastic.loop import DivergenceError
from ..solvers.stochastic.renewal import MOST_DENSE, curvature
from ..solvers.stochastic.sgd import SGD
from ..solvers.stochastic.sources import Sampling
from ..solvers.stochastic.step import Dtype, Step, compiled, precision
from .draws import Draws
from .sampling import Sampler, Target

MORE = 8  # times as many points in a step, on the way to the mode, where it diverged
LEAST_CURVATURE = 1e-3  # of the largest on the diagonal's scale: flatter directions are not stretched further


@final
@dataclass(frozen=True)
class Langevin(Sampler):
    """Approximate sampling by Langevin steps with minibatches and fresh reference points (Welling & Teh 2011).

    Args:
        draws, warmup, thin, chains: how many steps are kept, dropped first, taken for each kept one, and how many
            chains.
        step_size: h in whitened coordinates, or a function of the step number (JAX-traceable) for a schedule.
        batch: observations in a step; None for all.
        references, points, sampling: as in `SGD`.
        kernel: "sgld", or "sghmc" (Chen, Fox & Guestrin 2014, with `integration_steps` and `friction`).
        integration_steps: of sghmc, leapfrog steps to a draw.
        friction: of sghmc, in whitened coordinates.
        control: control variates at the mode.
        precondition: whiten by the curvature at the mode; False leaves the parameters' own units.
        anchor_error: how well the gradient at the mode must be known, in posterior standard deviations.
        mode: how the mode is found; default an `SGD` of 400 steps with the same batches.
        dtype: "float64" or "float32".

    Example:
        >>> falling = Langevin(draws=2000, batch=100, step_size=lambda step: 0.2 * (1 + step / 50) ** -0.33)
        >>> falling.kernel
        'sgld'
    """

    draws: int = 1000
    warmup: int = 500
    thin: int = 5
    chains: int = 4
    step_size: float | Callable[[Any], Any] = 0.05
    batch: int | None = None
    references: int = 10
    points: PointScheme | None = None
    sampling: Sampling = "stratified"
    kernel: Literal["sgld", "sghmc"] = "sgld"
    control: bool = True
    precondition: bool = True
    anchor_error: float = 0.03
    integration_steps: int = 10
    friction: float = 0.5
    mode: SGD | None = None
    dtype: Dtype = "float64"

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("warmup", 0), ("thin", 1), ("chains", 1), ("integration_steps", 1)):
            whole(getattr(self, name), name, least)
        for name in ("control", "precondition"):
            object.__setattr__(self, name, flag(getattr(self, name), name))  # NumPy's do not go into JSON
        if self.kernel not in ("sgld", "sghmc"):
            raise InputError(unknown("kernel", self.kernel, ("sgld", "sghmc")))
        if not callable(self.step_size) and not self.step_size > 0:
            raise InputError(f"step_size must be positive, or a function of the step; got {self.step_size!r}.")

    def sample(self, target: Target, rng: np.random.Generator) -> Draws:
        """Draws from exp(𝓜 + log π)."""
        import jax

        extra("blackjax", "stochastic", "un.Langevin")
        seed = int(rng.integers(2**31))
        phi, e = self._mode(target, rng)
        L = whitening(e, phi, seed) if self.precondition else np.ones(e.size)
        G, error = anchored(e, phi, L, seed, self.anchor_error) if self.control else (np.zeros(e.size), 0.0)
        with precision(self.dtype):
            kept, bad = self._run(e, phi, L, G, seed)
            kept = np.asarray(jax.device_get(kept), dtype=np.float64)
            bad = int(np.asarray(bad).max())
        if bad >= 0 or not np.isfinite(kept).all():
            raise DivergenceError(
                f"Langevin sampling diverged at step {bad}: the step size {self.step_size} is too large for this "
                "posterior. Use a smaller step_size (0.05 is safe for most whitened posteriors), control=True, or a "
                "larger batch.",
                bad,
                phi,
            )
        inflation = self._inflation(e, phi, L, seed)
        notes = self._notes(error, inflation)
        for note in notes:
            warn(note, stacklevel=3)
        position = phi + (kept @ L.T if L.ndim == 2 else kept * L)
        nu = position[:, :, e.p :]
        return Draws(
            e.model.names,
            position[:, :, : e.p],
            nu if e.chi.size <= 2000 else nu[:, :, :0],
            {"sampler": self.to_dict(), "prior": e.prior.to_dict()},
            {"mode": phi.tolist() if e.size <= 2000 else [], "sd_inflation": inflation, "anchor_error": error},
            notes,
            seed,
            e.model,
        )

    def _mode(self, target: Target, rng: np.random.Generator) -> tuple[np.ndarray, Estimator]:
        """φ̂, and the problem with χ's smoothing parameters as they were chosen there.

        Where the way there diverges, it is tried again with all observations and more points in each step, and then
        with the logistic loss, whose gradient is bounded and whose mode is the same up to the noise of the points.
        """
        n = target.obs.n
        batch = None if self.batch is not None and self.batch >= n else self.batch
        e = self._estimator(target, batch, self.references)
        if e.chi.size == e.obs.n > 1:
            raise CombinationError(
                "One ν_t for each observation is a posterior that Langevin steps mix badly in. Use "
                "normaliser=un.Anchored(), constants that follow θ; un.Features(...) or un.Network(...) for χ(x); or "
                "un.NUTS, which integrates the ν_t out."
            )
        way = SGD(steps=400, batch=self.batch, references=self.references) if self.mode is None else self.mode
        try:
            trace = way.climb(e, rng)
            return trace.phi, trace.estimator
        except DivergenceError:
            if self.mode is not None:
                raise
        more = MORE * self.references
        way = SGD(steps=400, references=more)
        try:
            trace = way.climb(self._estimator(target, None, more), rng)
        except DivergenceError:
            trace = way.climb(self._estimator(target, None, more, "ncd"), rng)  # Logistic's
        penalty = {name: value for name, value in trace.estimator.data.items() if name == "penalty"}
        return trace.phi, replace(e, data=e.data | penalty)

    def _estimator(self, target: Target, batch: int | None, references: int, loss: LossName = "poisson") -> Estimator:
        design = StepDesign(batch, references, self.points, self.sampling, dtype=self.dtype, anchors=True)
        return estimator(target.model, target.obs, target.reference, target.normaliser, design, loss, target.prior)

    def _notes(self, error: float, inflation: float) -> tuple[str, ...]:
        """What the user should know of the gradient at the mode and of the step size."""
        notes = []
        if error > 2 * self.anchor_error:
            notes.append(
                f"The gradient at the mode is known only to {error:.2g} posterior standard deviations, which may shift "
                "the means by as much. Use more references, a low-discrepancy scheme, or a reference nearer to the "
                "model."
            )
        if inflation > 1.1:
            notes.append(
                f"The step size inflates posterior standard deviations by about {100 * (inflation - 1):.0f} %; use a "
                "smaller step_size, a larger batch or more references."
            )
        return tuple(notes)

    def _run(self, e: Estimator, phi: np.ndarray, L: np.ndarray, G: np.ndarray, seed: int) -> tuple[Any, Any]:
        """(chains, draws, size) whitened positions and the first bad step of each chain."""
        import jax
        import jax.numpy as jnp

        source = e.source
        kernel = Kernel(self.kernel, self.control, self.step_size, self.integration_steps, self.friction)
        anchor = tuple(np.asarray(value, dtype=e.dtype) for value in (phi, L, G))
        keys = jax.random.split(jax.random.key(seed), self.chains)
        # over-dispersed, so that R-hat can see chains that have not met
        z = 1.5 * jax.random.normal(jax.random.key(seed + 1), (self.chains, e.size), dtype=e.dtype)
        total = self.warmup + self.draws * self.thin
        rounds, kept = -(-total // self.thin), []
        bad = jnp.full(self.chains, -1, dtype=jnp.int32)
        most = max(1, MOST_NUMBERS // (source.numbers * self.chains * self.thin))
        size = max(1, min(rounds, 500, most))  # rounds in one compiled call
        for first in range(0, rounds, size):
            count = min(size, rounds - first)
            begin, length = first * self.thin, count * self.thin
            numbers = np.arange(begin, begin + length, dtype=np.int32).reshape(count, self.thin)
            blocks = [source.block(seed + 17 * c, begin, length) for c in range(self.chains)]
            xs = jax.tree.map(lambda *parts: _rounds(np.stack(parts), self.thin), *blocks)
            run = compiled(chains, (0, 1))
            (z, bad), path = run(e.step, kernel, anchor, keys, z, (e.device_data, e.device_constants), (xs, numbers))
            kept.append(path)
            if int(np.asarray(bad).max()) >= 0:
                break
        path = jnp.concatenate(kept, axis=1)
        return path[:, -self.draws :], bad

    def _inflation(self, e: Estimator, phi: np.ndarray, L: np.ndarray, seed: int) -> float:
        """√ of (1 + hσ²/2)/(1 − h/2), σ² the whitened gradient noise at typical draws, averaged over directions."""
        if callable(self.step_size) or not self.precondition or self.kernel != "sgld":
            return 1.0
        rng = np.random.default_rng(seed)
        noise = []
        for j in range(4):
            z = rng.standard_normal(e.size)
            at = phi + (L @ z if L.ndim == 2 else L * z)
            _, g, _ = e.gradients(at, seed + 5, 16, first=16 * j)
            if self.control:
                g = g - e.gradients(phi, seed + 5, 16, first=16 * j)[1]
            white = g @ L if L.ndim == 2 else g * L
            noise.append(white.var(axis=0, ddof=1))
        sigma2 = float(np.mean(noise))
        h = float(self.step_size)
        return float(np.sqrt((1 + h * sigma2 / 2) / (1 - h / 2))) if h < 2 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        return {
            "sampler": "Langevin",
            "kernel": self.kernel,
            "draws": self.draws,
            "warmup": self.warmup,
            "thin": self.thin,
            "chains": self.chains,
            "step_size": "schedule" if callable(self.step_size) else self.step_size,
            "batch": self.batch,
            "references": self.references,
            "control": self.control,
        }


def _rounds(array: np.ndarray, thin: int) -> np.ndarray:
    """(chains, steps, …) → (chains, rounds, thin, …)."""
    return array.reshape(array.shape[0], -1, thin, *array.shape[2:])


@final
@dataclass(frozen=True)
class Kernel:
    """What a Langevin step does, without any array."""

    name: str
    control: bool
    step_size: float | Callable[[Any], Any]
    integration_steps: int
    friction: float

    def algorithm(self, gradient: Callable[..., Any]) -> Any:
        import blackjax

        if self.name == "sgld":
            return blackjax.sgld(gradient)
        return blackjax.sghmc(gradient, self.integration_steps, self.friction)

    def h(self, number: Any) -> Any:
        return self.step_size(number) if callable(self.step_size) else self.step_size


def chains(step: Step, kernel: Kernel, anchor: Any, keys: Any, z: Any, arrays: Any, scanned: Any) -> Any:
    """Rounds of `thin` steps in every chain. Gradients are Lᵀ {G + g(φ) − g(φ̂) + ∂ log π}.

    `anchor` is (φ̂, L, G), `arrays` (data, constants), and `scanned` the draws of the steps with the steps' numbers.
    """
    import jax
    import jax.numpy as jnp

    centre, root, at_mode = anchor
    data, constants = arrays
    xs, numbers = scanned
    slope = jax.grad(lambda value, batch: step.likelihood(value, data, batch)[0])
    prior = jax.grad(lambda value: step.log_prior(value, data) + 0.0 * jnp.sum(value))

    def gradient(z: Any, batch: Any) -> Any:
        here = centre + (root @ z if root.ndim == 2 else root * z)
        g = slope(here, batch)
        if kernel.control:
            g = at_mode + g - slope(centre, batch)
        g = g + prior(here)
        return g @ root if root.ndim == 2 else g * root

    algorithm = kernel.algorithm(gradient)

    def chain(key: Any, z: Any, xs: Any) -> Any:
        batch_key, noise_key = jax.random.split(key)

        def one(carry: Any, scanned: Any) -> Any:
            z, bad = carry
            x, number = scanned
            batch = step.draw(constants, batch_key, x)
            new = algorithm.step(jax.random.fold_in(noise_key, number), z, batch, kernel.h(number))
            fine = jnp.all(jnp.isfinite(new)) & jnp.all(jnp.abs(new) < 1e4)
            bad = jnp.where((bad < 0) & ~fine, number, bad)
            return (jnp.where(bad < 0, new, z), bad), None

        def keep(carry: Any, scanned: Any) -> Any:
            carry, _ = jax.lax.scan(one, carry, scanned)
            return carry, carry[0]

        return jax.lax.scan(keep, (z, jnp.int32(-1)), (xs, numbers))

    return jax.vmap(chain)(keys, z, xs)


def whitening(e: Estimator, phi: np.ndarray, seed: int) -> np.ndarray:
    """L with L Lᵀ = (−∂²(𝓜 + log π))⁻¹ at φ̂; its diagonal alone, as a vector, where there are many parameters."""
    if e.size > MOST_DENSE:
        return 1.0 / np.sqrt(np.maximum(_diagonal(e, phi, seed), 1e-12))
    H = e.W * curvature(e, phi, seed, 0, 16)
    scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    values = np.maximum(np.abs(values), LEAST_CURVATURE * values.max() / len(values))
    return (vectors / np.sqrt(values)) / scale[:, None]


def signed_curvature(step: Step, phi: Any, data: Any, constants: Any, key: Any, x: Any, v: Any) -> Any:
    """v ∘ Hv."""
    import jax

    batch = step.draw(constants, key, x)
    slope = jax.grad(lambda value: step.objective(value, data, batch)[0])
    return v * jax.jvp(slope, (phi,), (v,))[1]


def _diagonal(e: Estimator, phi: np.ndarray, seed: int, probes: int = 32) -> np.ndarray:
    """diag(−∂²𝓜) by Hutchinson's estimator, E[v ∘ Hv] over random signs v."""
    import jax

    with precision(e.dtype):
        fixed = (np.asarray(phi, dtype=e.dtype), e.device_data, e.device_constants, jax.random.key(seed))
        xs = e.source.block(seed, 0, probes)
        rng = np.random.default_rng(seed)
        total = np.zeros(e.size)
        for x in zip(*jax.tree.leaves(xs)):
            v = rng.choice([-1.0, 1.0], e.size).astype(e.dtype)
            x = jax.tree.unflatten(jax.tree.structure(xs), x)
            total += np.asarray(compiled(signed_curvature)(e.step, *fixed, x, v), dtype=np.float64)
    return np.maximum(-total / probes, 1e-6 * np.abs(total).max() / probes)


def anchored(e: Estimator, phi: np.ndarray, L: np.ndarray, seed: int, enough: float) -> tuple[np.ndarray, float]:
    """∂𝓜 at φ̂ from as many independent steps as it takes, and its error in posterior standard deviations."""
    parts: list[np.ndarray] = []
    error = np.inf
    done = 0
    while error > enough and done < 8192:
        count = max(64, done)
        parts.append(e.gradients(phi, (seed + 11) % 2**31, count, first=done)[1])
        done += count
        g = np.concatenate(parts)
        white = g @ L if L.ndim == 2 else g * L
        error = float(np.sqrt(np.max(white.var(axis=0, ddof=1) / done)))
    return np.concatenate(parts).mean(axis=0), error
