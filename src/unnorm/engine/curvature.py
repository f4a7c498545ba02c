"""The exact Hessian of REML and ML in ρ = log λ, with what the working weights W(η̂(ρ)) add (Wood 2011, JRSS-B).

    V(ρ) = ½ D_p + ½ log|UᵀHU| − ½ log|S_λ|₊,     H = XᵀWX + S_λ,

with U the identity (REML) or a basis of the penalties' range space (ML). Write S_k for λ_k S_k and η_k = X b_k. Then
b_k = ∂β̂/∂ρ_k = −H⁻¹S_kβ̂, H_k = Xᵀdiag(W′η_k)X + S_k, b_kj = −H⁻¹{Xᵀ(W′η_kη_j) + S_kb_j + S_jb_k + δ_kj S_kβ̂}, and
H_kj = Xᵀdiag(W″η_kη_j + W′ Xb_kj)X + δ_kj S_k give both derivatives of log|UᵀHU|, in one pass over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .inference import Block

RowsWithSlopes = tuple[np.ndarray, np.ndarray, np.ndarray]  # X, W′ and W″ on some rows


def hessian(
    pieces: Callable[[], Iterable[RowsWithSlopes]], beta: np.ndarray, H_inv: np.ndarray, H: np.ndarray,
    blocks: list[Block],
    lam: np.ndarray, log_S: np.ndarray, U: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """∂²V/∂ρ∂ρᵀ, known scale. `log_S` is the Hessian of log|S_λ|₊; U (p, r) spans the penalties' range (ML), None is
    the identity (REML)."""
    p, M = beta.size, len(blocks)
    places = [slice(start, start + S.shape[0]) for start, S in blocks]
    S = [lam[k] * matrix for k, (_, matrix) in enumerate(blocks)]

    def S_times(k: int, v: np.ndarray) -> np.ndarray:
        out = np.zeros(p)
        out[places[k]] = S[k] @ v[places[k]]
        return out

    Sb = np.array([S_times(k, beta) for k in range(M)])
    b = -(H_inv @ Sb.T)  # (p, M)
    G = H_inv if U is None else U @ np.linalg.inv(U.T @ H @ U) @ U.T

    dH = np.zeros((M, p, p))
    for k in range(M):
        dH[k][places[k], places[k]] = S[k]
    pull = np.zeros((M, M, p))  # Xᵀ(W′ η_k η_j)
    g = np.zeros(p)  # Xᵀ(W′ h), h_i = x_iᵀ G x_i
    second = np.zeros((M, M))  # Σ W″ h η_k η_j
    for X, slope, curve in pieces():
        eta = X @ b
        h = np.einsum("ij,ij->i", X @ G, X)
        g += X.T @ (slope * h)
        second += eta.T @ ((curve * h)[:, None] * eta)
        for k in range(M):
            weighted = (slope * eta[:, k])[:, None] * X
            dH[k] += X.T @ weighted
            pull[k] += eta.T @ weighted
    GdH = [G @ matrix for matrix in dH]
    out = np.empty((M, M))
    for k in range(M):
        for j in range(k, M):
            right = pull[k, j] + S_times(k, b[:, j]) + S_times(j, b[:, k]) + (Sb[k] if k == j else 0.0)
            b_kj = -(H_inv @ right)
            fit = Sb[k] @ b[:, j] + (0.5 * beta @ Sb[k] if k == j else 0.0)
            trace = second[k, j] + g @ b_kj - np.sum(GdH[k] * GdH[j].T)
            if k == j:
                trace += np.sum(G[places[k], places[k]] * S[k])
            out[k, j] = out[j, k] = fit + 0.5 * trace - 0.5 * log_S[k, j]
    return out
