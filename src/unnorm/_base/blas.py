"""BLAS on one thread while our own threads run.

OpenBLAS starts threads for products of more than 64³ or so; inside our thread pool, or on a busy machine, they wait
for each other: products of 106 columns were measured 20 times slower.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_depth = 0
_before: list[int] = []


@cache
def _libraries() -> list[Any]:
    """A handle for every BLAS that is loaded; looked up once, since the search takes milliseconds."""
    import scipy.linalg  # noqa: F401  (brings its own BLAS, which must be found too)
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def single_threaded() -> Iterator[None]:
    """One BLAS thread inside the block; the earlier setting is restored when the last such block ends."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _before[:] = [library.num_threads for library in _libraries()]
            for library in _libraries():
                _set(library, 1)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for library, threads in zip(_libraries(), _before):
                    _set(library, threads)


def _set(library: Any, threads: int) -> None:
    """From whatever thread. Recent versions of threadpoolctl follow the first thread that sets a number, and no other:
    BLAS would keep one thread for good where the last block ends in another thread than the first began in."""
    release = getattr(library, "clear_controlling_thread", _nothing)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)  # the user's own threads may set it too


def _nothing(force: bool) -> None:
    """Of an older version, in which any thread may set it."""
