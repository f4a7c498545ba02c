"""Objectives in which the normalising constant cancels: `Ranking` (conditional logistic) and `ConditionalNCE`.

Ranking (Ma & Collins 2018; what step-selection users run with survival::clogit), with d = f − log q:

    Σ_t w_t { d_t0 − log Σ_{j=0..k} exp d_tj }.

Conditional NCE (Ceylan & Gutmann 2018), with y' drawn from a kernel q(·|y) around the observation:

    Σ_t w_t Σ_j log σ( f(y) + log q(y'|y) − f(y') − log q(y|y') ).

A kernel that lists all its points (`BitFlip(every=True)`) leaves nothing to draw: see flips.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from .._base.numerics import Rng, generator
from ..data.observations import Observations
from ..errors import CombinationError, InputError
from ..models.base import Model, Unnormalised
from ..models.normalisers import Normaliser, PerContext
from ..references import Uniform
from ..references.by_window import bound as bound_reference
from ..references.contrast import Contrast
from .base import Constants, Derivatives, ModelProblem
from .contrastive import Contrastive, figures
from .flips import FlipProblem
from .row_problem import KEPT, TABLE
from .rows import Rows, RowSource, choice_rows
from .scores import Drawn, Reselection, Scores, frequency, sum_by

NOISE = 2.4  # √n times that standard deviation with k = 1: 0.16 of V with 240 observations, as measured
PAIRS = 8  # of fresh sets, where one reference point each says nothing of its variance: a few would warn in vain


class Choices(NamedTuple):
    """A block of observations, each beside its k reference points: d = f + shift and ∂f/∂θ, the real point first."""

    rows: Rows
    d: np.ndarray  # (n, k + 1)
    J: np.ndarray  # (n, k + 1, p)
    weight: np.ndarray  # (n,)


@dataclass(frozen=True)
class ChoiceProblem(ModelProblem):
    """A sum over observations, each against its own k reference points."""

    model: Model
    obs: Observations
    source: RowSource  # the offset of a row is what is added to f
    k: int
    figures: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    redraw: Callable[[int], ChoiceProblem] | None = None  # on the i-th set of fresh points
    unseen: float = 1.0  # 1 − k/K of points drawn without replacement from K: what is left of their variance

    @cached_property
    def _kept(self) -> list[tuple[Rows, np.ndarray]] | None:
        """∂f/∂θ of each block once for all, where f is linear and they are small enough."""
        if not self.model.linear or self.source.size * self.model.size > KEPT:
            return None
        return [(rows, self._jacobian(self.start, rows)) for rows in self._blocks()]

    def _blocks(self) -> Iterator[Rows]:
        """In blocks whose ∂f/∂θ is no large table."""
        return self.source.within(max(self.k + 1, TABLE // self.model.size)).blocks()

    def _jacobian(self, theta: np.ndarray, rows: Rows) -> np.ndarray:
        return self.model.jacobian(theta, rows.y, self.model.arguments(self.obs, rows.context))

    def choices(self, theta: np.ndarray, keep: bool = True) -> Iterator[Choices]:
        """The observations with their points, block by block."""
        kept = self._kept if keep else None
        for rows, J in ((rows, None) for rows in self._blocks()) if kept is None else kept:
            J = self._jacobian(theta, rows) if J is None else J
            if self.model.linear:
                f = J @ theta
            else:
                f = self.model.log_f(theta, rows.y, self.model.arguments(self.obs, rows.context))
            shape = (-1, self.k + 1)
            n = len(rows) // (self.k + 1)
            weight = np.ones(n) if rows.weight is None else rows.weight.reshape(shape)[:, 0]
            yield Choices(rows, (f + rows.offset).reshape(shape), J.reshape(n, self.k + 1, len(theta)), weight)

    @abstractmethod
    def terms(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ over choices for each observation (n,), and its slope in d (n, k + 1), for d = f + shift."""

    def by_observation(self, theta: np.ndarray, keep: bool = True) -> Iterator[tuple[Choices, np.ndarray]]:
        """(n, p) the score of one copy of each observation, block by block."""
        for c in self.choices(theta, keep):
            yield c, np.einsum("tj,tjp->tp", self.terms(c.d)[1], c.J)

    @abstractmethod
    def gram(self, d: np.ndarray, J: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Σ_t w_t Jᵀ (−∂²/∂d²) J."""

    @abstractmethod
    def parts(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        """(n, k, p) what each reference point adds to the score of its observation, up to a constant."""

    least: ClassVar[int]  # reference points below which `parts` do not tell their variance, and fresh points must

    @property
    @abstractmethod
    def information_equality(self) -> bool:
        """Whether −H is the variance of the score when the points are IID and the model is correct."""

    def value(self, theta: np.ndarray) -> float:
        return float(sum(c.weight @ self.terms(c.d)[0] for c in self.choices(theta)))

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        p = len(theta)
        value, gradient, information, scale = 0.0, np.zeros(p), np.zeros((p, p)), np.zeros(p)
        for c in self.choices(theta):
            terms, slope = self.terms(c.d)
            slope = slope * c.weight[:, None]
            value += float(c.weight @ terms)
            gradient += slope.reshape(-1) @ c.J.reshape(-1, p)
            information += self.gram(c.d, c.J, c.weight)
            if not self.model.linear:
                arguments = self.model.arguments(self.obs, c.rows.context)
                information -= self.model.curvature(theta, c.rows.y, arguments, slope.ravel())
            against = np.abs(slope[:, 1:])  # the information is a sum of (∂f_j − ∂f_0)² with no more than these weights
            scale += np.einsum("tj,tjp->p", against, c.J[:, 1:] ** 2) + against.sum(axis=1) @ c.J[:, 0] ** 2
        return Derivatives(value, gradient, information, scale)

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether each observation is at or above all its reference points in direction d."""
        if not self.model.linear:
            return False
        gap, least, most = np.inf, np.inf, -np.inf
        for c in self.choices(direction):
            s = c.J @ direction
            gap = min(gap, float(np.min(s[:, 0] - s[:, 1:].max(axis=1))))
            least, most = min(least, float(s.min())), max(most, float(s.max()))
        return most > least and gap >= -1e-9 * (most - least)

    def made_of(self) -> RowSource:
        return self.source

    def constants(self, theta: np.ndarray) -> Constants:
        return Constants(np.zeros(0))

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        return self.notes, dict(self.figures)

    def scores(self, theta: np.ndarray) -> ChoiceScores:
        weights = self.obs.weights
        return ChoiceScores(
            problem=self,
            theta=theta,
            information=self.derivatives(theta).information,
            weight=float(weights.sum()),
        )


@final
@dataclass(frozen=True)
class ChoiceScores(Scores):
    """Scores of observations that are each compared with points of their own."""

    problem: ChoiceProblem
    theta: np.ndarray
    information: np.ndarray
    weight: float
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None

    drawn = Drawn.IID
    shared = False

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.theta)

    @property
    def model_based(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.problem.information_equality

    @property
    def by_chance(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Five standard deviations of −H less Σ2, as a share of V, where few points make both of them noisy."""
        return 0.0 if self.problem.k >= self.problem.least else 5.0 * NOISE / float(np.sqrt(max(self.weight, 1.0)))

    def points_spread(self, power: int) -> np.ndarray:
        """Σ_t w^power k/(k − 1) Σ_j centred squares of what each point adds; from redraws where they are too few."""
        k, p = self.problem.k, self.size
        if k < self.problem.least:
            return self._redrawn(power)
        out = np.zeros((p, p))
        for c in self.problem.choices(self.theta):
            r = self.problem.parts(c.d, c.J)
            r = ((r - r.mean(axis=1, keepdims=True)) * (c.weight ** (power / 2))[:, None, None]).reshape(-1, p)
            out += k / (k - 1) * r.T @ r
        return self.problem.unseen * out

    def _redrawn(self, power: int) -> np.ndarray:
        """Σ_t w^power ½ (g − g')(g − g')ᵀ, g and g' the scores of one observation on two fresh sets of points.

        Pair after pair and block by block: no more than two sets are held, and no array of all observations' scores.
        """
        assert self.problem.redraw is not None
        out = np.zeros((self.size, self.size))
        for i in range(PAIRS):
            two = [self.problem.redraw(2 * i + j).by_observation(self.theta, keep=False) for j in (0, 1)]
            for (c, one), (_, other) in zip(*two, strict=True):
                gap = (one - other) * (c.weight ** (power / 2))[:, None]
                out += gap.T @ gap
        return out / (2 * PAIRS)

    def data_spread(self) -> np.ndarray:
        return self.information - self.points_spread(1) if self.model_based else self.empirical_spread()

    def empirical_spread(self) -> np.ndarray:
        out = np.zeros((self.size, self.size))
        for c, g in self.problem.by_observation(self.theta):
            out += g.T @ (c.weight[:, None] * g)
        return frequency(self.weight) * out - self.points_spread(1)

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        out = np.zeros((count, self.size))
        for c, g in self.problem.by_observation(self.theta):
            at = c.rows.at.reshape(len(g), -1)[:, 0]
            out += sum_by(c.weight[:, None] * g, label[at], count)
        return out

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(label, self.problem.obs.weights, count)

    def overlap(self) -> tuple[float | None, float | None]:
        ahead = share = n = 0.0
        for c in self.problem.choices(self.theta):
            ahead += float(c.weight @ np.mean((c.d[:, :1] > c.d[:, 1:]) + 0.5 * (c.d[:, :1] == c.d[:, 1:]), axis=1))
            w = np.exp(c.d[:, 1:] - c.d[:, 1:].max(axis=1, keepdims=True))
            share += float(c.weight @ (w.sum(axis=1) ** 2 / (w**2).sum(axis=1) / w.shape[1]))
            n += float(c.weight.sum())
        return ahead / n, share / n


@final
@dataclass(frozen=True)
class RankingProblem(ChoiceProblem):
    least: ClassVar[int] = (
        5  # the jackknife's variance is .4 of the truth at k = 2 and .7 to .9 at k = 3; 1.0 to 1.3 from k = 5
    )

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

    def gram(self, d: np.ndarray, J: np.ndarray, weight: np.ndarray) -> np.ndarray:
        p = _softmax(d)
        mean = np.einsum("tj,tjp->tp", p, J)
        centred = (J - mean[:, None]).reshape(-1, J.shape[-1])
        return centred.T @ (centred * (p * weight[:, None]).reshape(-1, 1))

    def parts(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        """The jackknife: without point j the score J_0 − Σ p J rises by p_j (J_j − Σ p J)/(1 − p_j).

        Times (k − 1)/k, so that k/(k − 1) Σ centred squares is its variance, (k − 1)/k Σ centred squares.
        """
        k, p = d.shape[1] - 1, _softmax(d)
        mean = np.einsum("tj,tjp->tp", p, J)
        p = p[:, 1:]
        return ((k - 1) / k * p / np.maximum(1.0 - p, 1e-12))[:, :, None] * (J[:, 1:] - mean[:, None])


def _softmax(d: np.ndarray) -> np.ndarray:
    p = np.exp(d - d.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@final
@dataclass(frozen=True)
class ConditionalProblem(ChoiceProblem):
    least: ClassVar[int] = 2  # a sum over points: their variance is exact

    @property
    def information_equality(self) -> bool:
        return False  # the k pairs of one observation share its y

    def terms(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        margin = d[:, :1] - d[:, 1:]
        miss = np.exp(-np.logaddexp(0, margin))  # 1 − σ
        return -np.logaddexp(0, -margin).sum(axis=1), np.concatenate([miss.sum(axis=1, keepdims=True), -miss], axis=1)

    def gram(self, d: np.ndarray, J: np.ndarray, weight: np.ndarray) -> np.ndarray:
        margin = d[:, :1] - d[:, 1:]
        curvature = np.exp(-np.logaddexp(0, margin) - np.logaddexp(0, -margin)) * weight[:, None]
        gap = (J[:, :1] - J[:, 1:]).reshape(-1, J.shape[-1])
        return gap.T @ (gap * curvature.reshape(-1, 1))

    def parts(self, d: np.ndarray, J: np.ndarray) -> np.ndarray:
        return np.exp(-np.logaddexp(0, d[:, :1] - d[:, 1:]))[:, :, None] * (J[:, :1] - J[:, 1:])


@dataclass(frozen=True)
class Choice(Contrastive):
    """What the two objectives share: reference points of each observation's own, IID, and no normaliser."""

    cancels = True

    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        return PerContext()

    @abstractmethod
    def problem(self, model: Model, drawn: Contrast) -> ChoiceProblem: ...

    def check_normaliser(self, normaliser: Normaliser, obs: Observations) -> None:
        if normaliser.layout(obs).size != obs.n:
            raise CombinationError(
                f"In {self.name} the normalising constants cancel: leave normaliser out (got {normaliser!r})."
            )

    def bind(
        self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None, drawn: Contrast | None = None
    ) -> ModelProblem:
        self.check_normaliser(normaliser, obs)
        if self.points is not None and not self.points.iid:
            raise CombinationError(
                f"{self.name} needs IID reference points: stratified or low-discrepancy points bias it "
                "(on the paper's toy chain θ2 is off by 0.5). Leave points out, or use objective=un.Logistic(…)."
            )
        rng = generator(rng)
        drawn = self.draw(model, obs, normaliser, rng) if drawn is None else drawn
        if drawn.k is None:
            raise CombinationError(
                f"{self.name} compares each observation with reference points of its own, and IID data share theirs. "
                "Use un.Logistic(…), or a kernel around the outcome such as un.BitFlip() with un.ConditionalNCE."
            )
        seed, points = int(rng.integers(2**63)), drawn

        def redraw(i: int) -> ChoiceProblem:
            return self.problem(model, points.redraw(np.random.default_rng([seed, i])))

        return replace(self.problem(model, drawn), redraw=redraw)


@final
@dataclass(frozen=True)
class Ranking(Choice):
    """Conditional logistic regression: consistent without modelling χ; needs a context and IID points.

    Args:
        reference: q, e.g. `un.Uniform()`; default `un.Defensive()`, uniform unless the steps of a chain are short.
        per_point: reference points for each observation of a chain or a regression; default 20.
        total: reference points for IID data; default 20 for each observation.
        points: how they are drawn; `un.IID()` is what ranking needs.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> fit = un.fit(toy, obs, un.Ranking(un.Uniform(), per_point=50), rng=2)
        >>> exact = un.fit(toy, obs)
        >>> bool((abs(fit.estimate - exact.estimate) < exact.se).all())
        True
    """

    loss = "ranking"

    @classmethod
    def examples(cls) -> tuple[Ranking, ...]:
        return (cls(Uniform(), per_point=5),)

    def problem(self, model: Model, drawn: Contrast) -> ChoiceProblem:
        assert drawn.k is not None
        source = choice_rows(drawn, -drawn.log_q)
        return RankingProblem(model, drawn.obs, source, drawn.k, figures(drawn, False), drawn.notes)


@final
@dataclass(frozen=True)
class ConditionalNCE(Choice):
    """Pairs (y, y') with y' near y: good for graphs (edge toggles) and binary vectors (bit flips).

    Args:
        reference: q(·|y), points near the observation: `un.BitFlip()`, `un.Gaussian(around="outcome")`,
            `un.GibbsSteps()`.
        per_point: reference points for each observation of a chain or a regression; default 20.
        total: reference points for IID data; default 20 for each observation.
        points: how they are drawn; `un.IID()` by default.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(1).random((200, 3)) < (0.5, 0.6, 0.7)
        >>> fit = un.fit(un.Ising(3), un.iid(y.astype(float)), un.ConditionalNCE(un.BitFlip(every=True)))
        >>> fit.names[:3]
        ('h[1]', 'h[2]', 'h[3]')
    """

    loss = "conditional"

    @classmethod
    def examples(cls) -> tuple[ConditionalNCE, ...]:
        return (cls(Uniform(), per_point=5),)

    @property
    def around_outcome(self) -> bool:
        return True

    @property
    def masks(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.reference.every

    def bind(
        self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None, drawn: Contrast | None = None
    ) -> ModelProblem:
        if not self.reference.every:
            self._check_number(bound_reference(self.reference, model.domain, obs).distinct)
            return super().bind(model, obs, normaliser, rng, drawn)
        self.check_normaliser(normaliser, obs)
        if self.per_point is not None or self.total is not None or self.points is not None:
            raise CombinationError(
                f"{self.reference!r} takes every flip once and draws nothing: leave per_point, total and points out."
            )
        bound = bound_reference(self.reference, model.domain, obs)
        return FlipProblem(model, obs, {"reference": bound.describe(), "drawn": False})

    @property
    def by_products(self) -> bool:
        return self.reference.every

    @property
    def takes_missing(self) -> bool:
        return self.reference.every

    @property
    def takes_base(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return not self.reference.every

    def _check_number(self, distinct: int | None) -> None:
        if distinct is not None and self.per_point is not None and self.per_point > distinct:
            raise InputError(
                f"{self.reference!r} draws without replacement and has {distinct} points for each observation; got "
                f"per_point={self.per_point}. Use un.ConditionalNCE(un.BitFlip(every=True)), which takes each once."
            )

    def sharing(self, model: Unnormalised, obs: Observations, normaliser: Normaliser) -> tuple[Any, ...] | None:
        return None if self.reference.every else super().sharing(model, obs, normaliser)

    def draw(self, model: Unnormalised, obs: Observations, normaliser: Normaliser | None, rng: Rng) -> Contrast:
        if self.reference.every:
            raise CombinationError(
                f"{self.name} with {self.reference!r} draws no reference points. Where points are needed, use "
                "un.BitFlip() and per_point=…."
            )
        return super().draw(model, obs, normaliser, rng)

    def problem(self, model: Model, drawn: Contrast) -> ChoiceProblem:
        assert drawn.k is not None
        back = 0.0 if drawn.log_q_back is None else drawn.log_q_back  # q(·|x) has log q(y) on real rows
        source = choice_rows(drawn, back - drawn.log_q)
        K = drawn.reference.distinct
        return ConditionalProblem(
            model,
            drawn.obs,
            source,
            drawn.k,
            figures(drawn, False),
            drawn.notes,
            unseen=1.0 if K is None else 1.0 - drawn.k / K,
        )
