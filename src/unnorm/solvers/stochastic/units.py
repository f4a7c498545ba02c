"""Fresh points of the unit cube at every step, inside a compiled loop: each point uniform, the set evenly spread.

A fixed set moved by a random shift modulo one (Cranley & Patterson 1976) keeps its evenness and makes every point
uniform, so that sums over it are unbiased; strata take a fresh uniform point in each cell instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, final

import numpy as np

from ...references.points import IID, Lattice, PointScheme, Stratified, cells


class Make(ABC):
    """`need` uniform numbers and some fixed arrays → (b, k, d) points in [0, 1); equal ones compile once."""

    @abstractmethod
    def __call__(self, v: Any, fixed: Any) -> Any: ...


@dataclass(frozen=True)
class Units:
    """Points of one step: how they are made, how many uniform numbers that takes, and the arrays it needs."""

    fixed: Any
    need: int
    make: Make


@singledispatch
def units(scheme: PointScheme, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    """Any other scheme (Sobol nets): one draw of it, shifted afresh at every step."""
    return _shifted(scheme, b, k, d, False, dtype)


@final
@dataclass(frozen=True)
class Independent(Make):
    b: int
    k: int
    d: int

    def __call__(self, v: Any, fixed: Any) -> Any:
        return v.reshape(self.b, self.k, self.d)


@units.register
def _(scheme: IID, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    return Units((), b * k * d, Independent(b, k, d))


@final
@dataclass(frozen=True)
class Cells(Make):
    """One point in each of k cells, the cells' axes in random order for each context."""

    b: int
    k: int
    d: int

    def __call__(self, v: Any, fixed: Any) -> Any:
        import jax.numpy as jnp

        b, k, d = self.b, self.k, self.d
        u = fixed[0] + fixed[1] * v[: b * k * d].reshape(b, k, d)
        if d == 1:
            return u
        axes = jnp.argsort(v[b * k * d :].reshape(b, 1, d), axis=-1)
        return jnp.take_along_axis(u, jnp.broadcast_to(axes, u.shape), axis=-1)


@units.register
def _(scheme: Stratified, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    low, width = cells(k, d)
    need = b * k * d + (b * d if d > 1 else 0)
    return Units((low.astype(dtype), width.astype(dtype)), need, Cells(b, k, d))


@final
@dataclass(frozen=True)
class Shifted(Make):
    """The fixed set moved by one shift, then folded where `tent`."""

    tent: bool

    def __call__(self, v: Any, fixed: Any) -> Any:
        import jax.numpy as jnp

        u = fixed + v
        u = u - jnp.floor(u)
        return 1.0 - jnp.abs(2.0 * u - 1.0) if self.tent else u


@units.register
def _(scheme: Lattice, b: int, k: int, d: int, periodic: bool, dtype: Any) -> Units:
    return _shifted(scheme, b, k, d, d == 1 and not periodic, dtype)


def _shifted(scheme: PointScheme, b: int, k: int, d: int, tent: bool, dtype: Any) -> Units:
    """One draw of the scheme (no tent map), moved by one random shift at every step."""
    rank = None if b == 1 else np.arange(b)
    base = scheme.unit(rank, k, d, True, np.random.default_rng(0)).reshape(b, k, d)
    return Units(base.astype(dtype), d, Shifted(tent))
