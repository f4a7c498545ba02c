"""Sequences of graphs over repetitions: estimators' spread beside their errors, coverage, and a long stochastic
approximation on s50. UNNORM_REPS sets the number of sequences of every case."""

from __future__ import annotations

import csv
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from calibration import each

import unnorm as un
from unnorm.errors import UnnormWarning
from unnorm.objectives.base import Objective

pytestmark = pytest.mark.slow
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
THETA = {
    50: np.array([-2.2, 1.0, 0.1, 1.2]),
    20: np.array([-1.8, 1.0, 0.1, 1.2]),
}  # by actors; denser, ttriple is degenerate
FORMULA = "edges + mutual + ttriple + stability"


def sequence(model: un.GraphStatistics, theta: np.ndarray, T: int, rng: np.random.Generator) -> np.ndarray:
    """T graphs of a sequence that has forgotten where it began."""
    y = [(rng.random(model.domain.dim) < 0.06).astype(float)]
    for _ in range(T + 9):
        y.append(model.sampler(theta, ({"before": y[-1][None]},)).sweep(y[-1][None], 15, rng)[0])
    return model.domain.adjacency(np.array(y[-T:]))


def one(n: int, T: int, objective: Objective, r: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Estimates and standard errors of one sequence; None where an estimate is degenerate and has no errors."""
    omega = un.Graphs(n, directed=True)
    model = un.GraphStatistics(FORMULA, omega)
    obs = un.networks(sequence(model, THETA[n], T, np.random.default_rng([7, r])), omega)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        fit = un.fit(model, obs, objective, rng=10_000 + r)
    return None if fit.errors is None else (fit.estimate, fit.se)


def repeated(n: int, T: int, objective: Objective, repetitions: int) -> tuple[np.ndarray, np.ndarray]:
    """(repetitions, p) estimates and standard errors."""
    all_of_them = each(one, *([item] * repetitions for item in (n, T, objective)), range(repetitions))
    found = [pair for pair in all_of_them if pair is not None]
    print(f"{repetitions - len(found)} of {repetitions} without errors")
    assert len(found) >= 0.97 * repetitions
    estimates, errors = zip(*found, strict=True)
    return np.stack(estimates), np.stack(errors)


@pytest.mark.parametrize(
    ("n", "T", "objective", "repetitions"),
    [
        (50, 20, un.PseudoLikelihood(draws=200), 250),
        (50, 20, un.MonteCarloML(draws=800, precision=0.3, loglik=False), 60),
        (20, 10, un.PseudoLikelihood(draws=200), 600),
        (20, 10, un.MonteCarloML(draws=600, precision=0.3, loglik=False), 400),
    ],
    ids=["PL 50x20", "MCML 50x20", "PL 20x10", "MCML 20x10"],
)
def test_errors_and_coverage(n: int, T: int, objective: Objective, repetitions: int) -> None:
    repetitions = int(os.environ.get("UNNORM_REPS", repetitions))
    estimate, se = repeated(n, T, objective, repetitions)
    sd, bias = estimate.std(axis=0, ddof=1), estimate.mean(axis=0) - THETA[n]
    covered = np.mean(np.abs(estimate - THETA[n]) < 1.96 * se)
    print(f"sd {sd.round(4)} se {se.mean(axis=0).round(4)} bias/sd {(bias / sd).round(2)} coverage {covered:.3f}")
    slack = 4 / np.sqrt(2 * repetitions)
    np.testing.assert_allclose(se.mean(axis=0), sd, rtol=0.05 + slack)
    own = 0.1 if n == 50 else 0.2  # of maximum likelihood itself, O(1/information): .13 sd at 50 × 20, .27 at 20 × 10
    assert np.all(np.abs(bias) < (own + 4 / np.sqrt(repetitions)) * sd)
    chance = 3 * np.sqrt(0.05 * 0.95 / (2 * repetitions))  # four parameters, not independent: as if two
    assert 0.93 - chance < covered < 0.97 + chance


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data are not here (../shared/data)")
def test_monte_carlo_ml_of_s50_against_stochastic_approximation() -> None:
    """θ_{k+1} = θ_k + a_k D⁻¹ (s − s(y_k)) with averaging (Polyak & Juditsky 1992), D the information found."""
    with open(SHARED / "net_s50_edges.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["wave"] == "1"]
    A = np.zeros((50, 50))
    for row in rows:
        A[int(row["from"]) - 1, int(row["to"]) - 1] = 1
    omega = un.Graphs(50, directed=True)
    model = un.GraphStatistics("edges + mutual + gwesp(0.25)", omega)
    obs = un.networks(A, omega)
    fit = un.fit(model, obs, un.MonteCarloML(draws=5000, loglik=False), rng=3)
    (chain,), rng, free = model.chains(obs, np.arange(1)), np.random.default_rng(4), np.ones(omega.dim, dtype=bool)
    s, V = chain.statistics, fit.covariance
    theta, steps, batches = fit.estimate + fit.se * np.array([0.5, -0.5, 0.3]), 24_000, 30
    path = np.empty((steps, 3))
    for k in range(steps):
        drawn = chain.sample(theta, free, (omega.dim, 0), 1, rng)
        theta = theta + 0.2 / (1 + k / 50) ** 0.7 * (V @ (s - drawn.statistics[0]))
        path[k] = theta
    late = path[steps // 4 :].reshape(batches, -1, 3).mean(axis=1)
    error = late.std(axis=0, ddof=1) / np.sqrt(batches)
    assert fit.errors is not None
    both = np.sqrt(error**2 + np.diag(fit.errors.reference))
    print(f"Monte Carlo ML {fit.estimate}, approximation {late.mean(axis=0)}, error {both}, se {fit.se}")
    assert np.all(np.abs(late.mean(axis=0) - fit.estimate) < 4 * both)
    assert np.all(both < 0.15 * fit.se)
