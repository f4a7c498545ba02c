"""What is known at the end of a stochastic run: covariance, its two parts, and the value of the objective."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..objectives.base import Solution
from ..objectives.sandwich import ErrorParts
from .estimator import Estimator, precision
from .loop import MOST_DENSE, Trace, curvature

MOST_NONLINEAR = 100  # parameters of a nonlinear f for which a curvature means something
DRAWS = 16  # fresh steps for the final value and curvature


def solution(trace: Trace, seed: int) -> Solution:
    """θ̂ with total error = sampling error (inverse curvature, or a sandwich) + the run's own Monte Carlo error."""
    e = trace.estimator
    phi = trace.phi
    value, _, health = e.gradients(phi, seed, DRAWS)
    mean = float(value.mean())
    errors, notes = _errors(e, trace, seed)
    per_row = e.chi.size > 1
    nu = e.nu_rows(phi) if per_row else phi[e.p :].copy()
    if e.chi.size == 0 and e.loss != "ranking":
        nu = np.array([e.chi.constant])
    loglik = mean + e.W - float(e.obs.weights @ e.obs.offsets) if e.loss == "poisson" else mean
    error = float(value.std(ddof=1) / np.sqrt(DRAWS))
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


def _errors(e: Estimator, trace: Trace, seed: int) -> tuple[ErrorParts | None, tuple[str, ...]]:
    most = MOST_DENSE if e.model.linear else MOST_NONLINEAR
    if e.size > most:
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
    if trace.covariance is None:
        note = "The run was too short to see its own Monte Carlo error: left out. Use more steps or a smaller block."
        return ErrorParts(sampling, sampling, np.zeros_like(sampling)), (note,)
    own = trace.covariance[: e.p, : e.p]
    return ErrorParts(sampling + own, sampling, own), ()


def score_covariance(e: Estimator, phi: np.ndarray, seed: int, most: int = 2000, redraws: int = 16) -> np.ndarray:
    """Σ_t of the score's variance over the observations, references averaged out: the middle of the sandwich."""
    import jax
    import jax.numpy as jnp

    some = np.unique(np.linspace(0, e.obs.n - 1, min(e.obs.n, most)).astype(np.intp))
    part = e.part(some)
    with precision(e.dtype):
        source, data = part.source, part.device_data
        constants, key = jax.device_put(source.constants()), jax.random.key(seed)
        shared = part.plan.shared

        def one(phi: Any, batch: Any, t: Any) -> Any:
            """The contribution of observation t (with its own points, or its data part where points are shared)."""
            index, scale = batch.index[t][None], batch.scale[t][None]
            y, log_q = (batch.y[:1, :1], batch.log_q[:1, :1]) if shared else (batch.y[t][None], batch.log_q[t][None])
            return part.likelihood(phi, data, batch._replace(index=index, scale=scale, y=y, log_q=log_q))[0]

        def scores(phi: Any, x: Any) -> Any:
            batch = source.draw(constants, key, x)
            return jax.vmap(lambda t: jax.grad(one)(phi, batch, t))(np.arange(part.plan.b))

        compiled, phi = jax.jit(scores), jnp.asarray(phi, dtype=e.dtype)  # pyright: ignore[reportAssignmentType]
        xs = source.block(seed, 0, redraws)
        structure = jax.tree.structure(xs)
        each = [jax.tree.unflatten(structure, leaves) for leaves in zip(*jax.tree.leaves(xs))]
        g = np.mean([np.asarray(compiled(phi, x)) for x in each], axis=0)
    scale = e.W / float(part.obs.weights.sum())
    centred = g - g.mean(axis=0) if shared else g  # shared points add the same constant to every score
    return scale * centred.T @ centred
