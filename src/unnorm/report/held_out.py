"""Held-out bits of an analysis: the model fitted to every other sequence, and asked about the rest.

The fits take longer than all figures together, which are drawn on one core: they run beside them.
"""

from __future__ import annotations

from concurrent.futures import Future
from threading import Thread

import numpy as np

from .._base.threads import cores, run_tasks
from ..results.fit import Fit
from ..results.held_out import evenly, halves
from .analysis import GROUP, Analysis

MOST = 200  # points asked about, for each level: each costs an integral over the window
BITS = "held-out bits"
ORDER = 24  # of the rule for each of them, 480 nodes: log Z to about 0.001
HOW = (
    "Held-out bits: the gain over a uniform choice in bits for each point, of a fit to every other sequence, at up to "
    f"{MOST} points of the other half"
)


def begin(analysis: Analysis) -> None:
    """Compute them beside what follows, where there are cores for both."""
    if analysis.refit is None or cores() < 2 or BITS in analysis.begun:
        return
    found: Future[dict[str, float]] = Future()

    def work() -> None:
        try:
            found.set_result(_computed(analysis))
        except BaseException as error:  # raised again where the bits are asked for
            found.set_exception(error)

    Thread(target=work, daemon=True).start()
    analysis.begun[BITS] = found


def held_out_bits(analysis: Analysis) -> dict[str, float]:
    """which → mean of log₂ p̂(y_t|x_t)·|Ω| over points of sequences that the fit has not seen."""
    return analysis.begun[BITS].result() if BITS in analysis.begun else _computed(analysis)


def _computed(analysis: Analysis) -> dict[str, float]:
    if analysis.refit is None:
        return {}
    train, test = halves(analysis.obs)

    def asked(which: str, fit: Fit) -> float | None:
        rows = analysis.rows(which)
        rows = rows[test[rows]]
        if not rows.size:
            return None
        return fit.held_out(analysis.obs.take(rows[evenly(rows.size, MOST)]), order=ORDER).bits_uniform

    fits = analysis.refit(analysis.obs.take(train), analysis.seed + 1)
    found = run_tasks(asked, list(fits.items()), cores())
    bits = {which: own for which, own in zip(fits, found) if own is not None}
    if analysis.fits and bits:
        bits[GROUP] = float(np.mean(list(bits.values())))
    return bits
