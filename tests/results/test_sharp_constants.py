"""Densities that are sharp at a few contexts, or everywhere: what the rules on Ω miss is found, and made finer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

import unnorm as un

STEPS = un.ExponentialFamily(lambda y, x: (-0.5 * (y - x) ** 2,), ("q",), un.Interval(0, 1))
SHARP = un.ExponentialFamily(lambda y, c: (y, -0.5 * c["w"] * (y - c["x"]) ** 2), ("a", "b"), un.Interval(0, 1))


def a_few_sharp(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y | x, w ∝ exp(y − ½ w (y − x)²) on [0, 1], w = 10 but at six contexts, where it is 3·10⁶."""
    rng = np.random.default_rng(11)
    x, w = rng.uniform(0.1, 0.9, n), np.full(n, 10.0)
    w[rng.choice(n, 6, replace=False)] = 3e6
    y = np.full(n, -1.0)
    while (out := (y < 0) | (y > 1)).any():
        y[out] = (x + 1 / w + rng.normal(size=n) / np.sqrt(w))[out]
    return y, x, w


def maximum(y: np.ndarray, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    def lost(t: np.ndarray) -> float:
        p = t[1] * w
        if t[1] <= 0:
            return 1e9
        mu, root = x + t[0] / p, np.sqrt(p)
        log_z = t[0] * x + t[0] ** 2 / (2 * p) + 0.5 * np.log(2 * np.pi / p)
        log_z += np.log(ndtr((1 - mu) * root) - ndtr(-mu * root))
        return -float(np.sum(t[0] * y - 0.5 * p * (y - x) ** 2 - log_z))

    return minimize(lost, [1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}).x


@pytest.mark.parametrize("columns", [("x", "w"), ("w", "x")])
def test_a_few_sharp_contexts_are_found_whatever_the_order_of_the_columns(columns):
    """They were missed where the column that is extreme did not come first: b = .005 with "at most 1e-14 se"."""
    y, x, w = a_few_sharp()
    obs = un.conditional({"y": y, "x": x, "w": w}, "y", columns)
    best = maximum(y, x, w)
    fit = un.fit(SHARP, obs, un.Logistic(un.Uniform(), per_point=20), rng=3)
    assert np.all(np.abs(fit.estimate - best) < 0.5 * fit.se)
    with pytest.warns(un.errors.UnnormWarning, match="integrals are off by up to"):  # and it says what to do
        un.fit(SHARP, obs)
    exact = un.fit(SHARP, obs, un.Exact(order=4000))
    np.testing.assert_allclose(exact.estimate, best, rtol=1e-3)


@pytest.mark.parametrize("step", [1e-3, 3e-4])
def test_held_out_likelihoods_of_short_steps(step):
    """Uncentred nodes of the domain's default order gave 3,912 and 50,803 where the truth is 1,633 and 1,993."""
    rng = np.random.default_rng(18)
    z = np.cumsum(step * rng.normal(size=300))
    obs = un.transitions(0.5 + z - z.mean())
    fit = un.fit(STEPS, obs, un.Logistic(per_point=20), rng=3)
    q = fit.estimate[0]
    truth = np.sum(0.5 * np.log(q / (2 * np.pi)) - 0.5 * q * np.diff(z) ** 2)
    found = fit.held_out(obs)
    assert found.loglik == pytest.approx(truth, abs=0.03)
    assert found.quadrature_error < 2e-4
    check = fit.check_normaliser()
    assert np.max(np.abs(check.gap - check.level)) < 0.01
