"""Theorem 1 (IID) and Theorem 2 (non-IID): 𝓜(θ, ν) ≤ 𝓛(θ) − n with equality at ν*(θ), and the same maximisers."""

import numpy as np
import pytest
from families import Family
from scipy.optimize import minimize

import unnorm as un


def _problems(family: Family):
    order = family.model.domain.default_order  # the domain's own rule, not the coarse one that a fit begins with
    exact, poisson = un.Exact(order), un.Poisson(order)
    return (
        exact.bind(family.model, family.obs, exact.default_normaliser(family.model, family.obs)),
        poisson.bind(family.model, family.obs, poisson.default_normaliser(family.model, family.obs)),
    )


def _some_theta(family: Family, count: int = 5) -> np.ndarray:
    return family.truth * (1 + 0.3 * np.random.default_rng(0).standard_normal((count, len(family.truth))))


def test_exact_likelihood_equals_the_oracle(family: Family) -> None:
    exact, _ = _problems(family)
    for theta in _some_theta(family):
        assert exact.value(theta) == pytest.approx(family.loglik(theta), rel=1e-10)


def test_bound_with_equality_at_nu_star(family: Family) -> None:
    exact, poisson = _problems(family)
    n = family.obs.n
    rng = np.random.default_rng(1)
    for theta in _some_theta(family):
        nu_star = poisson.nu_star(poisson.integrals.log_z(theta))
        top = exact.value(theta) - n
        assert poisson.joint_value(theta, nu_star) == pytest.approx(top, rel=1e-8)
        for spread in (0.01, 0.3, 2.0):
            nu = nu_star + spread * rng.standard_normal(nu_star.shape)
            # the gap is Σ (e^δ − 1 − δ) in closed form, δ = ν − ν*: a bound that is merely loose would fail here
            delta = nu - nu_star
            gap = (n if nu.size == 1 else 1) * np.sum(np.exp(delta) - 1 - delta)
            assert poisson.joint_value(theta, nu) == pytest.approx(top - gap, rel=1e-9)
            assert poisson.joint_value(theta, nu) < top


def test_nu_star_is_minus_log_normaliser(family: Family) -> None:
    """ν*(θ) = −log ∫ exp f: total over the observations against the oracle's own integrals."""
    _, poisson = _problems(family)
    theta = family.truth
    nu = poisson.per_row(poisson.nu_star(poisson.integrals.log_z(theta)))
    assert float(nu.sum()) == pytest.approx(family.loglik(theta) - poisson.data.value(theta), rel=1e-10)


def test_same_maximisers_and_the_oracles_own(family: Family) -> None:
    exact = un.fit(family.model, family.obs, objective=un.Exact())
    poisson = un.fit(family.model, family.obs, objective=un.Poisson())
    np.testing.assert_allclose(poisson.estimate, exact.estimate, rtol=1e-7)
    oracle = minimize(
        lambda th: -family.loglik(th), family.truth, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}
    )
    np.testing.assert_allclose(exact.estimate, oracle.x, atol=2e-3 * exact.se.max())
    assert exact.loglik >= family.loglik(oracle.x) - 1e-8 * abs(exact.loglik)
    assert poisson.loglik == pytest.approx(exact.loglik, rel=1e-10)
    assert poisson.value == pytest.approx(exact.loglik - family.obs.n, rel=1e-8)


def test_joint_maximum_found_without_eliminating_nu() -> None:
    """Theorem 1 with a general-purpose optimiser over (θ, ν): no closed form for ν is used."""
    y = np.random.default_rng(3).vonmises(0.7, 2.0, 100)
    import jax.numpy as jnp

    model = un.ExponentialFamily(lambda y: (jnp.cos(y), jnp.sin(y)), ("cos", "sin"), un.Circle())
    obs = un.iid(y)
    problem = un.Poisson().bind(model, obs, un.Constant())

    def negative(xi: np.ndarray) -> tuple[float, np.ndarray]:
        d = problem.joint_derivatives(xi[:2], xi[2:])
        return -d.value, -np.concatenate([d.gradient_theta, d.gradient_nu])

    joint = minimize(negative, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-8})
    exact = un.fit(model, obs)
    np.testing.assert_allclose(joint.x[:2], exact.estimate, atol=1e-6)
    np.testing.assert_allclose(joint.x[2], exact.nu[0], atol=1e-6)
