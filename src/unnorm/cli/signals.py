"""SIGTERM and SIGHUP end a command as Ctrl-C does: by an exception, so that scratch files are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Ended(BaseException):
    """The process was asked to end; not an `Exception`, so that nothing on the way takes it for a failure."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.code = 128 + signum  # the shell's convention


@contextmanager
def ends_on_signals() -> Iterator[None]:
    """Within, these signals raise `Ended`; only in the main thread, and not where they are ignored (nohup)."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before: dict[Any, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in names:
            number = getattr(signal, name)
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(signum: int, frame: Any) -> None:
    raise Ended(signum)
