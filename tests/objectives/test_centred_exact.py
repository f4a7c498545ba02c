"""𝓛 and 𝓜 of chains with short steps: the shared rule gives way to one centred at each previous point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

import unnorm as un
from unnorm.errors import NoEstimateError, UnnormWarning
from unnorm.models.normalisers import PerContext
from unnorm.objectives.exact import Exact

LINE, BOX = un.Interval(0, 1), un.Box((0, 1), (0, 1))
SQUARE = un.ExponentialFamily(lambda y, x: (-0.5 * (y - x) ** 2,), ("q",), LINE)
TWO = un.ExponentialFamily(lambda y, x: (y * x, -0.5 * (y - x) ** 2), ("a", "q"), LINE)
ENERGY = un.Energy(lambda t, y, x: -0.5 * t["r"] ** 2 * (y - x) ** 2, {"r": 1.0}, LINE)
BENT = un.Energy(lambda t, y, x: t["a"] * t["b"] * y - 0.5 * t["b"] ** 2 * (y - x) ** 2, {"a": 0.3, "b": 2.0}, LINE)
PLANE = un.ExponentialFamily(lambda y, x: (-0.5 * ((y - x) ** 2).sum(),), ("q",), BOX)


def walk(step: float, n: int, dim: int = 1) -> Any:
    z = np.cumsum(step * np.random.default_rng(23).standard_normal((n, dim)), axis=0)
    z += 0.5 - z.mean(axis=0)
    return un.transitions(z[:, 0] if dim == 1 else z)


def maximum(obs: Any) -> float:
    """Of Σ_t {−½ q |y − x|² − log Z(q)}, Z in closed form."""
    y, x = obs.outcome, obs.previous()

    def lost(log_q: float) -> float:
        root = np.exp(0.5 * log_q)
        mass = np.exp(log_ndtr((1 - x) * root)) - np.exp(log_ndtr(-x * root))
        log_z = np.sum(0.5 * np.log(2 * np.pi) - 0.5 * log_q + np.log(mass))
        return 0.5 * root**2 * float(np.sum((y - x) ** 2)) + float(log_z)

    found: Any = minimize_scalar(lost, bounds=(0, 30), method="bounded", options={"xatol": 1e-12})
    return float(np.exp(found.x))


@pytest.mark.parametrize("objective", [un.Exact(), un.Poisson()], ids=["exact", "poisson"])
@pytest.mark.parametrize("step", [1e-2, 1e-3, 3e-4, 1e-5])
def test_short_steps_on_a_line(step: float, objective: Any) -> None:
    """800 nodes for all contexts were off by .01 at steps of 1e-3; at 3e-4 the estimate "did not exist"."""
    obs = walk(step, 300)
    fit = un.fit(SQUARE, obs, objective)
    assert fit.estimate[0] == pytest.approx(maximum(obs), rel=1e-6)
    assert fit.se[0] == pytest.approx(fit.estimate[0] * np.sqrt(2 / 299), rel=1e-3)
    assert fit.loglik == pytest.approx(299 * (0.5 * np.log(fit.estimate[0] / (2 * np.pi)) - 0.5), abs=1e-5)


def test_short_steps_of_an_energy_and_in_the_plane() -> None:
    obs = walk(1e-3, 300)
    fit = un.fit(ENERGY, obs, un.Exact())
    assert abs(fit.estimate[0]) == pytest.approx(np.sqrt(maximum(obs)), rel=1e-6)
    assert fit.se[0] == pytest.approx(abs(fit.estimate[0]) / np.sqrt(2 * 299), rel=1e-3)
    obs = walk(3e-3, 200, 2)
    fit = un.fit(PLANE, obs, un.Exact())
    assert fit.estimate[0] == pytest.approx(2 * 199 / np.sum((obs.outcome - obs.previous()) ** 2), rel=1e-4)


def test_what_is_sharp_in_a_product_with_what_is_not() -> None:
    obs = walk(1e-3, 300)
    fit = un.fit(TWO, obs, un.Exact())
    alone = un.fit(SQUARE, obs, un.Exact())
    assert fit.loglik >= alone.loglik
    assert fit.estimate[1] == pytest.approx(alone.estimate[0], rel=0.02)
    assert np.all(np.abs(fit.estimate[0]) < 4 * fit.se[0])


@pytest.mark.parametrize("tilt", [False, True])
@pytest.mark.parametrize("model", [TWO, BENT], ids=["family", "energy"])
def test_moments_are_the_same_by_either_rule(model: Any, tilt: bool) -> None:
    obs = walk(0.1, 40)
    flat = model.flat()
    problem = Exact().bind(flat, obs, PerContext())
    assert problem.centred is not None
    theta = np.array([0.7, 3.0])
    log_a = np.random.default_rng(5).standard_normal(problem.integrals.context.size)
    one, other = (part.moments(theta, log_a, tilt) for part in (problem.integrals.finer(), problem.centred))
    np.testing.assert_allclose(other.log_z, one.log_z, atol=1e-9)
    np.testing.assert_allclose(other.mean, one.mean, atol=1e-9)
    np.testing.assert_allclose(other.second, one.second, rtol=1e-8)
    np.testing.assert_allclose(problem.centred.log_z(theta), one.log_z, atol=1e-9)


def test_a_chain_that_does_not_move_has_no_estimate() -> None:
    obs = un.transitions(np.full(50, 0.4))
    with pytest.raises(NoEstimateError, match="q → \\+∞"):
        un.fit(SQUARE, obs, un.Exact())


def test_ranking_of_short_steps() -> None:
    """400 steps of 1e-3 among 8,000 points: little is known of q, but the statistic does vary."""
    obs = walk(1e-3, 400)
    fit = un.fit(SQUARE, obs, un.Ranking(un.Uniform(), per_point=20), rng=1)
    assert abs(fit.estimate[0] - maximum(obs)) < 3 * fit.se[0]
    assert 0.1 < fit.se[0] / fit.estimate[0] < 1


def test_nuts_says_when_its_rule_is_too_coarse() -> None:
    pytest.importorskip("blackjax")
    with pytest.warns(UnnormWarning, match="log Z is off by up to .* Pass a larger order= to un.NUTS"):
        draws = un.sample(SQUARE, walk(1e-3, 60), sampler=un.NUTS(draws=20, warmup=20, chains=1), rng=1)
    assert "log Z is off" in draws.notes[0]


def test_a_statistic_far_from_zero() -> None:
    """ν = −log Z ≈ 3,000, beyond what exp can take: the same estimate as with the statistic about zero."""
    obs = un.transitions(np.random.default_rng(3).uniform(size=60))
    fits = [
        un.fit(un.ExponentialFamily(lambda y, x, a=a: (y * x - a,), ("q",), LINE), obs, un.Poisson())
        for a in (0.0, 3000.0)
    ]
    assert fits[1].estimate[0] == pytest.approx(fits[0].estimate[0], abs=1e-6)
    assert fits[1].se[0] == pytest.approx(fits[0].se[0], rel=1e-6)
