"""Tests of nested models: likelihood ratio where the objective is a likelihood, Wald everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np


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


def likelihood_ratio(larger: float, smaller: float, df: int) -> NestedTest:
    """2 (𝓛₁ − 𝓛₀) ~ χ²_df."""
    from scipy.special import chdtrc

    statistic = 2 * (larger - smaller)
    return NestedTest("likelihood ratio", float(statistic), df, float(chdtrc(df, max(statistic, 0.0))))


def wald(estimate: np.ndarray, covariance: np.ndarray, clusters_df: float | None = None) -> NestedTest:
    """W = θ̂ᵀ V⁻¹ θ̂ ~ χ²_df for "these parameters are zero"; with C clusters Hotelling's T², whose
    (C − df)/(C − 1) W/df ~ F on (df, C − df): with W/df on (df, C − 1) three parameters and five clusters would reject
    a true null 24 times in 100."""
    from scipy.special import chdtrc, fdtrc

    df = estimate.size
    statistic = float(estimate @ np.linalg.solve(covariance, estimate))
    if clusters_df is None:
        return NestedTest("Wald", statistic, df, float(chdtrc(df, statistic)))
    residual = clusters_df + 1.0 - df
    f = statistic * residual / (clusters_df * df)
    return NestedTest("Wald", statistic, df, float(fdtrc(df, residual, f)), residual)
