"""Short steps that no signal may cut in two: what arrives in the meantime is delivered at the end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")


@contextmanager
def shielded() -> Iterator[None]:
    """Within, Ctrl-C and its relatives wait (SIGALRM, with which the command line raises them again, too).

    Python runs handlers in the main thread only, so that other threads need no shield. Signals that Python does not
    handle (SIGTERM outside the command line) end the process as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before: dict[int, Any] = {}
    try:
        for name in NAMES:
            number = getattr(signal, name, None)
            if number is not None and callable(signal.getsignal(number)):
                before[number] = signal.signal(number, lambda signum, frame: waiting.append(signum))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in waiting[:1]:
            signal.raise_signal(number)
