"""Alias tables: the law they stand for, exactly; and the draws that a compiled loop makes of it."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unnorm as un
from unnorm.references.alias import alias_table
from unnorm.solvers.stochastic.step import Dtype, precision


@given(st.lists(st.floats(1e-12, 1e6), min_size=1, max_size=60))
def test_the_table_stands_for_the_law(weights: list[float]) -> None:
    p = np.array(weights) / np.sum(weights)
    cut, alias = alias_table(p)
    assert np.all((cut >= 0) & (cut <= 1))
    back = (cut + np.bincount(alias, 1.0 - cut, len(p))) / len(p)
    np.testing.assert_allclose(back, p, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_draws_have_the_frequencies_of_the_marginal(dtype: Dtype) -> None:
    """Zipf's law on 2,000 words, in float32 as well: the rarest words too."""
    rng = np.random.default_rng(1)
    p = 1.0 / np.arange(1, 2001)
    words = rng.choice(2000, size=5000, p=p / p.sum()).astype(float)
    obs = un.iid(words)
    bound = un.Marginal().bind(un.FiniteSet(range(2000)), obs)
    inside = bound.traceable(obs)
    assert inside is not None
    with precision(dtype):
        params = {name: jnp.asarray(value) for name, value in inside.params.items()}
        u = jnp.asarray(rng.random((400, 10_000, 2)), dtype=dtype)
        y = np.asarray(inside.law.from_unit(params, (), u)).ravel().astype(int)
        q = np.exp(np.asarray(inside.law.log_density(params, (), np.arange(2000.0)[:, None])))
    np.testing.assert_allclose(
        np.log(q), bound.log_density(np.arange(2000.0)[:, None], obs, np.zeros(2000, int)), rtol=1e-6
    )
    counts = np.bincount(y, minlength=2000)
    for part in (np.arange(2000) < 20, q <= np.quantile(q, 0.25), np.ones(2000, bool)):
        expected = y.size * q[part]
        chi2 = float(np.sum((counts[part] - expected) ** 2 / expected))
        assert abs(chi2 - part.sum()) < 5 * np.sqrt(2 * part.sum())


def test_few_states_or_states_that_are_not_numbered_are_drawn_by_numpy() -> None:
    for values in (range(50), np.arange(2000.0) + 1):
        obs = un.iid(np.asarray(list(values), dtype=float))
        assert un.Marginal().bind(un.FiniteSet(values), obs).traceable(obs) is None
