"""Numba's `njit`, in memory alone where there is no place on disk for what it compiles; compiling has no pauses for
garbage, and is not cut off in the middle."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, final

import numba
from numba.core import event as events

from .shield import Held


@final
class Uncollected(events.Listener):
    """No search for garbage while Numba compiles: it makes many objects and drops few, and an eighth of its time would
    go into looking through them. One thread compiles at a time, with functions inside functions."""

    def __init__(self) -> None:
        self.depth, self.before = 0, False

    def on_start(self, event: events.Event) -> None:
        if self.depth == 0:
            self.before = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: events.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and self.before:
            gc.enable()


@final
class Uninterrupted(events.Listener):
    """Ctrl-C waits while this thread holds the compiler's lock, or waits for it.

    Numba's locks and LLVM's are taken and given back by functions of Python: an interruption inside these would leave
    them taken, and the next thread that compiles would wait for ever.
    """

    def __init__(self) -> None:
        self.held = Held()

    def on_start(self, event: events.Event) -> None:
        self.held.begin()

    def on_end(self, event: events.Event) -> None:
        self.held.end()


events.register("numba:compile", Uncollected())
events.register("numba:compiler_lock", Uninterrupted())


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(**options)`; with cache=True, and neither the source's folder nor the user's writable, without it.
    Nothing here is called from C, so that no function is compiled for that."""

    options = {"no_cfunc_wrapper": True, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        plain: Any = numba.njit  # whose stubs know each option by itself
        try:
            return plain(**options)(function)
        except RuntimeError:  # "cannot cache function …: no locator available"
            if not options.get("cache"):
                raise
            return plain(**{**options, "cache": False})(function)

    return decorate


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`njit` for a function that compiled functions alone call: nothing is compiled that Python would need to call it
    (a test compiles its `py_func` anew), and it is kept on disk inside its callers."""
    return njit(no_cpython_wrapper=True, **options)
