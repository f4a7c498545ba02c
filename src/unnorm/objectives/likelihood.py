"""The likelihood of rows, defined once: 𝓡^m and 𝓜 are both sums Σ_r a_r η_r − b_r A(η_r), with η = f_θ + χ + offset.

| objective | A(η) | data rows | reference or quadrature rows |
|---|---|---|---|
| logistic, 𝓡^m (Theorem 7) | log(1 + e^η) | a = w, b = w | a = 0, b = w |
| Poisson, 𝓜 (eqs 2.3 to 2.6) | e^η | a = w, b = 0 | a = 0, b = w × the row's share of the integral |

so that slope, curvature and what smoothing needs beyond are ℓ' = a − b A', −ℓ'' = b A'', −ℓ''' = b A'''. The engine's
compiled kernels are tested equal to this file; stochastic steps and `unnorm.losses` call it with JAX's arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np


class Cumulant(ABC):
    """A(η) and its first three derivatives; `xp` is NumPy or jax.numpy."""

    family: str  # the engine's name for the same likelihood
    counts_points: bool  # whether, with IID points and a correct model, −ℓ'' holds the variance of the points too

    @abstractmethod
    def log_odds(self, eta: Any, c: float) -> Any:
        """η had there been c times as many reference points, at the same f and χ."""

    @abstractmethod
    def share(self, b: np.ndarray, c: float) -> np.ndarray:
        """b of a reference row had there been c times as many."""

    @abstractmethod
    def value(self, eta: Any, xp: Any = np) -> Any:
        """A(η)."""

    @abstractmethod
    def mean(self, eta: Any, xp: Any = np) -> Any:
        """A'(η)."""

    @abstractmethod
    def variance(self, eta: Any, xp: Any = np) -> Any:
        """A''(η)."""

    def both(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A'(η) and A''(η)."""
        return self.mean(eta), self.variance(eta)

    @abstractmethod
    def skew(self, eta: Any, xp: Any = np) -> Any:
        """A'''(η)."""


@final
class LogOnePlusExp(Cumulant):
    """A(η) = log(1 + e^η): one exponential of −|η|, so that neither end overflows or cancels."""

    family = "binomial"
    counts_points = True

    def log_odds(self, eta: Any, c: float) -> Any:
        return eta - np.log(c)  # they hold log(n/m)

    def share(self, b: np.ndarray, c: float) -> np.ndarray:
        return b

    def value(self, eta: Any, xp: Any = np) -> Any:
        return xp.maximum(eta, 0.0) + xp.log1p(xp.exp(-xp.abs(eta)))

    def mean(self, eta: Any, xp: Any = np) -> Any:
        small = xp.exp(-xp.abs(eta))
        return xp.where(eta >= 0, 1.0, small) / (1.0 + small)

    def variance(self, eta: Any, xp: Any = np) -> Any:
        small = xp.exp(-xp.abs(eta))
        return small / (1.0 + small) ** 2

    def both(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        small = np.exp(-np.abs(eta))
        whole = 1.0 + small
        return np.where(eta >= 0, 1.0, small) / whole, small / whole**2

    def skew(self, eta: Any, xp: Any = np) -> Any:
        small = xp.exp(-xp.abs(eta))
        return xp.where(eta >= 0, -1.0, 1.0) * small * (1.0 - small) / (1.0 + small) ** 3


@final
class Exponential(Cumulant):
    """A(η) = e^η."""

    family = "poisson"
    counts_points = False

    def log_odds(self, eta: Any, c: float) -> Any:
        return eta

    def share(self, b: np.ndarray, c: float) -> np.ndarray:
        return b / c

    def value(self, eta: Any, xp: Any = np) -> Any:
        with np.errstate(over="ignore"):
            return xp.exp(eta)

    mean = variance = skew = value


LOGISTIC: Cumulant = LogOnePlusExp()
POISSON: Cumulant = Exponential()


@dataclass(frozen=True)
class RowTerms:
    """Σ ℓ, and for each row ℓ'(η) and −ℓ''(η)."""

    value: float
    slope: np.ndarray
    curvature: np.ndarray


@final
@dataclass(frozen=True)
class RowLikelihood:
    """ℓ_r(η) = a_r η − b_r A(η), concave in η."""

    cumulant: Cumulant
    a: np.ndarray  # (N,)
    b: np.ndarray  # (N,)

    def at(self, eta: np.ndarray) -> RowTerms:
        return RowTerms(self.value(eta), *self.slopes(eta))

    def value(self, eta: np.ndarray) -> float:
        """Σ_r ℓ_r(η_r)."""
        return float(self.a @ eta - self._times(self.cumulant.value(eta)).sum())

    def slopes(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ℓ'(η) and −ℓ''(η) by row."""
        mean, variance = self.cumulant.both(eta)
        return self.a - self._times(mean), self._times(variance)

    def _times(self, values: np.ndarray) -> np.ndarray:
        """b A, and zero where b is, whatever A: e^η of a data row may overflow."""
        if self.b.size and self.b.min() > 0:
            return self.b * values
        return np.where(self.b > 0, self.b * np.where(self.b > 0, values, 0.0), 0.0)

    @staticmethod
    def joined(blocks: Sequence[RowLikelihood]) -> RowLikelihood:
        """That of all blocks' rows, one block after the other."""
        a, b = (np.concatenate([getattr(one, name) for one in blocks]) for name in "ab")
        return RowLikelihood(blocks[0].cumulant, a, b)

    def take(self, rows: np.ndarray) -> RowLikelihood:
        """The same for some of the rows."""
        return RowLikelihood(self.cumulant, self.a[rows], self.b[rows])

    def slopes_with(self, c: float, eta: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ℓ' and −ℓ'' by row had there been c times as many reference points at the same (θ, χ).

        A reference row still stands for one point, of which there are then c times as many.
        """
        if c == 1.0:
            return self.slopes(eta)
        b = np.where(data, self.b, self.cumulant.share(self.b, c))
        return RowLikelihood(self.cumulant, self.a, b).slopes(self.cumulant.log_odds(eta, c))


def together(blocks: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
    """Each named array of the blocks, one block after the other; None where the first block has none."""
    first = blocks[0]
    return {
        name: None if getattr(first, name) is None else np.concatenate([getattr(one, name) for one in blocks])
        for name in names
    }
