"""Anchored constants: the score has mean zero at the truth, and with many points its information is Fisher's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.models.normalisers import Layout
from unnorm.objectives.anchor import model_anchor
from unnorm.objectives.likelihood import LOGISTIC, RowLikelihood
from unnorm.objectives.row_problem import RowProblem
from unnorm.objectives.rows import ArrayRows, Rows
from unnorm.objectives.scores import Drawn

OMEGA = un.Interval(-1, 1)
TRUTH = np.array([-2.0, 12.0])
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), OMEGA)
CONTEXTS = np.array([-0.9, -0.3, 0.2, 0.75])


def _log_density(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """log p(y|x) at the truth, its integral by a rule of its own."""
    f = lambda at: TRUTH[0] * at - 0.5 * TRUTH[1] * (at - x[:, None]) ** 2  # noqa: E731
    grid = np.linspace(-1, 1, 20_001)
    values = np.exp(f(grid))
    total = (values.sum(axis=1) - 0.5 * (values[:, 0] + values[:, -1])) * (grid[1] - grid[0])
    return f(y) - np.log(total)[:, None]


def _population(k: float) -> tuple[RowProblem, np.ndarray]:
    """Σ over contexts of E over y ~ p(·|x) and of k times E over q: rows are the nodes of a rule, weighted."""
    nodes, w = np.polynomial.legendre.leggauss(80)
    n = len(CONTEXTS)
    obs = un.transitions(np.column_stack([CONTEXTS, np.zeros(n)]).ravel())
    obs = obs.take(np.flatnonzero(np.isin(obs.context["y_prev"], CONTEXTS)))
    p = np.exp(_log_density(np.tile(nodes, (n, 1)), CONTEXTS)) * w
    y = np.tile(np.concatenate([nodes, nodes]), n)[:, None]
    at = np.repeat(np.arange(n), 2 * len(nodes))
    data = np.tile(np.repeat([True, False], len(nodes)), n)
    q = np.full((n, len(nodes)), 0.5)
    weight = np.concatenate([p, k * q * w], axis=1).ravel()
    offset = np.full(len(y), -np.log(k * 0.5))
    rows = Rows(y, at, data, RowLikelihood(LOGISTIC, np.where(data, weight, 0.0), weight), offset)
    problem = RowProblem(
        TOY, obs, ArrayRows(rows, shared=False), Layout(np.zeros(n, dtype=int), 1), Drawn.NONE,
        anchor=model_anchor(TOY, obs).finer(TRUTH, 2.0),
    )  # fmt: skip
    return problem, CONTEXTS


@pytest.mark.parametrize("k", [1.0, 5.0, 50.0])
def test_the_score_has_mean_zero_at_the_truth(k: float) -> None:
    problem, _ = _population(k)
    np.testing.assert_allclose(problem.nu_at(TRUTH), 0.0, atol=1e-8)  # δ = 0
    np.testing.assert_allclose(problem.derivatives(TRUTH).gradient, 0.0, atol=1e-7)
    elsewhere = problem.derivatives(TRUTH + np.array([0.5, 0.0])).gradient
    assert np.abs(elsewhere).max() > 0.05


def test_smoothed_constants_have_a_score_that_is_not() -> None:
    """The same rows with one constant for all contexts: the gradient at the truth is not zero."""
    problem, _ = _population(5.0)
    plain: Any = RowProblem(TOY, problem.obs, problem.source, problem.layout, Drawn.NONE)
    assert np.abs(plain.derivatives(TRUTH).gradient).max() > 0.01


def test_with_many_points_the_information_is_fishers() -> None:
    nodes, w = np.polynomial.legendre.leggauss(80)
    fisher = np.zeros((2, 2))
    for x, row in zip(CONTEXTS, np.exp(_log_density(np.tile(nodes, (4, 1)), CONTEXTS)) * w):
        s = np.stack([nodes, -0.5 * (nodes - x) ** 2])
        mean = s @ row
        fisher += (s * row) @ s.T - np.outer(mean, mean)
    many, few = (_population(k)[0].derivatives(TRUTH).information for k in (1e6, 2.0))
    np.testing.assert_allclose(many, fisher, rtol=1e-4)
    assert np.all(np.linalg.eigvalsh(fisher - few) > 0)  # few points tell less
