"""One step of ρ = log λ by REML for an objective of which only value, gradient and information are known.

At β̂(ρ) the objective is −½(β − β̂)ᵀH(β − β̂) and S_λβ̂ᵀβ, and the engine's criterion (engine/criteria.py) is minimised
on that quadratic. H moves with β: along dβ̂/dρ_j its log-determinant changes at the rate D_j, a difference of two
information matrices, so that the criterion's gradient is that of the exact Laplace approximation (Wood 2011).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ..engine.arrow import Arrow, Singular
from ..engine.criteria import Laplace, Value, Working, solve
from ..engine.outer import minimise
from ..engine.penalties import Group, Penalties, PenaltyPiece
from ..objectives.base import Derivatives, ParametricProblem
from .fellner_schall import JointPenalty, PlacedPenalty, joint_penalty

FAR = 20.0  # ρ beyond which a penalty, against its data, is taken as infinite, as in engine/outer.py
REACH = 6.0  # by which ρ may move on one quadratic
DIFFERENCE = 1e-3  # of a standard error: the step of the difference
FALLING = 1e-3  # nats by ρ: the slope at a bound at which the criterion still falls
GRID = np.linspace(-17.0, 13.0, 11)  # ρ − centre at which other minima are looked for
WORTH, MOST = 1.0, 2  # nats above the fit at which one on the quadratic is worth a try, and how many are tried
FLAT = 0.02  # curvature in ρ_j, in nats, below which λ_j may as well be infinite
LESS = 10.0  # ρ − centre, below which such a λ_j begins again
MEMORY = 6  # steps whose gradients correct the Hessian
CRITERION = Laplace()


@final
@dataclass(frozen=True)
class Step:
    """Where the criterion on the quadratic is least."""

    lam: np.ndarray
    gain: float  # nats
    slope: float  # of the criterion along the step, at its beginning
    falling: tuple[int, ...]  # penalties at the lower bound, towards which the criterion falls
    here: Value  # from where
    working: Working  # the quadratic there


@final
@dataclass(frozen=True)
class Search:
    """The penalties, and the bounds between which ρ is sought."""

    joint: JointPenalty
    penalties: Penalties
    start: np.ndarray  # λ
    acting: np.ndarray  # numbers of the penalties that are not held at λ = 0
    free: np.ndarray  # (acting,) bool
    bounds: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, pieces: Sequence[PlacedPenalty], information: np.ndarray) -> Search:
        """λ begins where the penalty weighs a hundredth of the information."""
        acting = [j for j, piece in enumerate(pieces) if piece.fixed != 0.0]
        joint = joint_penalty(pieces)
        matrices = [(PenaltyPiece(-1, pieces[j].span, pieces[j].matrix),) for j in acting]
        number = {j: i for i, j in enumerate(acting)}
        groups = tuple(_renumbered(group, number) for group in joint.groups)
        size = len(information)
        penalties = Penalties(
            tuple(pieces[j].label for j in acting), tuple(matrices), groups, np.array([0, size]), np.zeros(size, bool)
        )
        traces = [np.trace(information[p.span, p.span]) / max(np.trace(p.matrix), 1e-300) for p in pieces]
        centre = np.log(np.maximum(traces, 1e-300))
        start = np.array([np.exp(c) / 100 if p.fixed is None else p.fixed for c, p in zip(centre, pieces)])
        free = np.array([pieces[j].fixed is None for j in acting], dtype=bool)
        centre = centre[acting]
        return cls(joint, penalties, start, np.array(acting, dtype=int), free, (centre - FAR, centre + FAR))

    def step(
        self, problem: ParametricProblem, beta: np.ndarray, now: Derivatives, lam: np.ndarray, V: np.ndarray,
        fixed: np.ndarray, met: Sequence[Step] = (),
    ) -> Step:  # fmt: skip
        """From β̂ at λ. `fixed`: a quadratic penalty that is not chosen. `met`: the steps before, where the quadratic
        was not good enough to go by: then the gradients, which are those of the exact criterion, mend its curvature."""
        working, here = self._quadratic(problem, beta, now, lam, V, fixed)
        if met:
            return self._by_secants(lam, working, here, met)
        end = minimise(CRITERION, working, self.penalties, here, self.free, self.bounds, REACH, 1e-7, 100)
        return self._to(lam, working, here, end.state.rho, here.value - end.value, end.gradient)

    def _to(
        self, lam: np.ndarray, working: Working, here: Value, rho: np.ndarray, gain: float, gradient: np.ndarray
    ) -> Step:
        low = self.free & (rho <= self.bounds[0] + 1e-6) & (gradient > FALLING)
        slope = float(here.gradient @ (rho - here.state.rho))
        return Step(self._lam(lam, rho), gain, slope, tuple(self.acting[low].tolist()), here, working)

    def _by_secants(self, lam: np.ndarray, working: Working, here: Value, met: Sequence[Step]) -> Step:
        """Newton's step with the quadratic's Hessian, made positive, and BFGS's corrections of the last few steps."""
        rho, gradient = here.state.rho, here.gradient
        pinned = ((rho >= self.bounds[1] - 1e-6) & (gradient < 0)) | ((rho <= self.bounds[0] + 1e-6) & (gradient > 0))
        move = np.flatnonzero(self.free & ~pinned)
        values, vectors = np.linalg.eigh(here.hessian[np.ix_(move, move)])
        B = (vectors * np.maximum(np.abs(values), 1e-4)) @ vectors.T
        path = [*(one.here for one in met[-MEMORY:]), here]
        for old, new in itertools.pairwise(path):
            s, t = (new.state.rho - old.state.rho)[move], (new.gradient - old.gradient)[move]
            if s @ t > 1e-8:
                B += np.outer(t, t) / (s @ t) - np.outer(B @ s, B @ s) / (s @ B @ s)
        step = np.zeros(rho.size)
        step[move] = -np.linalg.solve(B, gradient[move])
        gain = -0.5 * float(step @ gradient)
        step *= min(1.0, REACH / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        return self._to(lam, working, here, np.clip(rho + step, *self.bounds), gain, gradient)

    def others(self, lam: np.ndarray, last: Step) -> list[np.ndarray]:
        """λ from which another minimum may be reached: where the criterion on the quadratic at β̂ has one along a ρ_j,
        and has not come back when it is minimised from there, the lowest first; where penalties of a term with
        several are infinite in effect, with these far less: the quadratic tells little of functions that are not there;
        and with all penalties of such a term in balance, and all far less.
        """
        working, here = last.working, last.here
        rho, centre = here.state.rho, (self.bounds[0] + self.bounds[1]) / 2
        found: list[Value] = []
        for j in np.flatnonzero(self.free).tolist():
            found += self._minima(working, here, j, centre[j] + GRID, found)
        out = [self._lam(lam, end.state.rho) for end in sorted(found, key=lambda one: one.value)[:MOST]]
        several = np.zeros(rho.size, bool)
        for group in self.penalties.groups:
            several[list(group.which)] = len(group.which) > 1
        flat = several & self.free & (rho > centre) & (np.abs(np.diag(here.hessian)) < FLAT)
        if flat.any():
            out.append(self._lam(lam, np.where(flat, centre - LESS, rho)))
        several &= self.free
        return [*out, *(self._lam(lam, np.where(several, centre - less, rho)) for less in (0.0, LESS) if several.any())]

    def _minima(
        self, working: Working, here: Value, j: int, grid: np.ndarray, known: Sequence[Value]
    ) -> Iterator[Value]:
        rho = here.state.rho
        values = CRITERION.along(working, self.penalties, rho, j, grid)
        padded = np.concatenate([[-np.inf], np.where(np.isnan(values), np.inf, values), [np.inf]])
        low = (values < padded[:-2]) & (values <= padded[2:]) & (values < here.value + WORTH)
        for at in grid[low & (np.abs(grid - rho[j]) > 1.0)].tolist():
            begin = rho.copy()
            begin[j] = at
            try:
                start = CRITERION.full(working, self.penalties, begin)
            except Singular:
                continue
            end = minimise(CRITERION, working, self.penalties, start, self.free, self.bounds, FAR, 1e-4, 30)
            if end.value < here.value + WORTH and all(self._elsewhere(end, one) for one in (here, *known)):
                yield end

    def _elsewhere(self, end: Value, other: Value) -> bool:
        """Whether some ρ_j is another: not where the criterion is flat at both, as it is far out."""
        far = np.abs(end.state.rho - other.state.rho) > 1.0
        curve = np.maximum(np.abs(np.diag(end.hessian)), np.abs(np.diag(other.hessian)))
        return bool(np.any(far & (curve > FALLING) & self.free))

    def _lam(self, lam: np.ndarray, rho: np.ndarray) -> np.ndarray:
        out = lam.copy()
        out[self.acting] = np.exp(rho)
        return out

    def _quadratic(
        self, problem: ParametricProblem, beta: np.ndarray, now: Derivatives, lam: np.ndarray, V: np.ndarray,
        fixed: np.ndarray,
    ) -> tuple[Working, Value]:  # fmt: skip
        """The model at β̂ on which ρ is chosen, and the criterion there."""
        rho = np.log(lam[self.acting])
        H = now.information + fixed
        S_beta = self.penalties.columns(beta) @ np.exp(rho)
        working = Working(beta, 0.0, S_beta, Arrow(H, (), ()), 0.0, 0, True, np.zeros(len(beta)))
        tilt = self._tilt(problem, beta, working, rho, V, fixed)
        working = Working(beta, 0.0, S_beta, Arrow(H, (), ()), 0.0, 0, True, tilt)
        return working, CRITERION.full(working, self.penalties, rho)

    def _tilt(
        self, problem: ParametricProblem, beta: np.ndarray, working: Working, rho: np.ndarray, V: np.ndarray,
        fixed: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """g in the span of the dβ̂/dρ_j with gᵀdβ̂/dρ_j = d log|H + S_λ| along it."""
        try:
            slopes = solve(working, self.penalties, rho).slopes[:, self.free]
        except Singular:
            return np.zeros(len(beta))
        sizes = np.sqrt(np.maximum(np.einsum("ij,ij->j", slopes, np.linalg.solve(V, slopes)), 0.0))
        moves = [j for j in range(slopes.shape[1]) if sizes[j] > 1e-6]  # nats: nothing to gain along the others
        if not moves:
            return np.zeros(len(beta))
        directions = slopes[:, moves] / sizes[moves]
        rates = []
        for d in directions.T:
            up, down = (problem.derivatives(beta + h * d).information for h in (DIFFERENCE, -DIFFERENCE))
            rates.append(float(np.sum(V * (up - down))) / (2 * DIFFERENCE))
        return np.linalg.lstsq(directions.T, np.array(rates), rcond=1e-8)[0]


def _renumbered(group: Group, number: Mapping[int, int]) -> Group:
    return replace(group, which=tuple(number[j] for j in group.which))
