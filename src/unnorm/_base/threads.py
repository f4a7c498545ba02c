"""One lasting pool of threads: NumPy, LAPACK and the row kernels release the GIL, so that threads are enough."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

POOL, WITHIN = "unnorm-rows", "unnorm-within"
TURN = 2e-4  # seconds that a thread may keep the interpreter while another waits for it: see `quick_turns`
BRIEF = 200_000  # rows up to which a pass takes some milliseconds: see `run_tasks`
# .depth: calls of `run_tasks` that the thread is inside of; .alone: in `on_one_core`; .allowed: its cores, where it is
# kept on one of them or off one
_here = threading.local()


@contextmanager
def on_one_core() -> Iterator[None]:
    """What this thread runs inside takes one core: the others have tasks of their own.

    >>> with on_one_core():
    ...     cores()
    1
    """
    before = getattr(_here, "alone", False)
    _here.alone = True
    try:
        yield
    finally:
        _here.alone = before


def cores() -> int:
    """The cores this process may use; one inside `on_one_core`."""
    if getattr(_here, "alone", False):
        return 1
    return len(_allowed()) or os.cpu_count() or 1


def _allowed() -> set[int]:
    """The cores that the calling thread may use, whichever it is kept on; none where the system does not say."""
    kept = getattr(_here, "allowed", None)
    return kept or (os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set())


class _Turns:
    """How many blocks of `quick_turns` there are, and the interval before the first."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, 0.0


_turns = _Turns()


@contextmanager
def quick_turns() -> Iterator[None]:
    """While the block lasts, threads take turns with the interpreter in `TURN` and not in Python's 5 ms.

    A thread that comes back from compiled code waits so long for one that is in Python (a figure, another fit), and
    comes back thousands of times in a fit: beside a thread that never lets go, a fit of 1.2 s waits 1.4 s with 5 ms,
    .3 s with .5 ms.
    """
    with _turns.lock:
        if _turns.inside == 0:
            _turns.before = sys.getswitchinterval()
            sys.setswitchinterval(min(_turns.before, TURN))
        _turns.inside += 1
    try:
        yield
    finally:
        with _turns.lock:
            _turns.inside -= 1
            if _turns.inside == 0:
                sys.setswitchinterval(_turns.before)


class _Baton:
    """What the one thread has that is not in compiled code."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.lock = threading.Lock()


_baton = _Baton()


@contextmanager
def in_turn() -> Iterator[None]:
    """One thread at a time, but for what it runs inside `apart`.

    Two fits side by side that both are in Python take the interpreter from each other thousands of times: every
    operation of NumPy lets go of it for some microseconds, and a thread that waits for it wakes in fifty. 14 fits on
    two cores: .84 of the wall and .80 of the processor time.
    """
    if getattr(_here, "baton", False):  # inside another
        yield
        return
    with _baton.lock:
        _here.baton = True
        try:
            yield
        finally:
            _here.baton = False


@contextmanager
def apart() -> Iterator[None]:
    """Compiled code that takes a while and needs no interpreter: inside `in_turn`, another thread may go on."""
    if not getattr(_here, "baton", False):
        yield
        return
    _here.baton = False
    _baton.lock.release()
    try:
        yield
    finally:
        _baton.lock.acquire()
        _here.baton = True


@cache
def _core_now() -> Callable[[], int]:
    """Which core the calling thread is on; −1 where the system does not say."""
    import ctypes

    try:
        return ctypes.PyDLL(None).sched_getcpu  # PyDLL keeps the interpreter: the call takes no time
    except (AttributeError, OSError, TypeError):
        return lambda: -1


@contextmanager
def _kept(core: int, allowed: set[int], on: bool) -> Iterator[None]:
    """While the block lasts, the calling thread stays `on` a core, or (a thread of the pool) off it, if it may use
    another; −1: on any of the `allowed`.

    In a virtual machine a core that sleeps counts as taken, so that a thread is woken on the core of the one that wakes
    it: both then share that core for as long as a short fit lasts, and the other sleeps on.
    """
    some = allowed & {core} if on else allowed - {core}
    apart = core >= 0 and bool(some) and len(allowed) > 1
    if on and not apart:
        yield
        return
    _here.allowed = allowed if apart else None
    try:
        if on:
            _use(some)
        else:
            _leave(some if apart else allowed)
        yield
    finally:
        try:
            if on:
                _use(allowed)
        finally:  # a second Ctrl-C
            _here.allowed = None


def _use(some: set[int]) -> None:
    """The calling thread uses these cores."""
    with suppress(OSError):  # forbidden: nothing is lost but time
        os.sched_setaffinity(0, some)


def _leave(some: set[int]) -> None:
    """A thread of the pool uses these cores until a task asks for others: were it let go after each task, the next one
    would wake it on the caller's core again, which it must take from the caller and leave. One subject of the paper's
    after a pause: 26.1 ms so, 24.2 with what is left (mean of the medians of ten processes, in turn). The system is
    asked what it has: a user may have changed that, and threads have the cores of the caller that started them."""
    if some and os.sched_getaffinity(0) != some:  # none: the system does not say
        _use(some)


@cache
def pool(threads: int, within: bool = False) -> ThreadPoolExecutor:
    """The pool of so many threads, started when it is first asked for; `within`: the one that its tasks may use."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix=WITHIN if within else POOL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # threads do not live on in a forked process,
    os.register_at_fork(after_in_child=_turns.begin)  # and a lock that one of them held is never released
    os.register_at_fork(after_in_child=_baton.begin)


def run_tasks(
    work: Callable[..., Any], tasks: Sequence[tuple], threads: int, within: bool = False, brief: bool = False
) -> list:
    """`work` on every task: on the pool where there is more than one of each, else (and inside the pool) in turn. The
    calling thread takes its share.

    `within`: a task of the pool that calls this has a second pool for tasks of its own (a pool that waits for its own
    threads never ends): for passes that are long whatever the pool is busy with.

    `brief`: tasks of some milliseconds, too short for the system to move threads apart, which start neither threads nor
    processes: the caller keeps its core, and the others keep off it. A fit of 29,148 rows on two cores of a virtual
    machine, after a pause: 38 ms without, 32 with.
    """
    name = threading.current_thread().name
    depth = getattr(_here, "depth", 0) + name.startswith((POOL, WITHIN))
    kept = getattr(_here, "allowed", None)  # a thread that is started now would be kept there too, for ever
    if threads <= 1 or len(tasks) <= 1 or name.startswith(WITHIN) or depth > within or kept:
        return [work(*task) for task in tasks]
    left, found = iter(range(len(tasks))), [None] * len(tasks)
    failed: dict[int, BaseException] = {}
    core, allowed = _core_now()() if brief else -1, _allowed()

    def share(mine: bool = False) -> None:
        with _kept(core, allowed, on=mine):
            for i in left:  # one thread at a time takes the next number
                if failed:
                    return
                try:
                    found[i] = work(*tasks[i])
                except BaseException as error:  # raised below, by the caller
                    failed[i] = error

    # each in the caller's context: what it hushes is hushed there too
    count = min(threads, len(tasks)) - 1
    before = getattr(_here, "depth", 0)
    with quick_turns():
        helpers = [pool(threads, depth > 0).submit(copy_context().run, share) for _ in range(count)]
        _here.depth = before + 1
        try:
            share(mine=True)
        finally:  # Ctrl-C may come between two tasks
            _here.depth = before
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()
    if failed:
        raise failed[min(failed)]  # tasks are begun in order: the error that they have in turn
    return found
