"""Intervals of Ising couplings by pseudo-likelihood: d = 20, n = 5,000, 190 couplings; UNNORM_REPS data sets (60)."""

from __future__ import annotations

import os

import numpy as np
import pytest
from calibration import each

import unnorm as un

REPEATS = int(os.environ.get("UNNORM_REPS", "60"))


D, N = 20, 5000


def law() -> tuple[un.Ising, np.ndarray]:
    rng, model = np.random.default_rng(11), un.Ising(D)
    J = np.triu(rng.normal(0, 1 / np.sqrt(D), (D, D)), 1)
    return model, model.from_parts(rng.normal(-0.5, 0.5, D), J + J.T)


def one(r: int) -> np.ndarray:
    """(θ̂ − θ) / se of one data set."""
    (model, truth), rng = law(), np.random.default_rng([12, r])
    y = model.sampler(truth, ()).sweep(rng.integers(0, 2, (N, D)), 60, rng)
    fit = un.fit(model, un.iid(y), un.ConditionalNCE(un.BitFlip(every=True)), rng=1000 + r)
    return (fit.estimate - truth) / fit.se


@pytest.mark.slow
def test_intervals_cover() -> None:
    z = np.array(each(one, range(REPEATS)))
    covered = np.abs(z) < 1.96
    print(f"\ncoverage {covered.mean():.4f} over {covered.size:,} intervals; sd of z {np.std(z):.3f}")
    assert 0.93 < covered.mean() < 0.97
    assert np.abs(np.mean(z, axis=0)).max() < 4.5 / np.sqrt(REPEATS)
