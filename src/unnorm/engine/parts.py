"""Rows in parts: blocks of rows that share a plan, each made from its recipe, and sums over them in one order.

A part is held in compact form where memory allows, and otherwise made again from its recipe in each pass. Sums are
taken over the parts of a group first, in order, and then over the groups: whether parts are held, how many threads or
workers there are, changes no digit.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from .._base.blas import single_threaded
from .._base.threads import run_tasks
from .design import Design
from .plan import Plan
from .segment import ResponseRows
from .spill import Spill

PART = 262_144  # rows of a part, about: a pass over it takes 10 ms, and its compact form 10 to 30 MB
_SHELVED = 0.75  # of the memory for parts; the rest is for changes of them, such as some of their rows
_LEAST_GROUP = 2  # parts whose sums are taken together, at least; a worker of a cluster holds groups

Sums = tuple[Any, ...]  # numbers and arrays
Work = Callable[..., Any]  # (plan, part, its number, *arguments) → sums


class Held(NamedTuple):
    """A part in compact form, its response in the design's row order."""

    design: Design
    rows: ResponseRows

    @property
    def bytes(self) -> int:
        given = self.rows
        return self.design.bytes + given.y.nbytes + given.weights.nbytes + given.offset.nbytes

    @property
    def runs(self) -> int:
        return self.design.segments[0].runs


class Count(NamedTuple):
    """What is known of a part without it."""

    rows: int
    runs: int
    context: np.ndarray  # the largest of each column that contexts have

    def __repr__(self) -> str:
        return f"Count({self.rows:,} rows, {self.runs:,} runs)"


def count_of(part: Held) -> Count:
    (segment,) = part.design.segments
    return Count(part.design.rows, segment.runs, np.abs(segment.z).max(axis=0, initial=0.0))


class Recipe(ABC):
    """How a part is made: the same each time, here or in another process."""

    numbers: int = 3  # of a row's response, weight and offset, those that there are

    @abstractmethod
    def make(self, plan: Plan) -> Held: ...


def add(a: Sums | None, b: Sums) -> Sums:
    """a + b, number by number."""
    return b if a is None else tuple(x + y for x, y in zip(a, b, strict=True))


def largest(a: Sums | None, b: Sums) -> Sums:
    """The larger of both, number by number."""
    return b if a is None else tuple(max(x, y) for x, y in zip(a, b, strict=True))


def group_total(
    plan: Plan, parts: Sequence[Held], first: int, work: Work, join: Any, arguments: tuple[Any, ...]
) -> Sums | None:
    """What `work` gives on the parts of one group, taken together."""
    total: Sums | None = None
    for i, part in enumerate(parts):
        total = join(total, work(plan, part, first + i, *arguments))
    return total


def group_size(parts: int) -> int:
    """Parts of a group, of so many: a matter of the rows alone, and not of who sums them.

    Few, so that a few million rows are enough for several workers; more where there are very many, as a scheduler has
    about a millisecond's work with each group: 10¹⁰ rows are 1,600 groups.
    """
    return max(_LEAST_GROUP, int(parts**0.5) // 8)


class Parts(ABC):
    """Parts that answer to `each` and `total`, wherever they are."""

    plan: Plan

    @property
    @abstractmethod
    def counts(self) -> tuple[Count, ...]:
        """Rows and runs of each part."""

    @abstractmethod
    def total(self, work: Work, *arguments: Any, join: Any = add, finish: Any = None) -> Sums:
        """`work` on every part, joined within each group, `finish(plan, ·)` applied to a group's, and joined again."""

    @abstractmethod
    def each(self, work: Work, *arguments: Any) -> Iterator[Any]:
        """`work` on every part, in order."""

    @abstractmethod
    def changed(self, changes: Sequence[Change], plan: Plan | None = None) -> Parts:
        """Each part with a change of its own; `plan`: what they have in common then, where it is not the same."""

    @abstractmethod
    def at_home(self, budget: float, threads: int) -> LocalParts:
        """The same parts in this process, where so many bytes of them may be held."""

    @property
    def starts(self) -> list[int]:
        """The first row of each part, and the number of rows."""
        return np.concatenate([[0], np.cumsum([one.rows for one in self.counts])]).astype(int).tolist()

    def some(self, every: int) -> Parts:
        """The parts with every so many-th of all runs only."""
        return self.changed(self._takes(every))

    def _takes(self, every: int) -> list[Take]:
        before = np.concatenate([[0], np.cumsum([one.runs for one in self.counts])])[:-1]
        return [Take(int(first), every) for first in -before % every]


@final
@dataclass
class _Shelf:
    """Parts in compact form, as many as fit."""

    budget: float
    total: float  # with what changes of the parts may take
    held: dict[int, Held] = field(default_factory=dict)
    spill: Spill | None = field(default_factory=Spill)  # the others, on the disk; None: they are made again
    full: bool = False
    bytes: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def offer(self, i: int, part: Held) -> None:
        with self.lock:
            if not self.full and i not in self.held and self.bytes + part.bytes <= self.budget:
                self.held[i] = part
                self.bytes += part.bytes
                return
            if i in self.held:
                return
            self.full = True  # parts are alike: the next will not fit either
        if self.spill is not None:
            self.spill.offer(i, part)

    def part(self, i: int) -> Held | None:
        """Part i, if it is held or written."""
        found = self.held.get(i)
        return self.spill.part(i) if found is None and self.spill is not None else found


@final
@dataclass(frozen=True)
class LocalParts(Parts):
    """Parts of this process."""

    plan: Plan  # pyright: ignore[reportIncompatibleVariableOverride]
    recipes: tuple[Recipe, ...]
    threads: int
    shelf: _Shelf
    known: dict[int, Count]  # of parts that were made

    @property
    def counts(self) -> tuple[Count, ...]:
        if len(self.known) < len(self.recipes):
            for _ in self.each(_nothing):
                pass
        return tuple(self.known[i] for i in range(len(self.recipes)))

    def part(self, i: int) -> Held:
        """Part i, from the shelf or made."""
        found = self.shelf.part(i)
        if found is None:
            found = self.recipes[i].make(self.plan)
            self.known[i] = count_of(found)
            self.shelf.offer(i, found)
        return found

    def _work(self, work: Work, i: int, arguments: tuple[Any, ...]) -> Any:
        return work(self.plan, self.part(i), i, *arguments)

    def each(self, work: Work, *arguments: Any) -> Iterator[Any]:
        wide = 2 * self.threads  # parts at a time: enough for every thread, and few enough to be held
        for begin in range(0, len(self.recipes), wide):
            window = [(i,) for i in range(begin, min(begin + wide, len(self.recipes)))]
            with single_threaded():
                found = run_tasks(lambda i: self._work(work, i, arguments), window, self.threads)
            yield from found

    def total(self, work: Work, *arguments: Any, join: Any = add, finish: Any = None) -> Sums:
        whole: Sums | None = None
        group: Sums | None = None
        size = group_size(len(self.recipes))
        for i, found in enumerate(self.each(work, *arguments)):
            group = join(group, found)
            if (i + 1) % size == 0 or i + 1 == len(self.recipes):
                assert group is not None
                whole = join(whole, group if finish is None else finish(self.plan, group))
                group = None
        assert whole is not None
        return whole

    def changed(self, changes: Sequence[Change], plan: Plan | None = None) -> LocalParts:
        recipes = [Changed(Shelved(self, i), self.plan, change) for i, change in enumerate(changes)]
        room = max(self.shelf.total - self.shelf.bytes, (1.0 - _SHELVED) * self.shelf.total)
        return local_parts(plan or self.plan, recipes, room, self.threads)

    def at_home(self, budget: float, threads: int) -> LocalParts:
        return self


def local_parts(plan: Plan, recipes: Sequence[Recipe], budget: float, threads: int) -> LocalParts:
    """Parts of this process, of which so many bytes are kept in compact form."""
    return LocalParts(plan, tuple(recipes), threads, _Shelf(_SHELVED * budget, budget), {})


@final
@dataclass(frozen=True)
class Shelved(Recipe):
    """A part of other parts in this process: held, written, or made."""

    parts: LocalParts
    i: int

    def make(self, plan: Plan) -> Held:
        return self.parts.part(self.i)


@final
@dataclass(frozen=True)
class Ready(Recipe):
    """A part that is there."""

    part: Held

    def make(self, plan: Plan) -> Held:
        return self.part


class Change(ABC):
    """What makes another part of a part."""

    @abstractmethod
    def __call__(self, part: Held) -> Held: ...


@final
@dataclass(frozen=True)
class Changed(Recipe):
    """A part with a change."""

    whole: Recipe
    plan: Plan  # the whole part's
    change: Change

    def make(self, plan: Plan) -> Held:
        return self.change(self.whole.make(self.plan))


@final
@dataclass(frozen=True)
class Take(Change):
    """Runs first, first + every, … of a part."""

    first: int
    every: int

    def __call__(self, part: Held) -> Held:
        design, rows = part.design.take(lambda k, segment: np.arange(self.first, segment.runs, self.every))
        given = part.rows
        return Held(design, ResponseRows(*(a[rows] if a.size else a for a in (given.y, given.weights, given.offset))))


@final
@dataclass(frozen=True)
class Less(Change):
    """Columns less a mean for each context: as `Design.less`."""

    mean: np.ndarray  # (contexts of the part, p)
    context: np.ndarray  # (n,) the row of `mean`, in the caller's order
    live: np.ndarray  # the columns of all parts where some mean is not zero

    def __call__(self, part: Held) -> Held:
        return part._replace(design=part.design.less(self.mean, self.context, self.live))


@final
@dataclass(frozen=True)
class LessOfContexts(Change):
    """Columns less a mean for each context, and a number of each context in the offset; rows of a context lie together,
    as many in each."""

    mean: np.ndarray  # (contexts of the part, columns of `index`)
    index: np.ndarray  # the coefficients that it speaks of, in the terms' coordinates
    shift: np.ndarray  # (contexts of the part,)
    each: int  # rows of a context
    live: np.ndarray  # the columns, flat, that `index` reaches

    def __call__(self, part: Held) -> Held:
        context = np.repeat(np.arange(len(self.shift)), self.each)
        mean = np.zeros((len(self.shift), part.design.size))
        mean[:, self.index] = self.mean
        more, given = part.design.sort(self.shift[context]), part.rows
        offset = given.offset + more if given.offset.size else more
        rows = ResponseRows(given.y, given.weights, np.require(offset, np.float64, ("C", "W")))
        return Held(part.design.less(mean, context, self.live), rows)


@final
@dataclass(frozen=True)
class Remaining(Change):
    """y − Xβ in place of the response y."""

    beta: np.ndarray  # flat

    def __call__(self, part: Held) -> Held:
        return Held(*part.design.remaining(part.rows, self.beta))


class PerPart(tuple):
    """An argument of which each part reads its own entry; a worker gets those of its parts."""

    def of(self, first: int, last: int) -> PerPart:
        """The same with the entries of parts first … last − 1 only."""
        return PerPart(one if first <= i < last else None for i, one in enumerate(self))


def _nothing(plan: Plan, part: Held, i: int) -> None:
    return None
