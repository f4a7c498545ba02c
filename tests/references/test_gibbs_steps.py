"""Points a few Gibbs sweeps from the data: the ratio of densities, and what the kernel does for an estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, InputError

EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def _pilot(d: int, J: float = 1.0, h: float = -0.1) -> tuple[un.Ising, np.ndarray]:
    """Uneven fields, so that the two directions of a sweep differ."""
    model = un.Ising(d)
    return model, model.from_parts(h + np.linspace(-0.9, 0.9, d), J * (np.ones((d, d)) - np.eye(d)))


def _transition_matrix(bound, states: np.ndarray, draws: int) -> np.ndarray:
    obs = un.iid(states)
    rng = np.random.default_rng(3)
    t = np.repeat(np.arange(len(states)), draws)
    y = bound.sample(obs, t, rng)
    place = (y @ 2 ** np.arange(states.shape[1])[::-1]).astype(int)
    return np.stack([np.bincount(place[t == i], minlength=len(states)) / draws for i in range(len(states))])


@pytest.mark.parametrize("sweeps", [1, 3])
def test_detailed_balance(sweeps: int) -> None:
    """log q(y'|y) − log q(y|y') as the reference says, against frequencies of transitions between all 8 states."""
    model, theta = _pilot(3)
    states = model.domain.quadrature().points
    fit = un.fit(model, un.iid(np.repeat(states, 40, axis=0)), EVERY)
    fit = replace(fit, estimate=theta)
    bound = un.GibbsSteps(fit, sweeps=sweeps).bind(model.domain, un.iid(states))
    draws = 60_000
    P = _transition_matrix(bound, states, draws)
    for i in range(8):
        for j in range(8):
            ahead = bound.log_density(states[[j]], un.iid(states), np.array([i]))
            back = bound.log_density_back(states[[j]], un.iid(states), np.array([i]))
            ratio = float(np.exp(ahead - back)[0])
            error = np.sqrt((P[i, j] + ratio**2 * P[j, i]) / draws)
            assert abs(P[i, j] - ratio * P[j, i]) < 4.5 * error + 1e-9, (i, j)


def test_one_way_sweeps_are_not_reversible() -> None:
    """The coin that chooses the direction matters: without it the same comparison fails."""
    model, theta = _pilot(3, 2.0)
    states = model.domain.quadrature().points
    rng, draws = np.random.default_rng(5), 60_000
    sampler = model.sampler(theta, ())
    worst = {}
    for either in (False, True):
        y = sampler.sweep(np.repeat(states, draws, axis=0), 1, rng, either_way=either)
        place = (y @ 2 ** np.arange(3)[::-1]).astype(int).reshape(8, draws)
        P = np.stack([np.bincount(row, minlength=8) / draws for row in place])
        f = model.log_f(theta, states, ())
        flow = np.exp(f)[:, None] * P
        se = np.sqrt((np.exp(2 * f)[:, None] * P + (np.exp(2 * f)[:, None] * P).T) / draws) + 1e-12
        worst[either] = np.max(np.abs(flow - flow.T) / se)
    assert worst[True] < 4.5 < 20 < worst[False]


def test_nearer_to_maximum_likelihood_than_pseudo_likelihood() -> None:
    """Strong couplings, d = 6: over data sets the estimates' mean squares, and errors that say as much."""
    model, truth = _pilot(6, 0.8, -2.0)
    states = model.domain.quadrature().points
    p = np.exp(model.log_f(truth, states, ()))
    rng, z, distance = np.random.default_rng(7), [], {"pseudo": 0.0, "steps": 0.0, "ml": 0.0}
    for r in range(12):
        obs = un.iid(states[rng.choice(len(states), 800, p=p / p.sum())])
        pilot = un.fit(model, obs, EVERY)
        steps = un.fit(model, obs, un.ConditionalNCE(un.GibbsSteps(pilot, sweeps=5), per_point=10), rng=100 + r)
        ml = un.fit(model, obs)
        for name, fit in (("pseudo", pilot), ("steps", steps), ("ml", ml)):
            distance[name] += float(np.sum((fit.estimate - truth) ** 2))
        z.append((steps.estimate - truth) / steps.se)
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    assert distance["steps"] < 1.25 * distance["ml"]


def test_a_pilot_far_from_the_truth_does_no_harm() -> None:
    """Consistency: with φ = 0 (fair coins) the estimate is that of NCE-like pairs, within its errors."""
    model, truth = _pilot(4, 0.5)
    states = model.domain.quadrature().points
    p = np.exp(model.log_f(truth, states, ()))
    obs = un.iid(states[np.random.default_rng(1).choice(16, 4000, p=p / p.sum())])
    pilot = un.fit(model, un.iid(np.random.default_rng(2).integers(0, 2, (4000, 4))), EVERY)
    fit = un.fit(model, obs, un.ConditionalNCE(un.GibbsSteps(pilot), per_point=10), rng=3)
    assert np.abs((fit.estimate - truth) / fit.se).max() < 4


def test_words() -> None:
    obs = un.iid(np.random.default_rng(0).integers(0, 2, (50, 3)))
    pilot = un.fit(un.Ising(3), obs, EVERY)
    with pytest.raises(InputError, match="must be a fit"):
        un.GibbsSteps(un.Ising(3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(CombinationError, match="Fit the pilot to the same outcomes"):
        un.GibbsSteps(pilot).bind(un.BinaryVectors(4), un.iid(np.zeros((5, 4))))
    with pytest.raises(CombinationError, match=r"use un\.ConditionalNCE"):
        un.fit(un.Ising(3), obs, un.Logistic(un.GibbsSteps(pilot), total=100), rng=1)
    with pytest.raises(InputError, match="sweeps"):
        un.GibbsSteps(pilot, sweeps=0)
