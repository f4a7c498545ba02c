"""What every reference promises: it integrates to one, its points follow its density, and it can be written down.

Each check takes one `Example`; the generic tests run them over the registry.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference_cases import transitions
from scipy.stats import qmc

from unnorm._base.numerics import x64
from unnorm.errors import CombinationError
from unnorm.references import BoundReference, Example, from_dict

CONTEXTS = (0, 7, 31)


def bound(example: Example):
    obs = transitions(example.domain, lags=example.lags)
    return obs, example.reference.bind(example.domain, obs)


def moments(y, most):
    """First and second moments and a sine, in units of the largest coordinate: of angles, sin(y)."""
    y = y / most
    return np.column_stack([y, y**2, np.sin(np.pi * y), y[:, :1] * y[:, -1:]])


def density_integrates_to_one(example: Example) -> None:
    obs, q = bound(example)
    rule = example.domain.quadrature(example.order)
    for t in CONTEXTS:
        with np.errstate(divide="ignore"):
            total = rule.weights @ np.exp(q.log_density(rule.points, obs, np.full(len(rule.points), t)))
        assert total == pytest.approx(1.0, abs=example.tolerance), t


def points_follow_the_density(example: Example) -> None:
    """Moments of IID draws, and of mapped Sobol points, against quadrature."""
    obs, q = bound(example)
    domain, rule = example.domain, example.domain.quadrature(example.order)
    size = 2**13
    for t in CONTEXTS[:2]:
        with np.errstate(divide="ignore"):
            w = rule.weights * np.exp(q.log_density(rule.points, obs, np.full(len(rule.points), t)))
        most = np.abs(rule.points).max()
        g = moments(rule.points, most)
        mean = w @ g
        sd = np.sqrt(np.maximum(w @ (g - mean) ** 2, 0.0))
        each = np.full(size, t)
        slack = 20.0 * example.tolerance * np.abs(g).max(axis=0) + 1e-12

        draws = q.sample(obs, each, np.random.default_rng(5))
        assert draws.shape == (size, domain.dim)
        assert domain.contains(draws).all()
        assert (np.abs(moments(draws, most).mean(axis=0) - mean) < 4.5 * sd / np.sqrt(size) + slack).all()
        assert np.array_equal(draws, q.sample(obs, each, np.random.default_rng(5)))

        if q.cube_dim is not None:
            mapped = q.from_unit(sobol(q.cube_dim), obs, each)
            assert domain.contains(mapped).all()
            assert (np.abs(moments(mapped, most).mean(axis=0) - mean) < 3.0 * sd / np.sqrt(size) + slack).all()
            assert np.array_equal(mapped, q.from_unit(sobol(q.cube_dim), obs, each))


def sobol(d: int) -> np.ndarray:
    return np.clip(qmc.Sobol(d, rng=np.random.default_rng(6)).random_base2(13), 1e-12, 1 - 1e-12)


def in_jax_it_is_the_same_law(example: Example) -> None:
    """`traceable`: densities to rounding error; Sobol points with the moments that NumPy's have."""
    obs, q = bound(example)
    traced = q.traceable(obs)
    if traced is None:
        return
    import jax
    import jax.numpy as jnp

    t = np.array(CONTEXTS)
    with x64():
        params = jax.tree.map(jnp.asarray, traced.params)
        rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[t], traced.rows)
        u = np.broadcast_to(sobol(traced.cube_dim), (3, 2**13, traced.cube_dim))
        y = np.asarray(traced.law.from_unit(params, rows, jnp.asarray(u)))
        log_q = np.asarray(traced.law.log_density(params, rows, jnp.asarray(y)))
        back = np.asarray(traced.law.log_density_back(params, rows, jnp.asarray(obs.outcome[t][:, None]), y))
    assert y.shape == (3, 2**13, example.domain.dim)
    for i, one in enumerate(t):
        assert example.domain.contains(y[i]).all()
        each = np.full(len(y[i]), one)
        assert log_q[i] == pytest.approx(q.log_density(y[i], obs, each), abs=1e-9)
        if q.given == "outcome":
            assert np.broadcast_to(back[i], len(each)) == pytest.approx(q.log_density_back(y[i], obs, each), abs=1e-9)
        most = np.abs(y[i]).max()
        host = moments(q.sample(obs, each, np.random.default_rng(8)), most)
        assert moments(y[i], most).mean(axis=0) == pytest.approx(host.mean(axis=0), abs=0.06)


def written_down_and_read_back(example: Example) -> None:
    """A bound reference becomes JSON with every parameter filled in; read back, it is the same law on any data."""
    obs, q = bound(example)
    description = json.loads(json.dumps(q.to_dict()))
    if not example.reference.saved:
        with pytest.raises(CombinationError, match="not saved: make it again"):
            from_dict(description)
        return
    read = from_dict(description).bind(example.domain, transitions(example.domain, n=25, lags=example.lags, seed=9))
    t = np.arange(20)
    y = q.sample(obs, t, np.random.default_rng(1))
    assert read.log_density(y, obs, t) == pytest.approx(q.log_density(y, obs, t), rel=1e-9)
    assert read.given == q.given
    assert read.describe() == q.describe() or "nodes" in q.describe()


def contexts_are_told_apart(example: Example) -> None:
    """q(·|x_t) depends on t where it says so, whichever rows are asked for together."""
    obs, q = bound(example)
    y = q.sample(obs, np.arange(obs.n), np.random.default_rng(2))
    together = q.log_density(np.repeat(y, 3, axis=0), obs, np.repeat(np.arange(obs.n), 3))[::3]
    apart = np.array([q.log_density(y[[t]], obs, np.array([t]))[0] for t in range(obs.n)])
    assert together == pytest.approx(apart, rel=1e-10)
    elsewhere = q.log_density(y, obs, np.roll(np.arange(obs.n), 1))
    if q.given == "nothing":
        assert elsewhere == pytest.approx(together, rel=1e-12)


def it_describes_itself(example: Example) -> None:
    obs, q = bound(example)
    assert isinstance(q, BoundReference)
    assert type(example.reference).takes(example.domain)
    assert q.describe()
    assert len(repr(q)) < 600
    assert "\n" not in repr(q)
    assert q.domain is example.domain
    assert type(q.reference) is type(example.reference) or example.reference.chooses
    if not q.adapts:
        with pytest.raises(NotImplementedError):
            q.refreshed(obs.outcome, np.ones(obs.n), obs)


CHECKS = (
    density_integrates_to_one,
    points_follow_the_density,
    in_jax_it_is_the_same_law,
    written_down_and_read_back,
    contexts_are_told_apart,
    it_describes_itself,
)
