"""Intervals that claim 95 % cover 95 %: 2,000 data sets of the toy chain for θ, and smooth effects on average.

Between 93.4 and 96.6 % is three standard errors of the simulation either way.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import unnorm as un
from unnorm.references import IID, Lattice, Stratified, Uniform
from unnorm.solvers import Smoothing
from unnorm.studies.reproduce_toy import estimate

REPS, N, K = 2000, 500, 10
TRUTH = np.array([0.5, 5.0])
SCHEMES = {"iid": IID(), "stratified": Stratified(), "lattice": Lattice()}
LOW, HIGH = 0.934, 0.966

pytestmark = pytest.mark.slow


def specification(name: str) -> dict:
    if name == "exact":
        return {"objective": un.Exact(), "normaliser": un.PerContext()}
    return {
        "objective": un.Logistic(Uniform(), per_point=K, points=SCHEMES[name]),
        "normaliser": un.Smooth("s(y_prev, k=10)"),
        "smoothing": Smoothing("reml", threads=1),
    }


def errors_of(name: str, reps: range) -> list[tuple[np.ndarray, np.ndarray]]:
    """(θ̂ − θ, se) for these repetitions."""
    spec, out = specification(name), []
    for rep in reps:
        obs = un.transitions(un.datasets.toy_chain(N, *TRUTH, rng=np.random.default_rng([7, rep])))
        found = estimate(obs, spec, rep, None)
        assert found.status == "ok"
        out.append((found.theta - TRUTH, found.se))
    return out


def in_parallel(work, *first, reps: int = REPS) -> list:
    jobs = min(os.cpu_count() or 1, 8)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        blocks = [range(start, min(start + 50, reps)) for start in range(0, reps, 50)]
        return [one for part in pool.map(work, *([x] * len(blocks) for x in first), blocks) for one in part]


@pytest.mark.parametrize("name", ["exact", *SCHEMES])
def test_theta(name: str) -> None:
    found = in_parallel(errors_of, name)
    error, se = (np.array(part) for part in zip(*found))
    covered = np.mean(np.abs(error) < 1.959964 * se, axis=0)
    spread = error.std(axis=0) / np.sqrt((se**2).mean(axis=0))
    print(f"\n{name}: coverage {covered}, sd/se {spread}, bias/sd {error.mean(axis=0) / error.std(axis=0)}")
    assert np.all((covered > LOW) & (covered < HIGH))


# --- smooth effects ---------------------------------------------------------------------------------------------------

KNOTS = np.linspace(-1, 1, 8)
HEIGHTS = np.array(
    [-0.6, 0.2, 0.7, 0.1, -0.5, 0.3, 0.8, -0.1]
)  # g at the knots: a natural cubic spline, in `cr`'s span


def g(y: np.ndarray) -> np.ndarray:
    from scipy.interpolate import CubicSpline

    return CubicSpline(KNOTS, HEIGHTS, bc_type="natural")(y)


def chain_with(rng: np.random.Generator) -> np.ndarray:
    """p(y|x) ∝ exp{g(y) − 2 (y − x)²} on [−1, 1], by inverse CDF on a fine grid."""
    grid = np.linspace(-1, 1, 2001)
    middle = (grid[1:] + grid[:-1]) / 2
    cdf = np.exp(g(middle)[None] - 2.0 * (middle - grid[::10, None]) ** 2).cumsum(axis=1)
    y = [float(rng.uniform(-1, 1))]
    for u in rng.random(N):
        at = (y[-1] + 1) * 100  # between two rows of the table
        low = min(int(at), 199)
        row = cdf[low] * (1 - (at - low)) / cdf[low, -1] + cdf[low + 1] * (at - low) / cdf[low + 1, -1]
        j = int(np.searchsorted(row, u))
        before = row[j - 1] if j else 0.0
        y.append(float(grid[j] + (grid[j + 1] - grid[j]) * (u - before) / (row[j] - before)))
    return np.array(y)


def smooth_coverage(scheme: str, reps: range) -> list[float]:
    """The share of observed y where the 95 % band of s(y) holds g."""
    shape = un.Additive(
        "s(y, bs='cr', k=8) + near",
        un.Interval(-1, 1),
        covariates=[un.Expression("near", "-(y - y_prev) ** 2")],
        knots={"y": KNOTS},
    )
    out = []
    for rep in reps:
        obs = un.transitions(chain_with(np.random.default_rng([8, rep])))
        objective = un.Logistic(Uniform(), per_point=K, points=SCHEMES[scheme])
        fit = un.fit(
            shape,
            obs,
            objective,
            normaliser=un.Smooth("s(y_prev, k=10)"),
            smoothing=Smoothing("reml", threads=1),
            rng=rep,
        )
        y = obs.outcome[:, 0]
        table = fit.effect("s(y)", at=y)
        rows = fit.smooths.gam.columns["y"]  # the effect sums to zero over data and reference points together
        truth = g(y) - g(rows).mean()
        out.append(float(np.mean((truth > table["lower"]) & (truth < table["upper"]))))
    return out


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_smooth_effects_on_average(scheme: str) -> None:
    """Over the function, not at each point (Marra & Wood 2012): the truth is in the span of the basis."""
    covered = np.array(in_parallel(smooth_coverage, scheme, reps=600))
    error = covered.std() / np.sqrt(len(covered))
    print(f"\n{scheme}: s(y) covered {covered.mean():.4f} ± {error:.4f}")
    assert LOW < covered.mean() < HIGH
