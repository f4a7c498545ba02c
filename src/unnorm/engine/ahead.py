"""The first fit of an installation: the largest kernels compiled in processes beside this one.

Numba compiles one function at a time in a process, and keeps what it has compiled on disk. So where that cache is
empty, two processes compile the kernels of kernels.py into it while this one imports, reads data and compiles the small
ones; `kernel` waits for them, compiling meanwhile what a fit needs next, and loads what they wrote. The second begins
with small kernels, which a fit needs first. Nothing depends on it: where a process cannot be started, or fails, this
one compiles what it needs. Where the cache is filled, nothing is started.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from .._base.processes import may_start, started
from .._base.threads import cores

SHARES = (("cross_products",), ("predictor", "run_sums", "leverages"))  # of each process, in the order of need
_TABLES = ("table", "context", "p_local", "p_context", "totals")
_MATRICES = ("a", "both", "out", "cross", "half", "part")  # of matrix_kernels.py and gather.py
_WHOLE = ("raw", "at")  # arrays of whole numbers there
_ABSENT = ("link", "f", "x", "delta", "local_x", "xx", "g_x", "p_local_x", "p_xx")  # in most fits
PATIENCE = 120.0  # seconds after which another process is given up
_LOOK = 0.01  # seconds between two looks for what it writes
_HERE = Path(__file__).resolve().parent
_running: dict[str, subprocess.Popen[bytes]] = {}  # kernel → the process that compiles it, until it has been asked for
_processes: list[subprocess.Popen[bytes]] = []
_begun = False
_one_waits, _one_begins = threading.Lock(), threading.Lock()


def signature(name: str) -> tuple[Any, ...]:
    """The types with which fits without factors and dense columns call a kernel, if their link is the family's own."""
    from numba import types

    from . import kernels

    def array(kind: Any, dim: int) -> Any:
        return types.Array(kind, dim, "C")

    whole, real = types.int64, types.float64
    known = {"first": whole, "last": whole, "family": whole, **dict.fromkeys(_ABSENT, types.none)}
    known |= {one: array(whole, 1) for one in ("ptr", "cell0", "m", "i0")}
    known |= {one: array(real, 2) for one in ("u", "mult", "z", *_TABLES)}
    known["kept"] = array(real, 2 if name == "cross_products" else 1)
    return tuple(known.get(one, array(real, 1)) for one in _arguments(vars(kernels)[name]))


def _arguments(function: Any) -> tuple[str, ...]:
    import inspect

    return tuple(inspect.signature(function.py_func).parameters)


def of_matrices(function: Any) -> tuple[Any, ...]:
    """The types with which fits call a function of matrix_kernels.py or gather.py."""
    from numba import types

    known = {"local": types.int64, **{one: types.Array(types.int64, 2, "C") for one in _WHOLE}}
    known |= {one: types.Array(types.float64, 2, "C") for one in _MATRICES}
    return tuple(known.get(one, types.Array(types.float64, 1, "C")) for one in _arguments(function))


def _meanwhile() -> None:
    """Compile what a fit needs after the first passes."""
    from .gather import gather_blocks
    from .matrix_kernels import cholesky_inverse

    functions: tuple[Any, ...] = (gather_blocks, cholesky_inverse)
    for function in functions:
        function.compile(of_matrices(function))


def compile_ahead() -> None:
    """Start compiling in other processes, if the cache on disk is empty; at most once in a process."""
    global _begun
    if _begun:
        return
    with _one_begins:  # a second thread waits until the processes are known
        if _begun:
            return
        if cores() >= 2 and may_start() and not cached():
            for names in SHARES:
                process = started(f"{__package__}.ahead", *names)
                if process is not None:
                    _processes.append(process)
                    _running.update(dict.fromkeys(names, process))
            if _processes:
                atexit.register(_end)
        _begun = True


def kernel(name: str, bare: bool = True) -> Any:
    """A compiled function of kernels.py, once nobody else is compiling it. `bare`: for the types of `signature`, as
    other processes compile it; for others they would only be in the way, and are ended."""
    from . import kernels

    function: Any = vars(kernels)[name]
    if _running and not bare:
        with _one_waits:
            _end()
            _running.clear()
    if name in _running:
        with _one_waits:  # the others must not compile it meanwhile
            if name in _running:
                _wait(_running[name], function)
                del _running[name]
    return function


def cached() -> bool:
    """Whether the kernels are on disk, newer than their source; or cannot be kept there."""
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
    return all(_written(folder, below, name) for names in SHARES for name in names)


def _written(folder: Path, below: str, name: str) -> bool:
    """Whether a folder (or those below it) has the compiled code of a kernel, newer than its source."""
    source = (_HERE / "kernels.py").stat().st_mtime
    return any(path.stat().st_mtime >= source for path in folder.glob(f"{below}kernels.{name}-*.nbc"))


def _wait(process: subprocess.Popen[bytes], function: Any) -> None:
    """Until the process has written the function, has ended, or has taken too long."""
    until, where = time.monotonic() + PATIENCE, function.stats.cache_path
    if process.poll() is None:
        _meanwhile()
    while process.poll() is None:
        if where is not None and _written(Path(where), "", function.__name__):
            return
        if time.monotonic() > until:
            process.kill()
            process.wait()
            return
        time.sleep(_LOOK)


def _end() -> None:
    """No process outlives this one."""
    for process in _processes:
        process.kill()
        process.wait()


if __name__ == "__main__":
    from . import kernels as _kernels

    for _name in sys.argv[1:]:
        vars(_kernels)[_name].compile(signature(_name))
