"""What the paper found (Section 4.2), asked of fitted curves: for the group, and for how many levels each holds.

The questions are asked of the estimated curves at observed values, those of all levels together:

- Centrality decreasing: `dcenter` falls from third to third. The observed distances from the centre are cut into thirds
  with equally many points; the mean effect over the inner third is above that over the middle one, and this above that
  over the outer one. A subject who prefers a ring around the centre (the paper's "off-center bias") fails.
- Distance decreasing beyond short range: `step` falls from third to third of the observed steps that are longer than
  5 % of the window's diagonal (50 pixels of 800 × 600). Whether the shortest steps are frequent or rare is not asked.
- Peaks at the four cardinal directions: `angle` is higher at each of 0, π/2, π, −π/2 than at both diagonals beside it,
  so that there is a local maximum between any two neighbouring diagonals.

Means over thirds, not every wiggle of a curve: its first and last per cent rest on a handful of points. Each question
is a few differences of a curve, all of which must be positive; how sure an answer is, is the share of draws from the
curve's posterior, β ~ N(β̂, V), in which they all are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from ..data.observations import Observations
from ..engine import gam_effects
from ..errors import hush
from ..models import Additive
from ..results.fit import Fit
from ..results.held_out import evenly
from ..results.planar import box_around

SHORT = 0.05  # of the window's diagonal
MOST = 20_000  # observed values at which a curve is read
DRAWS = 4000  # from a curve's posterior
SURE = 0.95  # share of them from which an answer is sure
CARDINAL = np.arange(-2, 2) * np.pi / 2

Curve = Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True)
class Finding:
    """One question, the group's answer (None without a group), the levels for which it holds, and of how many."""

    question: str
    label: str
    group: bool | None
    holds: tuple[str, ...]
    levels: int
    share: float | None = None  # of draws from the group's posterior in which it holds
    shares: Mapping[str, float] = field(default_factory=dict)  # the same of each level

    @property
    def sure(self) -> tuple[str, ...]:
        """The levels of which it holds in at least 95 % of draws."""
        return tuple(level for level, share in self.shares.items() if share >= SURE)


@final
@dataclass(frozen=True)
class Question:
    """What is asked of a curve: differences of its values at some points, all of which should be positive."""

    text: str
    at: Callable[[np.ndarray, float], np.ndarray]  # observed values, sorted, and the window's diagonal → points
    gaps: Callable[[np.ndarray], np.ndarray]  # (…, points) values → (…, m) differences
    least: int = 1  # points that it needs

    def __call__(self, f: Curve, observed: np.ndarray, diagonal: float) -> bool:
        """Whether it holds of a curve."""
        x = self.at(observed, diagonal)
        return x.size >= self.least and bool(np.all(self.gaps(f(x)) > 0))

    def asked(self, fit: Fit, label: str, name: str, observed: np.ndarray, diagonal: float) -> tuple[bool, float]:
        """Whether it holds of a fitted term, and in what share of draws from its posterior."""
        part, x = fit.smooths, self.at(observed, diagonal)
        assert part is not None
        if x.size < self.least:
            return False, 0.0
        term, span = part.term(label), part.slices[part.term(label).label]
        with hush():  # beyond a level's own data its curve is extrapolated
            L = self.gaps(gam_effects.design(term, gam_effects.read_at(term, {name: x})).T).T  # (m, p)
        mean, V = L @ part.beta[span], L @ part.errors.total[span, span] @ L.T
        values, vectors = np.linalg.eigh(V)
        z = np.random.default_rng(len(mean)).normal(size=(DRAWS, len(mean)))
        drawn = mean + z @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return bool(np.all(mean > 0)), float(np.mean(np.all(drawn > 0, axis=1)))


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
        (name,) = names
        question = QUESTIONS[name]
        observed = np.sort(model.covariates(some).values(names, some)[name])
        asked = {level: question.asked(fit, label, name, observed, diagonal) for level, fit in fits.items()}
        answer, share = (None, None) if group is None else question.asked(group, label, name, observed, diagonal)
        holds = tuple(level for level, (yes, _) in asked.items() if yes)
        shares = {level: part for level, (_, part) in asked.items()}
        out.append(Finding(question.text, label, answer, holds, len(fits), share, shares))
    return out


def thirds(values: np.ndarray) -> np.ndarray:
    """(…, 2) how much the mean falls from each third to the next."""
    inner, middle, outer = (np.mean(part, axis=-1) for part in np.array_split(values, 3, axis=-1))
    return np.stack([inner - middle, middle - outer], axis=-1)


def above_diagonals(values: np.ndarray) -> np.ndarray:
    """(…, 8) how much each cardinal direction is above the diagonals on either side."""
    left, centre, right = np.split(values, 3, axis=-1)
    return np.concatenate([centre - left, centre - right], axis=-1)


def around(observed: np.ndarray, diagonal: float) -> np.ndarray:
    """The cardinal directions, after those to the left of them and before those to the right."""
    return np.concatenate([wrapped(CARDINAL + turn) for turn in (np.pi / 4, 0.0, -np.pi / 4)])


def wrapped(angle: np.ndarray) -> np.ndarray:
    """In [−π, π)."""
    return np.mod(angle + np.pi, 2 * np.pi) - np.pi


central = Question(
    "Centrality: the effect of dcenter falls from each third of the observed distances to the next",
    lambda observed, diagonal: observed,
    thirds,
    least=3,
)
near = Question(
    "Distance: beyond short range (5 % of the diagonal), the effect of step falls from third to third",
    lambda observed, diagonal: observed[observed > SHORT * diagonal],
    thirds,
    least=3,
)
cardinal = Question(
    "Directions: each of the four cardinal directions is above both diagonals beside it", around, above_diagonals
)
QUESTIONS = {"dcenter": central, "step": near, "angle": cardinal}
