"""One lasting pool of threads: NumPy, LAPACK and the row kernels release the GIL, so that threads are enough."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

POOL, WITHIN = "unnorm-rows", "unnorm-within"


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def pool(threads: int, within: bool = False) -> ThreadPoolExecutor:
    """The pool of so many threads, started when it is first asked for; `within`: the one that its tasks may use."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix=WITHIN if within else POOL)


def run_tasks(work: Callable[..., Any], tasks: Sequence[tuple], threads: int, within: bool = False) -> list:
    """`work` on every task: on the pool where there is more than one of each, else (and inside the pool) in turn.

    `within`: a task of the pool that calls this has a second pool for tasks of its own (a pool that waits for its own
    threads never ends): for passes that are long whatever the pool is busy with.
    """
    name = threading.current_thread().name
    nested = name.startswith(WITHIN) or (name.startswith(POOL) and not within)
    if threads <= 1 or len(tasks) <= 1 or nested:
        return [work(*task) for task in tasks]
    return list(pool(threads, name.startswith(POOL)).map(lambda task: work(*task), tasks))
