"""The exact criterion V(ρ), minimised by BFGS with a line search: slower than the joint iteration, and it cannot cycle.

The joint iteration of `outer` moves ρ on a working model that holds W fixed up to its slope. Where many rows have means
near 0 or 1, the model is poor away from β_k and the iteration may circle round the minimum. Here β is converged at each
ρ that is tried, so that V(ρ) and its gradient are those of Wood (2011), and V falls with every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import EstimationError
from .arrow import Singular
from .criteria import Value, Working, principal, solve

if TYPE_CHECKING:
    from .outer import Iteration

_NEWTON = 60  # steps in β at one ρ
_CONVERGED = 1e-9  # nats that β may still gain, and of those that are left to gain: log|H| goes with log W
_FLOOR, _STALLS = 1e-9, 3  # of the nats: steps that gain less, so often in a row, are rounding, where η is 10³ far out,
_STALLED = 1e-3  # if they promise no more nats than this
_LONGEST = 3.0  # step in ρ
_NOTHING = 1e-2  # nats promised by a step that gains none
_FLAT = 1e-3  # slope with which λ_j is infinite in effect, where the bounds were moved out: e³² S_j leaves A few digits


def converged_at(run: Iteration, working: Working, rho: np.ndarray) -> tuple[Working, Value]:
    """β̂(ρ) by Newton from the working model, and the criterion there with its exact gradient."""
    best, stalls = np.inf, 0
    for _ in range(_NEWTON):
        left = run.penalised(working, rho)  # of a binomial fit, what β could gain at most
        near = _CONVERGED * (left if 0.0 < left < 1.0 else 1.0)
        best, stalls = (left, 0) if left < best - _FLOOR * abs(left) else (best, stalls + 1)
        state = solve(working, run.penalties, rho)
        residual = working.score - run.penalties.columns(working.beta) @ np.exp(rho)
        gain = 0.5 * float(residual @ state.inverse.dot(residual))
        if gain < near or (stalls >= _STALLS and gain < _STALLED):
            break
        working = run.advance(working, state.beta, rho)
    working, here, _ = run.look(working, rho)
    return working, here


def descend(
    run: Iteration, working: Working, rho: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], most: int
) -> tuple[Working, Value, bool, int]:
    """From ρ to a minimum of V within the bounds: (working model, criterion, whether it was reached, steps)."""
    from .outer import FAR

    free = np.flatnonzero(run.problem.free)
    working, here = converged_at(run, working, rho)
    values, vectors = principal(here.hessian[np.ix_(free, free)])
    hessian = (vectors * np.maximum(np.abs(values), 0.05)) @ vectors.T
    for steps in range(1, most + 1):
        rho, slope = here.state.rho, here.gradient[free]
        low, high = bounds[0][free], bounds[1][free]
        held = ((rho[free] >= high) & (slope < 0)) | ((rho[free] <= low) & (slope > 0))
        held |= (rho[free] > 0.5 * (low + high) + FAR) & (slope < 0) & (slope > -_FLAT)
        step = np.zeros(free.size)
        step[~held] = -np.linalg.solve(hessian[np.ix_(~held, ~held)], slope[~held])
        if -0.5 * float(slope @ step) < run.tolerance:
            return working, here, True, steps
        step *= min(1.0, _LONGEST / np.abs(step).max())
        found = _search(run, working, here, free, step, (low, high))
        if found is None:  # no step gains anything: either V is flat to rounding, or its gradient is not to be trusted
            return working, here, -0.5 * float(slope @ step) < _NOTHING, steps
        new_working, new = found
        moved, turned = new.state.rho[free] - rho[free], new.gradient[free] - slope
        if moved @ turned > 1e-8 * np.linalg.norm(moved) * np.linalg.norm(turned):
            h = hessian @ moved
            hessian = hessian + np.outer(turned, turned) / (moved @ turned) - np.outer(h, h) / (moved @ h)
        working, here = new_working, new
        if run.abandon is not None and run.abandon(here.state.rho):
            return working, here, False, steps
    return working, here, False, most


def _search(
    run: Iteration, working: Working, here: Value, free: np.ndarray, step: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> tuple[Working, Value] | None:  # fmt: skip
    """The first of step, step/2, … that lowers V by a ten-thousandth of what its slope promises."""
    slope = float(here.gradient[free] @ step)
    for half in 0.5 ** np.arange(12):
        rho = here.state.rho.copy()
        rho[free] = np.clip(rho[free] + half * step, *bounds)
        try:
            trial = converged_at(run, working, rho)
        except (Singular, EstimationError):
            continue
        if np.isfinite(trial[1].value) and trial[1].value <= here.value + 1e-4 * half * slope:
            return trial
    return None
