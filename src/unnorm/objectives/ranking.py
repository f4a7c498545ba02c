"""Objectives in which the normalising constant cancels: `Ranking` (conditional logistic) and `ConditionalNCE`.

Ranking (Ma & Collins 2018; what step-selection users run with survival::clogit), with d = f − log q:

    Σ_t w_t { d_t0 − log Σ_{j=0..k} exp d_tj }.

Conditional NCE (Ceylan & Gutmann 2018), with y' drawn from a kernel q(·|y) around the observation:

    Σ_t w_t Σ_j log σ( f(y) + log q(y'|y) − f(y') − log q(y|y') ).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.numerics import Rng, generator
from ..data.observations import Observations
from ..errors import CombinationError
from ..inference.evidence import Later, choice_evidence
from ..inference.sandwich import ErrorParts, clustered, sum_by
from ..models.base import Model
from ..models.normalisers import Normaliser, PerContext
from ..references.contrast import Contrast
from .base import Derivatives, Problem, Solution, View
from .contrastive import Contrastive, about, rows_of
from .rows import Rows


@dataclass(frozen=True)
class ChoiceProblem(Problem):
    """A sum over observations, each against its own k reference points: arrays are (n, k + 1), the real point first."""

    model: Model
    rows: Rows
    shift: np.ndarray  # (n, k + 1) what is added to f
    weight: np.ndarray  # (n,)
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    redraws: Callable[[], list[ChoiceProblem]] | None = None  # on fresh points

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def start(self) -> np.ndarray:
        return self.model.start

    @property
    def concave(self) -> bool:
        return self.model.linear

    @cached_property
    def _statistics(self) -> np.ndarray | None:
        return self.model.jacobian(self.start, self.rows.y, self.rows.arguments) if self.model.linear else None

    def _log_f(self, theta: np.ndarray) -> np.ndarray:
        if self._statistics is not None:
            f = self._statistics @ theta
        else:
            f = self.model.log_f(theta, self.rows.y, self.rows.arguments)
        return f.reshape(self.shift.shape)

    def _jacobian(self, theta: np.ndarray) -> np.ndarray:
        J = self._statistics
        if J is None:
            J = self.model.jacobian(theta, self.rows.y, self.rows.arguments)
        return J.reshape(*self.shift.shape, len(theta))

    @abstractmethod
    def terms(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ over choices for each observation (n,), and its slope in d (n, k + 1), for d = f + shift."""

    @abstractmethod
    def gram(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        """Σ_t w_t Jᵀ (−∂²/∂d²) J."""

    @abstractmethod
    def parts(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        """(n, k, p) what each reference point adds to the score of its observation, up to a constant."""

    @property
    @abstractmethod
    def information_equality(self) -> bool:
        """Whether −H is the variance of the score when the points are IID and the model is correct."""

    def value(self, theta: np.ndarray) -> float:
        return float(self.weight @ self.terms(self._log_f(theta) + self.shift)[0])

    def _score(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Value, per-observation scores (n, p), slopes, d, J."""
        d = self._log_f(theta) + self.shift
        value, slope = self.terms(d)
        J = self._jacobian(theta)
        slope = slope * self.weight[:, None]
        return float(self.weight @ value), np.einsum("tj,tjp->tp", slope, J), slope, d, J

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        value, score, slope, d, J = self._score(theta)
        information = self.gram(d, J) - self.model.curvature(theta, self.rows.y, self.rows.arguments, slope.ravel())
        scale = np.einsum("t,tjp,tjp->p", self.weight, J, J) / J.shape[1]
        return Derivatives(value, score.sum(axis=0), information, scale)

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether each observation is at or above all its reference points in direction d."""
        if self._statistics is None:
            return False
        s = (self._statistics @ direction).reshape(self.shift.shape)
        width = float(np.max(s) - np.min(s))
        return width > 0 and bool(np.all(s[:, 0] >= s[:, 1:].max(axis=1) - 1e-9 * width))

    def solution(self, theta: np.ndarray, view: View | None = None) -> Solution:
        value, score, _, d, J = self._score(theta)
        bread = self._bread(theta, view)
        meat = score.T @ score if view is None else score.T @ score + view.penalty
        total = bread if self.information_equality else bread @ meat @ bread
        robust = None
        if self.rows.group is not None:
            labels, of = np.unique(self.rows.group, return_inverse=True)
            robust = clustered(sum_by(score, of, len(labels)), bread, None if view is None else view.penalty)
        reference = bread @ self._reference_spread(theta, d, J) @ bread
        errors = ErrorParts(total, total - reference, reference, (), robust)
        nothing = np.zeros(0)
        evidence = Later(lambda: self.evidence(theta, errors, view), self.rows.y.size + self.shift.size * len(theta))
        return Solution(theta, total, nothing, None, value, value, self.notes, dict(self.about), errors, evidence)

    def _reference_spread(self, theta: np.ndarray, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        """Σ2 of IID points: Σ_t k/(k − 1) Σ_j centred squares of what each adds; from redraws where each is alone."""
        k = d.shape[1] - 1
        if k > 1:
            r = self.parts(d, J) * self.weight[:, None, None]
            r = (r - r.mean(axis=1, keepdims=True)).reshape(-1, J.shape[-1])
            return k / (k - 1) * r.T @ r
        assert self.redraws is not None
        sums = np.array([again._score(theta)[1].sum(axis=0) for again in self.redraws()])
        centred = sums - sums.mean(axis=0)
        return centred.T @ centred / (len(sums) - 1)

    def _bread(self, theta: np.ndarray, view: View | None) -> np.ndarray:
        information = self.derivatives(theta).information
        return np.linalg.inv(information if view is None else information + view.penalty)

    def evidence(self, theta: np.ndarray, errors: ErrorParts, view: View | None) -> dict[str, Any]:
        value, score, _, d, _ = self._score(theta)
        bread = self._bread(theta, view)
        score = score / np.sqrt(np.maximum(self.weight, 1e-300))[:, None]  # as many observations as it weighs
        names, variances = (self.names, np.diag) if view is None else (view.names, view.variances)
        penalty = float(np.sum((score @ bread) * score))
        return choice_evidence(names, variances(errors.total), variances(errors.reference), d, value, penalty)


@final
@dataclass(frozen=True)
class RankingProblem(ChoiceProblem):
    @property
    def information_equality(self) -> bool:
        return True

    def terms(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top = d.max(axis=1, keepdims=True)
        e = np.exp(d - top)
        z = e.sum(axis=1, keepdims=True)
        slope = -e / z
        slope[:, 0] += 1
        return d[:, 0] - (top + np.log(z))[:, 0], slope

    def gram(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        p = np.exp(d - d.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mean = np.einsum("tj,tjp->tp", p, J)
        centred = (J - mean[:, None]).reshape(-1, J.shape[-1])
        return centred.T @ (centred * (p * self.weight[:, None]).reshape(-1, 1))

    def parts(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        """The jackknife: without point j the score J_0 − Σ p J rises by p_j (J_j − Σ p J)/(1 − p_j).

        Times (k − 1)/k, so that k/(k − 1) Σ centred squares is its variance, (k − 1)/k Σ centred squares.
        """
        k = d.shape[1] - 1
        p = np.exp(d - d.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mean = np.einsum("tj,tjp->tp", p, J)
        p = p[:, 1:]
        return ((k - 1) / k * p / np.maximum(1.0 - p, 1e-12))[:, :, None] * (J[:, 1:] - mean[:, None])


@final
@dataclass(frozen=True)
class ConditionalProblem(ChoiceProblem):
    @property
    def information_equality(self) -> bool:
        return False  # the k pairs of one observation share its y

    def terms(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        margin = d[:, :1] - d[:, 1:]
        miss = np.exp(-np.logaddexp(0, margin))  # 1 − σ
        return -np.logaddexp(0, -margin).sum(axis=1), np.concatenate([miss.sum(axis=1, keepdims=True), -miss], axis=1)

    def gram(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        margin = d[:, :1] - d[:, 1:]
        curvature = np.exp(-np.logaddexp(0, margin) - np.logaddexp(0, -margin)) * self.weight[:, None]
        gap = (J[:, :1] - J[:, 1:]).reshape(-1, J.shape[-1])
        return gap.T @ (gap * curvature.reshape(-1, 1))

    def parts(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        return np.exp(-np.logaddexp(0, d[:, :1] - d[:, 1:]))[:, :, None] * (J[:, :1] - J[:, 1:])


@dataclass(frozen=True)
class Choice(Contrastive):
    """What the two objectives share: reference points of each observation's own, IID, and no normaliser."""

    def default_normaliser(self, obs: Observations) -> Normaliser:
        return PerContext()

    @abstractmethod
    def problem(self, model: Model, drawn: Contrast, group: np.ndarray | None) -> ChoiceProblem: ...

    def bind(
        self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None, drawn: Contrast | None = None
    ) -> Problem:
        name = type(self).__name__
        if normaliser.layout(obs).size != obs.n:
            raise CombinationError(
                f"In {name} the normalising constants cancel: leave normaliser out (got {normaliser!r})."
            )
        if self.points is not None and not self.points.iid:
            raise CombinationError(
                f"{name} needs IID reference points: stratified or low-discrepancy points bias it "
                "(on the paper's toy chain θ2 is off by 0.5). Leave points out, or use objective=un.Logistic(…)."
            )
        rng = generator(rng)
        drawn = self.draw(model, obs, normaliser, rng) if drawn is None else drawn
        if drawn.k is None:
            raise CombinationError(
                f"{name} compares each observation with reference points of its own, and IID data share theirs. "
                "Use un.Logistic(…), or a kernel around the outcome such as un.BitFlip() with un.ConditionalNCE."
            )
        seeds = rng.integers(2**63, size=4)

        def redraws() -> list[ChoiceProblem]:
            return [self.problem(model, drawn.redraw(np.random.default_rng(seed)), None) for seed in seeds]

        return replace(self.problem(model, drawn, self.clusters(obs)), redraws=redraws)


@final
@dataclass(frozen=True)
class Ranking(Choice):
    """Conditional logistic regression: consistent without modelling χ; needs a context and IID points."""

    def problem(self, model: Model, drawn: Contrast, group: np.ndarray | None) -> ChoiceProblem:
        rows = rows_of(drawn, model, np.zeros(0), group)
        shift = -drawn.log_q.reshape(drawn.obs.n, -1)
        return RankingProblem(model, rows, shift, drawn.obs.weights, about(drawn), drawn.notes)


@final
@dataclass(frozen=True)
class ConditionalNCE(Choice):
    """Pairs (y, y') with y' near y: good for graphs (edge toggles) and binary vectors (bit flips)."""

    @property
    def around_outcome(self) -> bool:
        return True

    def problem(self, model: Model, drawn: Contrast, group: np.ndarray | None) -> ChoiceProblem:
        rows = rows_of(drawn, model, np.zeros(0), group)
        n = drawn.obs.n
        log_q = drawn.log_q.reshape(n, -1)
        back = 0.0 if drawn.log_q_back is None else drawn.log_q_back.reshape(n, -1)  # q(·|x) has log q(y) on real rows
        shift = back - log_q
        return ConditionalProblem(model, rows, shift, drawn.obs.weights, about(drawn), drawn.notes)
