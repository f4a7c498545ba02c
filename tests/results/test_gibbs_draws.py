"""Simulation and held-out likelihoods of many bits, against a ring whose constant and moments have closed forms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import gammaln

import unnorm as un
from unnorm.errors import UnnormWarning
from unnorm.results import gibbs_draws as gibbs_draws_module
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
    y, doubt = gibbs_draws(ParametricDensity(model, theta), _iid(1500), np.random.default_rng(2))
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
        for r in range(8)
    ]
    log_z, se = np.array([f[0][0] for f in found]), np.array([f[1][0] for f in found])
    assert abs(log_z.mean() - _moments()[0]) < 4 * log_z.std() / np.sqrt(8)
    assert np.mean(se) == pytest.approx(log_z.std(ddof=1), rel=0.7)
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


def _equal_couplings(d: int, c: float, tilt: float) -> tuple[un.Ising, np.ndarray, np.ndarray, float]:
    """f = h k + c k (k − 1)/2 of k ones, two modes: the model, θ, the law of k, and log Z."""
    k, h = np.arange(d + 1), -c * (d - 1) / 2 + tilt * c
    log_p = gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1) + h * k + c * k * (k - 1) / 2
    log_z = float(np.logaddexp.reduce(log_p))
    model = un.Ising(d)
    return model, model.from_parts(np.full(d, h), c * (1 - np.eye(d))), np.exp(log_p - log_z), log_z


def _draws_of(law: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    d = len(law) - 1
    return (rng.random((n, d)).argsort(axis=1).argsort(axis=1) < rng.choice(d + 1, n, p=law)[:, None]).astype(float)


def test_constants_of_a_law_with_two_unequal_modes() -> None:
    """93 % of the mass, and of the data, have many ones: chains from there alone were 10 errors off."""
    model, theta, law, log_z = _equal_couplings(30, 0.3, 0.3)
    assert 0.9 < law[16:].sum() < 0.95
    rng, away = np.random.default_rng(5), []
    obs = un.iid(_draws_of(law, 300, rng))
    for _ in range(5):
        found, error = annealed_log_z(ParametricDensity(model, theta), obs, np.zeros(1, dtype=int), rng)
        assert error[0] < 0.15
        away.append((found[0] - log_z) / error[0])
    assert np.abs(away).max() < 4
    assert 0.2 < np.std(away) < 2.5


def test_modes_have_their_shares_in_draws() -> None:
    model, theta, law, _ = _equal_couplings(30, 0.3, 0.3)
    y = np.column_stack(list(un.simulate(model, theta, 1000, rng=3).values()))
    assert abs((y.sum(axis=1) > 15).mean() - law[16:].sum()) < 0.04


def test_modes_that_differ_in_no_number_of_ones() -> None:
    """Two patterns of 20 ones in 40 and their complements: a basin each, but unequal masses."""
    rng, d = np.random.default_rng(5), 40
    xi = np.where(np.stack([rng.permutation(d) for _ in range(2)]) < d // 2, 1.0, -1.0)
    J = 4 * xi.T @ (np.array([[3.0], [2.9]]) * xi) / d
    np.fill_diagonal(J, 0.0)
    model = un.Ising(d)
    theta = model.from_parts(-J.sum(axis=1) / 2, J)
    spins = 2 * np.column_stack(list(un.simulate(model, theta, 600, rng=1).values())) - 1
    first = np.argmax(np.abs(spins @ xi.T), axis=1) == 0
    assert 0.80 < first.mean() < 0.93  # by 4,000 annealed chains of 3,000 temperatures: .865


@pytest.mark.parametrize("n", [10, 100])
def test_draws_that_depend_on_their_start_are_noticed(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where annealing is too slow or too uneven; ten draws as well as a hundred."""
    monkeypatch.setattr(gibbs_draws_module, "EFFECTIVE", np.inf)
    model, theta, _, _ = _equal_couplings(60, 1.0, 0.0)
    with pytest.warns(UnnormWarning, match="not forgotten where they started"):
        un.simulate(model, theta, n, rng=1)
    model = un.Ising(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        un.simulate(model, np.zeros(model.size), 100, rng=1)
