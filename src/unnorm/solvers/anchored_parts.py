"""Anchored constants on rows that are never together: what is kept of all data is a number and a mean for each context.

As in `anchored`, a round is a penalised fit of the columns s − E₀ with a context's number E₀ᵀβ₀ − log Z₀ in the offset.
Each part takes those of its own contexts; η, the likelihood and its curvature are sums over parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast, final

import numpy as np

from .._base.memory import allowed
from .._base.memory import require as require_memory
from .._base.threads import cores
from ..engine.design import Design
from ..engine.families import FAMILIES
from ..engine.gam_result import Gam
from ..engine.partition import PartitionedDesign, gather
from ..engine.parts import Change, Held, LessOfContexts, LocalParts, PerPart, Sums
from ..engine.plan import Plan
from ..engine.resources import require
from ..engine.segment import ResponseRows
from ..engine.sides import Sides
from ..engine.smoothed import Smoothed
from ..objectives.additive import AdditiveProblem, Placing
from ..objectives.anchor import Integrated
from ..objectives.likelihood import Cumulant, RowLikelihood
from ..objectives.parts import in_parts
from ..objectives.rows import Rows, RowSource
from ..terms.base import BuiltTerm
from .anchored import AnchoredFit, Rounds, coefficients_of_f
from .engine_rows import GAUSSIAN
from .many_rows import Fitted, kept

_NONE = np.empty(0)
_CONTEXT = 250.0  # bytes of a context beside its mean: where it lies among those that have integrals


class PartRound(NamedTuple):
    """One fit, and where its constants were linearised."""

    smoothed: Smoothed  # with a design of no rows
    beta: np.ndarray
    here: Integrated
    side: Sides

    def taken(self, index: np.ndarray) -> np.ndarray:
        """(n,) what the linearised constants take off η at each context, at the fit's own coefficients."""
        return self.here.log_z + self.here.mean @ (self.smoothed.beta[index] - self.beta)


@final
@dataclass(frozen=True)
class PartRounds(Rounds):
    """Rounds on rows in parts that are made from seeds."""

    problem: AdditiveProblem  # pyright: ignore[reportIncompatibleVariableOverride]
    once: Fitted
    index: np.ndarray  # pyright: ignore[reportIncompatibleVariableOverride]
    built: tuple[BuiltTerm, ...]  # pyright: ignore[reportIncompatibleVariableOverride]
    placing: Placing
    design: PartitionedDesign  # f's own columns, and those of δ

    @property
    def start(self) -> None:
        return None  # f is linear

    @property
    def _code(self) -> int:
        return FAMILIES[self.problem.family]

    @cached_property
    def live(self) -> np.ndarray:
        """The columns, flat, that f's coefficients reach."""
        unit = np.zeros((self.design.size, self.index.size))
        unit[self.index, np.arange(self.index.size)] = 1.0
        return np.flatnonzero(np.any(self.design.to_flat(unit) != 0.0, axis=1))

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        return self.problem.source.spans()

    def changes(self, mean: np.ndarray, shift: np.ndarray) -> tuple[list[Change], Plan]:
        """Each part's columns less the mean of its contexts, with `shift` in the offset; and the plan of these."""
        each, plan = self.problem.source.each, self.design.parts.plan
        found: list[Change] = [
            LessOfContexts(mean[a:b], self.index, shift[a:b], each, self.live) for a, b in self.spans
        ]
        nobody = plan.frame.less(np.zeros((0, self.design.size)), np.zeros(0, np.int64), self.live)
        return found, replace(plan, frame=nobody)

    def _less(self, mean: np.ndarray, shift: np.ndarray) -> PartitionedDesign:
        return PartitionedDesign(self.design.parts.changed(*self.changes(mean, shift)))

    def fit(self, beta: np.ndarray, here: Integrated, start: Smoothed | None, rough: bool = False) -> PartRound:
        design = self._less(here.mean, here.mean @ beta - here.log_z)
        side = design.sides(self.problem.family, None)
        smoothed = self.once(design, side, self.built, start, rough)
        return PartRound(replace(smoothed, design=design.frame), beta, here, side)

    def value(self, gam: PartRound, beta: np.ndarray, moved: Integrated, at: Integrated, old: np.ndarray) -> float:
        full = gam.smoothed.beta.copy()
        full[self.index] = beta
        found = self.design.parts.total(_value, self._own(moved.log_z), self._code, self.design.to_flat(full))
        return float(found[0]) - 0.5 * float(full @ gam.smoothed.penalty @ full)

    def weight(self, gam: PartRound) -> float:
        cut, flat = self._own(gam.taken(self.index)), self.design.to_flat(gam.smoothed.beta)
        return float(self.design.parts.total(_curvature, cut, self.problem.cumulant, flat)[0])

    def information(self, here: Integrated) -> np.ndarray:
        less = self._less(here.mean, np.zeros(self.problem.obs.n))
        found = less.parts.total(_at_zero, self.problem.cumulant, finish=gather)
        return less.to_user(less.to_user(found[2]).T).T

    def again(self, built: tuple[BuiltTerm, ...]) -> PartRounds:
        plan = self.problem.plan(built, self.placing, cores())
        return replace(self, built=built, design=in_parts(self.problem, plan, self.problem.resources))

    def _own(self, values: np.ndarray) -> PerPart:
        """Numbers of contexts, those of each part by row."""
        each = self.problem.source.each
        return PerPart((values[a:b], each) for a, b in self.spans)

    # at the end

    def finished(self, end: PartRound) -> Gam:
        """The fit with the rows that its terms were built on."""
        plan, problem = self.design.parts.plan, self.problem
        gam = kept(problem, plan, self.placing, end.smoothed)
        some, context = np.unique(self.placing.rows.context, return_inverse=True)
        mean = end.here.mean[some]
        shift = (mean @ end.beta - end.here.log_z[some])[context]
        offset = shift if gam.offset is None else gam.offset + shift
        design = gam.smoothed.design.less(self.padded(mean, self.design.size), context)
        return replace(gam, smoothed=replace(gam.smoothed, design=design, offset=offset), offset=offset)

    def walk(self, end: PartRound) -> AnchoredWalk:
        """The rows at the estimate, in this process."""
        shift = end.here.mean @ end.beta - end.here.log_z
        changes, plan = self.changes(end.here.mean, shift)
        home = self.design.parts.at_home(allowed(self.problem.resources.memory), cores())
        beta = self.design.to_flat(end.smoothed.beta)
        return AnchoredWalk(self.problem.source, home, tuple(changes), plan, beta, end.side, self._code)


def ended(found: AnchoredFit) -> tuple[Gam, AnchoredWalk]:
    """The fit of such rounds, and its rows."""
    rounds, end = cast(PartRounds, found.made_by), found.gam
    return rounds.finished(end), rounds.walk(end)


def part_rounds(problem: AdditiveProblem, once: Fitted, method: str, threads: int | None) -> PartRounds:
    """The rounds of a problem whose rows are never together."""
    built, placing = problem.built
    plan = problem.plan(built, placing, cores() if threads is None else threads)
    require(problem.family, method, plan.frame.size)
    require_memory(
        problem.obs.n * (_CONTEXT + 24.0 * plan.frame.size),
        f"Anchored constants of {problem.obs.n:,} contexts, of which a mean of {plan.frame.size} numbers is kept,",
        "Use normaliser=un.Smooth(…), which keeps nothing of a context, or terms with fewer functions.",
    )
    design = in_parts(problem, plan, replace(problem.resources, threads=threads))
    return PartRounds(problem, once, coefficients_of_f(problem, built), built, placing, design)


@final
@dataclass(frozen=True)
class AnchoredWalk:
    """The rows of an anchored fit at β̂, from their parts."""

    source: RowSource
    parts: LocalParts  # f's own columns
    changes: tuple[Change, ...]
    plan: Plan  # of the changed parts
    beta: np.ndarray  # flat
    side: Sides
    code: int

    def __call__(self) -> Iterator[tuple[Rows, np.ndarray, Design]]:
        return self.parts.each(_walked, self.source, self.beta, self.changes)

    def levers(self, matrices: list[np.ndarray]) -> np.ndarray:
        design = PartitionedDesign(self.parts.changed(self.changes, self.plan))
        return design.to_user(design.leverages(self.side.rows, self.code, self.beta, matrices).T)


# what is computed on one part


def _walked(
    plan: Plan, part: Held, i: int, source: RowSource, beta: np.ndarray, changes: tuple[Change, ...]
) -> tuple[Rows, np.ndarray, Design]:
    less, given, design = changes[i](part), part.rows, part.design
    eta = less.design.predict(beta) + less.rows.offset
    w, offset = (design.unsort(a) if a.size else None for a in (given.weights, given.offset))
    return source.numbers(i, design.unsort(given.y), w, offset), design.unsort(eta), less.design


def _by_row(part: Held, own: tuple[np.ndarray, int]) -> np.ndarray:
    """Numbers of contexts on the part's rows, in the design's order."""
    values, each = own
    return part.design.sort(np.repeat(values, each))


def _value(plan: Plan, part: Held, i: int, cut: Any, code: int, beta: np.ndarray) -> Sums:
    """Σ ℓ at η = Xβ + offset − the context's number."""
    (segment,) = part.design.segments
    given, less = part.rows, _by_row(part, cut[i])
    offset = np.require((given.offset if given.offset.size else 0.0) - less, np.float64, ("C", "W"))
    total, _ = segment.scores(ResponseRows(given.y, given.weights, offset), code, beta, 0, segment.runs)
    return (total,)


def _likelihood(part: Held, cumulant: Cumulant) -> RowLikelihood:
    b = part.rows.weights if part.rows.weights.size else np.ones(part.rows.y.size)
    return RowLikelihood(cumulant, part.rows.y * b, b)


def _curvature(plan: Plan, part: Held, i: int, cut: Any, cumulant: Cumulant, beta: np.ndarray) -> Sums:
    eta = part.design.predict(beta) - _by_row(part, cut[i])
    eta = eta + part.rows.offset if part.rows.offset.size else eta
    return (float(_likelihood(part, cumulant).slopes(eta)[1].sum()),)


def _at_zero(plan: Plan, part: Held, i: int, cumulant: Cumulant) -> Sums:
    """The raw sums of XᵀWX at η = 0, by a Gaussian pass whose weights are W."""
    (segment,) = part.design.segments
    zero = np.zeros(part.rows.y.size)
    weights = np.ascontiguousarray(np.maximum(_likelihood(part, cumulant).slopes(zero)[1], 1e-12))
    rows = ResponseRows(zero, weights, _NONE)
    total, raw = segment.sweep(rows, GAUSSIAN, np.zeros(part.design.size), 0, segment.runs)
    return (total, *raw)
