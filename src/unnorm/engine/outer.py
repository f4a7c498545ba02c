"""Penalised IRLS and smoothing, together: one pass over the rows, one step for β and ρ.

Each iteration: (1) a pass at β_k gives the working model; (2) a leverage pass gives the tilt g, once β is near; (3)
the criterion is minimised over ρ on the working model (criteria.py); (4) β_{k+1} = β(ρ_{k+1}), halved towards β_k
while the penalised likelihood falls. The last step is Newton's: a decrement of 2·10⁻³ nats before it is 10⁻⁶ or less
after it, hence the looser bound on β's. A fixed point is a stationary point of the exact criterion: nothing is left
of bam's performance iteration but its cost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import NoEstimateError, NotIdentifiedError, listing
from .arrow import Arrow, Singular
from .criteria import Criterion, Value, Working, solve
from .design import Design
from .penalties import Penalties
from .segment import Rows

CONVERGED = "The smoothing criterion and the penalised likelihood are at their optimum."
_RESTLESS = 0.5  # a step of η that is too long for the 2·10⁻³ nats it gains: that row's standard error would exceed 8
_NEAR = 12.0  # times the tolerance: nats in β before the last step, which leaves a hundredth of them or less (measured)
_STRIDE = 4.0  # steps of one that are taken at once there
_FAR = 20.0  # ρ beyond which a penalty, against its data, is taken as infinite (e^20 = 5·10⁸)


@dataclass
class Clock:
    """Seconds by stage, and counts."""

    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, stage: str, since: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - since
        self.counts[stage] = self.counts.get(stage, 0) + 1


@dataclass(frozen=True)
class Problem:
    """One fit: rows in the design's order, the likelihood, and which smoothing parameters are free."""

    design: Design
    rows: Rows
    family: str
    code: int
    constant: float
    count: int  # rows with positive weight
    free: np.ndarray  # (M,) bool
    threads: int
    clock: Clock


@dataclass(frozen=True)
class Found:
    """Where the iteration stopped."""

    working: Working
    at: Value
    gradient: np.ndarray
    converged: bool
    reason: str
    iterations: int


def named(design: Design, direction: np.ndarray) -> list[str]:
    """The terms that make up a direction of the coefficients (flat), largest first."""
    weight: dict[str, float] = {}
    for place in design.placements:
        label = "(Intercept)" if place.term < 0 else design.terms[place.term].label
        weight[label] = weight.get(label, 0.0) + float(np.sum(direction[place.flat] ** 2))
    total = sum(weight.values()) or 1.0
    return [label for label in sorted(weight, key=lambda k: -weight[k]) if weight[label] > 0.02 * total]


def _direction(design: Design, cross: Arrow, singular: Singular) -> np.ndarray:
    """The null direction in flat coordinates, weighted by the columns' sizes so that terms can be compared."""
    return singular.flat(design.penalties.starts) * np.sqrt(np.maximum(cross.diagonal(), 0.0))


def starting_rho(cross: Arrow, penalties: Penalties) -> np.ndarray:
    """λ_j for which the penalty and the data weigh the same: tr(A on the penalty's columns) / tr(S_j) (as mgcv's
    initial.sp)."""
    rho = np.zeros(penalties.count)
    for j, pieces in enumerate(penalties.pieces):
        data, weight = 0.0, 0.0
        for piece in pieces:
            block = cross.shared if piece.block < 0 else cross.own[piece.block]
            touched = np.abs(piece.matrix).max(axis=0) > 0
            data += float(np.sum(np.diag(block)[piece.at][touched]))
            weight += float(np.trace(piece.matrix))
        rho[j] = np.log(max(data, 1e-10) / max(weight, 1e-300))
    return rho


def _tail(here: Value, step: np.ndarray) -> np.ndarray:
    """Where ρ_j is on its way to ±∞: the criterion falls as e^{−|ρ_j|}, and Newton's steps all have length one."""
    slope, curve = np.abs(here.gradient), np.diag(here.hessian)
    return (slope < 0.1) & (np.abs(curve - slope) < 0.3 * slope) & (np.abs(np.abs(step) - 1.0) < 0.3)


def minimise(
    criterion: Criterion, working: Working, penalties: Penalties, here: Value, free: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray], reach: float, tolerance: float, steps: int,
) -> Value:  # fmt: skip
    """Newton in the free ρ on the working model, from `here` and within `reach` of it; indefinite Hessians by
    |eigenvalue|."""
    low = np.maximum(bounds[0], here.state.rho - reach)
    high = np.minimum(bounds[1], here.state.rho + reach)
    for _ in range(steps):
        rho = here.state.rho
        pinned = ((rho >= high) & (here.gradient < 0)) | ((rho <= low) & (here.gradient > 0))
        move = np.flatnonzero(free & ~pinned)
        if move.size == 0:
            break
        values, vectors = np.linalg.eigh(here.hessian[move[:, None], move])
        size = np.maximum(np.abs(values), 1e-9 + 1e-7 * np.abs(values).max())
        along = vectors.T @ here.gradient[move]
        if 0.5 * np.sum(along**2 / size) < tolerance:
            break
        step = np.zeros(rho.size)
        step[move] = -vectors @ (along / size)
        step = np.where(_tail(here, step), _STRIDE * step, step)
        step *= min(1.0, 4.0 / np.abs(step).max())
        better: Value | None = None
        for _ in range(25):
            try:
                trial = criterion.full(working, penalties, np.clip(rho + step, low, high))
            except Singular:
                trial = None
            if trial is not None and trial.value <= here.value + 1e-12 * abs(here.value):
                better = trial
                break
            step *= 0.5
        if better is None:
            break
        here = better
    return here


def smooth(
    problem: Problem, criterion: Criterion, beta: np.ndarray, rho: np.ndarray | None, tolerance: float, most: int,
    rough: bool = False,
) -> Found:  # fmt: skip
    """Iterate to a stationary point of the exact criterion, from β (flat) and ρ (None: chosen from the data); `rough`:
    only until β is within about a standard error."""
    design, penalties, clock = problem.design, problem.design.penalties, problem.clock
    gaussian = problem.family == "gaussian"
    zero = np.zeros(design.size)
    free = problem.free

    def sweep(at: np.ndarray, tilt: np.ndarray) -> Working:
        since = time.perf_counter()
        loglik, score, cross = design.sweep(problem.rows, problem.code, at, problem.threads)
        clock.add("passes", since)
        return Working(at, loglik, score, cross, problem.constant, problem.count, not gaussian, tilt)

    def penalised(working: Working, at: np.ndarray) -> float:
        lam = np.exp(at)
        return -working.loglik + 0.5 * float(working.beta @ (penalties.columns(working.beta) @ lam))

    working = sweep(beta, zero)
    centre = starting_rho(working.cross, penalties)
    if rho is None:
        rho = centre.copy()
    bounds = (centre - _FAR, centre + _FAR)
    tilted = gaussian or not free.any()
    try:
        identified = np.where(free, centre, rho)
        solve(working, penalties, identified)
    except Singular as singular:
        raise NotIdentifiedError(not_identified(design, working.cross, singular)) from singular

    gradient = np.zeros(penalties.count)
    near = _NEAR * tolerance if free.any() else 1e-8
    restless = 0
    gain = size = np.inf
    at: Value | None = None
    for iteration in range(1, most + 1):
        try:
            since = time.perf_counter()
            start = criterion.full(working, penalties, rho)
            state = start.state
            residual = working.score - penalties.columns(working.beta) @ np.exp(rho)
            decrement = 0.5 * float(residual @ state.inverse.dot(residual))
            clock.add("smoothing steps", since)
            if rough and decrement < 1.0:
                return Found(working, start, start.gradient, True, CONVERGED, iteration)
            if not gaussian and free.any() and decrement < 1.0:
                since = time.perf_counter()
                tilt = design.leverage(
                    problem.rows,
                    problem.code,
                    working.beta,
                    criterion.lever(working, penalties, state),
                    problem.threads,
                )
                clock.add("leverage passes", since)
                working = replace(working, tilt=tilt)
                start = criterion.retilted(working, penalties, start)
                tilted = True
            since = time.perf_counter()
            # far from β̂ the working model is worth one step (as in Wood, Li, Shaddick & Augustin 2017)
            reach, steps = (1e3, 60) if gaussian else (8.0, 60) if tilted else (4.0, 1)
            at = (
                minimise(criterion, working, penalties, start, free, bounds, reach, 0.01 * tolerance, steps)
                if free.any()
                else start
            )
            clock.add("smoothing steps", since)
        except Singular as singular:
            raise NoEstimateError(separated(problem, working, singular)) from singular
        gradient = np.where(free, start.gradient, 0.0)
        gain = start.value - at.value
        step = at.state.beta - working.beta
        size = 0.5 * float(step @ (working.score - penalties.columns(working.beta) @ np.exp(at.state.rho)))
        if gaussian or (tilted and gain < tolerance and max(size, decrement) < near):
            # a maximum at infinity: the likelihood is at its limit, and η still moves by a unit or so a step
            if gaussian or np.abs(design.predict(step, problem.threads)).max() < _RESTLESS:
                return Found(working, at, gradient, True, CONVERGED, iteration)
            restless += 1
            if restless == 3:
                raise NoEstimateError(separated(problem, working, None, step))
        rho = at.state.rho
        old = penalised(working, rho)
        trial, moved = at.state.beta, None
        for _ in range(12):
            moved = sweep(trial, working.tilt)
            new = penalised(moved, rho)
            if np.isfinite(new) and new <= old + 1e-9 * (abs(old) + 1.0):
                break
            trial = 0.5 * (trial + working.beta)
        assert moved is not None
        working = moved
    assert at is not None
    reason = (
        f"Stopped after {most} iterations; the last step would still gain {max(gain, size):.2g}. "
        "Raise max_outer, or simplify the terms."
    )
    return Found(working, at, gradient, False, reason, most)


def not_identified(design: Design, cross: Arrow, singular: Singular) -> str:
    """The sentence for columns that the others span."""
    terms = named(design, _direction(design, cross, singular))
    return (
        f"The rows do not tell these terms apart: {listing(terms)} "
        "(a combination of their columns is constant or zero on every row). Drop one of them, or lower its k."
    )


def separated(problem: Problem, working: Working, singular: Singular | None, step: np.ndarray | None = None) -> str:
    """The sentence for a maximum at infinity."""
    design = problem.design
    if step is None:
        assert singular is not None
        step = singular.flat(design.penalties.starts)
    spread = {}
    for place in design.placements:
        if place.term < 0:
            continue
        part = np.zeros(design.size)
        part[place.flat] = working.beta[place.flat] if singular is not None else step[place.flat]
        label = design.terms[place.term].label
        spread[label] = max(spread.get(label, 0.0), float(np.ptp(design.predict(part))))
    worst = max(spread, key=lambda label: spread[label]) if spread else "(Intercept)"
    eta = design.predict(working.beta)
    what = "separates the two classes" if problem.family == "binomial" else "drives the mean to zero"
    return (
        f"The estimate does not exist: {worst} {what} perfectly on some rows, and its effect grows without limit "
        f"(linear predictor now from {eta.min():.3g} to {eta.max():.3g}). "
        f"Drop or simplify {worst}, or fix its smoothing parameter."
    )
