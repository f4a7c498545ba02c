"""Steps with the exact score and the curvature of some rows: nearer to the fit, never further, and the same fit."""

from __future__ import annotations

import numpy as np
import pytest

from unnorm.engine import approach as module
from unnorm.engine.arrow import Arrow
from unnorm.engine.core import build_design, smooth_fit
from unnorm.engine.criteria import Laplace
from unnorm.engine.families import FAMILIES
from unnorm.engine.outer import Clock, PenalisedRows
from unnorm.engine.segment import ResponseRows
from unnorm.terms.parser import parse

N = 12_000


def problem(formula: str, family: str, seed: int = 0) -> tuple[PenalisedRows, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    data = {name: rng.uniform(0, 1, N) for name in "abc"}
    eta = np.sin(6 * data["a"]) + 3 * (data["b"] - 0.5) * data["c"] - 1.0
    y = rng.random(N) < 1 / (1 + np.exp(-eta)) if family == "binomial" else rng.poisson(np.exp(eta))
    data["y"] = y.astype(float)
    design = build_design(parse(formula).build(data), data)
    rows = ResponseRows(np.require(design.sort(data["y"]), requirements=("C", "W")), np.empty(0), np.empty(0))
    free = np.ones(design.penalties.count, bool)
    return PenalisedRows(design, rows, family, FAMILIES[family], 0.0, N, free, 1, Clock()), data


def left(one: PenalisedRows, beta: np.ndarray, rho: np.ndarray) -> float:
    """The nats that Newton's step in β would gain with all rows' own curvature."""
    _, score, cross = one.design.sweep(one.rows, one.code, beta)
    penalties = one.design.penalties
    residual = score - penalties.columns(beta) @ np.exp(rho)
    return 0.5 * float(residual @ penalties.added(cross, np.exp(rho)).invert().dot(residual))


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("formula", ["s(a, k=9) + s(b, k=9) + s(c, k=9)", "s(a, b, k=40) + s(c, k=9)"])
def test_two_or_three_steps_leave_little_of_the_way(formula, family):
    one, data = problem(formula, family)
    some = smooth_fit(one.design, data["y"], family, weights=np.arange(N) % 5 == 0)  # a fifth of the rows
    beta = one.design.to_flat(some.beta)
    cross = Arrow(5.0 * some.cross.shared)
    before = left(one, beta, some.rho)
    reached, rho = module.approach(one, Laplace(), beta, some.rho, cross)
    assert 2 <= one.clock.counts["score passes"] <= 3
    assert before > 2.0
    assert left(one, reached, rho) < 0.02 * before
    whole = smooth_fit(one.design, data["y"], family)
    seen = whole.rho < some.rho.max() + 8.0
    np.testing.assert_allclose(rho[seen & (whole.limit == 0)], whole.rho[seen & (whole.limit == 0)], atol=0.5)


def test_a_curvature_that_misleads_is_not_followed():
    """Too small by a factor of thirty, steps are thirty times too long: what is returned is no worse than the start."""
    one, data = problem("s(a, k=9) + s(b, k=9)", "binomial")
    some = smooth_fit(one.design, data["y"], weights=np.arange(N) % 10 == 0)
    beta = one.design.to_flat(some.beta)
    reached, rho = module.approach(one, Laplace(), beta, some.rho, Arrow(some.cross.shared / 3.0))
    np.testing.assert_array_equal(reached, beta)
    np.testing.assert_array_equal(rho, some.rho)


@pytest.mark.parametrize("formula", ["s(a, k=9) + s(b, k=9) + s(c, k=9)", "s(a, b, k=40) + s(c, k=9)"])
def test_the_fit_is_the_same_with_fewer_passes(formula, monkeypatch):
    one, data = problem(formula, "binomial", 3)
    for name, value in {"_MANY": 5_000, "_FEW": 1_200, "_PER_COLUMN": 20, "_COSTLY": 4}.items():
        monkeypatch.setattr(f"unnorm.engine.core.{name}", value)
    quick = smooth_fit(one.design, data["y"])
    assert quick.timings["score passes"] > 0
    monkeypatch.setattr("unnorm.engine.core._COSTLY", 10**9)
    without = smooth_fit(one.design, data["y"])  # from the fit to some rows at once
    monkeypatch.setattr("unnorm.engine.core._MANY", 10**9)
    slow = smooth_fit(one.design, data["y"])
    assert quick.iterations["passes"] < without.iterations["passes"] < slow.iterations["passes"]
    assert quick.score == pytest.approx(slow.score, abs=2e-3)
    apart = one.design.predict(one.design.to_flat(quick.beta - slow.beta))
    assert float(np.sqrt(np.mean(apart**2))) < 0.005 * float(np.sqrt(slow.edf.sum() / slow.cross.shared[0, 0]))
