"""Covariances of coefficients where every level has the same columns: V = diag(0, B_1, …, B_L) + ZZᵀ, never formed.

Z (p, r) has r of the order of the number of shared columns, so that V takes as many numbers as the arrow's inverse. The
Bayesian covariance is φH⁻¹ = φ{diag(0, E) + 𝒜Σ𝒜ᵀ} (arrow.py). What not knowing the smoothing parameters adds (Wood, Pya
& Säfken 2016) has the same form if H's Cholesky factor is taken with the levels first, H⁻¹ = PPᵀ with

    P = [ P_D  −A P_0 ]      P_D = chol(E) by level,  P_0P_0ᵀ = Σ,      dP = −P Φ(Pᵀ dS P),
        [  0     P_0  ]

Φ the upper triangle with half of the diagonal. mgcv takes the columns in the formula's order; the term depends a little
on that order (AIC of 240, 400 and 1,000 such columns: .1, .004 and .007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.special import ndtri

from .arrow import tall

if TYPE_CHECKING:
    from .arrow import Arrow, ArrowInverse
    from .smoothed import Smoothed

WIDE = 200  # coefficients up to which p × p matrices cost nothing
_HELD = 4_000_000  # numbers held at once


@final
@dataclass(frozen=True)
class LevelRows:
    """Combinations of coefficients, row by row: shared columns (n, s), own columns (n, k) and whose level (n,)."""

    shared: np.ndarray
    own: np.ndarray
    level: np.ndarray  # −1: none, and `own` is zero

    def dot(self, beta: np.ndarray) -> np.ndarray:
        """(n,) or (n, m) for β (p,) or (p, m), flat."""
        s, k = self.shared.shape[1], self.own.shape[1]
        levels = beta[s:].reshape((len(beta) - s) // k, k, *beta.shape[1:])
        out = self.shared @ beta[:s]
        for j in range(k):
            own = self.own[:, j] if beta.ndim == 1 else self.own[:, j, None]
            out += own * levels[self.level, j]
        return out

    def less(self, other: LevelRows, scale: float | np.ndarray = 1.0) -> LevelRows:
        """(these − other)/scale; where both have columns of a level, it is the same."""
        level = np.where(self.level >= 0, self.level, other.level)
        return LevelRows((self.shared - other.shared) / scale, (self.own - other.own) / scale, level)


@final
@dataclass(frozen=True)
class LevelCovariance:
    """V in the engine's coordinates: B (L, k, k), Z (p, r)."""

    B: np.ndarray
    Z: np.ndarray

    def errors(self, rows: LevelRows) -> np.ndarray:
        """√ of the variance of each row's combination."""
        out = np.empty(len(rows.level))
        step = max(1, _HELD // max(self.Z.shape[1], 1))
        for a in range(0, out.size, step):
            here = slice(a, a + step)
            part = LevelRows(rows.shared[here], rows.own[here], rows.level[here])
            along = part.dot(self.Z)
            within = np.einsum("nj,njk,nk->n", part.own, self.B[part.level], part.own)
            out[here] = np.einsum("nr,nr->n", along, along) + within
        return np.sqrt(np.maximum(out, 0.0))

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(p, n) draws from N(0, V)."""
        L, k = self.B.shape[:2]
        value, vector = np.linalg.eigh(self.B)
        root = vector * np.sqrt(np.maximum(value, 0.0))[:, None, :]
        out = self.Z @ rng.standard_normal((self.Z.shape[1], n))
        out[len(out) - L * k :] += np.matmul(root, rng.standard_normal((L, k, n))).reshape(L * k, n)
        return out

    def multiplier(self, rows: LevelRows, level: float, rng: np.random.Generator, draws: int = 10_000) -> float:
        """As `inference.simultaneous_multiplier`."""
        se = self.errors(rows)
        here = ~np.isnan(se)
        if not here.any():
            return float(ndtri(0.5 * (1.0 + level)))
        rows, se = LevelRows(rows.shared[here], rows.own[here], rows.level[here]), se[here]
        back = np.where(se > 0.0, 1.0 / np.where(se > 0.0, se, 1.0), 0.0)[:, None]
        largest, step = np.empty(draws), max(1, _HELD // max(len(self.Z), se.size))
        for a in range(0, draws, step):
            b = min(draws, a + step)
            largest[a:b] = np.abs(rows.dot(self.draws(b - a, rng)) * back).max(axis=0)
        return float(np.quantile(largest, level))

    def dense(self) -> np.ndarray:
        """V (p, p)."""
        out = self.Z @ self.Z.T
        L, k = self.B.shape[:2]
        at = len(out) - L * k + np.arange(L * k).reshape(L, k)
        out[at[:, :, None], at[:, None, :]] += self.B
        return out

    def information(self, A: Arrow) -> np.ndarray:
        """(p,) the diagonal of VA."""
        assert A.stacked is not None
        out = np.einsum("pr,pr->p", self.Z, A.dot(self.Z))
        out[len(A.shared) :] += np.einsum("ljk,lkj->lj", self.B, A.stacked[0]).ravel()
        return out


def bayesian(inverse: ArrowInverse, phi: float) -> LevelCovariance:
    """φH⁻¹."""
    assert inverse.stacked is not None
    E, Y = inverse.stacked
    s = len(inverse.sigma)
    rows = np.concatenate([-np.eye(s), tall(Y)])
    return LevelCovariance(phi * E, np.sqrt(phi) * rows @ np.linalg.cholesky(inverse.sigma))


@final
@dataclass(frozen=True)
class LevelUnconditional:
    """As `inference.Unconditional`, by blocks. edf₂ has the terms' order; its sums over terms are theirs."""

    smoothed: Smoothed
    parts: LevelCovariance
    edf2: np.ndarray
    rho_covariance: np.ndarray

    @cached_property
    def covariance(self) -> np.ndarray:
        """V_c, dense (p, p)."""
        return self.smoothed.turned(self.parts.dense)


def unconditional(inner: Smoothed, free: np.ndarray, hessian: np.ndarray) -> LevelUnconditional:
    """V_c = V_β + J V_ρ Jᵀ + V″ for the smoothing parameters `free`; `hessian` as in `inference.unconditional`."""
    m, phi = free.size, inner.scale
    value, vector = np.linalg.eigh(hessian)
    root = vector * np.where(value > 0.0, 1.0 / np.sqrt(np.where(value > 0.0, value, 1.0)), 0.0)
    V_rho = ((vector / (np.maximum(value, 0.0) + 0.1)) @ vector.T)[:m, :m]
    size, direction = np.linalg.eigh(V_rho)
    steps = (direction * np.sqrt(np.maximum(size, 0.0))).T
    base = bayesian(inner.inverse, phi)
    B, more = _second(inner, [_stretched(inner, free, v) for v in steps])
    J = inner.design.to_flat(inner.dbeta_drho[:, free]) @ root[:m]
    V = LevelCovariance(base.B + phi * B, np.concatenate([base.Z, J, np.sqrt(phi) * more], axis=1))
    edf2, information = np.empty(inner.size), V.information(inner.cross) / phi
    for place in inner.design.placements:
        edf2[place.user] = information[place.at]
    return LevelUnconditional(inner, V, inner.edf1 if edf2.sum() > inner.edf1.sum() else edf2, V_rho)


def _stretched(inner: Smoothed, free: np.ndarray, v: np.ndarray) -> np.ndarray:
    """λ_k v_k: the penalty's derivative in a direction of ρ, as weights of the S_k (may be negative)."""
    out = np.zeros(inner.rho.size)
    out[free] = np.exp(inner.rho[free]) * v
    return out


def _second(inner: Smoothed, weights: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Σ_e D_eD_eᵀ with D_e = P Φ(Pᵀ dS_e P): blocks (L, k, k) and columns (p, s e)."""
    inverse = inner.inverse
    assert inverse.stacked is not None
    E, Y = inverse.stacked
    P_0, P_D = _upper(inverse.sigma[None])[0], _upper(E)
    flat = tall(Y)
    blocks, columns = np.zeros(E.shape), []
    for weight in weights:
        dS_0, dS_l = inner.design.penalties.parts(weight)
        level, turned = dS_l[0], np.matmul(dS_l[0], Y)
        within = P_D @ _half(np.matmul(P_D.transpose(0, 2, 1), level @ P_D))
        blocks += np.matmul(within, within.transpose(0, 2, 1))
        across = -np.matmul(E, turned).reshape(flat.shape) @ P_0  # P_D P_Dᵀ dS (−A P_0)
        top = P_0 @ _half(P_0.T @ (dS_0 + flat.T @ turned.reshape(flat.shape)) @ P_0)
        columns.append(np.concatenate([top, across - flat @ top]))
    return blocks, np.concatenate(columns, axis=1)


def _upper(matrices: np.ndarray) -> np.ndarray:
    """Upper triangular P with PPᵀ = each matrix: the inverse of the Cholesky factor R, RᵀR = its inverse."""
    flipped = np.linalg.cholesky(matrices[:, ::-1, ::-1])
    return flipped[:, ::-1, ::-1]


def _half(matrix: np.ndarray) -> np.ndarray:
    """Φ: the upper triangle with half of the diagonal."""
    out = np.triu(matrix)
    at = np.arange(out.shape[-1])
    out[..., at, at] *= 0.5
    return out
