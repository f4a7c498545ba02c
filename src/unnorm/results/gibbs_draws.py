"""Draws and constants of models on many bits, from change statistics: Gibbs sweeps and annealing (models/gibbs.py)."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from .density import Density

FEWEST, MOST = 100, 6400  # sweeps
ENOUGH = 40  # draws from which the two kinds of start are compared
APART = 5.0  # standard errors between them
CHAINS, EACH, STEPS, SLOW_STEPS = 4000, 16, 300, 30  # of annealing: chains in all and of a context, temperatures
UPDATES = 2e10  # of single bits that annealing may take


def gibbs_draws(density: Density, contexts: Observations, rng: np.random.Generator) -> tuple[np.ndarray, str | None]:
    """(n, d) one draw in each context, and a sentence where the sweeps may have been too few.

    Half the chains start with few ones and half with many. Sweeps are doubled until the mean of f and the number of
    ones no longer tell where a chain started.
    """
    n, d = contexts.n, density.domain.dim
    sampler = density.sampler(contexts, np.arange(n))
    assert sampler is not None
    low = np.arange(n) % 2 == 0
    y = ((rng.random((n, d)) < np.where(low, 0.1, 0.9)[:, None]) & _free(density)).astype(np.float64)
    done, sweeps = 0, FEWEST if sampler.quick else FEWEST // 4
    while True:
        y = sampler.sweep(y, sweeps - done, rng, np.broadcast_to(_free(density), y.shape))
        done = sweeps
        if n < ENOUGH:
            return y, None
        apart = max(_apart(density.log_f(contexts, y, np.arange(n)), low), _apart(y.sum(axis=1), low))
        if apart <= APART:
            return y, None
        if done >= (MOST if sampler.quick else FEWEST):
            return y, (
                f"Gibbs sweeps have not forgotten where they started after {done:,}: chains from few ones and from "
                f"many are {apart:.0f} standard errors apart. The model may have two modes, as degenerate models have "
                "(nearly all bits 0, or nearly all 1); do not trust these draws."
            )
        sweeps = 2 * done


def _free(density: Density) -> np.ndarray:
    """(d,) the bits that are not fixed at 0."""
    assert density.domain.free is not None
    return density.domain.free


def _apart(value: np.ndarray, low: np.ndarray) -> float:
    """|difference of means| between the two halves in standard errors."""
    a, b = value[low], value[~low]
    se = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    gap = abs(a.mean() - b.mean())
    return 0.0 if gap == 0.0 else float(gap / max(se, 1e-12 * gap))


def annealed_log_z(
    density: Density, obs: Observations, first: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """log Z and its standard error for the contexts of the observations `first`, by annealed importance sampling.

    From independent bits with the frequencies of the outcomes; chains and temperatures as `UPDATES` allow.
    """
    d, U = density.domain.dim, len(first)
    each = int(np.clip(CHAINS // U, EACH, 400))
    free = _free(density)
    p = (obs.weights @ obs.outcome + 0.5) / (obs.weights.sum() + 1.0)
    log_odds = np.log(p / (1 - p))
    log_z, error = np.empty(U), np.empty(U)
    length = max(1, CHAINS // each)
    for begin in range(0, U, length):
        here = first[begin : begin + length]
        at = np.repeat(here, each)
        sampler = density.sampler(obs, at)
        assert sampler is not None
        steps = STEPS if sampler.quick else SLOW_STEPS
        steps = int(np.clip(UPDATES / (U * each * d), 10, steps))
        y = ((rng.random((len(at), d)) < p) & free).astype(np.float64)
        start = density.log_f(obs, y, at) - y @ log_odds - np.log1p(-p[free]).sum()
        log_w = start + sampler.anneal(y, log_odds, np.linspace(0.0, 1.0, steps + 1), rng)[1]
        log_w = log_w.reshape(len(here), each)
        top = log_w.max(axis=1, keepdims=True)
        w = np.exp(log_w - top)
        mean = w.mean(axis=1)
        log_z[begin : begin + length] = top[:, 0] + np.log(mean)
        error[begin : begin + length] = w.std(axis=1, ddof=1) / mean / np.sqrt(each)
    return log_z, error
