"""The uniform reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from .base import BoundReference, Reference

if TYPE_CHECKING:
    from ..data import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True)
class Uniform(Reference):
    """q(y) = 1/|Ω|, whatever the context: the paper's choice.

    >>> import numpy as np
    >>> import unnorm as un
    >>> from unnorm.references import Uniform
    >>> q = Uniform().bind(un.Interval(-1, 1), un.Observations("iid", np.zeros((3, 1)), ("y",)))
    >>> np.exp(q.log_density(np.zeros((1, 1)), None, np.zeros(1, int))).tolist()
    [0.5]
    """

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        return BoundUniform(domain)


@final
class BoundUniform(BoundReference):
    """1/|Ω|."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.reference = domain, Uniform()

    @property
    def cube_dim(self) -> int:
        return self.domain.cube_dim

    @property
    def periodic(self) -> bool:
        return self.domain.period is not None

    def from_unit(self, u: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        return self.domain.from_unit(u)

    def log_density(self, y: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        return np.full(len(y), -self.domain.log_volume)

    def describe(self) -> str:
        return f"uniform on {self.domain!r}"
