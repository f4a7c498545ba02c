"""Grids of contexts at which integrals are computed, where each context has a window of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.observations import Observations
from ..data.placing import by_window
from ..domains.base import Domain

if TYPE_CHECKING:
    from scipy import sparse

Mesh = Callable[[Observations, tuple[str, ...], int], tuple[list[np.ndarray], Any]]  # points, and the weights of each


def meshes(
    domain: Domain, obs: Observations, names: tuple[str, ...], grid: int, mesh_of: Mesh
) -> tuple[Observations, sparse.csr_array]:
    """A grid for each window; where it has fewer observations than points, their own contexts."""
    from scipy import sparse

    first, values, weights, order = [], [], [], []
    for _, rows in by_window(domain, obs):
        some = obs.take(rows)
        few = some.n <= grid ** len(names)
        mesh, matrix = ([some.context[name] for name in names], None) if few else mesh_of(some, names, grid)
        first.append(np.full(len(mesh[0]), rows[0]))
        values.append(mesh)
        weights.append(sparse.eye_array(some.n) if matrix is None else matrix)
        order.append(rows)
    places = obs.take(np.concatenate(first))
    context = {name: np.concatenate([mesh[j] for mesh in values]) for j, name in enumerate(names)}
    together = sparse.csr_array(sparse.block_diag(weights, format="csr"))
    return replace(places, context={**places.context, **context}), together[np.argsort(np.concatenate(order))]
