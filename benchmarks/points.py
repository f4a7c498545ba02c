"""How much noise the reference points bring: Monte Carlo sd of what `un.fit` estimates, by scheme, at equal totals.

    python benchmarks/points.py [--redraws 40] [--seed 1] [--only toy|planar|cost] [--smoothing fixed|reml]

The data stay, the reference points are redrawn, and `un.fit` is called again. Two experiments. The toy chain of
Section 4.1 (n = 500) at θ = (0.5, 5), at θ = (−2, 50), and over random θ as in the paper, with χ a smooth of ten
functions: θ1 and θ2. A planar chain (630 fixations) with smooths of step, angle and distance from the centre, and χ a
smooth of the previous point: each curve at the observed values. `default` is what `un.Logistic` does when `points` is
left out. Smoothing parameters are held at what REML finds on the data against 50 lattice points a context (`fixed`,
so that nothing but the points differs between redraws), or chosen anew in each fit (`reml`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

import unnorm as un
from unnorm.references.contrast import contrast

SCHEMES: dict[str, Any] = {
    "IID": un.IID(),
    "default": None,
    "Stratified": un.Stratified(),
    "Sobol": un.Sobol(),
    "Lattice": un.Lattice(),
    "Lattice(2)": un.Lattice(2),
    "Lattice(5)": un.Lattice(5),
}
MANY = 50  # points a context, from which the fixed smoothing parameters come


class Redrawn:
    """One model and one data set, fitted again and again with fresh reference points."""

    def __init__(self, model: Any, obs: Any, normaliser: Any, smoothing: str, rng: np.random.Generator) -> None:
        self.model, self.obs, self.normaliser, self.rng = model, obs, normaliser, rng
        self.smoothing = un.Smoothing("reml", reference_error=False)
        if smoothing == "fixed":
            sp = self.fit(un.Lattice(), MANY).smooths.sp
            self.smoothing = un.Smoothing("reml", sp=sp, reference_error=False)

    def fit(self, points: Any, k: int) -> Any:
        objective = un.Logistic(un.Uniform(), per_point=k, points=points)
        return un.fit(self.model, self.obs, objective, self.normaliser, smoothing=self.smoothing, rng=self.rng)


TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))


def toy(
    title: str, thetas: Iterable[tuple[float, float]], k: int, redraws: int, smoothing: str, rng: np.random.Generator
) -> None:
    """rms over data sets of the sd of θ̂ over redraws."""
    noise: dict[str, list[np.ndarray]] = {name: [] for name in SCHEMES}
    for theta in thetas:
        obs = un.transitions(un.datasets.toy_chain(500, *theta, rng=rng))
        case = Redrawn(TOY, obs, un.Smooth("s(y_prev, k=10)", smoothing="reml"), smoothing, rng)
        for name, scheme in SCHEMES.items():
            fits = [case.fit(scheme, k).estimate for _ in range(redraws)]
            noise[name].append(np.var(fits, axis=0, ddof=1))
    table = {name: np.sqrt(np.mean(values, axis=0)) for name, values in noise.items()}
    report(f"toy chain, n = 500, {title}, k = {k}: sd", ("theta1", "theta2"), table, table)


def fixations(n: int, rng: np.random.Generator) -> Any:
    """A chain of fixations: log-linear in the step, quadratic in the distance from the centre, two waves in angle."""
    omega = un.Box((0, 800), (0, 600))
    path = [np.array([400.0, 300.0])]
    for _ in range(n):
        at = omega.uniform(2000, rng)
        step, centre = at - path[-1], np.hypot(at[:, 0] - 400.0, at[:, 1] - 300.0)
        angle = np.arctan2(step[:, 1], step[:, 0])
        f = -np.hypot(*step.T) / 120.0 - (centre / 250.0) ** 2 + 0.4 * np.cos(4 * angle) + 0.3 * np.cos(2 * angle)
        p = np.exp(f - f.max())
        path.append(at[rng.choice(2000, p=p / p.sum())])
    return omega, un.transitions(np.array(path))


CURVES = {"angle": "s(angle)", "centrality": "s(dcenter)", "distance": "s(step)"}


def planar(k: int, redraws: int, smoothing: str, rng: np.random.Generator) -> None:
    """sd over redraws of each curve, centred over the observed values: rms there, and as a share of its se."""
    omega, obs = fixations(630, rng)
    model = un.Additive("s(step, k=10) + s(dcenter, k=10) + s(angle, bs='cc', k=15)", omega)
    case = Redrawn(model, obs, un.Smooth("s(y1_prev, y2_prev, k=40)", smoothing="reml"), smoothing, rng)
    every = np.arange(obs.n)
    known = model.covariates(obs).values(("step", "dcenter", "angle"), obs, obs.outcome, every)
    at = {label: known[label[2:-1]] for label in CURVES.values()}
    sd, share = {}, {}
    for name, scheme in SCHEMES.items():
        fits = [case.fit(scheme, k) for _ in range(redraws)]
        sd[name], share[name] = np.empty(len(CURVES)), np.empty(len(CURVES))
        for j, label in enumerate(CURVES.values()):
            tables = [fit.effect(label, at=at[label]) for fit in fits]
            curves = np.array([np.asarray(table["estimate"]) for table in tables])
            variance = (curves - curves.mean(axis=1, keepdims=True)).var(axis=0, ddof=1)
            sd[name][j] = np.sqrt(variance.mean())
            error = np.mean([np.asarray(table["se"]) ** 2 for table in tables], axis=0)
            share[name][j] = np.sqrt(np.mean(variance / error))
    report(f"planar chain, n = 630, k = {k}: sd as a share of the se", tuple(CURVES), share, sd)


def report(title: str, names: tuple[str, ...], shown: dict[str, np.ndarray], sd: dict[str, np.ndarray]) -> None:
    """`shown`, and each sd as a share of IID's, with the mean share."""
    heads = "".join(f"{name:>12}" for name in names)
    print(f"\n{title}\n{'points':14}{heads}  | share of IID's sd:{heads[18 - 14 :]}{'mean':>8}")
    for name, values in shown.items():
        share = sd[name] / sd["IID"]
        cells = "".join(f"{value:12.4f}" for value in values)
        print(f"{name:14}{cells}  | {'':16}" + "".join(f"{one:12.3f}" for one in share) + f"{share.mean():8.3f}")


def cost() -> None:
    """Seconds to draw 2 million points in the plane."""
    omega = un.Box((0, 800), (0, 600))
    y, x = omega.uniform(100_000, 1), omega.uniform(100_000, 2)
    obs = un.Observations("transitions", y, ("x", "y"), {"x_prev": x[:, 0], "y_prev": x[:, 1]}, lags=1)
    q = un.Uniform().bind(omega, obs)
    print("\n10^5 contexts × 20 points in the plane, seconds (best of 3)")
    for name, scheme in SCHEMES.items():
        times = []
        for _ in range(3):
            began = time.perf_counter()
            contrast(obs, q, scheme, per_point=20, rng=1)
            times.append(time.perf_counter() - began)
        print(f"{name:14}{min(times):12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redraws", type=int, default=40)
    parser.add_argument("--sets", type=int, default=12, help="data sets of the toy chain at random θ")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("toy", "planar", "cost"))
    parser.add_argument("--smoothing", choices=("fixed", "reml"), default="fixed")
    options = parser.parse_args()
    start = time.perf_counter()
    for k in (10, 30) if options.only in (None, "toy") else ():
        rng = np.random.default_rng(options.seed)
        some = [(rng.uniform(-1, 1), rng.uniform(0.1, 10)) for _ in range(options.sets)]
        cases = {"θ = (0.5, 5)": [(0.5, 5.0)] * 3, "θ = (−2, 50)": [(-2.0, 50.0)] * 3, "θ random": some}
        for title, thetas in cases.items():
            toy(title, thetas, k, options.redraws, options.smoothing, rng)
    for k in (5, 20) if options.only in (None, "planar") else ():
        planar(k, options.redraws, options.smoothing, np.random.default_rng(options.seed))
    if options.only in (None, "cost"):
        cost()
    print(
        f"\nsmoothing parameters: {options.smoothing}; {options.redraws} redraws; {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
