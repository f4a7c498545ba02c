"""A penalty of χ that is weak enough: what it moves θ is below .05 standard errors.

REML weighs χ's coefficients against what the likelihood gains by them, and not against the bias of θ. With H = A + S
the penalised curvature at β̂ and Hβ̂ the right-hand side of its last step, the estimate with χ's penalty c times as
large is β(c) = {H − (1 − c) S_χ}⁻¹ Hβ̂ to first order; c falls by tenths until β(c) is near β(0).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..engine.smoothed import Smoothed
from ..terms.base import BuiltTerm

BIAS = 0.05  # standard errors that the penalty may move a coefficient of f
LARGEST, STEPS = 0.1, 9  # of χ's mean curvature, the largest penalty; tenths below that
NONE = 1e-3  # of the smallest: no penalty, but for directions that the rows do not see


def weaker(smoothed: Smoothed, chi: tuple[BuiltTerm, ...]) -> tuple[Mapping[str, float], float]:
    """sp of χ's penalties, none larger than now, and what they leave of the bias, in standard errors."""
    H = np.linalg.inv(smoothed.Vp / smoothed.scale)
    labels = [penalty.label for term in chi for penalty in term.penalties]
    now = {label: float(np.exp(smoothed.rho[smoothed.sp_labels.index(label)])) for label in labels}
    S, spans = {}, []
    for term in chi:
        span = smoothed.slices[term.label]
        spans.append(np.arange(span.start, span.stop))
        for penalty in term.penalties:
            S[penalty.label] = np.zeros_like(H)
            S[penalty.label][span, span] = penalty.matrix
    bare = H - sum(now[label] * S[label] for label in labels)
    at = np.concatenate(spans)
    typical = float(np.trace(bare[np.ix_(at, at)]) / sum(np.trace(S[label]) for label in labels))
    own = np.setdiff1d(np.arange(1, len(H)), at)  # f's coefficients, after the level
    right = H @ smoothed.beta

    def at_most(sp: float) -> tuple[dict[str, float], np.ndarray]:
        chosen = {label: min(now[label], sp) for label in labels}
        return chosen, bare + sum(chosen[label] * S[label] for label in labels)

    _, free = at_most(NONE * LARGEST * 10.0**-STEPS * typical)
    target = np.linalg.solve(free, right)[own]
    se = np.sqrt(np.maximum(np.diag(np.linalg.inv(free))[own], 1e-300))
    chosen, worst = now, np.inf
    for sp in (np.inf, *(LARGEST * typical * 10.0 ** -np.arange(STEPS + 1))):
        chosen, curved = at_most(sp)
        worst = float(np.max(np.abs(np.linalg.solve(curved, right)[own] - target) / se, initial=0.0))
        if worst < BIAS:
            break
    return chosen, worst
