"""Intervals of Ising couplings by pseudo-likelihood: d = 20, n = 5,000, 190 couplings; UNNORM_REPS data sets (60)."""

from __future__ import annotations

import os

import numpy as np
import pytest

import unnorm as un

REPEATS = int(os.environ.get("UNNORM_REPS", "60"))


@pytest.mark.slow
def test_intervals_cover() -> None:
    d, n, rng = 20, 5000, np.random.default_rng(11)
    model = un.Ising(d)
    J = np.triu(rng.normal(0, 1 / np.sqrt(d), (d, d)), 1)
    truth = model.from_parts(rng.normal(-0.5, 0.5, d), J + J.T)
    z = []
    for r in range(REPEATS):
        y = model.sampler(truth, ()).sweep(rng.integers(0, 2, (n, d)), 60, rng)
        fit = un.fit(model, un.iid(y), un.ConditionalNCE(un.BitFlip(every=True)), rng=1000 + r)
        z.append((fit.estimate - truth) / fit.se)
    covered = np.abs(z) < 1.96
    print(f"\ncoverage {covered.mean():.4f} over {covered.size:,} intervals; sd of z {np.std(z):.3f}")
    assert 0.93 < covered.mean() < 0.97
    assert np.abs(np.mean(z, axis=0)).max() < 4.5 / np.sqrt(REPEATS)
