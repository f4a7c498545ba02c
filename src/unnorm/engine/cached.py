"""Numba's `njit`, in memory alone where there is no place on disk for what it compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(**options)`; with cache=True, and neither the source's folder nor the user's writable, without it."""

    def decorate(function: Callable[..., Any]) -> Any:
        plain: Any = numba.njit  # whose stubs know each option by itself
        try:
            return plain(**options)(function)
        except RuntimeError:  # "cannot cache function …: no locator available"
            if not options.get("cache"):
                raise
            return plain(**{**options, "cache": False})(function)

    return decorate
