"""log π(θ) and log π(ν): a prior in sampling, a penalty in fitting; a penalised fit is the posterior mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.numerics import floats
from ..errors import InputError
from ..references.base import frozen
from .base import Model


class Prior(ABC):
    """A log density, up to a constant, of a flat parameter vector; traceable by JAX."""

    flat: bool = False  # whether it is constant

    @abstractmethod
    def log_density(self, value: Any) -> Any:
        """log π(value) for a flat vector, a scalar."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...


@final
@dataclass(frozen=True)
class Flat(Prior):
    """log π = 0. On ν it makes the θ-marginal of exp 𝓜 the posterior of the untransformed model, exactly.

    Example:
        >>> import unnorm as un
        >>> un.Flat().to_dict()
        {'prior': 'Flat'}
    """

    flat = True

    def log_density(self, value: Any) -> Any:
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"prior": "Flat"}


@final
@dataclass(frozen=True)
class Normal(Prior):
    """Independent normals, log π = −½ Σ ((θ_j − mean_j)/scale_j)²: a ridge penalty with λ = 1/scale².

    Args:
        scale: standard deviation, one for all entries or one for each.
        mean: likewise.

    Example:
        >>> import unnorm as un
        >>> float(un.Normal(scale=2.0).log_density(3.0))
        -1.125
    """

    scale: Any
    mean: Any = 0.0

    def __post_init__(self) -> None:
        scale, mean = floats(self.scale, "scale of Normal"), floats(self.mean, "mean of Normal")
        for name, value in (("scale", scale), ("mean", mean)):
            object.__setattr__(self, name, frozen(value.tolist()))  # compares and hashes, as what is compiled needs
        if not (np.isfinite(scale).all() and (scale > 0).all() and np.isfinite(mean).all()):
            raise InputError(
                f"Normal needs scale > 0 and finite numbers; got scale {self.scale!r}, mean {self.mean!r}."
            )

    def log_density(self, value: Any) -> Any:
        import jax.numpy as jnp

        z = (value - jnp.asarray(self.mean)) / jnp.asarray(self.scale)
        return -0.5 * jnp.sum(z**2)

    def to_dict(self) -> dict[str, Any]:
        return {"prior": "Normal", "scale": np.asarray(self.scale).tolist(), "mean": np.asarray(self.mean).tolist()}


@final
@dataclass(frozen=True)
class OnTree(Prior):
    """A user's function of the parameters as the model knows them (names → values, or the energy's own tree)."""

    function: Callable[[Any], Any]
    unflatten: Callable[[Any], Any]

    def log_density(self, value: Any) -> Any:
        return self.function(self.unflatten(value))

    def to_dict(self) -> dict[str, Any]:
        return {"prior": "callable", "name": getattr(self.function, "__name__", "function")}


@dataclass(frozen=True)
class Priors:
    """One prior for θ, one for the normaliser's own parameters."""

    theta: Prior
    nu: Prior

    @property
    def flat(self) -> bool:
        """Whether neither adds anything."""
        return self.theta.flat and self.nu.flat

    def log_density(self, phi: Any) -> Any:
        return self.theta.log_density(phi["theta"]) + self.nu.log_density(phi["nu"])

    def to_dict(self) -> dict[str, Any]:
        return {"theta": self.theta.to_dict(), "nu": self.nu.to_dict()}


def priors(prior: Any, model: Model) -> Priors:
    """What the user gave (None, a prior or a callable for θ, or a mapping with "theta" and "nu") as `Priors`."""
    given: dict[str, Any] = prior if isinstance(prior, dict) and set(prior) <= {"theta", "nu"} else {"theta": prior}
    theta: Any = given.get("theta")
    nu: Any = given.get("nu")
    if theta is None:
        theta = Flat()
    elif callable(theta) and not isinstance(theta, Prior):
        theta = OnTree(theta, model.unravel)
    nu = Flat() if nu is None else nu
    for what, value in (("prior", theta), ("the prior of nu", nu)):
        if not isinstance(value, Prior):
            raise InputError(
                f"{what} must be un.Flat(), un.Normal(scale), a function of the parameters' tree that returns a log "
                f"density, or {{'theta': …, 'nu': …}}; got {value!r}."
            )
    return Priors(theta, nu)
