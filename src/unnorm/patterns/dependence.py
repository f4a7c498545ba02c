"""The variance of the score where near points depend on each other in ways that the model leaves out.

The window is cut into 10 × 10 cells, or as many of another shape; g_c is the sum of the score over cell c. Points
that are less than a cell apart lie in the same cell or in two that touch, so that

    M = Σ_c Σ_{c' touches c} g_c g_{c'}ᵀ,      c' = c included,

counts every pair up to that distance, and fewer of those farther apart (a flat-top kernel, Politis & Romano 1995): no
cluster is cut by a border between cells. Replicates are independent; where they are many, each is one cell.

The scores at the estimate are a little smaller than at the truth: g_c = e_c − H_c V Σe. Were cells independent, with
Var e_c = H_c, M would be on average

    E0 = H − Σ_{c, c' touch} (2 H_c V H_{c'} − H_c V H V H_{c'}),

and M is stretched, in the units of H, by as much as E0 falls short of H. Intervals take Student's t with
tr(H⁻¹E0)/p · 1/Σ_{c, c' touch} π_c π_{c'} degrees of freedom, π_c the share of cell c in the information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .scores import FittedRows

SIDE = 10  # cells along a square window
MANY = 18  # replicates, beyond which each is one cell
LEAST = 0.2  # share of H that E0 is taken to have, at least
SINGULAR = 1e-10  # of the largest eigenvalue of H: directions that the data say nothing of


class Dependence(NamedTuple):
    """M, stretched, and its degrees of freedom."""

    M: np.ndarray
    df: float


def dependence(fitted: FittedRows, H: np.ndarray, V: np.ndarray) -> Dependence:
    """M of the rows' scores, dummy points included; V = (H + S_λ)⁻¹."""
    label, shape = cells(fitted)
    p, size = fitted.p, len(H)
    g, h = np.zeros((int(np.prod(shape)), size)), np.zeros((int(np.prod(shape)), size, size))
    for here, X in fitted.gam.design_chunks():
        which = label[here]
        order = np.argsort(which, kind="stable")
        X, which = X[order], which[order]
        residual, weight = (fitted.data - p)[here][order], (p * (1 - p))[here][order]
        found, begin = np.unique(which, return_index=True)
        for c, b, e in zip(found, begin, [*begin[1:], len(which)]):
            g[c] += residual[b:e] @ X[b:e]
            h[c] += (weight[b:e, None] * X[b:e]).T @ X[b:e]
    M = g.T @ touching(g, shape)
    around = touching(h, shape)
    lost = np.einsum("cab,bd,cde->ae", h, 2 * V - V @ H @ V, around, optimize=True)
    share = np.einsum("cab,ba->c", h, V) / np.sum(V * H)
    stretched, kept = _stretched(M, H, H - 0.5 * (lost + lost.T))
    return Dependence(stretched, float(kept / (share @ touching(share, shape))))


def cells(fitted: FittedRows) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The cell of each row, and how many there are: replicates, along x, along y."""
    R = fitted.pattern.replicates
    if R > MANY:
        return fitted.places.replicate, (R, 1, 1)
    boxes = [window.enclosing_box for window in fitted.pattern.windows]
    lengths = np.mean([high - low for low, high in (box for box in boxes if box is not None)], axis=0)
    nx, ny = (max(3, round(SIDE * float(np.sqrt(lengths[k] / lengths[1 - k])))) for k in (0, 1))
    label = np.empty(fitted.places.n, dtype=np.int64)
    for code, box in enumerate(boxes):
        assert box is not None
        here = fitted.places.replicate == code
        cell = ((fitted.places.xy[here] - box[0]) / (box[1] - box[0]) * (nx, ny)).astype(int)
        cell = np.clip(cell, 0, (nx - 1, ny - 1))
        label[here] = (code * nx + cell[:, 0]) * ny + cell[:, 1]
    return label, (R, nx, ny)


def touching(values: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Sums over each cell and those that touch it, of values by cell."""
    out = values.reshape(*shape, -1)
    for axis in (1, 2):
        before, after = (np.zeros_like(out) for _ in range(2))
        rest, front = [slice(None)] * 4, [slice(None)] * 4
        rest[axis], front[axis] = slice(1, None), slice(None, -1)
        before[tuple(rest)] = out[tuple(front)]
        after[tuple(front)] = out[tuple(rest)]
        out = out + before + after
    return out.reshape(values.shape)


def _stretched(M: np.ndarray, H: np.ndarray, E0: np.ndarray) -> tuple[np.ndarray, float]:
    """H^½ E^{-½} (H^{-½} M H^{-½}) E^{-½} H^½ with E = H^{-½} E0 H^{-½}, and the mean eigenvalue of E."""
    scale = np.sqrt(np.diag(H))
    s, U = np.linalg.eigh(H / np.outer(scale, scale))
    known = s > SINGULAR * s[-1]
    B = (U[:, known] / np.sqrt(s[known])) / scale[:, None]  # BᵀHB = 1
    C = (U[:, known] * np.sqrt(s[known])) * scale[:, None]  # CᵀB = 1
    w, Q = np.linalg.eigh(B.T @ E0 @ B)
    w = np.clip(w, LEAST, 1.0)
    A = (Q / np.sqrt(w)) @ Q.T
    return C @ A @ (B.T @ (0.5 * (M + M.T)) @ B) @ A @ C.T, float(w.mean())
