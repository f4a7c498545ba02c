"""The engine's compiled rows have the likelihood of `objectives.likelihood`, to its third derivative."""

import numpy as np
import pytest

from unnorm.engine.core import build_design
from unnorm.engine.families import FAMILIES
from unnorm.engine.likelihood_kernels import weight_of
from unnorm.engine.segment import ResponseRows
from unnorm.objectives.likelihood import LOGISTIC, POISSON, RowLikelihood
from unnorm.terms.parser import parse

N = 400


def rows(cumulant, rng):
    """η with both ends, y of the family, weights with a zero."""
    eta = np.concatenate([rng.normal(scale=4.0, size=N - 8), [-40.0, 40.0, -40.0, 40.0, -700.0, 0.0, -0.0, 1e-12]])
    if cumulant is POISSON:
        eta = np.minimum(eta, 40.0)
    y = rng.integers(0, 2, N).astype(float) if cumulant is LOGISTIC else rng.poisson(2.0, N).astype(float)
    y[:40] = rng.random(40)  # proportions, or rates
    weights = rng.uniform(0.1, 5.0, N)
    weights[7] = 0.0
    return eta, y, weights


@pytest.mark.parametrize("cumulant", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
def test_slope_curvature_and_third_derivative_of_each_row(cumulant):
    eta, y, weights = rows(cumulant, np.random.default_rng(0))
    slope, curvature = RowLikelihood(cumulant, weights * y, weights).slopes(eta)
    third = weights * cumulant.skew(eta)
    ours = np.array([weight_of(FAMILIES[cumulant.family], None, y[r], eta[r], weights[r])[:3] for r in range(N)])
    np.testing.assert_allclose(ours[:, 0], slope, rtol=1e-12, atol=1e-15 * weights.max())  # y − p cancels at p = y
    np.testing.assert_allclose(ours[:, 1], curvature, rtol=1e-12, atol=1e-300)
    # 1 − 2p cancels at η = 0: there the error is that of p
    np.testing.assert_allclose(ours[:, 2], third, rtol=1e-12, atol=1e-15 * weights.max())


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("cumulant", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
def test_sweep_and_leverage_are_sums_of_them(cumulant, weighted):
    """Through the compiled pass: Σℓ, Xᵀℓ′, Xᵀdiag(−ℓ″)X, and Σ −ℓ‴ h x, for a design with local and plain columns."""
    rng = np.random.default_rng(1)
    eta, y, weights = rows(cumulant, rng)
    eta = eta if cumulant is LOGISTIC else np.minimum(eta, 5.0)  # means of e⁴⁰ beside e⁻⁴⁰ leave no digits in a sum
    weights = weights if weighted else np.ones(N)
    columns = {"x": rng.random(N), "v": rng.normal(size=N)}
    terms = parse("s(x, bs='cr', k=6) + linear(v)").build(columns)
    design = build_design(terms, columns)
    X = np.concatenate([np.ones((N, 1)), *(term.design(columns) for term in terms)], axis=1)
    beta = 0.3 * np.cos(np.arange(X.shape[1]))
    offset = eta - X @ beta
    nothing = np.empty(0)
    given = ResponseRows(
        *(np.ascontiguousarray(design.sort(v)) for v in (y, weights)), np.ascontiguousarray(design.sort(offset))
    )
    given = given if weighted else ResponseRows(given.y, nothing, given.offset)
    total, score, cross = design.sweep(given, FAMILIES[cumulant.family], design.to_flat(beta))
    likelihood = RowLikelihood(cumulant, weights * y, weights)
    slope, curvature = likelihood.slopes(eta)
    assert total == pytest.approx(likelihood.value(eta), rel=1e-10)
    np.testing.assert_allclose(design.to_user(score), X.T @ slope, rtol=1e-9, atol=1e-9 * np.abs(slope).max())
    H = X.T @ (curvature[:, None] * X)
    dense = design.to_user(design.to_user(cross.dense()).T).T
    np.testing.assert_allclose(dense, H, rtol=1e-9, atol=1e-10 * np.abs(H).max())
    P = np.linalg.inv(H + np.eye(len(H)))
    flat = design.to_flat(design.to_flat(P).T).T
    tilt = design.leverage(given, FAMILIES[cumulant.family], design.to_flat(beta), lambda level: flat)
    h = np.einsum("ij,jk,ik->i", X, P, X)
    expected = X.T @ (weights * cumulant.skew(eta) * h)
    np.testing.assert_allclose(design.to_user(tilt), expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
