"""Anchored constants in the additive engine: f − log Z_θ(x) + δ(x), linearised again until θ converges.

At β₀ the normalised f is f − log Z₀ − E₀ᵀ(β − β₀) to first order, so that an ordinary penalised fit of the columns
s − E₀ with a context's offset E₀ᵀβ₀ − log Z₀ is one scoring step with its smoothing chosen. The design is the one of f,
less a row for each context (`Design.less`); log Z₀ and E₀ are all that changes between rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np

from ..engine.design import Design
from ..engine.gam_result import Gam
from ..engine.seen import acts, untouched, unvarying
from ..engine.smoothed import Smoothed
from ..errors import NotIdentifiedError
from ..models.base import LinearPart
from ..objectives.additive import AdditiveProblem
from ..objectives.anchor import Anchor, Integrated, anchor_of, say_if_slow
from ..terms.base import BuiltTerm, Penalty
from .engine_rows import cross

MOST_ROUNDS = 40
MOST_HALVINGS = 8
MOST_FAILURES = 3  # rounds in a row whose fit did not converge, and each took all its steps
SETTLED = 1e-2  # standard errors that a coefficient may still move, where smoothing parameters are chosen
SETTLED_FIXED = 1e-6  # where there are none to choose, and rounds are cheap
NEARLY, SURELY = 10.0, 5.0  # times `SETTLED` below which the next move is foreseen, and times that it may be larger

# one penalised fit, or a rough one
Once = Callable[[tuple[BuiltTerm, ...], LinearPart, Design, Smoothed | None, bool], Gam]


class Round(Protocol):
    """The penalised fit of one round."""

    @property
    def smoothed(self) -> Smoothed: ...


class Rounds(ABC):
    """What stays between rounds: the terms, f's own columns, and how they are fitted."""

    problem: AdditiveProblem
    index: np.ndarray  # f's coefficients among all
    built: tuple[BuiltTerm, ...]

    @property
    @abstractmethod
    def start(self) -> np.ndarray | None:
        """θ where f is linearised first; None where it is linear."""

    @abstractmethod
    def fit(self, beta: np.ndarray, here: Integrated, start: Smoothed | None, rough: bool = False) -> Any:
        """The fit with the constants linearised at β: a `Round`."""

    @abstractmethod
    def value(self, gam: Any, beta: np.ndarray, moved: Integrated, at: Integrated, old: np.ndarray) -> float:
        """The penalised likelihood at f's coefficients β, all else and λ as in `gam`, which was linearised at `old`."""

    @abstractmethod
    def weight(self, gam: Any) -> float:
        """Σ_r of the likelihood's curvature at the fit."""

    @abstractmethod
    def information(self, here: Integrated) -> np.ndarray:
        """XᵀWX of the columns less their context's mean, at η = 0."""

    @abstractmethod
    def again(self, built: tuple[BuiltTerm, ...]) -> Rounds:
        """The same with other terms of the same size."""

    def padded(self, mean: np.ndarray, size: int) -> np.ndarray:
        out = np.zeros((len(mean), size))
        out[:, self.index] = mean
        return out


@final
@dataclass(frozen=True)
class AnchoredFit:
    """An additive fit whose constants follow θ."""

    gam: Any  # a `Round`: on the columns s − E, its offset with the context's part
    anchor: Anchor
    integrated: Integrated  # at the estimate; mean in the coordinates of all coefficients
    theta: np.ndarray | None  # where an energy was linearised last
    rounds: int
    settled: bool
    shift: float  # standard errors by which the integrals can move an estimate
    made_by: Rounds  # the rounds that ended with `gam`


@final
@dataclass(frozen=True)
class RowRounds(Rounds):
    """Rounds on rows that are held, whole or in parts."""

    problem: AdditiveProblem  # pyright: ignore[reportIncompatibleVariableOverride]
    once: Once
    index: np.ndarray  # pyright: ignore[reportIncompatibleVariableOverride]
    built: tuple[BuiltTerm, ...]  # pyright: ignore[reportIncompatibleVariableOverride]
    part: LinearPart
    design: Design

    @property
    def start(self) -> np.ndarray | None:
        return self.part.theta

    def linear(self, beta: np.ndarray) -> tuple[LinearPart, Design]:
        """f's own columns: once for all where f is linear, else at β."""
        return (self.part, self.design) if self.part.theta is None else self.problem.met(self.built, beta)

    def fit(self, beta: np.ndarray, here: Integrated, start: Smoothed | None, rough: bool = False) -> Gam:
        part, design = self.linear(beta)
        context = self.problem.rows.context
        mean = self.padded(here.mean, design.size)
        anchored = (here.mean @ beta - here.log_z)[context]
        offset = anchored if part.offset is None else part.offset + anchored
        part, design = replace(part, offset=offset, theta=None), design.less(mean, context)
        try:
            return self.once(self.built, part, design, start, rough)
        except NotIdentifiedError:
            if start is None:
                raise
            return self.once(self.built, part, design, None, rough)  # far from the start, where all weights vanished

    def value(self, gam: Gam, beta: np.ndarray, moved: Integrated, at: Integrated, old: np.ndarray) -> float:
        """The penalised likelihood at f's coefficients β, all else and λ as in `gam`, which was linearised at `old`."""
        context = self.problem.rows.context
        fitted = gam.smoothed.beta[self.index]
        eta = np.asarray(gam.linear_predictor)  # X β̂ − log Z₀ − E₀ (β̂ − β₀) + δ
        curved = (at.log_z + at.mean @ (fitted - old))[context]
        change = self._change(gam, beta - fitted)
        eta = eta + curved - moved.log_z[context] + change
        penalised = gam.smoothed.beta.copy()
        penalised[self.index] = beta
        return self.problem.value(eta) - 0.5 * float(penalised @ gam.smoothed.penalty @ penalised)

    def weight(self, gam: Gam) -> float:
        return float(self.problem.likelihood.slopes(np.asarray(gam.linear_predictor))[1].sum())

    def information(self, here: Integrated) -> np.ndarray:
        less = self.design.less(self.padded(here.mean, self.design.size), self.problem.rows.context)
        weight = self.problem.likelihood.slopes(np.zeros(less.rows))[1]
        return cross(less, np.maximum(weight, 1e-12))

    def again(self, built: tuple[BuiltTerm, ...]) -> RowRounds:
        part, design = self.problem.again(built)
        return replace(self, built=built, part=part, design=design)

    def _change(self, gam: Gam, move: np.ndarray) -> np.ndarray | float:
        """X (β − β̂) for f's own columns."""
        if not np.any(move):
            return 0.0
        design = self.design
        full = np.zeros(design.size)
        full[self.index] = move
        return design.unsort(design.predict(design.to_flat(full)))


def row_rounds(problem: AdditiveProblem, once: Once) -> RowRounds:
    """The rounds of a problem whose rows are held."""
    built, part, design = problem.linear
    return RowRounds(problem, once, coefficients_of_f(problem, built), built, part, design)


def coefficients_of_f(problem: AdditiveProblem, built: tuple[BuiltTerm, ...]) -> np.ndarray:
    """Where f's coefficients are among all: the intercept, δ's level, comes first."""
    return 1 + np.arange(sum(term.size for term in built if term.label not in problem.delta_labels))


def fit_anchored(rounds: Rounds, threads: int) -> AnchoredFit:
    """Rounds of fits until f's coefficients settle, the integrals refined where they are too coarse."""
    problem, chi = rounds.problem, rounds.problem.delta_labels
    f = tuple(term for term in rounds.built if term.label not in chi)
    anchor = anchor_of(problem.model, problem.obs, f, threads)
    beta = np.zeros(rounds.index.size) if rounds.start is None else rounds.start
    say_if_slow(anchor, problem.source.size)
    here = anchor.at(beta)
    rounds = _seen(rounds, here)
    built = rounds.built
    gam, begun, settled, shift, number, failures = None, None, False, np.inf, 0, 0
    last, rate = np.inf, np.inf  # the move before, and the least share of a move that the next one had
    least = SETTLED if any(sp is None for term in built for sp in term.fixed_sp) else SETTLED_FIXED
    for number in range(1, MOST_ROUNDS + 1):
        rough = number == 1 and least == SETTLED  # the constants of f = 0 are far from those of f̂
        gam = rounds.fit(beta, here, begun, rough)
        failures = 0 if gam.smoothed.converged else failures + 1
        if failures == MOST_FAILURES:
            break
        new = gam.smoothed.beta[rounds.index]
        there = anchor.at(new)
        if rounds.start is None:
            new, there = _held_back(rounds, gam, anchor, (beta, here), (new, there))
        begun = gam.smoothed
        if rounds.start is None:
            begun = _levelled(begun, rounds.index, (beta, here), (new, there))
        se = np.sqrt(np.maximum(np.diag(gam.smoothed.Vp)[rounds.index], 1e-300))
        move = float(np.max(np.abs(new - beta) / se))
        rate, last = min(rate, move / last if np.isfinite(last) else np.inf), move
        left = still(move, rate, least) if least == SETTLED else move  # where λ is fixed, rounds are cheap
        beta, here = new, there
        if move > 1.0 or rough:
            continue
        before = anchor
        if not np.isfinite(shift) or left <= least:
            anchor, shift = _fine_enough(anchor, beta, rounds.weight(gam))
        if anchor is not before:
            here = anchor.at(beta)
        elif left <= least:
            settled = True
            break
    assert gam is not None
    if not settled and failures < MOST_FAILURES:
        gam = rounds.fit(beta, here, begun)
    theta = None if rounds.start is None else beta
    mean = rounds.padded(here.mean, gam.smoothed.size)
    return AnchoredFit(gam, anchor, Integrated(here.log_z, mean), theta, number, settled, shift, rounds)


def _levelled(
    smoothed: Smoothed, index: np.ndarray, old: tuple[np.ndarray, Integrated], new: tuple[np.ndarray, Integrated]
) -> Smoothed:
    """The fit as the start of the next round: δ takes up what linearising the constants anew moves them by, on average.

    log Z is convex, so that they only grow: from those of f = 0 by 17 where steps are short in a wide window. With the
    old δ all means vanished then, and Newton's first step went to η = 10⁶.
    """
    before, after = (at.log_z + at.mean @ (smoothed.beta[index] - beta) for beta, at in (old, new))
    level = smoothed.beta.copy()
    level[0] += float(np.mean(after - before))
    return replace(smoothed, beta=level)


def still(move: float, rate: float, least: float) -> float:
    """How far the coefficients may still be from where they settle, after a move that is not much above `least`.

    Moves shrink by a steady factor in the end, and by less than that before: `rate`, the smallest ratio of two moves so
    far, bounds it.
    """
    return SURELY * rate * move if move <= NEARLY * least and SURELY * rate < 1.0 else move


def _fine_enough(anchor: Anchor, beta: np.ndarray, weight: float) -> tuple[Anchor, float]:
    """The anchor refined until its errors at β are small, or as far as it goes, and the shift that they allow.

    Nothing is fitted in between: a fit on integrals that are about to be refined would be thrown away.
    """
    excess = anchor.excess(beta, weight)
    while excess > 1.0:
        finer = anchor.finer(beta, excess)
        if finer is None:
            break
        anchor, excess = finer, finer.excess(beta, weight)
    return anchor, anchor.shift(beta, weight)


def _seen(rounds: Rounds, here: Integrated) -> Rounds:
    """The same with a fixed ridge on what does not vary with y: an anchored likelihood cannot see it.

    `te(y, z)` and `s(y, by=z)` contain functions of z alone, whose columns less their context's mean are zero. They are
    left at zero, and take no part in the choice of the smoothing. A term of one covariate has none: where that varies
    with y at some context, so does every function of it but a constant.
    """
    if rounds.start is not None or all(len(term.covariates) == 1 for term in rounds.built):
        return rounds
    A, begin, built = rounds.information(here), 1, []
    M = np.zeros_like(A)  # of the contexts' means; Σ_r of the weights is the intercept's information
    M[np.ix_(rounds.index, rounds.index)] = A[0, 0] / len(here.mean) * (here.mean.T @ here.mean)
    for term in rounds.built:
        at = slice(begin, begin + term.size)
        built.append(_with_ridge(term, A[at, at], M[at, at]))
        begin += term.size
    if all(new is old for new, old in zip(built, rounds.built)):
        return rounds
    return rounds.again(tuple(built))


def _with_ridge(term: BuiltTerm, within: np.ndarray, between: np.ndarray) -> BuiltTerm:
    """A ridge on the unseen directions that no penalty charges but those that act on unseen directions alone."""
    blind = unvarying(within, between)
    if term.parametric or blind.shape[1] == 0 or blind.shape[1] == term.size:  # nothing to hold, or nothing else
        return term
    held = untouched(blind, [one for one in term.penalties if acts(one, blind)])
    if not held.shape[1]:
        return term
    scale = float(np.linalg.eigvalsh(within)[-1])
    left = term.null_dim - untouched(held, term.penalties).shape[1]
    ridge = Penalty(scale * held @ held.T, held.shape[1], f"{term.label} (context)", np.sqrt(scale) * held.T)
    more = {"penalties": (*term.penalties, ridge), "fixed_sp": (*term.fixed_sp, 1.0), "null_dim": left}
    known: Any = term  # every built term is a dataclass
    return replace(known, spectrum=None, **more)


def _held_back(
    rounds: Rounds, gam: Any, anchor: Anchor, old: tuple[np.ndarray, Integrated], new: tuple[np.ndarray, Integrated]
) -> tuple[np.ndarray, Integrated]:
    """A step that does not lower the likelihood itself: halved until it does not."""
    (beta, here), (ahead, there) = old, new
    before = rounds.value(gam, beta, here, here, beta)
    for _ in range(MOST_HALVINGS):
        if rounds.value(gam, ahead, there, here, beta) >= before - 1e-8 * (1 + abs(before)):
            break
        ahead = 0.5 * (ahead + beta)
        there = anchor.at(ahead)
    return ahead, there
