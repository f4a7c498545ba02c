"""Pseudo-likelihood and Monte Carlo maximum likelihood of graphs, against enumeration and logistic regression."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, EstimationError, InputError, NoEstimateError, UnnormError, UnnormWarning
from unnorm.objectives import pseudo

OMEGA = un.Graphs(5)
NODES = {"g": [0, 0, 1, 1, 1]}


def graph(*ties: tuple[int, int], n: int = 5, directed: bool = False) -> np.ndarray:
    A = np.zeros((n, n))
    for i, j in ties:
        A[i, j] = 1
        if not directed:
            A[j, i] = 1
    return A


SPARSE = graph((0, 1), (1, 2), (0, 2), (3, 4))  # whose triangle separates the pseudo-likelihood, not the likelihood
MIXED = graph((0, 1), (1, 2), (0, 2), (3, 4), (2, 3), (1, 4))
DENSER = graph((0, 1), (2, 3), (1, 3), (0, 4), (1, 2), (0, 2))
SEVERAL = np.stack([SPARSE, DENSER, graph((0, 3), (1, 4)), graph((0, 1), (2, 4), (3, 4), (2, 3))])


def close(mc: un.Fit, exact: un.Fit) -> None:
    """Within four Monte Carlo errors, with the errors of the likelihood."""
    assert mc.errors is not None
    error = np.sqrt(np.diag(mc.errors.reference))
    assert np.all(np.abs(mc.estimate - exact.estimate) < 4 * error)
    assert np.all(error < 0.05 * exact.se)
    np.testing.assert_allclose(np.sqrt(np.diag(mc.errors.sampling)), exact.se, rtol=0.06)
    assert abs(mc.loglik - exact.loglik) < 4 * mc.diagnostics["loglik_se"] + 1e-3


@pytest.mark.parametrize("seed", [1, 2])
def test_one_graph_against_enumeration(seed: int) -> None:
    model = un.GraphStatistics("edges + triangle", OMEGA)
    obs = un.networks(SPARSE, OMEGA)
    mc = un.fit(model, obs, un.MonteCarloML(draws=20_000), rng=seed)
    close(mc, un.fit(model, obs))
    assert mc.assumes_model
    assert mc.is_likelihood


def test_a_directed_graph_against_enumeration() -> None:
    omega = un.Graphs(4, directed=True)
    A = graph((0, 1), (1, 0), (1, 2), (2, 3), (0, 2), n=4, directed=True)
    model = un.GraphStatistics("edges + mutual + gwesp(0.5)", omega)
    obs = un.networks(A, omega)
    close(un.fit(model, obs, un.MonteCarloML(draws=30_000), rng=3), un.fit(model, obs))


def test_a_sequence_against_enumeration() -> None:
    model = un.GraphStatistics("edges + gwesp(0.25) + memory", OMEGA)
    obs = un.networks(SEVERAL, OMEGA)
    close(un.fit(model, obs, un.MonteCarloML(draws=20_000), rng=4), un.fit(model, obs))


def test_independent_graphs_with_covariates_in_time() -> None:
    D = np.random.default_rng(0).normal(size=(4, 5, 5))
    model = un.GraphStatistics("edges + edgecov(d)", OMEGA, dyads={"d": D + np.swapaxes(D, 1, 2)})
    obs = un.networks(SEVERAL, OMEGA, sequence=False)
    exact = un.fit(model, obs)
    close(un.fit(model, obs, un.MonteCarloML(draws=20_000), rng=5), exact)
    # no statistic depends on other ties: the pseudo-likelihood is the likelihood, and its Godambe matrix Fisher's
    pl = un.fit(model, obs, un.PseudoLikelihood(draws=4000), rng=6)
    np.testing.assert_allclose(pl.estimate, exact.estimate, atol=1e-8)
    np.testing.assert_allclose(pl.se, exact.se, rtol=0.07)


def test_structural_zeros_against_enumeration() -> None:
    mask = np.zeros((5, 5), dtype=bool)
    mask[2, 4] = mask[4, 2] = mask[0, 3] = mask[3, 0] = mask[1, 4] = mask[4, 1] = True
    omega = un.Graphs(5, fixed=mask)
    model = un.GraphStatistics("edges + triangle", omega)
    obs = un.networks(SPARSE, omega)
    exact = un.fit(model, obs)
    free = un.fit(un.GraphStatistics("edges + triangle", OMEGA), un.networks(SPARSE, OMEGA))
    assert abs(exact.estimate[0] - free.estimate[0]) > 0.05
    close(un.fit(model, obs, un.MonteCarloML(draws=20_000), rng=7), exact)


def test_absent_actors_are_structural_zeros_of_their_wave() -> None:
    present = np.ones((1, 5), dtype=bool)
    present[0, 4] = False
    A = graph((0, 1), (1, 2), (0, 2))
    mask = np.zeros((5, 5), dtype=bool)
    mask[4] = mask[:, 4] = True
    np.fill_diagonal(mask, False)
    fixed = un.Graphs(5, fixed=mask)
    exact = un.fit(un.GraphStatistics("edges + kstar(2)", fixed), un.networks(A, fixed))
    obs = un.networks(A, OMEGA, present=present)
    model = un.GraphStatistics("edges + kstar(2)", OMEGA)
    mc = un.fit(model, obs, un.MonteCarloML(draws=20_000), rng=8)
    close(mc, exact)
    assert any("4 of 10 dyads are fixed" in note for note in mc.notes)
    with pytest.raises(CombinationError, match="Exact cannot leave out bits"):
        un.fit(model, obs)


def test_missing_ties_against_a_sum_over_what_they_can_be() -> None:
    """ℓ(θ) = log Σ over the two states of a missing tie, maximised on a grid of Newton steps by hand."""
    model = un.GraphStatistics("edges + triangle", OMEGA)
    A = SPARSE.copy()
    A[1, 3] = A[3, 1] = np.nan
    obs = un.networks(A, OMEGA, missing="skip")
    rule = OMEGA.quadrature().points
    S = model.statistics_at(rule, ())
    both = np.stack([np.nan_to_num(A, nan=value) for value in (0.0, 1.0)])
    B = model.statistics_at(OMEGA.edges_from_adjacency(both), ())
    theta = np.zeros(2)
    for _ in range(200):
        p, q = (np.exp(s @ theta - np.max(s @ theta)) for s in (S, B))
        p, q = p / p.sum(), q / q.sum()
        theta = theta + np.linalg.solve(np.cov(S.T, aweights=p, ddof=0) + 1e-9 * np.eye(2), q @ B - p @ S)
    information = np.cov(S.T, aweights=p, ddof=0) - np.cov(B.T, aweights=q, ddof=0)
    mc = un.fit(model, obs, un.MonteCarloML(draws=40_000), rng=9)
    assert mc.errors is not None
    error = np.sqrt(np.diag(mc.errors.reference))
    assert np.all(np.abs(mc.estimate - theta) < 4 * error)
    np.testing.assert_allclose(
        np.sqrt(np.diag(mc.errors.sampling)), np.sqrt(np.diag(np.linalg.inv(information))), rtol=0.06
    )
    value = np.log(np.exp(B @ theta).sum()) - np.log(np.exp(S @ theta).sum())
    assert abs(mc.loglik - value) < 4 * mc.diagnostics["loglik_se"] + 1e-3


def test_pseudo_likelihood_is_a_logistic_regression_on_change_statistics() -> None:
    omega = un.Graphs(12, directed=True)
    rng = np.random.default_rng(4)
    A = (rng.random((3, 12, 12)) < 0.3) & ~np.eye(12, dtype=bool)
    model = un.GraphStatistics("edges + mutual + gwesp(0.5) + gwidegree(1) + memory + delrecip", omega)
    obs = un.networks(A * 1.0, omega)
    at = np.arange(2)
    X = model.changes(obs.outcome, model.arguments(obs, at)) * (1 - 2 * obs.outcome)[:, :, None]
    X, y = X.reshape(-1, model.size), obs.outcome.ravel()
    beta = np.zeros(model.size)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ beta))
        beta = beta + np.linalg.solve((X.T * (p * (1 - p))) @ X, X.T @ (y - p))
    for objective in (un.PseudoLikelihood(), un.ConditionalNCE(un.BitFlip(every=True))):
        with pytest.warns() if objective.name == "ConditionalNCE" else _nothing():
            fit = un.fit(model, obs, objective, rng=1)
        np.testing.assert_allclose(fit.estimate, beta, atol=1e-8)


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_missing_and_unseen_ties_are_left_out_of_the_pseudo_likelihood() -> None:
    """Logistic regression on the rows that remain: neither missing now, nor missing or absent before."""
    omega = un.Graphs(6, directed=True)
    rng = np.random.default_rng(5)
    A = ((rng.random((3, 6, 6)) < 0.35) & ~np.eye(6, dtype=bool)) * 1.0
    A[1, 0, 2], A[2, 3, 1] = np.nan, np.nan
    present = np.ones((3, 6), dtype=bool)
    present[0, 5] = False
    A[0, 5] = A[0, :, 5] = 0
    model = un.GraphStatistics("edges + delrecip + mutual", omega)
    obs = un.networks(A, omega, present=present, missing="skip")
    rows, y = [], []
    full = np.nan_to_num(A)
    for t in (1, 2):
        for i, j in omega.pairs:
            known = not np.isnan(A[t, i, j]) and not np.isnan(A[t - 1, j, i])
            if known and present[t - 1, [i, j]].all() and present[t, [i, j]].all():
                rows.append([1, full[t - 1, j, i], full[t, j, i]])
                y.append(A[t, i, j])
    X, beta = np.array(rows), np.zeros(3)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ beta))
        beta = beta + np.linalg.solve((X.T * (p * (1 - p))) @ X, X.T @ (np.array(y) - p))
    fit = un.fit(model, obs, un.PseudoLikelihood(draws=200), rng=1)
    np.testing.assert_allclose(fit.estimate, beta, atol=1e-8)
    assert any("2 of 60 ties are missing" in note for note in fit.notes)


def test_simulated_godambe_against_enumeration() -> None:
    """H⁻¹ Var(g) H⁻¹ with Var(g) summed over all graphs."""
    model = un.GraphStatistics("edges + gwesp(0.25)", OMEGA)
    obs = un.networks(MIXED, OMEGA)
    fit = un.fit(model, obs, un.PseudoLikelihood(draws=4000), rng=2)
    theta, y = fit.estimate, OMEGA.quadrature().points
    change = model.changes(y, ())
    eta = change @ theta
    g = -np.einsum("ti,tip->tp", 1 / (1 + np.exp(-eta)), change)
    f = model.log_f(theta, y, ())
    p = np.exp(f - f.max())
    p /= p.sum()
    here = model.changes(obs.outcome, ())[0]
    q = 1 / (1 + np.exp(-here @ theta))
    H = (here.T * (q * (1 - q))) @ here
    np.testing.assert_allclose(p @ g, 0, atol=1e-10)
    V = np.linalg.inv(H) @ (g.T @ (p[:, None] * g)) @ np.linalg.inv(H)
    np.testing.assert_allclose(fit.covariance, V, rtol=0.12)
    assert fit.assumes_model
    assert "assume the model" in fit.summary()


def test_one_graph_has_no_errors_from_its_own_score() -> None:
    model = un.GraphStatistics("edges + nodematch(g)", OMEGA, NODES)
    with pytest.warns(match="scores of 1 independent observation are too few"):
        fit = un.fit(model, un.networks(MIXED, OMEGA), un.PseudoLikelihood(errors="scores"))
    assert not fit.has_covariance


def test_degenerate_models_are_named() -> None:
    omega = un.Graphs(30)
    A = graph(*[(3 * k + a, 3 * k + b) for k in range(10) for a, b in ((0, 1), (0, 2), (1, 2))], n=30)
    A[0, 5] = A[5, 0] = A[7, 20] = A[20, 7] = 1
    model = un.GraphStatistics("edges + triangle", omega)
    with pytest.raises(EstimationError, match=r"degenerate near the data.*complete.*gwesp"):
        un.fit(model, un.networks(A, omega), un.MonteCarloML(), rng=1)


@pytest.mark.parametrize("objective", [un.PseudoLikelihood(), un.MonteCarloML()])
def test_estimates_that_do_not_exist(objective: un.PseudoLikelihood | un.MonteCarloML) -> None:
    omega = un.Graphs(6, directed=True)
    A = graph((0, 1), (1, 2), (2, 3), (3, 4), n=6, directed=True)
    with pytest.raises(NoEstimateError, match="mutual"):
        un.fit(un.GraphStatistics("edges + mutual", omega), un.networks(A, omega), objective, rng=1)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (lambda: un.MonteCarloML(draws=5), "draws of MonteCarloML"),
        (lambda: un.MonteCarloML(precision=0.0), r"\(0, 1\]"),
        (lambda: un.PseudoLikelihood(errors="robust"), "'auto', 'scores', 'simulated'"),  # pyright: ignore
    ],
)
def test_bad_settings(bad, match: str) -> None:
    with pytest.raises(InputError, match=match):
        bad()


def test_models_that_cannot_be_simulated() -> None:
    toy = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
    for objective in (un.MonteCarloML(), un.PseudoLikelihood()):
        with pytest.raises(UnnormError, match=r"un\.GraphStatistics"):
            un.fit(toy, un.iid([0.1, 0.2, -0.3]), objective)


def test_pseudo_likelihood_of_a_degenerate_model_says_so() -> None:
    omega = un.Graphs(30)
    A = graph(*[(3 * k + a, 3 * k + b) for k in range(10) for a, b in ((0, 1), (0, 2), (1, 2))], n=30)
    A[0, 5] = A[5, 0] = A[7, 20] = A[20, 7] = A[1, 8] = A[8, 1] = 1
    with pytest.warns(match="has no standard errors") as said:
        fit = un.fit(un.GraphStatistics("edges + triangle", omega), un.networks(A, omega), un.PseudoLikelihood(), rng=1)
    assert len(said) == 1
    assert not fit.has_covariance
    assert [note for note in fit.notes if "standard errors" in note] == [str(said[0].message)]
    with pytest.warns(match="degenerate at its estimate: simulated graphs are all but complete"):
        gof = un.graph_gof(fit, draws=20, rng=2)
    assert gof.notes


def _four_waves() -> tuple[un.GraphStatistics, un.Observations]:
    omega = un.Graphs(9, directed=True)
    A = np.random.default_rng(3).random((5, 9, 9)) < 0.2
    A[:, np.arange(9), np.arange(9)] = False
    return un.GraphStatistics("edges + mutual", omega), un.networks(A.astype(float), omega)


def test_a_degenerate_model_has_no_errors_however_many_graphs_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four graphs and two parameters: scores of the graphs must not stand in for the simulations that were refused."""
    model, obs = _four_waves()
    monkeypatch.setattr(pseudo, "UNLIKE", 1.0)  # as if every draw were unlike the data
    with pytest.warns(UnnormWarning, match="degenerate at the estimate"):
        fit = un.fit(model, obs, un.PseudoLikelihood(draws=40), rng=1)
    assert fit.errors is None
    assert any("degenerate at the estimate" in note for note in fit.notes)


def test_chains_that_leave_the_data_are_not_counted() -> None:
    """Two contexts of 60 bits: one chain stays, the other is complete at the twelfth round, and from ten rounds before
    that it does not count, nor do its draws after it."""
    free = np.ones((2, 60), dtype=bool)
    squares = pseudo.SquaresNearData(2, 1, 0.3, free)
    near, full = np.tile([1.0, 0.0, 0.0], 20), np.ones(60)
    for r in range(20):
        squares.add(np.stack([near, full if r >= 11 else near]), np.array([[2.0], [3.0 if r < 2 else 100.0]]))
    for _ in range(squares.lag):
        squares.add(np.stack([near, full]), None)
    assert squares.lost.tolist() == [False, True]
    assert squares.kept.tolist() == [20.0, 1.0]
    assert squares.total()[0, 0] == pytest.approx((20 * 4.0 + 9.0) * 2 / 21)
    assert squares.share == pytest.approx(19 / 60)
    assert squares.density == 1.0
    assert pseudo.unlike_data(np.array([0.0, 0.01, 0.3, 0.9, 1.0]), 0.3).tolist() == [True, True, False, False, True]
    few = pseudo.SquaresNearData(1, 1, 0.3, np.ones((1, 10), dtype=bool))
    few.add(np.ones((1, 10)), np.ones((1, 1)))
    assert not few.lost.any()  # ten bits may all be one by chance


def test_goodness_of_fit_of_a_model_that_fits() -> None:
    """From its own law, counts lie within the simulations; triads sum to n choose 3, distances to n (n − 1)."""
    omega = un.Graphs(15, directed=True)
    model = un.GraphStatistics("edges + mutual", omega)
    y = model.sampler(np.array([-2.0, 3.0]), ()).sweep(np.zeros((1, omega.dim)), 200, np.random.default_rng(1))
    fit = un.fit(model, un.networks(omega.adjacency(y[0]), omega), un.MonteCarloML(draws=1000, loglik=False), rng=2)
    gof = un.graph_gof(fit, draws=200, rng=3)
    assert gof["triads"].observed.sum() == 15 * 14 * 13 // 6
    assert np.all(gof["triads"].simulated.sum(axis=1) == 15 * 14 * 13 // 6)
    assert gof["distance"].observed.sum() == 15 * 14
    assert gof["outdegree"].observed.sum() == 15
    assert gof["shared partners"].observed.sum() == y.sum()
    assert np.all(np.abs(gof["statistics"].simulated.mean(axis=0) - gof["statistics"].observed) < 2.5)
    assert all(one.overall > 0.01 for one in gof.parts.values())
    assert "outdegree" in gof.summary()
    wrong = un.fit(un.GraphStatistics("edges", omega), un.networks(omega.adjacency(y[0]), omega), un.PseudoLikelihood())
    assert un.graph_gof(wrong, draws=200, rng=3)["triads"].p.min() < 0.05


def test_goodness_of_fit_is_drawn() -> None:
    import matplotlib.pyplot as plt

    fit = un.fit(un.GraphStatistics("edges", OMEGA), un.networks(SPARSE, OMEGA))
    figure, axes = un.graph_gof(fit, draws=20, rng=1).plot()
    assert axes.size >= 5
    plt.close(figure)


def test_monte_carlo_errors_by_batch_means() -> None:
    """Of independent draws Σ_t w_t² Cov/M; of a chain with correlation ρ, (1 + ρ)/(1 − ρ) times as much."""
    from unnorm.objectives.simulations import Draws

    rng, n, M, rho = np.random.default_rng(1), 300, 400, 0.5
    L = np.array([[1.0, 0.0], [0.7, 0.5]])
    noise = rng.normal(size=(n, M, 2)) @ L.T
    chain = np.zeros_like(noise)
    chain[:, 0] = noise[:, 0]
    for m in range(1, M):
        chain[:, m] = rho * chain[:, m - 1] + np.sqrt(1 - rho**2) * noise[:, m]
    weight = rng.integers(1, 4, n).astype(float)
    expected = float(weight @ weight) * (L @ L.T) / M
    for draws, times in ((noise, 1.0), (chain, (1 + rho) / (1 - rho))):
        mean = draws.mean(axis=1)
        found = Draws(np.zeros(2), mean, draws - mean[:, None], mean, weight).error(np.zeros(2))
        np.testing.assert_allclose(found, times * expected, rtol=0.1)


def test_gradient_and_curvature_of_importance_sampled_constants() -> None:
    """Σ_t w_t log mean exp δᵀ(s − s̄), by finite differences away from δ = 0, where the mean is not zero."""
    from unnorm.objectives.simulations import Draws

    rng = np.random.default_rng(2)
    draws = rng.normal(size=(3, 50, 2))
    mean = draws.mean(axis=1)
    d = Draws(np.zeros(2), mean, draws - mean[:, None], mean, np.array([1.0, 2.0, 3.0]))
    delta, h = np.array([0.8, -0.5]), 1e-5
    _, gradient, hessian = d.tilted(delta)
    for j, step in enumerate(h * np.eye(2)):
        up, down = d.tilted(delta + step), d.tilted(delta - step)
        assert gradient[j] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-6)
        assert hessian[j] == pytest.approx((up[1] - down[1]) / (2 * h), rel=1e-6)
