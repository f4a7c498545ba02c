"""Estimates against exact maximum likelihood on the same data: mean shift, rmse beside its, coverage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from calibration import COVER, ENOUGH

import unnorm as un

SHIFT, WORSE = 0.1, 1.12  # mean shift in standard errors; rmse over that of maximum likelihood


def compared(fit: un.Fit, exact: un.Fit, truth: np.ndarray) -> dict[str, np.ndarray]:
    """What one data set contributes."""
    table = fit.tidy()
    lower, upper = (np.array(table[name], dtype=float) for name in ("lower", "upper"))
    return {
        "shift": (fit.estimate - exact.estimate) / np.array(exact.tidy()["se"], dtype=float),
        "away": fit.estimate - truth,
        "exact": exact.estimate - truth,
        "cover": (lower <= truth) & (truth <= upper),
    }


def judge(what: str, names: tuple[str, ...], found: Mapping[str, np.ndarray]) -> bool:
    """Print every figure with its band; whether all are inside: with few repetitions, within three of their errors."""
    shift, away, exact, cover = (found[name] for name in ("shift", "away", "exact", "cover"))
    R = len(shift)
    few = R < ENOUGH
    noise = 3 * shift.std(axis=0) / np.sqrt(R)
    ml = np.mean(exact**2, axis=0)
    worse = np.sqrt(np.mean(away**2, axis=0) / ml)
    worse_noise = 3 * np.std(away**2 - worse**2 * exact**2, axis=0) / np.sqrt(R) / (2 * worse * ml)
    binomial = float(3 * np.sqrt(0.95 * 0.05 / R))
    mean, share = shift.mean(axis=0), cover.mean(axis=0)
    for j, name in enumerate(names):
        print(f"\n{what}, {name}: shift {mean[j]:+.3f} ± {noise[j]:.3f} se (3 errors, band ±{SHIFT}), "
              f"rmse {worse[j]:.3f} ± {worse_noise[j]:.3f} of ML's (at most {WORSE}), "
              f"cover {share[j]:.3f} ({COVER[0]}–{COVER[1]}; 3 binomial errors ±{binomial:.3f}), "
              f"{R} data sets")  # fmt: skip
    band = (0.95 - binomial, 0.95 + binomial) if few else COVER
    close = np.all(np.abs(mean) <= SHIFT + noise * few) and np.all(worse <= WORSE + worse_noise * few)
    return bool(close and np.all((band[0] <= share) & (share <= band[1])))
