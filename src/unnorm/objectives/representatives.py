"""Contexts that stand for all: each distinct one of those that f reads, or a grid with splines between its points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data.observations import Observations
from ..data.placing import window_codes
from ..models.base import Unnormalised
from .between import Between, Pieces, spaced, spline_between
from .window_grids import meshes


def codes(obs: Observations, names: tuple[str, ...]) -> np.ndarray:
    """(n, columns) numbers, equal where the observations' values are equal."""
    every = {**obs.group, **obs.context}
    return np.column_stack([np.unique(every[name], return_inverse=True)[1] for name in names] or [np.zeros(obs.n)])


def representatives(
    source: Unnormalised, obs: Observations, columns: tuple[str, ...], grid: int | None
) -> tuple[Observations, np.ndarray | Between | Pieces]:
    """Contexts at which integrals are computed, and how their values are taken to the observations' own."""
    names = source.covariates(obs).reads(columns)
    if grid is None:
        rows = np.column_stack([codes(obs, names), window_codes(source.domain, obs)])
        _, first, of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return obs.take(first), of.ravel()
    if source.domain.key is None:
        mesh, way = _mesh(obs, names, grid)
        places = obs.take(np.zeros(len(mesh[0]), dtype=int))
        return replace(places, context={**places.context, **dict(zip(names, mesh))}), way
    return meshes(source.domain, obs, names, grid, _mesh)


def _mesh(obs: Observations, names: tuple[str, ...], grid: int) -> tuple[list[np.ndarray], Between]:
    """The points of a grid over the range of these columns, and the way from there to the observations."""
    own = [obs.context[name] for name in names]
    axes = [spaced(x, grid) for x in own]
    return [values.ravel() for values in np.meshgrid(*axes, indexing="ij")], spline_between(own, axes)
