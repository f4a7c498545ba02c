"""`Smoothed`: what the additive engine found, with the covariance by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .arrow import ArrowInverse
    from .design import Design

INTERCEPT = "(Intercept)"


@dataclass(frozen=True)
class Smoothed:
    """A penalised fit at its smoothing parameters: β̂ = argmax ℓ(β) − ½ Σ_j exp(ρ_j) βᵀS_jβ, ρ̂ = argmin criterion.

    Coefficients are in the terms' own bases: the intercept first (where the design has one), then each term in order.
    Rows are in the caller's order wherever they appear.
    """

    design: Design
    family: str  # "binomial" (logit), "poisson" (log), "gaussian" (identity)
    method: str  # "REML", "ML", "GCV" (UBRE where the scale is known), "CV", "fixed"
    beta: np.ndarray  # (p,)
    slices: Mapping[str, slice]  # "(Intercept)" and every term label → its coefficients

    sp_labels: tuple[str, ...]  # one per penalty, in the terms' order
    rho: np.ndarray  # (M,) log smoothing parameters, fixed ones included
    estimated: np.ndarray  # (M,) bool: False where the user fixed it
    flat: np.ndarray  # (M,) bool: the criterion is flat there; the smoothing parameter is at infinity in effect
    score: float  # the criterion at ρ̂ (mgcv's scale: REML, ML, GCV or UBRE; mean held-out deviance for CV)
    gradient: np.ndarray  # (M,) of the criterion in ρ, zero for fixed
    hessian: np.ndarray  # (M, M) of the criterion in ρ; rows of fixed parameters are zero
    dbeta_drho: np.ndarray  # (p, M) = −H⁻¹ λ_j S_j β̂

    loglik: float  # with its constants, at β̂ and the scale below
    deviance: float
    null_deviance: float  # of the intercept (and offset) alone
    scale: float  # 1 where known; Gaussian: deviance / (n − edf)
    scale_known: bool
    rows: int  # rows with positive weight
    edf: np.ndarray  # (p,) diagonal of F = (XᵀWX + S)⁻¹ XᵀWX
    edf1: np.ndarray  # (p,) diagonal of 2F − FF (Wood 2013)

    converged: bool
    reason: str  # a sentence
    iterations: Mapping[str, int]  # "outer", "passes", "leverage passes"
    timings: Mapping[str, float]  # seconds by stage
    inverse: ArrowInverse = field(repr=False)  # (XᵀWX + S)⁻¹ by blocks, unscaled

    @property
    def size(self) -> int:
        """p, the number of coefficients."""
        return self.beta.size

    @property
    def Vp(self) -> np.ndarray:
        """Bayesian covariance φ (XᵀWX + S)⁻¹, dense (p, p); refused above 20,000 coefficients: use `covariance_block`."""
        raise NotImplementedError

    @property
    def Ve(self) -> np.ndarray:
        """Frequentist covariance φ (XᵀWX + S)⁻¹ XᵀWX (XᵀWX + S)⁻¹, dense (p, p)."""
        raise NotImplementedError

    @property
    def F(self) -> np.ndarray:
        """(XᵀWX + S)⁻¹ XᵀWX, dense (p, p): its diagonal is `edf`."""
        raise NotImplementedError

    def covariance_block(self, a: str, b: str | None = None) -> np.ndarray:
        """The rows of Vp of term `a` and the columns of term `b` (default: `a` again), without the dense matrix."""
        raise NotImplementedError

    def linear_predictor(self) -> np.ndarray:
        """η = Xβ̂ + offset at the fitted rows, in the caller's order."""
        raise NotImplementedError
