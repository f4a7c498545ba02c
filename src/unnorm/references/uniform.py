"""The uniform reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from ..errors import CombinationError, InputError, unknown
from .base import BoundReference, Reference
from .space import space

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

Along = Literal["steps", "places"]


@final
@dataclass(frozen=True)
class Uniform(Reference):
    """q(y) = 1/|Ω|, whatever the context: the paper's choice.

    `along` says what low-discrepancy points are spread evenly over, and changes nothing else: "places", the outcomes y;
    or "steps", y − x from the previous point x, by moving the unit cube with x (around the corner at its faces).
    Effects of distance and direction are then a third as noisy, those of a finely varying map of places about six times
    as noisy (use along="places" for map-driven models). None is "steps" for transitions in two and more dimensions,
    "places" otherwise.

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

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        shape = space(domain)
        can = obs.kind == "transitions" and (shape.sides is not None or shape.planar)
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
            lower, upper = (np.atleast_1d(getattr(domain, side)) for side in ("lower", "upper"))
            self._lower, self._width = lower, upper - lower

    @property
    def cube_dim(self) -> int:
        return self.domain.cube_dim

    @property
    def periodic(self) -> bool:
        return self.domain.period is not None or self._steps

    def from_unit(self, u: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        if self._steps:
            # Where x lies in the enclosing box: the inverse of the map on a box, near it on a window. Any function of
            # x would do, for frac(u + a) is uniform if u is.
            u = u + ((obs.previous() - self._lower) / self._width)[at]
            u -= np.floor(u)
        return self.domain.from_unit(u)

    def log_density(self, y: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        return np.full(len(y), -self.domain.log_volume)

    def describe(self) -> str:
        return f"uniform on {self.domain!r}"
