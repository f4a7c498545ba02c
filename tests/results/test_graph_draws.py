"""Simulated and held-out graphs, beyond enumeration and against it."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.results.density import ParametricDensity
from unnorm.results.gibbs_draws import annealed_log_z, gibbs_draws


@pytest.mark.parametrize("directed", [False, True])
def test_toggles_have_the_model_as_their_law(directed: bool) -> None:
    """χ² of 20,000 graphs against enumeration, structural zeros among them."""
    mask = np.zeros((4, 4), dtype=bool)
    mask[0, 3] = mask[3, 0] = True
    if directed:
        mask[1] = mask[:, 0] = True
        np.fill_diagonal(mask, False)
    omega = un.Graphs(4, directed, fixed=mask)
    formula = "edges + mutual + gwesp(0.5) + odegree(1)" if directed else "edges + gwesp(0.5) + kstar(2)"
    model = un.GraphStatistics(formula, omega)
    theta = np.array([-0.6, 0.8, 0.5, -0.4]) if directed else np.array([0.4, 0.5, -0.3])
    states, rng = omega.quadrature().points, np.random.default_rng(2)
    f = model.log_f(theta, states, ())
    p = np.exp(f - f.max())
    p /= p.sum()
    chain = model.wave(states[-1], (), 0)
    drawn = chain.sample(theta, omega.free, (500, 25), 20_000, rng, keep=True)
    codes = drawn.kept @ 2 ** np.arange(omega.free.sum())[::-1]
    count = np.bincount(codes, minlength=len(p))
    chi2 = float(np.sum((count - 20_000 * p) ** 2 / (20_000 * p)))
    assert chi2 < len(p) + 6 * np.sqrt(2 * len(p))
    full = np.zeros((20_000, omega.dim))
    full[:, omega.free] = drawn.kept
    np.testing.assert_allclose(drawn.statistics, model.statistics_at(full, ()), atol=1e-8)


def test_a_sweep_leaves_held_ties_alone() -> None:
    omega = un.Graphs(6)
    model = un.GraphStatistics("edges", omega)
    y = omega.uniform(3, rng=1)
    free = np.random.default_rng(2).random(y.shape) < 0.5
    after = model.sampler(np.array([0.3]), ()).sweep(y, 50, np.random.default_rng(3), free)
    np.testing.assert_array_equal(after[~free], y[~free])
    assert np.any(after[free] != y[free])


def test_annealing_gives_the_constant() -> None:
    mask = np.zeros((5, 5), dtype=bool)
    mask[0, 4] = mask[4, 0] = True
    omega = un.Graphs(5, fixed=mask)
    model = un.GraphStatistics("edges + triangle", omega)
    theta = np.array([-0.5, 0.4])
    density = ParametricDensity(model, theta)
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 0] = A[2, 3] = A[3, 2] = 1
    obs = un.networks(A, omega)
    log_z, error = annealed_log_z(density, obs, np.zeros(1, dtype=np.intp), np.random.default_rng(1))
    f = model.log_f(theta, omega.quadrature().points, ())
    assert abs(log_z[0] - np.log(np.exp(f).sum())) < 4 * error[0]
    assert error[0] < 0.05
    y, doubt = gibbs_draws(density, obs.take(np.zeros(400, dtype=int)), np.random.default_rng(2))
    assert doubt is None
    assert omega.contains(y).all()


def test_a_fit_simulates_sequences_and_single_graphs() -> None:
    omega = un.Graphs(12, directed=True)
    model, theta = un.GraphStatistics("edges + mutual + memory", omega), np.array([-1.2, 0.8, 1.0])
    rng = np.random.default_rng(4)
    y = [(rng.random(omega.dim) < 0.2).astype(float)]
    for _ in range(15):
        y.append(model.sampler(theta, ({"before": y[-1][None]},)).sweep(y[-1][None], 40, rng)[0])
    fit = un.fit(model, un.networks(omega.adjacency(np.array(y)), omega), un.PseudoLikelihood(draws=100), rng=5)
    table = fit.simulate(4, chains=2, rng=6)
    ties = np.stack([table[name] for name in table if name.startswith("tie_")], axis=1)
    assert ties.shape == (10, omega.dim)
    assert omega.contains(ties).all()
    assert 0.05 < ties[1:5].mean() < 0.45
    one = un.GraphStatistics("edges + mutual", omega)
    single = un.fit(one, un.networks(omega.adjacency(y[-1]), omega), un.MonteCarloML(draws=500, loglik=False), rng=7)
    drawn = single.simulate(60, rng=8)
    edges = np.stack(list(drawn.values()), axis=1).sum(axis=1)
    assert abs(edges.mean() - y[-1].sum()) < 5 * edges.std() / np.sqrt(60) + 1
    assert "log-likelihood not computed" in single.summary()
