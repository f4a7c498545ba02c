"""Corollary 3 (a smooth χ), and Proposition 4 and Corollary 6 in the form that is true.

As printed, the last two say that the penalised problem gives the MLE for every λ below some λ0 > 0. At χ* the gradient
of 𝓜_χ vanishes and the penalty's does not, so no such λ0 exists unless χ* is unpenalised; what holds is θ(λ) → θ̂ at
rate O(λ), with 𝓜_χ still rising as λ falls.
"""

from functools import cache

import numpy as np
import pytest

import unnorm as un
from unnorm.solvers import Smoothing

MODEL = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
N = 40


@cache
def observations() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(N, 0.5, 5.0, rng=2))


def penalised(lam: float, k: int = N) -> un.Fit:
    """max over (θ, χ) of 𝓜_χ − ½ λ ∫ χ''², by quadrature. With k = n functions χ takes any values at the contexts."""
    smoothing = Smoothing("reml", sp={"s(y_prev)": lam})
    return un.fit(
        MODEL, observations(), un.Poisson(), un.Smooth(f"s(y_prev, k={k})", smoothing="reml"), smoothing=smoothing
    )


@pytest.mark.parametrize("k", [15, N])
def test_corollary_3_a_rich_smooth_chi_gives_the_mle(k: int) -> None:
    exact = un.fit(MODEL, observations())
    free = penalised(1e-12, k)
    assert np.all(np.abs(free.estimate - exact.estimate) < 5e-4 * exact.se)
    closed = -un.datasets.toy_log_normaliser(*exact.estimate, observations().previous()[:, 0])
    np.testing.assert_allclose(free.nu, closed, atol=2e-3)


def test_corollary_3_needs_a_chi_that_is_rich_enough() -> None:
    """A straight line for χ is not, and the test above would see it."""
    line = un.fit(
        MODEL,
        observations(),
        un.Poisson(),
        un.Smooth("s(y_prev, k=40)", smoothing="reml"),
        smoothing=Smoothing(sp={"s(y_prev)": 1e9}),
    )
    exact = un.fit(MODEL, observations())
    assert np.min(np.abs(line.estimate - exact.estimate) / exact.se) > 0.01


def test_proposition_4_converges_at_rate_lambda() -> None:
    limit = penalised(1e-15)
    lams = np.array([1e-6, 1e-7, 1e-8, 1e-9])
    away = np.array([np.abs(penalised(lam).estimate - limit.estimate) for lam in lams])
    slopes = np.diff(np.log(away), axis=0) / np.diff(np.log(lams))[:, None]
    np.testing.assert_allclose(slopes, 1.0, atol=0.05)
    exact = un.fit(MODEL, observations())
    assert np.all(away[0] < 0.01 * exact.se)


def test_corollary_6_has_no_lambda_0() -> None:
    """𝓜_χ keeps rising as λ falls, by less and less: there is no λ0 > 0 from which on it stands still.

    In a space of ten functions what is missing is of order λ² in the end; with n of them the rate is slower, as ever
    rougher functions come into reach.
    """
    lams = np.array([1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
    short = penalised(1e-15).value - np.array([penalised(lam).value for lam in lams])
    assert np.all(short > 0)
    assert np.all(short[1:] < 0.2 * short[:-1])
    few = np.array([1e-3, 1e-4, 1e-5])
    short = penalised(1e-11, 10).value - np.array([penalised(lam, 10).value for lam in few])
    np.testing.assert_allclose(np.diff(np.log10(short)), -2.0, atol=0.3)
