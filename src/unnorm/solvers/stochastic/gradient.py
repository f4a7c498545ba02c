"""`unbiased_gradient`: the gradient of 𝓜 by importance sampling, with its Monte Carlo variance (Section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..._base.numerics import Rng, floats, generator, read_only
from ...data.observations import Observations
from ...domains.base import whole
from ...errors import InputError
from ...models.base import Model
from ...models.normalisers import Constant, Normaliser, PerContext
from ...references.base import Reference
from ...references.points import PointScheme
from .estimator import Estimator, StepDesign, estimator
from .sources import Sampling
from .step import Dtype


@final
@dataclass(frozen=True)
class GradientEstimate:
    """∂𝓜/∂θ and ∂𝓜/∂ν, the mean of `draws` independent unbiased estimates, with the variance of that mean."""

    theta: np.ndarray  # (p,)
    nu: np.ndarray  # (q,)
    variance_theta: np.ndarray  # (p,) Monte Carlo variance, from the spread of the draws; NaN for one draw
    variance_nu: np.ndarray
    value: float  # 𝓜 itself, unbiased too
    value_variance: float
    draws: int
    mass: float  # the estimate of Σ w ∫ exp(f + ν) / Σ w, which is 1 where ν normalises
    ess: float  # effective share of the reference points
    covariance: np.ndarray | None  # (p + q, p + q) of the mean, where p + q ≤ 500

    @property
    def se_theta(self) -> np.ndarray:
        return np.sqrt(self.variance_theta)

    @property
    def se_nu(self) -> np.ndarray:
        return np.sqrt(self.variance_nu)


def unbiased_gradient(
    model: Model,
    obs: Observations,
    reference: Reference,
    theta: Any,
    nu: Any = None,
    *,
    normaliser: Normaliser | None = None,
    batch: int | None = None,
    references: int = 10,
    points: PointScheme | None = None,
    sampling: Sampling = "stratified",
    control: bool = True,
    draws: int = 8,
    dtype: Dtype = "float64",
    rng: Rng = None,
) -> GradientEstimate:
    """The gradient of 𝓜 at (θ, ν), (θ, ν_t) or (θ, χ), without bias, over minibatches and fresh reference points.

    Args:
        model: f_θ.
        obs: the observations.
        reference: q.
        theta: θ as the model knows it (names → values, a tree, or flat).
        nu: ν, (ν_t) or the parameters of χ, as many as the normaliser has; default a rough normalisation of θ.
        normaliser: default `Constant()` for IID data, `PerContext()` otherwise; `Smooth`, `Features` and `Network` for
            χ(x). The gradient is that of 𝓜: no penalty is in it.
        batch: observations in one draw; None for all.
        references: reference points for each observation of the batch; IID data share them all.
        points: `IID()`, `Stratified()`, `Lattice()` (default) or `Sobol()`.
        sampling: "stratified" batches along the contexts, or "iid" with replacement.
        control: use the exact sum Σ_t w_t ∂f(y_t|x_t) where f is linear, instead of the batch's: a control variate.
        draws: independent draws to average; two or more give the variance.
        dtype: "float64", or "float32", whose rounding error (about 1e-6 of the sum of absolute terms) adds to the
            variance.
        rng: seed or generator.

    Example:
        >>> import unnorm as un
        >>> from unnorm.references import Uniform
        >>> toy = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
        >>> g = unbiased_gradient(toy, un.iid([0.1, 0.5]), Uniform(), {"a": 0.0}, -0.6931471805599453, rng=1)
        >>> abs(g.theta[0] - 0.6) < 1e-6 + 4 * g.se_theta[0]  # Σ y, since ∫ y dy = 0
        np.True_
    """
    if normaliser is None:
        normaliser = PerContext() if obs.has_context else Constant()
    draws = whole(draws, "draws", 1)
    random = generator(rng)
    design = StepDesign(batch, references, points, sampling, control, dtype)
    e = estimator(model, obs, reference, normaliser, design)
    phi = e.start(random, model.flatten(theta))
    if nu is not None:
        phi[e.p :] = _constants(e, nu, normaliser)
    return _estimate(e, phi, int(random.integers(2**31)), draws)


def _per_row(e: Estimator) -> bool:
    """Whether each observation has a constant of its own, in the estimator's order of the observations."""
    return e.chi.size == e.obs.n and e.obs.n > 1


def _constants(e: Estimator, nu: Any, normaliser: Normaliser) -> np.ndarray:
    given = np.atleast_1d(floats(nu, "nu")).ravel()
    if given.shape != (e.chi.size,):
        raise InputError(f"nu must have {e.chi.size} entries for {normaliser!r}; got {given.size}.")
    return given[e.position] if _per_row(e) else given


def _estimate(e: Estimator, phi: np.ndarray, seed: int, draws: int) -> GradientEstimate:
    """The mean of the draws and its variance, with constants in the input's order."""
    value, g, health = e.gradients(phi, seed, draws)
    if not np.isfinite(g).all():
        raise InputError(
            "The gradient is not finite: exp(f + ν − log q) overflows at some reference points. Give a ν that roughly "
            "normalises f (or leave it out), or a reference nearer to the model."
        )
    if _per_row(e):
        g = np.concatenate([g[:, : e.p], g[:, e.p :][:, np.argsort(e.position)]], axis=1)
    mean = g.mean(axis=0)
    several = draws > 1
    variance = g.var(axis=0, ddof=1) / draws if several else np.full(e.size, np.nan)
    covariance = np.atleast_2d(np.cov(g, rowvar=False)) / draws if several and e.size <= 500 else None
    return GradientEstimate(
        theta=read_only(mean[: e.p]),
        nu=read_only(mean[e.p :]),
        variance_theta=read_only(variance[: e.p]),
        variance_nu=read_only(variance[e.p :]),
        value=float(value.mean()),
        value_variance=float(value.var(ddof=1) / draws) if several else float("nan"),
        draws=draws,
        mass=float(health["mass"].mean()),
        ess=float(health["ess"].mean()),
        covariance=covariance,
    )
