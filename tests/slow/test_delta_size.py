"""The score test that δ is constant keeps its size where f is right, and finds what f misses."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from laws import LAWS

import unnorm as un

pytestmark = pytest.mark.slow

REPEATS = int(os.environ.get("UNNORM_REPS", "1000"))
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CIRCLE = un.ExponentialFamily(lambda y, x: (jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)), ("a", "b", "c"), un.Circle())
FULL = un.ExponentialFamily(lambda y, x: (y, x["z"] * y, x["w"] * jnp.sin(3 * y)), ("a", "b", "c"), un.Interval(0, 2))
MISSING = un.ExponentialFamily(lambda y, x: (y, x["w"] * jnp.sin(3 * y)), ("a", "c"), un.Interval(0, 2))


def toy(rng: np.random.Generator, n: int = 300) -> un.Observations:
    return un.transitions(un.datasets.toy_chain(n, 0.5, 5.0, rng=rng))


def few(rng: np.random.Generator) -> un.Observations:
    return toy(rng, 100)


def sharp(rng: np.random.Generator) -> un.Observations:
    """N(x, 1/400) cut to [−1, 1]: most of a context's few uniform points are nowhere near."""
    return un.transitions(un.datasets.toy_chain(300, 0.0, 400.0, rng=rng))


def sharp_and_few(rng: np.random.Generator) -> un.Observations:
    return un.transitions(un.datasets.toy_chain(100, 0.0, 400.0, rng=rng))


def clustered(rng: np.random.Generator) -> un.Observations:
    """The regression in 30 clusters that say nothing."""
    obs = regression(rng)
    return replace(obs, group={"cluster": np.arange(obs.n) % 30})


def sharp_and_clustered(rng: np.random.Generator) -> un.Observations:
    obs = sharp_and_few(rng)
    return replace(obs, group={"cluster": np.arange(obs.n) % 30})


def counted(rng: np.random.Generator) -> un.Observations:
    """Counts of (x, y) on a grid of nine by nine: a few hundred transitions in some fifty rows."""
    law = LAWS["grid steep"]
    return law.simulate(law.n, rng, "weighted")


def circle(rng: np.random.Generator) -> un.Observations:
    grid, y = np.linspace(-np.pi, np.pi, 721)[:-1], [0.0]
    for u in rng.random(300):
        mass = np.cumsum(np.exp(2 * np.cos(grid - y[-1]) + 0.7 * np.cos(grid) - 0.5 * np.cos(2 * grid)))
        y.append(grid[np.searchsorted(mass, u * mass[-1])])
    return un.transitions(np.array(y))


def regression(rng: np.random.Generator) -> un.Observations:
    z, w, g = rng.normal(size=300), rng.uniform(0, 2, 300), np.linspace(0, 2, 401)
    mass = np.cumsum(np.exp(-g + 1.2 * z[:, None] * g + 0.9 * w[:, None] * np.sin(3 * g)), axis=1)
    y = g[(mass < rng.random(300)[:, None] * mass[:, -1:]).sum(axis=1)]
    return un.conditional({"y": y, "z": z, "w": w}, y="y", x=("z", "w"))


def rejected(
    model: Any, law: Callable[[np.random.Generator], un.Observations], points: Any, repeats: int, k: int = 5
) -> Mapping[str, float]:
    """The share of data sets with p < 5 %, by column; clusters are used where the data have them."""
    found: dict[str, list[bool]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(repeats):
            obs = law(np.random.default_rng([1, i]))
            by = "cluster" if obs.group else None
            logistic = un.Logistic(un.Uniform(), per_point=k, points=points, cluster=by)
            fit = un.fit(model, obs, logistic, rng=50_000 + i)
            assert fit.anchoring is not None
            assert fit.anchoring.tests is not None
            for name, one in fit.anchoring.tests.items():
                found.setdefault(name, []).append(one.p < 0.05)
    return {name: float(np.mean(each)) for name, each in found.items()}


@pytest.mark.parametrize("points", [un.IID(), un.Lattice()], ids=["iid", "lattice"])
@pytest.mark.parametrize(
    ("model", "law"), [(TOY, toy), (CIRCLE, circle), (FULL, regression)], ids=["toy", "circle", "reg"]
)
def test_size(model: Any, law: Any, points: Any) -> None:
    """Between 3 and 7 %, give or take two standard errors of the simulation (0.7 %)."""
    for name, share in rejected(model, law, points, REPEATS).items():
        print(f"{points!r}, {name}: {100 * share:.1f} %")
        assert 0.03 - 0.014 <= share <= 0.07 + 0.014, (name, share)


# lowest and highest share of rejections at 5 %. Sums of few residuals have lighter tails than a normal law: with 100
# observations 2 to 4 % is all there is. With the variance that the few points themselves suggest it was 0 to 0.5 %.
HARD: dict[str, tuple[Any, Any, int, float, float]] = {
    "few": (TOY, few, 5, 0.018, 0.07),
    "sharp, k = 2": (TOY, sharp, 2, 0.022, 0.07),
    "sharp, k = 5": (TOY, sharp, 5, 0.022, 0.07),
    "sharp and few, k = 2": (TOY, sharp_and_few, 2, 0.010, 0.07),
    "sharp and few, k = 5": (TOY, sharp_and_few, 5, 0.014, 0.07),
    "clustered": (FULL, clustered, 5, 0.02, 0.084),
    "sharp and clustered": (TOY, sharp_and_clustered, 5, 0.02, 0.084),
    "counted": (LAWS["grid steep"].model, counted, 40, 0.016, 0.084),
}


@pytest.mark.parametrize("points", [un.IID(), un.Lattice()], ids=["iid", "lattice"])
@pytest.mark.parametrize("case", HARD)
def test_size_where_points_or_observations_are_few(case: str, points: Any) -> None:
    model, law, k, low, high = HARD[case]
    for name, share in rejected(model, law, points, REPEATS, k).items():
        print(f"{case}, {points!r}, {name}: {100 * share:.1f} %")
        slack = max(0.0, 2 * np.sqrt(0.05 * 0.95 / REPEATS) - 0.014)  # the bounds are for a thousand data sets
        assert low - slack <= share <= high + slack, (name, share)


def test_power() -> None:
    """f without z y where the data have it: nearly always found with a lattice; IID points are noisier."""
    assert rejected(MISSING, regression, un.Lattice(), 100)["z"] > 0.95
    assert rejected(MISSING, regression, un.IID(), 100)["z"] > 0.12
