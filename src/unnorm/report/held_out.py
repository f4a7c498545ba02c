"""Scores of held-out points: the model fitted to every other sequence, and asked about all points of the rest.

The fits take longer than all figures together, which are drawn on one core: they run beside them.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread

import numpy as np

from .._base.threads import cores, run_tasks
from ..data.observations import Observations
from ..results.fit import Fit
from ..results.held_out import halves
from ..results.scores import GAIN, PredictionScores, pooled_scores
from .analysis import GROUP, Analysis

BITS = "held-out bits"
ORDER = 24  # of the rule for each of them, 480 nodes: log Z to about 0.001
HOW = (
    "A fit to every other sequence is asked about all points of the other half. Information gain is in bits for each "
    "point; NSS is the fitted density at the point in standard deviations over the window; AUC is the share of the "
    "window where the density is lower. The centre bias is a smooth density of places, fitted to the same half."
)


def begin(analysis: Analysis) -> None:
    """Compute them beside what follows, where there are cores for both."""
    if analysis.refit is None or cores() < 2 or BITS in analysis.begun:
        return
    found: Future[dict[str, PredictionScores]] = Future()

    def work() -> None:
        try:
            found.set_result(_computed(analysis))
        except BaseException as error:  # raised again where the bits are asked for
            found.set_exception(error)

    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    analysis.begun[BITS] = found


def held_out_scores(analysis: Analysis) -> dict[str, PredictionScores]:
    """which → scores of points of sequences that its fit has not seen; the group's are of all points."""
    return analysis.begun[BITS].result() if BITS in analysis.begun else _computed(analysis)


def held_out_bits(analysis: Analysis) -> dict[str, tuple[float, float]]:
    """which → mean and standard error of log₂ p̂(y_t|x_t)·|Ω| over these points."""
    return {which: found[GAIN] for which, found in held_out_scores(analysis).items()}


def _left_out(analysis: Analysis) -> np.ndarray:
    """(n,) every other sequence of each level: of all sequences, every other one may be the same level's."""
    test = np.zeros(analysis.obs.n, dtype=bool)
    for which in analysis.fits or (GROUP,):
        rows = analysis.rows(which)
        test[rows] = halves(analysis.obs.take(rows))[1]
    return test


def _computed(analysis: Analysis) -> dict[str, PredictionScores]:
    if analysis.refit is None:
        return {}
    test = _left_out(analysis)
    training = analysis.obs.take(~test)

    def asked(which: str, fit: Fit) -> tuple[Observations, PredictionScores] | None:
        rows = analysis.rows(which)
        rows = rows[test[rows]]
        if not rows.size:
            return None
        new = analysis.obs.take(rows)
        return new, fit.scores(new, training, level=analysis.level, order=ORDER)

    fits = analysis.refit(training, analysis.seed + 1)
    found = run_tasks(asked, list(fits.items()), cores())
    each = {which: own for which, own in zip(fits, found) if own is not None}
    scores = {which: own for which, (_, own) in each.items()}
    if analysis.fits and scores:
        scores[GROUP] = pooled_scores(list(each.values()), analysis.level)
    return scores
