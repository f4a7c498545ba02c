"""The round that is not made: what it would have moved is foreseen, and is within the bound that rounds end at."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unnorm as un
from unnorm.solvers import anchored, redraw_scores
from unnorm.solvers.anchored import NEARLY, SETTLED, SURELY, still


def test_what_is_left_is_foreseen_from_the_rate_of_moves() -> None:
    assert still(0.05, 0.01, SETTLED) == pytest.approx(SURELY * 0.01 * 0.05)
    assert still(0.05, 0.9, SETTLED) == 0.05  # moves that hardly shrink tell nothing
    assert still(1.01 * NEARLY * SETTLED, 1e-9, SETTLED) > SETTLED  # nor one that is large
    assert still(0.05, np.inf, SETTLED) == 0.05


@pytest.fixture(scope="module")
def problem():
    obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    model = un.Additive("s(step, k=8) + s(angle, bs='cc', k=8)", un.Box((0, 800), (0, 600)), y_down=True)
    one = obs.take(obs.group["subject"] == 3)
    return un.Logistic(un.Uniform(), per_point=10).additive(model, one, un.Anchored(), 1)


def test_rounds_to_the_end_move_no_estimate_by_more_than_they_may(problem, monkeypatch) -> None:
    found = un.Smoothing(reference_error=False).solve_rows(problem)
    monkeypatch.setattr(anchored, "still", lambda move, rate, least: move)
    whole = un.Smoothing(reference_error=False).solve_rows(problem)
    se = np.sqrt(np.diag(whole.terms.gam.smoothed.Vp))
    assert found.iterations < whole.iterations
    assert np.max(np.abs(found.terms.beta - whole.terms.beta) / se) < SETTLED


def test_pieces_of_the_rows_give_the_same_sums(problem, monkeypatch) -> None:
    scores = un.Smoothing().solve_rows(problem).scores
    rows = problem.redraw(0, 1.0).whole()
    fresh = scores.redraw.sums.__self__._fresh
    at_once = fresh(rows)
    monkeypatch.setattr(redraw_scores, "PIECE", 997)
    np.testing.assert_allclose(fresh(rows), at_once, rtol=1e-9, atol=1e-9 * np.abs(at_once).max())


def test_rounds_that_did_not_settle_say_so(monkeypatch) -> None:
    """Not that the criterion was at its optimum, as it was in the last of them."""
    monkeypatch.setattr("unnorm.solvers.anchored.MOST_ROUNDS", 2)
    walk = np.abs(np.cumsum(0.15 * np.random.default_rng(1).standard_normal((200, 2)), axis=0)) % 1.0
    model = un.Additive("s(step, k=8)", un.Box((0, 1), (0, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = un.fit(model, un.transitions(walk), un.Logistic(un.Uniform(), per_point=5), rng=2)
    assert not fit.converged
    assert fit.solution is not None
    assert fit.solution.reason == "the constants still moved after 2 linearisations"
