"""The hard-core process, and with a Strauss interaction around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ..._base.words import either
from ...errors import DataError, InputError
from .base import Neighbours, first_duplicate, positive, refuse_duplicates
from .pairwise import Pairwise

if TYPE_CHECKING:
    from ..point_pattern import Pattern


@final
@dataclass(frozen=True)
class HardCore(Pairwise):
    """λ(u | x) = 0 within r of a point of x; with `strauss`, also t(u, x) = the number of points within that distance.

    The data must have no pair at distance r or less. The largest r that they allow, times n/(n + 1), is a good guess:
    `HardCore.largest(pattern)`.

    Args:
        r: the distance that keeps points apart.
        strauss: a larger distance, within which points count; None for the hard core alone.

    >>> import unnorm as un
    >>> un.HardCore(2.0, strauss=9.0).reach
    9.0
    """

    r: float
    strauss: float | None = None

    def __post_init__(self) -> None:
        positive(self.r, "r", "HardCore")
        if self.strauss is not None and not positive(self.strauss, "strauss", "HardCore") > self.r:
            raise InputError(f"strauss must be larger than r = {self.r:g}, the hard core; got {self.strauss!r}.")

    @property
    def reach(self) -> float:
        return self.r if self.strauss is None else self.strauss

    @property
    def core(self) -> float:
        return self.r

    def names(self, pattern: Pattern) -> tuple[str, ...]:
        return () if self.strauss is None else ("strauss",)

    def potential(self, d: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.ones((len(d), 0 if self.strauss is None else 1))

    def breaks(self) -> np.ndarray:
        return np.array([self.r] if self.strauss is None else [self.r, self.strauss])

    def check(self, pattern: Pattern) -> None:
        super().check(pattern)
        near = Neighbours(pattern.places, pattern.places, np.arange(pattern.n), self.r).pairs
        if near.d.size:
            refuse_duplicates(self, pattern)
            k = int(np.argmin(near.d))
            a, b = pattern.xy[near.a[k]], pattern.xy[near.b[k]]
            raise DataError(
                f"{self!r} forbids points {self.r:.6g} or less apart, and {near.d.size // 2:,} pairs are, the closest "
                f"{near.d[k]:.6g}: ({a[0]:.6g}, {a[1]:.6g}) and ({b[0]:.6g}, {b[1]:.6g}). Take r below that, or a "
                f"model that only discourages close pairs: {either('un.Strauss(r)', '--interaction strauss(r)')}."
            )

    @staticmethod
    def largest(pattern: Pattern) -> float:
        """The maximum likelihood estimate of r, made a little smaller: the smallest distance × n/(n + 1)."""
        from scipy.spatial import KDTree

        best = np.inf
        for code in range(pattern.replicates):
            xy = pattern.xy[pattern.places.replicate == code]
            if len(xy) > 1:
                best = min(best, float(KDTree(xy).query(xy, k=2)[0][:, 1].min()))
        if not np.isfinite(best):
            raise InputError("No replicate has two points: there is no smallest distance.")
        if best == 0.0:
            raise DataError(f"There is no hard core: {first_duplicate(pattern)}")
        return best * pattern.n / (pattern.n + 1)

    @classmethod
    def examples(cls) -> tuple[HardCore, ...]:
        return cls(1e-4), cls(1e-4, 0.06)
