"""Observations with a point outside Ω, now or earlier in their chain, and the first of them in words."""

from __future__ import annotations

import numpy as np

from .._base.words import at_row
from ..data.observations import Observations, lag_suffix
from ..data.placing import by_window, within
from ..domains.base import Domain


def inside(domain: Domain, obs: Observations, earlier: bool = True) -> np.ndarray:
    """(n,) whether the outcome, missing entries aside, lies in Ω; `earlier`: and the points before it."""
    out = within(domain, obs, _seen(obs))
    for lag in range(1, obs.lags + 1 if earlier else 1):
        out = out & within(domain, obs, obs.previous(lag))
    return out


def first_outside(domain: Domain, obs: Observations) -> tuple[str, str]:
    """Row and value of the first point outside Ω, and what to do about it."""
    first = int(np.argmin(inside(domain, obs)))
    one = obs.take(np.array([first]))
    row = first if obs.row is None else int(obs.row[first])
    lags = [lag for lag in range(obs.lags + 1) if not within(domain, one, _point(obs, first, lag))[0]]
    names = tuple(name + lag_suffix(lags[0]) for name in obs.outcome_names) if lags[0] else obs.outcome_names
    window = next(by_window(domain, one))[0]
    what, remedy = window.outside_words(_point(obs, first, lags[0])[0], names)
    if domain.key is not None:
        what += f" with {domain.key} {one.columns[domain.key][0]}, whose window is {window!r}"
    when = "" if not lags[0] else f" ({'the point' if lags[0] == 1 else f'{lags[0]} points'} before it)"
    return f"the first is {at_row(row)}, {what}{when}", remedy


def lying(domain: Domain, obs: Observations) -> str:
    """Where points of the plane lie, and whether their two columns were exchanged, for those who have to find out."""
    if domain.dim != 2 or domain.key is not None or domain.enclosing_box is None or len(obs.outcome_names) != 2:
        return ""
    y = _seen(obs)
    ends = zip(obs.outcome_names, y.min(axis=0), y.max(axis=0))
    swapped = " With the two columns exchanged, all would lie inside." if domain.contains(y[:, ::-1]).all() else ""
    return f" The points lie in {' and '.join(f'{n} from {a:g} to {b:g}' for n, a, b in ends)}.{swapped}"


def _seen(obs: Observations) -> np.ndarray:
    return obs.outcome if obs.holes is None else np.where(obs.holes, 0.0, obs.outcome)


def _point(obs: Observations, t: int, lag: int) -> np.ndarray:
    """(1, d) the outcome of observation t, or the point `lag` steps before it."""
    return _seen(obs)[[t]] if lag == 0 else obs.previous(lag)[[t]]
