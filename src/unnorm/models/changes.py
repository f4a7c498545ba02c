"""Change statistics Δ_i s(y|x) = s(y with bit i flipped|x) − s(y|x): all that conditionals of single bits need.

Given the other bits, P(bit i flips) = σ(Δ_i f) with Δ_i f = θᵀ Δ_i s, whatever Z is. Pseudo-likelihood, Gibbs sampling
and annealing between two laws read nothing else of a model. A model gives `changes(y, x)`, (n, d, p), where it knows
something quicker than statistics at n·d flipped vectors, or `change_products(y, x)` where even that table is too large.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..errors import CombinationError
from .batching import tree_take
from .operators import DenseOperator, Operator

if TYPE_CHECKING:
    from .base import Model


class Changes(ABC):
    """Δ_i s(y_t|x_t) for every bit i of n outcomes, known by its products."""

    n: int  # outcomes
    d: int  # bits
    size: int  # p
    nbytes: int  # held by this object

    @abstractmethod
    def times(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) Δ_i f(y_t) = θᵀ Δ_i s(y_t|x_t)."""

    @abstractmethod
    def total(self, v: np.ndarray) -> np.ndarray:
        """(p,) Σ_ti v_ti Δ_i s(y_t|x_t), for v of shape (n, d)."""

    @abstractmethod
    def by_outcome(self, v: np.ndarray) -> np.ndarray:
        """(n, p) Σ_i v_ti Δ_i s(y_t|x_t)."""

    @abstractmethod
    def cross(self, w: np.ndarray) -> np.ndarray:
        """(p, p) Σ_ti w_ti Δ_i s Δ_i sᵀ."""

    @abstractmethod
    def take(self, which: slice) -> Changes:
        """Those of some outcomes."""

    def operator(self, w: np.ndarray) -> Operator:
        """The same, known by its products: where p × p numbers are too many."""
        return DenseOperator(self.cross(w))

    def squares(self, w: np.ndarray) -> np.ndarray:
        """(p,) Σ_ti w_ti (Δ_i s_j)²."""
        return np.diag(self.cross(w)).copy()


@final
@dataclass(frozen=True)
class DenseChanges(Changes):
    """The table itself."""

    values: np.ndarray  # (n, d, p)

    @property
    def n(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.values.shape[0]

    @property
    def d(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.values.shape[1]

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.values.shape[2]

    @property
    def nbytes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.values.nbytes

    def times(self, theta: np.ndarray) -> np.ndarray:
        return self.values @ theta

    def total(self, v: np.ndarray) -> np.ndarray:
        return v.reshape(-1) @ self.values.reshape(-1, self.size)

    def by_outcome(self, v: np.ndarray) -> np.ndarray:
        return np.matmul(v[:, None, :], self.values)[:, 0]

    def cross(self, w: np.ndarray) -> np.ndarray:
        flat = self.values.reshape(-1, self.size)
        return flat.T @ (flat * w.reshape(-1, 1))

    def take(self, which: slice) -> DenseChanges:
        return DenseChanges(self.values[which])

    def squares(self, w: np.ndarray) -> np.ndarray:
        return w.reshape(-1) @ self.values.reshape(-1, self.size) ** 2


def flipped(y: np.ndarray, i: int) -> np.ndarray:
    """The vectors with bit i flipped, as floats."""
    out = y.astype(np.float64)
    out[:, i] = 1.0 - out[:, i]
    return out


def recomputed(model: Model, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
    """(n, d, p) changes from the statistics of every flipped vector: right for any model that is linear in θ."""
    if model.domain.free is None or not model.linear:
        raise CombinationError(
            f"Change statistics need binary vectors or graphs and a model that is linear in its parameters; got "
            f"{type(model).__name__} on {model.domain!r}. Other models on bits take random flips: "
            "un.ConditionalNCE(un.BitFlip(), per_point=…)."
        )
    n, d = y.shape
    here = np.repeat(np.arange(n), d)
    rows = y[here].astype(np.float64)
    bit = np.tile(np.arange(d), n)
    rows[np.arange(n * d), bit] = 1.0 - rows[np.arange(n * d), bit]
    base = model.jacobian(model.start, y.astype(np.float64), arguments)
    moved = model.jacobian(model.start, rows, tree_take(arguments, here))
    return moved.reshape(n, d, -1) - base[:, None]
