"""The exact Hessian of REML and ML in ρ = log λ, with what the working weights W(η̂(ρ)) add (Wood 2011, JRSS-B).

    V(ρ) = ½ D_p + ½ log|UᵀHU| − ½ log|S_λ|₊,     H = XᵀWX + S_λ,

with U the identity (REML) or a basis of the penalties' range space (ML). Write S_k for λ_k S_k and η_k = X b_k. Then
b_k = ∂β̂/∂ρ_k = −H⁻¹S_kβ̂, H_k = Xᵀdiag(W′η_k)X + S_k, b_kj = −H⁻¹{Xᵀ(W′η_kη_j) + S_kb_j + S_jb_k + δ_kj S_kβ̂}, and
H_kj = Xᵀdiag(W″η_kη_j + W′ Xb_kj)X + δ_kj S_k give both derivatives of log|UᵀHU|, in a pass over the rows for each ρ_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from .families import FAMILIES
from .segment import ResponseRows

if TYPE_CHECKING:
    from .design import Design
    from .inference import Block

_GAUSSIAN, _NONE = FAMILIES["gaussian"], np.empty(0)


class Rows(Protocol):
    """X as the Hessian reads it, in the caller's coordinates and row order."""

    def times(self, b: np.ndarray) -> np.ndarray:
        """(n, M) Xb."""
        ...

    def total(self, v: np.ndarray) -> np.ndarray:
        """(p,) Xᵀv."""
        ...

    def cross(self, d: np.ndarray) -> np.ndarray:
        """(p, p) XᵀDX."""
        ...

    def leverages(self, G: np.ndarray) -> np.ndarray:
        """(n,) x_iᵀ G x_i."""
        ...


@final
@dataclass(frozen=True)
class DenseRows(Rows):
    """The matrix itself."""

    X: np.ndarray

    def times(self, b: np.ndarray) -> np.ndarray:
        return self.X @ b

    def total(self, v: np.ndarray) -> np.ndarray:
        return self.X.T @ v

    def cross(self, d: np.ndarray) -> np.ndarray:
        return self.X.T @ (d[:, None] * self.X)

    def leverages(self, G: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", self.X @ G, self.X)


@final
@dataclass(frozen=True)
class CompactRows(Rows):
    """The engine's own rows, by its passes; of a design without levels."""

    design: Design

    def times(self, b: np.ndarray) -> np.ndarray:
        flat = self.design.to_flat(b)
        return np.stack([self.design.unsort(self.design.predict(column)) for column in flat.T], axis=1)

    def total(self, v: np.ndarray) -> np.ndarray:
        score = self.design.scores(self._rows(v, _NONE), _GAUSSIAN, np.zeros(self.design.size))[1]
        return self.design.to_user(score)

    def cross(self, d: np.ndarray) -> np.ndarray:
        flat = self.design.sweep(self._rows(np.zeros(d.size), d), _GAUSSIAN, np.zeros(self.design.size))[2].shared
        return self.design.to_user(self.design.to_user(flat).T)

    def _rows(self, v: np.ndarray, d: np.ndarray) -> ResponseRows:
        """Of a Gaussian likelihood with response v and weights D, whose score and information at β = 0 are wanted."""
        sort = self.design.sort
        return ResponseRows(*(np.require(sort(a) if a.size else a, requirements=("C", "W")) for a in (v, d, _NONE)))

    def leverages(self, G: np.ndarray) -> np.ndarray:
        design, hats = self.design, np.empty(self.design.rows)
        flat = design.to_flat(design.to_flat(G).T)
        rows = ResponseRows(np.zeros(design.rows), _NONE, _NONE)
        design.leverage(rows, _GAUSSIAN, np.zeros(design.size), lambda level: flat, 1, hats)
        return design.unsort(hats)


# long: the pieces of one formula
def hessian(
    rows: Rows, slopes: tuple[np.ndarray, np.ndarray], beta: np.ndarray, H_inv: np.ndarray, H: np.ndarray,
    blocks: list[Block], lam: np.ndarray, log_S: np.ndarray, U: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """∂²V/∂ρ∂ρᵀ, known scale. `slopes` are W′ and W″ (n,) by row, `log_S` is the Hessian of log|S_λ|₊; U (p, r) spans
    the penalties' range (ML), None is the identity (REML)."""
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

    eta, (slope, curve), h = rows.times(b), slopes, rows.leverages(G)
    g = rows.total(slope * h)  # Xᵀ(W′ h)
    second = eta.T @ ((curve * h)[:, None] * eta)  # Σ W″ h η_k η_j
    dH = np.array([rows.cross(slope * eta[:, k]) for k in range(M)])
    pull = (dH @ b).transpose(0, 2, 1)  # Xᵀ(W′ η_k η_j), as η_j = X b_j
    for k in range(M):
        dH[k][places[k], places[k]] += S[k]
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
