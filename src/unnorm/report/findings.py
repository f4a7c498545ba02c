"""What the paper found, asked of these curves: for the group, and for how many levels each holds.

Centrality: the effect of `dcenter` falls from the centre outwards (a line through it over the observed places falls,
and it ends below where it begins). Distance: beyond its peak the effect of `step` falls, and the peak is short.
Directions: the effect of `angle` is higher at each of the four cardinal directions than at the mean of the two
diagonals beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .figures import corners, covariates_of
from .run import GROUP, Run

SHORT = 0.2  # of the window's diagonal: a peak of the distance effect within this is short
TOLERANCE = 0.05  # of the curve's range: a rise smaller than this does not break a fall


@dataclass(frozen=True)
class Finding:
    """One question, the group's answer, and the levels for which it holds."""

    question: str
    group: bool | None
    holds: tuple[str, ...]
    levels: int


def findings(run: Run) -> list[Finding]:
    """Answers for those of the three effects that the model has."""
    out = []
    lower, upper = corners(run.model.domain)
    diagonal = float(np.hypot(*(upper - lower)))
    seen = run.model.covariates(run.obs)
    for label in run.labels:
        names = covariates_of(run, label)
        if len(names) != 1 or names[0] not in _QUESTIONS:
            continue
        question, test = _QUESTIONS[names[0]]
        observed = np.quantile(seen.values(names, run.obs)[names[0]], np.linspace(0.01, 0.99, 99))
        answers = {}
        for which in run.everything:
            table = run.effect(label, which)
            answers[which] = test(np.asarray(table[names[0]], dtype=float), table["estimate"], observed, diagonal)
        levels = tuple(which for which in run.fits if answers[which])
        out.append(Finding(question, answers.get(GROUP), levels, len(run.fits)))
    return out


def central(x: np.ndarray, f: np.ndarray, observed: np.ndarray, diagonal: float) -> bool:
    at = np.interp(observed, x, f)
    return bool(np.polyfit(observed, at, 1)[0] < 0 and at[-1] < at[0])


def short_steps(x: np.ndarray, f: np.ndarray, observed: np.ndarray, diagonal: float) -> bool:
    """Falls beyond a short peak, over the observed steps (1 % to 99 %)."""
    at = np.interp(observed, x, f)
    peak = int(np.argmax(at))
    after = at[peak:]
    rise = float(np.max(after - np.minimum.accumulate(after)))
    return bool(observed[peak] <= SHORT * diagonal and rise <= TOLERANCE * np.ptp(at) and after[-1] < after[0])


def cardinal(x: np.ndarray, f: np.ndarray, observed: np.ndarray, diagonal: float) -> bool:
    def at(angle: float) -> float:
        return float(np.interp(np.pi - (np.pi - angle) % (2 * np.pi), x, f))

    quarter = np.pi / 2
    return all(at(c) > 0.5 * (at(c - quarter / 2) + at(c + quarter / 2)) for c in (0.0, quarter, np.pi, -quarter))


Test = Callable[[np.ndarray, np.ndarray, np.ndarray, float], bool]
_QUESTIONS: dict[str, tuple[str, Test]] = {
    "dcenter": ("Central places are preferred (the effect of dcenter falls outwards)", central),
    "step": ("Short steps are preferred (the effect of step falls beyond a short peak)", short_steps),
    "angle": ("Cardinal directions are preferred (each above the diagonals beside it)", cardinal),
}
