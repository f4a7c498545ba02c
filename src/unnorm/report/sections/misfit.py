"""What the model misses of points, steps, directions and turns, and which term to add."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data.placing import frame_of, window_codes
from ..analysis import Analysis
from ..misfit import MATTERS, Misfit, Values, misfits
from ..page import Cell, Section, Table, number, p_value
from .simulated import simulate_like


def section(analysis: Analysis) -> Section | None:
    found = measured(analysis)
    columns = frozenset(name for label in analysis.labels for name in analysis.smooths().term(label).covariates)
    rows = [
        (
            Cell(one.feature.words + (" (mean cosine)" if one.feature.circular else "")),
            number(one.observed, 3),
            number(one.simulated, 3),
            number(one.distance, 3),
            number(one.envelope, 3),
            p_value(one.p),
            Cell(one.advice(columns) if one.missed else "–"),
        )
        for one in found
    ]
    head = ("", "observed mean", "simulated mean", "distance", "95 % of exchanged pairs", "p", "what would help")
    table = Table("Observed against simulated paths", head, tuple(rows))
    how = (
        "The distance is the largest difference between the observed and the simulated distribution function (for "
        "angles the largest above plus the largest below). Where the model holds, a simulated path may change places "
        "with the observed one that it starts with: p is the share of such exchanges with a distance as large. Those "
        f"below {MATTERS:g} are left alone."
    )
    return Section((verdict(found, columns), how), tables=(table,))


def verdict(found: Sequence[Misfit], columns: frozenset[str]) -> str:
    """One sentence: what is missed, worst first, and what to add."""
    missed = sorted((one for one in found if one.missed), key=lambda one: -one.distance)
    if not missed:
        return "Simulated paths match the observed ones in all of these."
    parts = dict.fromkeys(f"the {one.feature.words.split(',')[0]} ({one.advice(columns)})" for one in missed)
    return f"The model misses {'; '.join(parts)}."


def measured(analysis: Analysis) -> list[Misfit]:
    """The features of observed paths and of those simulated like them."""
    obs, lags = analysis.obs, analysis.obs.lags
    paths, first, length = simulate_like(analysis)
    rows = np.concatenate([np.arange(a, a + n) for a, n in zip(first, length)])
    pair = np.repeat(np.arange(len(first)), length)
    before = obs.previous()
    real = [np.vstack([before[a], obs.outcome[a : a + n]]) for a, n in zip(first, length)]
    windows = window_codes(analysis.model.domain, obs)[rows]
    here = _features(analysis, real, windows)
    there = _features(analysis, [path[lags - 1 :] for path in paths], windows)
    return misfits(here, there, pair, analysis.seed)


def _features(analysis: Analysis, paths: Sequence[np.ndarray], windows: np.ndarray) -> Values:
    """Of every step of the paths: where it ends, how long it is, where it points and turns."""
    frame = frame_of(analysis.model.domain)
    assert frame is not None
    sign = -1.0 if analysis.model.y_down else 1.0
    moves = [np.diff(path, axis=0) for path in paths]
    step = np.concatenate([np.hypot(*move.T) for move in moves])
    with np.errstate(invalid="ignore"):
        angles = [np.where(np.any(m != 0, axis=1), np.arctan2(sign * m[:, 1], m[:, 0]), np.nan) for m in moves]
    turns = [np.concatenate([[np.nan], np.diff(angle)]) for angle in angles]
    turn = np.concatenate(turns)
    u = (np.concatenate([path[1:] for path in paths]) - frame.lower[windows]) / frame.width[windows]
    return {
        "step": step,
        "direction": np.concatenate(angles),
        "turn": np.pi - np.mod(np.pi - turn, 2 * np.pi),
        "across": u[:, 0],
        "down": u[:, 1],
        "distance from the centre": np.hypot(*(2 * u - 1).T),
    }
