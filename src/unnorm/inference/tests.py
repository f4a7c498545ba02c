"""Tests of nested models: likelihood ratio where the objective is a likelihood, Wald everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from ..errors import InputError, warn

LARGE_ERROR = 0.3  # of a simulated likelihood ratio: it moves a p-value near .05 by .01


@final
@dataclass(frozen=True)
class NestedTest:
    """A test of a smaller model inside a larger one."""

    method: str  # "likelihood ratio" or "Wald"
    statistic: float
    df: int
    p_value: float
    residual_df: float | None = None  # of an F test, where few clusters estimate the covariance

    def __str__(self) -> str:
        df = f"{self.df}" if self.residual_df is None else f"{self.df} and {self.residual_df:g}"
        return f"{self.method} {self.statistic:.4g} on {df} df, p = {self.p_value:.3g}"


def likelihood_ratio(larger: float, smaller: float, df: int, error: float = 0.0) -> NestedTest:
    """2 (𝓛₁ − 𝓛₀) ~ χ²_df; `error`: its Monte Carlo error, where likelihoods are simulated."""
    from scipy.special import chdtrc

    if error > LARGE_ERROR:
        warn(
            f"The log-likelihoods are simulated, with a Monte Carlo error of {error:.2g} in the statistic: its p-value "
            "is no better known. fit.wald(…) needs no log-likelihood.",
            stacklevel=3,
        )
    statistic = 2 * (larger - smaller)
    return NestedTest("likelihood ratio", float(statistic), df, float(chdtrc(df, max(statistic, 0.0))))


def wald(estimate: np.ndarray, covariance: np.ndarray, clusters_df: float | None = None) -> NestedTest:
    """W = θ̂ᵀ V⁻¹ θ̂ ~ χ²_df for "these parameters are zero"; with G effective clusters Hotelling's T², whose
    (G − df)/(G − 1) W/df ~ F on (df, G − df): with W/df on (df, G − 1) three parameters and five clusters would reject
    a true null 24 times in 100."""
    from scipy.special import chdtrc, fdtrc

    df = estimate.size
    statistic = float(estimate @ np.linalg.solve(covariance, estimate))
    if clusters_df is None:
        return NestedTest("Wald", statistic, df, float(chdtrc(df, statistic)))
    residual = clusters_df + 1.0 - df
    if residual <= 0:
        raise InputError(
            f"A robust test of {df} parameters at once needs more than {df} clusters; these, of unequal size, are "
            f"worth {clusters_df + 1.0:.1f}. Test fewer parameters at a time, or use robust=False."
        )
    f = statistic * residual / (clusters_df * df)
    return NestedTest("Wald", statistic, df, float(fdtrc(df, residual, f)), residual)
