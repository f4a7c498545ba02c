"""The row pass as JAX programs: rows in tiles, each tile's columns made from cells, and sums by matrix products.

A tile has b runs of R rows. Its columns in the terms' (flat) coordinates are

    X = [cubic of t in the cell's table, for each local block | row of the factor's table | dense columns],   (b, R, K)

and z (b, c) belongs to the whole run. With w = −d²ℓ/dη², g = dℓ/dη and v = g/√w, one product of M = [√w X, v] with
itself gives XᵀWX and Xᵀg together, and zᵀ[Σ_R √w M | Σ_R w z] all that context columns meet: rows are read once, and
nothing is scattered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = Any
BINOMIAL, POISSON, GAUSSIAN = 0, 1, 2
_WIDE = 64  # columns in a group


class Tables(NamedTuple):
    """What cells are looked up in; of coefficients, their last axis is gone."""

    local: tuple[Array, ...]  # (cells, 4, k): the powers of t
    factor: tuple[Array, ...]  # (levels, k)


class Rows(NamedTuple):
    """Compact rows: runs by rows of a run. None where there is nothing of the kind."""

    u: tuple[Array, ...]  # (runs, R) cell + t of each local block
    f: tuple[Array, ...]  # (runs, R) int32, the level in each factor block
    mult: tuple[Array, ...]  # (runs, R) multipliers
    x: Array | None  # (runs, R, d)
    z: Array  # (runs, c)
    y: Array  # (runs, R)
    weight: Array | None  # (runs, R)
    offset: Array | None  # (runs, R)


class Plan(NamedTuple):
    """What a program is compiled for, beside shapes."""

    by: tuple[int, ...]  # which multiplier each local block has, −1 for none
    family: int
    single: bool  # float32 within a tile
    chunk: int  # runs in one matrix product
    chunks: int  # products in a tile


class Row(NamedTuple):
    """One row's likelihood: √w, g/√w, dw/dη and ℓ, for weight one."""

    root: Array
    pull: Array
    dw: Array
    value: Array


def _far(eta: Array) -> float:
    """|η| up to which √w = e^{−|η|/2} is taken as it is, and √w x keeps its digits: beyond, v would be infinite."""
    return 1000.0 if eta.dtype == jnp.float64 else 120.0


def _binomial(eta: Array, y: Array) -> Row:
    e = jnp.exp(-jnp.abs(eta))
    r = 1.0 / (1.0 + e)
    half = jnp.exp(-0.5 * jnp.minimum(jnp.abs(eta), _far(eta)))
    up, down = jnp.where(eta >= 0, half, 1.0 / half), jnp.where(eta >= 0, 1.0 / half, half)  # e^{∓η/2}
    w = e * r * r
    slope = w * (1.0 - e) * r  # w (1 − 2p), times the sign of −η
    return Row(half * r, y * up - (1.0 - y) * down, jnp.where(eta >= 0, -slope, slope),
               y * eta - jnp.maximum(eta, 0.0) - jnp.log1p(e))  # fmt: skip


def _poisson(eta: Array, y: Array) -> Row:
    root = jnp.exp(0.5 * jnp.clip(eta, -_far(eta), min(500.0, _far(eta))))
    mu = root * root
    return Row(root, y / root - root, mu, y * eta - mu)


def _gaussian(eta: Array, y: Array) -> Row:
    return Row(jnp.ones_like(eta), y - eta, jnp.zeros_like(eta), -0.5 * (y - eta) ** 2)


LIKELIHOODS: dict[int, Callable[[Array, Array], Row]] = {BINOMIAL: _binomial, POISSON: _poisson, GAUSSIAN: _gaussian}


def _placed(u: Array, single: bool) -> tuple[Array, Array]:
    """Cell and t of u = cell + t."""
    cell = u.astype(jnp.int32)
    return cell, (u - cell).astype(jnp.float32 if single else u.dtype)


def _cubic(table: Array, cell: Array, t: Array) -> Array:
    """The table's cubics: one value for each cell, or with t (…, 1) as many as the table has columns."""
    axis = cell.ndim
    a = table.at[cell].get(mode="promise_in_bounds")  # (…, 4[, k])
    power = [jax.lax.index_in_dim(a, k, axis, keepdims=False) for k in range(4)]
    return power[0] + t * (power[1] + t * (power[2] + t * power[3]))


def predictor(plan: Plan, tables: Tables, delta: Array, zeta: Array, rows: Rows) -> Array:
    """η (b, R) from tables of coefficients (cells, 4), (levels,), δ (d,) and ζ (c,)."""
    eta = jnp.broadcast_to((_as(plan, rows.z) @ zeta)[:, None], rows.y.shape)
    for b, (table, u) in enumerate(zip(tables.local, rows.u)):
        value = _cubic(table, *_placed(u, plan.single))
        eta = eta + (value if plan.by[b] < 0 else value * _as(plan, rows.mult[plan.by[b]]))
    for table, level in zip(tables.factor, rows.f):
        eta = eta + table[level]
    if rows.x is not None:
        eta = eta + _as(plan, rows.x) @ delta
    return eta if rows.offset is None else eta + _as(plan, rows.offset)


def _columns(plan: Plan, tables: Tables, rows: Rows) -> list[Array]:
    """X (b R, ·) by blocks. Cells are found once for a row and not once for each of its columns, which XLA would do."""
    out = []
    for b, (table, u) in enumerate(zip(tables.local, rows.u)):
        cell, t = jax.lax.optimization_barrier(_placed(u.reshape(-1), plan.single))
        value = _cubic(table, cell, t[:, None])
        out.append(value if plan.by[b] < 0 else value * _as(plan, rows.mult[plan.by[b]]).reshape(-1, 1))
    out += [table[level.reshape(-1)] for table, level in zip(tables.factor, rows.f)]
    return out if rows.x is None else [*out, _as(plan, rows.x).reshape(-1, rows.x.shape[2])]


def _grouped(columns: list[Array]) -> list[Array]:
    """The columns side by side, `_WIDE` at a time: products of matrices are made of squares of that size."""
    whole = jnp.concatenate(columns, axis=1)
    return [whole[:, a : a + _WIDE] for a in range(0, whole.shape[1], _WIDE)]


def _as(plan: Plan, array: Array) -> Array:
    return array.astype(jnp.float32) if plan.single else array


def _product(left: str, a: Array, b: Array) -> Array:
    """A sum of products, in full precision."""
    return jnp.einsum(left, a, b, precision=jax.lax.Precision.HIGHEST)


def _double(parts: Any) -> Any:
    return jax.tree.map(lambda part: part.astype(jnp.float64), parts)


def _folded(plan: Plan, rows: Rows, body: Callable[[Rows, Array], Any]) -> Any:
    """Σ body(tile, fresh) over tiles. The last tile ends with the rows and so may begin in the one before: `fresh`
    (b, 1) is one for runs that were not met yet, zero for the others. One body is compiled, whatever the number of
    rows."""
    runs, tile = rows.z.shape[0], plan.chunk * plan.chunks

    def step(i: Array, total: Any) -> Any:
        begin = jnp.minimum(i * tile, runs - tile)
        part = jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, begin, tile, 0), rows)
        fresh = (begin + jnp.arange(tile) >= i * tile)[:, None]
        return jax.tree.map(jnp.add, total, body(part, fresh.astype(jnp.float32 if plan.single else jnp.float64)))

    part = jax.tree.map(lambda a: jax.ShapeDtypeStruct((tile, *a.shape[1:]), a.dtype), rows)
    fresh = jax.ShapeDtypeStruct((tile, 1), jnp.float32 if plan.single else jnp.float64)
    start = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), jax.eval_shape(body, part, fresh))
    return jax.lax.fori_loop(0, -(-runs // tile), step, start)


@partial(jax.jit, static_argnums=0)
def sweep(plan: Plan, eta_tables: Tables, tables: Tables, delta: Array, zeta: Array, rows: Rows) -> tuple[Array, ...]:
    """ℓ, M ᵀM (K + 1, K + 1), and zᵀ[Σ √w M | w z] (c, K + 1 + c): the sums of one pass."""

    def body(part: Rows, fresh: Array) -> tuple[Array, ...]:
        eta = predictor(plan, eta_tables, delta, zeta, part)
        row = LIKELIHOODS[plan.family](eta, _as(plan, part.y))
        own = fresh if part.weight is None else fresh * _as(plan, part.weight)
        share = jnp.sqrt(own)
        root, pull, value = share * row.root, share * row.pull, own * row.value
        root, pull, value = jax.lax.optimization_barrier((root, pull, value))  # once for a row, as the cells are
        M = _grouped([*(root.reshape(-1, 1) * one for one in _columns(plan, tables, part)), pull.reshape(-1, 1)])
        z = _as(plan, part.z)
        each = [_product("br,brk->bk", root, m.reshape(*root.shape, -1)) for m in M]
        along = jnp.concatenate([*each, (root * root).sum(1)[:, None] * z], axis=1)
        met = _product("bki,bkj->bij", *(a.reshape(plan.chunks, -1, a.shape[1]) for a in (z, along)))
        return value.astype(jnp.float64).sum(), _gram(plan, M), _double(met).sum(0)

    return _folded(plan, rows, body)


def _gram(plan: Plan, M: list[Array]) -> Array:
    """MᵀM of groups of columns, in batches of rows; each pair of groups is met once."""
    flat = [m.reshape(plan.chunks, -1, m.shape[1]) for m in M]
    pairs = {
        (i, j): _double(_product("bki,bkj->bij", flat[i], flat[j])).sum(0)
        for i in range(len(M))
        for j in range(i, len(M))
    }
    return jnp.block([[pairs[i, j] if i <= j else pairs[j, i].T for j in range(len(M))] for i in range(len(M))])


@partial(jax.jit, static_argnums=0)
def leverage(
    plan: Plan, eta_tables: Tables, tables: Tables, delta: Array, zeta: Array, P: tuple[Array, Array, Array], rows: Rows
) -> tuple[Array, Array]:
    """Σ w'h x of the rows' columns (K,) and of the contexts' (c,), h = xᵀPx with P = (P_xx, P_zx, P_zz)."""
    p_xx, p_zx, p_zz = P

    def body(part: Rows, fresh: Array) -> tuple[Array, Array]:
        eta = predictor(plan, eta_tables, delta, zeta, part)
        dw = fresh * LIKELIHOODS[plan.family](eta, _as(plan, part.y)).dw
        if part.weight is not None:
            dw = dw * _as(plan, part.weight)
        X, z = _grouped(_columns(plan, tables, part)), _as(plan, part.z)
        own = jnp.einsum("bc,bc->b", _product("bc,cd->bd", z, p_zz), z)
        h = jnp.broadcast_to(own[:, None], dw.shape)
        for i, x in enumerate(X):
            at = slice(i * _WIDE, i * _WIDE + x.shape[1])
            cross = 2.0 * _product("bc,ck->bk", z, p_zx[:, at])
            met = _product("nk,kj->nj", x, p_xx[at, at]).reshape(*dw.shape, -1) + cross[:, None]
            h = h + jnp.sum(x.reshape(met.shape) * met, axis=2)
            for j, other in enumerate(X[:i]):
                before = slice(j * _WIDE, (j + 1) * _WIDE)
                met = _product("nk,kj->nj", other, p_xx[before, at])
                h = h + 2.0 * jnp.sum(met * x, axis=1).reshape(h.shape)
        q = dw * h
        along = q.reshape(plan.chunks, -1)
        score = [_double(_product("bki,bk->bi", x.reshape(plan.chunks, -1, x.shape[1]), along)).sum(0) for x in X]
        return jnp.concatenate(score), _double(_product("bc,b->c", z, q.sum(1)))

    return _folded(plan, rows, body)


@partial(jax.jit, static_argnums=0)
def predicted(plan: Plan, eta_tables: Tables, delta: Array, zeta: Array, rows: Rows) -> Array:
    """η (runs, R)."""
    return predictor(plan, eta_tables, delta, zeta, rows)


@partial(jax.jit, static_argnums=0)
def extremes(plan: Plan, eta_tables: Tables, delta: Array, zeta: Array, rows: Rows) -> tuple[Array, Array]:
    """The least and the largest η."""
    eta = predictor(plan, eta_tables, delta, zeta, rows)
    return eta.min(), eta.max()
