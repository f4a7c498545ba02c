"""λ of un.Kernel, left open, leaves θ alone; given, or chosen by cross-validation, it is as asked."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.solvers.weaker import BIAS, weaker

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
NCD = un.Logistic(un.Uniform(), per_point=10)
KERNEL = un.kernels.Gaussian(scale=0.5)
TEXT = "kernel(y_prev, k='gaussian', scale=0.5)"


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(300, -1.0, 20.0, rng=3))


def fitted(obs: un.Observations, normaliser: un.Normaliser, **more: Any) -> un.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", un.errors.UnnormWarning)  # that χ is shrunk, which is what is looked at
        return un.fit(TOY, obs, NCD, normaliser, rng=4, **more)


def test_theta_is_where_it_would_be_without_a_penalty(obs: un.Observations) -> None:
    se = np.array(un.fit(TOY, obs).tidy()["se"])
    default, free = fitted(obs, un.Kernel(KERNEL)), fitted(obs, un.Kernel(KERNEL, lam=1e-9))
    reml = fitted(obs, un.Kernel(KERNEL, lam="reml"))
    np.testing.assert_array_equal(reml.estimate, fitted(obs, un.Smooth(TEXT, smoothing="reml")).estimate)
    assert np.max(np.abs(default.estimate - free.estimate) / se) < BIAS
    assert np.max(np.abs(reml.estimate - free.estimate) / se) > 4 * BIAS


def test_the_bias_that_is_predicted_is_the_one_that_is_left(obs: un.Observations) -> None:
    """Predicted from a λ that moves θ by far more than it may."""
    shrunk, free = fitted(obs, un.Kernel(KERNEL, lam=30.0)), fitted(obs, un.Kernel(KERNEL, lam=1e-9))
    assert shrunk.smooths is not None
    assert shrunk.smooths.gam is not None
    gam = shrunk.smooths.gam
    chi = tuple(term for term in gam.terms if term.label in shrunk.smooths.normaliser_labels)
    sp, left = weaker(gam.smoothed, chi)
    se = np.sqrt(np.diag(gam.smoothed.Vp))[1:3]
    moved = np.max(np.abs(shrunk.estimate - free.estimate) / se)
    assert moved > BIAS
    assert left < BIAS
    (value,) = sp.values()
    assert value < 1.0
    again = fitted(obs, un.Kernel(KERNEL, lam=value / 2))
    assert np.max(np.abs(again.estimate - free.estimate) / se) == pytest.approx(left, abs=0.02)


def test_a_given_lambda_and_cross_validation_stand(obs: un.Observations) -> None:
    given = fitted(obs, un.Kernel(KERNEL, lam=0.5))
    assert given.smooths is not None
    assert list(given.smooths.sp.values()) == pytest.approx([1.0])
    by_cv = fitted(obs, un.Kernel(KERNEL), smoothing="cv")
    plain = fitted(obs, un.Smooth(TEXT, smoothing="reml"), smoothing="cv")
    np.testing.assert_allclose(by_cv.estimate, plain.estimate, rtol=1e-8)


def test_anchored_takes_a_kernel_for_delta(obs: un.Observations) -> None:
    """δ is zero in truth, and shrinks to a constant."""
    kernel, constant = fitted(obs, un.Anchored(un.Kernel(KERNEL))), fitted(obs, un.Anchored())
    assert kernel.settings["normaliser"]["terms"] == TEXT
    np.testing.assert_allclose(kernel.estimate, constant.estimate, atol=0.05 * np.array(constant.tidy()["se"]).min())
    assert un.Anchored(un.Kernel(KERNEL)) == un.Anchored(un.Kernel(KERNEL)) != un.Anchored(un.Kernel("matern"))
    for wrong in (un.Constant(), un.Anchored(), un.Linear(np.ones((300, 1)))):
        with pytest.raises(un.errors.InputError, match="Kernel"):
            un.Anchored(wrong)
    with pytest.raises(un.errors.CombinationError, match="terms or a kernel"):
        un.fit(TOY, obs, NCD, un.Anchored(un.Features(lambda x: (1.0, x))), rng=1)
