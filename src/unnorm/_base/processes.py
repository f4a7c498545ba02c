"""Modules of this library run by a Python of their own, beside this one."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
LATER = 5  # by how much a process that nobody waits for yet is nicer than this one: it has the cores that are left


def may_start() -> bool:
    """Not in a worker of multiprocessing, nor where sys.executable is a program that embeds Python."""
    import multiprocessing

    named = Path(sys.executable or "").stem.lower()
    return multiprocessing.parent_process() is None and named.startswith(("python", "pypy"))


def started(module: str, *arguments: str, talks: bool = False) -> subprocess.Popen[bytes] | None:
    """A process that finds modules where this one does, and nothing else: no code of the working folder (-P). One that
    `talks` is told something on its standard input (`tell`), and answers on its standard output. None where none can
    be."""
    path = os.pathsep.join([str(_ROOT), *(place for place in sys.path if place)])
    hidden = subprocess.CREATE_NO_WINDOW if sys.platform == "win32" else 0  # no window flashes up
    ends = subprocess.PIPE if talks else subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", module, *arguments],
            stdin=ends,
            stdout=ends,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            creationflags=hidden,
        )
    except OSError:  # no processes here
        return None


def tell(process: subprocess.Popen[bytes], what: bytes) -> None:
    """Give a process that waits for it all that it is told; one that has died hears nothing, and has no answer."""
    assert process.stdin is not None
    with suppress(OSError), process.stdin as stream:
        stream.write(what)
    process.stdin = None


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and what joins it to this one."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what it was never told
                stream.close()


def give_way() -> None:
    """Let other processes go first (`LATER`), where the system knows how."""
    if hasattr(os, "nice"):
        os.nice(LATER)
