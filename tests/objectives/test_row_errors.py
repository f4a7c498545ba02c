"""Errors of chosen parameters of NCE without a matrix of p × p: equal to those with one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError
from unnorm.objectives import row_problem


def _observations(weighted: bool) -> un.Observations:
    model, rng = un.Ising(6), np.random.default_rng(1)
    J = np.triu(rng.normal(0, 0.5, (6, 6)), 1)
    y = model.sampler(model.from_parts(rng.normal(-0.5, 0.3, 6), J + J.T), ()).sweep(np.zeros((900, 6)), 60, rng)
    return un.iid(y, weight=rng.integers(1, 4, 900) if weighted else None)


def _both(monkeypatch, obs: un.Observations, objective, **options) -> tuple[un.Fit, un.Fit]:
    whole = un.fit(un.Ising(6), obs, objective, solver=un.LBFGS(1e-13), rng=2, **options)
    monkeypatch.setattr(row_problem, "MANY", 0)  # as if 21 parameters were too many for a matrix
    return whole, un.fit(un.Ising(6), obs, objective, solver=un.LBFGS(1e-13), rng=2, **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_iid_points(monkeypatch, weighted: bool) -> None:
    """H⁻¹ (Σ data + Σ points) H⁻¹ by hand, from the table of statistics."""
    obs, objective = _observations(weighted), un.Logistic(un.ProductBernoulli(), total=3000, points=un.IID())
    whole, some = _both(monkeypatch, obs, objective)
    names = ["h[1]", "J[1,2]", "J[4,6]"]
    index = [whole.names.index(name) for name in names]
    assert some.solution is not None
    assert some.solution.chosen is not None
    found = some.solution.chosen.empirical(np.array(index))
    robust = whole.errors.robust.covariance[np.ix_(index, index)]  # pyright: ignore
    assert found == pytest.approx(robust, rel=5e-3, abs=5e-5)
    assert np.sqrt(np.diag(found)) == pytest.approx(whole.se[index], rel=0.1)


def test_even_points_count_for_less(monkeypatch) -> None:
    """A Sobol net of 2¹² points: errors between those of the data alone and those of IID points."""
    obs = _observations(False)
    net, iid = (un.Logistic(un.ProductBernoulli(), total=4096, points=points) for points in (un.Sobol(), un.IID()))
    whole, some = _both(monkeypatch, obs, net)
    index = np.arange(6, 21)
    assert some.solution is not None
    assert some.solution.chosen is not None
    V = np.diag(some.solution.chosen.empirical(index))
    _, plain = _both(monkeypatch, obs, iid)
    assert plain.solution is not None
    assert plain.solution.chosen is not None
    assert np.mean(V / np.diag(plain.solution.chosen.empirical(index))) < 1.0
    assert np.mean(V) == pytest.approx(np.mean(whole.se[index] ** 2), rel=0.15)


def test_contexts(monkeypatch) -> None:
    """Transitions, each with points and a constant of its own."""
    model, rng = un.Ising(4, lag=1), np.random.default_rng(3)
    y = rng.integers(0, 2, (600, 4)).astype(float)
    obs = un.transitions(y)
    objective = un.Logistic(un.ProductBernoulli(), per_point=40, points=un.IID())
    whole = un.fit(model, obs, objective, normaliser=un.PerContext(), solver=un.LBFGS(1e-13), rng=2)
    monkeypatch.setattr(row_problem, "MANY", 0)
    some = un.fit(model, obs, objective, normaliser=un.PerContext(), solver=un.LBFGS(1e-13), rng=2)
    index = np.arange(4, 16)
    assert some.solution is not None
    assert some.solution.chosen is not None
    V = some.solution.chosen.empirical(index)
    assert np.sqrt(np.diag(V)) == pytest.approx(whole.se[index], rel=0.12)


def test_no_simulated_errors(monkeypatch) -> None:
    objective = un.Logistic(un.ProductBernoulli(), total=3000, points=un.IID())
    _, some = _both(monkeypatch, _observations(False), objective)
    with pytest.raises(InputError, match="Leave simulated out"):
        some.errors_of(["h[1]"], simulated=500)


def test_clusters(monkeypatch) -> None:
    """Sums of scores over clusters of 30 observations, the points' part besides."""
    plain = _observations(True)
    obs = replace(plain, group={"g": np.arange(900) % 30})
    whole, some = _both(monkeypatch, obs, un.Logistic(un.ProductBernoulli(), total=3000, points=un.IID(), cluster="g"))
    table, full = replace(some, errors=None).errors_of(["h[1]", "J[4,6]"]), whole.tidy(robust=True)
    at = [whole.names.index(name) for name in ("h[1]", "J[4,6]")]
    assert table["se"] == pytest.approx(full["se"][at], rel=5e-3)
    assert table["upper"] == pytest.approx(full["upper"][at], abs=0.02)
