"""The difference of two conditions' curves, with a pointwise and a simultaneous band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.intervals import quantile
from ..results.smooths import SmoothPart, columns_shown

DRAWS = 10_000  # for the quantile of a maximum
CHUNK = 2_000


@final
@dataclass(frozen=True, eq=False)
class Difference:
    """Every term of f in condition `first` less that in condition `second`, for the population.

    Both curves average to zero over the same rows, those of all levels together, and so does their difference.
    """

    first: str
    second: str
    part: SmoothPart
    df: float  # of the variance that its errors rest on
    widened: float  # by which that variance was multiplied because it is estimated

    @property
    def name(self) -> str:
        return f"{self.first} − {self.second}"

    def effect(self, label: str, at: Any = None, level: float = 0.95) -> dict[str, np.ndarray]:
        """Columns: the covariates, estimate, se, se_sampling, se_reference, lower, upper (pointwise), and
        lower_simultaneous, upper_simultaneous, which hold the whole curve over the range of the data."""
        label = self.part.term(label).label
        out = self.part.effect(label, at, level)
        reach = self.multiplier(label, level) * out["se"]
        return {**out, "lower_simultaneous": out["estimate"] - reach, "upper_simultaneous": out["estimate"] + reach}

    def multiplier(self, label: str, level: float = 0.95) -> float:
        """Standard errors on either side that hold the whole curve.

        The quantile of max |t_x| over the grid, t a Student process on `df` degrees of freedom with the curve's
        correlations; the standard errors are widened already, and are not widened twice.
        """
        top = np.quantile(self._maxima(self.part.term(label).label), level) / np.sqrt(self.widened)
        return float(max(top, quantile(level)))

    def _maxima(self, label: str) -> np.ndarray:
        """(DRAWS,) largest |t| over the grid."""
        if label not in self._known:
            self._known[label] = self._drawn(label)
        return self._known[label]

    @cached_property
    def _known(self) -> dict[str, np.ndarray]:
        return {}

    def _drawn(self, label: str) -> np.ndarray:
        term, span = self.part.term(label), self.part.slices[label]
        C = columns_shown(self.part, term, dict(self.part.grids[label]))
        C = C[~np.isnan(C).any(axis=1)]  # a film's outside its boundary
        values, vectors = np.linalg.eigh(self.part.errors.total[span, span])
        root = C @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        root /= np.maximum(np.linalg.norm(root, axis=1), 1e-300)[:, None]
        rng = np.random.default_rng(16)
        parts = []
        for _ in range(DRAWS // CHUNK):
            z = np.abs(rng.normal(size=(CHUNK, root.shape[1])) @ root.T).max(axis=1)
            parts.append(z / np.sqrt(rng.chisquare(self.df, CHUNK) / self.df))
        return np.concatenate(parts)

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON-ready description and arrays."""
        about, arrays = self.part.save()
        return {**about, "pair": [self.first, self.second], "df": self.df, "widened": self.widened}, arrays

    @classmethod
    def load(cls, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Difference:
        """What `save` described."""
        first, second = (str(name) for name in about["pair"])
        return cls(first, second, SmoothPart.load(about, arrays), float(about["df"]), float(about["widened"]))
