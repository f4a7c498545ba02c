"""What is known at the end of a stochastic run: covariance, its two parts, and the value of the objective."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inference.sandwich import ErrorParts
from ...objectives.base import Solution
from .estimator import Estimator
from .loop import Trace
from .renewal import MOST_DENSE, curvature
from .sources import Batch
from .step import CANCELLING, Step, compiled, precision

MOST_NONLINEAR = 100  # parameters of a nonlinear f for which a curvature means something
DRAWS = 16  # fresh steps for the final curvature
STEPS = 64  # fresh steps for the final value and for the gradient's noise


def solution(trace: Trace, seed: int) -> Solution:
    """θ̂ with total error = sampling error (inverse curvature, or a sandwich) + the run's own Monte Carlo error."""
    e = trace.estimator
    phi = trace.phi
    most = MOST_DENSE if e.model.linear else MOST_NONLINEAR
    noise = None
    if e.size <= most:
        value, g, health = e.gradients(phi, seed, STEPS)
        noise = np.atleast_2d(np.cov(g, rowvar=False))
    else:
        value, health = e.values(phi, seed, DRAWS)
    mean = float(value.mean())
    errors, notes = _errors(e, trace, seed, noise, most)
    per_row = e.chi.size > 1
    nu = e.nu_rows(phi) if per_row else phi[e.p :].copy()
    if e.chi.size == 0 and e.loss not in CANCELLING:
        nu = np.array([e.chi.constant])
    loglik = mean + e.W - float(e.obs.weights @ e.obs.offsets) if e.loss == "poisson" else mean
    error = float(value.std(ddof=1) / np.sqrt(len(value)))
    diagnostics: dict[str, Any] = {
        **{name: list(values) for name, values in trace.history.items()},
        "value_monte_carlo_se": error,
        "normalisation": float(health["mass"].mean()),
        "effective_share": float(health["ess"].mean()),
        "reference": e.reference.describe(),
        "batch": e.plan.b,
        "reference_points_per_step": e.plan.rows * e.plan.k,
        "dtype": e.dtype,
    }
    if per_row and e.chi.size <= 10_000 and e.chi.size != e.obs.n:
        diagnostics["normaliser_parameters"] = phi[e.p :].tolist()
    if e.chi.penalties:
        diagnostics["smoothing_parameters"] = {p.label: float(v) for p, v in zip(e.chi.penalties, trace.lam)}
    return Solution(
        theta=phi[: e.p].copy(),
        covariance=None if errors is None else errors.total,
        nu=nu,
        nu_se=None,
        loglik=loglik,
        value=mean,
        notes=notes,
        diagnostics=diagnostics,
        errors=errors,
    )


def _errors(
    e: Estimator, trace: Trace, seed: int, noise: np.ndarray | None, most: int
) -> tuple[ErrorParts | None, tuple[str, ...]]:
    if noise is None:
        return None, (
            f"No standard errors: {e.size} parameters (the limit is {most}). A network's weights are not "
            f"identified one by one; "
            "for a smaller model use the draws of un.sample.",
        )
    H = e.W * curvature(e, trace.phi, seed, 0, DRAWS)
    try:
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        return None, (
            "No standard errors: the curvature at the estimate is singular; some parameters are not identified.",
        )
    if e.loss == "poisson":
        sampling = inverse[: e.p, : e.p]  # of the joint inverse: the inverse Schur complement (Appendix B.1)
    else:
        sampling = (inverse @ score_covariance(e, trace.phi, seed) @ inverse)[: e.p, : e.p]
    if not (np.diag(sampling) > 0).all():
        return None, ("No standard errors: the curvature at the estimate is not that of a maximum.",)
    if trace.P is not None:
        # steps by the inverse curvature forget their start within a few: the average of T of them has covariance
        # H⁻¹ Σ_g H⁻¹ / T (Polyak & Juditsky 1992), known better than from a few block means
        own = (inverse @ noise @ inverse)[: e.p, : e.p] / max(trace.averaged, 1)
        return ErrorParts(sampling + own, sampling, own), ()
    if trace.covariance is None:
        note = "The run was too short to see its own Monte Carlo error: left out. Use more steps or a smaller block."
        return ErrorParts(sampling, sampling, np.zeros_like(sampling)), (note,)
    own = trace.covariance[: e.p, : e.p]
    return ErrorParts(sampling + own, sampling, own), ()


def scores(step: Step, phi: Any, data: Any, constants: Any, key: Any, x: Any) -> Any:
    """(b, size) the contribution of each observation, with its own points, or its data part where points are shared."""
    import jax
    import jax.numpy as jnp

    batch = step.draw(constants, key, x)
    shared = step.plan.shared

    def one(phi: Any, t: Any) -> Any:
        y, log_q = (batch.y[:1, :1], batch.log_q[:1, :1]) if shared else (batch.y[t][None], batch.log_q[t][None])
        back = batch.log_back if isinstance(batch.log_back, tuple) else batch.log_back[t][None]
        alone = Batch(batch.index[t][None], batch.scale[t][None], y, log_q, back)
        return step.likelihood(phi, data, alone)[0]

    return jax.vmap(lambda t: jax.grad(one)(phi, t))(jnp.arange(step.plan.b))


def score_covariance(e: Estimator, phi: np.ndarray, seed: int, most: int = 2000, redraws: int = 16) -> np.ndarray:
    """Σ_t of the score's variance over the observations, references averaged out: the middle of the sandwich."""
    import jax

    some = np.unique(np.linspace(0, e.obs.n - 1, min(e.obs.n, most)).astype(np.intp))
    part = e.part(some)
    with precision(e.dtype):
        fixed = (np.asarray(phi, dtype=e.dtype), part.device_data, part.device_constants, jax.random.key(seed))
        xs = part.source.block(seed, 0, redraws)
        structure = jax.tree.structure(xs)
        each = [jax.tree.unflatten(structure, leaves) for leaves in zip(*jax.tree.leaves(xs))]
        g = np.mean([np.asarray(compiled(scores)(part.step, *fixed, x)) for x in each], axis=0)
    scale = e.W / float(part.obs.weights.sum())
    centred = g - g.mean(axis=0) if part.plan.shared else g  # shared points add the same constant to every score
    return scale * centred.T @ centred
