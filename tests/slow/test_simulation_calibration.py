"""Simulation-based calibration (Talts et al. 2018): θ from the prior, data from θ, and the rank of θ among posterior
draws is uniform, for Langevin and NUTS with anchored and smooth constants.

With anchored constants the θ-marginal is the posterior itself; with a smooth χ of q coefficients it differs by O(q/n).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from calibration import REPS, SEED
from scipy.stats import chi2

import unnorm as un

pytestmark = pytest.mark.slow

MOST, N, BINS, KEPT = 200, 300, 10, 99  # replications, observations, bins, draws that θ is ranked among
LEAST = 0.001  # p-value of the χ² test, for each of eight
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
SCALE = 2.0  # of the prior
SAMPLERS = {
    "langevin": un.Langevin(draws=50, warmup=200, thin=40, chains=2, batch=100),
    "nuts": un.NUTS(draws=200, warmup=200, chains=2),
}
CONSTANTS = {"anchored": un.Anchored(), "smooth": un.Smooth("s(y_prev, bs='cr', k=4)")}


def chain(theta: np.ndarray, rng: np.random.Generator) -> un.Observations:
    grid, y = np.linspace(-1, 1, 801), [0.0]
    for u in rng.random(N):
        p = np.exp(theta[0] * grid - 0.5 * theta[1] * (grid - y[-1]) ** 2)
        total = np.concatenate([[0.0], np.cumsum(p[1:] + p[:-1])])
        y.append(float(np.interp(u * total[-1], total, grid)))
    return un.transitions(np.array(y))


def rank(i: int, sampler: un.Langevin | un.NUTS, normaliser: un.Normaliser) -> np.ndarray:
    """The number of posterior draws below θ, for each parameter."""
    rng = np.random.default_rng([SEED, 8, i])
    theta = SCALE * rng.standard_normal(2)
    obs = chain(theta, rng)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The gradient at the mode", un.errors.UnnormWarning)
        draws = un.sample(
            TOY,
            obs,
            sampler,
            prior={"theta": un.Normal(SCALE)},
            normaliser=normaliser,
            rng=np.random.default_rng([SEED, 9, i]),
        )
    every = draws.theta.reshape(-1, 2)
    some = np.linspace(0, len(every) - 1, KEPT).astype(int)
    return (every[some] < theta).sum(axis=0)


@pytest.mark.parametrize("constants", list(CONSTANTS))
@pytest.mark.parametrize("sampler", list(SAMPLERS))
def test_ranks_are_uniform(sampler: str, constants: str) -> None:
    reps = min(REPS, MOST)
    ranks = np.array([rank(i, SAMPLERS[sampler], CONSTANTS[constants]) for i in range(reps)])
    for j, name in enumerate(TOY.names):
        count = np.bincount(ranks[:, j] * BINS // (KEPT + 1), minlength=BINS)
        statistic = float(np.sum((count - reps / BINS) ** 2) / (reps / BINS))
        p = float(chi2.sf(statistic, BINS - 1))
        mean = (ranks[:, j].mean() + 0.5) / (KEPT + 1)
        print(f"\n{sampler}, {constants}, {name}: ranks {count.tolist()}, χ² {statistic:.1f} on {BINS - 1}, "
              f"p = {p:.3f}; mean {mean:.3f} ± {3 * (12 * reps) ** -0.5:.3f}")  # fmt: skip
        assert p > LEAST
        assert abs(mean - 0.5) < 3.5 * (12 * reps) ** -0.5
