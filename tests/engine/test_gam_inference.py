"""Tails, tests, covariances and checks against closed forms, quadrature and finite differences."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, linalg, stats

import unnorm as un
from unnorm.engine import checks, inference


@pytest.mark.parametrize("q", [1e-4, 0.3, 2.0, 9.0, 60.0, 400.0])
@pytest.mark.parametrize("df", [1, 2, 5])
def test_the_mixture_tail_is_chi_square_where_the_weights_agree(q, df):
    nearly = 2.0 * (1.0 + 1e-11 * np.arange(df + 1))[1:]
    assert inference.mixture_tail(q, nearly) == pytest.approx(stats.chi2.sf(q / 2.0, df), rel=1e-7)
    split = inference.mixture_tail(q, np.array([1.0, 1.0 + 1e-9]), np.array([df, 3.0]))
    assert split == pytest.approx(stats.chi2.sf(q, df + 3), rel=1e-6)


@pytest.mark.parametrize("T", [0.05, 2.0, 15.0, 90.0])
@pytest.mark.parametrize("df", [4, 60, 5000])
def test_the_mixture_tail_is_f_where_the_scale_is_estimated(T, df):
    weights = np.append(np.ones(3), -T / df)
    got = inference.mixture_tail(0.0, weights, np.append(np.ones(3), df))
    assert got == pytest.approx(stats.f.sf(T / 3.0, 3, df), rel=1e-7)


@pytest.mark.parametrize("q", [0.2, 1.0, 3.0, 8.0])
def test_the_mixture_tail_is_imhofs_integral(q):
    lam = np.array([1.0, 0.7, 0.3, 0.05, 0.4])

    def integrand(u):  # Imhof (1961), equation 3.2
        angle = 0.5 * np.sum(np.arctan(lam * u)) - 0.5 * q * u
        return np.sin(angle) / (u * np.prod((1.0 + (lam * u) ** 2) ** 0.25))

    edges = np.concatenate([[0.0], np.geomspace(0.5, 3000.0, 400)])
    pieces = [integrate.quad(integrand, a, b, limit=500, epsabs=1e-10)[0] for a, b in pairwise(edges)]
    assert inference.mixture_tail(q, lam) == pytest.approx(0.5 + sum(pieces) / np.pi, abs=2e-6)


def test_the_mixture_tail_at_its_edges():
    assert inference.mixture_tail(0.0, np.array([1.0, 0.2])) == 1.0
    assert inference.mixture_tail(3.0, np.array([-1.0, -0.2])) == 0.0
    assert inference.mixture_tail(3.0, np.array([0.0])) == 0.0
    # a weight that hardly counts changes hardly anything
    assert inference.mixture_tail(3.0, np.array([1.0, 1e-12])) == pytest.approx(stats.chi2.sf(3.0, 1), rel=1e-6)


def problem(rng, p=7, phi=1.7):
    X = rng.standard_normal((200, p))
    X[:, 0] = 1.0
    D = np.diff(np.eye(p - 1), axis=0)
    E = np.eye(p - 1)
    return X.T @ X, [(1, D.T @ D), (1, 0.1 * E)], np.array([3.0, 8.0]), rng.standard_normal(p), phi


def penalised(A, blocks, lam):
    H = A.copy()
    for k, (start, S) in enumerate(blocks):
        H[start : start + S.shape[0], start : start + S.shape[0]] += lam[k] * S
    return H


def test_unconditional_covariance_is_the_law_of_total_variance_by_finite_differences():
    rng = np.random.default_rng(2)
    A, blocks, lam, target, phi = problem(rng)
    Xz = A @ target
    hessian = np.array([[1.3, 0.2, 0.1], [0.2, 0.8, -0.3], [0.1, -0.3, 40.0]])  # the last: log φ
    H = penalised(A, blocks, lam)
    beta = linalg.solve(H, Xz)
    got = inference.unconditional(H, A, blocks, lam, beta, phi, hessian, np.full(7, 9.0))

    def at(rho):
        H = penalised(A, blocks, np.exp(rho))
        return linalg.solve(H, Xz), linalg.inv(linalg.cholesky(H))

    J, dP, step = [], [], 1e-5
    for k in range(2):
        up, down = np.log(lam), np.log(lam)
        up[k] += step
        down[k] -= step
        (b1, P1), (b0, P0) = at(up), at(down)
        J.append((b1 - b0) / (2 * step))
        dP.append((P1 - P0) / (2 * step))
    J = np.array(J).T
    V_rho = linalg.inv(hessian)[:2, :2]
    V_prior = linalg.inv(hessian + 0.1 * np.eye(3))[:2, :2]
    second = sum(V_prior[k, j] * dP[k] @ dP[j].T for k in range(2) for j in range(2))
    expected = phi * linalg.inv(H) + J @ V_rho @ J.T + phi * second
    np.testing.assert_allclose(got.covariance, expected, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(got.edf2.sum(), np.trace(expected @ A) / phi, rtol=1e-6)
    np.testing.assert_allclose(got.rho_covariance, V_prior, rtol=1e-10)
    capped = inference.unconditional(H, A, blocks, lam, beta, phi, hessian, np.full(7, 0.5))
    assert capped.edf2.sum() == pytest.approx(3.5)


def test_a_smooth_of_whole_rank_is_tested_as_a_wald_test():
    rng = np.random.default_rng(3)
    A, _, _, beta, _ = problem(rng)
    V = linalg.inv(A)
    smooth = inference.smooth_test(0.1 * beta, A, V, 7.0, None)
    wald = inference.wald_test(0.1 * beta, V, None)
    assert smooth.statistic == pytest.approx(wald.statistic)
    assert smooth.p == pytest.approx(wald.p, rel=1e-8)
    assert inference.wald_test(0.1 * beta, V, 50.0).p == pytest.approx(stats.f.sf(wald.statistic / 7, 7, 50), rel=1e-8)


@pytest.mark.parametrize("edf1", [1.3, 2.5, 4.9])
def test_a_smooth_of_fractional_rank_is_tested_as_wood_writes_it(edf1):
    """V_f^{r−} = U diag(1/λ_1 … 1/λ_{k−1}, B) Uᵀ with k = ⌊r⌋, ν = r − k, B = Λ [[1, ρ], [ρ, ν]] Λ, ρ² = ν(1 − ν)/2 and
    Λ = diag(λ_k, λ_{k+1})^{−½} (Wood 2013, section 2.3); the law of T from the eigenvalues of V_f^{r−} V_f."""
    rng = np.random.default_rng(8)
    A, _, _, beta, _ = problem(rng)
    beta = 0.08 * beta
    V = linalg.inv(A + np.diag(np.arange(7.0) ** 3))
    got = inference.smooth_test(beta, A, V, edf1, None)
    R = linalg.cholesky(A)
    value, U = np.linalg.eigh(R @ V @ R.T)
    value, U = value[::-1], U[:, ::-1]
    k, nu = int(edf1), edf1 - int(edf1)
    rho = np.sqrt(nu * (1 - nu) / 2)
    found = {}
    for sign in (1.0, -1.0):  # of the arbitrary direction of one eigenvector
        D = np.diag(np.where(np.arange(7) < k - 1, 1 / value, 0.0))
        scale = np.diag(value[k - 1 : k + 1] ** -0.5)
        D[k - 1 : k + 1, k - 1 : k + 1] = scale @ np.array([[1.0, sign * rho], [sign * rho, nu]]) @ scale
        P = U @ D @ U.T
        T = float(R @ beta @ P @ R @ beta)
        weights = np.linalg.eigvals(P @ R @ V @ R.T).real
        found[T] = inference.mixture_tail(T, np.where(np.abs(weights) > 1e-8, weights, 0.0))
    assert min(abs(got.statistic - T) for T in found) < 1e-8 * got.statistic
    assert got.p == pytest.approx(np.mean(list(found.values())), rel=1e-6)
    assert 1e-4 < got.p < 0.9
    assert got.df == edf1


@pytest.mark.slow
@pytest.mark.parametrize("lam", [1e-5, 0.02])
def test_p_values_of_smooth_terms_do_not_reject_too_often_under_the_null(lam):
    rng = np.random.default_rng(4)
    x = np.linspace(0.0, 1.0, 150)
    X = np.column_stack([np.cos(np.pi * k * x) for k in range(1, 10)])
    A = X.T @ X
    V = linalg.inv(A + lam * np.diag(np.arange(1, 10) ** 4.0))
    F = V @ A
    edf1 = np.trace(2 * F - F @ F)
    p = [inference.smooth_test(V @ X.T @ rng.standard_normal(150), A, V, edf1, None).p for _ in range(1500)]
    rate = np.mean(np.array(p) < 0.05)
    assert rate < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)
    if lam < 1e-3:  # hardly penalised: the Bayesian covariance is the sampling covariance, and p is uniform
        assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_a_random_effect_without_others_is_tested_on_its_own_posterior():
    rng = np.random.default_rng(5)
    A, _, _, beta, phi = problem(rng)
    S = np.zeros((7, 7))
    S[2:, 2:] = 30.0 * np.eye(5)
    H_inv = linalg.inv(A + S)
    index, none = np.arange(2, 7), np.empty(0, dtype=int)
    got = inference.random_test(index, beta, inference.Curvature(A, S, H_inv, phi), none, None)
    M = linalg.inv(H_inv[2:, 2:])
    assert got.statistic == pytest.approx(beta[2:] @ M @ beta[2:] / phi)
    weights = np.linalg.eigvals(M @ (H_inv @ A @ H_inv)[2:, 2:]).real
    assert got.p == pytest.approx(inference.mixture_tail(got.statistic, weights), rel=1e-8)
    assert got.df == 5.0


def test_other_random_effects_are_integrated_out():
    """Their variance is part of C and of V_e, as Wood (2013) has it."""
    rng = np.random.default_rng(6)
    A, _, _, beta, phi = problem(rng)
    A, beta = A / 20.0, beta / 10.0  # rows and penalties weigh about the same
    S = np.diag([0.0, 0.0, 30.0, 30.0, 5.0, 5.0, 5.0])
    H_inv = linalg.inv(A + S)
    own, others = np.array([2, 3]), np.array([4, 5, 6])
    got = inference.random_test(own, beta, inference.Curvature(A, S, H_inv, phi), others, None)
    C = A + A[:, others] @ A[others] / 5.0
    first = np.arange(4)
    M = linalg.inv(linalg.inv((C + S)[np.ix_(first, first)])[np.ix_(own, own)])
    weights = np.linalg.eigvals(M @ (H_inv @ C @ H_inv)[np.ix_(own, own)]).real
    assert got.statistic == pytest.approx(beta[own] @ M @ beta[own] / phi)
    assert got.p == pytest.approx(inference.mixture_tail(got.statistic, weights), rel=1e-8, abs=0.0)
    assert 1e-4 < got.p < 0.9


def test_simultaneous_bands_hold_for_all_points_at_once():
    independent = inference.simultaneous_multiplier(
        np.eye(8), np.diag(np.arange(1.0, 9.0)), 0.9, np.random.default_rng(1)
    )
    assert independent == pytest.approx(stats.norm.ppf(0.5 * (1.0 + 0.9 ** (1 / 8))), abs=0.04)
    together = inference.simultaneous_multiplier(np.ones((8, 1)), np.eye(1), 0.9, np.random.default_rng(1))
    assert together == pytest.approx(stats.norm.ppf(0.95), abs=0.04)


def test_concurvity_is_the_share_that_the_other_columns_explain():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 7)) @ rng.standard_normal((7, 7))
    beta = rng.standard_normal(7)
    spans = {"a": slice(0, 2), "b": slice(2, 5), "c": slice(5, 7)}
    for row in checks.concurvity(X.T @ X, beta, spans):
        j = np.arange(7)[spans[row.label]]
        Xi, Xj = np.delete(X, j, axis=1), X[:, j]
        explained = Xi @ np.linalg.lstsq(Xi, Xj, rcond=None)[0]
        assert row.observed == pytest.approx(np.sum((explained @ beta[j]) ** 2) / np.sum((Xj @ beta[j]) ** 2), rel=1e-6)
        assert row.estimate == pytest.approx(np.sum(explained**2) / np.sum(Xj**2), rel=1e-6)
        q1, q2 = np.linalg.qr(Xi)[0], np.linalg.qr(Xj)[0]
        assert row.worst == pytest.approx(np.linalg.svd(q1.T @ q2)[1][0] ** 2, rel=1e-6)
    X[:, 6] = X[:, 0] + X[:, 2]
    assert checks.concurvity(X.T @ X, beta, spans)[2].worst == pytest.approx(1.0)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_k_index_finds_a_pattern_and_nothing_else(dim):
    rng = np.random.default_rng(7)
    x = [rng.random(800) for _ in range(dim)]
    noise = rng.standard_normal(800)
    index, p = checks.k_index(noise, x, rng)
    assert 0.9 < index < 1.1
    assert p > 0.02
    index, p = checks.k_index(noise + 2.0 * np.sin(12 * x[0]), x, rng)
    assert index < 0.7
    assert p == 0.0


@pytest.mark.parametrize("dim", [1, 2])
def test_the_k_index_of_whole_numbers_among_others(dim):
    """Data on a grid, reference points that are not: residuals of one sign lie side by side, and are no pattern."""
    rng = np.random.default_rng(8)
    data, points = rng.integers(0, 20, (400, dim)), rng.uniform(-0.5, 19.5, (400, dim))
    x = list(np.concatenate([data, points]).T)
    r = np.repeat([1.0, -1.0], 400)
    index, p = checks.k_index(r, x, rng, spread=True)
    assert 0.9 < index < 1.1
    assert p > 0.02
    index, p = checks.k_index(r + 2.0 * np.sin(0.6 * x[0]), x, rng, spread=True)
    assert index < 0.7
    assert p == 0.0


def test_repeated_values_are_spread_over_their_cells():
    rng = np.random.default_rng(9)
    x = np.repeat([0.0, 1.0, 5.0], 2000)
    out = checks.untied(x, rng)
    for value, (low, high) in {0.0: (-0.5, 0.5), 1.0: (0.5, 3.0), 5.0: (3.0, 7.0)}.items():
        ends = np.min(out[x == value]), np.max(out[x == value])
        np.testing.assert_allclose(ends, (low, high), atol=0.02 * (high - low))
        assert low <= ends[0] < ends[1] <= high
    some = np.concatenate([[0.5, 0.5, 0.7, 0.7], rng.random(200)])
    np.testing.assert_array_equal(checks.untied(some, rng), some)  # four rows of two hundred
    np.testing.assert_array_equal(checks.untied(np.ones(10), rng), np.ones(10))


def test_a_random_effect_with_directions_that_are_smoothed_away():
    """Where λ of some directions is infinite in effect, H⁻¹ is singular but for rounding (Cholesky's factor does not
    exist); the test is that of the others."""
    rng = np.random.default_rng(4)
    U = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    variance = np.array([1.0, 0.8, 0.5, 0.3, 0.1, 1e-18, -1e-17, 0.0])
    block, V_e, beta = (U * variance) @ U.T, (U * (0.5 * variance)) @ U.T, U[:, :5] @ rng.normal(size=5)
    inside = U[:, :5]
    expected = inference.block_test(inside.T @ beta, inside.T @ block @ inside, inside.T @ V_e @ inside, 1.0, None)
    found = inference.block_test(beta, block, V_e, 1.0, None)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6)
    assert found.df == 5
    assert found.p == pytest.approx(expected.p, rel=1e-6)


def test_tails_of_very_many_weights_are_cheap():
    """10,000 levels and a tail of 10⁻⁵⁰⁰⁰: halving never settled, and its points took 10 GB."""
    weights, points = np.random.default_rng(1).uniform(0.6, 0.9, 10_000), []

    def log_ratio(t):
        points.append(t.size)
        return 1e-6 * np.random.default_rng(t.size).normal(size=t.size) + 0j  # its digits

    assert inference.mixture_tail(35_000.0, weights, None, log_ratio, 1.0) == 0.0
    assert sum(points) < 200
    points.clear()
    mean, sd = weights.sum(), np.sqrt(2 * np.sum(weights**2))
    p = inference.mixture_tail(mean + 3 * sd, weights, None, log_ratio, 1.0)
    assert p == pytest.approx(stats.norm.sf(3), rel=0.2)
    assert sum(points) < 2_000


def test_the_k_index_of_a_product_does_not_depend_on_units():
    """A pattern along x was not seen where x was in thousandths: neighbours were those along z alone."""
    rng = np.random.default_rng(2)
    x, z = rng.random(400), rng.random(400)
    y = np.sin(12 * x) + z + 0.3 * rng.standard_normal(400)
    for unit in (1.0, 1000.0, 1e-6):
        (index,) = un.gam("y ~ te(x, z, k=4)", {"x": x * unit, "z": z, "y": y}).check().basis["k_index"]
        assert index == pytest.approx(0.284, abs=0.01)


def test_less_than_one_residual_degree_of_freedom_counts_as_one():
    for weights in (np.ones(2), np.array([1.0, 0.5])):
        assert inference.tail(3.0, weights, 0.2) == inference.tail(3.0, weights, 1.0)


def test_a_curve_without_variance_in_its_last_direction_is_tested_on_the_others():
    """Of a rank between two and three when only two directions vary: mgcv's takes the two."""
    V = np.diag([2.0, 1.0, 0.0])
    test = inference.smooth_test(np.array([1.0, 2.0, 0.0]), np.eye(3), V, 2.4, None)
    assert test.df == 2.0
    assert test.statistic == pytest.approx(1.0 / 2.0 + 4.0)
    assert test.p == pytest.approx(np.exp(-4.5 / 2))


@pytest.mark.parametrize("apart", [1.0, 1e6, 1e12])
def test_a_wald_test_does_not_depend_on_the_coefficients_units(apart):
    V = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
    beta, units = np.array([1.0, -2.0, 0.5]), np.array([1.0, 1.0 / apart, apart])
    test = inference.wald_test(units * beta, units * V * units[:, None], None)
    assert test.df == 3.0
    assert test.statistic == pytest.approx(beta @ np.linalg.solve(V, beta), rel=1e-6)
    nearly = np.array([[1.0, 0.9999], [0.9999, 1.0]])
    assert inference.wald_test(np.ones(2), nearly, None).df == 2.0


def test_concurvity_where_the_others_are_collinear_and_one_hardly_differs():
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, 400))
    X = np.column_stack([a, a, b, b + 0.01 * c, c + 0.5 * rng.normal(size=400)])
    spans = {"others": slice(0, 4), "one": slice(4, 5)}
    found = {one.label: one for one in checks.concurvity(X.T @ X, np.ones(5), spans)}
    y = X[:, 4]
    left = y - X[:, :4] @ np.linalg.lstsq(X[:, :4], y, rcond=None)[0]
    assert found["one"].observed == pytest.approx(1.0 - left @ left / (y @ y), abs=1e-6)
    assert found["one"].observed > 0.7


def test_rows_that_are_no_numbers_do_not_widen_a_band():
    rng = np.random.default_rng(3)
    C, root = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    apart = np.insert(C, [0, 2, 6], np.nan, axis=0)
    widths = [
        inference.simultaneous_multiplier(rows, root @ root.T, 0.9, np.random.default_rng(1)) for rows in (C, apart)
    ]
    assert widths[0] == widths[1]
