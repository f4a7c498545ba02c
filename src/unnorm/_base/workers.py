"""Tasks that do not depend on each other: here, or with the workers of a `dask.distributed` cluster.

Results come in the order of the tasks, and a task has its seed among its arguments: how many workers there are, and
what happens to them, changes no digit. A worker that dies loses time and nothing else, as its tasks go to another.
"""

from __future__ import annotations

import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import InputError, WorkersError, listing
from .blas import single_threaded
from .counting import counting
from .extras import extra
from .shield import shielded
from .threads import on_one_core, run_tasks

PATIENCE = 60.0  # seconds without a single worker, or without the scheduler, after which a fit is given up
STALL = 900.0  # seconds in which not one group of rows is summed, after which a fit is given up
CONNECT = 10.0  # seconds that a scheduler has to answer
_LOOK = 2.0  # seconds between looks at the workers
_ANSWERS = (15.0, 60.0, 240.0)  # seconds in which results that are computed have to arrive

Work = Callable[..., Any]


# long: where tasks run
def mapped(
    work: Work, tasks: Sequence[tuple[Any, ...]], workers: Any = None, *, common: tuple[Any, ...] = (),
    threads: int = 1, done: Callable[[int, Any], None] | None = None,
) -> list[Any]:  # fmt: skip
    """`work(*common, *task)` of every task, in their order.

    Args:
        work: a function of a module; with workers it runs elsewhere.
        tasks: arguments, a seed among them where anything is random.
        workers: None (here), a number of processes, a client, or an address.
        common: arguments of all tasks, which are sent once.
        threads: of this process, where there are no workers.
        done: called with the number of a task and its result, as each is finished.

    >>> mapped(pow, [(2, 3), (3, 2)])
    [8, 9]
    """
    found: list[Any] = [None] * len(tasks)
    with counting(len(tasks)) as one_more:

        def finish(i: int, result: Any) -> None:
            found[i] = result
            if done is not None:
                done(i, result)
            one_more()

        if workers is None:
            run = work if threads == 1 else partial(one_of_many, work)

            def here(i: int) -> None:
                finish(i, run(*common, *tasks[i]))

            run_tasks(here, [(i,) for i in range(len(tasks))], threads)
            return found
        with client_of(workers) as client, large_graphs():
            sent = [kept_by(client, one) for one in common]
            for i, result in as_finished(client, [(one_of_many, work, *sent, *task) for task in tasks]):
                finish(i, result)
    return found


def one_of_many(work: Work, *arguments: Any) -> Any:
    """`work` on one core, with or without workers: so that its sums have the same digits."""
    with on_one_core(), single_threaded():
        return work(*arguments)


def kept_by(client: Any, value: Any) -> Any:
    """The value as a future that many calls can take; the scheduler sends it again where a worker that has it dies."""
    with large_graphs():
        return client.submit(_same, value, pure=False)


_graphs = threading.Lock()
_depth, _setting = 0, None  # how many blocks of all threads are open, and what the first has set


@contextmanager
def large_graphs() -> Iterator[None]:
    """While the block lasts Dask does not warn of large arguments: rows and observations are meant to travel.

    Dask's settings are those of all threads: they are as before when the last such block ends.
    """
    global _depth, _setting
    config = extra("dask", "dask", "workers=").config
    with _graphs:
        _depth += 1
        if _depth == 1:
            _setting = config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
    try:
        yield
    finally:
        with _graphs:
            _depth -= 1
            if _depth == 0:
                assert _setting is not None
                _setting.__exit__(None, None, None)


def _same(value: Any) -> Any:
    return value


def gathered(client: Any, submit: Callable[[], list[Any]]) -> list[Any]:
    """What the workers compute, in order: the sums of one pass over rows. `submit` gives their futures.

    A client that asks for a result while the worker that has it dies may wait for ever; results are then asked for
    anew, which costs a pass and changes nothing.
    """
    distributed = extra("distributed", "dask", "workers=")
    watch = Watch(client, STALL)
    for patience in _ANSWERS:
        with _in_words(client):
            futures = submit()
            while True:
                try:
                    distributed.wait(futures, timeout=_LOOK)
                    break
                except TimeoutError:
                    watch.look(sum(future.done() for future in futures))
            found = within(patience, lambda futures=futures: client.gather(futures))
        if found is not None:
            return found
    raise WorkersError(f"The workers of {client.scheduler.address} computed results and did not send them.")


def as_finished(client: Any, calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """(i, what the workers compute of call i), as they are finished; what is left is cancelled when the caller stops.

    Calls may take hours, so that there is no limit of time while there are workers.
    """
    watch, ready = Watch(client, None), queue.SimpleQueue()
    running: dict[str, tuple[int, Any, int]] = {}  # key → number of the call, its future, attempts

    def submit(i: int, attempt: int) -> None:
        future = client.submit(*calls[i], pure=False)
        running[future.key] = i, future, attempt
        future.add_done_callback(lambda one: ready.put(one.key))

    try:
        with _in_words(client):
            for i in range(len(calls)):
                submit(i, 0)
            while running:
                try:
                    key = ready.get(timeout=_LOOK)
                except queue.Empty:
                    watch.look(0)
                    continue
                i, future, attempt = running.pop(key)
                found = within(_ANSWERS[attempt], lambda future=future: [client.gather(future)])
                if found is not None:
                    yield i, found[0]
                elif attempt + 1 < len(_ANSWERS):
                    submit(i, attempt + 1)
                else:
                    raise WorkersError(f"A worker of {client.scheduler.address} has a result and does not send it.")
    finally:
        if running:
            with suppress(Exception):  # of a cluster that is gone
                within(CONNECT, lambda: client.cancel([future for _, future, _ in running.values()]))


@contextmanager
def _in_words(client: Any) -> Iterator[None]:
    """A sentence in place of what Dask raises where workers died one after the other, or the scheduler is gone."""
    distributed = extra("distributed", "dask", "workers=")
    try:
        yield
    except distributed.KilledWorker as error:
        raise WorkersError(
            f"Several workers died one after the other on the same task ({error}). As a rule they ran out of memory: "
            "give each more, or start fewer of them on a machine."
        ) from error
    except (CancelledError, distributed.comm.CommClosedError) as error:
        raise WorkersError(
            f"The scheduler at {client.scheduler.address} ended, or its connection was lost "
            f"({(str(error) or type(error).__name__).splitlines()[0]}). {REMEDY}"
        ) from error


REMEDY = "Start it again and repeat the call, or leave workers= out (memory= bounds what one process takes)."


_LAST: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()  # the workers of a client when last seen


@final
class Watch:
    """Looks at a cluster while nothing comes back, and ends the waiting with a sentence."""

    def __init__(self, client: Any, stall: float | None) -> None:
        self._client = client
        self._stall = stall
        if client not in _LAST:
            _LAST[client] = _workers(client) or ()
        self._alone = self._moved = time.monotonic()
        self._done = -1

    def look(self, done: int) -> None:
        """`done`: how many results there are so far."""
        now, client = time.monotonic(), self._client
        found = _workers(client)
        if found:
            _LAST[client], self._alone = found, now
        where = client.scheduler.address
        if now - self._alone >= PATIENCE:
            if found is None:
                raise WorkersError(f"The scheduler at {where} has not answered for {PATIENCE:.0f} seconds. {REMEDY}")
            last = f" (the last were {listing(_LAST[client], most=4)})" if _LAST[client] else ""
            raise WorkersError(
                f"The cluster at {where} has had no workers for {PATIENCE:.0f} seconds{last}. Start some and repeat "
                "the call, or leave workers= out."
            )
        if done != self._done:
            self._done, self._moved = done, now
        if self._stall is not None and now - self._moved >= self._stall:
            busy = (
                within(CONNECT, lambda: [one for one, tasks in client.processing().items() if tasks]) or _LAST[client]
            )
            raise WorkersError(
                f"No result came for {self._stall:.0f} seconds: {listing(busy, most=4)} of {where} have work and do "
                "not finish it. Stop them (other workers take over their rows) and repeat the call."
            )


def _workers(client: Any) -> tuple[str, ...] | None:
    """The addresses of the workers; None where the scheduler does not answer."""
    return within(CONNECT, lambda: tuple(client.scheduler_info()["workers"]))


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
            client = distributed.Client(workers, timeout=CONNECT)
        except OSError as error:
            raise WorkersError(f"There is no scheduler at {workers}: {error}.") from error
        with client:
            yield client
        return
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 1:
        raise InputError(
            f"workers must be a number of processes, an address or a dask.distributed client; got {workers!r}."
        )
    options = {"n_workers": int(workers), "threads_per_worker": 1, "dashboard_address": ":0"}
    options |= {"silence_logs": logging.CRITICAL}
    with shielded(), _deaf():  # a cluster that is half there cannot be ended without complaints
        cluster = distributed.LocalCluster(**options)
    with cluster, distributed.Client(cluster) as client:
        yield client


@contextmanager
def _deaf() -> Iterator[None]:
    """Threads and processes that start within do not hear Ctrl-C, which a terminal sends to all of them: this process
    does, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # the thread that starts it hears Ctrl-C again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
