"""Energies of many parameters: derivatives block by block, so that no table of rows × parameters is large."""

from __future__ import annotations

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.objectives import row_problem

HIDDEN = 60  # 241 parameters


def _energy(theta, y):  # of IID data, or in contexts that it does not read
    return jnp.dot(theta["out"], jnp.tanh(theta["W"] @ y + theta["b"])) - 0.5 * jnp.dot(y, y)


def _problem(n: int, m: int, objective: un.Logistic | un.Ranking | None = None):
    contexts = objective is not None
    rng = np.random.default_rng(3)
    start = {"W": 0.3 * rng.normal(size=(HIDDEN, 2)), "b": 0.1 * rng.normal(size=HIDDEN), "out": np.zeros(HIDDEN)}
    model = un.Energy(_energy, start, un.Box((-3, 3), (-3, 3)))
    objective = un.Logistic(un.Uniform(), total=m) if objective is None else objective
    y = rng.uniform(-2, 2, (n, 2))
    obs = un.iid(y) if not contexts else un.conditional(y, x=rng.normal(size=n))
    return objective.bind(model, obs, objective.default_normaliser(model, obs), 1)


@pytest.mark.parametrize("objective", [None, un.Ranking(un.Uniform(), per_point=4)], ids=["logistic", "ranking"])
def test_small_blocks_give_the_same_derivatives(monkeypatch: pytest.MonkeyPatch, objective) -> None:
    theta = _problem(200, 800, objective).start + 0.05
    whole = _problem(200, 800, objective)
    a, value = whole.derivatives(theta), whole.value(theta)
    for module in ("row_problem", "ranking"):
        monkeypatch.setattr(f"unnorm.objectives.{module}.TABLE", 50 * len(theta))
    small = _problem(200, 800, objective)
    b = small.derivatives(theta)
    assert a.value == pytest.approx(b.value, rel=1e-12) == value
    for name in ("gradient", "information", "scale"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-9)
    assert small.value(theta) == pytest.approx(value, rel=1e-12)
    one, two = whole.scores(theta), small.scores(theta)
    np.testing.assert_allclose(one.information, two.information, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.empirical_spread(), two.empirical_spread(), rtol=1e-9, atol=1e-9)


def test_a_table_of_all_rows_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_problem, "TABLE", 2**16)
    problem = _problem(4000, 16_000)
    theta = problem.start + 0.05
    problem.derivatives(theta)  # compiles
    tracemalloc.start()
    problem.derivatives(theta)
    problem.value(theta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = 8 * 20_000 * len(theta)
    assert table > 35e6
    assert peak < table / 3
