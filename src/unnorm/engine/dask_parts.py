"""Parts that live with the workers of a `dask.distributed` cluster: coefficients go out, sums come back.

A worker makes its groups of parts from their recipes and keeps them. The scheduler knows the recipes, so that parts of
a worker that dies are made again by another, and sums are taken in the same order as in one process: how many workers
there are, and what happens to them, changes no digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, final

import numpy as np

from .._base.blas import single_threaded
from .._base.extras import extra
from .._base.threads import cores
from .._base.workers import gathered, kept_by, large_graphs
from ..errors import WorkersError
from .parts import (
    Change,
    Changed,
    Count,
    Held,
    LocalParts,
    Parts,
    PerPart,
    Ready,
    Recipe,
    Sums,
    Work,
    add,
    count_of,
    group_size,
    group_total,
    local_parts,
)
from .plan import Plan

_SENT_ONCE = 50_000  # bytes of arguments from which workers hand them on to each other
_AT_ONCE = 32  # groups whose rows come to this process at a time
_FEW_ROWS, _FEW_PARTS = 2**17, 64  # up to which a pass here is shorter than what workers take to answer (20 ms)


@final
@dataclass(frozen=True)
class DaskParts(Parts):
    """Groups of parts as futures of a cluster."""

    plan: Plan  # pyright: ignore[reportIncompatibleVariableOverride]
    recipes: tuple[Recipe, ...] | None  # None: of rows that are with the workers alone
    client: Any
    sent: Any  # the plan, with the scheduler
    groups: tuple[Any, ...]  # a future each: tuple[Held, …]
    starts_of: tuple[int, ...]  # the number of the first part of each group, and how many parts there are

    @cached_property
    def counts(self) -> tuple[Count, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        found = self._gathered(lambda: self._map(_counts, list(self.groups)))
        return tuple(one for group in found for one in group)

    def total(self, work: Work, *arguments: Any, join: Any = add, finish: Any = None) -> Sums:
        whole: Sums | None = None
        for sums in self._passed(_total, range(len(self.groups)), arguments, work=work, join=join, finish=finish):
            whole = join(whole, sums)
        assert whole is not None
        return whole

    def each(self, work: Work, *arguments: Any) -> Iterator[Any]:
        for begin in range(0, len(self.groups), _AT_ONCE):
            some = range(begin, min(begin + _AT_ONCE, len(self.groups)))
            for found in self._passed(_each, some, arguments, work=work):
                yield from found

    def changed(self, changes: Sequence[Change], plan: Plan | None = None) -> DaskParts:
        recipes = None
        if self.recipes is not None:
            recipes = tuple(Changed(one, self.plan, change) for one, change in zip(self.recipes, changes, strict=True))
        groups = tuple(self._map(_changed, list(self.groups), self._shared(changes)))
        sent = self.sent if plan is None else kept_by(self.client, plan)
        return DaskParts(plan or self.plan, recipes, self.client, sent, groups, self.starts_of)

    def _shared(self, changes: Sequence[Change]) -> list[Any]:
        """Those of each group."""
        return [tuple(changes[a:b]) for a, b in pairwise(self.starts_of)]

    def some(self, every: int) -> Parts:
        """Few rows come to this process, where they are summed in the same order."""
        if self.starts[-1] > every * _FEW_ROWS or len(self.counts) > _FEW_PARTS:
            return super().some(every)
        shares = self._shared(self._takes(every))
        found = self._gathered(lambda: self._map(_changed, list(self.groups), shares))
        return local_parts(self.plan, [Ready(part) for group in found for part in group], np.inf, cores())

    def at_home(self, budget: float, threads: int) -> LocalParts:
        if self.recipes is None:
            raise WorkersError(
                "The rows of a Dask collection are with its workers, and this needs all of them in one process. Pass "
                "the data themselves, .compute(), where they fit into memory."
            )
        return local_parts(self.plan, self.recipes, budget, threads)

    def _passed(self, run: Any, some: range, arguments: tuple[Any, ...], **more: Any) -> list[Any]:
        """`run` on some of the groups, each with its own share of the arguments."""
        spans = [(self.starts_of[g], self.starts_of[g + 1]) for g in some]
        groups, firsts = [self.groups[g] for g in some], [a for a, _ in spans]
        whose = [isinstance(one, PerPart) for one in arguments]
        common: Any = tuple(None if own else one for own, one in zip(whose, arguments))
        shares = [tuple(one.of(a, b) for own, one in zip(whose, arguments) if own) for a, b in spans]
        if extra("dask.sizeof", "dask", "workers=").sizeof(common) > _SENT_ONCE:
            common = kept_by(self.client, common)
        same = [[one] * len(groups) for one in (self.sent, common)]
        work = partial(run, whose=tuple(whose), **more)
        return self._gathered(lambda: self._map(work, groups, firsts, shares, *same))

    def _map(self, run: Any, *columns: list[Any]) -> list[Any]:
        """Futures of `run` on each row of the columns. Nothing is passed by name: Dask makes a task of a large value,
        with that name as its key, and two passes would share it."""
        with large_graphs():
            return self.client.map(run, *columns, pure=False, batch_size=None)

    def _gathered(self, submit: Callable[[], list[Any]]) -> list[Any]:
        """What the workers compute, in order; a sentence where there is no worker left to compute it."""
        return gathered(self.client, submit)


def dask_parts(plan: Plan, recipes: Sequence[Recipe], client: Any) -> DaskParts:
    """The parts, made by the client's workers."""
    size = group_size(len(recipes))
    starts = tuple(range(0, len(recipes), size))
    with large_graphs():
        sent = kept_by(client, plan)
        made = tuple(client.submit(_made, sent, tuple(recipes[a : a + size]), pure=False) for a in starts)
    return DaskParts(plan, tuple(recipes), client, sent, made, (*starts, len(recipes)))


# what a worker runs


def _made(plan: Plan, recipes: tuple[Recipe, ...]) -> tuple[Held, ...]:
    with single_threaded():
        return tuple(recipe.make(plan) for recipe in recipes)


def _counts(parts: tuple[Held, ...]) -> list[Count]:
    return [count_of(part) for part in parts]


def _changed(parts: tuple[Held, ...], changes: tuple[Change, ...]) -> tuple[Held, ...]:
    with single_threaded():
        return tuple(change(part) for part, change in zip(parts, changes, strict=True))


def _joined(shares: tuple[Any, ...], common: tuple[Any, ...], whose: tuple[bool, ...]) -> tuple[Any, ...]:
    """A group's arguments: its own shares among those of all groups."""
    own = iter(shares)
    return tuple(next(own) if mine else one for mine, one in zip(whose, common))


# long: what a group is summed with
def _total(
    parts: tuple[Held, ...], first: int, shares: tuple[Any, ...], plan: Plan, common: tuple[Any, ...], *,
    whose: tuple[bool, ...], work: Work, join: Any, finish: Any,
) -> Sums:  # fmt: skip
    with single_threaded():
        sums = group_total(plan, parts, first, work, join, _joined(shares, common, whose))
        assert sums is not None
        return sums if finish is None else finish(plan, sums)


# long: as `_total`
def _each(
    parts: tuple[Held, ...], first: int, shares: tuple[Any, ...], plan: Plan, common: tuple[Any, ...], *,
    whose: tuple[bool, ...], work: Work,
) -> list[Any]:  # fmt: skip
    arguments = _joined(shares, common, whose)
    with single_threaded():
        return [work(plan, part, first + i, *arguments) for i, part in enumerate(parts)]
