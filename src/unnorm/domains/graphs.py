"""Graphs on n labelled nodes as vectors of edge indicators."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.numerics import floats, read_only, whole
from ..errors import InputError
from .finite import Bits


@final
class Graphs(Bits):
    """All simple graphs on n labelled nodes (no loops), with counting measure.

    An outcome is the flat vector of edge indicators. Undirected: the n(n−1)/2 pairs i < j, row by row: (0,1), (0,2), …,
    (1,2), …. Directed: the n(n−1) ordered pairs i ≠ j, row by row: (0,1), (0,2), …, (1,0), (1,2), …; i → j.
    `pairs` lists them. `quadrature()` enumerates all graphs, and refuses above 2²⁰ of them (so up to n = 6 undirected,
    n = 5 directed).

    `adjacency` also works inside JAX-traced code, so that statistics can be written with it:

    >>> omega = Graphs(4)
    >>> def triangles(y):
    ...     A = omega.adjacency(y)
    ...     return (A @ A @ A).trace() / 6
    >>> sum(float(triangles(y)) for y in omega.quadrature().points)  # 4 possible triangles, each in 2**3 graphs
    32.0
    """

    def __init__(self, n: int, directed: bool = False) -> None:
        self._n = whole(n, "The number n of nodes of Graphs", least=2)
        if not isinstance(directed, bool | np.bool_):
            raise InputError(f"directed must be True or False; got {directed!r}.")
        self._directed = bool(directed)
        self.dim = self._n * (self._n - 1) // (1 if directed else 2)

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
        if not ((A == 0.0) | (A == 1.0)).all():
            raise InputError("An adjacency matrix must hold 0 and 1 only. For weighted edges, cut them first: A > 0.")
        if np.diagonal(A, axis1=-2, axis2=-1).any():
            raise InputError("An adjacency matrix must be zero on the diagonal: these graphs have no loops.")
        if not self._directed and not np.array_equal(A, np.swapaxes(A, -2, -1)):
            raise InputError(
                f"An adjacency matrix of {self!r} must be symmetric. Use Graphs({n}, directed=True), or symmetrise it."
            )
        i, j = self.pairs.T
        return A[..., i, j]

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Graphs", "n": self._n, "directed": self._directed}

    @classmethod
    def examples(cls) -> tuple[Graphs, ...]:
        return cls(4), cls(3, directed=True)

    def __repr__(self) -> str:
        return f"Graphs({self._n}, directed={self._directed})"
