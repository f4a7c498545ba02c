"""Pairwise interaction as a smooth function of distance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from ..._base.numerics import whole
from .base import positive
from .pairwise import Pairwise

if TYPE_CHECKING:
    from ..point_pattern import Pattern

STEPS = 1024  # of ψ in a simulation
DEGREE = 3


@final
@dataclass(frozen=True)
class PairwiseSpline(Pairwise):
    """t_j(u, x) = Σ_v B_j(‖u − v‖): the log pair interaction is a cubic spline on [0, r], with φ its coefficients.

    The spline and its slope are zero at r, so that nothing jumps there, and its slope is zero at 0, where there are few
    pairs to tell; `k` coefficients are free. Attraction at some distances may or may not be a process: a simulation
    of one that is none says that it explodes.

    Args:
        r: the distance beyond which points do not interact.
        k: how many coefficients are free.

    >>> import unnorm as un
    >>> un.PairwiseSpline(15.0, k=5).reach
    15.0
    """

    r: float
    k: int = 5

    def __post_init__(self) -> None:
        positive(self.r, "r", "PairwiseSpline")
        whole(self.k, "k of PairwiseSpline", 2)

    @cached_property
    def _knots(self) -> np.ndarray:
        inner = np.linspace(0.0, self.r, self.k + 4 - DEGREE)  # k + 3 B-splines
        return np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, self.r)])

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        return tuple(f"pair{j + 1}" for j in range(self.k))

    def potential(self, d: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        from scipy.interpolate import BSpline

        if not d.size:
            return np.zeros((0, self.k))
        B = BSpline.design_matrix(np.minimum(d, self.r), self._knots, DEGREE).toarray()
        B[:, 1] += B[:, 0]  # flat at 0
        return B[:, 1 : self.k + 1]

    def breaks(self) -> np.ndarray:
        return self.r * np.arange(1, STEPS + 1) / STEPS

    @classmethod
    def examples(cls) -> tuple[PairwiseSpline, ...]:
        return (cls(0.1, 4),)
