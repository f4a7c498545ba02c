"""Binary vectors and graphs at real sizes: times, memory, the error of couplings against pseudo-likelihood, and glm.

    python benchmarks/discrete.py                          # small sizes, a minute or two
    python benchmarks/discrete.py --full                   # d = 100, n = 10⁵; d = 200, T = 10⁶
    python benchmarks/discrete.py --only ising time gibbs closed graphs glm
    python benchmarks/discrete.py --only spread --repetitions 100   # sd, se and coverage over simulated sequences
    python benchmarks/discrete.py --only glm --data ../shared/data  # s50 and Knecht against glm's fixtures

CPU seconds are those of the process, all threads together; peak memory is that of the whole process so far.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import unnorm as un

EVERY = un.ConditionalNCE(un.BitFlip(every=True))
THETA = np.array([-2.2, 1.0, 0.1, 1.2])
FORMULA = "edges + mutual + ttriple + stability"
FIXTURES = Path(__file__).parents[1] / "tests" / "oracles" / "graphs" / "fits.csv"


def peak() -> str:
    return f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB"


def timed(work: Callable[[], object], times: int = 1) -> tuple[object, str]:
    """The last result, and the best of so many times."""
    best, out = (np.inf, np.inf), None
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        out = work()
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    digits = 1 if best[0] >= 1 else 3
    return out, f"{best[1]:.{digits}f} s ({best[0]:.{digits}f} s CPU)"


def couplings(d: int, rng: np.random.Generator, spread: float = 1.0) -> np.ndarray:
    """Sherrington–Kirkpatrick couplings of spread/√d, on the scale of logistic regressions."""
    J = np.triu(rng.normal(0, spread / np.sqrt(d), (d, d)), 1)
    return J + J.T


def rmse(model: un.Ising, estimate: np.ndarray, truth: np.ndarray) -> float:
    pairs = slice(model.domain.dim, model.domain.dim * (model.domain.dim + 1) // 2)
    return float(np.sqrt(np.mean((estimate - truth)[pairs] ** 2)))


def by_nodes(y: np.ndarray, steps: int = 8) -> np.ndarray:
    """d separate logistic regressions by Newton's method, the two estimates of each coupling averaged."""
    n, d = y.shape
    h, J = np.zeros(d), np.zeros((d, d))
    for i in range(d):
        others = np.delete(np.arange(d), i)
        X = np.concatenate([np.ones((n, 1)), y[:, others]], axis=1)
        b = np.zeros(d)
        for _ in range(steps):
            p = 1 / (1 + np.exp(-X @ b))
            b += np.linalg.solve(X.T @ (X * (p * (1 - p))[:, None]), X.T @ (y[:, i] - p))
        h[i], J[i, others] = b[0], b[1:]
    return un.Ising(d).from_parts(h, (J + J.T) / 2)


def ising(given: argparse.Namespace) -> None:
    full = given.full
    d, n = (100, 100_000) if full else (40, 20_000)
    model, rng = un.Ising(d), np.random.default_rng(1)
    truth = model.from_parts(rng.normal(-0.5, 0.5, d), couplings(d, rng))
    y = model.sampler(truth, ()).sweep(rng.integers(0, 2, (n, d)), 50, rng)
    obs = un.iid(y)
    print(f"Ising, d = {d}, n = {n:,}, {model.size:,} parameters")
    fit, took = timed(lambda: un.fit(model, obs, EVERY, solver=un.LBFGS(), rng=2))
    assert isinstance(fit, un.Fit)
    print(f"  pseudo-likelihood        {took}, {peak()}; rmse of couplings {rmse(model, fit.estimate, truth):.4f}")
    some = [f"J[{j},{j + 1}]" for j in range(1, 11)]
    table, took = timed(lambda: fit.errors_of(some))
    print(f"  errors of ten couplings  {took}")
    names = {name: j for j, name in enumerate(model.names)}
    z = (fit.estimate - truth)[[names[name] for name in some]] / table["se"]  # pyright: ignore
    print(f"    z = {', '.join(f'{v:.1f}' for v in z)}")
    references = {
        "independent bits": un.ProductBernoulli(),
        "a tree": un.BernoulliTree(),
        "bits in turn": un.LogisticBernoulli(),
    }
    nce = fit
    for label, q in references.items():
        objective = un.Logistic(q, total=4 * n, points=un.IID())
        nce, took = timed(lambda objective=objective: un.fit(model, obs, objective, solver=un.LBFGS(), rng=4))
        assert isinstance(nce, un.Fit)
        ratio = rmse(model, nce.estimate, truth) / rmse(model, fit.estimate, truth)
        print(f"  NCE, k = 4, {label:17s} {took}, {peak()}; rmse {ratio:.3f} of the pseudo-likelihood's")
    table, took = timed(lambda: nce.errors_of(some))
    z = (nce.estimate - truth)[[names[name] for name in some]] / table["se"]  # pyright: ignore
    print(f"    its errors of ten      {took}; z = {', '.join(f'{v:.1f}' for v in z)}")
    nodes, took = timed(lambda: by_nodes(y))
    assert isinstance(nodes, np.ndarray)
    ratio = rmse(model, fit.estimate, truth) / rmse(model, nodes, truth)
    print(
        f"  {d} regressions, averaged {took}; rmse of couplings {rmse(model, nodes, truth):.4f}, ours {ratio:.3f} of it"
    )


def in_time(given: argparse.Namespace) -> None:
    full = given.full
    d, trials, steps = (200, 1000, 1000) if full else (40, 200, 250)
    model, rng = un.Ising(d, lag=1), np.random.default_rng(3)
    K = rng.normal(0, 0.5 / np.sqrt(d), (d, d)) + np.diag(rng.uniform(0.5, 1.5, d))
    truth = model.from_parts(rng.normal(-1, 0.5, d), couplings(d, rng, 0.7), K)
    y = np.empty((trials, steps + 1, d), dtype=np.int8)
    y[:, 0] = rng.integers(0, 2, (trials, d))

    def simulated() -> None:
        for t in range(1, steps + 1):
            y[:, t] = model.sampler(truth, (y[:, t - 1].astype(float),)).sweep(y[:, t - 1], 8, rng)

    _, took = timed(simulated)
    T = trials * steps
    print(f"Ising in time, d = {d}, T = {T:,} in {trials:,} trials, {model.size:,} parameters; simulated in {took}")
    flat, trial = y.reshape(-1, d), np.repeat(np.arange(trials), steps + 1)
    fit, took = timed(lambda: un.fit(model, un.transitions(flat, group=trial), EVERY, solver=un.LBFGS(), rng=2))
    assert isinstance(fit, un.Fit)
    print(f"  pseudo-likelihood        {took}, {peak()}; rmse of couplings {rmse(model, fit.estimate, truth):.4f}")
    print(f"    {fit.reason}, {fit.iterations} steps on all the data")
    some = [f"J[{j},{j + 1}]" for j in range(1, 6)] + [f"K[{j},{j + 1}]" for j in range(1, 6)]
    table, took = timed(lambda: fit.errors_of(some))
    names = {name: j for j, name in enumerate(model.names)}
    z = (fit.estimate - truth)[[names[name] for name in some]] / table["se"]  # pyright: ignore
    print(f"  errors of ten couplings  {took}, {peak()}; z = {', '.join(f'{v:.1f}' for v in z)}")


def gibbs(given: argparse.Namespace) -> None:
    d, rng = 100, np.random.default_rng(5)
    model = un.Ising(d)
    theta = model.from_parts(rng.normal(-0.5, 0.5, d), couplings(d, rng))
    sampler = model.sampler(theta, ())
    sampler.sweep(np.zeros((1, d)), 1, rng)  # compiles
    for chains in (1, 100):
        _, took = timed(lambda chains=chains: sampler.sweep(np.zeros((chains, d)), 100_000 // chains, rng))
        print(f"Gibbs, d = {d}: 100,000 sweeps of {chains} chain(s) in {took}")


def closed(given: argparse.Namespace) -> None:
    """A ring of 24 bits, whose moments follow from a transfer matrix."""
    d, J, h, rng = 24, 1.2, -0.6, np.random.default_rng(7)
    model = un.Ising(d)
    ring = np.zeros((d, d))
    ring[np.arange(d), (np.arange(d) + 1) % d] = J
    theta = model.from_parts(np.full(d, h), ring + ring.T)
    T = np.array([[1.0, np.exp(h / 2)], [np.exp(h / 2), np.exp(h + J)]])
    powers = np.linalg.matrix_power(T, d)
    one, two = T @ np.diag([0.0, 1.0]), np.diag([0.0, 1.0])
    mean = np.trace(np.linalg.matrix_power(T, d - 1) @ one) / np.trace(powers)
    pair = np.trace(np.linalg.matrix_power(T, d - 1) @ two @ T @ two) / np.trace(powers)
    y = model.sampler(theta, ()).sweep(np.zeros((20_000, d)), 100, rng)
    seen = float(np.mean(y * np.roll(y, 1, axis=1)))
    print(
        f"Ring of {d}: P(y_i = 1) {y.mean():.4f}, exactly {mean:.4f}; P(both neighbours) {seen:.4f}, exactly {pair:.4f}"
    )


def sequence(model: un.GraphStatistics, T: int, rng: np.random.Generator) -> np.ndarray:
    y = [(rng.random(model.domain.dim) < 0.06).astype(float)]
    for _ in range(T + 9):
        y.append(model.sampler(THETA, ({"before": y[-1][None]},)).sweep(y[-1][None], 15, rng)[0])
    return model.domain.adjacency(np.array(y[-T:]))


def graphs(given: argparse.Namespace, n: int = 50, T: int = 20) -> None:
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
        assert isinstance(fit, un.Fit)
        print(f"  {name:<40} {took:<26} {np.round(fit.estimate, 3)} se {np.round(fit.se, 3)}")
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


def spread(given: argparse.Namespace, n: int = 50, T: int = 20) -> None:
    repetitions = given.repetitions
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


def read(path: Path) -> dict[str, np.ndarray]:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) if row[key] else np.nan for row in rows]) for key in rows[0]}


def networks_of(data: Path) -> dict[str, tuple[un.Graphs, un.Observations, dict, dict]]:
    """The networks that glm's fixtures are of: Ω, observations, covariates of actors and of dyads."""
    edges, actors = read(data / "net_s50_edges.csv"), read(data / "net_s50_actors.csv")
    A = np.zeros((3, 50, 50))
    A[tuple(edges[key].astype(int) - 1 for key in ("wave", "from", "to"))] = 1
    habits = {name: np.stack([actors[f"{name}_w{t}"] for t in (1, 2, 3)]) for name in ("alcohol", "smoking")}
    dyads, pupils, primary = (read(data / f"net_knecht_{name}.csv") for name in ("dyads", "pupils", "primary_edges"))
    B, D = np.zeros((4, 26, 26)), np.zeros((26, 26))
    B[tuple(dyads[key].astype(int) - 1 for key in ("wave", "from", "to"))] = dyads["tie"]
    D[tuple(primary[key].astype(int) - 1 for key in ("from", "to"))] = 1
    present = (B == 10).sum(axis=2) < 25  # one who left has structural zeros to everybody
    delinquency = np.stack([pupils[f"delinquency_w{t}"] for t in (1, 2, 3, 4)])
    class_, one, both = un.Graphs(26, directed=True), un.Graphs(50, directed=True), un.Graphs(50)
    knecht = un.networks(np.where(B == 10, 0, B), class_, present=present, missing="skip")
    smoking = {"smoking": habits["smoking"][0].astype(int)}
    return {
        "s50 wave 1": (one, un.networks(A[0], one), {}, {}),
        "s50": (one, un.networks(A, one), habits, {}),
        "s50 undirected": (both, un.networks(np.maximum(A[0], A[0].T), both), smoking, {}),
        "knecht": (class_, knecht, {"sex": pupils["sex"].astype(int), "delinquency": delinquency}, {"primary": D}),
    }


def glm(given: argparse.Namespace) -> None:
    if not given.data.is_dir():
        print(f"glm's fixtures: the networks are not at {given.data}; say where with --data")
        return
    with open(FIXTURES, newline="") as file:
        rows = list(csv.DictReader(file))
    for name, (omega, obs, nodes, dyads) in networks_of(given.data).items():
        mine = [row for row in rows if row["fit"] == name]
        formula = " + ".join(dict.fromkeys(row["term"].split("[")[0] for row in mine))
        model = un.GraphStatistics(formula, omega, nodes, dyads)
        fit, took = timed(lambda model=model, obs=obs: un.fit(model, obs, EVERY), 3)
        assert isinstance(fit, un.Fit)
        far = np.max(np.abs(fit.estimate - np.array([float(row["estimate"]) for row in mine])))
        print(f"{name:<15} pseudo-likelihood {took}; largest distance from glm {far:.1e}")


PARTS = {
    "ising": ising, "time": in_time, "gibbs": gibbs, "closed": closed, "graphs": graphs, "glm": glm, "spread": spread,
}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", nargs="*", default=[name for name in PARTS if name != "spread"], choices=list(PARTS))
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--repetitions", type=int, default=100)
    given = parser.parse_args()
    warnings.simplefilter("ignore", un.errors.UnnormWarning)
    for name in given.only:
        PARTS[name](given)
