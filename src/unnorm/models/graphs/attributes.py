"""Covariates of actors and of dyads, by name, constant or one for each graph of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from ..._base import frames
from ..._base.numerics import floats, read_only
from ...errors import DataError, TermError, unknown

Kind = Literal["nodes", "dyads"]


@final
@dataclass(frozen=True, eq=False)
class Attributes:
    """name → (n,) or (T, n) of actors; name → (n, n) or (T, n, n) of dyads."""

    nodes: Mapping[str, np.ndarray]
    dyads: Mapping[str, np.ndarray]
    incomplete: Mapping[str, str] = field(default_factory=dict)  # attributes with missing values, and what to say

    @classmethod
    def read(cls, nodes: Any, dyads: Mapping[str, Any] | None, n: int) -> Attributes:
        """Checked: as many as there are actors, and none missing of those that a term reads."""
        columns = {} if nodes is None else nodes if isinstance(nodes, Mapping) else _columns(nodes)
        arrays = {str(name): _sized(str(name), values, n) for name, values in columns.items()}
        incomplete = {name: text for name, array in arrays.items() if (text := _missing(name, array))}
        return cls(
            {name: array if name in incomplete else _node(name, array) for name, array in arrays.items()},
            {str(name): _dyad(str(name), values, n) for name, values in (dyads or {}).items()},
            incomplete,
        )

    def _named(self, kind: Kind, name: str, label: str) -> np.ndarray:
        known = self.nodes if kind == "nodes" else self.dyads
        if name not in known:
            if not known:
                what = "sex=…" if kind == "nodes" else "dist=…"
                raise TermError(
                    f"{label} reads the attribute {name!r}, and the model has no {kind}: "
                    f"pass {kind}=dict({what}) to un.GraphStatistics."
                )
            raise TermError(unknown(f"The attribute of {label}", name, known))
        if kind == "nodes" and name in self.incomplete:
            raise DataError(self.incomplete[name])
        return known[name]

    def node(self, name: str, label: str, wave: int, lag: int = 0) -> np.ndarray:
        """(n,) values of the actors at a wave."""
        return _at(self._named("nodes", name, label), 2, wave, lag, label)

    def dyad(self, name: str, label: str, wave: int, lag: int = 0) -> np.ndarray:
        """(n, n) values of the dyads at a wave."""
        return _at(self._named("dyads", name, label), 3, wave, lag, label)

    def number(self, name: str, label: str) -> np.ndarray:
        """All values of an actors' attribute that must be numbers."""
        values = self._named("nodes", name, label)
        if values.dtype.kind not in "biuf":
            raise TermError(
                f"{label} needs numbers, and {name!r} is text ({values.ravel()[0]!r}, …): use nodematch or nodefactor."
            )
        return values

    def varies(self, kind: Kind, name: str) -> bool:
        """Whether the attribute has one value for each wave."""
        return (self.nodes if kind == "nodes" else self.dyads)[name].ndim == (2 if kind == "nodes" else 3)

    def levels(self, name: str, label: str) -> list[Any]:
        """The distinct values of an actors' attribute, sorted."""
        return np.unique(self._named("nodes", name, label)).tolist()


def _at(values: np.ndarray, varying: int, wave: int, lag: int, label: str) -> np.ndarray:
    if values.ndim < varying:
        return values
    if not 0 <= wave - lag < len(values):
        raise DataError(
            f"{label} reads a covariate with values for {len(values)} graphs, and graph {wave} (from 0)"
            f"{' with lag 1' if lag else ''} needs number {wave - lag}. Give one for each graph of the sequence."
        )
    return values[wave - lag]


def _columns(nodes: Any) -> dict[str, np.ndarray]:
    """The columns of a table, None where a value is missing: its own stand-in there is no value."""
    table = frames.table(nodes)
    out = {}
    for name in table.names:
        column = table.read(name)
        values = column.take(np.arange(table.n))
        if column.missing is not None and column.missing.any():
            values = values.astype(object)
            values[column.missing] = None
        out[name] = values
    return out


def _sized(name: str, values: Any, n: int) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise DataError(
            f"nodes[{name!r}] must have one value for each of {n} actors, shape ({n},), or (T, {n}) where it varies in "
            f"time; got shape {array.shape}."
        )
    return array


def _missing(name: str, array: np.ndarray) -> str | None:
    """What to say of an attribute with missing values; None where there are none."""
    missing = np.array([_is_missing(value) for value in array.ravel().tolist()]).reshape(array.shape)
    if not missing.any():
        return None
    at = np.argwhere(missing)[0].tolist()
    when = f" in graph {at[0]}" if array.ndim == 2 else ""
    return (
        f"nodes[{name!r}] is missing for {int(missing.sum())} of {array.size} values, first actor {at[-1]}{when} "
        "(from 0). Impute it, or give the missing ones a level of their own (-1, 'unknown') and use nodefactor."
    )


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, and what compares with itself as neither true nor false (pandas' NA)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _node(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iufU":
        array = array.astype(str)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(
            f"nodes[{name!r}] must be finite; it is infinite for actor {np.argwhere(~np.isfinite(array))[0][-1]}."
        )
    return read_only(array.copy())


def _dyad(name: str, values: Any, n: int) -> np.ndarray:
    array = floats(values, f"dyads[{name!r}]")
    if array.ndim not in (2, 3) or array.shape[-2:] != (n, n):
        raise DataError(
            f"dyads[{name!r}] must have shape ({n}, {n}), or (T, {n}, {n}) where it varies in time; got {array.shape}."
        )
    off = ~np.isfinite(array) & ~np.eye(n, dtype=bool)
    if off.any():
        at = np.argwhere(off)[0].tolist()
        when = f" of graph {at[0]}" if array.ndim == 3 else ""
        raise DataError(
            f"dyads[{name!r}] is missing or infinite for {int(off.sum())} dyads, first ({at[-2]}, {at[-1]}){when} "
            "(from 0). Impute it, or declare these dyads fixed: un.Graphs(n, fixed=mask)."
        )
    return read_only(np.where(np.eye(n, dtype=bool), 0.0, array))
