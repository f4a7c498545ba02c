"""The three functions of Gibbs sampling (gibbs.py) for couplings: a chain keeps the fields of all its bits."""

from __future__ import annotations

# pyright: reportCallIssue=false
from .._base.cached import njit


@njit(nogil=True, error_model="numpy", fastmath=True)
def start(params, y, c):
    """u_i = base_i + Σ_j J_ij y_j, with base the chain's own fields."""
    J, base = params
    u = base[c % len(base)].copy()
    for j in range(len(y)):
        if y[j] > 0.5:
            for i in range(len(u)):
                u[i] += J[j, i]
    return u


@njit(nogil=True, error_model="numpy")
def delta(params, u, y, i):
    return (1.0 - 2.0 * y[i]) * u[i]


@njit(nogil=True, error_model="numpy", fastmath=True)
def flip(params, u, y, i):
    J, _ = params
    sign = 1.0 - 2.0 * y[i]
    row = J[i]
    for j in range(len(u)):
        u[j] += sign * row[j]
    y[i] = 1.0 - y[i]


FUNCTIONS = (start, delta, flip)
__all__ = ["FUNCTIONS"]
