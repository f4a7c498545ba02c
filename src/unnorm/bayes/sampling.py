"""`sample`: draws from the posterior exp(𝓜 + log π) of (θ, ν) or (θ, χ)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base.numerics import Rng, generator, own_stream
from ..data.observations import Observations
from ..errors import CombinationError, InputError
from ..models.base import Model
from ..models.normalisers import Constant, Normaliser, PerContext
from ..references.base import Reference
from ..references.uniform import Uniform
from .draws import Draws


@dataclass(frozen=True)
class Target:
    """What is to be sampled."""

    model: Model
    obs: Observations
    normaliser: Normaliser
    reference: Reference
    prior: Any


class Sampler(ABC):
    """Anything that draws from a `Target`."""

    @abstractmethod
    def sample(self, target: Target, rng: np.random.Generator) -> Draws:
        """Draws from exp(𝓜 + log π)."""


def sample(
    model: Model,
    obs: Observations,
    sampler: Sampler,
    *,
    prior: Any = None,
    normaliser: Normaliser | None = None,
    reference: Reference | None = None,
    rng: Rng = None,
) -> Draws:
    """Sample θ and the normalising constants from their posterior.

    Under flat priors on ν (or on each ν_t) the θ-marginal of exp 𝓜 is exactly the posterior of the untransformed
    model. With χ(x) it is an approximation, good when χ has few parameters for each observation; the θ-marginal then
    differs by O(q/n).

    Args:
        model: f_θ.
        obs: the observations.
        sampler: `un.Langevin(…)`, or `un.NUTS(…)` where the integrals are cheap.
        prior: `un.Flat()` (default), `un.Normal(scale)`, a function of the parameters' tree, or {"theta": …, "nu": …}.
        normaliser: default `Constant()` for IID data, `PerContext()` otherwise; `un.Anchored()` for constants that
            follow θ, with which the θ-marginal is exact too (an integral for each observation of a step);
            `un.Smooth`, `un.Features` or `un.Network` for χ(x).
        reference: q of the stochastic gradients; default Uniform.
        rng: seed or generator.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
        >>> obs = un.iid(un.datasets.toy_chain(200, 0.8, 0.0, rng=1))
        >>> draws = sample(toy, obs, un.Langevin(draws=200, warmup=100, chains=2, batch=100), rng=1)
        >>> draws.theta.shape
        (2, 200, 1)
    """
    if not isinstance(model, Model):
        raise CombinationError(
            f"model must be un.ExponentialFamily(...) or un.Energy(...); got {type(model).__name__}."
        )
    if not isinstance(sampler, Sampler):
        raise CombinationError(f"sampler must be un.Langevin(...) or un.NUTS(...); got {type(sampler).__name__}.")
    if obs.n == 0:
        raise InputError("There are no observations.")
    inside = model.domain.contains(obs.outcome)
    if not inside.all():
        raise InputError(
            f"{int((~inside).sum())} of {obs.n} observations lie outside {model.domain!r}; drop them first."
        )
    if model.base is not None:
        raise CombinationError(
            "un.sample takes models relative to Ω's own measure: write the kernel into f, or use un.fit, which takes "
            "base=un.Tilt(…)."
        )
    model.check(obs)
    if normaliser is None:
        normaliser = PerContext() if obs.has_context else Constant()
    target = Target(model, obs, normaliser.bound(obs), Uniform() if reference is None else reference, prior)
    draws = sampler.sample(target, generator(own_stream(rng)))
    return replace(draws, seed=int(rng)) if isinstance(rng, int | np.integer) else draws
