"""Grids of contexts at which integrals are computed, where each context has a window of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..data.observations import Observations
from ..data.placing import by_window
from ..domains.base import Domain
from .between import Between, Pieces

Mesh = Callable[[Observations, tuple[str, ...], int], tuple[list[np.ndarray], Between]]  # points, and the way from them


def meshes(
    domain: Domain, obs: Observations, names: tuple[str, ...], grid: int, mesh_of: Mesh
) -> tuple[Observations, Pieces]:
    """A grid for each window; where it has fewer observations than points, their own contexts."""
    first, values, parts = [], [], []
    for _, rows in by_window(domain, obs):
        some = obs.take(rows)
        few = some.n <= grid ** len(names)
        mesh, way = ([some.context[name] for name in names], None) if few else mesh_of(some, names, grid)
        first.append(np.full(len(mesh[0]), rows[0]))
        values.append(mesh)
        parts.append((rows, len(mesh[0]), way))
    places = obs.take(np.concatenate(first))
    context = {name: np.concatenate([mesh[j] for mesh in values]) for j, name in enumerate(names)}
    return replace(places, context={**places.context, **context}), Pieces(tuple(parts))
