"""How far a call has come: whoever shows progress listens, and the outermost loop of tasks tells.

Each thread has listeners of its own: two fits at once, in two threads of a program, do not hear of each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

Listener = Callable[[int, int | None], None]  # (done, of how many); None: nobody knows


@final
class _Heard:
    """A listener, and what it has heard of passes whose number is not known."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.passes = 0


class _Listeners(threading.local):
    """Of this thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[_Heard | None] = [None]


_here = _Listeners()
_lock = threading.Lock()


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """The listener hears of the loops inside the block.

    >>> heard = []
    >>> with listening(lambda done, of: heard.append((done, of))), counting(2) as one_more:
    ...     one_more()
    >>> heard
    [(0, 2), (1, 2)]
    """
    with _heard(_Heard(listener)):
        yield


@contextmanager
def counting(of: int) -> Iterator[Callable[[], None]]:
    """A loop of so many tasks: the function to call after each, from any thread. Loops inside it are not heard."""
    heard, done = _here.stack[-1], 0

    def one_more() -> None:
        nonlocal done
        with _lock:
            done += 1
            if heard is not None:
                heard.listener(done, of)

    if heard is not None:
        heard.listener(0, of)
    with _heard(None):
        yield one_more


def passed() -> None:
    """One more pass over the rows of a fit; nobody knows how many there will be."""
    heard = _here.stack[-1]
    if heard is not None:
        heard.passes += 1
        heard.listener(heard.passes, None)


@contextmanager
def _heard(one: _Heard | None) -> Iterator[None]:
    _here.stack.append(one)
    try:
        yield
    finally:
        _here.stack.pop()
