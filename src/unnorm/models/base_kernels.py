"""By how much log q changes with one bit, q the mixture of independent bits from which annealing begins (gibbs.py)."""

from __future__ import annotations

import math

from .._base.cached import njit


@njit(nogil=True, cache=True, error_model="numpy")
def log_sum(parts):
    """log Σ_k exp parts_k."""
    top = parts[0]
    for k in range(1, len(parts)):
        top = max(top, parts[k])
    total = 0.0
    for k in range(len(parts)):
        total += math.exp(parts[k] - top)
    return top + math.log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def base_change(parts, whole, log_odds, i, sign, moved):
    """By how much log q changes when y_i changes by `sign`.

    `parts` are the log q_k(y) and `whole` is log Σ_k q_k(y); `moved` becomes the parts after the change.
    """
    for k in range(len(parts)):
        moved[k] = parts[k] + sign * log_odds[k, i]
    return log_sum(moved) - whole
