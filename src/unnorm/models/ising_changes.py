"""Changes and sums of the Ising model's statistics as matrix products: no table of outcomes × parameters.

With R = v ∘ (1 − 2Y) the sum Σ_ti v_ti Δ_i s has the parts Σ_t R_ti (fields), (RᵀY + YᵀR)_ij (couplings), RᵀX (previous
step) and RᵀZ (covariates). The curvature of bit i's regression on D = (1, Y, X, Z) is A_i = Dᵀ diag(w_·i) D: d matrices
of m × m for p ≈ d m/2 parameters, as a coupling belongs to the regressions of both its bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from .changes import Changes
from .operators import NodeBlocks


@final
@dataclass(frozen=True)
class IsingShape:
    """Where the parameters of d bits with c covariates lie in the flat θ: fields, couplings, previous, covariates."""

    d: int
    lag: int
    covariates: int

    @property
    def size(self) -> int:
        return self.d + self.d * (self.d - 1) // 2 + self.d * (self.lag * self.d + self.covariates)

    @property
    def width(self) -> int:
        """m: regressors of one bit, (1, Y, X, Z), its own included."""
        return 1 + self.d + self.lag * self.d + self.covariates

    @cached_property
    def upper(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self.d, k=1)

    @cached_property
    def index(self) -> np.ndarray:
        """(d, m) the parameter of each regressor of each bit; −1 for the bit itself."""
        d, pairs = self.d, self.d * (self.d - 1) // 2
        J = np.full((d, d), -1)
        J[self.upper] = J.T[self.upper] = d + np.arange(pairs)
        at = d + pairs
        K = at + np.arange(d * self.lag * d).reshape(d, -1)
        at += K.size
        B = at + np.arange(d * self.covariates).reshape(d, -1)
        return np.concatenate([np.arange(d)[:, None], J, K, B], axis=1)

    def arrays(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """h (d,), symmetric J (d, d) with a zero diagonal, and the coefficients of (X, Z), (d, lag·d + c)."""
        d, pairs = self.d, self.d * (self.d - 1) // 2
        J = np.zeros((d, d), dtype=theta.dtype)
        J[self.upper] = theta[d : d + pairs]
        K = theta[d + pairs : d + pairs + d * self.lag * d].reshape(d, -1)
        B = theta[d + pairs + K.size :].reshape(d, -1)
        return theta[:d], J + J.T, np.concatenate([K, B], axis=1)

    def flat(self, h: np.ndarray, J: np.ndarray, W: np.ndarray) -> np.ndarray:
        """The inverse of `arrays`, where J holds sums for i < j above its diagonal."""
        split = self.lag * self.d
        return np.concatenate([h, J[self.upper], W[:, :split].ravel(), W[:, split:].ravel()])


@final
@dataclass(frozen=True)
class IsingChanges(Changes):
    """Δ_i s of outcomes Y in contexts X = (previous step, covariates), float32 or float64."""

    shape: IsingShape
    Y: np.ndarray  # (n, d)
    X: np.ndarray | None  # (n, lag·d + c); None where there is no context

    @property
    def n(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.Y.shape[0]

    @property
    def d(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.Y.shape[1]

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.shape.size

    @property
    def nbytes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.Y.nbytes + (0 if self.X is None else self.X.nbytes)

    def fields(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) the log-odds of each bit given the others."""
        h, J, W = self.shape.arrays(theta.astype(self.Y.dtype))
        u = self.Y @ J
        u += h
        if self.X is not None:
            u += self.X @ W.T
        return u

    def times(self, theta: np.ndarray) -> np.ndarray:
        u = self.fields(theta)
        u -= 2.0 * self.Y * u
        return u

    def _signed(self, v: np.ndarray) -> np.ndarray:
        v = v.astype(self.Y.dtype, copy=False)
        return v - 2.0 * self.Y * v

    def total(self, v: np.ndarray) -> np.ndarray:
        R = self._signed(v)
        both = (R.T @ self.Y).astype(np.float64)
        W = np.zeros((self.d, 0)) if self.X is None else (R.T @ self.X).astype(np.float64)
        return self.shape.flat(R.sum(axis=0, dtype=np.float64), both + both.T, W)

    def by_outcome(self, v: np.ndarray) -> np.ndarray:
        R = self._signed(v)
        i, j = self.shape.upper
        parts = [R, R[:, i] * self.Y[:, j] + R[:, j] * self.Y[:, i]]
        if self.X is not None:
            split = self.shape.lag * self.d
            both = (self.X[:, :split], self.X[:, split:])
            parts += [(R[:, :, None] * X[:, None, :]).reshape(self.n, -1) for X in both]
        return np.concatenate(parts, axis=1)

    @cached_property
    def _regressors(self) -> np.ndarray:
        ones = np.ones((self.n, 1), dtype=self.Y.dtype)
        return np.concatenate([ones, self.Y] if self.X is None else [ones, self.Y, self.X], axis=1)

    def operator(self, w: np.ndarray) -> NodeBlocks:
        D = self._regressors
        blocks = np.empty((self.d, D.shape[1], D.shape[1]), dtype=D.dtype)
        for i in range(self.d):
            np.matmul((D * w[:, i, None].astype(D.dtype)).T, D, out=blocks[i])
        return NodeBlocks(self.shape.index, self.size, blocks)

    def cross(self, w: np.ndarray) -> np.ndarray:
        return self.operator(w).dense()

    def take(self, which: slice) -> IsingChanges:
        return IsingChanges(self.shape, self.Y[which], None if self.X is None else self.X[which])

    def squares(self, w: np.ndarray) -> np.ndarray:
        out = np.zeros(self.size + 1)  # the last place takes a bit's product with itself
        D2 = w.T.astype(np.float64) @ (self._regressors.astype(np.float64) ** 2)
        np.add.at(out, self.shape.index, D2)
        return out[:-1]


def outcome_sums(shape: IsingShape, v: np.ndarray, Y: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    """(p,) Σ_t v_t s(y_t|x_t)."""
    R = Y * v[:, None]
    W = np.zeros((shape.d, 0)) if X is None else (R.T @ X).astype(np.float64)
    return shape.flat(R.sum(axis=0, dtype=np.float64), (R.T @ Y).astype(np.float64), W)


def energies(shape: IsingShape, theta: np.ndarray, Y: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    """(n,) f_θ(y_t|x_t) = Σ_i y_i (h_i + ½ Σ_j J_ij y_j + Σ_k W_ik x_k)."""
    h, J, W = shape.arrays(theta.astype(Y.dtype, copy=False))
    u: Any = Y @ (0.5 * J) + h
    if X is not None:
        u += X @ W.T
    return np.einsum("ti,ti->t", Y, u)
