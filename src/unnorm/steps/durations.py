"""Durations as people write them: "20min", "6 h", "1h 30min", a timedelta, or a number of seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from ..data.chains import span
from ..errors import InputError


def seconds(value: Any, what: str) -> float:
    """The duration in seconds; a sentence where it is not a positive one.

    >>> seconds("20min", "rate"), seconds("1.5 h", "rate"), seconds(90, "rate")
    (1200.0, 5400.0, 90.0)
    """
    given = span(value) if isinstance(value, str) else np.timedelta64(value) if isinstance(value, timedelta) else value
    found = float("nan")
    if isinstance(given, np.timedelta64):
        found = float(given / np.timedelta64(1, "s"))
    elif isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool):
        found = float(given)
    if not (np.isfinite(found) and found > 0.0):
        raise InputError(
            f"{what} must be a positive duration: '20min', '6h', '90s', a timedelta or a number of seconds; "
            f"got {value!r}."
        )
    return found


def written(duration: float) -> str:
    """Seconds in the largest unit that keeps them short.

    >>> written(21600.0), written(90.0), written(5400.0)
    ('6 h', '90 s', '90 min')
    """
    for name, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        count = duration / size
        if count >= 2.0 or count == 1.0:
            return f"{count:.3g} {name}"
    return f"{duration:.4g} s"
