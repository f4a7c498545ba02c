"""Appendix B.1: C_𝓜 = C_𝓛; Appendix A: derivatives in closed form equal autodiff and finite differences."""

import numpy as np
import pytest
from families import Family

import unnorm as un


def test_covariances_are_equal(family: Family) -> None:
    exact = un.fit(family.model, family.obs, objective=un.Exact())
    poisson = un.fit(family.model, family.obs, objective=un.Poisson())
    np.testing.assert_allclose(poisson.covariance, exact.covariance, rtol=1e-6)


def test_covariance_from_the_joint_hessian_inverted_whole(family: Family) -> None:
    """The (θ, θ) block of (−H_𝓜)⁻¹, H_𝓜 assembled dense and inverted as a whole, against C_𝓛."""
    exact = un.fit(family.model, family.obs, objective=un.Exact())
    problem = un.Poisson(family.model.domain.default_order).bind(
        family.model, family.obs, un.Poisson().default_normaliser(family.model, family.obs)
    )
    nu = problem.nu_star(problem.integrals.log_z(exact.estimate))
    d = problem.joint_derivatives(exact.estimate, nu)
    whole = np.block([[d.hessian_theta, d.hessian_cross.T], [d.hessian_cross, np.diag(d.hessian_nu)]])
    p = len(exact.estimate)
    np.testing.assert_allclose(np.linalg.inv(-whole)[:p, :p], exact.covariance, rtol=1e-6)


def test_covariance_against_the_oracles_curvature(family: Family) -> None:
    exact = un.fit(family.model, family.obs)
    h = 1e-3 * exact.se
    p = len(h)
    hessian = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            ei, ej = np.eye(p)[i] * h[i] * 20, np.eye(p)[j] * h[j] * 20
            corners = [family.loglik(exact.estimate + a * ei + b * ej) for a in (1, -1) for b in (1, -1)]
            hessian[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * 400 * h[i] * h[j])
    np.testing.assert_allclose(np.linalg.inv(-hessian), exact.covariance, rtol=2e-3, atol=1e-3 * exact.covariance.max())


@pytest.mark.parametrize("objective", [un.Exact(), un.Poisson()], ids=["exact", "poisson"])
def test_closed_forms_equal_autodiff(family: Family, objective) -> None:
    normaliser = objective.default_normaliser(family.model, family.obs)
    closed = objective.bind(family.model, family.obs, normaliser)
    autodiff = objective.bind(family.energy, family.obs, normaliser)
    theta = family.truth * 0.9
    one, two = closed.derivatives(theta), autodiff.derivatives(theta)
    assert one.value == pytest.approx(two.value, rel=1e-12)
    np.testing.assert_allclose(one.gradient, two.gradient, rtol=1e-9, atol=1e-9 * family.obs.n)
    np.testing.assert_allclose(one.information, two.information, rtol=1e-9, atol=1e-9 * family.obs.n)


def test_gradient_against_the_oracles_finite_differences(family: Family) -> None:
    problem = un.Exact(family.model.domain.default_order).bind(
        family.model, family.obs, un.Exact().default_normaliser(family.model, family.obs)
    )
    theta = family.truth * 0.9
    got = problem.derivatives(theta).gradient
    for j, slope in enumerate(got):
        e = np.eye(len(theta))[j] * 1e-5
        want = (family.loglik(theta + e) - family.loglik(theta - e)) / 2e-5
        assert slope == pytest.approx(want, rel=1e-5, abs=1e-4)


def test_joint_derivatives_of_the_poisson_transform(family: Family) -> None:
    """Appendix A for 𝓜 away from ν*: gradient and Hessian blocks against finite differences of 𝓜(θ, ν)."""
    problem = un.Poisson(family.model.domain.default_order).bind(
        family.model, family.obs, un.Poisson().default_normaliser(family.model, family.obs)
    )
    theta = family.truth * 0.9
    nu = problem.nu_star(problem.integrals.log_z(theta)) + 0.3
    d = problem.joint_derivatives(theta, nu)
    assert d.value == pytest.approx(problem.joint_value(theta, nu), rel=1e-12)
    e = 1e-5
    for j in range(len(theta)):
        step = np.eye(len(theta))[j] * e
        up, down = problem.joint_derivatives(theta + step, nu), problem.joint_derivatives(theta - step, nu)
        assert d.gradient_theta[j] == pytest.approx((up.value - down.value) / (2 * e), rel=1e-5, abs=1e-3)
        np.testing.assert_allclose(
            d.hessian_theta[j], (up.gradient_theta - down.gradient_theta) / (2 * e), rtol=1e-5, atol=1e-4
        )
        np.testing.assert_allclose(
            d.hessian_cross[:, j], (up.gradient_nu - down.gradient_nu) / (2 * e), rtol=1e-5, atol=1e-4
        )
    step = np.zeros_like(nu)
    step[0] = e
    up, down = problem.joint_derivatives(theta, nu + step), problem.joint_derivatives(theta, nu - step)
    assert d.gradient_nu[0] == pytest.approx((up.value - down.value) / (2 * e), rel=1e-5, abs=1e-4)
    assert d.hessian_nu[0] == pytest.approx((up.gradient_nu[0] - down.gradient_nu[0]) / (2 * e), rel=1e-5)


def test_nu_interval_has_no_poisson_noise() -> None:
    """var(ν̂) is the delta-method variance of −log Z(θ̂), without the 1/n of a Poisson count: checked by simulation."""
    model = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1))
    rng = np.random.default_rng(0)
    a, n = 1.5, 50
    nus, ses = [], []
    for _ in range(200):
        y = np.log1p(rng.random(n) * np.expm1(a)) / a
        fit = un.fit(model, un.iid(y), objective=un.Poisson())
        nus.append(fit.nu[0])
        ses.append(fit.nu_se[0])
    assert np.std(nus) == pytest.approx(np.mean(ses), rel=0.2)
    assert np.sqrt(np.mean(ses) ** 2 + 1 / n) > 1.1 * np.std(nus)  # the joint inverse would be too wide
