"""Binary vectors at real sizes: times, memory, and the error of couplings against other estimators.

    python benchmarks/discrete.py                 # small sizes, a minute
    python benchmarks/discrete.py --full          # d = 100, n = 10⁵; d = 200, T = 10⁶
    python benchmarks/discrete.py --only ising time gibbs closed

CPU seconds are those of the process, all threads together; peak memory is that of the whole process so far.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import unnorm as un

EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def peak() -> str:
    return f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB"


def timed(work: Callable[[], object]) -> tuple[object, str]:
    wall, cpu = time.perf_counter(), time.process_time()
    out = work()
    return out, f"{time.perf_counter() - wall:.1f} s ({time.process_time() - cpu:.1f} s CPU)"


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


def ising(full: bool) -> None:
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
    for label, q in (("independent bits", un.ProductBernoulli()), ("a tree", un.BernoulliTree())):
        objective = un.Logistic(q, total=4 * n, points=un.IID())
        nce, took = timed(lambda objective=objective: un.fit(model, obs, objective, solver=un.LBFGS(), rng=4))
        assert isinstance(nce, un.Fit)
        ratio = rmse(model, nce.estimate, truth) / rmse(model, fit.estimate, truth)
        print(f"  NCE, k = 4, {label:17s} {took}, {peak()}; rmse {ratio:.3f} of the pseudo-likelihood's")
    nodes, took = timed(lambda: by_nodes(y))
    assert isinstance(nodes, np.ndarray)
    ratio = rmse(model, fit.estimate, truth) / rmse(model, nodes, truth)
    print(
        f"  {d} regressions, averaged {took}; rmse of couplings {rmse(model, nodes, truth):.4f}, ours {ratio:.3f} of it"
    )


def in_time(full: bool) -> None:
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


def gibbs(full: bool) -> None:
    d, rng = 100, np.random.default_rng(5)
    model = un.Ising(d)
    theta = model.from_parts(rng.normal(-0.5, 0.5, d), couplings(d, rng))
    sampler = model.sampler(theta, ())
    sampler.sweep(np.zeros((1, d)), 1, rng)  # compiles
    for chains in (1, 100):
        _, took = timed(lambda chains=chains: sampler.sweep(np.zeros((chains, d)), 100_000 // chains, rng))
        print(f"Gibbs, d = {d}: 100,000 sweeps of {chains} chain(s) in {took}")


def closed(full: bool) -> None:
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


PARTS = {"ising": ising, "time": in_time, "gibbs": gibbs, "closed": closed}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    given = parser.parse_args()
    for name in given.only:
        PARTS[name](given.full)
