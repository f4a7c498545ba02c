"""What the paper found (Section 4.2), asked of fitted curves: for the group, and for how many levels each holds.

The questions are asked of the estimated curves at observed values, those of all levels together:

- Centrality decreasing: `dcenter` falls from third to third. The observed distances from the centre are cut into thirds
  with equally many points; the mean effect over the inner third is above that over the middle one, and this above that
  over the outer one. A subject who prefers a ring around the centre (the paper's "off-center bias") fails.
- Distance decreasing beyond short range: `step` falls from third to third of the observed steps that are longer than
  5 % of the window's diagonal (50 pixels of 800 × 600). Whether the shortest steps are frequent or rare is not asked.
- Peaks at the four cardinal directions: `angle` is higher at each of 0, π/2, π, −π/2 than at both diagonals beside it,
  so that there is a local maximum between any two neighbouring diagonals.

Means over thirds, not every wiggle of a curve: its first and last per cent rest on a handful of points. There is no
tolerance and no test: the bands in the figures show how well the curves are known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..data.observations import Observations
from ..errors import UnnormWarning
from ..models import Additive
from ..results.fit import Fit
from ..results.held_out import evenly
from ..results.planar import box_around

SHORT = 0.05  # of the window's diagonal
MOST = 20_000  # observed values at which a curve is read
CARDINAL = np.arange(-2, 2) * np.pi / 2

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Finding:
    """One question, the group's answer (None without a group), the levels for which it holds, and of how many."""

    question: str
    label: str
    group: bool | None
    holds: tuple[str, ...]
    levels: int


def findings(model: Additive, obs: Observations, group: Fit | None, fits: Mapping[str, Fit]) -> list[Finding]:
    """Answers for those of the three effects that the model has; `group` is the one pooled fit where there are no
    levels."""
    out = []
    first = group if group is not None else next(iter(fits.values()))
    labels = () if first.smooths is None else first.smooths.model_labels
    lower, upper = box_around(model.domain)
    diagonal = float(np.hypot(*(upper - lower)))
    some = obs.take(evenly(obs.n, MOST))
    for label in labels:
        assert first.smooths is not None
        names = first.smooths.term(label).covariates
        if len(names) != 1 or names[0] not in QUESTIONS:
            continue
        question, test = QUESTIONS[names[0]]
        observed = np.sort(model.covariates(some).values(names, some)[names[0]])
        holds = tuple(level for level, fit in fits.items() if test(curve(fit, label, names[0]), observed, diagonal))
        answer = None if group is None else test(curve(group, label, names[0]), observed, diagonal)
        out.append(Finding(question, label, answer, holds, len(fits)))
    return out


def curve(fit: Fit, label: str, name: str) -> Curve:
    """One term's estimate as a function; beyond a level's own data it is extrapolated."""
    part = fit.smooths
    assert part is not None

    def f(x: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)
            return part.effect(label, {name: x})["estimate"]

    return f


def falls(f: Curve, observed: np.ndarray) -> bool:
    """Whether the mean of f falls from each third of the sorted values to the next."""
    if observed.size < 3:
        return False
    inner, middle, outer = (float(np.mean(part)) for part in np.array_split(f(observed), 3))
    return inner > middle > outer


def central(f: Curve, observed: np.ndarray, diagonal: float) -> bool:
    return falls(f, observed)


def near(f: Curve, observed: np.ndarray, diagonal: float) -> bool:
    return falls(f, observed[observed > SHORT * diagonal])


def cardinal(f: Curve, observed: np.ndarray, diagonal: float) -> bool:
    left, centre, right = (f(wrapped(CARDINAL + turn)) for turn in (np.pi / 4, 0.0, -np.pi / 4))
    return bool(np.all(centre > np.maximum(left, right)))


def wrapped(angle: np.ndarray) -> np.ndarray:
    """In [−π, π)."""
    return np.mod(angle + np.pi, 2 * np.pi) - np.pi


QUESTIONS: dict[str, tuple[str, Callable[[Curve, np.ndarray, float], bool]]] = {
    "dcenter": (
        "Centrality: the effect of dcenter falls from each third of the observed distances to the next",
        central,
    ),
    "step": ("Distance: beyond short range (5 % of the diagonal), the effect of step falls from third to third", near),
    "angle": ("Directions: each of the four cardinal directions is above both diagonals beside it", cardinal),
}
