"""Appendix B.2: in exponential families 𝓜 is concave jointly in (θ, ν), as 𝓛 is in θ."""

import numpy as np
from families import Family

import unnorm as un


def test_hessian_is_negative_definite_everywhere(family: Family) -> None:
    problem = un.Poisson(family.model.domain.default_order).bind(
        family.model, family.obs, un.Poisson().default_normaliser(family.model, family.obs)
    )
    exact = un.Exact(family.model.domain.default_order).bind(
        family.model, family.obs, un.Exact().default_normaliser(family.model, family.obs)
    )
    rng = np.random.default_rng(2)
    for _ in range(4):
        theta = family.truth * rng.uniform(-1.5, 1.5, len(family.truth))
        nu = problem.nu_star(problem.integrals.log_z(theta))
        nu = nu + rng.normal(0, 1, nu.shape)
        d = problem.joint_derivatives(theta, nu)
        whole = np.block([[d.hessian_theta, d.hessian_cross.T], [d.hessian_cross, np.diag(d.hessian_nu)]])
        assert np.linalg.eigvalsh(whole)[-1] < 0
        assert np.linalg.eigvalsh(exact.derivatives(theta).information)[0] > 0


def test_chords_lie_below_the_function(family: Family) -> None:
    """Concavity from values alone: 𝓜 at a midpoint is at least the mean of the ends, along random joint lines."""
    problem = un.Poisson(family.model.domain.default_order).bind(
        family.model, family.obs, un.Poisson().default_normaliser(family.model, family.obs)
    )
    rng = np.random.default_rng(3)
    base = problem.nu_star(problem.integrals.log_z(family.truth))
    for _ in range(4):
        a, b = (family.truth * rng.uniform(-1, 2, len(family.truth)) for _ in range(2))
        nu_a, nu_b = base + rng.normal(0, 1, base.shape), base + rng.normal(0, 1, base.shape)
        middle = problem.joint_value((a + b) / 2, (nu_a + nu_b) / 2)
        assert middle > (problem.joint_value(a, nu_a) + problem.joint_value(b, nu_b)) / 2
