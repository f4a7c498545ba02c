"""Simulation and held-out likelihoods of many bits, against a ring whose constant and moments have closed forms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import UnnormWarning
from unnorm.results.density import ParametricDensity
from unnorm.results.gibbs_draws import annealed_log_z, gibbs_draws

D, J, H = 24, 1.2, -0.6
EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def _ring() -> tuple[un.Ising, np.ndarray]:
    couplings = np.zeros((D, D))
    couplings[np.arange(D), (np.arange(D) + 1) % D] = J
    model = un.Ising(D)
    return model, model.from_parts(np.full(D, H), couplings + couplings.T)


def _moments() -> tuple[float, float, float]:
    """log Z, P(y_i = 1) and P(y_i = y_{i+1} = 1) by the transfer matrix exp(h (a + b)/2 + J a b)."""
    T = np.exp([[0.0, H / 2], [H / 2, H + J]])
    whole, rest, up = np.linalg.matrix_power(T, D), np.linalg.matrix_power(T, D - 1), np.diag([0.0, 1.0])
    Z = np.trace(whole)
    return float(np.log(Z)), float(np.trace(whole @ up) / Z), float(np.trace(rest @ up @ T @ up) / Z)


def _iid(n: int) -> un.Observations:
    return un.iid(np.random.default_rng(1).integers(0, 2, (n, D)).astype(float))


def test_draws_of_a_ring() -> None:
    model, theta = _ring()
    y, doubt = gibbs_draws(ParametricDensity(model, theta), _iid(6000), np.random.default_rng(2))
    _, one, two = _moments()
    assert doubt is None
    by_draw = np.stack([y.mean(axis=1), (y * np.roll(y, 1, axis=1)).mean(axis=1)])
    se = by_draw.std(axis=1) / np.sqrt(len(y))
    assert np.all(np.abs(by_draw.mean(axis=1) - [one, two]) < 4 * se)


def test_annealing_gives_log_z_with_its_error() -> None:
    model, theta = _ring()
    obs = _iid(50)
    found = [
        annealed_log_z(ParametricDensity(model, theta), obs, np.zeros(1, dtype=int), np.random.default_rng(r))
        for r in range(20)
    ]
    log_z, se = np.array([f[0][0] for f in found]), np.array([f[1][0] for f in found])
    assert abs(log_z.mean() - _moments()[0]) < 4 * log_z.std() / np.sqrt(20)
    assert np.mean(se) == pytest.approx(log_z.std(ddof=1), rel=0.5)
    assert se.max() < 0.05


def test_a_fit_simulates_and_predicts_as_the_model(tmp_path: object) -> None:
    """D1 of the review: draws were single flips of the data, and held-out likelihoods were off by a thousand."""
    model, theta = _ring()
    y = model.sampler(theta, ()).sweep(np.zeros((3000, D)), 200, np.random.default_rng(3))
    small = un.ExponentialFamily(
        lambda y: (y.sum(), (y * y[np.roll(np.arange(D), 1)]).sum()), ("h", "J"), un.BinaryVectors(D)
    )
    for objective in (EVERY, un.ConditionalNCE(un.BitFlip(), per_point=8)):
        fit = un.fit(small, un.iid(y[:1500]), objective, rng=1)
        held = fit.held_out(un.iid(y[1500:]), rng=2)
        truth = model.log_f(theta, y[1500:], ()).sum() - 1500 * _moments()[0]
        assert held.loglik == pytest.approx(truth, abs=1500 * (0.004 + 4 * held.quadrature_error))
        assert 0 < held.quadrature_error < 0.05
    draws = np.column_stack(list(fit.simulate(400, rng=3).values()))
    assert abs(draws.mean() - _moments()[1]) < 0.03
    assert len(np.unique(draws, axis=0)) > 300


def test_two_modes_are_noticed() -> None:
    model = un.Ising(60)
    theta = model.from_parts(np.full(60, -30.0), np.ones((60, 60)) - np.eye(60))
    with pytest.warns(UnnormWarning, match="not forgotten where they started"):
        un.simulate(model, theta, 100, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        un.simulate(model, np.zeros(model.size), 100, rng=1)
