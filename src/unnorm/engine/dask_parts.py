"""Parts that live with the workers of a `dask.distributed` cluster: coefficients go out, sums come back.

A worker makes its groups of parts from their recipes and keeps them. The scheduler knows the recipes, so that parts of
a worker that dies are made again by another, and sums are taken in the same order as in one process: how many workers
there are, and what happens to them, changes no digit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.blas import single_threaded
from .._base.extras import extra
from ..errors import InputError, WorkersError
from .parts import (
    GROUP,
    Change,
    Changed,
    Count,
    Held,
    LocalParts,
    Parts,
    PerPart,
    Recipe,
    Sums,
    Work,
    add,
    count_of,
    group_total,
    local_parts,
)
from .plan import Plan

PATIENCE = 60.0  # seconds without a single worker after which a fit is given up
CONNECT = 10.0  # seconds that a scheduler has to answer
_LOOK = 2.0  # seconds between looks at the workers
_ANSWERS = (15.0, 60.0, 240.0)  # seconds in which sums that are computed have to arrive


@final
@dataclass(frozen=True)
class DaskParts(Parts):
    """Groups of parts as futures of a cluster."""

    plan: Plan  # pyright: ignore[reportIncompatibleVariableOverride]
    recipes: tuple[Recipe, ...]
    client: Any
    sent: Any  # the plan, with the scheduler
    groups: tuple[Any, ...]  # a future each: tuple[Held, …]

    @cached_property
    def counts(self) -> tuple[Count, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        found = self._gathered([(_counts, group) for group in self.groups])
        return tuple(one for group in found for one in group)

    def total(self, work: Work, *arguments: Any, join: Any = add, finish: Any = None) -> Sums:
        calls = [
            (_total, self.sent, group, GROUP * g, work, join, _own(arguments, g), finish)
            for g, group in enumerate(self.groups)
        ]
        whole: Sums | None = None
        for sums in self._gathered(calls):
            whole = join(whole, sums)
        assert whole is not None
        return whole

    def each(self, work: Work, *arguments: Any) -> Iterator[Any]:
        for g, group in enumerate(self.groups):
            yield from self._gathered([(_each, self.sent, group, GROUP * g, work, _own(arguments, g))])[0]

    def changed(self, changes: Sequence[Change], plan: Plan | None = None) -> DaskParts:
        recipes = tuple(Changed(one, self.plan, change) for one, change in zip(self.recipes, changes, strict=True))
        groups = tuple(
            self._submit(_changed, group, tuple(changes[GROUP * g : GROUP * (g + 1)]))
            for g, group in enumerate(self.groups)
        )
        sent = self.sent if plan is None else self._submit(_same, plan)
        return DaskParts(plan or self.plan, recipes, self.client, sent, groups)

    def at_home(self, budget: float, threads: int) -> LocalParts:
        return local_parts(self.plan, self.recipes, budget, threads)

    def _submit(self, function: Any, *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def _gathered(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        """What the workers compute, in order; a sentence where there is no worker left to compute it.

        A client that asks for a result while the worker that has it dies may wait for ever; sums are then asked for
        anew, which costs a pass and changes nothing.
        """
        return gathered(self.client, calls)


def gathered(client: Any, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What the workers compute, (function, arguments …) each, in order; see `DaskParts._gathered`."""
    distributed = extra("distributed", "dask", "workers=")
    for patience in _ANSWERS:
        futures = [client.submit(*call, pure=False) for call in calls]
        _wait(client, futures)
        try:
            found = within(patience, lambda futures=futures: client.gather(futures))
        except distributed.KilledWorker as error:
            raise WorkersError(
                f"Several workers died one after the other on the same rows ({error}). As a rule they ran out of "
                "memory: give each more, or start more of them."
            ) from error
        if found is not None:
            return found
    raise WorkersError(f"The workers of {client.scheduler.address} computed results and did not send them.")


def _wait(client: Any, futures: list[Any]) -> None:
    distributed, alone = extra("distributed", "dask", "workers="), 0.0
    while True:
        try:
            distributed.wait(futures, timeout=_LOOK)
            return
        except TimeoutError:
            alone = 0.0 if client.scheduler_info()["workers"] else alone + _LOOK
            if alone >= PATIENCE:
                raise WorkersError(
                    f"All workers of {client.scheduler.address} are gone for {PATIENCE:.0f} seconds: start some, or "
                    "leave workers= out."
                ) from None


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What the call returns or raises, or None where it takes longer."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:  # raised below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return found[0] if found else None


def dask_parts(plan: Plan, recipes: Sequence[Recipe], client: Any) -> DaskParts:
    """The parts, made by the client's workers."""
    dask = extra("dask", "dask", "workers=")
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        sent = client.submit(_same, plan, pure=False)
        groups = [recipes[a : a + GROUP] for a in range(0, len(recipes), GROUP)]
        made = tuple(client.submit(_made, sent, tuple(group), pure=False) for group in groups)
    return DaskParts(plan, tuple(recipes), client, sent, made)


@contextmanager
def client_of(workers: Any) -> Iterator[Any]:
    """A client: the user's own, of the cluster at an address, or of so many processes that end with the block."""
    distributed = extra("distributed", "dask", "workers=")
    if isinstance(workers, distributed.Client):
        yield workers
        return
    if isinstance(workers, str):
        if "://" not in workers:
            raise InputError(
                f"workers must be a number, an address such as 'tcp://host:8786' or a client; got {workers!r}."
            )
        try:
            with distributed.Client(workers, timeout=CONNECT) as client:
                yield client
        except OSError as error:
            raise WorkersError(f"There is no scheduler at {workers}: {error}.") from error
        return
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 1:
        raise InputError(
            f"workers must be a number of processes, an address or a dask.distributed client; got {workers!r}."
        )
    options = {"n_workers": int(workers), "threads_per_worker": 1, "dashboard_address": ":0"}
    options |= {"silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def _own(arguments: tuple[Any, ...], g: int) -> tuple[Any, ...]:
    """The arguments as the parts of one group need them."""
    return tuple(one.of(GROUP * g, GROUP * (g + 1)) if isinstance(one, PerPart) else one for one in arguments)


# what a worker runs


def _same(plan: Plan) -> Plan:
    return plan


def _made(plan: Plan, recipes: tuple[Recipe, ...]) -> tuple[Held, ...]:
    with single_threaded():
        return tuple(recipe.make(plan) for recipe in recipes)


def _counts(parts: tuple[Held, ...]) -> list[Count]:
    return [count_of(part) for part in parts]


def _changed(parts: tuple[Held, ...], changes: tuple[Change, ...]) -> tuple[Held, ...]:
    with single_threaded():
        return tuple(change(part) for part, change in zip(parts, changes, strict=True))


# long: what a group is summed with
def _total(
    plan: Plan, parts: tuple[Held, ...], first: int, work: Work, join: Any, arguments: tuple[Any, ...], finish: Any
) -> Sums:
    with single_threaded():
        sums = group_total(plan, parts, first, work, join, arguments)
        assert sums is not None
        return sums if finish is None else finish(plan, sums)


def _each(plan: Plan, parts: tuple[Held, ...], first: int, work: Work, arguments: tuple[Any, ...]) -> list[Any]:
    with single_threaded():
        return [work(plan, part, first + i, *arguments) for i, part in enumerate(parts)]
