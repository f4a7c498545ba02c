"""Held-out bits of an analysis: the model fitted to every other sequence, and asked about the rest."""

from __future__ import annotations

import numpy as np

from ..results.held_out import evenly, halves
from .analysis import GROUP, Analysis

MOST = 200  # points asked about, for each level: each costs an integral over the window
ORDER = 30  # of the rule for each of them, 720 nodes: log Z to about 0.001
HOW = (
    "Held-out bits: the gain over a uniform choice in bits for each point, of a fit to every other sequence, at up to "
    f"{MOST} points of the other half"
)


def held_out_bits(analysis: Analysis) -> dict[str, float]:
    """which → mean of log₂ p̂(y_t|x_t)·|Ω| over points of sequences that the fit has not seen."""
    if analysis.refit is None:
        return {}
    train, test = halves(analysis.obs)
    bits = {}
    for which, fit in analysis.refit(analysis.obs.take(train), analysis.seed + 1).items():
        rows = analysis.rows(which)
        rows = rows[test[rows]]
        if rows.size:
            some = analysis.obs.take(rows[evenly(rows.size, MOST)])
            bits[which] = fit.held_out(some, order=ORDER).bits_uniform
    if analysis.fits and bits:
        bits[GROUP] = float(np.mean(list(bits.values())))
    return bits
