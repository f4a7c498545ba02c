"""The p × p matrices that a `Gam`'s inference needs: S_λ, the criterion's Hessian, the unconditional covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._base.blas import single_threaded
from . import curvature, inference, level_covariance
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm
    from .gam_result import Gam

EXACT = 5e8  # multiplications that the exact Hessian of the criterion may cost: a tenth of a second


def names(fit: Gam) -> list[str]:
    """Names of the coefficients, in their order."""
    found = [INTERCEPT] if INTERCEPT in fit.smoothed.slices else []
    for term in fit.terms:
        if term.parametric:
            found += term.coefficient_names
        else:
            found += [f"{term.label}.{i + 1}" for i in range(term.size)]
    return distinct(found)


def distinct(names: list[str]) -> list[str]:
    """The names, each once: level "ab" of g and level "b" of ga are both "gab", and the second becomes "gab (2)"."""
    if len(set(names)) == len(names):
        return names
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def blocks(terms: Sequence[tuple[int, BuiltTerm]]) -> list[inference.Block]:
    """The penalties of terms that start at these coefficients, in the order of ρ; those of linked terms as one."""
    found: dict[tuple[str, int], list[inference.Block]] = {}
    for start, term in terms:
        for j, penalty in enumerate(term.penalties):
            found.setdefault((term.link or f"the term {term.label}", j), []).append((start, penalty.matrix))
    return [_joined(parts) for parts in found.values()]


def _joined(parts: list[inference.Block]) -> inference.Block:
    """One block from the first part's first coefficient to the last one's last."""
    if len(parts) == 1:
        return parts[0]
    begin, end = parts[0][0], parts[-1][0] + len(parts[-1][1])
    out = np.zeros((end - begin, end - begin))
    for start, matrix in parts:
        here = slice(start - begin, start - begin + len(matrix))
        out[here, here] = matrix
    return begin, out


def penalty(fit: Gam) -> np.ndarray:
    """S_λ = Σ_k λ_k S_k, (p, p)."""
    S = np.zeros((fit.smoothed.size, fit.smoothed.size))
    for (start, matrix), rho in zip(fit.blocks, fit.smoothed.rho):
        here = slice(start, start + matrix.shape[0])
        S[here, here] += np.exp(rho) * matrix
    return S


def criterion_hessian(fit: Gam) -> np.ndarray:
    """∂²V/∂ρ∂ρᵀ. The engine's holds the working weights fixed: exact for Gaussian data, else a few per cent off on
    hundreds of rows and not visibly on many, so that the exact one is computed only where it costs less than EXACT.
    """
    inner = fit.smoothed
    cost = float(fit.y.size) * inner.size**2 * (inner.rho.size + 1)
    if (
        fit.whole is not None
        or not inner.scale_known
        or fit.method not in ("REML", "ML")
        or not inner.estimated.any()
        or cost > EXACT
    ):
        return inner.hessian
    log_S = inner.design.penalties.logdet(inner.rho)[2]
    U = None
    if fit.method == "ML":
        U = inner.design.to_user(np.eye(inner.size)[:, ~inner.design.penalties.free])
    rows = curvature.CompactRows(inner.design)
    if inner.design.levels:
        rows = curvature.DenseRows(
            rows.times(np.eye(inner.size))
        )  # not the terms' own: `Design.less` may have moved them
    w = 1.0 if fit.weights is None else fit.weights
    slope, curve = fit.distribution.weight_slopes(fit.y, fit.linear_predictor)
    H = fit.A + fit.S
    with single_threaded():
        return curvature.hessian(
            rows, (w * slope, w * curve), inner.beta, fit.H_inv, H, fit.blocks, np.exp(inner.rho), log_S, U
        )


def unconditional(fit: Gam) -> inference.Unconditional | level_covariance.LevelUnconditional | None:
    """V_c and edf₂; None where the criterion has no likelihood reading (GCV, UBRE, CV)."""
    inner = fit.smoothed
    if fit.method not in ("REML", "ML"):
        return None
    # λ_k = ∞ changes β̂ no more: its derivatives vanish in the limit, wherever short of it the search stopped
    free = np.flatnonzero(inner.estimated & ~inner.flat)
    if free.size == 0 and inner.wide:
        return level_covariance.LevelUnconditional(inner, inner.levels, inner.edf, np.empty((0, 0)))
    if free.size == 0:  # every smoothing parameter is known: nothing to add
        return inference.Unconditional(fit.covariance, inner.edf, np.empty((0, 0)))
    lam, hessian = np.exp(inner.rho), fit.criterion_hessian[np.ix_(free, free)]
    if not inner.scale_known:
        null = sum(term.null_dim if term.penalties else term.size for term in fit.terms) + (INTERCEPT in inner.slices)
        df = fit.n - (null if fit.method == "REML" else 0)
        flat = inner.design.to_flat(inner.beta)
        energy = lam * (flat @ inner.design.penalties.columns(flat))
        hessian = inference.joint_hessian(hessian, energy[free], inner.deviance + float(energy.sum()), df)
    if inner.wide:
        return level_covariance.unconditional(inner, free, hessian)
    blocks = [fit.blocks[k] for k in free]
    return inference.unconditional(fit.A + fit.S, fit.A, blocks, lam[free], inner.beta, fit.scale, hessian, inner.edf1)
