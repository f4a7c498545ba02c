"""One lasting pool of threads: NumPy, LAPACK and the row kernels release the GIL, so that threads are enough."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

POOL = "unnorm-rows"


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """The pool of so many threads, started when it is first asked for."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix=POOL)


def run_tasks(work: Callable[..., Any], tasks: Sequence[tuple], threads: int) -> list:
    """`work` on every task: on the pool where there is more than one of each, else (and inside the pool) in turn."""
    nested = threading.current_thread().name.startswith(POOL)  # a pool that waits for its own threads never ends
    if threads <= 1 or len(tasks) <= 1 or nested:
        return [work(*task) for task in tasks]
    return list(pool(threads).map(lambda task: work(*task), tasks))
