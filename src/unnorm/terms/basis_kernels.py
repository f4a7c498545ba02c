"""Bases at many points, compiled: threads that set up terms side by side then meet the interpreter once for each."""

from __future__ import annotations

# pyright: reportCallIssue=false
import numpy as np

from .._base.cached import njit
from .._base.elementary import log_of


@njit(nogil=True, cache=True, error_model="numpy")
def spline_rows(x, period, knots, values, curvatures, out):
    """Fill `out` (n, p) with cubic splines (see `CubicSpline`; `period` 0: none), beyond the knots with their values at
    the ends: at how many points."""
    low, high = knots[0], knots[knots.shape[0] - 1]
    last, beyond, j = knots.shape[0] - 2, 0, 0
    for i in range(x.shape[0]):
        v = x[i]
        if period > 0.0:
            v = low + (v - low) % period
        at = low if v < low else high if v > high else v
        beyond += at != v
        if not (knots[j] <= at and (at < knots[j + 1] or j == last)):  # points in order have their cell at once
            j, above = 0, last + 1
            while above - j > 1:
                middle = (j + above) // 2
                if knots[middle] <= at:
                    j = middle
                else:
                    above = middle
        h = knots[j + 1] - knots[j]
        b = (at - knots[j]) / h
        a = 1.0 - b
        h *= h / 6.0
        c, d = (a * a - 1.0) * a * h, (b * b - 1.0) * b * h
        for k in range(out.shape[1]):
            out[i, k] = a * values[j, k] + b * values[j + 1, k] + c * curvatures[j, k] + d * curvatures[j + 1, k]
    return beyond


@njit(nogil=True, cache=True, error_model="numpy")
def plate_rows(x, knots, scale, power, out):
    """Fill `out` (n, r) with scale r^power log r² for even powers, r the distances of n points to the knots (d, r)."""
    squared = np.empty(knots.shape[1])
    for i in range(x.shape[0]):
        squared[:] = 1e-300  # r^p log r → 0
        for j in range(knots.shape[0]):
            at = x[i, j]
            for k in range(squared.shape[0]):
                squared[k] += (at - knots[j, k]) * (at - knots[j, k])
        for k in range(squared.shape[0]):
            out[i, k] = scale * squared[k] * log_of(squared[k])
        for _ in range(2, power, 2):
            for k in range(squared.shape[0]):
                out[i, k] *= squared[k]
