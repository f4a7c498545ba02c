"""From a fit to some of the rows towards that to all of them, with the curvature of the few.

XᵀWX of some rows, scaled up, is that of all rows to a few per cent. With it, and with the exact score of all rows, a
Newton step for β and ρ leaves a hundredth of the nats that there were to gain (measured: 1/250 to 1/25), for the cost
of a pass that forms no products of columns. It is a start for the iteration of `outer`, whose fixed point does not
depend on it.
"""

from __future__ import annotations

import time

import numpy as np

from .arrow import Arrow, Singular
from .criteria import Criterion, Working
from .outer import CLOSE, FAR, PenalisedRows, minimise, starting_rho

_STEPS = 3  # at most
_NEAR = 0.02  # nats that may be left
_FALL = 0.25  # of what was left before a step: slower, and the curvature of some rows is no guide


def approach(
    problem: PenalisedRows, criterion: Criterion, beta: np.ndarray, rho: np.ndarray, cross: Arrow
) -> tuple[np.ndarray, np.ndarray]:
    """β (flat) and ρ nearer to the fit of all rows; `cross` stands for their XᵀWX."""
    design, penalties = problem.design, problem.design.penalties
    centre, none = starting_rho(cross, penalties), np.zeros(design.size)
    bounds = centre - FAR, centre + FAR
    sound, before = (beta, rho), np.inf
    for _ in range(_STEPS):
        since = time.perf_counter()
        loglik, score = design.scores(problem.rows, problem.code, beta, problem.threads)
        problem.clock.add("score passes", since)
        loglik -= problem.saturated
        working = Working(beta, loglik, score, cross, problem.constant, problem.count, problem.scale_known, none)
        residual = score - penalties.columns(beta) @ np.exp(rho)
        try:
            start = criterion.full(working, penalties, rho)
            left = 0.5 * float(residual @ start.state.inverse.dot(residual))  # nats, at this ρ
            if not left < _FALL * before:
                return (beta, rho) if left < before else sound
            near = left < CLOSE * problem.count
            reach, steps = (8.0, 60) if near else (4.0, 1)
            at = minimise(criterion, working, penalties, start, problem.free, bounds, reach, 1e-3, steps)
        except Singular:
            return sound
        sound, fall, before = (beta, rho), left / before, left
        beta, rho = at.state.beta, at.state.rho
        if fall > 0.0 and left * fall < _NEAR:
            break
    return beta, rho
