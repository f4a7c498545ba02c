"""What a covariate is: a named function of rows, each an outcome y_i with the context x_at[i] of one observation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..observations import Observations


@dataclass(frozen=True)
class Rows:
    """N rows (y_i, x_at[i]); `rows["step"]` is a covariate's (N,) values, computed once."""

    y: np.ndarray  # (N, d)
    obs: Observations
    at: np.ndarray  # (N,) the observation whose context each row uses
    resolve: Callable[[str, Rows], np.ndarray]
    cache: dict[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.cache:
            self.cache[name] = self.resolve(name, self)
        return self.cache[name]


class Covariate(ABC):
    """A named function of (y, x)."""

    name: str
    period: float | None = None  # 2π for angles
    needs: tuple[str, ...] = ()  # the covariates that `values` reads from its rows
    reads_outcome: bool = False  # whether `values` reads y itself, besides what it needs

    @abstractmethod
    def values(self, rows: Rows) -> np.ndarray:
        """The (N,) values."""

    def notes(self) -> tuple[str, ...]:
        """Sentences that a careful reader would want to see."""
        return ()

    def to_dict(self) -> dict[str, Any] | None:
        """A description from which `from_dict` rebuilds it (arrays stay arrays); None where that is not possible."""
        return None
