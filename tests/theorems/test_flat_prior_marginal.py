"""Under flat priors on ν (or on each ν_t) the θ-marginal of exp 𝓜 is the posterior of the untransformed model, exactly.

∫ exp(nν − n e^ν Z) dν = Γ(n) (nZ)^{−n}: by quadrature over ν, on a grid of θ, against 𝓛. With χ(x) in a finite basis
it is an approximation.
"""

import numpy as np
import pytest
from families import FAMILIES
from scipy.special import gammaln, logsumexp

import unnorm as un
from unnorm.solvers.stochastic import Features


def _log_integral(log_f, low: float, high: float) -> float:
    """The trapezoid rule, which is exact to rounding for smooth functions that vanish at both ends."""
    at = np.linspace(low, high, 4001)
    return float(logsumexp(log_f(at)) + np.log(at[1] - at[0]))


def _grid(theta: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(5)
    return theta + 0.3 * np.abs(theta) * rng.standard_normal((6, len(theta)))


@pytest.mark.parametrize("name", ["truncated_gaussian", "von_mises", "ising"])
def test_one_constant(name: str) -> None:
    family = FAMILIES[name]()
    obs = family.obs.take(np.arange(60))
    exact, poisson = (o.bind(family.model, obs, un.Constant()) for o in (un.Exact(), un.Poisson()))
    gap = []
    for theta in _grid(family.truth):
        log_z = poisson.integrals.log_z(theta)
        centre = poisson.nu_star(log_z)[0]
        value = [poisson.joint_value(theta, np.array([nu])) for nu in (centre - 1.0, centre + 1.0)]
        # 𝓜 along ν is nν − n e^ν Z + const: fixed by its values, which are checked here against unnorm's own
        n, z = obs.n, float(np.exp(log_z[0]))
        base = poisson.joint_value(theta, np.array([centre])) - n * centre + n * np.exp(centre) * z
        for nu, v in zip((centre - 1.0, centre + 1.0), value):
            assert base + n * nu - n * np.exp(nu) * z == pytest.approx(v, rel=1e-10)
        marginal = _log_integral(lambda nu, b=base, z=z, n=n: b + n * nu - n * np.exp(nu) * z, centre - 5, centre + 3)
        gap.append(marginal - exact.value(theta))
    # the marginal is 𝓛 up to the constant log Γ(n) − n log n
    np.testing.assert_allclose(gap, gammaln(60) - 60 * np.log(60), rtol=1e-9)


@pytest.mark.parametrize("name", ["toy_chain", "regression"])
def test_one_constant_for_each_context(name: str) -> None:
    family = FAMILIES[name]()
    obs = family.obs.take(np.arange(25))
    exact, poisson = (o.bind(family.model, obs, un.PerContext()) for o in (un.Exact(), un.Poisson()))
    gap = []
    for theta in _grid(family.truth):
        nu_star = poisson.nu_star(poisson.integrals.log_z(theta))
        top = poisson.joint_value(theta, nu_star)
        # 𝓜 = 𝓜(θ, ν*) + Σ_t (δ_t − e^{δ_t} + 1): the 25 integrals over ν_t separate
        one = np.zeros(25)
        one[3] = 0.7
        assert poisson.joint_value(theta, nu_star + one) == pytest.approx(top + 0.7 - np.exp(0.7) + 1, rel=1e-10)
        gap.append(top + 25 * _log_integral(lambda d: d - np.exp(d) + 1, -45, 6) - exact.value(theta))
    np.testing.assert_allclose(gap, np.full(len(gap), gap[0]), atol=1e-7)
    # a flat prior with another weight on ν would not do: e^{ν} as a prior tilts the posterior by −Σ log Z_t
    tilted = [g - poisson.nu_star(poisson.integrals.log_z(t)).sum() for g, t in zip(gap, _grid(family.truth))]
    assert np.ptp(tilted) > 0.1


def test_smooth_chi_is_an_approximation() -> None:
    """With χ = Bβ, flat β: the marginal by Laplace's method over β differs from 𝓛 by little, but it does differ."""
    chain = un.datasets.toy_chain(400, 0.5, 5.0, rng=4)
    obs = un.transitions(chain)
    model = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    B = Features(lambda x: (1.0, x, x**2, x**3, x**4)).design(obs)
    exact, poisson = (o.bind(model, obs, un.PerContext()) for o in (un.Exact(), un.Poisson()))
    ml = un.fit(model, obs)

    def marginal(theta: np.ndarray) -> float:
        log_z = poisson.integrals.log_z(theta)[poisson.integrals.context.of]
        beta = np.linalg.lstsq(B, -log_z, rcond=None)[0]
        for _ in range(50):  # Newton in β
            mass = np.exp(B @ beta + log_z)
            beta = beta + np.linalg.solve(B.T @ (mass[:, None] * B), B.T @ (1 - mass))
        mass = np.exp(B @ beta + log_z)
        curve = np.linalg.slogdet(B.T @ (mass[:, None] * B))[1]
        return poisson.data.value(theta) + float(np.sum(B @ beta - mass)) - 0.5 * curve

    steps = ml.estimate + ml.se * np.array([[0, 0], [2, 0], [-2, 0], [0, 2], [0, -2], [1.5, 1.5], [-1.5, 1.5]])
    gap = np.array([marginal(theta) - exact.value(theta) for theta in steps])
    gap -= gap[0]
    assert np.max(np.abs(gap)) < 0.1  # in log posterior density, two standard deviations out
    assert np.max(np.abs(gap)) > 1e-6
