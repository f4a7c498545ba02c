"""What the model misses of steps, directions, turns and places, and which term to add."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._base.numerics import generator
from ..._base.threads import quick_turns
from ...data.placing import frame_of, window_codes
from ...results.fit import Fit
from ...results.simulation import held_columns
from ..analysis import GROUP, Analysis
from ..misfit import LEAST, MATTERS, Misfit, Values, advice, misfits
from ..page import Cell, Section, Table, number, p_value
from .simulated import goes_on

MEASURED = "features of observed and drawn points"
MISFIT = "misfit"  # under which an analysis keeps the verdict and what it is about
MOST = 10_000  # observed points that are compared
MOST_EACH = 5  # drawn for each of them, where there are few
HOW = (
    "For each observed point others are drawn from the fit, given the same previous points. A logistic regression "
    "tells observed from drawn ones by smooth functions of length, direction, turn and place, each beside the others "
    "and the constants. The error of the log density is the root mean square of such a function over the drawn points; "
    f"p tests that it is zero. Errors below {MATTERS:g} are left alone."
)


def section(analysis: Analysis) -> Section | None:
    if analysis.obs.n < LEAST:
        return Section((f"{analysis.obs.n} steps are too few to say what the model misses.",))
    found = analysis.once(MEASURED, lambda: measured(analysis))
    columns = frozenset(name for label in analysis.labels for name in analysis.smooths().term(label).covariates)
    windows = analysis.model.domain.key is not None
    rows = [
        (
            Cell(one.feature.words + (" (mean cosine)" if one.feature.circular else "")),
            Cell(", ".join(f"{mean:.3g}" for mean in one.observed)),
            Cell(", ".join(f"{mean:.3g}" for mean in one.drawn)),
            number(one.size, 2),
            p_value(one.p),
            Cell("yes" if one.missed else "no"),
        )
        for one in found
    ]
    head = ("feature", "observed mean", "mean of drawn points", "error of the log density", "p", "missed")
    table = Table("Observed against drawn points", head, tuple(rows))
    text = verdict(found, columns, windows)
    analysis.kept[MISFIT] = (text, found)
    return Section((text, HOW), tables=(table,))


def begin(analysis: Analysis) -> None:
    """Measure it beside what follows."""

    def work() -> list[Misfit]:
        with quick_turns():  # figures are all Python
            return measured(analysis)

    if analysis.obs.n >= LEAST:
        analysis.begin(MEASURED, work)


def verdict(found: Sequence[Misfit], columns: frozenset[str], windows: bool = False) -> str:
    """One sentence: what is missed, worst first, and what to add."""
    helps, words = advice(found, columns, windows), {one.feature.name: one.feature.words for one in found}
    if not helps:
        return "Steps drawn from the model match the observed ones in length, direction, turn and place."
    return f"The model misses {'; '.join(f'the {words[name]} ({text})' for name, text in helps.items())}."


def measured(analysis: Analysis) -> list[Misfit]:
    """The features of observed points, and of points drawn by their own fits at the same contexts."""
    obs = analysis.obs
    rng = generator(analysis.seed)
    chosen = np.sort(rng.permutation(obs.n)[:MOST])
    times = int(np.clip(MOST // len(chosen), 1, MOST_EACH))
    drawn = np.full((times, obs.n, 2), np.nan)
    for which, fit in (analysis.fits or {GROUP: analysis.main}).items():
        rows = np.intersect1d(analysis.rows(which), chosen)
        if rows.size:
            drawn[:, rows] = _drawn(analysis, fit, np.tile(rows, times), rng).reshape(times, -1, 2)
    rows = chosen[np.isfinite(drawn[0, chosen, 0])]  # levels that could not be fitted have none
    before = _directions_before(analysis)
    here = _features(analysis, rows, obs.outcome[rows], before)
    there = _features(analysis, np.tile(rows, times), drawn[:, rows].reshape(-1, 2), before)
    return misfits(here, there, None if obs.weight is None else obs.weight[rows])


def _drawn(analysis: Analysis, fit: Fit, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(N, 2) a point for each of these contexts."""
    obs = analysis.obs
    starts = np.stack([obs.previous(lag)[rows] for lag in range(obs.lags, 0, -1)], axis=1)
    table = fit.simulate(1, x0=starts, x=held_columns(analysis.model, obs, rows), rng=rng)
    points = np.column_stack([np.asarray(table[name], dtype=float) for name in obs.outcome_names])
    return points.reshape(len(rows), obs.lags + 1, 2)[:, -1]


def _directions_before(analysis: Analysis) -> np.ndarray:
    """(n,) the direction of the step before, NaN where it is not known."""
    obs = analysis.obs
    if obs.lags > 1:
        return _angle(analysis, obs.previous(1) - obs.previous(2))
    own = _angle(analysis, obs.outcome - obs.previous())
    return np.concatenate([[np.nan], np.where(goes_on(obs), own[:-1], np.nan)])


def _angle(analysis: Analysis, move: np.ndarray) -> np.ndarray:
    sign = -1.0 if analysis.model.y_down else 1.0
    return np.where(np.any(move != 0, axis=1), np.arctan2(sign * move[:, 1], move[:, 0]), np.nan)


def _features(analysis: Analysis, rows: np.ndarray, y: np.ndarray, before: np.ndarray) -> Values:
    """Of steps to y from these contexts: how long they are, where they point, turn and end."""
    frame = frame_of(analysis.model.domain)
    assert frame is not None
    x, window = analysis.obs.previous()[rows], window_codes(analysis.model.domain, analysis.obs)[rows]
    move = y - x
    direction = _angle(analysis, move)
    u, v = ((place - frame.lower[window]) / frame.width[window] for place in (y, x))
    turn = np.pi - np.mod(np.pi - (direction - before[rows]), 2 * np.pi)
    places = {"across": u[:, 0], "down": u[:, 1], "across_before": v[:, 0], "down_before": v[:, 1]}
    return {"step": np.hypot(*move.T), "direction": direction, "turn": turn, **places}
