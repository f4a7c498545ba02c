"""Scores of Ranking and ConditionalNCE: the jackknife by leaving points out, redraws, weights, clusters, by loops."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax

import unnorm as un
from unnorm.inference.sandwich import error_parts

MODEL = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
THETA = np.array([0.4, 3.0])
N = 9
WEIGHTS = np.array([1.0, 3.0, 2.0, 0.5, 4.0, 1.0, 1.0, 2.0, 5.0])


def _obs(weighted: bool) -> un.Observations:
    once = un.transitions(un.datasets.toy_chain(N, 0.5, 5.0, rng=4))
    return dataclasses.replace(once, weight=WEIGHTS) if weighted else once


def _bound(objective: Any, weighted: bool) -> tuple[Any, list[tuple[np.ndarray, np.ndarray]]]:
    """The scores at THETA; and for each observation d (k + 1,) and s (k + 1, 2), the real point first."""
    obs = _obs(weighted)
    drawn = objective.draw(MODEL, obs, un.PerContext(), np.random.default_rng(1))
    y, x = drawn.outcome[:, 0], obs.previous()[drawn.at, 0]
    s = np.column_stack([y, -0.5 * (y - x) ** 2]).reshape(N, -1, 2)
    scores = objective.bind(MODEL, obs, un.PerContext(), np.random.default_rng(1)).scores(THETA)
    return scores, [(one @ THETA, one) for one in s]


def _ranking(d: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The score of one observation: s_0 − Σ p s."""
    return s[0] - softmax(d) @ s


def _conditional(d: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Σ_j {1 − σ(d_0 − d_j)} (s_0 − s_j)."""
    return expit(d[1:] - d[0]) @ (s[0] - s[1:])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("k", [5, 6])
def test_points_of_ranking_by_leaving_each_out(k, power, weighted) -> None:
    """The jackknife: (k − 1)/k Σ_j (g_(j) − ḡ)(g_(j) − ḡ)ᵀ, g_(j) the score without point j."""
    scores, each = _bound(un.Ranking(un.Uniform(), per_point=k), weighted)
    expected = np.zeros((2, 2))
    for t, (d, s) in enumerate(each):
        without = np.array([_ranking(np.delete(d, j), np.delete(s, j, axis=0)) for j in range(1, k + 1)])
        about = without - without.mean(axis=0)
        expected += (WEIGHTS[t] ** power if weighted else 1.0) * (k - 1) / k * about.T @ about
    np.testing.assert_allclose(scores.points_spread(power), expected, rtol=1e-9)


@pytest.mark.parametrize("power", [1, 2])
def test_points_of_conditional_nce_are_iid_terms_of_a_sum(power) -> None:
    scores, each = _bound(un.ConditionalNCE(un.Uniform(), per_point=4), True)
    expected = np.zeros((2, 2))
    for w, (d, s) in zip(WEIGHTS, each):
        expected += w**power * 4 * np.cov((expit(d[1:] - d[0])[:, None] * (s[0] - s[1:])).T)
    np.testing.assert_allclose(scores.points_spread(power), expected, rtol=1e-9)


@pytest.mark.parametrize(("objective", "k"), [(un.Ranking, 1), (un.Ranking, 4), (un.ConditionalNCE, 1)])
@pytest.mark.parametrize("power", [1, 2])
def test_too_few_points_are_drawn_again(objective, k, power) -> None:
    """One point, or fewer than the jackknife can use: half the squared gap between two redraws, over eight pairs."""
    scores, _ = _bound(objective(un.Uniform(), per_point=k), True)
    score = _ranking if objective is un.Ranking else _conditional
    x = scores.problem.obs.previous()[:, 0]
    each = []
    for i in range(16):
        again = scores.problem.redraw(i)
        y = again.source.whole().y[:, 0].reshape(N, k + 1)
        s = np.stack([y, -0.5 * (y - x[:, None]) ** 2], axis=-1)
        each.append([score(s[t] @ THETA, s[t]) for t in range(N)])
    g = np.array(each)
    gaps = np.concatenate(list(g[::2] - g[1::2]))
    expected = (np.tile(WEIGHTS, 8) ** power * gaps.T) @ gaps / 16
    assert np.all(np.diag(expected) > 0)
    np.testing.assert_allclose(scores.points_spread(power), expected, rtol=1e-9)


@pytest.mark.parametrize("objective", [un.Ranking, un.ConditionalNCE])
def test_information_spread_and_clusters(objective) -> None:
    """−H by differences of the weighted score; Σ1 = −H − Σ_t w Var under the model, or from the scores themselves."""
    scores, each = _bound(objective(un.Uniform(), per_point=5), True)
    score = _ranking if objective is un.Ranking else _conditional
    step, curvature = 1e-5, []
    for j in range(2):
        up, down = (sum(w * score(d + e * s[:, j], s) for w, (d, s) in zip(WEIGHTS, each)) for e in (step, -step))
        curvature.append(-(up - down) / (2 * step))
    np.testing.assert_allclose(scores.information, curvature, rtol=1e-6)
    g = np.array([score(d, s) for d, s in each])
    total = WEIGHTS.sum()
    empirical = total / (total - 1) * (WEIGHTS[:, None] * g).T @ g - scores.points_spread(1)
    np.testing.assert_allclose(scores.empirical_spread(), empirical, rtol=1e-8)
    model = scores.information - scores.points_spread(1)
    np.testing.assert_allclose(scores.data_spread(), model if objective is un.Ranking else empirical, rtol=1e-8)
    label = np.array([0, 0, 1, 2, 1, 2, 2, 0, 1])
    sums = [sum(WEIGHTS[t] * g[t] for t in np.flatnonzero(label == c)) for c in range(3)]
    np.testing.assert_allclose(scores.cluster_sums(label, 3), sums, rtol=1e-8)
    np.testing.assert_allclose(scores.cluster_weights(label, 3), np.bincount(label, WEIGHTS))
    assert scores.weight == total
    zero = dataclasses.replace(_obs(True), weight=np.where(np.arange(N) < 4, 0.0, WEIGHTS))
    assert (
        objective(un.Uniform(), per_point=5).bind(MODEL, zero, un.PerContext(), 1).scores(THETA).weight
        == WEIGHTS[4:].sum()
    )


def test_pairs_of_one_observation_are_no_likelihood() -> None:
    """−H of conditional NCE is k times too small for the variance of the score: from few observations there is none."""
    obs = _obs(False).take(np.arange(2))
    conditional = un.ConditionalNCE(un.Uniform(), per_point=40).bind(MODEL, obs, un.PerContext(), 1)
    assert error_parts(conditional.scores(THETA)) is None
    ranking = un.Ranking(un.Uniform(), per_point=40).bind(MODEL, obs, un.PerContext(), 1)
    assert error_parts(ranking.scores(THETA)) is not None


def test_overlap_counts_weights_as_copies() -> None:
    scores, each = _bound(un.Ranking(un.Uniform(), per_point=5), True)
    ahead = [np.mean(d[0] > d[1:]) for d, _ in each]
    share = [np.exp(d[1:]).sum() ** 2 / (5 * np.sum(np.exp(2 * d[1:]))) for d, _ in each]
    assert scores.overlap() == pytest.approx([np.average(one, weights=WEIGHTS) for one in (ahead, share)])


def test_overlap_counts_ties_by_half() -> None:
    scores, each = _bound(un.Ranking(un.Uniform(), per_point=5), False)
    area, effective = scores.overlap()
    assert area == pytest.approx(np.mean([np.mean(d[0] > d[1:]) for d, _ in each]))
    w = [np.exp(d[1:]) for d, _ in each]
    assert effective == pytest.approx(np.mean([one.sum() ** 2 / (5 * np.sum(one**2)) for one in w]))
    flat = scores.problem.scores(np.zeros(2)).overlap()
    assert flat == pytest.approx((0.5, 1.0))


@pytest.mark.parametrize(("k", "expected"), [(1, 5 * 2.4 / np.sqrt(240)), (4, 5 * 2.4 / np.sqrt(240)), (5, 0.0)])
def test_few_points_may_leave_the_data_less_than_nothing_by_chance(k: int, expected: float) -> None:
    """Where −H and Σ2 are of fewer than five points, their difference is noise of 2.4/√n of V; five sd are let pass."""
    obs = un.transitions(un.datasets.toy_chain(240, 0.5, 5.0, rng=3))
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    problem = un.Ranking(un.Uniform(), per_point=k).bind(toy, obs, un.PerContext(), np.random.default_rng(7))
    assert problem.scores(np.array([0.5, 5.0])).by_chance == pytest.approx(expected)
