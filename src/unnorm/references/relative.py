"""A reference seen from a base law k: the same points, with densities relative to k instead of Ω's own measure.

Where a model is p(y|x) ∝ k(y|x) exp f(y|x), k is the measure that f is relative to. Everything that contrasts data with
points of q needs only log q − log k, which is zero where q = k: f is then estimated as if points were all that k knew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from .base import BoundReference, Given

if TYPE_CHECKING:
    from ..data.observations import Observations


@final
class RelativeReference(BoundReference):
    """log q(y|x) − log k(y|x) as the density of q."""

    def __init__(self, q: BoundReference, k: BoundReference) -> None:
        super().__init__(q.domain, q.reference)
        self.q, self.k = q, k
        self.ratio_only = q.ratio_only
        saved = q.reference.saved and k.reference.saved
        self._same = q is k or (saved and q.to_dict() == k.to_dict())

    @property
    def given(self) -> Given:
        return "context" if self.q.given == "nothing" else self.q.given

    @property
    def cube_dim(self) -> int | None:
        return self.q.cube_dim

    @property
    def distinct(self) -> int | None:
        return self.q.distinct

    @property
    def periodic(self) -> bool:
        return self.q.periodic

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self.q.from_unit(u, obs, t)

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.q.sample(obs, t, rng)

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        if self._same:  # exactly zero, and no constants to compute twice
            return np.where(np.isfinite(log_k := self.k.log_density(y, obs, t)), 0.0, log_k)
        with np.errstate(invalid="ignore"):
            return self.q.log_density(y, obs, t) - self.k.log_density(y, obs, t)

    def log_density_back(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self.q.log_density_back(y, obs, t) - self.k.log_density(obs.outcome[t], obs, t)

    def describe(self) -> str:
        return self.q.describe()

    def to_dict(self) -> dict[str, Any]:
        return self.q.to_dict()
