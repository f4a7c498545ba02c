"""Time to 0.1 standard error of the maximum-likelihood estimate on the toy chain: SGD against Newton and L-BFGS.

And what batches, points and control variates do to the variance of one gradient.

    PYTHONPATH=src python benchmarks/sgd.py --n 100000

prints JSON. "time" includes everything from the data to the estimate (compilation too, given apart); the reference is
Newton on the exact likelihood with quadrature to 1e-7.
"""

from __future__ import annotations

import argparse
import json
import time

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import unnorm as un
from unnorm.references import IID, Lattice, Sobol, Stratified, Uniform
from unnorm.stochastic import SGD, Features
from unnorm.stochastic.estimator import estimator

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHI = Features(lambda x: tuple(jnp.cos(j * jnp.arccos(x)) for j in range(8)))  # Chebyshev polynomials


def newton(obs: un.Observations) -> tuple[un.Fit, dict[str, float]]:
    """The first fit compiles; the second has nothing left to compile."""
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        fit = un.fit(TOY, obs)
        times.append(time.perf_counter() - begin)
    return fit, {"first": times[0], "again": times[1]}  # pyright: ignore[reportPossiblyUnbound]


def lbfgs(obs: un.Observations, ml: un.Fit) -> dict[str, float]:
    """L-BFGS-B on the exact likelihood (value and gradient by the same quadrature), stopped at 0.1 standard error."""
    problem = un.Exact(order=64).bind(TOY, obs, un.PerContext())
    seen: dict[str, float] = {}
    begin = time.perf_counter()

    def down(theta: np.ndarray) -> tuple[float, np.ndarray]:
        d = problem.derivatives(theta)
        if "first_evaluation" not in seen:
            seen["first_evaluation"] = time.perf_counter() - begin
        seen["evaluations"] = seen.get("evaluations", 0) + 1
        if "reached" not in seen and np.all(np.abs(theta - ml.estimate) < 0.1 * ml.se):
            seen["reached"] = time.perf_counter() - begin
        return -d.value / obs.n, -d.gradient / obs.n

    minimize(down, np.zeros(2), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15})
    return seen


def sgd(obs: un.Observations, ml: un.Fit, seeds: int, steps: int, batch: int, references: int) -> dict[str, object]:
    """Whole fits (compilation and standard errors included), and the loop alone once it is compiled."""
    import optax

    solver = SGD(
        optax.sgd(0.5), steps=steps, batch=batch, references=references, block=5, precondition=True, average=0.5
    )
    errors, times, mc = [], [], []
    for seed in range(seeds):
        begin = time.perf_counter()
        fit = un.fit(TOY, obs, un.Poisson(), CHI, solver=solver, rng=seed)
        times.append(time.perf_counter() - begin)
        errors.append(((fit.estimate - ml.estimate) / ml.se).round(4).tolist())
        mc.append((np.sqrt(np.diag(fit.errors.reference)) / ml.se).round(4).tolist())
    e = solver.estimator(TOY, obs, un.Poisson(), CHI)
    loop, reached = [], []
    for seed in range(seeds + 1):
        begin = time.perf_counter()
        trace = solver.climb(e, np.random.default_rng(seed))
        loop.append(time.perf_counter() - begin)
        reached.append(bool(np.all(np.abs(trace.phi[:2] - ml.estimate) < 0.1 * ml.se)))
    return {
        "steps": steps,
        "batch": batch,
        "references": references,
        "seconds_whole_fit": times,
        "seconds_loop_first": loop[0],
        "seconds_loop_compiled": loop[1:],
        "error_in_se": errors,
        "monte_carlo_se_in_se": mc,
        "within_0.1_se": bool(np.all(np.abs(errors) < 0.1) and all(reached)),
    }


def step_time(obs: un.Observations, batch: int, references: int) -> float:
    """Seconds for one gradient, compiled."""
    e = estimator(TOY, obs, Uniform(), CHI, batch=batch, references=references)
    phi = e.start(np.random.default_rng(0))
    e.gradients(phi, 1, 200)
    begin = time.perf_counter()
    e.gradients(phi, 2, 200)
    return (time.perf_counter() - begin) / 200


def variances(obs: un.Observations, ml: un.Fit, batch: int, references: int) -> list[dict[str, object]]:
    """Variance of one step's gradient in θ, relative to independent batches and points without control variates."""
    table = []
    base = None
    for sampling in ("iid", "stratified"):
        for control in (False, True):
            for points in (IID(), Stratified(), Sobol(), Lattice()):
                e = estimator(
                    TOY,
                    obs,
                    Uniform(),
                    CHI,
                    batch=batch,
                    references=references,
                    points=points,
                    sampling=sampling,
                    control=control,
                )
                phi = e.start(np.random.default_rng(0), ml.estimate)
                _, g, _ = e.gradients(phi, 7, 400)
                variance = g[:, :2].var(axis=0, ddof=1)
                base = variance if base is None else base
                table.append(
                    {
                        "batch": sampling,
                        "points": type(points).__name__,
                        "control": control,
                        "times_lower": (base / variance).round(1).tolist(),
                    }
                )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    obs = un.transitions(un.datasets.toy_chain(arguments.n, 0.5, 5.0, rng=1))
    ml, newton_seconds = newton(obs)
    out = {
        "n": arguments.n,
        "newton_seconds": newton_seconds,
        "lbfgs": lbfgs(obs, ml),
        "sgd": [sgd(obs, ml, arguments.seeds, steps, 1000, 10) for steps in (40, 100)],
        "sgd_seconds_per_step": step_time(obs, 1000, 10),
        "variance": variances(obs, ml, 1000, 10),
    }
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
