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

AT_ONCE = 4096  # places
SHARE = 0.95  # of the smallest intensity at a point: λ_min, where it is not given (spatstat's choice)


def thinning(pattern: Pattern, intensity: Any, least: float | None) -> tuple[np.ndarray, float]:
    """log(1 − λ_min/λ) of each point, and λ_min."""
    lam = np.asarray(intensity, dtype=np.float64)
    if lam.shape != (pattern.n,) or not np.all(np.isfinite(lam) & (lam > 0.0)):
        raise InputError(
            f"intensity must be {pattern.n:,} positive numbers, one for each point; got shape {lam.shape}."
        )
    lowest = SHARE * float(lam.min()) if least is None else float(least)
    if not 0.0 < lowest < lam.min():
        raise InputError(
            f"least, the smallest intensity anywhere in the window, must be positive and below {lam.min():.6g}, the "
            f"smallest at a point; got {least!r}."
        )
    return np.log1p(-lowest / lam), lowest


def survival(u: Places, gap: np.ndarray, x: Places, log_keep: np.ndarray, grid: np.ndarray, own: bool) -> np.ndarray:
    """(R,) the mean of s(u, r) over places at least r from the border; `own`: places are the points themselves."""
    alive, seen = np.zeros(len(grid)), np.zeros(len(grid))
    for first in range(0, u.n, AT_ONCE):
        s = slice(first, min(u.n, first + AT_ONCE))
        pairs = close_pairs(u.take(s), x, float(grid[-1]))
        if own:
            pairs = pairs.less(np.arange(s.start, s.stop))
        steps = np.zeros((s.stop - s.start, len(grid)))
        np.add.at(steps, (pairs.a, np.searchsorted(grid, pairs.d, side="left")), log_keep[pairs.b])
        known = grid[None] <= gap[s, None]
        alive += np.sum(np.exp(np.cumsum(steps, axis=1)), axis=0, where=known)
        seen += known.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return alive / seen
