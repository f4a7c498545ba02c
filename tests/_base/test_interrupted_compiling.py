"""Ctrl-C while Numba compiles: no lock is left taken, so that other threads can compile, and the signal is not lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import signal, threading
from llvmlite.binding import ffi
from numba import njit
from numba.core.compiler_lock import global_compiler_lock
from unnorm._base import cached

signal.signal(signal.SIGINT, signal.default_int_handler)
raised = []

def at_once():
    # LLVM's lock has just been taken
    if not raised:
        raised.append(True)
        signal.raise_signal(signal.SIGINT)

@njit
def twice(x):
    return x + x

ffi.register_lock_callback(at_once, lambda: None)
try:
    twice(1.0)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
free = []

def look():
    free.append(ffi.lib._lock._lock.acquire(timeout=20))
    free.append(global_compiler_lock._lock.acquire(timeout=20))

thread = threading.Thread(target=look, daemon=True)
thread.start()
thread.join()
assert raised
print(free, signal.getsignal(signal.SIGINT) is signal.default_int_handler, len(twice.signatures))
"""


@pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="signals")
def test_locks_are_free_after_an_interruption() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=300)
    assert ran.stdout.splitlines() == ["interrupted", "[True, True] True 1"], ran.stdout + ran.stderr
