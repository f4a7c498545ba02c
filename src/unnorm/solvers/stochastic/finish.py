"""A run's ending as a `Solution`: the estimate, its scores, the constants, and what is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...objectives.base import Constants
from ...objectives.scores import Drawn, Scores, frequency
from ...objectives.traced import logistic
from ..base import Solution
from .ending import Curvature, ending
from .estimator import Estimator
from .loop import Trace
from .renewal import MOST_DENSE
from .sources import Batch
from .step import CANCELLING, Step, compiled, precision

MORE = 4  # times as many steps, where a run has not converged


def solution(trace: Trace, seed: int, solver: dict[str, Any], own_optimiser: bool) -> Solution:
    """The estimate, its sampling error (inverse curvature, or a sandwich), and the run's own Monte Carlo error."""
    e, end = trace.estimator, ending(trace, seed)
    reason = trace.stopped or f"{trace.steps} steps"
    if end.obstacle:
        reason = f"after {trace.steps} steps {end.obstacle}; {_remedy(trace, own_optimiser)}"
    per_row = e.chi.size > 1
    nu = e.nu_rows(end.phi) if per_row else end.phi[e.p :].copy()
    if e.chi.size == 0 and e.loss not in CANCELLING:
        nu = np.array([e.chi.constant])
    loglik = end.value + e.W - float(e.obs.weights @ e.obs.offsets) if e.loss == "poisson" else end.value
    figures: dict[str, Any] = {
        **{name: list(values) for name, values in trace.history.items()},
        "value_monte_carlo_se": end.value_se,
        "left_in_se": end.left,
        "normalisation": end.health["mass"],
        "effective_share": end.health["ess"],
        "reference": e.reference.describe(),
        "batch": e.plan.b,
        "reference_points_per_step": e.plan.rows * e.plan.k,
        "dtype": e.dtype,
    }
    if per_row and e.chi.size <= 10_000 and e.chi.size != e.obs.n:
        figures["normaliser_parameters"] = end.phi[e.p :].tolist()
    if e.chi.penalties:
        figures["smoothing_parameters"] = {p.label: float(v) for p, v in zip(e.chi.penalties, trace.lam)}
    return Solution(
        names=e.model.names,
        estimate=end.phi[: e.p].copy(),
        index=np.arange(e.p),
        constants=Constants(nu),
        value=end.value,
        loglik=loglik,
        converged=not end.obstacle,
        reason=reason,
        iterations=trace.steps,
        solver=solver,
        scores=None if end.curvature is None else _scores(e, end.phi, seed, end.curvature),
        notes=(end.note,) if end.note else (),
        figures=figures,
    )


def _remedy(trace: Trace, own_optimiser: bool) -> str:
    """How to let the run take more steps."""
    if trace.stopped:
        return f"it stopped because {trace.stopped}: use a larger patience= or a smaller tolerance="
    more = f"use more steps, say steps={MORE * trace.steps}"
    return f"{more}, with a learning rate that does not vanish before" if own_optimiser else more


@final
@dataclass(frozen=True)
class StochasticScores(Scores):
    """Scores at the end of a run: Σ1 the data's, Σ2 that of the run's own randomness, averaged over its steps."""

    information: np.ndarray
    penalty: np.ndarray | None
    sigma1: np.ndarray
    sigma2: np.ndarray
    weight: float
    model_based: bool

    drawn = Drawn.IID
    shared = False
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


def _scores(e: Estimator, phi: np.ndarray, seed: int, curvature: Curvature) -> Scores:
    """Σ1 from the model where 𝓜 is maximised (Appendix B.1), else from the scores; Σ2 the run's own."""
    model_based = e.loss == "poisson"
    return StochasticScores(
        information=curvature.information,
        penalty=curvature.penalty,
        sigma1=curvature.information if model_based else score_covariance(e, phi, seed),
        sigma2=curvature.noise / curvature.steps,
        weight=e.W,
        model_based=model_based,
    )


def scores(step: Step, phi: Any, data: Any, constants: Any, key: Any, x: Any) -> Any:
    """(b, size) the contribution of each observation: with its own points, or its data part where points are shared."""
    import jax
    import jax.numpy as jnp

    batch = step.draw(constants, key, x)
    shared = step.plan.shared

    def one(phi: Any, t: Any) -> Any:
        y, log_q = (batch.y[:1, :1], batch.log_q[:1, :1]) if shared else (batch.y[t][None], batch.log_q[t][None])
        back = None if batch.log_back is None else batch.log_back[t][None]
        alone = Batch(batch.index[t][None], batch.scale[t][None], y, log_q, back)
        eta = step.predictors(phi, data, alone)
        if shared:
            return -data["weight"][batch.index[t]] * logistic(-eta.data[0])
        return step.value(eta, data, alone)

    return jax.vmap(lambda t: jax.grad(one)(phi, t))(jnp.arange(step.plan.b))


def score_covariance(e: Estimator, phi: np.ndarray, seed: int, most: int = 2000) -> np.ndarray:
    """Σ1 = Σ_t w_t s_t s_tᵀ of the scores s_t of single observations, their reference points averaged out.

    The product of s_t from one half of the points and s_t from the other, independent one holds no variance of the
    points, on average. Scores of data alone (IID data share their points) are taken about their mean.
    """
    import jax

    some = np.unique(np.linspace(0, e.obs.n - 1, min(e.obs.n, most)).astype(np.intp))
    part = e.part(some[e.obs.weights[some] > 0])
    redraws = 16 if e.size <= MOST_DENSE else 4
    with precision(e.dtype):
        fixed = (np.asarray(phi, dtype=e.dtype), part.device_data, part.device_constants, jax.random.key(seed))
        xs = part.source.block(seed, 0, redraws)
        structure = jax.tree.structure(xs)
        each = [jax.tree.unflatten(structure, leaves) for leaves in zip(*jax.tree.leaves(xs))]
        g = [np.asarray(compiled(scores)(part.step, *fixed, x), dtype=np.float64) for x in each]
    w = part.obs.weights[:, None]
    one, other = np.mean(g[::2], axis=0) / w, np.mean(g[1::2], axis=0) / w
    scale = e.W / part.W
    if part.plan.shared:
        one, other = (s - np.average(s, axis=0, weights=w[:, 0]) for s in (one, other))
        scale *= frequency(part.W)
    crossed = one.T @ (w * other)
    return scale * 0.5 * (crossed + crossed.T)
