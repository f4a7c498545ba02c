"""A chain in a box with uniform reference points, made on the device: only its coordinates travel.

Context t is y_{t−1}; its rows are y_t and k points of the lattice of `references.points.Lattice` along steps, in the
same order of contexts (a Hilbert curve, within each block of them), so that with the same shifts they are the points
that `un.fit` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.lattices import kronecker
from ...data.covariates.traced import Traced
from ...references.ordering import plane_index

Columns = dict[str, Any]
_LEAST = 2.0**-53  # as `references.points` keeps unit points from 0 and 1


class Chain(NamedTuple):
    """Coordinates on the device, and what their reference points are made from."""

    before: Any  # (n, d)
    now: Any  # (n, d)
    context: Columns  # (n,) columns that covariates read, earlier points among them
    rank: Any  # (n,) place of each context along the curve through its block
    low: Any  # (d,) the box
    width: Any
    shift: Any  # (blocks, d) of the lattice
    each: Any  # contexts of a block
    alpha: Any  # (d,)


def _places(points: Any) -> Any:
    order = jnp.argsort(plane_index(points, jnp), stable=True)
    n = order.shape[0]
    return jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32), unique_indices=True)


@partial(jax.jit, static_argnums=1)
def _ranked(before: Any, each: int) -> Any:
    """Places within blocks of so many contexts; the last may be shorter."""
    n, d = before.shape
    whole = n // each * each
    parts = [jax.vmap(_places)(before[:whole].reshape(-1, each, d)).reshape(-1)] if whole else []
    return jnp.concatenate([*parts, *([_places(before[whole:])] if whole < n else [])])


def chain(
    before: np.ndarray,
    now: np.ndarray,
    previous: Sequence[str],
    context: Mapping[str, np.ndarray],
    box: tuple[np.ndarray, np.ndarray],
    shift: np.ndarray,
    each: int,
    device: Any,
) -> Chain:
    """Coordinates (n, d) to the device, and the order of the contexts found there.

    Args:
        before: y_{t−1}.
        now: y_t.
        previous: the names of y_{t−1}'s coordinates among the context's columns.
        context: further columns.
        box: its low corner and its width.
        shift: (blocks, d) of the lattice.
        each: contexts of a block.
        device: JAX's.
    """

    def there(array: Any) -> Any:
        return jax.device_put(np.ascontiguousarray(array, dtype=np.float64), device)

    first, second = there(before), there(now)
    columns = {name: first[:, j] for j, name in enumerate(previous)}
    columns |= {name: there(column) for name, column in context.items()}
    d = before.shape[1]
    rest = (there(box[0]), there(box[1]), there(shift), jax.device_put(np.int64(each), device), there(kronecker(d)))
    return Chain(first, second, columns, _ranked(first, min(each, len(before))), *rest)


def outcomes(k: int, c: Chain, which: Any | None = None) -> list[Any]:
    """The coordinates, (n, 1 + k) each, of the rows of all contexts, or of some: y_t and its reference points."""
    before, now, rank = c.before, c.now, c.rank
    index = jnp.arange(c.rank.shape[0]) if which is None else which
    if which is not None:
        before, now, rank = before[which], now[which], rank[which]
    i = rank[:, None].astype(jnp.int64) * k + jnp.arange(k)
    shift, out = c.shift[index // c.each], []
    for axis in range(before.shape[1]):
        u = i * c.alpha[axis] + shift[:, axis, None]
        u = jnp.clip(u - jnp.floor(u), _LEAST, 1.0 - _LEAST)
        u = u + ((before[:, axis] - c.low[axis]) / c.width[axis])[:, None]
        points = c.low[axis] + c.width[axis] * (u - jnp.floor(u))
        out.append(jnp.concatenate([now[:, axis, None], points], axis=1))
    return out


def covariates(k: int, traced: Traced, c: Chain, which: Any | None = None) -> Columns:
    """Covariates of the rows of all contexts, or of some: (n, 1 + k), and (n,) of the context's."""
    context = c.context if which is None else {name: column[which] for name, column in c.context.items()}
    return traced(outcomes(k, c, which), context)


@partial(jax.jit, static_argnums=(0, 1))
def end_rows(k: int, traced: Traced, c: Chain) -> Any:
    """The rows where each of these covariates is least and largest, the first of equals."""
    ends = []
    for v in covariates(k, traced, c).values():
        times = 1 + k if v.ndim == 1 else 1
        ends += [times * v.reshape(-1).argmin(), times * v.reshape(-1).argmax()]
    return jnp.stack(ends)


@partial(jax.jit, static_argnums=(0, 1))
def _some(k: int, traced: Traced, c: Chain, which: Any) -> Columns:
    made = covariates(k, traced, c, which)
    shape = (which.shape[0], 1 + k)
    return {name: jnp.broadcast_to(v.reshape(shape[0], -1), shape) for name, v in made.items()}


def some_columns(k: int, traced: Traced, c: Chain, which: np.ndarray) -> dict[str, np.ndarray]:
    """Covariates of all rows of some contexts, those of the context repeated: (m, 1 + k), on the host."""
    found = jax.device_get(_some(k, traced, c, _evened(which, int(c.rank.shape[0]))))
    return {name: np.asarray(v)[: which.size] for name, v in found.items()}


def _evened(which: np.ndarray, n: int) -> np.ndarray:
    """As many numbers whatever the ends are, so that no program is compiled again: the last is repeated."""
    size = min(-(-which.size // 256) * 256, max(n, which.size))
    return np.concatenate([which, np.full(size - which.size, which[-1])])
