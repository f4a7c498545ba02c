"""SIGTERM and SIGHUP end a command as Ctrl-C does: by an exception, so that scratch files are removed.

Python discards an exception that a handler raises while a weak reference's callback or a `__del__` runs ("Exception
ignored in …"), and the command would go on as if nothing had happened. It is raised again a moment later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

AGAIN = 0.01  # seconds until a discarded exception is raised again


class Ended(BaseException):
    """The process was asked to end; not an `Exception`, so that nothing on the way takes it for a failure."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.code = 128 + signum  # the shell's convention


@contextmanager
def ends_on_signals() -> Iterator[list[int]]:
    """Within, these signals raise `Ended`, and Ctrl-C `KeyboardInterrupt`; only in the main thread, and not where they
    are ignored (nohup). Gives the list of those received: what fails after one may have failed because of it, as
    where a library's import takes the exception for a missing module."""
    received: list[int] = []

    def end(signum: int, frame: Any) -> None:
        received.append(signum)
        raise KeyboardInterrupt if signum == signal.SIGINT else Ended(signum)

    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    stack.callback(signal.signal, number, signal.signal(number, end))
            if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
                _raise_again(stack)
        yield received


def _raise_again(stack: ExitStack) -> None:
    """Watch for discarded exceptions of signals until the stack is closed."""
    discarded: list[BaseException] = []
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt | Ended):
            discarded[:] = [unraisable.exc_value]
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            before(unraisable)

    def again(signum: int, frame: Any) -> None:
        if discarded:
            raise discarded[0]

    stack.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, again))
    stack.callback(signal.setitimer, signal.ITIMER_REAL, 0)
    stack.callback(setattr, sys, "unraisablehook", before)
    sys.unraisablehook = hook
