"""Steps that move only the rows of tables which a batch reads (`un.Energy(by_outcome=…, by_context=…)`).

The gradient is taken in the rows as they were gathered. Rows that occur more than once are summed, and Adagrad
(Duchi, Hazan & Singer 2011) moves each by

    −rate g/√(Σ g²)        (the sum over the steps that have touched it, entry by entry),

so that frequent words move ever less and rare ones still far. The rest of φ moves by the usual optimiser. What a step
costs depends on the batch, not on the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

from ...models.lookup import Table
from .loop import CAUSES, BlockResult
from .step import Step

SMALL = 1e-8  # added to Σ g² in the square root


class RowState(NamedTuple):
    """Σ g² of every entry of the tables, flat, and the state of the other parameters' optimiser."""

    squares: tuple[Any, ...]
    rest: Any


@final
@dataclass(frozen=True)
class RowAdagrad:
    """Adagrad with this rate for the tables' rows, `rest` (an optax optimiser) for all other parameters."""

    rate: float
    rest: Any
    tables: tuple[Table, ...]

    def init(self, phi: Any) -> RowState:
        import jax.numpy as jnp

        squares = tuple(jnp.zeros(table.shape, dtype=phi.dtype) for table in self.tables)
        return RowState(squares, self.rest.init(self.without(phi)))

    def without(self, phi: Any) -> Any:
        """φ without the tables."""
        import jax.numpy as jnp

        edges = [0, *(edge for table in self.tables for edge in (table.begin, table.end)), len(phi)]
        return jnp.concatenate([phi[a:b] for a, b in zip(edges[::2], edges[1::2])])

    def whole(self, rest: Any, tables: tuple[Any, ...]) -> Any:
        """φ from the tables and what lies between them."""
        import jax.numpy as jnp

        parts, begin, taken = [], 0, 0
        for table, values in zip(self.tables, tables):
            count = table.begin - begin
            parts += [rest[taken : taken + count], values.ravel()]
            begin, taken = table.end, taken + count
        return jnp.concatenate([*parts, rest[taken:]])


def moved(values: Any, squares: Any, index: Any, g: Any, rate: float, keep: Any) -> tuple[Any, Any]:
    """A table and its Σ g² after one step; `index` (m,) may name a row more than once, `g` is (m, …)."""
    import jax
    import jax.numpy as jnp

    order = jnp.argsort(index)
    index, g = index[order], g[order]
    new = jnp.concatenate([jnp.ones(1, dtype=bool), index[1:] != index[:-1]])
    at = jnp.cumsum(new) - 1  # which of the distinct rows
    count = len(index)
    total = jax.ops.segment_sum(g, at, num_segments=count, indices_are_sorted=True)
    rows = jnp.full(count, len(values), dtype=index.dtype).at[at].set(index, mode="drop")  # beyond the table: no row
    grown = squares[rows] + total**2  # rows beyond the table read the last one, and are dropped below
    step = jnp.where(keep, -rate * total / jnp.sqrt(grown + SMALL), 0.0)
    grown = jnp.where(keep, grown, squares[rows])
    return values.at[rows].add(step, mode="drop"), squares.at[rows].set(grown, mode="drop")


def block(step: Step, optimiser: RowAdagrad, precondition: bool, phi: Any, state: Any, fixed: Any, scanned: Any) -> Any:
    """As `loop.block`; the mean of φ over the block is its last value, and gradients are those of the rest."""
    import jax
    import jax.numpy as jnp
    import optax

    _, data, constants, key = fixed
    rest = optimiser.without(phi)
    tables = tuple(phi[t.begin : t.end].reshape(t.shape) for t in optimiser.tables)

    def one(carry: Any, scanned: Any) -> Any:
        rest, tables, state, (bad, why), sums = carry
        x, number = scanned
        batch = step.draw(constants, key, x)
        reads = step.reads(data, batch)
        gathered = tuple(jax.tree.map(lambda i, T=T: T[i], read) for T, read in zip(tables, reads))

        def loss(rest: Any, gathered: Any) -> Any:
            value, health = step.by_rows(rest, gathered, data, batch)
            return -value / data["W"], health

        (value, health), (g, g_rows) = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(rest, gathered)
        update, new_state = optimiser.rest.update(g, state.rest, rest)
        new: Any = optax.apply_updates(rest, update)
        every = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves((new, g_rows))])
        wrong = jnp.stack([~jnp.isfinite(value), ~jnp.all(every)])
        first = (bad < 0) & jnp.any(wrong)
        cause = (jnp.argmax(wrong) + len(CAUSES) - len(wrong)).astype(jnp.int32)
        bad, why = jnp.where(first, number, bad), jnp.where(first, cause, why)
        keep = bad < 0
        both = []
        for T, squares, read, slope in zip(tables, state.squares, reads, g_rows):
            index = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(read)])
            flat = [leaf.reshape(-1, *T.shape[1:]) for leaf in jax.tree.leaves(slope)]
            both.append(moved(T, squares, index, jnp.concatenate(flat), optimiser.rate, keep))
        rest = jnp.where(keep, new, rest)
        kept = jax.tree.map(lambda a, b: jnp.where(keep, a, b), new_state, state.rest)
        g = jnp.where(keep, g, 0.0)
        sums = jax.tree.map(jnp.add, sums, (g, g**2, value, health["mass"], health["ess"]))
        after = RowState(tuple(s for _, s in both), kept)
        return (rest, tuple(T for T, _ in both), after, (bad, why), sums), None

    zero = jnp.zeros((), dtype=phi.dtype)
    sums = (jnp.zeros_like(rest), jnp.zeros_like(rest), zero, zero, zero)
    carry = (rest, tables, state, (jnp.int32(-1), jnp.int32(0)), sums)
    (rest, tables, state, (bad, why), sums), _ = jax.lax.scan(one, carry, scanned)
    mean = [total / len(scanned[1]) for total in sums]
    phi = optimiser.whole(rest, tables)
    spread = jnp.maximum(mean[1] - mean[0] ** 2, 0.0)
    return phi, state, BlockResult(phi, mean[0], spread, mean[2], mean[3], mean[4], bad, why)
