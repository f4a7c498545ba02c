"""Time to 0.1 standard error of the maximum-likelihood estimate on the toy chain: SGD against Newton and L-BFGS.

And what batches, points and control variates do to the variance of one gradient.

    PYTHONPATH=src python benchmarks/sgd.py --n 100000

prints two tables; `--json` prints everything. Times run from the observations to the estimate (for Newton and SGD with
its standard errors). "first" includes the compilation, "again" is the same call on the same shapes in the same session;
processor time counts all threads, and is what to compare on a busy machine.
Every method starts at θ = 0. The yardstick is Newton on the exact likelihood with quadrature to 1e-7.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.references import IID, Lattice, Sobol, Stratified, Uniform
from unnorm.solvers.stochastic import SGD, Features
from unnorm.solvers.stochastic.estimator import StepDesign, estimator

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHI = Features(lambda x: tuple(jnp.cos(j * jnp.arccos(x)) for j in range(8)))  # Chebyshev polynomials


class Clock:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.processor


def row(method: str, times: list[tuple[float, float]], error: float, **more: object) -> dict[str, object]:
    """The first time, and medians of the others."""
    wall, processor = (float(np.median([t[j] for t in times[1:]])) for j in (0, 1))
    first = dict(zip(("first", "first_processor"), times[0]))
    return {"method": method, **first, "again": wall, "again_processor": processor, "error_in_se": error, **more}


def newton(obs: un.Observations) -> tuple[un.Fit, dict[str, object]]:
    """Full-batch Newton on the exact likelihood, to convergence."""
    times, fits = [], []
    for _ in range(6):
        clock = Clock()
        fits.append(un.fit(TOY, obs))
        times.append(clock.read())
    return fits[0], row("Newton, exact likelihood", times, 0.0)


def lbfgs(obs: un.Observations, ml: un.Fit) -> dict[str, object]:
    """L-BFGS-B on the exact likelihood by 64 Gauss nodes, value and gradient by JAX, to within 0.1 standard error."""
    rule = TOY.domain.quadrature(64)
    y, x = obs.outcome[:, 0], obs.context["y_prev"]
    times, errors = [], []
    with x64():

        def value(theta: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
            f = theta[0] * rule.points[:, 0] - 0.5 * theta[1] * (rule.points[:, 0] - x[:, None]) ** 2
            log_z = jax.scipy.special.logsumexp(f + np.log(rule.weights), axis=1)
            return jnp.mean(log_z - theta[0] * y + 0.5 * theta[1] * (y - x) ** 2)

        both = jax.jit(jax.value_and_grad(value))

        def down(theta: np.ndarray) -> tuple[float, np.ndarray]:
            f, g = both(theta, y, x)
            gap = float(np.max(np.abs((theta - ml.estimate) / ml.se)))
            if gap < 0.1:  # there: the clock stops, and L-BFGS with it
                errors.append(gap)
                raise StopIteration
            return float(f), np.asarray(g)

        for _ in range(6):
            clock = Clock()
            try:
                minimize(down, np.zeros(2), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15})
            except StopIteration:
                times.append(clock.read())
    return row("L-BFGS, exact likelihood", times, max(errors))


def sgd(obs: un.Observations, ml: un.Fit, seeds: int, steps: int, batch: int, references: int) -> dict[str, object]:
    """Whole fits, standard errors included; the first compiles."""
    solver = SGD(steps=steps, batch=batch, references=references, block=5)
    errors, times, own = [], [], []
    for seed in range(seeds + 1):
        clock = Clock()
        fit = un.fit(TOY, obs, un.Poisson(), CHI, solver=solver, rng=seed)
        times.append(clock.read())
        errors.append(float(np.max(np.abs((fit.estimate - ml.estimate) / ml.se))))
        own.append(float(np.max(np.sqrt(np.diag(fit.errors.reference)) / ml.se)))
    return row(
        f"SGD, {steps} steps of {batch:,} observations × {references} points",
        times,
        max(errors),
        monte_carlo_se_in_se=float(np.median(own)),
        within=sum(error < 0.1 for error in errors),
        runs=len(errors),
    )


def step_time(obs: un.Observations, batch: int, references: int) -> float:
    """Seconds for one gradient, compiled."""
    e = estimator(TOY, obs, Uniform(), CHI, StepDesign(batch, references))
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
                e = estimator(TOY, obs, Uniform(), CHI, StepDesign(batch, references, points, sampling, control))
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    obs = un.transitions(un.datasets.toy_chain(arguments.n, 0.5, 5.0, rng=1))
    warnings.simplefilter("ignore", un.errors.UnnormWarning)  # the shortest runs still drift; their error is printed
    ml, exact = newton(obs)
    rows = [exact, lbfgs(obs, ml), *(sgd(obs, ml, arguments.seeds, steps, 1000, 10) for steps in (50, 100, 400))]
    table = variances(obs, ml, 1000, 10)
    per_step = step_time(obs, 1000, 10)
    if arguments.json:
        about = {"n": arguments.n, "times": rows, "sgd_seconds_per_gradient": per_step, "variance": table}
        print(json.dumps(about, indent=1))
        return
    print(f"Toy chain, n = {arguments.n:,}: seconds to within 0.1 standard error of the MLE\n")
    print("| method | first | again | again, processor | largest error (se) | within 0.1 se |")
    print("|---|---|---|---|---|---|")
    compiled = False
    for one in rows:
        first = "" if compiled else f"{one['first']:.2f}"  # the loop is compiled by the first of SGD's rows
        compiled = "runs" in one
        runs = f"{one['within']} of {one['runs']}" if "runs" in one else ""
        print(
            f"| {one['method']} | {first} | {one['again']:.2f} | {one['again_processor']:.2f} "
            f"| {one['error_in_se']:.4f} | {runs} |"
        )
    print(f"\nOne gradient of 1,000 observations × 10 points: {1e3 * per_step:.3f} ms\n")
    print("| batch | points | control | variance lower by (θ1, θ2) |\n|---|---|---|---|")
    for one in table:
        low = ", ".join(f"{value:,.3g}" if value < 100 else f"{value:,.0f}" for value in one["times_lower"])
        print(f"| {one['batch']} | {one['points']} | {'yes' if one['control'] else 'no'} | {low} |")


if __name__ == "__main__":
    main()
