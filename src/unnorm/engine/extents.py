"""How far a direction of the coefficients moves rows, by what their response allows: the certificate of separation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .segment import ResponseRows


class Extent(NamedTuple):
    """Largest moves xᵀd, each at least zero."""

    size: float  # |xᵀd| of any row
    up: float  # upwards, of rows whose likelihood rises with η without end (y = 1)
    up_back: float  # and downwards
    down: float  # upwards, of rows whose likelihood falls with η without end (y = 0)
    down_back: float  # and downwards
    still: float  # |xᵀd| of the others, which have a maximum of their own

    def sign(self, allowed: float) -> int:
        """1 or −1 where every row's likelihood rises or stays along that sign of d, but for `allowed` of the largest
        move; else 0."""
        most = allowed * self.size
        if self.still > most:
            return 0
        if max(self.up_back, self.down) <= most:
            return 1
        return -1 if max(self.up, self.down_back) <= most else 0


def extent(moved: np.ndarray, rows: ResponseRows, family: str) -> Extent:
    """Of rows that a direction moves by `moved`, both in the design's order; rows without weight only count for
    `size`."""
    size = max(float(moved.max(initial=0.0)), -float(moved.min(initial=0.0)))
    y = rows.y
    if rows.weights.size:
        counted = rows.weights > 0
        y, moved = y[counted], moved[counted]
    up, down = (y >= 1, y <= 0) if family == "binomial" else (np.zeros(y.size, bool), y <= 0)

    def both(which: np.ndarray) -> tuple[float, float]:
        some = moved[which]
        return float(some.max(initial=0.0)), -float(some.min(initial=0.0))

    return Extent(size, *both(up), *both(down), float(np.abs(moved[~(up | down)]).max(initial=0.0)))
