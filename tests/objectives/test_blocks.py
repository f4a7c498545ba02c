"""Rows in blocks: one block or many, kept or evaluated again, give the same numbers; no block splits a context."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.inference.sandwich import error_parts
from unnorm.objectives import row_problem
from unnorm.objectives.rows import ArrayRows
from unnorm.solvers import Newton

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
FLAT = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 1))
ENERGY = un.Energy(
    lambda theta, y, x: theta["a"] * y - 0.5 * theta["b"] * (y - x) ** 2, {"a": 0.1, "b": 1.0}, TOY.domain
)
CHAIN = un.datasets.toy_chain(120, 0.5, 5.0, rng=1)
HERD = {"herd": np.arange(120) % 8}
CASES: dict[str, tuple[Any, Any, Any]] = {
    "one ν": (FLAT, un.Logistic(un.Uniform(), total=700), un.Constant()),
    "one ν, importance": (FLAT, un.Importance(un.Uniform(), total=700, points=un.IID()), un.Constant()),
    "known ν": (FLAT, un.Logistic(un.Uniform(), total=700, points=un.IID()), un.Fixed(-0.5)),
    "a ν each": (TOY, un.Logistic(un.Uniform(), per_point=7), un.PerContext()),
    "a ν each, energy": (ENERGY, un.Logistic(un.Uniform(), per_point=7), un.PerContext()),
    "several sets": (TOY, un.Logistic(un.Uniform(), per_point=8, points=un.Lattice(randomisations=4)), un.Constant()),
    "one point each": (TOY, un.Logistic(un.Uniform(), per_point=1, points=un.IID()), un.Constant()),
    "ranking": (TOY, un.Ranking(un.Uniform(), per_point=7), un.PerContext()),
    "conditional": (TOY, un.ConditionalNCE(un.Uniform(), per_point=7), un.PerContext()),
}


def _problem(name: str, block: int | None) -> Any:
    model, objective, normaliser = CASES[name]
    obs = un.iid(CHAIN[1:]) if model is FLAT else un.transitions(CHAIN)
    obs = dataclasses.replace(obs, weight=np.random.default_rng(0).integers(1, 4, obs.n).astype(float))
    problem = objective.bind(model, obs, normaliser, 3)
    if block is None:
        return problem
    return dataclasses.replace(problem, source=dataclasses.replace(problem.source, block=block))


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "evaluated again"])
@pytest.mark.parametrize("name", CASES)
def test_many_blocks_are_one(name: str, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _problem(name, None)
    if not kept:
        monkeypatch.setattr(row_problem, "KEPT", 0)
        monkeypatch.setattr("unnorm.objectives.ranking.KEPT", 0)
    pieces = _problem(name, 40)
    assert len(list(pieces.source.blocks())) > 5
    ends = [Newton().climb(problem) for problem in (whole, pieces)]
    (_, a), (_, b) = ends
    np.testing.assert_allclose(b.theta, a.theta, rtol=1e-9)
    np.testing.assert_allclose(pieces.constants(a.theta).nu, whole.constants(a.theta).nu, rtol=1e-9, atol=1e-12)
    errors = [error_parts(problem.scores(a.theta), HERD["herd"]) for problem in (whole, pieces)]
    for part in ("total", "sampling", "reference"):
        one, many = (getattr(each, part) for each in errors)
        np.testing.assert_allclose(many, one, rtol=1e-8, atol=1e-10 * np.abs(one).max(), err_msg=part)
    robust = [each.robust.covariance for each in errors]
    np.testing.assert_allclose(robust[1], robust[0], rtol=1e-8)
    plain = [error_parts(problem.scores(a.theta)).robust.covariance for problem in (whole, pieces)]
    np.testing.assert_allclose(plain[1], plain[0], rtol=1e-8)


@pytest.mark.parametrize("block", [1, 5, 6, 7, 13, 600])
def test_blocks_are_whole_contexts_in_order(block: int) -> None:
    """Eight rows in each context: a block has whole contexts, at most `block` rows where one fits, and none twice."""
    source = _problem("ranking", None).source
    assert isinstance(source, ArrayRows)
    rows = source.rows
    parts = list(dataclasses.replace(source, block=block).blocks())
    np.testing.assert_array_equal(np.concatenate([part.at for part in parts]), rows.at)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), rows.y)
    for before, after in itertools.pairwise(parts):
        assert before.at[-1] != after.at[0]
    assert all(len(part) <= max(block, 8) for part in parts)
