"""The losses against their formulas written out, against each other, and against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from unnorm.errors import InputError
from unnorm.objectives import losses

rng = np.random.default_rng(0)
N, K = 6, 4
F, FR = rng.normal(size=N), rng.normal(size=(N, K))
Q, QR = rng.normal(size=N), rng.normal(size=(N, K))
NU, W = rng.normal(size=N), rng.uniform(0.5, 2, N)


def test_ncd_is_the_paper_s_formula() -> None:
    """Theorem 7's 𝓡^m, term by term: Σ log n e^{f+ν}/(n e^{f+ν} + m q) + Σ log m q/(n e^{f+ν} + m q)."""
    n, m, nu = N, N * K, 0.3
    real = np.log(n * np.exp(F + nu) / (n * np.exp(F + nu) + m * np.exp(Q)))
    fr, qr = FR.ravel(), QR.ravel()
    false = np.log(m * np.exp(qr) / (n * np.exp(fr + nu) + m * np.exp(qr)))
    want = -(real.sum() + false.sum())
    assert losses.ncd(F, fr, Q, qr, nu=nu, reduction="sum") == pytest.approx(want, rel=1e-12)
    assert losses.ncd(F, fr, Q, qr, nu=nu) == pytest.approx(want / N, rel=1e-12)


def test_ncd_with_contexts_and_weights() -> None:
    eta, eta_ref = F + NU - Q - np.log(K), FR + NU[:, None] - QR - np.log(K)
    want = -(W * (np.log(expit(eta)) + np.log(expit(-eta_ref)).sum(axis=1))).sum()
    assert losses.ncd(F, FR, Q, QR, nu=NU, weights=W, reduction="sum") == pytest.approx(want, rel=1e-12)


def test_importance_shared_and_own_points() -> None:
    want = -(F + 0.3).sum() + N * np.exp(FR + 0.3 - QR).mean()
    assert losses.importance(F, FR.ravel(), None, QR.ravel(), nu=0.3, reduction="sum") == pytest.approx(want, rel=1e-12)
    want = -(W * (F + NU)).sum() + (W * np.exp(FR + NU[:, None] - QR).mean(axis=1)).sum()
    assert losses.importance(F, FR, None, QR, nu=NU, weights=W, reduction="sum") == pytest.approx(want, rel=1e-12)


def test_ranking_is_a_softmax() -> None:
    every = np.column_stack([F - Q, FR - QR])
    want = logsumexp(every, axis=1) - every[:, 0]
    np.testing.assert_allclose(losses.ranking(F, FR, Q, QR, reduction="none"), want, rtol=1e-12)
    assert losses.ranking(F, FR, Q, QR, weights=W) == pytest.approx(np.average(want, weights=W), rel=1e-12)


def test_conditional_nce_has_its_minimum_at_the_truth() -> None:
    """The sign of the two kernel densities, which a symmetric kernel cannot show: y' = y/2 + 1 + N(0, 1)."""
    random = np.random.default_rng(1)
    y = random.normal(0, 2**-0.5, 20_000)
    y2 = 0.5 * y[:, None] + 1 + random.normal(size=(20_000, 5))

    def loss(a: float) -> float:
        forth, back = -0.5 * (y2 - 0.5 * y[:, None] - 1) ** 2, -0.5 * (y[:, None] - 0.5 * y2 - 1) ** 2
        return losses.conditional_nce(-0.5 * a * y**2, -0.5 * a * y2**2, forth, back)

    best = minimize(lambda a: loss(float(a[0])), [1.0], method="Nelder-Mead").x[0]
    assert best == pytest.approx(2.0, abs=0.12)


@pytest.mark.parametrize("name", ["ncd", "importance", "ranking", "conditional_nce"])
def test_gradients_are_the_finite_differences(name: str) -> None:
    loss = getattr(losses, name)
    rest = (QR, QR[::-1]) if name == "conditional_nce" else (Q, QR)
    value, (g, g_ref) = losses.gradients(loss, F, FR, *rest)
    assert value == pytest.approx(loss(F, FR, *rest), rel=1e-12)
    h = 1e-6
    for i in range(N):
        e = np.eye(N)[i] * h
        assert g[i] == pytest.approx((loss(F + e, FR, *rest) - loss(F - e, FR, *rest)) / (2 * h), abs=1e-8)
        E = np.zeros((N, K))
        E[i, 1] = h
        assert g_ref[i, 1] == pytest.approx((loss(F, FR + E, *rest) - loss(F, FR - E, *rest)) / (2 * h), abs=1e-8)


def test_far_from_zero_nothing_overflows() -> None:
    big = np.array([800.0, -800.0])
    assert np.isfinite(losses.ncd(big, -big, [0, 0], [0, 0]))
    assert np.isfinite(losses.ranking(big, np.array([big, -big]), [0, 0], np.zeros((2, 2))))
    assert np.isfinite(losses.conditional_nce(big, np.array([big, -big]), 0.0, 0.0))


def test_jax_in_jax_out_and_others_through_arrays() -> None:
    assert isinstance(losses.ncd(jnp.asarray(F), FR, Q, QR), jax.Array)
    jitted = jax.jit(lambda f: losses.ranking(f, FR, Q, QR))(jnp.asarray(F))
    assert float(jitted) == pytest.approx(losses.ranking(F, FR, Q, QR), rel=1e-5)  # float32 outside an x64 scope

    class Tensor:  # what a tensor of another library looks like from here
        def __init__(self, value: np.ndarray) -> None:
            self.value = value

        def __array__(self, dtype=None, copy=None) -> np.ndarray:
            return self.value.astype(dtype or self.value.dtype)

    assert losses.ncd(Tensor(F), Tensor(FR), Tensor(Q), Tensor(QR)) == losses.ncd(F, FR, Q, QR)


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match=r"shape \(n, k\)"):
        losses.ranking(F, FR.ravel(), Q, QR)
    with pytest.raises(InputError, match="reduction"):
        losses.ranking(F, FR, Q, QR, reduction="total")
    with pytest.raises(InputError, match="same shape"):
        losses.ncd(F, FR, Q[:3], QR)
    with pytest.raises(InputError, match="arrays of numbers"):
        losses.ncd(object(), FR, Q, QR)
