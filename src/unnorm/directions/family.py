"""A named family of directions: f_θ as any objective estimates it, and the parameters that people know."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, final

import numpy as np

from .._base.numerics import x64
from ..data.observations import Kind, Observations
from ..domains import Domain
from ..domains import from_dict as domain_from_dict
from ..errors import InputError, unknown
from ..models.base import Model, check_outcomes
from .quantities import Quantity

P = ParamSpec("P")
Usual = Callable[[Any], tuple[Any, ...]]
Draw = Callable[[list[np.ndarray], int, np.random.Generator], np.ndarray]


@final
@dataclass(frozen=True, eq=False)
class Chart:
    """θ for given observations: the model, with its start and rule, and how θ is read."""

    model: Model
    usual: Usual  # θ as the model's tree → one array for each quantity, in JAX

    def values(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All quantities at θ, one after the other, and their Jacobian."""
        import jax
        import jax.numpy as jnp

        def flat(theta: Any) -> Any:
            return jnp.concatenate([jnp.atleast_1d(one) for one in self.usual(self.model.unravel(theta))])

        with x64():
            at = jnp.asarray(theta, dtype=float)
            return np.asarray(flat(at)), np.asarray(jax.jacfwd(flat)(at))


@final
@dataclass(frozen=True, eq=False)
class Reading:
    """A chart's values as the table shows them, decided where their errors are known."""

    values: np.ndarray
    slope: np.ndarray  # ∂ these values / ∂ the chart's
    quantities: tuple[Quantity, ...]
    notes: tuple[str, ...] = ()


MAKERS: dict[str, Callable[..., Family]] = {}


def named(make: Callable[P, Family]) -> Callable[P, Family]:
    """Let the families that a function makes know how they were made, so that they can be saved by name."""
    signature = inspect.signature(make)

    @wraps(make)
    def maker(*args: P.args, **kwargs: P.kwargs) -> Family:
        given = signature.bind(*args, **kwargs).arguments
        plain = {name: bool(one) if isinstance(one, np.bool_) else one for name, one in given.items()}
        return replace(make(*args, **kwargs), made=(make.__name__, plain))

    MAKERS[make.__name__] = maker
    return maker


Make = Callable[[Observations], tuple[Chart, ...]]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """p(y|x) ∝ exp f_θ(y|x) with the usual names of its parameters.

    `model(obs)` is the model that `un.fit` and `un.compare` take; `un.fit_direction(family, obs)` fits it and reads the
    result. Families are made by the functions of `un.directions`.

    Example:
        >>> import unnorm as un
        >>> un.directions.von_mises().name
        'von Mises'
    """

    name: str  #: as reports write it
    domain: Domain  #: Ω
    quantities: tuple[Quantity, ...]  #: the usual parameters
    make: Make  #: several charts where the likelihood may have several peaks
    kind: Kind = "iid"  #: of the observations that it takes
    draw: Draw | None = None  #: the quantities, n, rng → n draws, where the family has a way of its own
    even: bool = False  #: whether f(y) = f(−y)
    oval: bool = False  #: whether data on one great circle make a concentration infinite
    sharpest: float = 3e6  #: the concentration of data beyond which rounding spoils the errors
    remark: Callable[[dict[str, float]], str | None] = lambda parameters: None  #: what estimates call for, a sentence
    #: how the table shows a chart's values, decided with their covariance; None shows them as they are
    read: Callable[[np.ndarray, np.ndarray], Reading] | None = None
    lost: Callable[[Observations], str | None] = lambda obs: None  #: what data leave undetermined, a sentence
    made: tuple[str, Mapping[str, Any]] = ("", {})  #: the function of `un.directions` that made it, and its arguments

    def __repr__(self) -> str:
        return f"{self.name} on {self.domain!r}"

    def to_dict(self) -> dict[str, Any]:
        """The family as JSON: the function that makes it, with its arguments."""
        name, given = self.made
        return {"family": name, **{key: _plain(value) for key, value in given.items()}}

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Family:
        """The family that `to_dict` described."""
        name = description["family"]
        if name not in MAKERS:
            raise InputError(unknown("The family", name, MAKERS))
        given = {key: value for key, value in description.items() if key != "family"}
        if isinstance(given.get("domain"), Mapping):
            given["domain"] = domain_from_dict(given["domain"])
        return MAKERS[name](**given)

    def model(self, obs: Observations) -> Model:
        """The model of these observations, for `un.fit` and `un.compare`."""
        return self.make(obs)[0].model

    def check(self, obs: Observations) -> None:
        """Refuse observations that Ω cannot take."""
        check_outcomes(self.domain, obs)

    def reading(self, values: np.ndarray, V: np.ndarray) -> Reading:
        """A chart's values, with this covariance, as the table shows them."""
        if self.read is None:
            return Reading(values, np.eye(len(values)), self.quantities)
        return self.read(values, V)

    @property
    def slices(self) -> dict[str, slice]:
        """Where each quantity lies in the vector of all."""
        ends = np.cumsum([quantity.size for quantity in self.quantities]).tolist()
        return {one.name: slice(end - one.size, end) for one, end in zip(self.quantities, ends)}


def _plain(value: Any) -> Any:
    """An argument of a maker as JSON: a domain by its description, names and numbers as they are."""
    if isinstance(value, Domain):
        return value.to_dict()
    return list(value) if isinstance(value, list | tuple) else value
