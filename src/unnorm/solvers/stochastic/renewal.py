"""What is renewed between blocks: the curvature, an adaptive reference, the smoothing parameters of χ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import InputError
from .estimator import Estimator
from .sources import source
from .step import precision

MOST_DENSE = 500  # parameters up to which curvatures are formed


def information(e: Estimator, phi: np.ndarray, seed: int, first: int, draws: int = 8, nu_only: bool = False) -> Any:
    """−∂²𝓜 from `draws` fresh steps (in eights, so that one compiled loop serves all), in φ or in ν alone."""
    seed = (seed + 0x9E3779B9) % 2**31
    H = -np.mean([e.hessian(phi, seed, 8, first + 8 * j, nu_only) for j in range(max(1, draws // 8))], axis=0)
    return (H + H.T) / 2


def curvature(e: Estimator, phi: np.ndarray, seed: int, first: int, draws: int = 8) -> np.ndarray:
    """−∂²(𝓜 + log π)/W."""
    return (information(e, phi, seed, first, draws) - e.prior_hessian(phi)) / e.W


def inverse_curvature(e: Estimator, phi: np.ndarray, seed: int, first: int) -> np.ndarray:
    """P = |H|⁻¹ on the scale of its diagonal; an indefinite H becomes its absolute value, as in Newton."""
    return absolute_inverse(curvature(e, phi, seed, first))


def absolute_inverse(H: np.ndarray) -> np.ndarray:
    """|H|⁻¹ on the scale of its diagonal."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-12))
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    values = np.maximum(np.abs(values), 1e-6)
    return (vectors / values) @ vectors.T / np.outer(scale, scale)


def can_refresh(e: Estimator) -> None:
    """Refuse a reference that has no way to follow the model, before anything is computed."""
    if not e.reference.adapts:
        raise InputError(
            f"refresh= needs a reference that adapts, un.GaussianMixture(...); {e.reference.describe()} cannot "
            f"be refreshed."
        )


def refreshed(e: Estimator, phi: np.ndarray, seed: int, step: int) -> Estimator:
    """The estimator with its reference moved towards the model, and every log q that depends on it recomputed.

    With contexts, towards the model averaged over them: points at 64 of them, weighted by f/q within each.
    """
    rng = np.random.default_rng([seed, step, 7])
    groups = 64 if e.obs.has_context else 1
    at = np.repeat(rng.integers(0, e.obs.n, groups), 8192 // groups)
    y = e.reference.sample(e.obs, at, rng)
    log_w = e.model.log_f(phi[: e.p], y, e.model.arguments(e.obs, at)) - e.reference.log_density(y, e.obs, at)
    log_w = log_w.reshape(groups, -1)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    bound: Any = e.reference
    return with_reference(e, bound.refreshed(y, (w / w.sum(axis=1, keepdims=True)).ravel(), e.obs))


def with_reference(e: Estimator, bound: Any) -> Estimator:
    """The same problem with another reference of the same kind."""
    data = dict(e.data)
    if "log_q" in data:
        data["log_q"] = bound.log_density(e.obs.outcome, e.obs, np.arange(e.obs.n)).astype(e.dtype)
    with precision(e.dtype):
        draws = source(bound, e.obs, e.plan, e.scheme, e.dtype)
    return replace(e, reference=bound, data=data, source=draws)


def with_smoothing(e: Estimator, lam: np.ndarray) -> Estimator:
    """The same problem with other smoothing parameters."""
    return replace(e, data=e.data | {"penalty": e.chi.penalty(lam).astype(e.dtype)})
