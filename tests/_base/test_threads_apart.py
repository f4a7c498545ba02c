"""What all threads of a program share: errors that travel, listeners, pools and settings that stay apart."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from unnorm import errors
from unnorm._base import blas, threads
from unnorm._base.counting import counting, listening, passed
from unnorm._base.workers import large_graphs


@pytest.mark.parametrize(
    "kind", [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, BaseException)]
)
def test_errors_come_home_from_workers(kind: type[BaseException]) -> None:
    made = kind("out/fit", "No space left.") if kind is errors.WriteError else kind("A sentence.")
    home = pickle.loads(pickle.dumps(made))
    assert type(home) is kind
    assert str(home) == str(made)
    assert vars(home) == vars(made)


def test_threads_do_not_hear_each_other() -> None:
    """A listener hears of its own thread's loops, while and after another's begin and end."""
    heard: dict[str, list[tuple[int, int | None]]] = {"a": [], "b": []}
    turn = [threading.Event() for _ in range(3)]

    def first() -> None:
        with listening(lambda done, of: heard["a"].append((done, of))):
            turn[0].set()
            turn[1].wait(60)
            with counting(2) as one_more:
                one_more()
                passed()  # inside a loop that counts
                one_more()
        turn[2].set()

    thread = threading.Thread(target=first)
    thread.start()
    turn[0].wait(60)
    with listening(lambda done, of: heard["b"].append((done, of))):
        turn[1].set()
        turn[2].wait(60)
        passed()
        with counting(1) as one_more:
            one_more()
    thread.join()
    assert heard == {"a": [(0, 2), (1, 2), (2, 2)], "b": [(1, None), (0, 1), (1, 1)]}


def test_dask_s_setting_is_as_before_when_the_last_block_ends() -> None:
    dask = pytest.importorskip("dask")
    name = "distributed.admin.large-graph-warning-threshold"
    before = dask.config.get(name, None)
    one, other = large_graphs(), large_graphs()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)  # the first to begin is the first to end
    assert dask.config.get(name) == "1TB"
    other.__exit__(None, None, None)
    assert dask.config.get(name, None) == before


def test_an_interruption_leaves_the_pool_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two tasks: later tasks still have threads."""

    class Interrupting:
        def __init__(self, *_: Any) -> None: ...

        def __iter__(self) -> Interrupting:
            return self

        def __next__(self) -> int:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threads, "iter", Interrupting, raising=False)
        with pytest.raises(KeyboardInterrupt):
            threads.run_tasks(print, [(1,), (2,)], 2)
    assert getattr(threads._here, "depth", 0) == 0


def test_blas_has_its_threads_back_whichever_thread_is_the_last() -> None:
    """The last block may end in another thread than the first began in; and each thread may begin one."""
    libraries = blas._libraries()
    before = [one.num_threads for one in libraries]
    begun, end = threading.Event(), threading.Event()
    inside: list[list[int]] = []

    def other() -> None:
        with blas.single_threaded():
            inside.append([one.num_threads for one in libraries])
            begun.set()
            end.wait(60)

    try:
        for one in libraries:
            blas._set(one, 2)
        for _ in range(2):
            begun.clear()
            end.clear()
            thread = threading.Thread(target=other)
            with blas.single_threaded():
                thread.start()
                begun.wait(60)
            assert [one.num_threads for one in libraries] == [1] * len(libraries)  # the other's block lasts
            end.set()
            thread.join()
            assert [one.num_threads for one in libraries] == [2] * len(libraries)
            thread = threading.Thread(target=other)  # a thread that is the only one
            thread.start()
            thread.join()
            assert [one.num_threads for one in libraries] == [2] * len(libraries)
        assert inside == [[1] * len(libraries)] * 4
    finally:
        for one, threads_ in zip(libraries, before):
            blas._set(one, threads_)


FORKED = """
import os
from unnorm._base import threads

here = threads.pool(2)
here.submit(int).result()
child = os.fork()
if not child:
    os._exit(0 if threads.pool(2) is not here and threads.pool(2).submit(int).result(60) == 0 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert threads.pool(2) is here
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")
def test_a_forked_process_has_a_pool_of_its_own() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True)


def test_in_turn_one_thread_at_a_time_but_for_what_runs_apart() -> None:
    inside, met, most = [0], threading.Barrier(2, timeout=60), [0]

    def work() -> None:
        with threads.in_turn():
            for _ in range(3):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                threading.Event().wait(0.002)  # lets go of the interpreter, not of its turn
                inside[0] -= 1
                with threads.apart():
                    met.wait()  # both are here at once, or it would break

    both = [threading.Thread(target=work) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert most == [1]
    assert not met.broken


def test_a_turn_ends_with_an_error_inside_and_apart() -> None:
    def fails(where) -> None:
        with threads.in_turn(), where():
            raise ValueError("inside")

    for where in (nullcontext, threads.apart):
        with pytest.raises(ValueError, match="inside"):
            fails(where)
    with threads.apart():  # nobody's turn: nothing to let go of
        pass
    assert threads._baton.lock.acquire(timeout=1.0)
    threads._baton.lock.release()


several_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2 or threads._core_now()() < 0,
    reason="Linux, two cores",
)


@several_cores
def test_brief_tasks_keep_the_caller_on_its_core_and_the_others_off_it() -> None:
    before, met, count = os.sched_getaffinity(0), threading.Barrier(2, timeout=60), threads.cores()

    def task(_: int) -> tuple[str, set[int], int, list[str]]:
        met.wait()  # one task on each thread
        inside = threads.run_tasks(lambda _: threading.current_thread().name, [(0,), (1,)], 2, within=True)
        return threading.current_thread().name, os.sched_getaffinity(0), threads.cores(), inside

    found = threads.run_tasks(task, [(0,), (1,)], 2, brief=True)
    here = threading.current_thread().name
    mine = next(cores for name, cores, _, _ in found if name == here)
    others = next(cores for name, cores, _, _ in found if name != here)
    assert len(mine) == 1
    assert others == before - mine
    assert all(cores == count for _, _, cores, _ in found)  # a task that asks is told of all
    assert all(set(inside) == {name} for name, _, _, inside in found)  # a thread that it began would be kept for ever
    assert os.sched_getaffinity(0) == before
    after = threads.run_tasks(lambda _: (met.wait(), os.sched_getaffinity(0))[1], [(0,), (1,)], 2)
    assert after == [before, before]


@several_cores
def test_between_brief_tasks_threads_stay_off_the_callers_core(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    choose, before, met = os.sched_setaffinity, os.sched_getaffinity(0), threading.Barrier(2, timeout=60)

    def counted(pid: int, cores: set[int]) -> None:
        asked.append(threading.current_thread().name)
        choose(pid, cores)

    monkeypatch.setattr(os, "sched_setaffinity", counted)
    monkeypatch.setattr(threads, "_core_now", lambda: lambda: min(before))  # the caller is always there
    for _ in range(5):
        threads.run_tasks(lambda _: met.wait(), [(0,), (1,)], 2, brief=True)
    assert sum(name.startswith(threads.POOL) for name in asked) <= 2  # either thread of the pool, once
    whole = threads.run_tasks(lambda _: (met.wait(), os.sched_getaffinity(0))[1], [(0,), (1,)], 2)
    assert whole == [before, before]  # a task that is not brief may use all cores, and start threads that do


@several_cores
def test_threads_follow_a_caller_who_is_given_more_cores() -> None:
    """Threads that were started by a caller on one core, or were moved since."""
    before, met = os.sched_getaffinity(0), threading.Barrier(3, timeout=20)

    def where() -> list[set[int]]:
        return threads.run_tasks(lambda _: (met.wait(), os.sched_getaffinity(0))[1], [(0,), (1,), (2,)], 3)

    threads.pool.cache_clear()
    try:
        os.sched_setaffinity(0, {min(before)})
        assert where() == [{min(before)}] * 3
    finally:
        os.sched_setaffinity(0, before)
    assert where() == [before] * 3


@several_cores
def test_ctrl_c_as_cores_are_given_back_leaves_later_tasks_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    before, choose, here = os.sched_getaffinity(0), os.sched_setaffinity, threading.current_thread()

    def interrupted(pid: int, cores: set[int]) -> None:
        choose(pid, cores)
        if threading.current_thread() is here and cores == before:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_setaffinity", interrupted)
        with pytest.raises(KeyboardInterrupt):
            threads.run_tasks(abs, [(0,), (1,)], 2, brief=True)
    met = threading.Barrier(2, timeout=20)
    threads.run_tasks(lambda _: met.wait(), [(0,), (1,)], 2)  # in one thread it would break


@several_cores
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_brief_task_that_fails_leaves_cores_as_they_were(error: type[BaseException]) -> None:
    before, met = os.sched_getaffinity(0), threading.Barrier(2, timeout=60)

    def task(_: int) -> None:
        met.wait()
        raise error("inside")

    with pytest.raises(error, match="inside"):
        threads.run_tasks(task, [(0,), (1,)], 2, brief=True)
    assert os.sched_getaffinity(0) == before
    after = threads.run_tasks(lambda _: (met.wait(), os.sched_getaffinity(0))[1], [(0,), (1,)], 2)
    assert after == [before, before]


@several_cores
def test_where_cores_may_not_be_chosen_brief_tasks_run_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(pid: int, cores: set[int]) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", forbidden)
    assert threads.run_tasks(lambda i: i * i, [(i,) for i in range(5)], 2, brief=True) == [0, 1, 4, 9, 16]
    monkeypatch.setattr(threads, "_core_now", lambda: lambda: -1)
    assert threads.run_tasks(lambda i: i * i, [(i,) for i in range(5)], 2, brief=True) == [0, 1, 4, 9, 16]


def test_of_several_errors_the_first_task_s_is_raised_and_no_task_begins_after_one() -> None:
    failed, begun = threading.Event(), []

    def task(i: int) -> None:
        begun.append(i)
        if i == 0:
            failed.wait(20)  # the second fails before the first
        elif i == 1:
            failed.set()
        raise ValueError(f"task {i}")

    with pytest.raises(ValueError, match="task 0"):
        threads.run_tasks(task, [(i,) for i in range(20)], 2)
    assert len(begun) <= 3  # a thread may take a number before it hears of the error
