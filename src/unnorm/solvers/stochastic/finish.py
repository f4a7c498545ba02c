"""What is known at the end of a stochastic run: covariance, its two parts, and the value of the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...objectives.base import Constants
from ...objectives.scores import Drawn, Scores
from ..base import Solution
from .estimator import Estimator
from .loop import Trace
from .renewal import MOST_DENSE, curvature
from .sources import Batch
from .step import CANCELLING, Step, compiled, precision

MOST_NONLINEAR = 100  # parameters of a nonlinear f for which a curvature means something
DRAWS = 16  # fresh steps for the final curvature
TOO_SHORT = "The run was too short to see its own Monte Carlo error: left out. Use more steps or a smaller block."
STEPS = 64  # fresh steps for the final value and for the gradient's noise


def solution(trace: Trace, seed: int, *, converged: bool, reason: str, solver: dict[str, Any]) -> Solution:
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
    scores, notes = _scores(e, trace, seed, noise, most)
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
        names=e.model.names,
        estimate=phi[: e.p].copy(),
        index=np.arange(e.p),
        constants=Constants(nu),
        value=mean,
        loglik=loglik,
        converged=converged,
        reason=reason,
        iterations=trace.steps,
        solver=solver,
        scores=scores,
        notes=notes,
        figures=diagnostics,
    )


@final
@dataclass(frozen=True)
class StochasticScores(Scores):
    """Scores at the end of a run: Σ1 the data's, Σ2 that of the run's own randomness, averaged over its steps."""

    information: np.ndarray
    sigma1: np.ndarray
    sigma2: np.ndarray
    weight: float
    units: int
    model_based: bool

    drawn = Drawn.IID
    shared = False
    penalty = None
    reselection = None
    smoothing = None
    robust_refusal = (
        "un.SGD has no scores by observation, and so no robust errors: fit with the default solver, or bootstrap."
    )

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.information)

    def points_spread(self, power: int) -> np.ndarray:
        return self.sigma2

    def data_spread(self) -> np.ndarray:
        return self.sigma1

    def empirical_spread(self) -> np.ndarray:
        raise AssertionError(self.robust_refusal)

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        raise AssertionError(self.robust_refusal)


def _scores(
    e: Estimator, trace: Trace, seed: int, noise: np.ndarray | None, most: int
) -> tuple[Scores | None, tuple[str, ...]]:
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
    sigma1 = H if e.loss == "poisson" else score_covariance(e, trace.phi, seed)
    if not (np.diag(inverse)[: e.p] > 0).all():
        return None, ("No standard errors: the curvature at the estimate is not that of a maximum.",)
    notes: tuple[str, ...] = ()
    if trace.P is not None:
        # steps by the inverse curvature forget their start within a few: the average of T of them has covariance
        # H⁻¹ Σ_g H⁻¹ / T (Polyak & Juditsky 1992), known better than from a few block means
        sigma2 = noise / max(trace.averaged, 1)
    elif trace.covariance is not None:
        sigma2 = H @ trace.covariance @ H
    else:
        sigma2 = np.zeros_like(H)
        notes = (
            "The run was too short to see its own Monte Carlo error: left out. Use more steps or a smaller block.",
        )
    weights = e.obs.weights
    units = int(np.sum(weights > 0))
    return StochasticScores(H, sigma1, sigma2, float(weights.sum()), units, e.loss == "poisson"), notes


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
