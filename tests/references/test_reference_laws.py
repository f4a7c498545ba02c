"""What every reference promises: it integrates to one, its points follow its density, and it can be written down."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference_cases import CASES, transitions
from scipy.stats import qmc

from unnorm.references import from_dict

CONTEXTS = (0, 7, 31)


def bound(name):
    case = CASES[name]
    domain = case.domain()
    obs = transitions(domain, lags=case.lags)
    return case, domain, obs, case.reference.bind(domain, obs)


def moments(y, most):
    """First and second moments and a sine, in units of the largest coordinate: of angles, sin(y)."""
    y = y / most
    return np.column_stack([y, y**2, np.sin(np.pi * y), y[:, :1] * y[:, -1:]])


@pytest.mark.parametrize("name", CASES)
def test_density_integrates_to_one(name):
    case, domain, obs, q = bound(name)
    rule = domain.quadrature(case.order)
    for t in CONTEXTS:
        at = np.full(len(rule.points), t)
        with np.errstate(divide="ignore"):
            total = rule.weights @ np.exp(q.log_density(rule.points, obs, at))
        assert total == pytest.approx(1.0, abs=case.tolerance), t


@pytest.mark.parametrize("name", CASES)
def test_points_follow_the_density(name):
    """Moments of IID draws, and of mapped Sobol points, against quadrature."""
    case, domain, obs, q = bound(name)
    rule = domain.quadrature(case.order)
    size = 2**13
    for t in CONTEXTS[:2]:
        with np.errstate(divide="ignore"):
            w = rule.weights * np.exp(q.log_density(rule.points, obs, np.full(len(rule.points), t)))
        most = np.abs(rule.points).max()
        g = moments(rule.points, most)
        mean = w @ g
        sd = np.sqrt(np.maximum(w @ (g - mean) ** 2, 0.0))
        at = np.full(size, t)
        slack = 20.0 * case.tolerance * np.abs(g).max(axis=0) + 1e-12

        draws = q.sample(obs, at, np.random.default_rng(5))
        assert draws.shape == (size, domain.dim)
        assert domain.contains(draws).all()
        assert (np.abs(moments(draws, most).mean(axis=0) - mean) < 4.5 * sd / np.sqrt(size) + slack).all()
        again = q.sample(obs, at, np.random.default_rng(5))
        assert np.array_equal(draws, again)

        if q.cube_dim is not None:
            u = np.clip(qmc.Sobol(q.cube_dim, rng=np.random.default_rng(6)).random_base2(13), 1e-12, 1 - 1e-12)
            mapped = q.from_unit(u.copy(), obs, at)
            assert domain.contains(mapped).all()
            assert (np.abs(moments(mapped, most).mean(axis=0) - mean) < 3.0 * sd / np.sqrt(size) + slack).all()
            assert np.array_equal(mapped, q.from_unit(u.copy(), obs, at))


@pytest.mark.parametrize("name", [name for name in CASES if name != "custom"])
def test_written_down_and_read_back(name):
    """A bound reference becomes JSON with every parameter filled in; read back, it is the same law on any data."""
    case, domain, obs, q = bound(name)
    other = transitions(domain, n=25, lags=case.lags, seed=9)
    read = from_dict(json.loads(json.dumps(q.to_dict()))).bind(domain, other)
    y, at = q.sample(obs, np.arange(20), np.random.default_rng(1)), np.arange(20)
    assert read.log_density(y, obs, at) == pytest.approx(q.log_density(y, obs, at), rel=1e-9)
    assert read.given == q.given
    assert read.describe() == q.describe() or "nodes" in q.describe()
    assert q.describe()


@pytest.mark.parametrize("name", CASES)
def test_contexts_are_told_apart(name):
    """q(·|x_t) depends on t just where it says so, whichever rows are asked for together."""
    _, _, obs, q = bound(name)
    y = q.sample(obs, np.arange(obs.n), np.random.default_rng(2))
    together = q.log_density(np.repeat(y, 3, axis=0), obs, np.repeat(np.arange(obs.n), 3))[::3]
    apart = np.array([q.log_density(y[[t]], obs, np.array([t]))[0] for t in range(obs.n)])
    assert together == pytest.approx(apart, rel=1e-10)
    elsewhere = q.log_density(y, obs, np.roll(np.arange(obs.n), 1))
    if q.given == "nothing":
        assert elsewhere == pytest.approx(together, rel=1e-12)
    elif name not in ("custom",):
        assert np.abs(np.exp(elsewhere) - np.exp(together)).max() > 0.0
