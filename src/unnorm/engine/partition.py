"""A design whose rows are in parts: every pass is a sum over them.

It answers to the same calls as `Design`, so that the engine's iteration, and all that reads a fit, runs on it as it is.
Rows are in the caller's order. A pass takes its response from the parts themselves, or from vectors of all rows where
these are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.counting import passed
from . import families, gam_rows
from .arrow import Arrow
from .design import Design, Lever, Placement
from .extents import Extent, extent
from .parts import Held, Less, Parts, PerPart, Remaining, Sums, largest
from .penalties import Penalties
from .plan import Plan
from .segment import ResponseRows, Segment
from .sides import Sides, null_of_parts

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm

_NONE = np.empty(0)


# long: it answers to what a design answers to
@final
@dataclass(frozen=True)
class PartitionedDesign:
    """The parts as one design, without levels."""

    parts: Parts

    own = None
    levels = 0
    order = None

    @property
    def frame(self) -> Design:
        return self.parts.plan.frame

    @property
    def terms(self) -> tuple[BuiltTerm, ...]:
        return self.frame.terms

    @property
    def slices(self) -> Mapping[str, slice]:
        return self.frame.slices

    @property
    def placements(self) -> tuple[Placement, ...]:
        return self.frame.placements

    @property
    def penalties(self) -> Penalties:
        return self.frame.penalties

    @property
    def fixed(self) -> np.ndarray:
        return self.frame.fixed

    @property
    def errors(self) -> Mapping[str, float]:
        return self.frame.errors

    @property
    def kinds(self) -> Mapping[str, str]:
        return self.frame.kinds

    @property
    def segments(self) -> tuple[Segment, ...]:
        """One without rows: what the parts' segments have in common."""
        return self.frame.segments

    @property
    def size(self) -> int:
        return self.frame.size

    @property
    def nonzeros(self) -> int:
        return self.frame.nonzeros

    @cached_property
    def rows(self) -> int:
        return self.parts.starts[-1]

    def to_user(self, flat: np.ndarray) -> np.ndarray:
        return self.frame.to_user(flat)

    def to_flat(self, user: np.ndarray) -> np.ndarray:
        return self.frame.to_flat(user)

    def sort(self, values: np.ndarray) -> np.ndarray:
        return values

    def unsort(self, values: np.ndarray) -> np.ndarray:
        return values

    # the passes

    def _given(self, rows: ResponseRows) -> PerPart | None:
        """The response of each part, cut from vectors of all rows; None where the parts' own is meant."""
        if rows.y.size < self.rows:  # `stands_for`
            return None
        at = self.parts.starts
        cut = [[a[i:j] if a.size else a for a in (rows.y, rows.weights, rows.offset)] for i, j in pairwise(at)]
        return PerPart(ResponseRows(*one) for one in cut)

    def sweep(
        self, rows: ResponseRows, family: int, beta: np.ndarray, threads: int = 1
    ) -> tuple[float, np.ndarray, Arrow]:
        """As `Design.sweep`."""
        passed()
        found = self.parts.total(_sweep, self._given(rows), family, beta, finish=gather)
        return float(found[0]), found[1], Arrow(found[2], (), ())

    def scores(self, rows: ResponseRows, family: int, beta: np.ndarray, threads: int = 1) -> tuple[float, np.ndarray]:
        """As `Design.scores`: a pass without XᵀWX."""
        passed()
        total, score = self.parts.total(_scores, self._given(rows), family, beta)
        (segment,) = self.segments
        return float(total), segment.turn(score)

    def leverage(
        self,
        rows: ResponseRows,
        family: int,
        beta: np.ndarray,
        lever: Lever | Callable[[int | None], np.ndarray],
        threads: int = 1,
        hats: np.ndarray | None = None,
    ) -> np.ndarray:
        """As `Design.leverage`."""
        (segment,) = self.segments
        raw = segment.raw_inverse(np.ascontiguousarray(lever(None)))
        arguments = self._given(rows), family, beta, raw, segment.levers(raw, threads)
        passed()
        if hats is None:
            return self.parts.total(_leverage, *arguments, finish=_turn)[0]
        at, score = self.parts.starts, np.zeros(self.size)
        for i, (own, h) in enumerate(self.parts.each(_leverage_of_rows, *arguments)):
            score += own
            hats[at[i] : at[i + 1]] = h
        return score

    def leverages(
        self, rows: ResponseRows, family: int, beta: np.ndarray, matrices: Sequence[np.ndarray]
    ) -> np.ndarray:
        """(M, p) `leverage` of several matrices, in one pass."""
        (segment,) = self.segments
        raw = [segment.raw_inverse(P) for P in matrices]
        levers = [(P, segment.levers(P, 1)) for P in raw]
        found = self.parts.total(_leverages, self._given(rows), family, beta, levers)
        return np.stack([segment.turn(one) for one in found])

    def predict(self, beta: np.ndarray, threads: int = 1) -> np.ndarray:
        """Xβ of all rows, in the caller's order."""
        return np.concatenate(list(self.parts.each(_predict, beta)))

    def ends(self, beta: np.ndarray, threads: int = 1) -> tuple[float, float]:
        """The least and the largest xᵀβ."""
        low, high = self.parts.total(_ends, beta, join=largest)
        return -float(low), float(high)

    def extent(self, rows: ResponseRows, family: str, direction: np.ndarray, threads: int = 1) -> Extent:
        """As `Design.extent`."""
        return Extent(*self.parts.total(_extent, self._given(rows), family, direction, join=largest))

    def most(self, beta: np.ndarray) -> float:
        """A bound of |x_rᵀβ| from what is known of the parts without them; infinite where none is cheap."""
        (segment,) = self.segments
        if segment.x.shape[1] or segment.dense is not None or segment.mult.shape[1] or self._by:
            return np.inf
        *_, zeta = segment.raw_coefficients(beta)
        contexts = np.max([one.context for one in self.parts.counts], axis=0)
        return segment.most(beta) + float(contexts @ np.abs(zeta))

    @property
    def _by(self) -> bool:
        """Whether a product has a multiplier, whose size the parts alone know."""
        (segment,) = self.segments
        return segment.product is not None and any(term.by is not None for term in self.terms)

    def some(self, rows: ResponseRows, every: int) -> tuple[PartitionedDesign, ResponseRows]:
        """As `Design.some`, with the parts' own response."""
        part = PartitionedDesign(self.parts.some(every))
        return part, stands_for(part.parts.total(_weight)[0] if rows.weights.size else None)

    def sums(self, v: np.ndarray, label: np.ndarray, count: int, threads: int = 1) -> np.ndarray | None:
        """As `Design.sums`."""
        at = self.parts.starts
        cut = PerPart((v[i:j], label[i:j]) for i, j in pairwise(at))
        out = np.zeros((count, self.size))
        for found in self.parts.each(_sums, cut):
            if found is None:
                return None
            here, own = found
            out[here] += own
        return out

    def less(self, mean: np.ndarray, context: np.ndarray) -> PartitionedDesign:
        """As `Design.less`."""
        at, changes, plan = self.parts.starts, [], self.parts.plan
        live = np.flatnonzero(np.any(self.to_flat(np.ascontiguousarray(mean.T)) != 0.0, axis=1))
        for i, j in pairwise(at):
            own = np.asarray(context[i:j])
            first, last = int(own.min()), int(own.max())
            changes.append(Less(mean[first : last + 1], own - first, live))
        nobody = self.frame.less(np.zeros((0, self.size)), np.zeros(0, np.int64), live)
        return PartitionedDesign(self.parts.changed(changes, replace(plan, frame=nobody)))

    def part(self, begin: int, end: int) -> Design:
        """As `Design.part`."""
        at = self.parts.starts
        i = at.index(begin)
        assert at[i + 1] == end
        return self.parts.at_home(np.inf, 1).part(i).design

    def remaining(
        self, rows: ResponseRows, beta: np.ndarray, threads: int = 1
    ) -> tuple[PartitionedDesign, ResponseRows]:
        """As `Design.remaining`, the parts' own response changed."""
        if self._given(rows) is not None:
            return self, replace(rows, y=rows.y - self.predict(beta))
        return PartitionedDesign(self.parts.changed([Remaining(beta)] * len(self.parts.counts))), rows

    def at_home(self, budget: float, threads: int) -> PartitionedDesign:
        """The design with its parts in this process, where so many bytes of them may be held."""
        return PartitionedDesign(self.parts.at_home(budget, threads))

    # the response

    def sides(self, family: str, link: str | None) -> Sides:
        """The response's side of a fit: sums over the parts' own rows."""
        count, constant, saturated, weight, weighted, wy, offset, offsets = self.parts.total(_response, family)
        if weighted and not count:
            gam_rows.check_total(0.0, 0)
        known = (float(weight), float(wy), float(offset) / self.rows, bool(offsets))
        intercept, loglik = null_of_parts(self.parts, family, link, known)
        rows = stands_for(float(weight) if weighted else None)
        return Sides(rows, int(count), float(constant), float(saturated), float(intercept), float(loglik), _NONE)


def stands_for(weight: float | None) -> ResponseRows:
    """Stands for the rows that each part has for itself; `weight`: their total, where they have weights."""
    return ResponseRows(np.zeros(1), _NONE if weight is None else np.array([weight]), _NONE)


# what is computed on one part


def _rows(part: Held, given: Sequence[ResponseRows] | None, i: int) -> ResponseRows:
    """The part's own response, or its share of the vectors given, in the design's order."""
    if given is None:
        return part.rows
    return ResponseRows(
        *(np.require(part.design.sort(a), requirements=("C", "W")) if a.size else a
          for a in (given[i].y, given[i].weights, given[i].offset))
    )  # fmt: skip


def _sweep(plan: Plan, part: Held, i: int, given: Any, family: int, beta: np.ndarray) -> Sums:
    (segment,) = part.design.segments
    total, raw = segment.sweep(_rows(part, given, i), family, beta, 0, segment.runs)
    return (total, *raw)


def _scores(plan: Plan, part: Held, i: int, given: Any, family: int, beta: np.ndarray) -> Sums:
    (segment,) = part.design.segments
    return segment.scores(_rows(part, given, i), family, beta, 0, segment.runs)


def gather(plan: Plan, sums: Sums) -> Sums:
    total, *raw = sums
    (segment,) = plan.frame.segments
    return (total, *segment.gather(*raw))


# long: a pass and its arguments
def _leverage(
    plan: Plan, part: Held, i: int, given: Any, family: int, beta: np.ndarray, raw: np.ndarray, lever: Any,
    out: np.ndarray = _NONE,
) -> Sums:  # fmt: skip
    (segment,) = part.design.segments
    return (segment.leverage(_rows(part, given, i), family, beta, raw, lever, 0, segment.runs, out),)


def _leverages(plan: Plan, part: Held, i: int, given: Any, family: int, beta: np.ndarray, levers: Any) -> Sums:
    return tuple(_leverage(plan, part, i, given, family, beta, raw, lever)[0] for raw, lever in levers)


def _turn(plan: Plan, sums: Sums) -> Sums:
    (segment,) = plan.frame.segments
    return (segment.turn(sums[0]),)


def _leverage_of_rows(plan: Plan, part: Held, i: int, *arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    hats = np.empty(part.design.rows)
    (score,) = _turn(plan, _leverage(plan, part, i, *arguments, out=hats))
    return score, part.design.unsort(hats)


def _predict(plan: Plan, part: Held, i: int, beta: np.ndarray) -> np.ndarray:
    return part.design.unsort(part.design.predict(beta))


def _ends(plan: Plan, part: Held, i: int, beta: np.ndarray) -> Sums:
    eta = part.design.predict(beta)
    return -float(eta.min(initial=np.inf)), float(eta.max(initial=-np.inf))  # a part may be without rows


def _extent(plan: Plan, part: Held, i: int, given: Any, family: str, direction: np.ndarray) -> Sums:
    return tuple(extent(part.design.predict(direction), _rows(part, given, i), family))


def _sums(plan: Plan, part: Held, i: int, cut: Any) -> tuple[np.ndarray, np.ndarray] | None:
    v, label = cut[i]
    here, own = np.unique(label, return_inverse=True)
    found = part.design.sums(v, own, len(here))
    return None if found is None else (here, found)


def _response(plan: Plan, part: Held, i: int, family: str) -> Sums:
    rows = part.rows
    w = rows.weights if rows.weights.size else np.ones(rows.y.size)
    constant, saturated = families.constant(family, rows), families.saturated(family, rows)
    sums = float(w.sum()), int(rows.weights.size > 0), float(w @ rows.y), float(rows.offset.sum())
    return int(np.sum(w > 0)), constant, saturated, *sums, int(rows.offset.size > 0)


def _weight(plan: Plan, part: Held, i: int) -> Sums:
    return (float(part.rows.weights.sum()),)
