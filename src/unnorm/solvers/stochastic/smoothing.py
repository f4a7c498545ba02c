"""Smoothing parameters of a penalised χ inside a stochastic run: extended Fellner–Schall updates (Wood & Fasiolo 2017).

Between blocks the curvature H of −𝓜 is known at the present β̂. To second order the unpenalised score at β̂ is S_λ β̂,
so that the penalised estimate at another λ' is (H + S_λ')⁻¹ (H + S_λ) β̂: λ is iterated to its fixed point on that
quadratic, and the run goes on with it. This is what `solvers.penalised` does with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..penalised import LARGEST, PlacedPenalty, fellner_schall, total_penalty

UPDATES = 100


def smoothed(
    pieces: Sequence[PlacedPenalty], lam: np.ndarray, phi: np.ndarray, H: np.ndarray, skip: int, first: bool
) -> np.ndarray:
    """The next λ, from φ = (θ, β) and H over it, β after `skip` entries of θ; a modest guess at the first call."""
    fixed = np.array([np.nan if piece.fixed is None else piece.fixed for piece in pieces])
    free = np.isnan(fixed)
    if first:
        own = H[skip:, skip:]
        scale = [max(np.trace(own[p.span, p.span]) / max(np.trace(p.matrix), 1e-300), 1e-6) for p in pieces]
        return np.where(free, 1e-2 * np.array(scale), fixed)
    if not free.any():
        return lam

    def penalised(lam: np.ndarray) -> np.ndarray:
        out = H.copy()
        out[skip:, skip:] += total_penalty(pieces, lam, len(phi) - skip)
        return out + 1e-10 * np.diag(np.abs(np.diag(out)))

    right = penalised(lam) @ phi
    for _ in range(UPDATES):
        A = penalised(lam)
        beta, V = np.linalg.solve(A, right)[skip:], np.linalg.inv(A)[skip:, skip:]
        new = np.where(free, fellner_schall(pieces, lam, beta, V), fixed)
        move = np.max(np.abs(np.log(new[free] / lam[free])), where=new[free] < LARGEST, initial=0.0)
        lam = new
        if move < 1e-3:  # of log λ: far below its own uncertainty
            break
    return lam
