"""Modules of this library run by a Python of their own, beside this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def may_start() -> bool:
    """Not in a worker of multiprocessing, nor where sys.executable is a program that embeds Python."""
    import multiprocessing

    named = Path(sys.executable or "").stem.lower()
    return multiprocessing.parent_process() is None and named.startswith(("python", "pypy"))


def started(module: str, *arguments: str, told: bytes | None = None) -> subprocess.Popen[bytes] | None:
    """A process that finds modules where this one does, and nothing else: no code of the working folder (-P). Where it
    is `told` something on its standard input, its answer is read from its standard output. None where none can be."""
    path = os.pathsep.join([str(_ROOT), *(place for place in sys.path if place)])
    hidden = subprocess.CREATE_NO_WINDOW if sys.platform == "win32" else 0  # no window flashes up
    ends = subprocess.DEVNULL if told is None else subprocess.PIPE
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", module, *arguments],
            stdin=ends,
            stdout=ends,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            creationflags=hidden,
        )
    except OSError:  # no processes here
        return None
    if told is not None:
        assert process.stdin is not None
        try:
            with process.stdin as stream:
                stream.write(told)
        except OSError:  # it died at once
            process.kill()
            process.wait()
            return None
        process.stdin = None
    return process
