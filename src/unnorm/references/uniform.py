"""The uniform reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from ..domains import REGISTRY as DOMAINS
from ..domains import Box, Window
from ..errors import CombinationError, InputError, unknown
from .base import BoundReference, Example, Reference
from .tracing import ConstantDensity, Traceable

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

Along = Literal["steps", "places"]


@final
@dataclass(frozen=True, repr=False)
class Uniform(Reference):
    """q(y) = 1/|Ω|, whatever the context: the paper's choice.

    Args:
        along: what low-discrepancy points are spread evenly over: "places", the outcomes y; or "steps", y − x from the
            previous point x, by moving the unit cube with x (modulo one). Effects of distance and direction are then a
            third as noisy, those of a finely varying map of places about six times as noisy (use "places" for
            map-driven models). None is "steps" for transitions in two and more dimensions, "places" otherwise.

    >>> import numpy as np
    >>> import unnorm as un
    >>> from unnorm.references import Uniform
    >>> q = Uniform().bind(un.Interval(-1, 1), un.Observations("iid", np.zeros((3, 1)), ("y",)))
    >>> np.exp(q.log_density(np.zeros((1, 1)), None, np.zeros(1, int))).tolist()
    [0.5]
    """

    along: Along | None = None

    def __post_init__(self) -> None:
        if self.along not in (None, "steps", "places"):
            raise InputError(unknown("along", self.along, ("steps", "places")))

    @property
    def everywhere(self) -> bool:
        return True

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        own = tuple(Example(cls(), domain.examples()[0]) for domain in DOMAINS.values() if domain.examples())
        star = Window.examples()[1]
        return *own, Example(cls("places"), Box((0, 8), (0, 6))), Example(cls("steps"), star)

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        can = obs.kind == "transitions" and domain.enclosing_box is not None
        if self.along == "steps" and not can:
            raise CombinationError(
                f"Uniform(along='steps') needs transitions in an interval, a box or a window; got {obs.kind} "
                f"observations on {domain!r}. Use along='places'."
            )
        along: Along = ("steps" if can and domain.dim > 1 else "places") if self.along is None else self.along
        return BoundUniform(domain, Uniform(along))


@final
class BoundUniform(BoundReference):
    """1/|Ω|."""

    def __init__(self, domain: Domain, reference: Uniform) -> None:
        self.domain, self.reference = domain, reference
        self._steps = reference.along == "steps"
        if self._steps:
            assert domain.enclosing_box is not None
            lower, upper = domain.enclosing_box
            self._lower, self._width = lower, upper - lower

    @property
    def cube_dim(self) -> int:
        return self.domain.cube_dim

    @property
    def periodic(self) -> bool:
        return self.domain.coordinate_period is not None or self._steps

    @property
    def moved_box(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.domain.affine if self._steps else None

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        if self._steps:
            # Where x lies in the enclosing box: the inverse of the map on a box, near it on a window. Any function of
            # x would do, for frac(u + a) is uniform if u is.
            u = u + ((obs.previous() - self._lower) / self._width)[t]
            u -= np.floor(u)
        return self.domain.from_unit(u)

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return np.full(len(y), -self.domain.log_volume)

    def traceable(self, obs: Observations) -> Traceable | None:
        domain, log_q = self.domain, {"log_q": np.asarray(-self.domain.log_volume)}
        if domain.affine is not None:
            low, width = domain.affine
            return Traceable(domain.cube_dim, {"low": low, "width": width, **log_q}, (), UniformBox())
        if domain.bits is not None:
            return Traceable(domain.bits, log_q, (), UniformBits())
        if domain.rule == "enumeration":
            states = domain.quadrature()
            edges = np.cumsum(states.weights)
            return Traceable(
                1, {"values": states.points, "edges": edges[:-1] / edges[-1], **log_q}, (), UniformStates()
            )
        return None

    def describe(self) -> str:
        return f"uniform on {self.domain!r}"


@final
@dataclass(frozen=True)
class UniformBox(ConstantDensity):
    """low + width u, in JAX."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        return params["low"] + params["width"] * u


@final
@dataclass(frozen=True)
class UniformStates(ConstantDensity):
    """Listed states, by the inverse of their distribution function, in JAX."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        return params["values"][jnp.searchsorted(params["edges"], u[..., 0], side="right")]


@final
@dataclass(frozen=True)
class UniformBits(ConstantDensity):
    """Fair bits, in JAX."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        return (u >= 0.5).astype(u.dtype)
