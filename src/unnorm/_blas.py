"""BLAS on one thread while our own threads run.

OpenBLAS starts threads for products of more than 64³ or so; inside our thread pool, or on a busy machine, they wait
for each other: products of 106 columns were measured 20 times slower. NumPy's and SciPy's wheels carry an OpenBLAS
each; where another BLAS is used, nothing happens.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_lock = threading.Lock()
_depth = 0
_before: list[int] = []


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """(get, set) of the number of threads, for each OpenBLAS that NumPy and SciPy brought along."""
    import numpy
    import scipy

    found = []
    for module in (numpy, scipy):
        home = Path(str(module.__file__)).parent
        folders = (home.parent / f"{module.__name__}.libs", home / ".dylibs")
        for path in (p for folder in folders if folder.is_dir() for p in folder.iterdir() if "openblas" in p.name):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for prefix in ("scipy_openblas", "openblas"):
                for suffix in ("64_", ""):
                    try:
                        get = getattr(library, f"{prefix}_get_num_threads{suffix}")
                        put = getattr(library, f"{prefix}_set_num_threads{suffix}")
                    except AttributeError:
                        continue
                    get.restype, get.argtypes = ctypes.c_int, []
                    put.restype, put.argtypes = None, [ctypes.c_int]
                    found.append((get, put))
                    break
                else:
                    continue
                break
    return found


@contextmanager
def single_threaded() -> Iterator[None]:
    """One BLAS thread inside the block; what was set before comes back when the last such block ends."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _before[:] = [get() for get, _ in _libraries()]
            for _, put in _libraries():
                put(1)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for (_, put), threads in zip(_libraries(), _before):
                    put(threads)
