"""The adaptive reference: normalised, sampled as its density says, the same on the host and in JAX, and saved whole."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.errors import CombinationError, InputError
from unnorm.references import GaussianMixture, from_dict

BOX = un.Box((-1, 1), (0, 3))


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal((0.9, 1.0), (0.3, 0.5), (800, 2)), rng.normal((-0.5, 2.5), 0.2, (400, 2))])
    return un.iid(y[BOX.contains(y)])


@pytest.mark.parametrize("far", [False, True])
def test_density_and_draws_agree(obs: un.Observations, far: bool) -> None:
    spec = GaussianMixture(4)
    if far:  # centres outside the box: the truncation's tails
        spec = GaussianMixture(weights=[0.3, 0.7], means=[[2.5, 1.0], [-2.0, -2.0]], sds=[[0.4, 0.6], [0.5, 0.7]])
    q = spec.bind(BOX, obs)
    rule = BOX.quadrature(150)
    at = np.zeros(len(rule.points), dtype=int)
    density = np.exp(q.log_density(rule.points, obs, at))
    assert rule.weights @ density == pytest.approx(1.0, abs=1e-5)
    y = q.sample(obs, np.zeros(40_000, dtype=int), np.random.default_rng(1))
    assert BOX.contains(y).all()
    for j in range(2):
        mean = rule.weights @ (density * rule.points[:, j])
        sd = np.sqrt(rule.weights @ (density * (rule.points[:, j] - mean) ** 2))
        assert abs(y[:, j].mean() - mean) < 4 * sd / 200
    with x64():
        t = q.traceable(obs)
        assert t is not None
        u = np.random.default_rng(2).random((1, 500, 3))
        np.testing.assert_allclose(
            np.asarray(t.law.from_unit(t.params, (), u))[0], q.from_unit(u[0], obs, at[:500]), atol=1e-9
        )
        inside = np.asarray(t.law.log_density(t.params, (), y[None, :500]))[0]
    np.testing.assert_allclose(inside, q.log_density(y[:500], obs, at[:500]), rtol=1e-9)


def test_em_finds_the_parts_and_raises_the_likelihood(obs: un.Observations) -> None:
    q = GaussianMixture(2, scale=1.0).bind(BOX, obs)
    near = np.min(np.linalg.norm(q.m - np.array([-0.5, 2.5]), axis=1))
    assert near < 0.1
    one = GaussianMixture(1, scale=1.0).bind(BOX, obs)
    rows = np.arange(obs.n)
    gain = q.log_density(obs.outcome, obs, rows).mean() - one.log_density(obs.outcome, obs, rows).mean()
    assert gain > 0.2
    again = from_dict(json.loads(json.dumps(q.to_dict()))).bind(BOX, obs)
    np.testing.assert_array_equal(again.log_density(obs.outcome, obs, rows), q.log_density(obs.outcome, obs, rows))


def test_a_saved_fit_with_it_comes_back(obs: un.Observations, tmp_path: Path) -> None:
    model = un.ExponentialFamily(lambda y: (y[0], y[1]), ("a", "b"), BOX)
    fit = un.fit(model, obs, un.Logistic(GaussianMixture(2), total=2 * obs.n), rng=1)
    fit.save(tmp_path / "fit")
    again = un.load(tmp_path / "fit", model=model)
    np.testing.assert_array_equal(again.estimate, fit.estimate)
    assert from_dict(again.settings["objective"]["reference"]) == GaussianMixture(2)


def test_refreshing_moves_towards_the_weights(obs: un.Observations) -> None:
    q = GaussianMixture(weights=[1.0], means=[[0.0, 1.5]], sds=[[1.0, 1.0]], scale=1.0).bind(BOX, obs)
    rng = np.random.default_rng(3)
    y = q.sample(obs, np.zeros(8000, dtype=int), rng)
    target = -0.5 * np.sum(((y - np.array([0.2, 1.0])) / 0.3) ** 2, axis=1)
    w = np.exp(target - q.log_density(y, obs, np.zeros(8000, dtype=int)))
    new = q.refreshed(y, w / w.max(), obs)
    middle = 0.5 * np.array([0.2, 1.0]) + 0.5 * obs.outcome.mean(axis=0)  # half model, half data
    np.testing.assert_allclose(new.m[0], middle, atol=0.08)


def test_one_dimension_against_the_normal() -> None:
    obs = un.iid(np.zeros(10))
    q = GaussianMixture(weights=[1.0], means=[[0.3]], sds=[[0.2]], defensive=1e-9).bind(un.Interval(-5, 5), obs)
    y = q.sample(obs, np.zeros(5000, dtype=int), np.random.default_rng(0))[:, 0]
    assert kstest((y - 0.3) / 0.2, "norm").pvalue > 1e-3


def test_mistakes_are_named(obs: un.Observations) -> None:
    with pytest.raises(InputError, match="all of weights"):
        GaussianMixture(weights=[1.0])
    with pytest.raises(InputError, match="defensive"):
        GaussianMixture(defensive=0.0)
    with pytest.raises(CombinationError, match="interval or a box"):
        GaussianMixture().bind(un.Circle(), obs)
