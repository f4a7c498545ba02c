"""f_θ(y|x) = θᵀ s(y|x) with named parameters: what exponential families, Ising models and graphs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._base.numerics import floats
from ..errors import InputError, listing
from .base import Model


class LinearModel(Model):
    """A model whose θ is a vector of named coefficients, each the weight of one statistic; iterations begin at 0."""

    @property
    def linear(self) -> bool:
        return True

    @property
    def start(self) -> np.ndarray:
        return np.zeros(self.size)

    def unflatten(self, theta: np.ndarray) -> dict[str, float]:
        return dict(zip(self.names, theta.tolist()))

    def flatten(self, theta: Any) -> np.ndarray:
        if isinstance(theta, Mapping):
            missing = [name for name in self.names if name not in theta]
            if missing:
                raise InputError(f"theta must give {listing(self.names)}; missing {listing(missing)}.")
            theta = [theta[name] for name in self.names]
        theta = floats(theta, "theta")
        if theta.shape != (self.size,):
            raise InputError(f"theta must have {self.size:,} entries ({listing(self.names)}); got shape {theta.shape}.")
        return theta
