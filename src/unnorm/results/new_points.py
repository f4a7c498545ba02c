"""New points as observations of the kind that was fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base.numerics import floats
from ..data.observations import Kind, Observations
from ..errors import InputError, listing


def contexts_once(obs: Observations) -> Observations:
    """One observation where all have the same context, as the places of a map have; else all of them."""
    columns = {**obs.context, **obs.group}.values()
    same = obs.n > 1 and obs.has_context and all(np.all(column == column[0]) for column in columns)
    return obs.take(np.zeros(1, dtype=np.intp)) if same else obs


def new_observations(kind: Kind, y: Any, x: Any, about: Mapping[str, Any]) -> Observations:
    """New points as observations of the kind that was fitted; observations as they are."""
    names = tuple(about["outcome_names"])
    if isinstance(y, Observations):
        if x is not None:
            raise InputError("Observations have their own contexts: leave x out.")
        if y.kind != kind or y.outcome_names != names:
            raise InputError(
                f"The fit is of {kind} observations of {listing(names)}; got {y.kind} ones of "
                f"{listing(y.outcome_names)}."
            )
        return y
    outcome = floats(y, "y")
    outcome = outcome.reshape(-1, 1) if len(names) == 1 else np.atleast_2d(outcome)
    if outcome.shape[1] != len(names):
        raise InputError(f"y must have {len(names)} column(s) ({listing(names)}); got shape {np.shape(y)}.")
    n = outcome.shape[0]
    if kind == "iid":
        return Observations("iid", outcome, names)
    if x is None:
        raise InputError(
            "x is needed: the model was fitted with a context. Pass the previous points or the covariates."
        )
    if kind == "conditional" and isinstance(x, np.ndarray | list | tuple | float | int):
        x = _by_name(x, about["context_names"])
    if kind == "conditional" or isinstance(x, Mapping):
        context = {name: np.broadcast_to(np.asarray(values), (n,)).copy() for name, values in dict(x).items()}
        missing = [name for name in about["context_names"] if name not in context]
        if missing:
            raise InputError(f"x must give {listing(about['context_names'])}; missing {listing(missing)}.")
    else:
        lags, d = int(about["lags"]), len(names)
        previous = floats(x, "x").reshape(-1, lags * d)
        previous = np.broadcast_to(previous, (n, lags * d)) if len(previous) == 1 else previous
        if previous.shape != (n, lags * d):
            raise InputError(f"x must have one row for each y ({n}) or one for all; got shape {np.shape(x)}.")
        suffixes = ["_prev" if lag == 1 else f"_prev{lag}" for lag in range(1, lags + 1)]
        labels = [name + suffix for suffix in suffixes for name in names]
        context = {label: previous[:, j].copy() for j, label in enumerate(labels)}
        if about["extra"]:
            raise InputError(
                f"The model's context has extra columns: pass x as a mapping of {listing(about['context_names'])}."
            )
    return Observations(kind, outcome, names, context, lags=int(about["lags"]), extra=tuple(about["extra"]))


def _by_name(x: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Covariates that came as an array, one column for each name."""
    values = np.asarray(x)
    columns = values[..., None] if len(names) == 1 and values.ndim < 2 else values
    if columns.ndim > 2 or columns.shape[-1] != len(names):
        raise InputError(
            f"x must be a mapping from each covariate to its values, or an array with a column for each of "
            f"{listing(names)}; got {type(x).__name__} of shape {values.shape}."
        )
    return {name: columns[..., j] for j, name in enumerate(names)}
