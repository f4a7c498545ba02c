"""Graphs at real sizes: times of pseudo-likelihood, Monte Carlo maximum likelihood and goodness of fit, the sampler's
speed, and the spread of estimators over simulated sequences.

    python benchmarks/graphs.py                          # times, a minute
    python benchmarks/graphs.py --repetitions 100        # … and sd, se and coverage over so many sequences
    python benchmarks/graphs.py --data ../shared/data    # … and s50 and Knecht against glm's fixtures

CPU seconds are those of the process, all threads together.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unnorm as un

THETA = np.array([-2.2, 1.0, 0.1, 1.2])
FORMULA = "edges + mutual + ttriple + stability"
FIXTURES = Path(__file__).parents[1] / "tests" / "oracles" / "graphs" / "fits.csv"


def timed(work: Callable[[], Any], times: int = 1) -> tuple[Any, str]:
    best, out = np.inf, None
    wall = time.perf_counter()
    for _ in range(times):
        begin = time.process_time()
        out = work()
        best = min(best, time.process_time() - begin)
    return out, f"{best:.3f} s CPU ({(time.perf_counter() - wall) / times:.3f} s)"


def sequence(model: un.GraphStatistics, T: int, rng: np.random.Generator) -> np.ndarray:
    y = [(rng.random(model.domain.dim) < 0.06).astype(float)]
    for _ in range(T + 9):
        y.append(model.sampler(THETA, ({"before": y[-1][None]},)).sweep(y[-1][None], 15, rng)[0])
    return model.domain.adjacency(np.array(y[-T:]))


def times(n: int = 50, T: int = 20) -> None:
    omega = un.Graphs(n, directed=True)
    model = un.GraphStatistics(FORMULA, omega)
    obs = un.networks(sequence(model, T, np.random.default_rng(1)), omega)
    print(f"{FORMULA}: {n} actors, {T} waves")
    un.fit(model, obs, un.PseudoLikelihood(draws=20), rng=1)  # loads and compiles
    for name, objective, count in (
        ("pseudo-likelihood, errors from scores", un.PseudoLikelihood("scores"), 5),
        ("pseudo-likelihood, simulated errors", un.PseudoLikelihood("simulated"), 1),
        ("Monte Carlo ML without log-likelihood", un.MonteCarloML(loglik=False), 1),
        ("Monte Carlo ML", un.MonteCarloML(), 1),
    ):
        fit, took = timed(lambda objective=objective: un.fit(model, obs, objective, rng=2), count)
        print(f"  {name:<40} {took:<28} {np.round(fit.estimate, 3)} se {np.round(fit.se, 3)}")
        last = fit
    _, took = timed(lambda: un.graph_gof(last, rng=3))
    print(f"  {'goodness of fit, 100 simulations':<40} {took}")
    for formula in ("edges", "edges + mutual + ttriple", "edges + mutual + gwesp(0.25)"):
        one = un.GraphStatistics(formula, omega)
        wave, theta = one.wave(obs.outcome[0], (), 0), np.r_[-3.0, np.zeros(one.size - 1)]
        free, rng = np.ones(omega.dim, dtype=bool), np.random.default_rng(4)
        begin = time.process_time()
        wave.sample(theta, free, (10**6, 0), 1, rng)
        print(f"  toggles of {formula:<30} {1e3 * (time.process_time() - begin):.0f} ns each")


def spread(repetitions: int, n: int = 50, T: int = 20) -> None:
    omega = un.Graphs(n, directed=True)
    model = un.GraphStatistics(FORMULA, omega)
    kinds = {
        "pseudo-likelihood": un.PseudoLikelihood(draws=200),
        "Monte Carlo ML": un.MonteCarloML(draws=800, precision=0.3, loglik=False),
    }
    found: dict[str, list[un.Fit]] = {name: [] for name in kinds}
    for r in range(repetitions):
        obs = un.networks(sequence(model, T, np.random.default_rng([5, r])), omega)
        for name, objective in kinds.items():
            found[name].append(un.fit(model, obs, objective, rng=10_000 + r))
    print(f"over {repetitions} sequences: sd, mean se, coverage of 95 % intervals")
    for name, fits in found.items():
        estimate, se = np.stack([fit.estimate for fit in fits]), np.stack([fit.se for fit in fits])
        covered = np.mean(np.abs(estimate - THETA) < 1.96 * se, axis=0)
        print(f"  {name:<20} {estimate.std(axis=0, ddof=1).round(4)} {se.mean(axis=0).round(4)} {covered.round(3)}")


def fixtures(data: Path) -> None:
    with open(FIXTURES, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["fit"] == "s50 wave 1"]
    A = np.zeros((50, 50))
    with open(data / "net_s50_edges.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["wave"] == "1":
                A[int(row["from"]) - 1, int(row["to"]) - 1] = 1
    omega = un.Graphs(50, directed=True)
    model, obs = un.GraphStatistics("edges + mutual + ttriple", omega), un.networks(A, omega)
    fit, took = timed(lambda: un.fit(model, obs, un.ConditionalNCE(un.BitFlip(every=True))), 3)
    glm = np.array([float(row["estimate"]) for row in rows])
    print(f"s50 wave 1: {took}; largest distance from glm {np.max(np.abs(fit.estimate - glm)):.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=0)
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    times()
    if args.data is not None:
        fixtures(args.data)
    if args.repetitions:
        spread(args.repetitions)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", un.errors.UnnormWarning)
    main()
