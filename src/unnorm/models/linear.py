"""f_θ(y|x) = θᵀ s(y|x) with named parameters: what exponential families, Ising models and graphs share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.numerics import floats
from ..errors import InputError, listing
from .base import DataTerms, Model


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

    def curvature(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> np.ndarray:
        return np.zeros((self.size, self.size))


class StatisticsModel(LinearModel):
    """A model that gives s(y|x) itself, for many points at once; all else follows."""

    @abstractmethod
    def statistics_at(self, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(N, p) s at N points, each with its own context."""

    def log_f(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        return self.statistics_at(y, arguments) @ theta

    def jacobian(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        return self.statistics_at(y, arguments)

    def data_terms(self, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> DataTerms:
        return LinearDataTerms(weight @ self.statistics_at(y, arguments))


@final
@dataclass(frozen=True)
class LinearDataTerms(DataTerms):
    """Σ w θᵀ s: the sufficient statistic does all."""

    total: np.ndarray  # Σ_t w_t s(y_t|x_t)

    def value(self, theta: np.ndarray) -> float:
        return float(self.total @ theta)

    def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return float(self.total @ theta), self.total, np.zeros((len(theta), len(theta)))
