"""Quantiles and intervals shared by all results."""

from __future__ import annotations

from statistics import NormalDist

from ..errors import InputError


def normal_quantile(level: float) -> float:
    """z with P(|N(0,1)| ≤ z) = level."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, e.g. 0.95; got {level!r}.")
    return NormalDist().inv_cdf(0.5 + level / 2)
