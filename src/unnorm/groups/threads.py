"""Levels side by side: threads of our own, since the engine's pool must not wait for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="unnorm-levels")


def spread(work: Callable[..., Any], tasks: Sequence[tuple], threads: int) -> list:
    """`work` over the tasks, in order; on threads where there is more than one of each. Do not nest."""
    if threads <= 1 or len(tasks) <= 1:
        return [work(*task) for task in tasks]
    return list(_pool(threads).map(lambda task: work(*task), tasks))
