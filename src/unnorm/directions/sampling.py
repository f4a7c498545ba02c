"""Draws from exp(a·y + yᵀBy) on the sphere, exact for any concentration (Kent, Ganeiber & Mardia 2018).

κ μ·y ≤ ½κ{1 + (μ·y)²}, so that a Bingham law with B + ½κ μμᵀ lies above; and above a Bingham law exp(−yᵀAy), A with
least eigenvalue 0, lies the angular central Gaussian law with Ω = I + 2A/b, where b solves Σ_i 1/(b + 2λ_i) = 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..references.base import root
from .family import Draw

_AT_ONCE = 200_000
_TRIES = 2_000  # rounds; a round accepts a third of its proposals or so


def draws(a: np.ndarray, B: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) draws."""
    kappa = float(np.linalg.norm(a))
    mu = a / kappa if kappa > 0 else np.zeros(3)
    values, vectors = np.linalg.eigh(-(B + 0.5 * kappa * np.outer(mu, mu)))
    least, A = values[0], values - values[0]
    b = root(lambda b: 1.0 - float(np.sum(1.0 / (b + 2.0 * A))), 1e-12, 3.0)
    omega = 1.0 + 2.0 * A / b
    # log of f* = exp(−yᵀAy) over the envelope's (yᵀΩy)^{−3/2}, largest where yᵀΩy = 3/b
    top = -(3.0 - b) / 2.0 + 1.5 * np.log(3.0 / b)
    out, have = np.empty((n, 3)), 0
    for _ in range(_TRIES):
        if have == n:
            break
        x = rng.normal(size=(min(4 * (n - have) + 16, _AT_ONCE), 3)) / np.sqrt(omega)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = x @ vectors.T
        log_f = y @ a + np.einsum("ni,ij,nj->n", y, B, y) - (0.5 * kappa - least)
        log_ratio = log_f + 1.5 * np.log(x**2 @ omega) - top
        good = y[np.log(rng.random(len(y))) < log_ratio][: n - have]
        out[have : have + len(good)] = good
        have += len(good)
    assert have == n, "the envelope accepts a share of its proposals that is bounded below"
    return out


def drawn(quadratic: Callable[[list[np.ndarray]], tuple[np.ndarray, np.ndarray]]) -> Draw:
    """A family's own draws, from its quantities → a and B."""

    def draw(values: list[np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
        return draws(*quadratic(values), n, rng)

    return draw
