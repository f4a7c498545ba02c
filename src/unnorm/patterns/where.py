"""Places that a user names: rows of a table, an array, or so many cells across the window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from .places import Places
from .point_pattern import Pattern
from .point_pattern import pattern as read

MOST_CELLS = 4096  # across


def places_at(pattern: Pattern, at: Any) -> Places:
    """The places; those of a grid are the centres of its cells inside the window, for each mark and replicate."""
    if isinstance(at, Places):
        return at
    if isinstance(at, int | np.integer) and not isinstance(at, bool):
        if not 1 <= at <= MOST_CELLS:
            raise InputError(f"A grid has 1 to {MOST_CELLS:,} cells across; got {at}.")
        parts = [
            Places.of(xy[inside], mark, code)
            for code in range(pattern.replicates)
            for xy, inside, _ in [grid(pattern, code, int(at))]
            for mark in range(pattern.types)
        ]
        return Places.joined(parts)
    array = isinstance(at, list | tuple | np.ndarray) and not isinstance(at, Mapping)
    if array and pattern.mark_name is None and pattern.replicate_name is None:
        xy = np.asarray(at, dtype=np.float64)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise InputError(f"Places must have shape (N, 2); got {xy.shape}.")
        return read(
            {name: xy[:, j] for j, name in enumerate(pattern.names)}, pattern.names, window=pattern.windows[0]
        ).places
    return read(
        at,
        pattern.names,
        window=pattern.windows[0]
        if pattern.replicate_name is None
        else dict(zip(pattern.replicate_levels, pattern.windows)),
        marks=pattern.mark_name,
        replicate=pattern.replicate_name,
        types=None if pattern.mark_name is None else pattern.mark_levels,
    ).places


def grid(pattern: Pattern, code: int, across: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Centres of the cells over a window's box (ny × nx, row by row), which are inside, and the shape (ny, nx)."""
    window = pattern.windows[code]
    assert window.enclosing_box is not None
    low, high = window.enclosing_box
    side = float((high - low).max()) / across
    nx, ny = (max(1, round(float(length) / side)) for length in high - low)
    x = low[0] + (np.arange(nx) + 0.5) * (high - low)[0] / nx
    y = low[1] + (np.arange(ny) + 0.5) * (high - low)[1] / ny
    xy = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return xy, window.contains(xy), (ny, nx)
