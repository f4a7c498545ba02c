"""Smoothing parameters at infinity, or at zero, are compared with finite ones before they are believed.

Far out the criterion is flat, and an early step that lands there stays there. So each fit that ends with λ_j = ∞ in
effect is begun again from a finite λ_j, and the lower criterion wins. A bound of the search is never an optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import EstimationError
from .arrow import Singular
from .separation import separating

if TYPE_CHECKING:
    from .criteria import Criterion
    from .outer import Found, PenalisedRows

_FLAT = 1e-3  # gradient and curvature of the criterion in ρ_j, in nats, below which λ_j is at a limit in effect
_BETTER = 1e-3  # nats
_FEW = 4_000  # rows up to which descents from several ρ are tried where means are extreme
_ASKED = 20_000  # rows up to which the criterion itself is asked at every point of the grid: some ten passes each
_EDGE = 5.0  # |η| of a binomial row, range of η of Poisson rows, from which they are
_NARROW = 200  # coefficients up to which the working model is asked at every point of the grid: p³ each
_WORTH = 1.0  # nats above the fit at which a minimum of the working model is still worth a try
_ROUNDS = 3  # what one parameter does may bring another back from its limit
_MOST = 4  # restarts of single parameters
_FURTHER = 12.0  # by which the bounds of ρ are moved out, once, where the criterion still falls towards them
_SHIFTS = (0.0, -4.0, -7.0)  # ρ − centre of whole restarts: penalty and data in balance, and hardly any penalty
_GRID = np.linspace(-8.0, 7.0, 6)  # ρ − centre at which the criterion is asked


def limits(found: Found, free: np.ndarray) -> np.ndarray:
    """(M,) 1 where λ_j is infinite in effect, −1 where it is zero, else 0."""
    gradient, curve = np.abs(found.at.gradient), np.abs(np.diag(found.at.hessian))
    low, high = found.bounds
    rho = found.at.state.rho
    flat = free & (gradient < _FLAT) & (curve < _FLAT)
    flat |= free & ((rho <= low + 1e-6) | (rho >= high - 1e-6))
    return np.where(flat, np.where(rho > (low + high) / 2, 1, -1), 0)


def reconsider(problem: PenalisedRows, criterion: Criterion, found: Found, tolerance: float, most: int) -> Found:
    """The best of the fit found and those begun from finite smoothing parameters; where what remains ends at a bound
    towards which the criterion still falls, it is not converged, and says so."""
    from .outer import lower

    best = _further(problem, criterion, found, tolerance, most)
    for _ in range(_ROUNDS):
        at_limit = limits(best, problem.free)
        if not at_limit.any():
            return best
        before = best
        for rho in _starts(problem, criterion, before, at_limit):
            back = _back(before, at_limit, rho)
            try:
                other = lower(problem, criterion, before, rho, tolerance, min(most, 50), back)
            except EstimationError:
                continue
            if other.converged and not _at_bound(other, problem.free).any():
                gain = best.at.value - other.at.value
                if gain > _BETTER or _at_bound(best, problem.free).any():
                    best = other
        if best is before:
            break
    return _judged(problem, best)


def _further(problem: PenalisedRows, criterion: Criterion, found: Found, tolerance: float, most: int) -> Found:
    """The fit with wider bounds, where the criterion still falls towards one of the search's own: λ is measured against
    the information at the start, which may be e²⁰ times that at the estimate (rows far from the data, means 0 or 1)."""
    from .outer import lower

    beta, rho = found.at.state.beta, found.at.state.rho
    if not _at_bound(found, problem.free).any():
        return found
    nothing = np.full(rho.shape, -np.inf)
    if separating(problem.design, problem.rows, problem.family, nothing, [beta]) is not None:
        return found  # without the penalties there is no maximum: the criterion falls without end
    low, high = found.bounds
    wider = replace(found, bounds=(low - _FURTHER, high + _FURTHER))
    try:
        other = lower(problem, criterion, wider, rho, tolerance, most, lambda _: False)
    except EstimationError:
        return found
    return other if other.at.value < found.at.value else found


def _back(found: Found, at_limit: np.ndarray, start: np.ndarray) -> Callable[[np.ndarray], bool]:
    """Whether every ρ_j that was begun again is on its way back to infinity."""
    again = (at_limit > 0) & (start != found.at.state.rho)
    limit = np.minimum(found.at.state.rho, (found.bounds[0] + found.bounds[1]) / 2 + 8.0) - 1.0
    return lambda rho: bool(again.any() and np.all(rho[again] >= limit[again]))


def _starts(problem: PenalisedRows, criterion: Criterion, found: Found, at_limit: np.ndarray) -> list[np.ndarray]:
    """Other ρ from which a lower criterion may be reached."""
    rho, centre = found.at.state.rho, (found.bounds[0] + found.bounds[1]) / 2
    which = np.flatnonzero(at_limit)
    out: list[np.ndarray] = []
    if (at_limit < 0).any() or (problem.count <= _FEW and _extreme(problem, found)):
        singles = which[:_MOST] if which.size > 1 else []
        out += [np.where(at_limit != 0, centre + shift, rho) for shift in _SHIFTS]
        out += [np.where(np.arange(rho.size) == j, centre + shift, rho) for j in singles for shift in _SHIFTS[:2]]
    if problem.design.size <= _NARROW:
        for j in which.tolist():
            out += _valleys(problem, criterion, found, j, centre[j])
    return out


def _asked(problem: PenalisedRows, criterion: Criterion, found: Found, rho: np.ndarray) -> float:
    """The criterion at ρ: itself where rows are few, else on the working model of the fit (exact if Gaussian)."""
    from .descent import converged_at
    from .outer import Iteration

    if problem.family == "gaussian" or problem.count > _ASKED:
        return criterion.value(found.working, problem.design.penalties, rho)
    run = Iteration(problem, criterion, 1e-3)
    return converged_at(run, found.working, rho)[1].value


def _extreme(problem: PenalisedRows, found: Found) -> bool:
    """Whether some rows' means are so near the edge of their range that the working model is good only at β̂."""
    if problem.family == "gaussian":
        return False
    eta = problem.design.predict(found.at.state.beta, problem.threads)
    return float(np.abs(eta).max() if problem.family == "binomial" else np.ptp(eta)) > _EDGE


def _valleys(problem: PenalisedRows, criterion: Criterion, found: Found, j: int, centre: float) -> list[np.ndarray]:
    """ρ with a finite ρ_j at which the criterion has a minimum that is low enough to try."""
    trials, values = [], []
    for shift in _GRID:
        trial = found.at.state.rho.copy()
        trial[j] = centre + shift
        try:
            values.append(_asked(problem, criterion, found, trial))
        except (Singular, EstimationError):
            values.append(np.inf)
        trials.append(trial)
    padded = np.array([np.inf, *values, found.at.value])
    inner = padded[1:-1]
    dips = (inner < padded[:-2]) & (inner < padded[2:]) & (inner < found.at.value + _WORTH)
    dips[0] = False  # falling towards zero smoothing is no minimum
    return [trials[i] for i in np.flatnonzero(dips)]


def _at_bound(found: Found, free: np.ndarray) -> np.ndarray:
    """(M,) whether ρ_j is at a bound of the search with the criterion still falling."""
    low, high = found.bounds
    rho, slope = found.at.state.rho, found.at.gradient
    return free & (((rho <= low + 1e-6) & (slope > _FLAT)) | ((rho >= high - 1e-6) & (slope < -_FLAT)))


def _judged(problem: PenalisedRows, found: Found) -> Found:
    held = np.flatnonzero(_at_bound(found, problem.free))
    if held.size == 0:
        return found
    labels = [problem.design.penalties.labels[j] for j in held]
    end = "zero" if found.at.gradient[held[0]] > 0 else "infinity"
    reason = (
        f"The criterion still falls as the smoothing parameter of {', '.join(labels)} goes to {end}, the bound of the "
        "search: the rows are (nearly) separated, or the term has too many functions for them. Lower its k, or fix sp."
    )
    return replace(found, converged=False, reason=reason)
