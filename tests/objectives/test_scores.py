"""Scores of rows, piece by piece: against loops over units, finite populations, and copies of rows for weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from unnorm.objectives.likelihood import LOGISTIC, POISSON, RowLikelihood
from unnorm.objectives.scores import DenseDesign, Drawn, Reselection, RowScores, ScoreRows, auc, frequency

P = 3
COUNTS = np.array([2, 5, 3, 4, 2, 6])  # reference points of each unit
WEIGHTS = np.array([1.0, 4.0, 2.5, 1.0, 0.5, 3.0])


class Units:
    """Units t = 0 … 5, each an observation and COUNTS[t] points, in two blocks; slopes of one copy written out."""

    def __init__(self, cumulant: Any, weights: np.ndarray | None, counts: np.ndarray = COUNTS) -> None:
        rng = np.random.default_rng(3)
        self.at = np.repeat(np.arange(len(counts)), counts + 1)
        self.data = np.diff(self.at, prepend=-1) != 0
        self.x = rng.normal(size=(len(self.at), P))
        self.eta = rng.normal(size=len(self.at))
        self.ratio = rng.normal(size=len(self.at))
        self.share = rng.uniform(0.2, 1.0, len(self.at))  # of a reference point in its integral, importance sampling
        self.w = np.ones(len(counts)) if weights is None else weights
        self.cumulant, self.given, self.counts = cumulant, weights is not None, counts
        self.sets = rng.permutation(np.arange(len(self.at)) % 2) + 1  # two randomisations

    def slope(self, r: int, c: float = 1.0) -> float:
        """ℓ' of one copy of row r."""
        if self.cumulant is LOGISTIC:
            return float(self.data[r]) - 1 / (1 + c * np.exp(-self.eta[r]))
        return 1.0 if self.data[r] else -self.share[r] / c * np.exp(self.eta[r])

    def curvature(self, r: int, c: float = 1.0) -> float:
        """−ℓ'' of one copy of row r."""
        if self.cumulant is LOGISTIC:
            p = 1 / (1 + c * np.exp(-self.eta[r]))
            return p * (1 - p)
        return 0.0 if self.data[r] else self.share[r] / c * np.exp(self.eta[r])

    def scores(self, t: int, data: bool, c: float = 1.0) -> np.ndarray:
        """ℓ' x of one copy of unit t, row by row: the observation's, or the points'."""
        rows = [r for r in np.flatnonzero(self.at == t) if self.data[r] == data]
        return np.array([self.slope(r, c) * self.x[r] for r in rows])

    @property
    def information(self) -> np.ndarray:
        return sum(self.w[self.at[r]] * self.curvature(r) * np.outer(self.x[r], self.x[r]) for r in range(len(self.at)))

    def made(self, **settings: Any) -> RowScores:
        w = self.w[self.at]
        b = w if self.cumulant is LOGISTIC else np.where(self.data, 0.0, w * self.share)
        likelihood = RowLikelihood(self.cumulant, np.where(self.data, w, 0.0), b)

        def blocks() -> Iterator[ScoreRows]:
            for rows in (np.flatnonzero(self.at < 4), np.flatnonzero(self.at >= 4)):
                yield ScoreRows(
                    DenseDesign(self.x[rows]),
                    likelihood.take(rows),
                    self.eta[rows],
                    self.data[rows],
                    self.at[rows],
                    w[rows] if self.given else None,
                    self.sets[rows],
                    self.ratio[rows],
                )

        known: dict[str, Any] = {
            "size": P,
            "weight": float(self.w.sum()),
            "drawn": Drawn.IID,
            "shared": False,
            "information": self.information,
            "counts_points": self.cumulant is LOGISTIC,
        }
        return RowScores(blocks, **{**known, **settings})


def _variance(points: np.ndarray) -> np.ndarray:
    """Of the sum of IID terms: k times their sample covariance."""
    return len(points) * np.cov(points.T)


# --- points of each unit's own ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cumulant", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("c", [1.0, 0.25])
def test_points_spread_is_the_variance_of_each_units_points(cumulant, weights, power, c) -> None:
    units = Units(cumulant, weights)
    expected = sum(w**power * c * _variance(units.scores(t, False, c)) for t, w in enumerate(units.w))
    np.testing.assert_allclose(units.made(c=c).points_spread(power), expected, rtol=1e-10)


def test_points_spread_of_even_points_and_about_zero() -> None:
    """Even points represent q itself: no k/(k − 1). With a flexible χ squares are taken about zero."""
    units = Units(LOGISTIC, WEIGHTS)
    points = [units.scores(t, False) for t in range(6)]
    even = sum(w**2 * len(r) * np.cov(r.T, ddof=0) for w, r in zip(units.w, points))
    np.testing.assert_allclose(units.made(drawn=Drawn.EVENLY).points_spread(2), even, rtol=1e-10)
    about_zero = sum(w**2 * r.T @ r for w, r in zip(units.w, points))
    np.testing.assert_allclose(units.made(centred=False).points_spread(2), about_zero, rtol=1e-10)
    np.testing.assert_array_equal(units.made(drawn=Drawn.NONE).points_spread(2), np.zeros((P, P)))


def test_points_spread_of_one_point_each_is_that_of_neighbours() -> None:
    """½ Σ (r_t+1 − r_t)² is the variance of the sum where neighbours have nearly the same law."""
    units = Units(LOGISTIC, None, np.ones(6, dtype=int))
    r = np.concatenate([units.scores(t, False) for t in range(6)])
    expected = sum(np.outer(b - a, b - a) for a, b in pairwise(r)) / 2
    np.testing.assert_allclose(units.made().points_spread(2), expected, rtol=1e-10)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_data_spread_of_logistic_rows_leaves_the_points_out_once_for_each_copy(weights) -> None:
    units = Units(LOGISTIC, weights)
    points = sum(w * _variance(units.scores(t, False)) for t, w in enumerate(units.w))
    profiled = units.made(profiled=True).data_spread()
    np.testing.assert_allclose(profiled, units.information - points, rtol=1e-9)
    squares = np.zeros((P, P))
    for t, w in enumerate(units.w):
        r, u = units.scores(t, False), units.scores(t, True)[0]
        v = -r.sum(axis=0)
        squares += w * (r.T @ r + (np.outer(u, v) + np.outer(v, u)) / 2)
    np.testing.assert_allclose(units.made().data_spread(), units.information - squares, rtol=1e-9)
    about_zero = sum(w * units.scores(t, False).T @ units.scores(t, False) for t, w in enumerate(units.w))
    np.testing.assert_allclose(units.made(centred=False).data_spread(), units.information - about_zero, rtol=1e-9)


@pytest.mark.parametrize("drawn", [Drawn.IID, Drawn.EVENLY])
@pytest.mark.parametrize("c", [1.0, 2.0])
def test_data_spread_of_contexts_with_known_constants(drawn, c) -> None:
    """Σ1 = Σ_t Var_f((1 − p) x): contexts of two kinds, every triple of an observation and two points once for each
    time it occurs, so that sums are expectations; twice as many points too."""
    f, x = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]), np.array([[1.0, 0.0], [2.0, 1.0], [4.0, -1.0]])
    q = np.array([0.5, 0.25, 0.25])
    rows, expected, n = [], np.zeros((2, 2)), 0
    for law in f:
        triples = np.array(np.meshgrid(range(3), range(3), range(3), indexing="ij")).reshape(3, -1).T
        times = (64 * law[triples[:, 0]] * q[triples[:, 1]] * q[triples[:, 2]]).round().astype(int)
        state = np.repeat(triples, times, axis=0)
        assert len(state) == 64
        rows.append((state, np.log(law / (2 * q))))
        u = x / (1 + law / (2 * c * q))[:, None]
        expected += 64 * np.cov(u.T, aweights=law, ddof=0)
        n += 64
    state = np.concatenate([state for state, _ in rows])
    eta = np.concatenate([log_odds[state] for state, log_odds in rows]).ravel()
    data, at = np.tile([True, False, False], n), np.repeat(np.arange(n), 3)
    likelihood = RowLikelihood(LOGISTIC, np.where(data, 1.0, 0.0), np.ones(3 * n))
    block = ScoreRows(DenseDesign(x[state.ravel()]), likelihood, eta, data, at, None, None, None)
    information = np.einsum("r,rp,rq->pq", likelihood.slopes(eta)[1], block.design.X, block.design.X)
    scores = RowScores(
        lambda: iter([block]), size=2, weight=n, drawn=drawn, shared=False,
        information=information, counts_points=True,
    )  # fmt: skip
    np.testing.assert_allclose(scores.more(c).data_spread(), expected, rtol=1e-9, atol=1e-9)


def test_data_spread_of_poisson_rows_is_the_models_covariance() -> None:
    """All states of a small Ω as points, at their probabilities: Σ_t w Cov(x | t), for whatever weights."""
    units = Units(POISSON, WEIGHTS)
    expected = np.zeros((P, P))
    for t, w in enumerate(units.w):
        rows = np.flatnonzero((units.at == t) & ~units.data)
        f = units.share[rows] * np.exp(units.eta[rows])
        units.eta[rows] -= np.log(f.sum())  # χ normalises
        expected += w * np.cov(units.x[rows].T, aweights=f, ddof=0)
    np.testing.assert_allclose(units.made().data_spread(), expected, rtol=1e-9)
    np.testing.assert_allclose(units.made(centred=False).data_spread(), units.information, rtol=1e-9)


@pytest.mark.parametrize("cumulant", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
def test_empirical_spread_of_contexts(cumulant) -> None:
    """N/(N − 1) Σ_t w [u uᵀ − sym(u vᵀ)], v = −Σ_j r_tj the points' estimate of E u."""
    units, N = Units(cumulant, WEIGHTS), WEIGHTS.sum()
    expected = np.zeros((P, P))
    for t, w in enumerate(units.w):
        u, v = units.scores(t, True)[0], -units.scores(t, False).sum(axis=0)
        expected += w * (np.outer(u, u) - (np.outer(u, v) + np.outer(v, u)) / 2)
    np.testing.assert_allclose(units.made().empirical_spread(), N / (N - 1) * expected, rtol=1e-10)


def test_empirical_spread_estimates_the_datas_variance() -> None:
    """One context of three states, u drawn from f and v from fresh points: the mean is Var(u), not E[u uᵀ]."""
    rng = np.random.default_rng(0)
    f, x = np.array([0.5, 0.3, 0.2]), np.array([[1.0], [2.0], [4.0]])
    n, k = 60_000, 2
    y, z = rng.choice(3, n, p=f), rng.choice(3, (n, k))
    at = np.repeat(np.arange(n), k + 1)
    state = np.column_stack([y, z]).ravel()
    data = np.tile([True] + [False] * k, n)
    eta = np.log(f / (k * np.full(3, 1 / 3)))[state]  # log-odds of data against k uniform points
    likelihood = RowLikelihood(LOGISTIC, np.where(data, 1.0, 0.0), np.ones(len(at)))
    rows = ScoreRows(DenseDesign(x[state]), likelihood, eta, data, at, None, None, None)
    scores = RowScores(
        lambda: iter([rows]), size=1, weight=n, drawn=Drawn.IID, shared=False,
        information=np.eye(1), counts_points=True,
    )  # fmt: skip
    u = x[:, 0] / (1 + f / (k / 3))
    variance = f @ u**2 - (f @ u) ** 2
    assert scores.empirical_spread()[0, 0] / n == pytest.approx(variance, rel=0.03)
    assert f @ u**2 > 2 * variance


def test_cluster_sums() -> None:
    units, label = Units(LOGISTIC, WEIGHTS), np.array([0, 1, 0, 2, 1, 1])
    expected = np.zeros((3, P))
    for t, w in enumerate(units.w):
        expected[label[t]] += w * (units.scores(t, True).sum(axis=0) + units.scores(t, False).sum(axis=0))
    np.testing.assert_allclose(units.made().cluster_sums(label, 3), expected, rtol=1e-10)


# --- points that all observations share -------------------------------------------------------------------------------


class Population:
    """Five states; n observations and m points in exactly their expected numbers, so that means are expectations."""

    f = np.array([0.1, 0.3, 0.25, 0.2, 0.15])
    x = np.column_stack([np.ones(5), np.array([-1.0, 0.5, 2.0, 0.3, 1.0]), np.array([0.2, 1.0, -1.0, 0.0, 2.0])])
    n, m = 40.0, 100

    def __init__(self, cumulant: Any, c: float = 1.0) -> None:
        self.cumulant, self.c = cumulant, c

    def slope(self, m: float) -> np.ndarray:
        """E[z | y] among n data and m uniform points."""
        return self.n * self.f / (self.n * self.f + m / 5)

    def made(self, **settings: Any) -> RowScores:
        state = np.concatenate([np.arange(5), np.repeat(np.arange(5), self.m // 5)])
        data = np.arange(len(state)) < 5
        w = np.where(data, self.n * self.f[state], 1.0)
        if self.cumulant is LOGISTIC:
            eta, b = np.log(self.n * self.f / (self.m / 5))[state], w
        else:
            eta, b = np.log(self.f)[state], np.where(data, 0.0, self.n / self.m * 5)
        likelihood = RowLikelihood(self.cumulant, np.where(data, w, 0.0), b)
        rows = ScoreRows(
            DenseDesign(self.x[state]), likelihood, eta, data, np.where(data, state, -1), w, None, eta
        )  # fmt: skip
        curvature = likelihood.b * (
            np.exp(eta) / (1 + np.exp(eta)) ** 2 if self.cumulant is LOGISTIC else np.exp(eta)
        )  # fmt: skip
        information = np.einsum("r,rp,rq->pq", curvature, self.x[state], self.x[state])
        known: dict[str, Any] = {"size": P, "weight": self.n, "drawn": Drawn.IID, "shared": True}
        known |= {"information": information, "counts_points": self.cumulant is LOGISTIC}
        return RowScores(lambda: iter([rows]), **{**known, **settings})

    def covariance(self, law: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """Of factor(y) x(y) under a law of y."""
        return np.cov((factor[:, None] * self.x).T, aweights=law, ddof=0)


@pytest.mark.parametrize("c", [1.0, 4.0])
def test_logistic_scores_of_iid_data_have_their_variances_under_the_model(c) -> None:
    """Σ1 = n Cov_f((1 − p) x) and Σ2 = m Cov_q(p x), with c times as many points too; both n and m are fixed."""
    of = Population(LOGISTIC)
    p, m = of.slope(c * of.m), of.m
    scores = of.made().more(c)
    np.testing.assert_allclose(scores.data_spread(), of.n * of.covariance(of.f, 1 - p), rtol=1e-9, atol=1e-12)
    q = np.full(5, 0.2)
    expected = c * m * m / (m - 1) * of.covariance(q, p)  # m/(m − 1): the mean is the sample's own
    for power in (1, 2):
        np.testing.assert_allclose(scores.points_spread(power), expected, rtol=1e-9, atol=1e-12)
    g = of.x.T @ (of.n * of.f * (1 - p))
    total = scores.information - (1 / of.n + 1 / (c * m)) * np.outer(g, g)  # Prentice & Pyke (1979)
    np.testing.assert_allclose(scores.data_spread() + expected * (m - 1) / m, total, rtol=1e-9, atol=1e-12)
    even = of.made(drawn=Drawn.EVENLY).points_spread(2)
    np.testing.assert_allclose(even, m * of.covariance(q, of.slope(m)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("c", [1.0, 4.0])
def test_poisson_scores_of_iid_data_have_their_variances_under_the_model(c) -> None:
    """Σ1 = n Cov_f(x), whatever the number of points; Σ2 = m Cov_q(n f/(m q) x)."""
    of = Population(POISSON)
    scores = of.made().more(c)
    np.testing.assert_allclose(scores.data_spread(), of.n * of.covariance(of.f, np.ones(5)), rtol=1e-9, atol=1e-12)
    q, m = np.full(5, 0.2), of.m
    expected = m / (c * (m - 1)) * m * of.covariance(q, of.n * of.f / (m * q))
    np.testing.assert_allclose(scores.points_spread(2), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scores.information, of.made().information, rtol=1e-9)


def test_empirical_spread_of_iid_data_is_their_sample_covariance() -> None:
    """Whole weights are copies: N times the sample covariance of N scores."""
    of = Population(LOGISTIC)
    u = (1 - of.slope(of.m))[:, None] * of.x
    copies = np.repeat(u, (of.n * of.f).round().astype(int), axis=0)
    assert len(copies) == of.n
    np.testing.assert_allclose(of.made().empirical_spread(), of.n * np.cov(copies.T), rtol=1e-9, atol=1e-12)


def test_clusters_of_iid_data_leave_the_shared_points_out() -> None:
    of = Population(LOGISTIC)
    sums = of.made().cluster_sums(np.array([0, 1, 1, 0, 2]), 3)
    u = (of.n * of.f * (1 - of.slope(of.m)))[:, None] * of.x
    np.testing.assert_allclose(sums, [u[0] + u[3], u[1] + u[2], u[4]], rtol=1e-10)


# --- measured, more, overlap ------------------------------------------------------------------------------------------


def test_sets_at_hand_measure_their_sum() -> None:
    """R independent sets whose scores add: R times their sample variance; fresh ones at another number."""
    units = Units(LOGISTIC, WEIGHTS)
    sums = np.zeros((2, P))
    for r in np.flatnonzero(~units.data):
        sums[units.sets[r] - 1] += units.w[units.at[r]] * units.slope(r) * units.x[r]
    fresh = np.random.default_rng(1).normal(size=(60, P))
    asked = []

    def redraw(i: int, times: float = 1.0, label: Any = None, count: int = 1) -> np.ndarray:
        asked.append((i, times))
        return fresh[i : i + 1]

    scores = units.made(sets=2, redraw=redraw, drawn=Drawn.EVENLY)
    np.testing.assert_allclose(scores.measured_spread(), 2 * np.cov(sums.T), rtol=1e-10)
    np.testing.assert_allclose(scores.measured_spread(0.25), np.cov(fresh[:4].T), rtol=1e-10)
    assert asked == [(i, 0.25) for i in range(4)]
    one = replace(scores, sets=1)
    np.testing.assert_allclose(one.measured_spread(), np.cov(fresh[:4].T), rtol=1e-10)
    assert units.made().measured_spread() is None
    # more of them, until they are enough or too many; those at hand count
    np.testing.assert_allclose(one.measured_spread(1.0, lambda _, df: df >= 7), np.cov(fresh[:8].T), rtol=1e-10)
    np.testing.assert_allclose(one.measured_spread(1.0, lambda *_: False), np.cov(fresh[:51].T), rtol=1e-10)
    pooled = (2 * np.cov(sums.T) + 3 * np.cov(fresh[:4].T)) / 4
    np.testing.assert_allclose(scores.measured_spread(1.0, lambda _, df: df >= 4), pooled, rtol=1e-10)
    np.testing.assert_allclose(scores.measured_spread(1.0, lambda _, df: df >= 1), 2 * np.cov(sums.T), rtol=1e-10)


def test_points_of_a_cluster_are_measured() -> None:
    """Σ_c factor² Var of their sum, over the sets at hand or over four fresh ones."""
    units, label = Units(LOGISTIC, WEIGHTS), np.array([0, 1, 0, 2, 1, 1])
    factor = np.array([1.0, 2.0, 0.5])
    sums = np.zeros((2, 3, P))
    for r in np.flatnonzero(~units.data):
        t = units.at[r]
        sums[units.sets[r] - 1, label[t]] += units.w[t] * units.slope(r) * units.x[r]
    expected = sum(factor[c] ** 2 * 2 * np.cov(sums[:, c].T) for c in range(3))
    np.testing.assert_allclose(units.made(sets=2).cluster_points(label, factor), expected, rtol=1e-9)
    fresh = np.random.default_rng(1).normal(size=(4, 3, P))
    scores = units.made(redraw=lambda i, times=1.0, label=None, count=1: fresh[i])
    expected = sum(factor[c] ** 2 * np.cov(fresh[:, c].T) for c in range(3))
    np.testing.assert_allclose(scores.cluster_points(label, factor), expected, rtol=1e-9)
    assert units.made().cluster_points(label, factor) is None
    np.testing.assert_allclose(scores.cluster_weights(label, 3), np.bincount(label, WEIGHTS))
    np.testing.assert_allclose(Units(LOGISTIC, None).made().cluster_weights(label, 3), [2.0, 3.0, 1.0])


@pytest.mark.parametrize("cumulant", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
def test_more_points(cumulant) -> None:
    units, c = Units(cumulant, WEIGHTS), 3.0
    expected = np.zeros((P, P))
    for r, x in enumerate(units.x):
        times = 1.0 if units.data[r] else c
        expected += times * units.w[units.at[r]] * units.curvature(r, c) * np.outer(x, x)
    there = units.made().more(c)
    np.testing.assert_allclose(there.information, expected, rtol=1e-10)
    assert there.c == c


def test_overlap_counts_weights_as_copies() -> None:
    units = Units(LOGISTIC, WEIGHTS)
    w, ratio = units.w[units.at], units.ratio
    wins = pairs = 0.0
    for a in np.flatnonzero(units.data):
        for b in np.flatnonzero(~units.data):
            wins += w[a] * w[b] * (ratio[a] > ratio[b])
            pairs += w[a] * w[b]
    area, effective = units.made().overlap()
    assert area == pytest.approx(wins / pairs)
    own, ratios = w[~units.data], np.exp(ratio[~units.data])
    assert effective == pytest.approx((own @ ratios) ** 2 / (own.sum() * (own @ ratios**2)))


def test_overlap() -> None:
    units = Units(LOGISTIC, None)
    area, effective = units.made().overlap()
    high, low = units.ratio[units.data], units.ratio[~units.data]
    assert area == pytest.approx(np.mean([[a > b for b in low] for a in high]))
    w = np.exp(low)
    assert effective == pytest.approx(w.sum() ** 2 / (len(low) * np.sum(w**2)))
    assert auc(np.array([1.0, 1.0, 0.0, 2.0]), np.array([True, False, False, False]), np.ones(4)) == pytest.approx(0.5)


def test_n_over_n_less_one() -> None:
    assert frequency(5.0) == pytest.approx(1.25)
    assert frequency(1.0) == 2.0  # and not infinite


# --- λ chosen again ---------------------------------------------------------------------------------------------------


def test_the_bread_with_the_smoothing_chosen_again() -> None:
    """V' = V + J V_ρ (J + ½ V C)ᵀ."""
    rng = np.random.default_rng(5)
    V, J, C, half = np.eye(3) + 0.1, rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    V_rho = half @ half.T
    np.testing.assert_allclose(Reselection(J, V_rho).bread(V), V + J @ V_rho @ J.T)
    np.testing.assert_allclose(Reselection(J, V_rho, C).bread(V), V + J @ V_rho @ J.T + J @ V_rho @ C.T @ V / 2)


@pytest.mark.parametrize("shared", [False, True])
def test_scores_and_the_criterions_slope_vary_together(shared) -> None:
    """Var(Σ_r [r_r x_r; ε_r]) over IID points: ε about its context's mean, all points one context where shared."""
    units = Units(LOGISTIC, WEIGHTS)
    rng = np.random.default_rng(6)
    epsilon = np.where(units.data[:, None], 0.0, rng.normal(1.0, 1.0, (len(units.at), 2)))
    again = Reselection(np.zeros((P, 2)), np.eye(2), epsilon=epsilon.copy)
    scores = units.made(reselection=again, shared=shared)
    whole = list(scores.blocks())
    assert scores.reselected_spread() is None  # rows in several blocks are not at hand together
    one = ScoreRows(
        DenseDesign(units.x),
        RowLikelihood(LOGISTIC, *(np.concatenate([getattr(b.likelihood, part) for b in whole]) for part in "ab")),
        units.eta, units.data, units.at, units.w[units.at], None, None,
    )  # fmt: skip
    scores = replace(scores, blocks=lambda: iter([one]))
    crossed, own = np.zeros((P, 2)), np.zeros((2, 2))
    groups = (
        [np.flatnonzero(~units.data)] if shared else [np.flatnonzero((units.at == t) & ~units.data) for t in range(6)]
    )
    for rows in groups:
        about = epsilon[rows] - epsilon[rows].mean(axis=0)
        slopes = np.array([units.w[units.at[r]] * units.slope(r) * units.x[r] for r in rows])
        crossed += slopes.T @ about
        own += about.T @ about
    found = scores.reselected_spread()
    assert found is not None
    np.testing.assert_allclose(found[:P, :P], scores.points_spread(2))
    np.testing.assert_allclose(found[:P, P:], crossed, rtol=1e-10)
    np.testing.assert_allclose(found[P:, P:], own, rtol=1e-10)
    np.testing.assert_allclose(found, found.T)
    assert replace(scores, drawn=Drawn.EVENLY).reselected_spread() is None
