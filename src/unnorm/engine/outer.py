"""Penalised IRLS and smoothing, together: one pass over the rows, one step for β and ρ.

Each iteration: (1) a pass at β_k gives the working model; (2) a leverage pass gives the tilt g, once β is near; (3)
the criterion is minimised over ρ on the working model (criteria.py); (4) β_{k+1} = β(ρ_{k+1}), halved towards β_k
while the penalised likelihood falls. The last step is Newton's: a decrement of 2·10⁻³ nats before it is 10⁻⁶ or less
after it, hence the looser bound on β's. A fixed point is a stationary point of the exact criterion: nothing is left
of bam's performance iteration but its cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import EstimationError, NoEstimateError, NotIdentifiedError
from .arrow import Arrow, Singular
from .criteria import Criterion, State, Value, Working, principal, solve
from .design import Design
from .families import BINOMIAL, POISSON
from .penalties import EVERY, Penalties
from .segment import ResponseRows
from .separation import exhausted, not_identified, searched, separated, separating

CONVERGED = "The smoothing criterion and the penalised likelihood are at their optimum."
_RESTLESS = 0.5  # a step of η that is long for the 2·10⁻³ nats it gains: that row's standard error would exceed 8
_SETTLING = 40  # Newton steps at a fixed ρ: a maximum with λ = e⁻²⁰ is 20 steps away, one at infinity always as far
_ASKED = 2  # steps after which it is asked again whether the last separates: beyond |η| = 22 rounding moves other rows
_PATIENT = 8  # steps before it is asked at all
_NEAR = 12.0  # times the tolerance: nats in β before the last step, which leaves a hundredth of them or less (measured)
_MANY = 1e-3  # tolerance from which rows are many, and a leverage pass near β̂ costs more than it tells
_WEIGHTY = 2.0  # times the tolerance: nats that a tilt is worth whose changes near β̂ are nothing
_SAME = 2e-4  # nats from β̂ at which W may be taken for that at β̂: standard errors move by .3 % there (measured)
CLOSE = 1e-4  # nats a row that β may still gain where ρ is chosen in earnest
_STRIDE = 4.0  # steps of one that are taken at once there
_RISES = 3  # times that the criterion may rise before the joint iteration is given up for `descent`
_DOUBTFUL = 1e5  # variance of an unpenalised coefficient, against that of its column's information at the start
FAR = 20.0  # ρ beyond which a penalty, against its data, is taken as infinite (e^20 = 5·10⁸)


@dataclass
class Clock:
    """Seconds by stage, and counts."""

    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, stage: str, since: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - since
        self.counts[stage] = self.counts.get(stage, 0) + 1


@dataclass(frozen=True)
class PenalisedRows:
    """One fit: rows in the design's order, the likelihood, and which smoothing parameters are free."""

    design: Design
    rows: ResponseRows
    family: str
    code: int
    constant: float
    count: int  # rows with positive weight
    free: np.ndarray  # (M,) bool
    threads: int
    clock: Clock
    scale_known: bool = True
    saturated: float = 0.0  # subtracted from the log-likelihood where the scale is not known, so that it is −D/2
    identified: bool = False  # whether some of the rows are known to determine every coefficient


@dataclass(frozen=True)
class Found:
    """Where the iteration stopped."""

    working: Working
    at: Value
    gradient: np.ndarray
    converged: bool
    reason: str
    iterations: int
    bounds: tuple[np.ndarray, np.ndarray]  # within which ρ was sought


def starting_rho(cross: Arrow, penalties: Penalties) -> np.ndarray:
    """λ_j for which the penalty and the data weigh the same: tr(A on the penalty's columns) / tr(S_j) (as mgcv's
    initial.sp)."""
    rho = np.zeros(penalties.count)
    if penalties.diagonals is not None and not penalties.alike:
        data, weight = cross.diagonal() @ (penalties.diagonals > 0), penalties.diagonals.sum(axis=0)
        return np.log(np.maximum(data, 1e-10) / np.maximum(weight, 1e-300))
    every = penalties.level_sums(cross.diagonal())
    for j, pieces in enumerate(penalties.pieces):
        data, weight = 0.0, 0.0
        for piece in pieces:
            touched = np.abs(piece.matrix).max(axis=0) > 0
            if piece.block == EVERY:
                data += float(np.sum(every[piece.at][touched]))
                weight += penalties.levels * float(np.trace(piece.matrix))
                continue
            block = cross.shared if piece.block < 0 else cross.own[piece.block]
            data += float(np.sum(np.diag(block)[piece.at][touched]))
            weight += float(np.trace(piece.matrix))
        rho[j] = np.log(max(data, 1e-10) / max(weight, 1e-300))
    return rho


def _tail(here: Value, step: np.ndarray) -> np.ndarray:
    """Where ρ_j is on its way to ±∞: the criterion falls as e^{−|ρ_j|}, and Newton's steps all have length one."""
    slope, curve = np.abs(here.gradient), np.diag(here.hessian)
    return (slope < 0.1) & (np.abs(curve - slope) < 0.3 * slope) & (np.abs(np.abs(step) - 1.0) < 0.3)


# long: the pieces of one criterion, named at the call
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
        gradient = here.gradient
        pinned = ((rho >= high) & (gradient < 0)) | ((rho <= low) & (gradient > 0))
        move = (free & ~pinned).nonzero()[0]
        if move.size == 0:
            break
        values, vectors = principal(here.hessian[move[:, None], move])
        size = np.abs(values)
        size = np.maximum(size, 1e-9 + 1e-7 * size.max())
        along = gradient[move] @ vectors
        if 0.5 * ((along / size) @ along) < tolerance:
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
    problem: PenalisedRows, criterion: Criterion, beta: np.ndarray, rho: np.ndarray | None, tolerance: float, most: int,
    rough: bool = False, abandon: Callable[[np.ndarray], bool] | None = None,
) -> Found:  # fmt: skip
    """Iterate to a stationary point of the exact criterion, from β (flat) and ρ (None: chosen from the data); `rough`:
    only until β is within about a standard error; `abandon(ρ)`: whether to stop, not converged."""
    return Iteration(problem, criterion, tolerance, abandon).run(beta, rho, most, rough)


def lower(
    problem: PenalisedRows, criterion: Criterion, found: Found, rho: np.ndarray, tolerance: float, most: int,
    abandon: Callable[[np.ndarray], bool],
) -> Found:  # fmt: skip
    """From β̂ of a fit and another ρ, down the exact criterion without leaving the basin."""
    run = Iteration(problem, criterion, tolerance, abandon)
    try:
        return run.descend(run.sweep(found.at.state.beta, np.zeros(problem.design.size)), rho, found.bounds, 0, most)
    except Singular as singular:
        raise NotIdentifiedError(not_identified(problem.design, found.working.cross, singular)) from singular


def _stopped(family: str, most: int, gain: float) -> str:
    simplify = {"poisson": "If the counts vary more than Poisson counts do, take family='nb'. Else simplify"}
    return (
        f"Stopped after {most} iterations; the last step would still gain {gain:.2g}. "
        f"{simplify.get(family, 'Simplify')} the terms (a smaller k), or fix larger smoothing parameters (sp)."
    )


class Iteration:
    """The state of one run: the working model, and what was learnt of the last step."""

    def __init__(
        self,
        problem: PenalisedRows,
        criterion: Criterion,
        tolerance: float,
        abandon: Callable[[np.ndarray], bool] | None = None,
    ) -> None:
        self.abandon = abandon
        self.problem, self.criterion, self.tolerance = problem, criterion, tolerance
        self.design, self.penalties = problem.design, problem.design.penalties
        self.gaussian = problem.family == "gaussian"
        self.tilted = self.gaussian or not problem.free.any()
        self.slight = False  # whether the last tilt was worth little
        self.near = _NEAR * tolerance if problem.free.any() else 1e-8
        self.settled = False
        self.first: np.ndarray | None = None  # diagonal of XᵀWX at the start

    def sweep(self, at: np.ndarray, tilt: np.ndarray) -> Working:
        problem, since = self.problem, time.perf_counter()
        loglik, score, cross = self.design.sweep(problem.rows, problem.code, at, problem.threads)
        problem.clock.add("passes", since)
        loglik -= problem.saturated
        return Working(at, loglik, score, cross, problem.constant, problem.count, problem.scale_known, tilt)

    def penalised(self, working: Working, rho: np.ndarray) -> float:
        return -working.loglik + 0.5 * float(working.beta @ (self.penalties.columns(working.beta) @ np.exp(rho)))

    def run(self, beta: np.ndarray, rho: np.ndarray | None, most: int, rough: bool) -> Found:
        free, penalties = self.problem.free, self.penalties
        working = self.sweep(beta, np.zeros(self.design.size))
        self.first = working.cross.diagonal()
        centre = starting_rho(working.cross, penalties)
        rho = centre.copy() if rho is None else rho
        bounds = (centre - FAR, centre + FAR)
        begun: State | None = None
        if not self.problem.identified:
            try:
                begun = solve(working, penalties, np.where(free, centre, rho))
            except Singular as singular:
                raise NotIdentifiedError(not_identified(self.design, working.cross, singular)) from singular
            begun = begun if np.array_equal(begun.rho, rho) else None
        gain = size = last = length = np.inf
        rises, ready, doubted = 0, False, None
        at: Value | None = None
        gradient = np.zeros(penalties.count)
        for iteration in range(1, most + 1):
            try:
                start, decrement = self.value(working, rho, begun)
                begun = None
                ready = ready and decrement < _SAME and (doubted is None or self.at_rest(doubted))
                if ready or (rough and decrement < 1.0):
                    if not rough:
                        self.require_finite(working, start)
                    gradient = np.where(free, start.gradient, 0.0)
                    return Found(working, start, gradient, True, CONVERGED, iteration, bounds)
                known = self.slight and self.tolerance >= _MANY and decrement < self.near  # the tilt, well enough,
                known &= at is not None and abs(start.value - at.value) < 0.5 * gain + self.near  # as what came tells
                working, start = (working, start) if known else self.tilt(working, start, decrement)
                rises += self.tilted and start.value > last + self.tolerance
                last = start.value if self.tilted else np.inf
                if rises == _RISES and free.any():  # the iteration circles: go down V itself
                    return self.descend(working, rho, bounds, iteration, most)
                at = self.choose(working, start, bounds, decrement)
            except Singular as singular:
                raise self.failure(working, rho, [working.beta], singular) from singular
            gradient = np.where(free, start.gradient, 0.0)
            if self.abandon is not None and self.abandon(at.state.rho):
                return Found(working, at, gradient, False, "abandoned", iteration, bounds)
            gain = start.value - at.value
            error = decrement / (length * length) if np.isfinite(length) else np.inf  # what a step left, of its square
            step = at.state.beta - working.beta
            size = 0.5 * float(step @ (working.score - penalties.columns(working.beta) @ np.exp(at.state.rho)))
            length = 0.5 * float(step @ working.cross.dot(step))  # penalties are quadratic: the rows alone err
            ready, doubted = self.tilted and gain < self.tolerance and max(size, decrement) < self.near, None
            if self.gaussian or ready:
                if not (self.gaussian or self.settled or self.at_rest(step)):
                    working, rho, ready = self.settle(working, at.state.rho), at.state.rho, False
                    continue
                if self.gaussian or max(length, decrement) < _SAME:  # W is that at β̂
                    self.require_finite(working, at)
                    return Found(working, at, gradient, True, CONVERGED, iteration, bounds)
            else:
                ready, doubted = self.expected(at, error * length * length), step  # asked where it proves the last
            rho = at.state.rho
            working = self.advance(working, at.state.beta, rho)
        assert at is not None
        self.require_finite(working, at)
        return Found(working, at, gradient, False, _stopped(self.problem.family, most, max(gain, size)), most, bounds)

    def descend(
        self, working: Working, rho: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], begun: int, most: int
    ) -> Found:
        from .descent import descend

        working, at, reached, steps = descend(self, working, rho, bounds, most)
        slope = float(np.abs(at.gradient[self.problem.free]).max())
        reason = CONVERGED if reached else _stopped(self.problem.family, most, slope)
        gradient = np.where(self.problem.free, at.gradient, 0.0)
        self.require_finite(working, at)
        return Found(working, at, gradient, reached, reason, begun + steps, bounds)

    def look(self, working: Working, rho: np.ndarray) -> tuple[Working, Value, float]:
        """The criterion at (β_k, ρ), tilted once β is near; and the nats that Newton's step in β would gain."""
        start, decrement = self.value(working, rho)
        return *self.tilt(working, start, decrement), decrement

    def value(self, working: Working, rho: np.ndarray, state: State | None = None) -> tuple[Value, float]:
        """The criterion at (β_k, ρ), and the nats that Newton's step in β would gain. `state`: the working model solved
        at ρ, where it is."""
        since, criterion = time.perf_counter(), self.criterion
        if state is None:
            start = criterion.full(working, self.penalties, rho)
        else:
            start = criterion.at(working, self.penalties, state)
        residual = working.score - self.penalties.columns(working.beta) @ np.exp(rho)
        decrement = 0.5 * float(residual @ start.state.inverse.dot(residual))
        self.problem.clock.add("smoothing steps", since)
        return start, decrement

    def tilt(self, working: Working, start: Value, decrement: float) -> tuple[Working, Value]:
        """Both with the tilt at β_k, where that is near."""
        problem, since = self.problem, time.perf_counter()
        if self.gaussian or not problem.free.any() or decrement >= 1.0:
            return working, start
        lever = self.criterion.lever(working, self.penalties, start.state)
        tilt = self.design.leverage(problem.rows, problem.code, working.beta, lever, problem.threads)
        working = replace(working, tilt=tilt)
        problem.clock.add("leverage passes", since)
        self.tilted = True
        tilted = self.criterion.at(working, self.penalties, start.state)
        pull, curve = tilted.gradient - start.gradient, np.abs(np.diag(tilted.hessian))
        worth = 0.5 * np.sum((pull**2 / np.maximum(np.maximum(np.abs(pull), curve), 1e-12))[problem.free])
        self.slight = bool(worth < _WEIGHTY * self.tolerance)
        return working, tilted

    def choose(self, working: Working, start: Value, bounds: tuple[np.ndarray, np.ndarray], decrement: float) -> Value:
        """ρ on the working model, from which Newton's step in β would gain `decrement` nats."""
        free, since = self.problem.free, time.perf_counter()
        if not free.any():
            return start
        # far from β̂ the working model is worth one step (as in Wood, Li, Shaddick & Augustin 2017)
        near = self.tilted or decrement < CLOSE * self.problem.count
        reach, steps = (1e3, 60) if self.gaussian else (8.0, 60) if near else (4.0, 1)
        at = minimise(self.criterion, working, self.penalties, start, free, bounds, reach, 0.01 * self.tolerance, steps)
        self.problem.clock.add("smoothing steps", since)
        return at

    def advance(self, working: Working, target: np.ndarray, rho: np.ndarray) -> Working:
        """To β(ρ), halved towards β_k while the penalised likelihood falls."""
        old, trial = self.penalised(working, rho), target
        moved = working
        for _ in range(12):
            moved = self.sweep(trial, working.tilt)
            new = self.penalised(moved, rho)
            if np.isfinite(new) and new <= old + 1e-9 * (abs(old) + 1.0):
                break
            trial = 0.5 * (trial + working.beta)
        return moved

    def at_rest(self, step: np.ndarray) -> bool:
        """Whether the last step moves no row's η by much (else the maximum may be at infinity)."""
        if self.design.most(step) < _RESTLESS:
            return True
        low, high = self.design.ends(step, self.problem.threads)
        return max(high, -low) < _RESTLESS

    def expected(self, at: Value, left: float) -> bool:
        """Whether the step to `at` may be the last though it is not short, if the pass there agrees: rows are many,
        Newton's steps have left so little, of their squares, that this one is expected to leave `left`, and ρ can
        hardly gain."""
        problem = self.problem
        plain = problem.code in (BINOMIAL, POISSON) and problem.scale_known and problem.rows.y.size > 0  # not a group's
        plain = plain and bool(self.problem.free.any())  # at a fixed ρ Newton's steps go to the end
        if not (self.tilted and plain and self.tolerance >= _MANY and left < _SAME):
            return False
        slope, curve = np.abs(at.gradient), np.abs(np.diag(at.hessian))
        gain = 0.5 * np.sum((slope**2 / np.maximum(np.maximum(slope, curve), 1e-12))[problem.free])
        return bool(gain < 0.5 * self.tolerance)

    def settle(self, working: Working, rho: np.ndarray) -> Working:
        """Newton in β at this ρ until no row moves. Where the maximum is at infinity every step moves some η by one,
        without end: then the step separates the rows, which is checked on them. Rows that move without being separated
        (their mean is 0 or 1 whatever they do) are no reason to doubt the rest."""
        step = np.zeros(self.design.size)
        for number in range(_SETTLING):
            try:
                state = solve(working, self.penalties, rho)
            except Singular as singular:
                raise self.failure(working, rho, [step], singular) from singular
            step = state.beta - working.beta
            if self.at_rest(step):
                break
            working = self.advance(working, state.beta, rho)
            if (
                number > _PATIENT
                and number % _ASKED
                and (found := self.separating(working.beta, rho, [step])) is not None
            ):
                raise NoEstimateError(separated(self.design, self.problem.family, working.beta, found))
        self.settled = True
        return working

    def require_finite(self, working: Working, at: Value) -> None:
        """Refuse a maximum at infinity that rounding made look like one: once a row's mean is 0 or 1 to the last digit,
        its score is zero. Then a coefficient that no penalty holds has hardly any information left; its column of H⁻¹
        is the direction, and is checked on the rows."""
        free = self.penalties.free
        if self.gaussian or self.first is None or not free.any():
            return
        ratio = np.where(free, at.state.inverse.diagonal() * self.first, 0.0)
        worst = int(np.argmax(ratio))
        if ratio[worst] < _DOUBTFUL:
            return
        directions = [at.state.inverse.rows(np.array([worst]))[0], working.beta]
        if (found := self.separating(working.beta, at.state.rho, directions, search=True)) is not None:
            raise NoEstimateError(separated(self.design, self.problem.family, working.beta, found))

    def separating(
        self, beta: np.ndarray, rho: np.ndarray, directions: list[np.ndarray], search: bool = False
    ) -> np.ndarray | None:
        problem = self.problem
        found = separating(self.design, problem.rows, problem.family, rho, directions, problem.threads, beta)
        if found is None and search:
            return searched(self.design, problem.rows, problem.family, problem.threads, beta)
        return found

    def failure(
        self, working: Working, rho: np.ndarray, directions: list[np.ndarray], singular: Singular
    ) -> EstimationError:
        """What is wrong where H cannot be inverted: separation with its certificate, else columns that others span."""
        directions = [*directions, singular.flat(self.penalties.starts), working.beta]
        found = self.separating(working.beta, rho, directions, search=not self.gaussian)
        if found is not None:
            return NoEstimateError(separated(self.design, self.problem.family, working.beta, found))
        if (said := exhausted(self.design, self.problem.family, working.beta)) is not None:
            return NotIdentifiedError(said)
        return NotIdentifiedError(not_identified(self.design, working.cross, singular))
