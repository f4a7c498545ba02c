"""Section 2.3 with kernels: Corollary 3, Remark 5 (the representer theorem), and Proposition 4 and Corollary 6 in the
form that is true, against a dense solver of eq. 2.7 that knows nothing of unnorm.

In the oracle χ = b + Σ_j a_j k(·, z_j) with any points z_j, |h|² = aᵀKa, the integrals by Gauss–Legendre, Newton in
(θ, b, a). b is free, as in `un.Kernel`.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize

import unnorm as un

MODEL = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
SCALE = 0.5
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
N = 25


def rough(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Matérn with ν = 1/2: well conditioned, so that digits are left for rates."""
    return np.exp(-np.abs(np.subtract.outer(a, b)) / SCALE)


KERNEL = un.kernels.Matern(scale=SCALE, nu=0.5)


@cache
def observations() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(N, 0.5, 5.0, rng=2))


class Transformed(NamedTuple):
    """𝓜 as a function of c = (θ1, θ2, b, β), h = φβ with |h|² = βᵀβ."""

    data: np.ndarray  # (p,) Σ of the data's columns
    columns: np.ndarray  # (n, nodes, p)

    def value(self, c: np.ndarray) -> float:
        return float(self.data @ c - np.sum(WEIGHTS * np.exp(self.columns @ c)))

    def derivatives(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and negative Hessian."""
        mean = WEIGHTS * np.exp(self.columns @ c)
        flat = self.columns.reshape(-1, len(c))
        return self.data - mean.ravel() @ flat, flat.T @ (mean.ravel()[:, None] * flat)

    def penalised(self, lam: float) -> np.ndarray:
        """argmax 𝓜 − λ|h|²."""
        penalty = 2 * lam * (np.arange(len(self.data)) > 2)
        c = np.zeros(len(self.data))
        c[2] = -np.log(2.0)
        objective = lambda c: self.value(c) - 0.5 * penalty @ c**2  # noqa: E731
        for _ in range(100):
            gradient, information = self.derivatives(c)
            step = np.linalg.solve(information + np.diag(penalty), gradient - penalty * c)
            while not objective(c + step) >= objective(c) - 1e-12:
                step /= 2
            c = c + step
            if np.abs(step).max() < 1e-12:
                return c
        raise AssertionError("the oracle did not converge")


def basis(centres: np.ndarray) -> np.ndarray:
    """(m, m) T such that φ(x) = k(x, centres) T has |φβ|² = βᵀβ."""
    values, vectors = np.linalg.eigh(rough(centres, centres))
    return vectors / np.sqrt(values)


@cache
def transformed(extra: tuple[float, ...] = ()) -> Transformed:
    """𝓜 over the span of k at the contexts, and at `extra` points."""
    x, y = observations().previous()[:, 0], observations().outcome[:, 0]
    centres = np.concatenate([x, extra])
    phi = rough(x, centres) @ basis(centres)
    own = np.column_stack([y, -0.5 * (y - x) ** 2, np.ones(N), phi])
    ones = np.ones((N, len(NODES)))
    s = np.stack([NODES * ones, -0.5 * (NODES - x[:, None]) ** 2, ones], axis=-1)
    return Transformed(own.sum(axis=0), np.concatenate([s, np.repeat(phi[:, None], len(NODES), axis=1)], axis=-1))


@cache
def fitted(lam: float) -> un.Fit:
    return un.fit(MODEL, observations(), un.Poisson(order=60), un.Kernel(KERNEL, lam=lam))


@cache
def exact() -> un.Fit:
    return un.fit(MODEL, observations())


@cache
def least() -> tuple[float, np.ndarray]:
    """|h*|² and β*: the smallest h with b + h(x_t) = −log Z(x_t) at the maximum-likelihood θ."""
    x = observations().previous()[:, 0]
    v, K = -un.datasets.toy_log_normaliser(*exact().estimate, x), rough(x, x)
    one = np.linalg.solve(K, np.ones(N))
    h = v - (one @ v) / one.sum()
    return float(h @ np.linalg.solve(K, h)), np.linalg.solve(rough(x, x) @ basis(x), h)


def norm(fit: un.Fit) -> float:
    part = fit.smooths
    assert part is not None
    return float(np.sum(part.beta[part.slices["kernel(y_prev)"]] ** 2))


@pytest.mark.parametrize("lam", [10.0, 0.1, 1e-3])
def test_the_engine_solves_equation_2_7(lam: float) -> None:
    c = transformed().penalised(lam)
    fit = fitted(lam)
    np.testing.assert_allclose(fit.estimate, c[:2], atol=2e-4 * float(exact().se[0]))
    assert fit.value == pytest.approx(transformed().value(c), abs=1e-5)
    assert norm(fit) == pytest.approx(float(np.sum(c[3:] ** 2)), rel=1e-3)


def test_remark_5_a_larger_space_has_the_same_minimiser() -> None:
    """With functions at 15 more points to choose from, the minimiser still is Σ_t α_t k(·, x_t): its part orthogonal to
    that span is zero, and the function is the library's, off the contexts too."""
    extra = tuple(np.linspace(-0.95, 0.93, 15))
    x = observations().previous()[:, 0]
    centres = np.concatenate([x, extra])
    beta = transformed(extra).penalised(0.1)
    alpha = basis(centres) @ beta[3:]
    assert np.abs(alpha[N:]).max() < 1e-8 * np.abs(alpha[:N]).max()
    at = np.linspace(-1, 1, 41)
    part = fitted(0.1).smooths
    assert part is not None
    np.testing.assert_allclose(part.chi({"y_prev": at}, 41), beta[2] + rough(at, centres) @ alpha, atol=2e-4)


def test_remark_5_nystroem_is_another_problem() -> None:
    """With few landmarks the minimiser does not lie in their span: the test above would see it."""
    few = un.fit(MODEL, observations(), un.Poisson(order=60), un.Kernel(KERNEL, lam=0.1, landmarks=4))
    c = transformed().penalised(0.1)
    assert abs(norm(few) - float(np.sum(c[3:] ** 2))) > 0.02 * norm(few)


def test_corollary_3_a_rich_kernel_gives_the_mle() -> None:
    free = fitted(1e-5)
    assert np.all(np.abs(free.estimate - exact().estimate) < 1e-3 * exact().se)
    closed = -un.datasets.toy_log_normaliser(*exact().estimate, observations().previous()[:, 0])
    np.testing.assert_allclose(free.nu, closed, atol=1e-3)
    heavy = fitted(100.0)  # almost a constant for χ
    assert np.max(np.abs(heavy.estimate - exact().estimate) / exact().se) > 0.1


@pytest.mark.parametrize("share", [0.3, 1.05, 3.0])
def test_proposition_4_the_constrained_problem_is_exact_once_rho_reaches_chi_star(share: float) -> None:
    """max 𝓜 subject to |h|² ≤ ρ gives the MLE for every ρ ≥ |h*|², and for none below."""
    problem, (rho, beta) = transformed(), least()
    start = np.concatenate([[0.0, 1.0, -0.7], 0.1 * beta])
    found = minimize(
        lambda c: -problem.value(c),
        start,
        jac=lambda c: -problem.derivatives(c)[0],
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda c: share * rho - np.sum(c[3:] ** 2),
            "jac": lambda c: np.concatenate([np.zeros(3), -2 * c[3:]]),
        },
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    away = np.abs(found.x[:2] - exact().estimate) / exact().se
    short = exact().loglik - N + found.fun
    if share > 1:
        assert away.max() < 1e-3
        assert abs(short) < 1e-6
    else:
        assert away.max() > 0.01
        assert short > 1e-3


def test_proposition_4_converges_at_rate_lambda_with_a_known_slope() -> None:
    """θ(λ) = θ̂ − λ [J⁻¹ (0, 2β*)]_θ + O(λ²), J the negative Hessian of 𝓜 at (θ̂, χ*)."""
    problem, (rho, beta) = transformed(), least()
    x = observations().previous()[:, 0]
    v = -un.datasets.toy_log_normaliser(*exact().estimate, x)
    level = float(np.mean(v - rough(x, x) @ basis(x) @ beta))
    J = problem.derivatives(np.concatenate([exact().estimate, [level], beta]))[1]
    slope = -np.linalg.solve(J, np.concatenate([np.zeros(3), 2 * beta]))[:2]
    for lam in (1e-3, 1e-4):
        moved = problem.penalised(lam)
        np.testing.assert_allclose((moved[:2] - exact().estimate) / lam, slope, rtol=50 * lam)
        assert 0 < rho - float(np.sum(moved[3:] ** 2)) < 50 * lam  # no λ > 0 has the whole of χ*


def test_corollary_6_has_no_lambda_0() -> None:
    """𝓜 rises with every fall of λ, in the end by λ²: there is no λ0 > 0 from which on it does not."""
    lams = np.array([1e-1, 1e-2, 1e-3, 1e-4])
    problem = transformed()
    short = exact().loglik - N - np.array([problem.value(problem.penalised(lam)) for lam in lams])
    assert np.all(short > 0)
    np.testing.assert_allclose(np.diff(np.log10(short))[1:], -2.0, atol=0.15)


def test_the_path_stops_where_it_says() -> None:
    path = un.kernel_path(MODEL, observations(), un.Kernel(KERNEL), objective=un.Poisson(order=60), factor=0.3)
    assert path.converged
    assert len(path.lam) > 3
    assert np.all(path.gain[1:] > 0)
    assert path.gain[-1] < 1e-3 < path.gain[-2]
    short = exact().loglik - N - path.value[-1]
    assert short < 1e-3
    away = np.abs(path.fit.estimate - exact().estimate) / exact().se
    assert np.all(away < np.sqrt(2e-3))
    assert np.all(np.diff(path.norm) > 0)
    assert path.norm[-1] < least()[0]
