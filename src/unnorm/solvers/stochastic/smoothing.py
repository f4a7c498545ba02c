"""Smoothing parameters of a penalised χ inside a stochastic run.

Between blocks the curvature H of −𝓜 is known at the present β̂. To second order the unpenalised score at β̂ is S_λ β̂,
so that the penalised estimate at another λ' is (H + S_λ')⁻¹ (H + S_λ) β̂: λ is iterated to its fixed point on that
quadratic, and the run continues with it. `solvers.penalised` does the same with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fellner_schall import SETTLED, PlacedPenalty, starting_values, total_penalty, updated

UPDATES = 100


def smoothed(
    pieces: Sequence[PlacedPenalty], lam: np.ndarray, phi: np.ndarray, H: np.ndarray, skip: int, first: bool
) -> np.ndarray:
    """The next λ, from φ = (θ, β) and H over it, β after `skip` entries of θ; a light penalty at the first call."""
    if first:
        return starting_values(pieces, H[skip:, skip:])
    if all(piece.fixed is not None for piece in pieces):
        return lam

    def penalised(lam: np.ndarray) -> np.ndarray:
        out = H.copy()
        out[skip:, skip:] += total_penalty(pieces, lam, len(phi) - skip)
        return out + 1e-10 * np.diag(np.abs(np.diag(out)))

    right = penalised(lam) @ phi
    for _ in range(UPDATES):
        A = penalised(lam)
        beta, V = np.linalg.solve(A, right)[skip:], np.linalg.inv(A)[skip:, skip:]
        lam, move = updated(pieces, lam, beta, V)
        if move < SETTLED:
            break
    return lam
