"""Scores of a joint fit's main effects, so that a group's errors and advice come the same way as a single fit's.

A score g_s of level s's rows moves the main effects by K_s g_s; a variance P_s of it counts as Σ_s K_s P_s K_sᵀ. With c
times as many reference points the arrowhead of all levels takes the place of one Hessian, the smoothing parameters
kept; deviations between levels do not shrink with c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from .._base.threads import run_tasks
from ..engine.arrow import ArrowInverse
from ..engine.families import FAMILIES
from ..engine.segment import ResponseRows
from ..objectives.likelihood import RowLikelihood
from ..objectives.scores import Drawn, Enough, ScoreRows, Scores, auc, effective_share, joined
from .crossed import Crossed
from .joint import Joint, Member
from .views import View

GAUSSIAN = FAMILIES["gaussian"]  # whose pass gives XᵀDX
KNOWN = 1e30  # information on the level, which the constants absorb: it has no error of its own
NO_ROBUST = (
    "A group's curves have no robust errors: their bands come from the joint model, in which levels differ by random "
    "curves. The levels' own fits have them: fits[level].effect(label, robust=True)."
)


def weighted(member: Member, weights: np.ndarray) -> np.ndarray:
    """XᵀDX of a level's rows."""
    rows = ResponseRows(np.zeros(weights.size), np.ascontiguousarray(weights), np.empty(0))
    return member.design.sweep(rows, GAUSSIAN, np.zeros(member.design.size))[2].shared


@final
@dataclass(frozen=True)
class MemberRows:
    """A level's rows in the order of its design, at the joint estimate."""

    member: Member
    rows: ScoreRows

    def slopes(self, c: float) -> tuple[np.ndarray, np.ndarray]:
        return self.rows.slopes(c)

    @property
    def times(self) -> np.ndarray:
        """1 for reference points, 0 for data."""
        return np.where(self.rows.data, 0.0, 1.0)


def member_rows(joint: Joint | Crossed, s: int, blocks: Sequence[ScoreRows]) -> MemberRows:
    """Level s's rows from its separate fit, with the joint fit's η."""
    member, separate = joint.design.members[s], joined(blocks)
    sort = member.design.sort
    eta = joint.predictor(s)
    likelihood = _likelihood(member, separate.likelihood)
    ratio = None if separate.log_ratio is None else eta - sort(separate.eta - separate.log_ratio)
    rows = replace(
        separate,
        likelihood=likelihood,
        eta=eta,
        data=member.data,
        at=np.empty(0, dtype=int),  # nothing here goes by observation
        weight=None if separate.weight is None else sort(separate.weight),
        randomisation=None,
        log_ratio=ratio,
    )
    return MemberRows(member, rows)


def _likelihood(member: Member, separate: RowLikelihood) -> RowLikelihood:
    """That of the level's rows, in the order of its design; without weights it is that of the response, b = 1."""
    if not member.rows.weights.size:
        return RowLikelihood(separate.cumulant, member.rows.y, np.broadcast_to(1.0, member.rows.y.shape))
    sort = member.design.sort
    return RowLikelihood(separate.cumulant, sort(separate.a), sort(separate.b))


@final
@dataclass(frozen=True, kw_only=True)
class GroupScores(Scores):
    """In the coordinates (level, main effects) of the joint fit."""

    joint: Joint | View
    levels: tuple[MemberRows, ...]
    inverse: ArrowInverse
    drawn: Drawn
    counts_points: bool  # pyright: ignore
    smoothing: np.ndarray | None
    redraws: Callable[[], list[np.ndarray]] | None  # level by level, (R, p_s) scores of fresh points, flat
    widened: float
    between: int | None
    threads: int
    c: float = 1.0

    shared = False
    model_based = True
    reselection = None
    robust_refusal = NO_ROBUST

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 + self.joint.design.q

    @property
    def weight(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Σ w over the observations of all levels."""
        given = [(level.rows.weight, level.rows.data) for level in self.levels]
        return float(sum(np.sum(data) if weight is None else weight[data].sum() for weight, data in given))

    @cached_property
    def penalty(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._padded(self.joint.prior)

    @cached_property
    def information(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        out = self._padded(np.linalg.inv(self.joint.covariance(self.inverse)) - self.joint.prior)
        out[0, 0] = KNOWN
        return out

    def _padded(self, flat: np.ndarray) -> np.ndarray:
        """From the engine's coordinates of the main effects to (level, terms)."""
        out = np.zeros((self.size, self.size))
        out[1:, 1:] = self.joint.to_terms(flat)
        return out

    def _as_score(self, flat: np.ndarray) -> np.ndarray:
        """M with V M V = the covariance `flat` of the main effects."""
        inner = np.linalg.inv(self.joint.covariance(self.inverse))
        return self._padded(inner @ flat @ inner)

    def points_spread(self, power: int) -> np.ndarray:
        if self.drawn is Drawn.NONE:
            return np.zeros((self.size, self.size))

        def one(s: int, level: MemberRows) -> np.ndarray:
            r = level.slopes(self.c)[0] * level.times
            r = r / level.rows.root if power == 1 else r
            K = self.joint.influence(self.inverse, s)
            return K @ weighted(level.member, self.c * r**2) @ K.T

        return self._as_score(np.sum(run_tasks(one, list(enumerate(self.levels)), self.threads), axis=0))

    def data_spread(self) -> np.ndarray:
        return self.information - self.points_spread(1) if self.counts_points else self.information

    def measured_spread(self, times: float = 1.0, enough: Enough | None = None) -> np.ndarray | None:
        """Two fresh sets for each level: one degree of freedom a level, as many as there are levels in the sum."""
        if self.redraws is None or times != 1.0:
            return None
        total = 0.0
        for s, sums in enumerate(self.redraws()):
            moved = (sums - sums.mean(axis=0)) @ self.joint.influence(self.inverse, s).T
            total = total + moved.T @ moved / (len(sums) - 1)
        return self._as_score(np.asarray(total))

    def more(self, c: float) -> GroupScores:
        def one(level: MemberRows) -> np.ndarray:
            return weighted(level.member, level.slopes(c)[1] * np.where(level.rows.data, 1.0, c))

        own = tuple(run_tasks(one, [(level,) for level in self.levels], self.threads))
        arrow = self.joint.design.gathered(own)
        return replace(self, inverse=arrow.plus(self.joint.blocks).invert(), c=c)

    def empirical_spread(self) -> np.ndarray:
        raise AssertionError(NO_ROBUST)

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        raise AssertionError(NO_ROBUST)

    def overlap(self) -> tuple[float | None, float | None]:
        if any(level.rows.log_ratio is None for level in self.levels):
            return None, None
        ratio = np.concatenate([np.asarray(level.rows.log_ratio) for level in self.levels])
        data = np.concatenate([level.rows.data for level in self.levels])
        parts = [np.broadcast_to(np.asarray(level.rows.root) ** 2, level.rows.data.shape) for level in self.levels]
        weight = np.concatenate(parts)
        w = np.exp(ratio[~data] - ratio[~data].max())
        return auc(ratio, data, weight), effective_share(w, weight[~data])
