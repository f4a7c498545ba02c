"""The multitype Strauss process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..._base.numerics import floats
from ...errors import InputError
from .pairwise import Pairwise

if TYPE_CHECKING:
    from ..point_pattern import Pattern


@final
@dataclass(frozen=True)
class MultiStrauss(Pairwise):
    """One Strauss statistic for each pair of types i ≤ j: points of type j within radii[i][j] of u, of type i.

    Args:
        radii: a symmetric matrix in the order of the pattern's types; 0 for types that do not interact.

    >>> import unnorm as un
    >>> un.MultiStrauss([[9.0, 5.0], [5.0, 0.0]]).reach
    9.0
    """

    radii: Any

    def __post_init__(self) -> None:
        matrix = floats(self.radii, "radii of MultiStrauss")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
            raise InputError(
                f"radii of MultiStrauss must be a symmetric matrix, one row for each type; got {self.radii!r}."
            )
        if not np.all(np.isfinite(matrix) & (matrix >= 0.0)) or not matrix.any():
            raise InputError(f"radii of MultiStrauss must be positive, or 0 for no interaction; got {self.radii!r}.")
        object.__setattr__(self, "radii", matrix.tolist())

    @property
    def reach(self) -> float:
        return float(np.max(self.radii))

    def check(self, pattern: Pattern) -> None:
        super().check(pattern)
        if pattern.mark_name is None:
            raise InputError("MultiStrauss needs types of points: name their column, un.pattern(…, marks='…').")
        if len(self.radii) != pattern.types:
            raise InputError(
                f"radii of MultiStrauss must be {pattern.types} × {pattern.types}, in the order of the types "
                f"{', '.join(map(str, pattern.mark_levels))}; got {len(self.radii)} × {len(self.radii)}."
            )

    @property
    def _couples(self) -> list[tuple[int, int]]:
        types = range(len(self.radii))
        return [(i, j) for i in types for j in types if i <= j and self.radii[i][j] > 0.0]

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        label = [str(one) for one in pattern.mark_levels]
        return tuple(f"strauss_{label[i]}_{label[j]}" for i, j in self._couples)

    def potential(self, d: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        R = np.asarray(self.radii)
        low, high = np.minimum(u, v), np.maximum(u, v)
        near = d <= R[u, v]
        return np.stack([near & (low == i) & (high == j) for i, j in self._couples], axis=1).astype(float)

    def breaks(self) -> np.ndarray:
        values = np.unique(np.asarray(self.radii, dtype=np.float64))
        return values[values > 0.0]

    def stable(self, phi: np.ndarray) -> bool:
        return bool(np.all(phi <= 0.0))

    @classmethod
    def examples(cls) -> tuple[MultiStrauss, ...]:
        return (cls([[0.05, 0.03], [0.03, 0.04]]),)
