"""Stochastic steps and `unnorm.losses` are the likelihood of rows of objectives/likelihood.py."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.objectives import losses
from unnorm.objectives.likelihood import LOGISTIC, POISSON, Cumulant, RowLikelihood
from unnorm.objectives.traced import traced
from unnorm.references import Uniform
from unnorm.solvers.stochastic.chi import Features
from unnorm.solvers.stochastic.estimator import Estimator, StepDesign, estimator
from unnorm.solvers.stochastic.sources import Batch
from unnorm.solvers.stochastic.step import Step, precision

CHAIN = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
POINTS = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 2))
CHI = Features(lambda x: (1.0, x, x**2))
K = 3


def _estimator(loss: str, kind: str, batch: int | None, dtype: str = "float64") -> Estimator:
    rng = np.random.default_rng(1)
    if kind == "chain":
        obs = un.transitions(un.datasets.toy_chain(41, 0.5, 5.0, rng=1))
        model, normaliser = CHAIN, CHI
    else:
        obs, model, normaliser = un.iid(rng.uniform(-1, 2, 40)), POINTS, un.Constant()
    obs = replace(obs, weight=rng.integers(1, 4, obs.n).astype(float))
    return estimator(model, obs, Uniform(), normaliser, StepDesign(batch, K, dtype=dtype, control=False), loss)


def _rows(e: Estimator, batch: Batch, phi: np.ndarray) -> tuple[RowLikelihood, np.ndarray, np.ndarray]:
    """The step's rows, written out in NumPy: likelihood, η, and ∂η/∂φ."""
    i, scale = np.asarray(batch.index), np.asarray(batch.scale)
    y, x = e.obs.outcome[i, 0], e.obs.context["y_prev"][i] if e.obs.has_context else None
    r, log_q = np.asarray(batch.y)[..., 0], np.asarray(batch.log_q)
    a = scale * e.obs.weights[i]
    if x is None:
        Z, Zr = (np.column_stack([v, -0.5 * v**2, np.ones_like(v)]) for v in (y, r.ravel()))
        b = np.full(r.size, e.W / len(i))
    else:
        pairs = ((y, x), (r.ravel(), np.repeat(x, K)))
        Z, Zr = (np.column_stack([v, -0.5 * (v - x) ** 2, np.ones_like(x), x, x**2]) for v, x in pairs)
        b = np.repeat(a, K)
    X = np.concatenate([Z, Zr])
    data = np.arange(len(X)) < len(Z)
    log_q_data = np.full(len(Z), -e.model.domain.log_volume)
    if e.loss == "ncd":
        offset = -np.concatenate([log_q_data, log_q.ravel()]) - np.log(K)
        likelihood = RowLikelihood(LOGISTIC, np.where(data, np.r_[a, b], 0.0), np.r_[a, b])
    else:
        offset = np.concatenate([np.zeros(len(Z)), -log_q.ravel()])
        likelihood = RowLikelihood(POISSON, np.where(data, np.r_[a, b], 0.0), np.where(data, 0.0, np.r_[a, b] / K))
    return likelihood, X @ phi + offset, X


def _derivatives(step: Step, phi: jax.Array, data: object, drawn: Batch) -> tuple[jax.Array, ...]:
    def value(phi: jax.Array) -> jax.Array:
        return step.likelihood(phi, data, drawn)[0]

    return value(phi), jax.grad(value)(phi), jax.hessian(value)(phi)


@pytest.mark.parametrize("batch", [10, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["iid", "chain"])
@pytest.mark.parametrize("loss", ["poisson", "ncd"])
def test_a_step_is_the_likelihood_of_its_rows(loss: str, kind: str, batch: int | None) -> None:
    e = _estimator(loss, kind, batch)
    phi = np.random.default_rng(2).normal(0, 0.5, e.size)
    for dtype, rtol in (("float64", 1e-11), ("float32", 2e-5)):
        e = _estimator(loss, kind, batch, dtype)
        with precision(dtype):
            x = jax.tree.map(lambda leaf: leaf[0], e.source.block(3, 0, 1))
            drawn = e.step.draw(e.device_constants, jax.random.key(0), x)
            at = jnp.asarray(phi, dtype=dtype)
            value, slope, hessian = jax.jit(_derivatives, static_argnums=0)(e.step, at, e.device_data, drawn)
        likelihood, eta, X = _rows(e, drawn, phi)
        want, (g, h) = likelihood.value(eta), likelihood.slopes(eta)
        assert float(value) == pytest.approx(want, rel=rtol, abs=rtol * np.abs(eta).sum())
        np.testing.assert_allclose(slope, X.T @ g, rtol=rtol, atol=rtol * np.abs(X * g[:, None]).sum(axis=0).max())
        H = X.T @ (h[:, None] * X)
        np.testing.assert_allclose(-hessian, H, rtol=10 * rtol, atol=rtol * np.abs(H).max())


def test_losses_are_the_likelihood_of_their_rows() -> None:
    rng = np.random.default_rng(3)
    f, r, q, qr = rng.normal(size=6), rng.normal(size=(6, K)), rng.normal(size=6), rng.normal(size=(6, K))
    w = rng.uniform(0.5, 2, 6)
    both = np.concatenate([f - q, (r - qr).ravel()]) + 0.3
    weight = np.concatenate([w, np.repeat(w, K)])
    rows = RowLikelihood(LOGISTIC, np.where(np.arange(6 + 6 * K) < 6, weight, 0.0), weight)
    value, (g, gr) = losses.gradients(losses.ncd, f, r, q, qr, nu=0.3, weights=w, reduction="sum")
    assert value == pytest.approx(-rows.value(both - np.log(K)), rel=1e-12)
    np.testing.assert_allclose(np.r_[g, gr.ravel()], -rows.slopes(both - np.log(K))[0], rtol=1e-12)
    data = np.arange(6 + 6 * K) < 6
    rows = RowLikelihood(POISSON, np.where(data, weight, 0.0), np.where(data, 0.0, weight / K))
    eta = np.where(data, np.concatenate([f, r.ravel()]) + 0.3, both)
    value, (g, gr) = losses.gradients(losses.importance, f, r, q, qr, nu=0.3, weights=w, reduction="sum")
    assert value == pytest.approx(-rows.value(eta), rel=1e-12)
    np.testing.assert_allclose(np.r_[g, gr.ravel()], -rows.slopes(eta)[0], rtol=1e-12)
    pairs = f[:, None] - r + qr - qr[::-1]  # conditional NCE: each pair is a logistic row whose answer is always yes
    rows = RowLikelihood(LOGISTIC, np.ones(6 * K), np.ones(6 * K))
    value = losses.conditional_nce(f, r, qr, qr[::-1], reduction="sum")
    assert value == pytest.approx(-rows.value(pairs.ravel()) / K, rel=1e-12)


@pytest.mark.parametrize("cumulant", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
def test_derivatives_under_jax_are_the_cumulant_s(cumulant: Cumulant) -> None:
    """At η = 0 too, where the derivative of the formula of log(1 + e^η) would be wrong."""
    eta = np.array([-700.0, -30.0, -1.0, 0.0, 1e-9, 2.0, 30.0])
    A = traced(cumulant)
    with x64():
        for want in (cumulant.value, cumulant.mean, cumulant.variance, cumulant.skew):
            np.testing.assert_allclose(jax.vmap(A)(eta), want(eta), rtol=1e-14)
            A = jax.grad(A)


def test_float32_keeps_the_tails() -> None:
    """−log σ(η) and its slope where η = 20: 2e-9, which η − A(η) would lose to rounding."""
    value, slope = jax.value_and_grad(lambda f: losses.ncd(f, f[:0], 0 * f, f[:0], log_ratio=0.0))(jnp.array([20.0]))
    assert float(value) == pytest.approx(np.exp(-20.0), rel=1e-5)
    assert float(slope[0]) == pytest.approx(-np.exp(-20.0), rel=1e-5)
