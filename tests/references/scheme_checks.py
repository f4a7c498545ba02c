"""What every point scheme promises. Each check takes one scheme; the generic tests run them over the registry."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference_cases import interval, screen, star, transitions

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.references import SCHEMES, Gaussian, Mixture, PointScheme, Uniform


def every_context_gets_its_points(scheme: PointScheme) -> None:
    omega = star()
    obs = transitions(omega)
    q = Mixture((1, Uniform()), (2, Gaussian(around="context", cov=0.3))).bind(omega, obs)
    for k in (3, 7):
        drawn = scheme.draw(q, obs, per_point=k, rng=1)
        assert np.array_equal(drawn.t, np.repeat(np.arange(obs.n), k))
        assert omega.contains(drawn.outcome).all()
        sizes = np.bincount(drawn.randomisation)[1:]
        assert len(sizes) == scheme.sets
        assert sizes.sum() == obs.n * k
        assert np.ptp(sizes) <= obs.n  # k_r differ by one at most
        assert np.array_equal(drawn.randomisation.reshape(-1, k), np.tile(drawn.randomisation[:k], (obs.n, 1)))
        assert np.array_equal(drawn.outcome, scheme.draw(q, obs, per_point=k, rng=1).outcome)
        assert not np.array_equal(drawn.outcome, scheme.draw(q, obs, per_point=k, rng=2).outcome)
        assert len(repr(drawn)) < 100


def iid_data_share_their_points(scheme: PointScheme) -> None:
    omega = screen()
    obs = un.Observations("iid", omega.uniform(30, 0), ("x", "y"))
    drawn = scheme.draw(Uniform().bind(omega, obs), obs, total=1001, rng=1)
    assert drawn.outcome.shape == (1001, 2)
    assert (drawn.t == -1).all()
    assert np.array_equal(np.unique(drawn.randomisation), np.arange(1, scheme.sets + 1))


def points_are_unbiased(scheme: PointScheme) -> None:
    """The mean over many randomisations is the integral, to Monte Carlo error, at every context and place in it."""
    omega = interval()
    obs = transitions(omega, n=8)
    q = Uniform().bind(omega, obs)
    draws = np.array([scheme.draw(q, obs, per_point=6, rng=seed).outcome.reshape(8, 6) for seed in range(600)])
    per_context = np.exp(draws).mean(axis=2)
    error = per_context.mean(axis=0) - np.sinh(1.0)
    assert (np.abs(error) < 4.5 * per_context.std(axis=0) / np.sqrt(600) + 1e-12).all()
    # each single point is uniform on average over the strata or shifts of its context
    assert np.quantile(draws, [0.1, 0.5, 0.9]) == pytest.approx([-0.8, 0.0, 0.8], abs=0.03)


def fresh_points_in_jax_are_unbiased(scheme: PointScheme) -> None:
    """`fresh`: from uniform numbers, points whose sums have the integral as their mean, at every step anew."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(4)
    for b, k, d in ((1, 16, 1), (4, 6, 1), (3, 5, 2)):
        fresh = scheme.fresh(b, k, d, False, np.float64)
        with x64():
            fixed = jax.tree.map(jnp.asarray, fresh.fixed)
            u = np.stack([np.asarray(fresh.make(jnp.asarray(rng.random(fresh.need)), fixed)) for _ in range(300)])
        assert u.shape == (300, b, k, d)
        assert ((u >= 0) & (u <= 1)).all()
        value = np.exp(u.sum(axis=3)).mean(axis=2)
        error = value.mean(axis=0) - np.expm1(1.0) ** d
        assert (np.abs(error) < 4.5 * value.std(axis=0) / np.sqrt(300) + 1e-9).all()


def descriptions_pass_through_json(scheme: PointScheme) -> None:
    assert SCHEMES.read(json.loads(json.dumps(scheme.to_dict()))) == scheme


CHECKS = (
    every_context_gets_its_points,
    iid_data_share_their_points,
    points_are_unbiased,
    fresh_points_in_jax_are_unbiased,
    descriptions_pass_through_json,
)
