"""How many observations the data stand for: weights are frequencies, so that n = Σ w, and rows are what is stored."""

from __future__ import annotations

import numpy as np


def total(weights: np.ndarray) -> float:
    """Σ w; an int where it is a whole number, but for rounding.

    >>> total(np.array([2.0, 3.0])), total(np.array([0.5, 0.75]))
    (5, 1.25)
    """
    n = float(np.sum(weights))
    return round(n) if abs(n - round(n)) <= 1e-9 * max(n, 1.0) else n


def number(n: float) -> str:
    """A count for people: 12,500, or 12,500.3 where weights are no whole numbers."""
    return f"{n:,}" if isinstance(n, int) else f"{n:,.1f}"


def counted(n: float, rows: int, what: str = "observations") -> str:
    """The number of observations, and that of rows where it differs.

    >>> counted(500, 500), counted(1250, 500, "transitions")
    ('500 observations', '1,250 transitions in 500 rows')
    """
    return f"{number(n)} {what}" + ("" if n == rows else f" in {rows:,} rows")


def several(n: float, what: str) -> str:
    """A number of things, one or more.

    >>> several(1, "parameter"), several(2, "independent cluster")
    ('1 parameter', '2 independent clusters')
    """
    return f"{number(n)} {what}{'' if n == 1 else 's'}"
