"""q(·|x): the distribution of the reference points, with its log density with respect to Ω's base measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..data import Observations
    from ..domains import Domain


class Reference(ABC):
    """A kernel q(·|x) on Ω. A subclass that has a map from the unit cube takes low-discrepancy points."""

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        """The reference made concrete on Ω for these observations (free parameters fitted, constants computed)."""
        raise NotImplementedError


class BoundReference(ABC):
    """A reference on a given Ω: every parameter known."""

    domain: Domain

    @property
    @abstractmethod
    def cube_dim(self) -> int | None:
        """Dimension of the unit cube that `from_unit` takes; None when only IID draws are possible."""

    @abstractmethod
    def from_unit(self, u: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        """(n, cube_dim) unit points, and the observation index `at` (n,) whose context each uses → (n, d) outcomes."""

    @abstractmethod
    def sample(self, obs: Observations, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One IID draw for each entry of `at`, shape (len(at), d)."""

    @abstractmethod
    def log_density(self, y: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        """log q(y_i | x_at[i]) with respect to the base measure, shape (n,)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description for saved fits."""
