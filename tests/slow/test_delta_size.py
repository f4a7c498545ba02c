"""The score test that δ is constant keeps its size where f is right, and finds what f misses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.inference.delta_test import delta_tests

pytestmark = pytest.mark.slow

REPEATS = 1000
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CIRCLE = un.ExponentialFamily(lambda y, x: (jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)), ("a", "b", "c"), un.Circle())
FULL = un.ExponentialFamily(lambda y, x: (y, x["z"] * y, x["w"] * jnp.sin(3 * y)), ("a", "b", "c"), un.Interval(0, 2))
MISSING = un.ExponentialFamily(lambda y, x: (y, x["w"] * jnp.sin(3 * y)), ("a", "c"), un.Interval(0, 2))


def toy(rng: np.random.Generator) -> un.Observations:
    return un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=rng))


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
    model: Any, law: Callable[[np.random.Generator], un.Observations], points: Any, repeats: int
) -> Mapping[str, float]:
    """The share of data sets with p < 5 %, by column."""
    found: dict[str, list[bool]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(repeats):
            obs = law(np.random.default_rng([1, i]))
            fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5, points=points), rng=50_000 + i)
            assert fit.solution is not None
            for name, one in delta_tests(fit.solution.scores.as_rows(), obs.context).items():  # type: ignore[union-attr, arg-type]
                found.setdefault(name, []).append(one.p < 0.05)
    return {name: float(np.mean(each)) for name, each in found.items()}


@pytest.mark.parametrize("points", [un.IID(), un.Lattice()], ids=["iid", "lattice"])
@pytest.mark.parametrize(
    ("model", "law"), [(TOY, toy), (CIRCLE, circle), (FULL, regression)], ids=["toy", "circle", "reg"]
)
def test_size(model: Any, law: Any, points: Any) -> None:
    """Between 3 and 7 %, give or take two standard errors of the simulation (0.7 %)."""
    for name, share in rejected(model, law, points, REPEATS).items():
        assert 0.03 - 0.014 <= share <= 0.07 + 0.014, (name, share)


def test_power() -> None:
    """f without z y where the data have it: nearly always found with a lattice; IID points are noisier."""
    assert rejected(MISSING, regression, un.Lattice(), 100)["z"] > 0.95
    assert rejected(MISSING, regression, un.IID(), 100)["z"] > 0.12
