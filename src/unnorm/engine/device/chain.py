"""A planar chain with uniform reference points, made on the device: only the coordinates travel.

Context t is y_{t−1}; its rows are y_t and k points of the lattice of `references.points.Lattice` along steps, in the
same order of contexts (a Hilbert curve), so that with the same shift they are the points that `un.fit` draws.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.lattices import kronecker
from ...references.ordering import plane_index

Columns = dict[str, Any]


class Chain(NamedTuple):
    """Coordinates on the device, and what their reference points are made from."""

    path: Any  # (n + 1, 2) one chain
    rank: Any  # (n,) place of each context along the Hilbert curve
    low: Any  # (2,) the box
    width: Any
    shift: Any  # (2,) of the lattice
    alpha: Any  # (2,)


@jax.jit
def _ranked(path: Any) -> Any:
    order = jnp.argsort(plane_index(path[:-1], jnp), stable=True)
    n = order.shape[0]
    return jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32), unique_indices=True)


def chain(path: np.ndarray, low: np.ndarray, high: np.ndarray, shift: np.ndarray, device: Any) -> Chain:
    """Coordinates (n + 1, 2) to the device, and the order of the contexts found there."""
    there = jax.device_put(np.ascontiguousarray(path, dtype=np.float64), device)
    rest = (np.asarray(low, float), np.asarray(high, float) - low, np.asarray(shift, float), kronecker(2))
    return Chain(there, _ranked(there), *jax.device_put(rest, device))


def covariates(k: int, c: Chain, which: Any | None = None) -> Columns:
    """The built-in covariates of the rows of all contexts, or of some: (n, 1 + k), and (n,) of the context's."""
    before, now, rank = c.path[:-1], c.path[1:], c.rank
    if which is not None:
        before, now, rank = before[which], now[which], rank[which]
    i = rank[:, None].astype(jnp.int64) * k + jnp.arange(k)
    out: Columns = {"x_prev": before[:, 0], "y_prev": before[:, 1]}
    for axis, name in enumerate("xy"):
        u = i * c.alpha[axis] + c.shift[axis]
        u = jnp.clip(u - jnp.floor(u), 2.0**-53, 1.0 - 2.0**-53)
        u = u + ((before[:, axis] - c.low[axis]) / c.width[axis])[:, None]
        points = c.low[axis] + c.width[axis] * (u - jnp.floor(u))
        out[name] = jnp.concatenate([now[:, axis, None], points], axis=1)
    dx, dy = out["x"] - before[:, :1], out["y"] - before[:, 1:]
    out["step"] = jnp.hypot(dx, dy)
    angle = jnp.arctan2(dy, dx)
    out["angle"] = jnp.where((dx == 0.0) & (dy == 0.0), jnp.nan, angle)
    middle = c.low + 0.5 * c.width
    out["dcenter"] = jnp.hypot(out["x"] - middle[0], out["y"] - middle[1])
    return out


@partial(jax.jit, static_argnums=(0, 1))
def end_contexts(k: int, names: tuple[str, ...], c: Chain) -> Any:
    """The contexts of the rows where each of these covariates is least and largest."""
    made, n = covariates(k, c), c.rank.shape[0]
    ends = []
    for name in names:
        v = made[name].reshape(n, -1)
        ends += [jnp.nan_to_num(v, nan=jnp.inf).min(1).argmin(), jnp.nan_to_num(v, nan=-jnp.inf).max(1).argmax()]
    return jnp.stack(ends)


@partial(jax.jit, static_argnums=(0, 1))
def some_columns(k: int, names: tuple[str, ...], c: Chain, which: Any) -> Columns:
    """Covariates of all rows of some contexts, those of the context repeated: (m, 1 + k)."""
    made = covariates(k, c, which)
    shape = (which.shape[0], 1 + k)
    return {name: jnp.broadcast_to(made[name].reshape(shape[0], -1), shape) for name in names}
