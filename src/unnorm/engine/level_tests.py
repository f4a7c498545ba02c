"""The test of a random effect or factor smooth with many levels (Wood 2013), by blocks.

With H = A + S, P = H⁻¹ and 𝒜 = (−I; A_1; …; A_L) as in arrow.py, P = diag(0, E_1, …, E_L) + 𝒜Σ𝒜ᵀ. So what the test
compares on the term's own coefficients are block-diagonal matrices and a few columns more,

    M⁻¹ = [(C_11 + S_11)⁻¹] = B (I + c Γ cᵀ) Bᵀ,    V_e = [P C P] = B (diag f + c N cᵀ) Bᵀ,

B by level, c (Lk, r) with r a few times the number of shared columns. T = βᵀMβ follows by Woodbury's identity, and the
weights of its χ²₁ need not be known one by one: their mixture has the transform

    Π_i (1 − 2tμ_i) = Π_l (1 − 2tf_l) · |I + (Γ − 2tN) cᵀdiag{1/(1 − 2tf)}c| / |I + Γcᵀc|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from .arrow import Arrow, ArrowInverse, tall
from .inference import Test, block_test, tail

if TYPE_CHECKING:
    from .penalties import Penalties

Others = tuple[np.ndarray, np.ndarray]  # shared columns (s,), levels' columns (k,), bool
_FEW = 64  # coefficients of which the weights are found one by one
_WIDE = 400  # columns c beyond which the determinants cost more than they tell
_HELD = 2_000_000  # terms of the determinants' sums held at once
_DEPENDENT = 1e-9  # of a column's own information: what is left of it when others span it


@final
@dataclass(frozen=True)
class LevelCurvature:
    """A = XᵀWX, the penalties at λ, P = (A + S)⁻¹ and φ, in the engine's coordinates, levels stacked."""

    A: Arrow
    penalties: Penalties
    lam: np.ndarray
    P: ArrowInverse
    phi: float


@final
@dataclass(frozen=True)
class Spectrum:
    """The weights μ of Σ μχ²₁, as f and what c, Γ and N do to them."""

    f: np.ndarray  # (n,)
    c: np.ndarray  # (n, r)
    gamma: np.ndarray  # (r, r)
    N: np.ndarray  # (r, r)

    @cached_property
    def _pairs(self) -> np.ndarray:
        """(n, r(r + 1)/2) products of the columns."""
        i, j = np.triu_indices(self.c.shape[1])
        return self.c[:, i] * self.c[:, j]

    def log_ratio(self, t: np.ndarray) -> np.ndarray:
        """log Π(1 − 2tμ)/Π(1 − 2tf) along a path of t that starts on the real axis."""
        r = self.c.shape[1]
        upper, pairs = np.triu_indices(r), self._pairs
        sums = np.empty((t.size, pairs.shape[1]), complex)
        step = max(1, _HELD // max(self.f.size, 1))
        for a in range(0, t.size, step):
            share = 1.0 / (1.0 - 2.0 * np.multiply.outer(t[a : a + step], self.f))
            sums[a : a + step] = share.real @ pairs + 1j * (share.imag @ pairs)
        gram = np.zeros((t.size, r, r), complex)
        gram[:, upper[0], upper[1]] = sums
        gram[:, upper[1], upper[0]] = sums
        left = self.gamma - 2.0 * t[:, None, None] * self.N
        sign, size = np.linalg.slogdet(np.eye(r) + left @ gram)
        base = np.linalg.slogdet(np.eye(r) + self.gamma @ (self.c.T @ self.c))[1]
        return size - base + 1j * np.unwrap(np.angle(sign))

    def weights(self) -> np.ndarray:
        """μ themselves, from (n, n) matrices."""
        back = np.linalg.inv(np.linalg.cholesky(np.eye(self.f.size) + self.c @ self.gamma @ self.c.T))
        return np.maximum(np.linalg.eigvalsh(back @ (np.diag(self.f) + self.c @ self.N @ self.c.T) @ back.T), 0.0)

    def bound(self) -> float:
        """No μ is larger: λ_max(diag f + cNcᵀ)/λ_min(I + cΓcᵀ), each bounded by what c adds. Without other random
        effects V_e ≤ M⁻¹, and 1 is a bound."""
        gram = self.c.T @ self.c
        more, less = (np.linalg.eigvals(matrix @ gram).real for matrix in (self.N, self.gamma))
        return (float(self.f.max()) + max(float(more.max()), 0.0)) / max(1.0 + min(float(less.min()), 0.0), 1e-3)

    def mean(self) -> float:
        """Σ μ = tr{(I + cΓcᵀ)⁻¹(diag f + cNcᵀ)}."""
        gram, weighted = self.c.T @ self.c, (self.c.T * self.f) @ self.c
        inner = np.linalg.solve(np.eye(len(gram)) + self.gamma @ gram, self.gamma)
        return float(self.f.sum() + np.sum(self.N * gram) - np.sum(inner * (weighted + gram @ self.N @ gram)))


def level_test(
    own: np.ndarray, beta: np.ndarray, at: LevelCurvature, others: Others, residual_df: float | None
) -> Test:
    """Is a term zero that has the columns `own` (k,) bool of every level? `others`: the shared columns (s,) and the
    levels' columns (k,) of other random effects, which are integrated out. β is flat."""
    shared, mine = others
    N, Z = _integrated(at, shared, mine)
    M, c_gamma, gamma = _inverse_block(at, N, Z, own, shared, mine)
    V, c_N, middle = _covariance(at, N, Z, own)
    same = not shared.any() and not mine.any()  # then c_Γ is the first part of c_N
    c = c_N if same else np.concatenate([c_gamma, c_N], axis=2)
    r, a = c.shape[2], len(gamma)
    wide_gamma, wide_N = np.zeros((r, r)), np.zeros((r, r))
    wide_gamma[:a, :a], wide_N[r - len(middle) :, r - len(middle) :] = gamma, middle
    f, back = _diagonal(M, V)
    f = np.maximum(f, 0.0)
    s = len(at.P.sigma)
    b = np.matmul(back, beta[s:].reshape(len(back), -1)[:, own, None]).ravel()
    c = np.matmul(back, c).reshape(b.size, r)
    spectrum = Spectrum(f, c, wide_gamma, wide_N)
    gram, along = c.T @ c, c.T @ b
    inner = np.linalg.solve(np.eye(r) + wide_gamma @ gram, wide_gamma)
    T = float(b @ b - along @ inner @ along) / at.phi
    rank = b.size - _dependent(at, own)
    if b.size <= _FEW:
        return Test(T, float(rank), tail(T, spectrum.weights(), residual_df))
    if r > _WIDE:  # the levels' own weights, with the mean that the shared columns leave them
        f = f * (spectrum.mean() / max(float(f.sum()), 1e-300))
        return Test(T, float(rank), tail(T, f, residual_df))
    return Test(T, float(rank), tail(T, f, residual_df, spectrum.log_ratio, 1.0 if same else spectrum.bound()))


def shared_test(
    index: np.ndarray, beta: np.ndarray, at: LevelCurvature, others: Others, residual_df: float | None
) -> Test:
    """The same for a term whose columns `index` are shared, where other random effects may have levels' columns."""
    shared, mine = others
    N, Z = _integrated(at, shared, mine)
    assert at.P.stacked is not None
    sigma, s = at.P.sigma, len(at.P.sigma)
    rows = np.concatenate([-np.eye(s), tall(at.P.stacked[1])])
    turned = at.P.dot(Z)[index]
    V_e = (sigma @ (rows.T @ N.dot(rows)) @ sigma)[np.ix_(index, index)] + turned @ turned.T
    one = np.concatenate([~shared, np.tile(~mine, len(at.P.own))])
    inverse = N.add(*at.penalties.parts(at.lam)).keep(one).invert()
    here, Z = np.searchsorted(np.flatnonzero(~shared), index), Z[one]
    turned = inverse.dot(Z)
    less = turned[here] @ np.linalg.solve(np.eye(Z.shape[1]) + Z.T @ turned, turned[here].T)
    return block_test(beta[index], inverse.sigma[np.ix_(here, here)] - less, V_e, at.phi, residual_df)


def _root_of_inverse(S: np.ndarray) -> np.ndarray:
    """R with RRᵀ = S⁻."""
    value, vector = np.linalg.eigh(S)
    keep = value > value[-1] * np.finfo(float).eps ** 0.8
    return vector[:, keep] / np.sqrt(value[keep])


def _integrated(at: LevelCurvature, shared: np.ndarray, mine: np.ndarray) -> tuple[Arrow, np.ndarray]:
    """C = A + A_·2 S_2⁻ A_2· as an arrow N and columns Z (p, m), C = N + ZZᵀ: levels' columns keep the arrow's form."""
    assert at.A.stacked is not None
    (own, cross), (S_0, S_l) = at.A.stacked, at.penalties.parts(at.lam)
    N, Z = at.A, np.zeros((int(at.A.starts[-1]), 0))
    if mine.any():
        root = _root_of_inverse(S_l[0][np.ix_(mine, mine)])
        left, top = own[:, :, mine] @ root, np.matmul(cross[:, mine].transpose(0, 2, 1), root)
        both = np.tensordot(top, top, axes=([0, 2], [0, 2]))
        N = Arrow(
            at.A.shared + both,
            own + np.matmul(left, left.transpose(0, 2, 1)),
            cross + np.matmul(left, top.transpose(0, 2, 1)),
        )
    if shared.any():
        unit = np.zeros((len(Z), int(shared.sum())))
        unit[np.flatnonzero(shared), np.arange(unit.shape[1])] = 1.0
        Z = at.A.dot(unit) @ _root_of_inverse(S_0[np.ix_(shared, shared)])
    return N, Z


def _inverse_block(
    at: LevelCurvature, N: Arrow, Z: np.ndarray, own: np.ndarray, shared: np.ndarray, mine: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(C_11 + S_11)⁻¹ on the term: its blocks (L, a, a), and columns (L, a, r) with Γ (r, r)."""
    inverse, s, kept = at.P, len(shared), own
    if shared.any() or mine.any():
        levels = len(at.P.own)
        one = np.concatenate([~shared, np.tile(~mine, levels)])
        inverse = N.add(*at.penalties.parts(at.lam)).keep(one).invert()
        s, kept, Z = int((~shared).sum()), own[~mine], Z[one]
    assert inverse.stacked is not None
    E, Y = inverse.stacked
    columns, gamma = Y[:, kept], inverse.sigma
    if Z.shape[1]:
        turned = inverse.dot(Z)
        more = -np.linalg.inv(np.eye(Z.shape[1]) + Z.T @ turned)
        columns = np.concatenate([columns, turned[s:].reshape(len(E), -1, Z.shape[1])[:, kept]], axis=2)
        gamma = np.block([[gamma, np.zeros((len(gamma), len(more)))], [np.zeros((len(more), len(gamma))), more]])
    return E[:, kept][:, :, kept], columns, gamma


def _covariance(
    at: LevelCurvature, N: Arrow, Z: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P C P on the term: its blocks (L, a, a), and columns (L, a, r) with the (r, r) matrix between them.

    Of a level, PNP = E N_ll E + A_lΣX_lᵀ + X_lΣA_lᵀ + A_lΣ(𝒜ᵀN𝒜)ΣA_lᵀ with X_l = E (N𝒜)_l.
    """
    assert at.P.stacked is not None
    assert N.stacked is not None
    (E, Y), sigma = at.P.stacked, at.P.sigma
    s, levels = len(sigma), len(E)
    rows = np.concatenate([-np.eye(s), tall(Y)])
    through = N.dot(rows)
    X = np.matmul(E[:, own], through[s:].reshape(levels, E.shape[1], s))
    blocks = np.matmul(np.matmul(E[:, own], N.stacked[0]), E[:, :, own])
    turned = at.P.dot(Z)[s:].reshape(levels, E.shape[1], Z.shape[1])[:, own]
    middle = np.zeros((2 * s + Z.shape[1],) * 2)
    middle[:s, :s] = sigma @ (rows.T @ through) @ sigma
    middle[:s, s : 2 * s] = middle[s : 2 * s, :s] = sigma
    middle[2 * s :, 2 * s :] = np.eye(Z.shape[1])
    return blocks, np.concatenate([Y[:, own], X, turned], axis=2), middle


def _diagonal(M: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f (L a,) and B⁻¹ (L, a, a) with BBᵀ = M and B diag(f) Bᵀ = V, level by level."""
    if M.shape[1] == 1:
        return (V / M).ravel(), 1.0 / np.sqrt(M)
    back = np.linalg.inv(np.linalg.cholesky(M))
    value, vector = np.linalg.eigh(np.matmul(np.matmul(back, V), back.transpose(0, 2, 1)))
    return value.ravel(), np.matmul(vector.transpose(0, 2, 1), back)


def _dependent(at: LevelCurvature, own: np.ndarray) -> int:
    """Directions of the term without information of their own: columns that its level's rows, or unpenalised columns
    that are shared, make zero. Their weights are zero."""
    assert at.A.stacked is not None
    D, C = (block[:, own] for block in at.A.stacked)
    D, free = D[:, :, own], at.penalties.free[: len(at.A.shared)]
    size = np.maximum(np.diagonal(D, axis1=1, axis2=2), 1e-300) ** -0.5
    value, vector = np.linalg.eigh(D * size[:, :, None] * size[:, None, :])
    seen = value > _DEPENDENT
    turned = np.matmul(vector.transpose(0, 2, 1), C[:, :, free] * size[:, :, None])
    turned *= np.where(seen, 1.0 / np.sqrt(np.where(seen, value, 1.0)), 0.0)[:, :, None]
    flat = tall(turned)
    left, scale = at.A.shared[np.ix_(free, free)], np.maximum(np.diag(at.A.shared)[free], 1e-300) ** -0.5
    between = np.linalg.eigvalsh((left - flat.T @ flat) * scale * scale[:, None])
    spanned = int(np.sum(between < _DEPENDENT)) - int(
        np.sum(np.linalg.eigvalsh(left * scale * scale[:, None]) < _DEPENDENT)
    )
    return int(np.sum(~seen)) + max(spanned, 0)
