"""Fresh points of the unit cube at every step, inside a compiled loop: each point uniform, the set evenly spread.

A fixed set moved by a random shift modulo one (Cranley & Patterson 1976) keeps its evenness and makes every point
uniform, so that sums over it are unbiased; strata take a fresh uniform point in each cell instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from ..references.points import IID, Lattice, PointScheme, Stratified, cells


@dataclass(frozen=True)
class Units:
    """Points of one step: `need` uniform numbers become (b, k, d) points; `fixed` arrays stay on the device."""

    fixed: Any
    need: int
    make: Any  # ((need,) uniforms, fixed) → (b, k, d) in [0, 1)


@singledispatch
def units(scheme: PointScheme, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    """Any other scheme (Sobol nets): one draw of it, shifted afresh at every step."""
    return _shifted(scheme, b, k, d, False, dtype)


@units.register
def _(scheme: IID, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    return Units((), b * k * d, lambda v, fixed: v.reshape(b, k, d))


@units.register
def _(scheme: Stratified, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    import jax.numpy as jnp

    low, width = cells(k, d)

    def make(v: Any, fixed: Any) -> Any:
        u = fixed[0] + fixed[1] * v[: b * k * d].reshape(b, k, d)
        if d == 1:
            return u
        axes = jnp.argsort(v[b * k * d :].reshape(b, 1, d), axis=-1)  # in random order for each context
        return jnp.take_along_axis(u, jnp.broadcast_to(axes, u.shape), axis=-1)

    return Units((low.astype(dtype), width.astype(dtype)), b * k * d + (b * d if d > 1 else 0), make)


@units.register
def _(scheme: Lattice, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    return _shifted(scheme, b, k, d, d == 1 and not periodic, dtype)


def _shifted(scheme: PointScheme, b: int, k: int, d: int, tent: bool, dtype: Any) -> Units:
    """One draw of the scheme (no tent map), moved by one random shift at every step, then folded where `tent`."""
    import jax.numpy as jnp

    rank = None if b == 1 else np.arange(b)
    base = scheme.unit(rank, k, d, True, np.random.default_rng(0)).reshape(b, k, d)

    def make(v: Any, fixed: Any) -> Any:
        u = fixed + v
        u = u - jnp.floor(u)
        return 1.0 - jnp.abs(2.0 * u - 1.0) if tent else u

    return Units(base.astype(dtype), d, make)
