"""Change statistics and the samplers that live on them, against every state of small domains."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numba import njit

import unnorm as un
from unnorm.models.changes import DenseChanges
from unnorm.models.gibbs import Base, ChangeSampler, CompiledSampler

OMEGA = un.Graphs(4)
MODEL = un.ExponentialFamily(
    lambda y, x: (y.sum(), (A := OMEGA.adjacency(y)) @ A @ A @ jnp.ones(4) @ jnp.ones(4), jnp.sum(y * x)),
    ("edges", "walks", "memory"),
    OMEGA,
)
THETA = np.array([-0.4, 0.05, 0.7])


def test_changes_are_differences_of_statistics_on_every_state() -> None:
    states = OMEGA.quadrature().points
    x = states[::-1].copy()
    changes = MODEL.changes(states, (x,))
    for i in range(OMEGA.dim):
        other = states.copy()
        other[:, i] = 1 - other[:, i]
        expected = MODEL.statistics_at(other, (x,)) - MODEL.statistics_at(states, (x,))
        np.testing.assert_allclose(changes[:, i], expected, atol=1e-12)


def test_products_of_dense_changes() -> None:
    rng = np.random.default_rng(1)
    table, theta, v = rng.normal(size=(7, 5, 3)), rng.normal(size=3), rng.normal(size=(7, 5))
    changes = DenseChanges(table)
    np.testing.assert_allclose(changes.times(theta), np.einsum("tip,p->ti", table, theta))
    np.testing.assert_allclose(changes.total(v), np.einsum("ti,tip->p", v, table))
    np.testing.assert_allclose(changes.by_outcome(v), np.einsum("ti,tip->tp", v, table))
    np.testing.assert_allclose(changes.cross(v), np.einsum("ti,tip,tiq->pq", v, table, table))
    np.testing.assert_allclose(changes.squares(v), np.einsum("ti,tip,tip->p", v, table, table))


@njit
def _start(params: Any, y: Any, c: int) -> Any:
    x = params[1]
    return x[c % len(x)]


@njit
def _delta(params: Any, state: Any, y: Any, i: int) -> Any:
    """An edge and its memory, and closed walks are left out: what a model of θ_edges and θ_memory needs."""
    theta = params[0]
    return (1.0 - 2.0 * y[i]) * (theta[0] + theta[2] * state[i])


@njit
def _flip(params: Any, state: Any, y: Any, i: int) -> None:
    y[i] = 1.0 - y[i]


NO_WALKS = THETA * np.array([1.0, 0.0, 1.0])
X = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])


def _sampler(kind: str, chains: int) -> tuple[ChangeSampler, np.ndarray]:
    if kind == "plain":
        return MODEL.sampler(THETA, (np.tile(X, (chains, 1)),)), THETA
    return CompiledSampler((_start, _delta, _flip), (NO_WALKS, X[None])), NO_WALKS


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_sweeps_have_the_model_as_their_law(kind: str) -> None:
    """Frequencies of all 64 graphs after sweeps from one state, against enumeration."""
    chains = 20_000
    sampler, theta = _sampler(kind, chains)
    states = OMEGA.quadrature().points
    f = MODEL.log_f(theta, states, (np.tile(X, (64, 1)),))
    p = np.exp(f - f.max())
    p /= p.sum()
    y = sampler.sweep(np.zeros((chains, OMEGA.dim)), 12, np.random.default_rng(2))
    counts = np.bincount((y @ 2 ** np.arange(5, -1, -1)).astype(int), minlength=64)
    expected = chains * p
    chi2 = np.sum((counts - expected) ** 2 / expected)
    assert chi2 < 63 + 5 * np.sqrt(2 * 63)


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_bits_that_are_not_free_stay(kind: str) -> None:
    sampler, _ = _sampler(kind, 50)
    free = np.random.default_rng(0).random((50, OMEGA.dim)) < 0.5
    y = np.random.default_rng(3).integers(0, 2, (50, OMEGA.dim)).astype(float)
    after = sampler.sweep(y, 5, np.random.default_rng(1), free)
    assert np.array_equal(after[~free], y[~free])
    assert (after[free] != y[free]).any()


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_annealing_gives_the_constant(kind: str) -> None:
    """E w = Z / exp(f_0 − log q_0) at the start: log mean exp of the whole weight is log Z."""
    chains = 4000
    sampler, theta = _sampler(kind, chains)
    states = OMEGA.quadrature().points
    log_z = np.log(np.exp(MODEL.log_f(theta, states, (np.tile(X, (64, 1)),))).sum())
    rng = np.random.default_rng(7)
    p = 1 / (1 + np.exp(-np.stack([np.linspace(-1.5, 1.0, OMEGA.dim), np.linspace(2.0, -0.5, OMEGA.dim)])))
    y = (rng.random((chains, OMEGA.dim)) < p[np.arange(chains) % 2]).astype(float)
    base = Base.of(p, np.ones(OMEGA.dim, dtype=bool))
    q = np.exp(base.log_density(states))
    np.testing.assert_allclose(q, np.prod(np.where(states[:, None] == 1, p, 1 - p), axis=2).mean(axis=1))
    first = MODEL.log_f(theta, y, (np.tile(X, (chains, 1)),)) - base.log_density(y)
    last, log_w = sampler.anneal(y, base, np.linspace(0, 1, 6), rng)
    w = np.exp(first + log_w)
    assert abs(np.log(w.mean()) - log_z) < 4 * w.std() / w.mean() / np.sqrt(chains)
    assert w.std() / w.mean() < 0.5 * np.std(np.exp(first)) / np.mean(np.exp(first))
    assert set(np.unique(last)) == {0.0, 1.0}


def test_changes_of_the_mixture_that_annealing_begins_from() -> None:
    from unnorm.models.base_kernels import base_change, log_sum

    rng, d = np.random.default_rng(4), 5
    base = Base.of(rng.uniform(0.1, 0.9, (3, d)), np.array([True, True, False, True, True]))
    y = rng.integers(0, 2, (1, d)).astype(float)
    y[0, 2] = 0.0
    parts, moved = base.components(y)[0], np.empty(3)
    for i in range(d):
        other = y.copy()
        other[0, i] = 1 - other[0, i]
        change = base_change(parts, log_sum(parts), base.log_odds, i, 1.0 - 2.0 * y[0, i], moved)
        assert change == pytest.approx((base.log_density(other) - base.log_density(y))[0])
        np.testing.assert_allclose(moved, base.components(other)[0])
