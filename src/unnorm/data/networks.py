"""Adjacency matrices → `Observations`: one graph, independent graphs, or a sequence p(G_t | G_{t−1})."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._base.numerics import floats
from ..domains.graphs import Graphs
from ..errors import DataError, InputError, unknown
from .masks import Masks
from .observations import Observations


def networks(
    A: Any,
    domain: Graphs,
    *,
    sequence: bool | None = None,
    present: Any = None,
    missing: Literal["error", "skip"] = "error",
) -> Observations:
    """Observed graphs: the first of a sequence is the context of the second, and so on.

    Args:
        A: an adjacency matrix (n, n), or several: an array (T, n, n) or a list; i → j is A[i, j] = 1.
        domain: `un.Graphs(n, directed=…, fixed=…)`; ties on its structural zeros are refused.
        sequence: whether several graphs follow each other in time (the default), or are independent.
        present: (T, n) booleans, which actors were there at each time: dyads of those who were not are fixed at no tie,
            and a dyad whose earlier state does not exist is left out of models that read it.
        missing: ties that are NaN: "error", or "skip" them. Pseudo-likelihood then leaves out their own terms, and
            Monte Carlo maximum likelihood sums over what they can be.

    Example:
        >>> import unnorm as un
        >>> A = [[[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 1, 1], [0, 0, 1], [0, 0, 0]]]
        >>> obs = un.networks(A, un.Graphs(3, directed=True))
        >>> obs.n, obs.dim
        (1, 6)
    """
    if not isinstance(domain, Graphs):
        raise InputError(f"domain must be un.Graphs(n, directed=…); got {domain!r}.")
    if missing not in ("error", "skip"):
        raise InputError(unknown("missing", missing, ("error", "skip")))
    graphs = _stack(A, domain.n)
    absent = _absent(present, graphs)
    unseen = np.isnan(graphs) & ~np.eye(domain.n, dtype=bool) & ~absent
    if unseen.any() and missing == "error":
        t, i, j = np.argwhere(unseen)[0].tolist()
        raise DataError(
            f"{int(unseen.sum())} ties are missing, the first ({i}, {j}) of graph {t} (from 0). They are not zeros: "
            "pass missing='skip' to leave them out, or impute them."
        )
    if not domain.directed and not np.array_equal(unseen, np.swapaxes(unseen, 1, 2)):
        t, i, j = np.argwhere(unseen & ~np.swapaxes(unseen, 1, 2))[0].tolist()
        raise DataError(
            f"The tie ({i}, {j}) of graph {t} (from 0) is missing and ({j}, {i}) is not: an undirected tie is one. "
            "Copy what is known to the other side."
        )
    ties = absent & (graphs != 0) & ~np.isnan(graphs)
    if ties.any():
        t, i, j = np.argwhere(ties)[0].tolist()
        raise DataError(
            f"Graph {t} has a tie ({i}, {j}), and present says that one of them was not there (from 0). Correct either."
        )
    y = domain.edges_from_adjacency(np.where(unseen | absent, 0.0, graphs))
    i, j = domain.pairs.T
    return _observations(y, absent[:, i, j], unseen[:, i, j], domain, len(y) > 1 if sequence is None else sequence)


def _observations(
    y: np.ndarray, absent: np.ndarray, unseen: np.ndarray, domain: Graphs, sequence: bool
) -> Observations:
    names = tuple(f"tie_{i}_{j}" for i, j in domain.pairs.tolist())
    T = len(y)
    if not sequence:
        masks = Masks.of(absent, unseen, np.zeros_like(absent))
        wave = np.arange(T)
        kind = "conditional" if T > 1 else "iid"
        obs = Observations(kind, y, names, {"wave": wave} if T > 1 else {}, row=wave, masks=masks)
    elif T < 2:
        raise DataError("A sequence needs two graphs or more, the first being the context of the second; got one.")
    else:
        before = {f"{name}_prev": y[:-1, c] for c, name in enumerate(names)}
        wave = np.arange(1, T)
        masks = Masks.of(absent[1:], unseen[1:], (absent | unseen)[:-1])
        obs = Observations(
            "transitions", y[1:], names, {**before, "wave": wave}, lags=1, extra=("wave",),
            sequence=np.zeros(T - 1, dtype=np.intp), row=wave, masks=masks,
        )  # fmt: skip
    return obs if masks is None else replace(obs, notes=masks.notes)


def _stack(A: Any, n: int) -> np.ndarray:
    """(T, n, n) floats."""
    if isinstance(A, Sequence) and len(A) and np.ndim(A[0]) == 2:
        shapes = [np.shape(one) for one in A]
        if odd := [(t, shape) for t, shape in enumerate(shapes) if shape != shapes[0]]:
            t, shape = odd[0]
            raise DataError(
                f"The graphs have different sizes: graph 0 has shape {shapes[0]}, graph {t} {shape}. Bring them to one "
                "list of actors, with rows of zeros for those who were not there, and say who was: present=(T, n)."
            )
    graphs = floats(A, "Adjacency matrices")
    graphs = graphs[None] if graphs.ndim == 2 else graphs
    if graphs.ndim != 3 or graphs.shape[1:] != (n, n) or len(graphs) == 0:
        raise DataError(
            f"Adjacency matrices must have shape ({n}, {n}), or (T, {n}, {n}) for several graphs; got {graphs.shape}."
        )
    return graphs


def _absent(present: Any, graphs: np.ndarray) -> np.ndarray:
    """(T, n, n) dyads with an actor who was not there."""
    T, n, _ = graphs.shape
    if present is None:
        return np.zeros(graphs.shape, dtype=bool)
    here = np.asarray(present)
    if here.shape != (T, n) or here.dtype.kind != "b":
        raise DataError(
            f"present must be {T} × {n} booleans, one for each graph and actor; got {here.dtype} of shape {here.shape}."
        )
    return ~(here[:, :, None] & here[:, None, :]) & ~np.eye(n, dtype=bool)
