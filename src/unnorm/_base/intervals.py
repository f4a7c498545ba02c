"""Quantiles shared by all results."""

from __future__ import annotations

from statistics import NormalDist

from ..errors import InputError


def quantile(level: float, df: float | None = None) -> float:
    """q with P(|T| ≤ q) = level, for T normal, or Student's with `df` degrees of freedom."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, e.g. 0.95; got {level!r}.")
    if df is None:
        return NormalDist().inv_cdf(0.5 + level / 2)
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def normal_quantile(level: float) -> float:
    """z with P(|N(0,1)| ≤ z) = level."""
    return quantile(level)
