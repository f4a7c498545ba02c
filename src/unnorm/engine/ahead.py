"""The first fit of an installation: the two largest kernels compiled in processes beside this one.

Numba compiles one function at a time in a process, and keeps what it has compiled on disk. So where that cache is
empty, two processes compile `cross_products` and `leverages` into it while this one imports, reads data and compiles
the small kernels; `kernel` waits for them and loads what they wrote. Nothing depends on it: where a process cannot be
started, or fails, this one compiles what it needs. Where the cache is filled, nothing is started.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from .._base.threads import cores

LARGEST = ("cross_products", "leverages")  # in the order in which a fit needs them
_TABLES = ("table", "local_x", "xx", "context", "p_local", "p_local_x", "p_xx", "p_context")
PATIENCE = 120.0  # seconds after which another process is given up
_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent.parent
_running: dict[str, subprocess.Popen[bytes]] = {}  # kernel → the process that compiles it
_begun = False
_one_waits = threading.Lock()


def signature(name: str) -> tuple[Any, ...]:
    """The types with which every fit calls a kernel: nothing is compiled for a shape."""
    import inspect

    from numba import types

    from . import kernels

    def array(kind: Any, dim: int) -> Any:
        return types.Array(kind, dim, "C")

    whole, real = types.int64, types.float64
    known = {"first": whole, "last": whole, "family": whole, "f": array(types.int32, 2)}
    known |= {one: array(whole, 1) for one in ("ptr", "cell0", "m", "i0")}
    known |= {one: array(real, 2) for one in ("u", "mult", "x", "z", *_TABLES)}
    known["kept"] = array(real, 2 if name == "cross_products" else 1)
    arguments = inspect.signature(vars(kernels)[name].py_func).parameters
    return tuple(known.get(one, array(real, 1)) for one in arguments)


def compile_ahead() -> None:
    """Start compiling in other processes, if the cache on disk is empty; at most once in a process."""
    global _begun
    if _begun:
        return
    _begun = True
    if cores() < 2 or not _may_start() or _cached():
        return
    for name in LARGEST:
        process = _started(name)
        if process is not None:
            _running[name] = process
    if _running:
        atexit.register(_end)


def kernel(name: str) -> Any:
    """A compiled function of kernels.py, once nobody else is compiling it."""
    if name in _running:
        with _one_waits:  # the others must not compile it meanwhile
            if name in _running:
                _wait(_running[name])
                del _running[name]
    from . import kernels

    return vars(kernels)[name]


def _may_start() -> bool:
    """Not in a worker of multiprocessing, nor where sys.executable is a program that embeds Python."""
    import multiprocessing

    named = Path(sys.executable or "").stem.lower()
    return multiprocessing.parent_process() is None and named.startswith(("python", "pypy"))


def _cached() -> bool:
    """Whether the largest kernels are on disk, newer than their source; or cannot be kept there."""
    given = os.environ.get("NUMBA_CACHE_DIR", "")
    folder, below = (Path(given), "*/") if given else (_HERE / "__pycache__", "")
    if _holds(folder, below):
        return True
    if os.access(next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists()), os.W_OK):
        return False
    from . import kernels  # elsewhere: Numba says where

    function: Any = kernels.cross_products
    where = function.stats.cache_path
    return where is None or _holds(Path(where), "")


def _holds(folder: Path, below: str) -> bool:
    source = (_HERE / "kernels.py").stat().st_mtime
    found = (folder.glob(f"{below}kernels.{name}-*.nbi") for name in LARGEST)
    return all(any(path.stat().st_mtime >= source for path in paths) for paths in found)


def _started(name: str) -> subprocess.Popen[bytes] | None:
    """A process that finds the modules where this one does, and nothing else: no code of the working folder (-P)."""
    path = os.pathsep.join([str(_ROOT), *(place for place in sys.path if place)])
    hidden = subprocess.CREATE_NO_WINDOW if sys.platform == "win32" else 0  # no window flashes up
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", f"{__package__}.ahead", name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            creationflags=hidden,
        )
    except OSError:  # no processes here: everything is compiled in this one
        return None


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Until the process has ended, or has taken too long."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end() -> None:
    """No process outlives this one."""
    for process in _running.values():
        process.kill()
        process.wait()


if __name__ == "__main__":
    from . import kernels as _kernels

    vars(_kernels)[sys.argv[1]].compile(signature(sys.argv[1]))
