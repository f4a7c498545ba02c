"""Generators of evenly spread points."""

from __future__ import annotations

import numpy as np


def kronecker(d: int) -> np.ndarray:
    """α with frac(i α) evenly spread in d dimensions: powers of the generalised golden ratio, g^(d+1) = g + 1.

    M. Roberts (2018), "The unreasonable effectiveness of quasirandom sequences". Its g tends to 1 as d grows, so beyond
    eight dimensions frac(√prime) is taken instead (Richtmyer 1951).
    """
    if d <= 8:
        g = 2.0
        for _ in range(64):
            g = (1.0 + g) ** (1.0 / (d + 1))
        return g ** -np.arange(1.0, d + 1.0)
    size = int(d * (np.log(d) + np.log(np.log(d))) + 10)
    sieve = np.ones(size + 1, dtype=bool)
    sieve[:2] = False
    for p in range(2, int(size**0.5) + 1):
        if sieve[p]:
            sieve[p * p :: p] = False
    return np.sqrt(np.flatnonzero(sieve)[:d].astype(np.float64)) % 1.0
