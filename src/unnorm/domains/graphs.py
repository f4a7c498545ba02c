"""Graphs on n labelled nodes as vectors of edge indicators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, final

import numpy as np

from .._base.numerics import floats, read_only, whole
from ..errors import InputError
from ._rules import MOST_STATES
from .base import Quadrature
from .finite import Bits


@final
class Graphs(Bits):
    """All simple graphs on n labelled nodes (no loops), with counting measure.

    An outcome is the flat vector of edge indicators. Undirected: the n(n−1)/2 pairs i < j, row by row: (0,1), (0,2), …,
    (1,2), …. Directed: the n(n−1) ordered pairs i ≠ j, row by row: (0,1), (0,2), …, (1,0), (1,2), …; i → j.
    `pairs` lists them. `quadrature()` enumerates all graphs, and refuses above 2²⁰ of them (so up to n = 6 undirected,
    n = 5 directed).

    `adjacency` also works inside JAX-traced code, so that statistics can be written with it.

    Args:
        n: the number of nodes.
        directed: whether i → j and j → i are two ties.
        fixed: structural zeros, an (n, n) mask of dyads that can never be ties (True): outcomes are 0 there, the
            enumeration runs over the others, and flips and samplers leave them alone.

    >>> omega = Graphs(4)
    >>> def triangles(y):
    ...     A = omega.adjacency(y)
    ...     return (A @ A @ A).trace() / 6
    >>> sum(float(triangles(y)) for y in omega.quadrature().points)  # 4 possible triangles, each in 2**3 graphs
    32.0
    """

    instead_of_sums: ClassVar[str] = "un.PseudoLikelihood() or, of un.GraphStatistics, un.MonteCarloML()"

    def __init__(self, n: int, directed: bool = False, fixed: Any = None) -> None:
        self._n = whole(n, "The number n of nodes of Graphs", least=2)
        if not isinstance(directed, bool | np.bool_):
            raise InputError(f"directed must be True or False; got {directed!r}.")
        self._directed = bool(directed)
        self.dim = self._n * (self._n - 1) // (1 if directed else 2)
        self._free = read_only(np.ones(self.dim, dtype=bool) if fixed is None else ~self._mask(fixed))
        if not self._free.any():
            raise InputError("fixed marks every dyad, so that there is one graph only: nothing is left to model.")

    def _mask(self, fixed: Any) -> np.ndarray:
        """(d,) the dyads that an (n, n) mask marks."""
        n, mask = self._n, np.asarray(fixed)
        if mask.shape != (n, n) or mask.dtype.kind != "b":
            raise InputError(
                f"fixed must be an array of {n} × {n} booleans, True for dyads that can never be ties; got "
                f"{mask.dtype} of shape {mask.shape}. Of numbers, pass mask == 1."
            )
        if not self._directed and not np.array_equal(mask, mask.T):
            i, j = np.argwhere(mask != mask.T)[0].tolist()
            raise InputError(
                f"fixed must be symmetric, as the graphs are undirected; ({i}, {j}) and ({j}, {i}) differ (from 0). "
                "Pass mask | mask.T."
            )
        i, j = self.pairs.T
        return mask[i, j]

    @property
    def free(self) -> np.ndarray:
        return self._free

    @property
    def bits(self) -> int | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """d; None where some dyads are fixed, so that not every vector of indicators is a graph."""
        return self.dim if self._free.all() else None

    @property
    def volume(self) -> float:
        free = int(self._free.sum())
        return 2.0**free if free < 1024 else np.inf

    @property
    def log_volume(self) -> float:
        return int(self._free.sum()) * float(np.log(2.0))

    @property
    def rule(self) -> Literal["enumeration"] | None:
        free = int(self._free.sum())
        return "enumeration" if free < 64 and 2**free <= MOST_STATES else None

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether every entry is 0 or 1, and 0 where the dyad is fixed."""
        return super().contains(y) & ~np.asarray(y)[:, ~self._free].any(axis=1)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """One coordinate per dyad: a tie where u ≥ ½, unless it is fixed."""
        return super().from_unit(u) * self._free

    def quadrature(self, order: int | None = None) -> Quadrature:
        """All graphs, the first free dyad changing slowest: exact. At most 2²⁰ graphs; an order is not used."""
        if self._free.all() or self.rule is None:
            return super().quadrature(order)
        k = int(self._free.sum())
        states = np.zeros((2**k, self.dim))
        states[:, self._free] = np.arange(2**k)[:, None] >> np.arange(k)[::-1] & 1
        return Quadrature(states, np.ones(2**k), exact=True, rule=f"enumeration of {2**k:,} graphs")

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self._n

    @property
    def directed(self) -> bool:
        """Whether i → j and j → i are two edges."""
        return self._directed

    @cached_property
    def pairs(self) -> np.ndarray:
        """(d, 2) integers: the nodes (i, j) of each column of an outcome."""
        if self._directed:
            return read_only(np.argwhere(~np.eye(self._n, dtype=bool)))
        return read_only(np.column_stack(np.triu_indices(self._n, k=1)))

    @cached_property
    def _column(self) -> np.ndarray:
        """(n, n) integers: the column of an outcome that holds each entry of the adjacency matrix."""
        column = np.zeros((self._n, self._n), dtype=np.intp)
        i, j = self.pairs.T
        column[i, j] = np.arange(self.dim)
        if not self._directed:
            column[j, i] = np.arange(self.dim)
        return column

    def adjacency(self, y: Any) -> Any:
        """Edge indicators of shape (…, d) → adjacency matrices of shape (…, n, n), zero on the diagonal.

        Takes NumPy arrays, and JAX arrays inside traced code (a gather and a mask, so it can be differentiated).
        """
        y = y if hasattr(y, "shape") else np.asarray(y)
        if not y.shape or y.shape[-1] != self.dim:
            raise InputError(f"adjacency of {self!r} takes edge indicators of shape (…, {self.dim}); got {y.shape}.")
        return y[..., self._column] * ~np.eye(self._n, dtype=bool)

    def edges_from_adjacency(self, A: Any) -> np.ndarray:
        """Adjacency matrices of shape (…, n, n) → edge indicators of shape (…, d), after checking them."""
        A = floats(A, "An adjacency matrix")
        n = self._n
        if A.shape[-2:] != (n, n):
            raise InputError(f"An adjacency matrix of {self!r} must have shape (…, {n}, {n}); got {A.shape}.")
        off = ~np.eye(n, dtype=bool)
        if (missing := np.isnan(A) & off).any():
            raise InputError(
                f"An adjacency matrix has {int(missing.sum())} missing ties, {_first(missing)}. Ties that were not "
                "observed are not zeros: un.networks(A, omega, missing='skip') leaves them out."
            )
        if (other := (A != 0.0) & (A != 1.0) & off).any():
            raise InputError(
                f"An adjacency matrix must hold 0 and 1 only; {_first(other)} is {A[other][0]:g}. For weighted ties, "
                "cut them first (A > 0); structural zeros go to fixed= of un.Graphs."
            )
        loops = (A != 0.0) & ~off & ~np.isnan(A)
        if loops.any():
            raise InputError(
                f"An adjacency matrix must be zero on the diagonal: these graphs have no loops; {_first(loops)} is "
                f"{A[loops][0]:g}. Set the diagonal to 0."
            )
        if not self._directed and (odd := (np.swapaxes(A, -2, -1) != A) & off).any():
            raise InputError(
                f"An adjacency matrix of {self!r} must be symmetric; {_first(odd)} differs from its mirror. Use "
                f"Graphs({n}, directed=True), or symmetrise it: np.maximum(A, A.T) where either names the other."
            )
        i, j = self.pairs.T
        y = A[..., i, j]
        if (wrong := (y != 0.0) & ~self._free).any():
            a, b = self.pairs[np.argwhere(wrong)[0][-1]].tolist()
            raise InputError(
                f"The dyad ({a}, {b}) (from 0) is fixed at no tie, and an adjacency matrix has one there. "
                "Correct the matrix, or the mask fixed=."
            )
        return y

    def to_dict(self) -> dict[str, Any]:
        fixed = {} if self._free.all() else {"fixed": np.flatnonzero(~self._free).tolist()}
        return {"domain": "Graphs", "n": self._n, "directed": self._directed, **fixed}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        omega = cls(description["n"], description["directed"])
        if "fixed" not in description:
            return omega
        marks = np.zeros(omega.dim, dtype=bool)
        marks[description["fixed"]] = True
        return cls(omega.n, omega.directed, fixed=omega.adjacency(marks) > 0)

    @classmethod
    def examples(cls) -> tuple[Graphs, ...]:
        return cls(4), cls(3, directed=True), cls(4, fixed=np.kron(np.eye(2), np.ones((2, 2))) > 0)

    def __repr__(self) -> str:
        fixed = "" if self._free.all() else f", {int((~self._free).sum())} dyads fixed"
        return f"Graphs({self._n}, directed={self._directed}{fixed})"


def _first(mask: np.ndarray) -> str:
    """The first marked entry of matrices, as a reader counts them."""
    *graph, i, j = np.argwhere(mask)[0].tolist()
    return f"the first, ({i}, {j})" + (f" of graph {graph[-1]}" if graph else "") + " (from 0)"
