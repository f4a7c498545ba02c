"""Short steps that no signal may cut in two: what arrives in the meantime is delivered at the end."""

from __future__ import annotations

import signal
import threading
from typing import Any, Self, final

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")


@final
class shielded:
    """Within, Ctrl-C and its relatives wait (SIGALRM, with which the command line raises them again, too).

    Python runs handlers in the main thread only, so that other threads need no shield. Signals that Python does not
    handle (SIGTERM outside the command line) end the process as ever.
    """

    def __init__(self) -> None:
        self._waiting: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        try:
            for name in NAMES:
                number = getattr(signal, name, None)
                if number is not None and callable(handler := signal.getsignal(number)):
                    self._before[number] = handler  # first: a signal may come at once
                    signal.signal(number, self._wait)
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        for number in self._waiting[:1]:
            signal.raise_signal(number)

    def _wait(self, number: int, frame: object) -> None:
        self._waiting.append(number)

    def _restore(self) -> None:
        """Twice: a signal whose handler is back may come before the others have theirs."""
        try:
            self._put_back()
        finally:
            self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@final
class Held:
    """A shield that is up while any of several nested steps lasts, each with a call at its begin and one at its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._shield = shielded()

    def begin(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self._depth == 0:
            self._shield = shielded().__enter__()
        self._depth += 1

    def end(self) -> None:
        if threading.current_thread() is not threading.main_thread() or self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0:
            self._shield.__exit__()
