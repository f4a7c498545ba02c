"""One-dimensional Gauss rules on [0, 1], and the limit on the size of any rule."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._base.numerics import read_only, whole
from ..errors import InputError

MOST_NODES = 2**22  # a rule in the plane then takes 100 MB; more is a mistake or a case for Monte Carlo
MOST_STATES = 2**20  # finite domains up to this size are enumerated


@lru_cache(maxsize=64)
def gauss_legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights with Σ w g(s) = ∫₀¹ g(s) ds for polynomials g of degree ≤ 2·order − 1."""
    from scipy.special import roots_legendre

    x, w = roots_legendre(order)
    return read_only(0.5 * (x + 1.0)), read_only(0.5 * w)


@lru_cache(maxsize=64)
def gauss_cone(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights with Σ w g(s) = ∫₀¹ g(s) s ds for polynomials g of degree ≤ 2·order − 1 (Gauss–Jacobi)."""
    from scipy.special import roots_jacobi

    x, w = roots_jacobi(order, 0.0, 1.0)
    return read_only(0.5 * (x + 1.0)), read_only(0.25 * w)


def chosen_order(order: int | None, default: int) -> int:
    """The user's order, checked, or the default."""
    return default if order is None else whole(order, "The quadrature order", least=1)


def refuse_large(nodes: int, what: str, remedy: str) -> None:
    """An error when a rule would have more than MOST_NODES nodes."""
    if nodes > MOST_NODES:
        raise InputError(f"{what} has {nodes:,} nodes, more than the limit of {MOST_NODES:,}. {remedy}")
