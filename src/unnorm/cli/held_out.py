"""Held-out bits for each point: the model fitted to every other sequence, and asked about the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 200  # points asked about, for each level: each costs an integral over the window
ORDER = 30  # of the rule for each of them, 720 nodes: log Z to about 0.001


def halves(obs: Any) -> tuple[np.ndarray, np.ndarray]:
    """Every other sequence, and the rest; every other point where there is one sequence."""
    sequence = np.arange(obs.n) if obs.sequence is None else obs.sequence
    if np.unique(sequence).size < 2:
        sequence = np.arange(obs.n) // max(obs.n // 10, 1)  # ten stretches of the one sequence
    odd = np.unique(sequence, return_inverse=True)[1] % 2 == 1
    return ~odd, odd


def bits_of(fit: Any, obs: Any) -> np.ndarray:
    """log₂ p̂(y_t|x_t)·|Ω| of each observation."""
    density = fit.density
    log_p = density.log_f(obs, obs.outcome, np.arange(obs.n)) - density.log_z(obs, ORDER)
    return (log_p + density.domain.log_volume) / np.log(2)


def held_out_bits(parts: Any, run: Any) -> tuple[dict[str, float], str]:
    """which → mean of log₂ p̂(y_t|x_t)·|Ω| over points of sequences that the fit has not seen."""
    from ..report.run import GROUP
    from ..results import fitting
    from ..solvers.smoothing import Smoothing
    from ..terms.levels import level_name

    job, obs = parts.job, run.obs
    train, test = halves(obs)
    options: dict[str, Any] = {
        "objective": parts.objective,
        "normaliser": parts.normaliser,
        "smoothing": Smoothing(job.smoothing, reference_error=False),
        "rng": job.seed + 1,
    }
    if job.by is None:
        fits = {GROUP: fitting.fit(parts.model, obs.take(train), **options)}
        levels = {GROUP: test}
    else:
        from ..groups import fit_each

        each = fit_each(parts.model, obs.take(train), job.by, group=False, **options)
        fits = dict(each.fits)
        column = obs.group[job.by]
        levels = {level_name(value): test & (column == value) for value in np.unique(column).tolist()}
    bits = {}
    for which, fit in fits.items():
        rows = np.flatnonzero(levels[which])
        if rows.size:
            some = rows[np.unique(np.linspace(0, rows.size - 1, min(MOST, rows.size)).astype(int))]
            bits[which] = float(np.mean(bits_of(fit, obs.take(some))))
    if job.by is not None and bits:
        bits[GROUP] = float(np.mean(list(bits.values())))
    how = (
        "Held-out bits: the gain over a uniform choice in bits for each point, of a fit to every other sequence, at up "
        f"to {MOST} points of the other half{' (group: the mean over the levels)' if job.by is not None else ''}."
    )
    return bits, how
