"""Ω and the covariates of steps: the extent of the maps, statistics of the step and the turn, maps at the start."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.words import at_row, option
from ..data.covariates import Covariate
from ..data.covariates.expressions import Expression
from ..data.covariates.maps import Map
from ..data.observations import Observations
from ..domains import Box
from ..domains.base import Domain
from ..errors import InputError, OutsideError
from ..references.laws import WRITTEN
from ..references.step_kernel import StepKernel

ROOM = 3.0  # longest steps that Ω reaches beyond the track, where nothing says how large it is
_NAMED = {r"log\(\s*step\s*\)": "log_step", r"cos\(\s*turn\s*\)": "cos_turn", r"sin\(\s*turn\s*\)": "sin_turn"}


def written(terms: Any) -> Any:
    """Terms in which log(step), cos(turn) and sin(turn) are the covariates log_step, cos_turn and sin_turn.

    >>> written("forest + log(step) + cos( turn ):night")
    'forest + log_step + cos_turn:night'
    """
    if not isinstance(terms, str):
        return terms
    for pattern, name in _NAMED.items():
        terms = re.sub(pattern, name, terms)
    return terms


def landscape(obs: Observations, maps: Sequence[Map], domain: Domain | None) -> Domain:
    """Ω: as given, the extent that all maps cover, or the track with room for a few steps around it."""
    if domain is not None:
        return domain
    grids = [grid.extent() for one in maps for grid in one.grids.values()] if maps else []
    if grids:
        x0, x1, y0, y1 = np.array(grids).T
        if x0.max() >= x1.min() or y0.max() >= y1.min():
            raise InputError(
                "The maps do not overlap: they may be in different projections. Project them to one system."
            )
        ground = Box((float(x0.max()), float(x1.min())), (float(y0.max()), float(y1.min())))
        _check_track(obs, ground)
        return ground
    places = np.concatenate([obs.outcome, obs.previous()])
    room = ROOM * float(np.hypot(*(obs.outcome - obs.previous()).T).max())
    low, high = places.min(axis=0) - room, places.max(axis=0) + room
    return Box((float(low[0]), float(high[0])), (float(low[1]), float(high[1])))


def _check_track(obs: Observations, ground: Box) -> None:
    """Refuse a track that lies beside the maps."""
    away = ~(ground.contains(obs.outcome) & ground.contains(obs.previous()))
    if not away.any():
        return
    first = int(np.argmax(away))
    row = first if obs.row is None else int(obs.row[first])
    (x0, y0), (x1, y1) = ground.sides
    remedy = (
        f"The maps may be in another projection: project them, or the track ({option('crs')} and {option('to')})."
        if away.all()
        else "Take larger maps, or leave these fixes out."
    )
    raise OutsideError(
        f"{int(away.sum()):,} of {obs.n:,} steps begin or end outside the maps, the first at {at_row(row)}, (x, y) = "
        f"({obs.outcome[first, 0]:.7g}, {obs.outcome[first, 1]:.7g}); the maps cover [{x0:.7g}, {x1:.7g}] × "
        f"[{y0:.7g}, {y1:.7g}]. {remedy}"
    )


def check_maps(maps: Any) -> tuple[Map, ...]:
    """A sequence of maps, or a sentence."""
    found = (maps,) if isinstance(maps, Map) else tuple(maps)
    wrong = [one for one in found if not isinstance(one, Map)]
    if wrong:
        raise InputError(
            f"maps must be un.Map objects, e.g. un.Map.from_table(grid, value='forest'); got {wrong[0]!r}."
        )
    return found


def step_covariates(
    names: Sequence[str], maps: Sequence[Map], others: Sequence[Covariate], kernel: StepKernel, taken: Sequence[str]
) -> tuple[Covariate, ...]:
    """Maps, the user's own covariates, and of the statistics of steps and of maps at the start those that are named."""
    read = set(names) | {need for one in others for need in one.needs}
    made: list[Covariate] = [*maps, *others]
    known = {one.name for one in made} | set(taken)
    texts = {**WRITTEN, **kernel.step.written(), **kernel.turn.written()}
    made += [
        Expression(name, text) for name, text in texts.items() if name in read and name not in known and name != "step"
    ]
    for one in maps:
        name = f"{one.name}_start"
        if name in read and name not in known:
            made.append(Map.from_dict({**one.to_dict(), "name": name, "coordinates": ("x_prev", "y_prev")}))
    return tuple(made)
