"""Scores of held-out points: the model fitted to half of the sequences, and asked about all points of the rest.

The fits take longer than all figures together, which are drawn on one core: they run beside them, or were computed in
another process (`Analysis.elsewhere`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from .._base.threads import cores, quick_turns, run_tasks
from ..data.observations import Observations
from ..models import Additive
from ..results.fit import Fit
from ..results.held_out import halves
from ..results.scores import GAIN, PredictionScores, baseline_of, pooled_scores, prediction_scores
from .analysis import GROUP, Analysis

BITS = "held-out bits"
ORDER = 24  # of the rule for each of them, 480 nodes: log Z to about 0.001
HOW = (
    "A fit to half of the sequences is asked about all points of the other half. Information gain is in bits for each "
    "point; NSS is the fitted density at the point in standard deviations over the window; AUC is the share of the "
    "window where the density is lower. The centre bias is a smooth density of places, fitted to the same half."
)


@final
@dataclass(frozen=True)
class HeldOut:
    """What the report says of the scores of one fit."""

    scores: Mapping[str, tuple[float, float, float, float]]  # name → mean, se, lower and upper end
    n: int
    clusters: Mapping[str, int]
    baseline: str | None

    @classmethod
    def of(cls, found: PredictionScores) -> HeldOut:
        ends = zip(found.lower.tolist(), found.upper.tolist())
        scores = {name: (*found[name], *both) for name, both in zip(found.each, ends)}
        baseline = None if found.baseline is None else str(found.baseline)
        return cls(scores, len(next(iter(found.each.values()))), dict(found.clusters), baseline)

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> HeldOut:
        """What `to_dict` gave, through JSON."""
        scores = {str(name): tuple(map(float, values)) for name, values in saved["scores"].items()}
        return cls(scores, int(saved["n"]), dict(saved["clusters"]), saved["baseline"])  # pyright: ignore[reportArgumentType]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def begin(analysis: Analysis) -> None:
    """Compute them beside what follows, where there are cores for both."""
    if analysis.refit is not None:
        analysis.begin(BITS, lambda: _awaited(analysis))


def held_out_scores(analysis: Analysis) -> dict[str, HeldOut]:
    """which → scores of points of sequences that its fit has not seen; the group's are of all points."""
    return analysis.once(BITS, lambda: _computed(analysis))


def _awaited(analysis: Analysis) -> dict[str, HeldOut]:
    """From the other process, or computed here where there is none."""
    elsewhere = None if analysis.elsewhere is None else analysis.elsewhere()
    if elsewhere is not None:
        return elsewhere
    with quick_turns():  # figures are all Python
        return _computed(analysis)


def held_out_bits(analysis: Analysis) -> dict[str, tuple[float, float]]:
    """which → mean and standard error of log₂ p̂(y_t|x_t)·|Ω| over these points."""
    return {which: found.scores[GAIN][:2] for which, found in held_out_scores(analysis).items()}


def _computed(analysis: Analysis) -> dict[str, HeldOut]:
    if analysis.refit is None:
        return {}
    rows = {which: analysis.rows(which) for which in analysis.fits or (GROUP,)}
    found = predicted(analysis.model, analysis.obs, rows, analysis.refit, analysis.seed, analysis.level)
    return {which: HeldOut.of(own) for which, own in found.items()}


def left_out(obs: Observations, rows: Mapping[str, np.ndarray]) -> np.ndarray:
    """(n,) half of the sequences of each level: half of all sequences need not be half of a level's."""
    test = np.zeros(obs.n, dtype=bool)
    for own in rows.values():
        test[own] = halves(obs.take(own))[1]
    return test


Refit = Callable[[Observations, int], Mapping[str, Fit]]


# long: what the scores are of
def predicted(
    model: Additive, obs: Observations, rows: Mapping[str, np.ndarray], refit: Refit, seed: int, level: float
) -> dict[str, PredictionScores]:
    """Scores of half of the sequences by fits to the rest; `rows`: the positions of each level, or of all as GROUP."""
    test = left_out(obs, rows)
    training = obs.take(~test)

    def asked(which: str, fit: Fit) -> tuple[Observations, PredictionScores] | None:
        left = rows[which][test[rows[which]]]
        if not left.size:
            return None
        new = obs.take(left)
        columns = None if fit.smooths is None else fit.smooths.covariates
        return new, prediction_scores(fit.density, new, None, None, level, ORDER, columns, bias)

    bias = baseline_of(model.domain, training, tuple(training.group))
    fits = refit(training, seed + 1)
    found = run_tasks(asked, list(fits.items()), cores())
    each = {which: own for which, own in zip(fits, found) if own is not None}
    scores = {which: own for which, (_, own) in each.items()}
    if GROUP not in rows and scores:
        scores[GROUP] = pooled_scores(list(each.values()), level)
    return scores
