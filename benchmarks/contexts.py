"""Contexts with thousands of sparse features: seconds and memory of `un.Linear`, beside what it recovers.

    python benchmarks/contexts.py [--contexts 100000] [--features 10000] [--active 50] [--per-point 5] [--lam 1 | reml]

y | x on [−1, 1] with f = θ1 y + θ2 y u(x), u a linear function of the features; χ is linear in the features, and
−log Z a curved function of u, nearly straight where θ1 is large. Printed beside θ̂: the exact maximum-likelihood
estimate of the same data, and how far from it a χ that is no more than linear is.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp

import unnorm as un

TRUE = (2.0, 1.0)


def features(n: int, q: int, active: int, rng: np.random.Generator) -> sp.csr_array:
    """Words: `active` of q in each context, the first ones more common."""
    rank = (q * rng.random((n, active)) ** 1.5).astype(np.int64)
    data = np.full(rank.size, 1 / np.sqrt(active))
    X = sp.csr_array((data, rank.ravel(), np.arange(0, rank.size + 1, active)), (n, q))
    X.sum_duplicates()
    return X


def outcomes(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """y from its density, by inversion on a grid."""
    grid = np.linspace(-1, 1, 401)
    y = np.empty(len(u))
    for begin in range(0, len(u), 10_000):
        here = u[begin : begin + 10_000, None]
        f = (TRUE[0] + TRUE[1] * here) * grid
        p = np.exp(f - f.max(axis=1, keepdims=True))
        c = np.concatenate([np.zeros((len(p), 1)), np.cumsum((p[:, 1:] + p[:, :-1]) / 2, axis=1)], axis=1)
        target = rng.random(len(p)) * c[:, -1]
        at = np.array([np.interp(t, row, grid) for t, row in zip(target, c)])
        y[begin : begin + 10_000] = at
    return y


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("contexts", 100_000), ("features", 10_000), ("active", 50), ("per-point", 5)):
        parse.add_argument(f"--{name}", type=int, default=value)
    parse.add_argument(
        "--lam",
        type=lambda text: text if text == "reml" else float(text),
        default=None,
        help="default: the largest that leaves θ alone",
    )
    given = parse.parse_args()
    rng = np.random.default_rng(1)
    X = features(given.contexts, given.features, given.active, rng)
    u = X @ rng.normal(0.0, 0.5, given.features)
    obs = un.conditional({"y": outcomes(u, rng), "u": u}, y="y", x="u")
    model = un.ExponentialFamily(lambda y, x: (y, y * x["u"]), ("theta1", "theta2"), un.Interval(-1, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    began = time.perf_counter()
    objective = un.Logistic(un.Uniform(), per_point=given.per_point)
    fit = un.fit(model, obs, objective, un.Linear(X, lam=given.lam), rng=1)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    size = f"{given.contexts:,} contexts × {given.features:,} features, {X.nnz:,} non-zeros"
    print(f"{size}, {given.per_point} points each")
    print(f"seconds {seconds:.1f}; peak memory {after:,.0f} MiB ({before:,.0f} before the fit)")
    lam, bias = fit.diagnostics["lam"], fit.diagnostics["bias"]
    print(f"lam {lam:.4g}: without it θ moves by about {bias:.2g} se; {fit.reason}")
    exact = un.fit(model, obs)
    for j, name in enumerate(fit.names):
        away = (fit.estimate[j] - exact.estimate[j]) / exact.se[j]
        print(f"{name}: {fit.estimate[j]:.4f} ± {fit.se[j]:.4f}, exact ML {exact.estimate[j]:.4f}: {away:+.2f} se away")


if __name__ == "__main__":
    main()
