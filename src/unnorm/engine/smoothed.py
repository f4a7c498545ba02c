"""`Smoothed`: what the additive engine found, with the covariance by blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, unknown
from . import level_covariance

if TYPE_CHECKING:
    from .arrow import Arrow, ArrowInverse
    from .design import Design, Placement
    from .level_covariance import LevelCovariance

INTERCEPT = "(Intercept)"
MOST = 20_000  # coefficients up to which a dense (p, p) is made where it is asked for


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
    flat: np.ndarray  # (M,) bool: the criterion is flat there; the smoothing parameter is infinite, or zero, in effect
    limit: np.ndarray  # (M,) 1 where it is infinite in effect, −1 where it is zero, 0 elsewhere and where it is fixed
    score: float  # the criterion at ρ̂ (mgcv's scale: REML, ML, GCV or UBRE; mean held-out deviance for CV)
    gradient: np.ndarray  # (M,) of the criterion in ρ, zero for fixed
    hessian: np.ndarray  # (M, M) of the criterion in ρ; rows of fixed parameters are zero
    dbeta_drho: np.ndarray  # (p, M) = −H⁻¹ λ_j S_j β̂

    loglik: float  # with its constants; Gaussian: at the maximum likelihood scale deviance/n, as mgcv's logLik
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
    inverse: ArrowInverse = field(repr=False)  # (XᵀWX + S)⁻¹ by blocks, unscaled, in the engine's coordinates
    cross: Arrow = field(repr=False)  # XᵀWX likewise
    offset: np.ndarray = field(repr=False)  # as given; empty where absent
    notes: tuple[str, ...] = ()  # where else than here the rows were met, and what that cost

    @property
    def size(self) -> int:
        """p, the number of coefficients."""
        return self.beta.size

    @property
    def Vp(self) -> np.ndarray:
        """Bayesian covariance φ (XᵀWX + S)⁻¹, dense (p, p); refused above 20,000 coefficients: use
        `covariance_block`."""
        return self.scale * self.turned(self.inverse.dense)

    @property
    def Ve(self) -> np.ndarray:
        """Frequentist covariance φ (XᵀWX + S)⁻¹ XᵀWX (XᵀWX + S)⁻¹, dense (p, p)."""
        return self.scale * self.turned(lambda: (p := self.inverse.dense()) - p @ self._times_penalty(p).T)

    @property
    def F(self) -> np.ndarray:
        """(XᵀWX + S)⁻¹ XᵀWX = I − (XᵀWX + S)⁻¹ S, dense (p, p): its diagonal is `edf`."""
        return self.turned(lambda: np.eye(self.size) - self._times_penalty(self.inverse.dense()))

    @property
    def XtWX(self) -> np.ndarray:
        """The weighted cross-product at β̂, dense (p, p)."""
        return self.turned(self.cross.dense)

    @property
    def penalty(self) -> np.ndarray:
        """S_λ = Σ_j λ_j S_j at ρ̂, dense (p, p)."""
        return self.turned(lambda: self._times_penalty(np.eye(self.size)))

    def covariance_block(self, a: str, b: str | None = None) -> np.ndarray:
        """The rows of Vp of term `a` and the columns of term `b` (default: `a` again), without the dense matrix."""
        first, second = self._places(a), self._places(a if b is None else b)
        out = np.zeros((_size(self.slices[a]), _size(self.slices[a if b is None else b])))
        flat = np.arange(self.size)
        rows = self.inverse.rows(np.concatenate([flat[place.at].ravel() for place in first])).T
        turned = np.empty((out.shape[1], rows.shape[1]))
        for other in second:
            turned[other.user - self.slices[a if b is None else b].start] = other.turned(rows[other.at], other.rotation)
        begin, turned = 0, turned.T
        for place in first:
            here = turned[begin : begin + place.user.size].reshape(*place.user.shape, -1)
            out[place.user - self.slices[a].start] = np.matmul(place.rotation, here)
            begin += place.user.size
        return self.scale * out

    def information_block(self, label: str) -> np.ndarray:
        """XᵀWX on one term's coefficients."""
        places = self._places(label)
        if len(places) > 1 or places[0].every:
            return self.XtWX[self.slices[label], self.slices[label]]
        (place,) = places
        here = self.cross.shared[place.flat, place.flat]
        return place.rotation @ here @ place.rotation.T

    def columns(self, labels: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Which of the shared columns (s,), and of those that each level has alike (k,), belong to these terms."""
        s, own = len(self.cross.shared), self.design.own
        found = np.zeros(s, bool), np.zeros(0 if own is None else own.width, bool)
        for label in labels:
            for place in self._places(label):
                if place.every:
                    found[1][place.flat.start - s : place.flat.stop - s] = True
                else:
                    found[0][place.flat] = True
        return found

    def linear_predictor(self) -> np.ndarray:
        """η = Xβ̂ + offset at the fitted rows, in the caller's order."""
        eta = self.design.unsort(self.design.predict(self.design.to_flat(self.beta)))
        return eta + self.offset if self.offset.size else eta

    @property
    def wide(self) -> bool:
        """Whether levels are many and alike, so that p × p matrices are to be avoided."""
        return self.design.own is not None and self.size > level_covariance.WIDE

    @cached_property
    def levels(self) -> LevelCovariance:
        """Vp by blocks, in the engine's coordinates, where levels are alike."""
        return level_covariance.bayesian(self.inverse, self.scale)

    def _times_penalty(self, matrix: np.ndarray) -> np.ndarray:
        """matrix @ S_λ, in the engine's coordinates."""
        at = self.design.penalties.starts
        out = np.empty(matrix.shape)
        for k, block in enumerate(self.design.penalties.blocks(np.exp(self.rho))):
            out[:, at[k] : at[k + 1]] = matrix[:, at[k] : at[k + 1]] @ block
        return out

    def turned(self, dense: Callable[[], np.ndarray]) -> np.ndarray:
        """A (p, p) matrix from the engine's coordinates to the terms', on both sides; refused where it is too large."""
        if self.size > MOST:
            raise InputError(
                f"A dense matrix of {self.size} coefficients would take {self.size**2 * 8 / 1e9:.0f} GB. "
                "Use covariance_block, or predict and effect, which need no such matrix."
            )
        return self.design.to_user(self.design.to_user(dense()).T).T

    def _places(self, label: str) -> list[Placement]:
        if label not in self.slices:
            raise InputError(unknown("A term's label", label, self.slices))
        wanted = self.slices[label]
        return [place for place in self.design.placements if wanted.start <= place.user.flat[0] < wanted.stop]


def _size(at: slice) -> int:
    return at.stop - at.start
