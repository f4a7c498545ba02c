"""One step of ρ = log λ by REML for an objective of which only value, gradient and information are known.

At β̂(ρ) the objective is −½(β − β̂)ᵀH(β − β̂) and S_λβ̂ᵀβ, and the engine's criterion (engine/criteria.py) is minimised
on that quadratic. H moves with β: along dβ̂/dρ_j its log-determinant changes at the rate D_j, a difference of two
information matrices, so that the criterion's gradient is that of the exact Laplace approximation (Wood 2011).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ..engine.arrow import Arrow, Singular
from ..engine.criteria import Laplace, Working, solve
from ..engine.outer import minimise
from ..engine.penalties import Group, Penalties, PenaltyPiece
from ..objectives.base import Derivatives, ParametricProblem
from .fellner_schall import JointPenalty, PlacedPenalty, joint_penalty

FAR = 20.0  # ρ beyond which a penalty, against its data, is taken as infinite, as in engine/outer.py
REACH = 6.0  # by which ρ may move on one quadratic
DIFFERENCE = 1e-3  # of a standard error: the step of the difference
FALLING = 1e-3  # nats by ρ: the slope at a bound at which the criterion still falls


@final
@dataclass(frozen=True)
class Step:
    """Where the criterion on the quadratic is least."""

    lam: np.ndarray
    gain: float  # nats
    falling: tuple[int, ...]  # penalties at the lower bound, towards which the criterion falls


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
        fixed: np.ndarray,
    ) -> Step:  # fmt: skip
        """From β̂ at λ. `fixed`: a quadratic penalty that is not chosen."""
        rho = np.log(lam[self.acting])
        H = now.information + fixed
        S_beta = self.penalties.columns(beta) @ np.exp(rho)
        working = Working(beta, 0.0, S_beta, Arrow(H, (), ()), 0.0, 0, True, np.zeros(len(beta)))
        tilt = self._tilt(problem, beta, working, rho, V, fixed)
        working = Working(beta, 0.0, S_beta, Arrow(H, (), ()), 0.0, 0, True, tilt)
        criterion = Laplace()
        here = criterion.full(working, self.penalties, rho)
        end = minimise(criterion, working, self.penalties, here, self.free, self.bounds, REACH, 1e-7, 100)
        out = lam.copy()
        out[self.acting] = np.exp(end.state.rho)
        low = self.free & (end.state.rho <= self.bounds[0] + 1e-6) & (end.gradient > FALLING)
        return Step(out, here.value - end.value, tuple(self.acting[low].tolist()))

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
