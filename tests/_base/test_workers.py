"""Tasks by workers: the order and the numbers of one process, and a sentence where workers are gone."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unnorm._base import workers
from unnorm._base.counting import counting, listening, passed
from unnorm._base.threads import cores, on_one_core
from unnorm._base.workers import as_finished, gathered, mapped
from unnorm.errors import InputError, WorkersError


def drawn(scale: float, i: int, seed: int) -> float:
    time.sleep(0.02 * (5 - i))  # the last is finished first
    return scale * float(np.random.default_rng(seed).random())


def wrong(i: int) -> int:
    if i == 1:
        raise InputError("task 1 is wrong")
    return i


TASKS = [(i, 100 + i) for i in range(5)]


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_in_the_order_of_the_tasks(threads: int, client: Any) -> None:
    expected = [2.0 * float(np.random.default_rng(100 + i).random()) for i in range(5)]
    done: list[int] = []
    assert mapped(drawn, TASKS, common=(2.0,), threads=threads) == expected
    assert mapped(drawn, TASKS, client, common=(2.0,), done=lambda i, value: done.append(i)) == expected
    assert sorted(done) == list(range(5))


def _hears_interruptions() -> tuple[bool, int]:
    """Whether Ctrl-C reaches this process, and which it is."""
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getpid()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="POSIX signals")
def test_processes_of_our_own_have_the_same_results_and_leave_interruptions_to_us() -> None:
    """A terminal sends Ctrl-C to all processes: this one ends the others, and they say nothing."""
    pytest.importorskip("distributed")
    assert _hears_interruptions()[0]
    with workers.client_of(1) as client:
        assert mapped(pow, [(2, i) for i in range(4)], client) == [1, 2, 4, 8]
        ((heard, process),) = client.run(_hears_interruptions).values()
        assert not heard
        assert process != os.getpid()
        os.kill(process, signal.SIGINT)
        assert [one for _, one in client.run(_hears_interruptions).values()] == [process]
    assert _hears_interruptions()[0]


def test_an_error_of_a_task_is_raised_here(client: Any) -> None:
    for where in (None, client):
        with pytest.raises(InputError, match="task 1 is wrong"):
            mapped(wrong, [(i,) for i in range(3)], where)
    assert mapped(wrong, [(0,), (2,)], client) == [0, 2]  # the cluster goes on


def test_tasks_that_share_the_cores_have_one_each() -> None:
    assert mapped(cores, [(), ()], threads=2) == [1, 1]
    with on_one_core():
        assert cores() == 1
    assert mapped(cores, [()]) == [cores()]


def test_the_outermost_loop_is_counted() -> None:
    heard: list[tuple[int, int | None]] = []

    def inner(i: int) -> list[Any]:
        passed()
        return mapped(abs, [(i,), (-i,)])

    with listening(lambda done, of: heard.append((done, of))):
        assert mapped(inner, [(1,), (2,)]) == [[1, 1], [2, 2]]
        passed()
        passed()
    passed()
    with counting(3) as one_more:
        one_more()
    assert heard == [(0, 2), (1, 2), (2, 2), (1, None), (2, None)]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("PATIENCE", 1.0), ("STALL", 1.5), ("_LOOK", 0.2), ("CONNECT", 2.0)):
        monkeypatch.setattr(workers, name, seconds)


def cluster_of(n: int) -> Any:
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=n, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def test_a_cluster_whose_workers_are_gone_is_named(hasty: None) -> None:
    distributed = pytest.importorskip("distributed")
    with cluster_of(1) as cluster, distributed.Client(cluster) as client:
        address = next(iter(client.scheduler_info()["workers"]))
        closing = threading.Timer(0.6, lambda: cluster.scale(0))
        closing.start()
        with pytest.raises(WorkersError, match="has had no workers for 1 seconds") as said:
            list(as_finished(client, [(time.sleep, 4)]))
        assert address in str(said.value)  # the last that there was
        with pytest.raises(WorkersError, match="leave workers= out"):
            gathered(client, lambda: client.map(abs, [1], pure=False))


def test_workers_that_never_answer_are_named(hasty: None) -> None:
    distributed = pytest.importorskip("distributed")
    with cluster_of(1) as cluster, distributed.Client(cluster) as client:
        address = next(iter(client.scheduler_info()["workers"]))
        with pytest.raises(WorkersError, match=r"No result came for 2 seconds.*Stop them") as said:
            gathered(client, lambda: client.map(time.sleep, [4], pure=False))
        assert address in str(said.value)


def test_a_scheduler_that_ends_is_named(hasty: None) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = cluster_of(1)
    client = distributed.Client(cluster)
    try:
        closing = threading.Timer(0.5, cluster.close)
        closing.start()
        with pytest.raises(WorkersError, match=r"scheduler at .* (ended|has not answered)|has had no workers"):
            gathered(client, lambda: client.map(time.sleep, [3], pure=False))
        closing.join()
    finally:
        client.close()


def test_what_dask_raises_is_put_into_words(client: Any) -> None:
    distributed = pytest.importorskip("distributed")
    lost = pytest.raises(WorkersError, match=r"ended, or its connection was lost \(CancelledError\)\. Start it again")
    with lost, workers._in_words(client):
        raise CancelledError
    died = pytest.raises(WorkersError, match=r"died one after the other on the same task .*tcp://gone")
    with died, workers._in_words(client):
        raise distributed.KilledWorker("task-1", SimpleNamespace(address="tcp://gone"), 3)
