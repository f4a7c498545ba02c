"""Tables of which one point reads a few rows: words, species, stations, each with a vector of its own.

f receives the rows themselves, θ["out"][y] or θ["in"][x], in place of the tables, so that a gradient step can touch
these rows alone: its cost does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.words import at_row
from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import InputError, OutsideError, listing


@final
@dataclass(frozen=True)
class Table:
    """One table in the flat θ: entries `begin` to `end`, as rows of `shape[1:]`."""

    name: str
    begin: int
    end: int
    shape: tuple[int, ...]


@final
@dataclass(frozen=True)
class Lookup:
    """Which leaves of θ are tables, and whether the outcome or the context chooses their rows."""

    outcome: tuple[str, ...] = ()
    context: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outcome or self.context)

    @property
    def names(self) -> tuple[str, ...]:
        return self.outcome + self.context

    def refuse_unknown(self, obs: Observations, theta0: Mapping[str, Any]) -> None:
        """Refuse contexts that name a row that some table does not have."""
        most = min(len(theta0[name]) for name in self.context)
        for lag in range(1, obs.lags + 1):
            x = obs.previous(lag)[:, 0]
            known = (x >= 0) & (x < most) & (x == np.floor(x))
            if not known.all():
                t = int(np.argmin(known))
                row = t if obs.row is None else int(obs.row[t])
                raise OutsideError(
                    f"{int((~known).sum()):,} of {obs.n:,} contexts are outside the vocabulary of {most:,} rows, 0 to "
                    f"{most - 1:,}; the first is {x[t]:g}, {lag} before {at_row(row)}. Give such words a number of "
                    "their own, as the training text did, or leave them out."
                )

    def rows(self, tree: Mapping[str, Any], y: Any, x: Any) -> dict[str, Any]:
        """The rows that one point reads; y and x count from 0."""
        import jax.numpy as jnp

        chosen = {name: tree[name][jnp.asarray(y).astype(jnp.int32)] for name in self.outcome}
        return chosen | {name: tree[name][jnp.asarray(x).astype(jnp.int32)] for name in self.context}


def lookup(outcome: Sequence[str], context: Sequence[str], theta0: Any, domain: Domain, arity: int) -> Lookup:
    """The tables, checked against θ0."""
    made = Lookup(tuple(outcome), tuple(context))
    if not made:
        return made
    count = int(domain.volume) if domain.scalar and domain.rule == "enumeration" else 0
    if not count or not np.array_equal(domain.quadrature().points[:, 0], np.arange(count)):
        raise InputError(
            f"by_outcome and by_context number rows by outcomes: Ω must be a FiniteSet of 0, 1, 2, …; got {domain!r}."
        )
    if not isinstance(theta0, Mapping):
        raise InputError("With by_outcome or by_context, theta0 must be a dict whose values are the tables.")
    missing = [name for name in made.names if name not in theta0]
    if missing:
        raise InputError(f"theta0 has no {missing[0]!r}; it has {listing(list(theta0))}.")
    if len(set(made.names)) < len(made.names):
        raise InputError(
            "A table belongs to by_outcome or to by_context, not to both; give it to f twice, as two tables."
        )
    flat = [name for name in made.names if np.ndim(theta0[name]) < 1]
    if flat:
        raise InputError(f"{flat[0]!r} is looked up by row, and must be an array of V rows; got a number.")
    if made.context and arity == 0:
        raise InputError("by_context needs an f with a context: f(theta, y, x).")
    short = [name for name in made.names if len(theta0[name]) < count]
    if short:
        raise InputError(
            f"{short[0]!r} has {len(theta0[short[0]]):,} rows; there are {count:,} outcomes, one row each."
        )
    return made
