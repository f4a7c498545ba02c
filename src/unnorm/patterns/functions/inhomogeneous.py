"""F and G of a process whose intensity varies (van Lieshout 2011): near points count less where the intensity is high.

With λ_min a lower bound of λ, a place u survives to distance r with

    s(u, r) = Π_{‖x_j − u‖ ≤ r} (1 − λ_min/λ(x_j)),

and 1 − F and 1 − G are the means of s over places, and over the points themselves (each less itself), that are r or
more from the border. A Poisson process has exp(−λ_min π r²) for both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ..places import Places, close_pairs
from ..point_pattern import Pattern
from .summary import positive_at_points

SHARE = 0.95  # of the smallest intensity at a point: λ_min, where it is not given (spatstat's choice)


def thinning(pattern: Pattern, intensity: Any, least: float | None) -> tuple[np.ndarray, float]:
    """log(1 − λ_min/λ) of each point, and λ_min."""
    lam = positive_at_points(pattern, intensity)
    lowest = SHARE * float(lam.min()) if least is None else float(least)
    if not 0.0 < lowest < lam.min():
        raise InputError(
            f"least, the smallest intensity anywhere in the window, must be positive and below {lam.min():.6g}, the "
            f"smallest at a point; got {least!r}."
        )
    return np.log1p(-lowest / lam), lowest


def survival(u: Places, gap: np.ndarray, x: Places, log_keep: np.ndarray, grid: np.ndarray, own: bool) -> np.ndarray:
    """(R,) the mean of s(u, r) over places at least r from the border; `own`: places are the points themselves.

    s falls at the distance of each neighbour, and a place leaves the mean where r reaches its border.
    """
    bins = len(grid)
    pairs = close_pairs(u, x, float(grid[-1]))
    if own:
        pairs = pairs.less(np.arange(u.n))
    order = np.lexsort((pairs.d, pairs.a))
    a, step = pairs.a[order], log_keep[pairs.b[order]]
    at = np.searchsorted(grid, pairs.d[order], side="left")
    leaves = np.searchsorted(grid, gap, side="right")  # the first r beyond the border
    seen = at < leaves[a]
    a, step, at = a[seen], step[seen], at[seen]
    total = np.cumsum(step)
    before = np.concatenate([[0.0], total])[np.searchsorted(a, np.arange(u.n))]  # of earlier places
    after = np.exp(total - before[a])
    falls = np.bincount(at, after * -np.expm1(-step), bins + 1)  # s less what it was
    last = np.exp(np.bincount(a, step, u.n))
    alive = u.n + np.cumsum(falls - np.bincount(leaves, last, bins + 1))[:bins]
    count = u.n - np.cumsum(np.bincount(leaves, minlength=bins + 1))[:bins]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 0, alive / count, np.nan)
