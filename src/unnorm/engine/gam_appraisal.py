"""Four pictures of the residuals, as gratia's `appraise` and mgcv's `gam.check` have them: is the model right?

The QQ plot's reference quantiles are those of residuals of data simulated from the fit (Augustin, Sauleau & Wood 2012),
since deviance residuals of counts and 0/1 data are not normal; normal ones where a quasi-likelihood simulates nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .._base import numerics
from ..errors import InputError
from .gam_effects import check_level
from .gam_plots import BAND, INK

if TYPE_CHECKING:
    from .gam_result import Gam

ROWS = 10_000  # that are drawn, evenly spread, of larger tables
MOST = 2_000_000  # simulated residuals held at once


def quantiles(fit: Gam, rows: np.ndarray, repeats: int, level: float, rng: Any) -> tuple[np.ndarray, ...]:
    """Sorted deviance residuals at `rows`, their expected quantiles under the model, and a pointwise band."""
    residuals = np.sort(fit.residuals("deviance")[rows])
    n = residuals.size
    mu = fit.fitted[rows]
    w = np.ones(n) if fit.weights is None else fit.weights[rows]
    draw = numerics.generator(rng)
    repeats = max(20, min(repeats, MOST // n))
    simulated = np.empty((repeats, n))
    for k in range(repeats):
        y = fit.distribution.simulate(mu, w, fit.scale, draw)
        if y is None:
            reference = np.sqrt(fit.scale) * ndtri((np.arange(n) + 0.5) / n)
            return residuals, reference, np.full(n, np.nan), np.full(n, np.nan)
        each = np.maximum(w * fit.distribution.unit_deviance(y, mu), 0.0)
        simulated[k] = np.sort(np.sign(y - mu) * np.sqrt(each))
    low, high = np.quantile(simulated, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return residuals, simulated.mean(axis=0), low, high


def appraise(fit: Gam, repeats: int, level: float, rng: Any) -> tuple[Any, Any]:
    """See `Gam.appraise`."""
    import matplotlib.pyplot as plt

    check_level(level)
    if not isinstance(repeats, int | np.integer) or repeats < 20:
        raise InputError(f"repeats must be a whole number, at least 20; got {repeats!r}.")
    rows = np.flatnonzero(fit.weights > 0.0) if fit.weights is not None else np.arange(fit.y.size)
    rows = rows[:: max(1, -(-rows.size // ROWS))]
    residuals, reference, low, high = quantiles(fit, rows, int(repeats), level, rng)
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.6), layout="constrained")
    (qq, against), (histogram, response) = axes
    if np.isfinite(low).all():
        qq.fill_between(reference, low, high, color=BAND, alpha=0.5, linewidth=0)
    qq.axline((0.0, 0.0), slope=1.0, color="0.5", linewidth=0.8)
    qq.plot(reference, residuals, ".", color=INK, markersize=3)
    qq.set(xlabel="quantiles under the model", ylabel="deviance residuals", title="QQ plot of residuals")
    eta, raw = fit.linear_predictor[rows], fit.residuals("deviance")[rows]
    against.axhline(0.0, color="0.5", linewidth=0.8)
    against.plot(eta, raw, ".", color=INK, markersize=3, alpha=0.6)
    against.set(xlabel="linear predictor", ylabel="deviance residuals", title="Residuals against linear predictor")
    histogram.hist(raw, bins=max(8, min(60, int(np.ceil(np.sqrt(raw.size))))), color=BAND, edgecolor=INK, linewidth=0.5)
    histogram.set(xlabel="deviance residuals", ylabel="rows", title="Histogram of residuals")
    response.axline((float(fit.fitted[rows].mean()),) * 2, slope=1.0, color="0.5", linewidth=0.8)
    response.plot(fit.fitted[rows], fit.y[rows], ".", color=INK, markersize=3, alpha=0.6)
    response.set(xlabel="fitted values", ylabel=fit.response, title="Response against fitted values")
    return figure, axes
