"""Draws and constants of models on many bits, from change statistics: Gibbs sweeps and annealing (models/gibbs.py)."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from ..models.gibbs import Base
from .density import Density

FEWEST, MOST = 100, 6400  # sweeps
ENOUGH = 40  # chains from which the two kinds of start are compared
APART = 5.0  # standard errors between them
SPENT = 2e8  # updates of single bits after which sweeps are no longer doubled
SMALL = 500  # bits of a chain's step up to which chains are added until there are enough to compare
CHAINS, EACH, STEPS, SLOW_STEPS = 4000, 18, 300, 30  # of annealing: chains in all and of a context, temperatures
UPDATES = 2e10  # of single bits that annealing may take for constants …
QUICK_UPDATES, FEW_CHAINS, EFFECTIVE = 2e7, 300, 100  # … and for draws, from how many chains, worth how many at least


def gibbs_draws(density: Density, contexts: Observations, rng: np.random.Generator) -> tuple[np.ndarray, str | None]:
    """(n, d) one draw in each context, and a sentence where they may not be the law's.

    Where all contexts are one, chains are annealed from independent bits, chosen anew by their weights, so that each
    mode has its share, and swept. Elsewhere, or where the weights are too uneven, half the chains start with few ones
    and half with many, and sweeps are doubled until the mean of f and the number of ones no longer tell where a chain
    started.
    """
    if len(density.contexts(contexts)[0]) == 1:
        y = _annealed_draws(density, contexts, rng)
        if y is not None:
            return y, None
    n, d, free = contexts.n, density.domain.dim, _free(density)
    again = -(-ENOUGH // n) if contexts.kind != "transitions" or d <= SMALL else 1
    at = np.tile(np.arange(n), again)
    sampler = density.sampler(contexts, at)
    assert sampler is not None
    low = (at + np.arange(len(at)) // n) % 2 == 0
    y = ((rng.random((len(at), d)) < np.where(low, 0.1, 0.9)[:, None]) & free).astype(np.float64)
    done, sweeps = 0, FEWEST if sampler.quick else FEWEST // 4
    while True:
        y = sampler.sweep(y, sweeps - done, rng, np.broadcast_to(free, y.shape))
        done = sweeps
        if len(at) < ENOUGH:
            return y[:n], None
        apart = max(_apart(density.log_f(contexts, y, at), low), _apart(y.sum(axis=1), low))
        if apart <= APART:
            return y[:n], None
        if done >= (MOST if sampler.quick else FEWEST) or 2.0 * done * y.size > SPENT:
            return y[:n], (
                f"Gibbs sweeps have not forgotten where they started after {done:,}: chains from few ones and from "
                f"many are {apart:.0f} standard errors apart. The model may have two modes, as degenerate models have "
                "(nearly all bits 0, or nearly all 1); do not trust these draws."
            )
        sweeps = 2 * done


def _annealed_draws(density: Density, contexts: Observations, rng: np.random.Generator) -> np.ndarray | None:
    """(n, d) draws in one context from an annealed population; None where that is too slow or too uneven."""
    n, d, free = contexts.n, density.domain.dim, _free(density)
    p = np.repeat([[0.1], [0.5], [0.9]], d, axis=1)
    base, most = Base.of(p, free), int(QUICK_UPDATES / (STEPS * d)) // len(p)
    if most * len(p) < FEW_CHAINS:
        return None
    N = len(p) * int(np.clip(n // len(p) + 1, FEW_CHAINS // len(p) + 1, most))
    at = np.zeros(N, dtype=np.intp)
    sampler = density.sampler(contexts, at)
    assert sampler is not None
    if not sampler.quick:
        return None
    y = ((rng.random((N, d)) < p[np.arange(N) % len(p)]) & free).astype(np.float64)
    log_w = density.log_f(contexts, y, at) - base.log_density(y)
    y, more = sampler.anneal(y, base, np.linspace(0.0, 1.0, STEPS + 1), rng)
    w = np.exp(log_w + more - np.max(log_w + more))
    if w.sum() ** 2 / (w**2).sum() < EFFECTIVE:
        return None
    places = (rng.random() + np.arange(n)) / n  # systematic resampling
    chosen = np.minimum(np.searchsorted(np.cumsum(w) / w.sum(), places), N - 1)
    y = y[rng.permutation(chosen)]
    sampler = density.sampler(contexts, np.arange(n))
    assert sampler is not None
    return sampler.sweep(y, FEWEST, rng, np.broadcast_to(free, y.shape))


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

    A third of the chains start from independent bits with the frequencies of the outcomes, a third from fair coins, and
    a third from the opposite frequencies: the first lie in the mode where most of the data are, and chains from there
    alone would miss the others without a sign. Chains and temperatures are as many as `UPDATES` allow.
    """
    d, U, free = density.domain.dim, len(first), _free(density)
    seen = (obs.weights @ obs.outcome + 0.5) / (obs.weights.sum() + 1.0)
    p = np.stack([seen, np.full(d, 0.5), 1.0 - seen])
    K, base = len(p), Base.of(p, free)
    each = K * (int(np.clip(CHAINS // U, EACH, 400)) // K)
    log_z, error = np.empty(U), np.empty(U)
    length = max(1, CHAINS // each)
    for begin in range(0, U, length):
        here = first[begin : begin + length]
        at = np.repeat(here, each)
        sampler = density.sampler(obs, at)
        assert sampler is not None
        steps = STEPS if sampler.quick else SLOW_STEPS
        steps = int(np.clip(UPDATES / (U * each * d), 10, steps))
        y = ((rng.random((len(at), d)) < p[np.arange(len(at)) % K]) & free).astype(np.float64)
        start = density.log_f(obs, y, at) - base.log_density(y)
        log_w = start + sampler.anneal(y, base, np.linspace(0.0, 1.0, steps + 1), rng)[1]
        log_w = log_w.reshape(len(here), each)
        top = log_w.max(axis=1, keepdims=True)
        w = np.exp(log_w - top).reshape(len(here), -1, K)  # by the part of q that a chain started from
        mean = w.mean(axis=(1, 2))
        log_z[begin : begin + length] = top[:, 0] + np.log(mean)
        error[begin : begin + length] = np.sqrt(w.var(axis=1, ddof=1).mean(axis=1) / each) / mean
    return log_z, error
