"""A map from the unit cube onto a truncated law that has no inverse at hand: propose, and redraw what falls outside."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from ..errors import InputError


class Memo:
    """The last value of a costly function of arrays: drawing points and their densities need the same constants."""

    def __init__(self) -> None:
        self._key: bytes | None = None
        self._value = np.empty(0)

    def __call__(self, function: Callable[[], np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        """`function()`, or what it gave last time if these arrays have not changed."""
        key = b"".join(digest(array) for array in arrays)
        if key != self._key:
            self._key, self._value = key, function()
        return self._value


def digest(array: np.ndarray) -> bytes:
    """A fingerprint of the array's numbers."""
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).digest()


# With less of a kernel's mass than this inside Ω rejection takes too long, and the reference is of no use.
LEAST_MASS = 1e-3


def fill(
    u: np.ndarray, propose: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], d: int
) -> np.ndarray:
    """(N, cube_dim) unit points → (N, d) draws. `propose(u, rows)` gives proposals for these rows and which to keep.

    A kept proposal is a continuous function of its unit point, so low-discrepancy points keep their gain there; the
    others are redrawn IID from a stream seeded by `u` itself. For uniform u the draws follow the truncated law exactly,
    and the same u gives the same draws.
    """
    rows = np.arange(len(u))
    y = np.empty((len(u), d))
    rng: np.random.Generator | None = None
    proposal, keep = propose(u, rows)
    for _ in range(int(40 / LEAST_MASS)):
        y[rows[keep]] = proposal[keep]
        rows = rows[~keep]
        if not rows.size:
            return y
        if rng is None:
            rng = np.random.default_rng(int.from_bytes(digest(u), "little"))
        proposal, keep = propose(rng.random((len(rows), u.shape[1])), rows)
    raise InputError(
        f"{len(rows):,} reference points could not be drawn inside Ω: the kernel has almost no mass there. "
        "Take a narrower kernel, or mix it with Uniform()."
    )


def check_mass(mass: np.ndarray, least: float = LEAST_MASS) -> np.ndarray:
    """The masses, after refusing kernels that lie almost wholly outside Ω."""
    bad = ~(mass >= least)
    if bad.any():
        raise InputError(
            f"The reference kernel has less than {least:g} of its mass inside Ω for {bad.sum():,} of {len(mass):,} "
            f"centres (the first gives {mass[bad][0]:.3g}). Take one centred in Ω or narrower, or Uniform()."
        )
    return mass
