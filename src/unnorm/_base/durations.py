"""Durations as people write them: "20min", "6 h", "90s", a timedelta, or a number of seconds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import InputError

UNITS = {
    "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hr": 3600.0,
    "hour": 3600.0, "d": 86400.0, "day": 86400.0, "week": 604800.0,
}  # fmt: skip
_WRITTEN = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([a-zA-Z]+)\s*")


def seconds(value: Any, what: str) -> float:
    """The duration in seconds; a sentence where it is not a positive one.

    >>> seconds("20min", "rate"), seconds("1.5 hours", "rate"), seconds(90, "rate")
    (1200.0, 5400.0, 90.0)
    """
    found = np.nan
    if isinstance(value, str):
        parts = _WRITTEN.fullmatch(value)
        unit = None if parts is None else parts[2].lower()
        known = None if unit is None else UNITS.get(unit, UNITS.get(unit.removesuffix("s")))
        found = np.nan if parts is None or known is None else float(parts[1]) * known
    elif isinstance(value, timedelta):
        found = value.total_seconds()
    elif isinstance(value, np.timedelta64):
        found = float(value / np.timedelta64(1, "s"))
    elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        found = float(value)
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
