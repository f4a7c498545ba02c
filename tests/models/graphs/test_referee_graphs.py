# ruff: noqa: E501  (one case for each line)
"""A referee's cases of graphs: statistics by loops over actors, structural zeros, missing ties, what does not exist."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import unnorm as un
from unnorm.errors import DataError, InputError, NoEstimateError, NotIdentifiedError, UnnormWarning


def weight(alpha: float, m: int) -> float:
    return math.exp(alpha) * (1 - (1 - math.exp(-alpha)) ** m)


# long: one line for each statistic, from ergm's definitions, by loops over actors
def by_loops(A: np.ndarray, before: np.ndarray, z: np.ndarray, sex: list[str], directed: bool) -> dict[str, float]:
    N = range(len(A))
    dyads = [(i, j) for i in N for j in N if i != j and (directed or i < j)]
    ties = [(i, j) for i, j in dyads if A[i, j]]
    shared = {(i, j): sum(A[i, k] * A[k, j] for k in N if k not in (i, j)) for i, j in dyads}
    s = {
        "edges": len(ties),
        "nodecov(z)": sum(z[i] + z[j] for i, j in ties),
        "absdiff(z)": sum(abs(z[i] - z[j]) for i, j in ties),
        "nodematch(sex)": sum(sex[i] == sex[j] for i, j in ties),
        "nodefactor(sex)[m]": sum((sex[i] == "m") + (sex[j] == "m") for i, j in ties),
        "memory": sum(1 if before[i, j] else -1 for i, j in ties),
        "stability": sum(A[i, j] == before[i, j] for i, j in dyads),
        "gwesp(0.7)": sum(weight(0.7, shared[t]) for t in ties),
        "gwdsp(0.7)": sum(weight(0.7, shared[t]) for t in dyads),
        "esp(1)": sum(shared[t] == 1 for t in ties),
        "dsp(0)": sum(shared[t] == 0 for t in dyads),
    }
    out, into = ([int(sum(row)) for row in B] for B in (A, A.T))
    if not directed:
        return s | {
            "triangle": sum(A[i, j] * A[j, k] * A[i, k] for i, j, k in itertools.combinations(N, 3)),
            "kstar(3)": sum(math.comb(d, 3) for d in out),
            "degree(2)": out.count(2),
            "gwdegree(0.3)": sum(weight(0.3, d) for d in out),
            "isolates": out.count(0),
        }
    triples = list(itertools.permutations(N, 3))
    return s | {
        "mutual": sum(A[i, j] * A[j, i] for i, j in dyads) / 2,
        "ttriple": sum(A[i, j] * A[j, k] * A[i, k] for i, j, k in triples),
        "ctriple": sum(A[i, j] * A[j, k] * A[k, i] for i, j, k in triples) / 3,
        "ostar(2)": sum(math.comb(d, 2) for d in out),
        "istar(2)": sum(math.comb(d, 2) for d in into),
        "odegree(1)": out.count(1),
        "idegree(0)": into.count(0),
        "gwodegree(0.3)": sum(weight(0.3, d) for d in out),
        "gwidegree(0.3)": sum(weight(0.3, d) for d in into),
        "isolates": sum(a + b == 0 for a, b in zip(out, into)),
        "delrecip": sum(before[j, i] for i, j in ties),
        "nodeocov(z)": sum(z[i] for i, j in ties),
        "nodeicov(z)": sum(z[j] for i, j in ties),
    }


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("density", [0.2, 0.7])
def test_statistics_and_changes_by_loops(directed: bool, density: float) -> None:
    rng, n = np.random.default_rng(11), 7
    mask = rng.random((n, n)) < 0.2
    mask |= mask.T
    z, sex, omega = rng.normal(size=n), list("fmfmmff"), un.Graphs(n, directed, fixed=mask)

    def graph() -> np.ndarray:
        A = (rng.random((n, n)) < density) & ~mask & ~np.eye(n, dtype=bool)
        return (A if directed else np.triu(A) | np.triu(A).T).astype(float)

    before, A = graph(), graph()
    s = by_loops(A, before, z, sex, directed)
    formula = " + ".join(name.split("[")[0] for name in s)
    model = un.GraphStatistics(formula, omega, {"z": z, "sex": sex})
    assert model.statistics(A, before) == pytest.approx(s)
    obs = un.networks([before, A], omega)
    changes = model.changes(obs.outcome, model.arguments(obs, np.arange(1)))[0]
    for r in np.flatnonzero(omega.free):
        i, j = omega.pairs[r]
        B = A.copy()
        B[i, j] = 1 - B[i, j]
        if not directed:
            B[j, i] = B[i, j]
        t = by_loops(B, before, z, sex, directed)
        np.testing.assert_allclose(changes[r], [t[name] - s[name] for name in model.names], atol=1e-12)


# --- structural zeros ------------------------------------------------------------------------------------------------

MASK = np.zeros((4, 4), dtype=bool)
MASK[0, 1] = MASK[2, 3] = MASK[3, 0] = True
FIXED = un.Graphs(4, directed=True, fixed=MASK)


def _graphs(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return ((rng.random((n, 4, 4)) < 0.4) & ~np.eye(4, dtype=bool) & ~MASK).astype(float)


LAWS = [
    un.ProductBernoulli(),
    un.ProductBernoulli(around="context"),
    un.BernoulliTree(),
    un.LogisticBernoulli(),
    un.Uniform(),
    un.Mixture((0.3, un.Uniform()), (0.7, un.BernoulliTree())),
]


@pytest.mark.parametrize("reference", LAWS, ids=lambda one: repr(one)[:40])
def test_references_leave_structural_zeros_alone(reference: Any) -> None:
    """Their densities sum to one over the graphs that there are, and their draws are such graphs, in proportion."""
    obs = un.networks(_graphs(60), FIXED)
    states, N = FIXED.quadrature().points, 20_000
    law = reference.bind(FIXED, obs)
    q = np.exp(law.log_density(states, obs, np.full(len(states), 7)))
    assert q.sum() == pytest.approx(1.0)
    y = law.sample(obs, np.full(N, 7), np.random.default_rng(1))
    assert FIXED.contains(y).all()
    place = 2 ** np.arange(int(FIXED.free.sum()))[::-1]
    count = np.bincount((y[:, FIXED.free] @ place).astype(int), minlength=len(q))
    likely = N * q > 3
    chi2 = np.sum((count - N * q)[likely] ** 2 / (N * q)[likely])
    assert chi2 < likely.sum() + 6 * np.sqrt(2 * likely.sum())


def test_every_objective_takes_structural_zeros() -> None:
    model, obs = un.GraphStatistics("edges + mutual", FIXED), un.networks(_graphs(200), FIXED, sequence=False)
    exact = un.fit(model, obs)
    every = un.fit(model, obs, un.ConditionalNCE(un.BitFlip(every=True)))
    named = un.fit(model, obs, un.PseudoLikelihood(errors="scores"))
    np.testing.assert_allclose(every.estimate, named.estimate, atol=1e-8)
    flips = un.fit(model, obs, un.ConditionalNCE(un.BitFlip(), per_point=9), rng=1)  # nine dyads are free
    np.testing.assert_allclose(flips.estimate, every.estimate, atol=1e-6)
    with pytest.raises(InputError, match="has 9 points for each observation; got per_point=10"):
        un.fit(model, obs, un.ConditionalNCE(un.BitFlip(), per_point=10), rng=1)
    for q in (un.ProductBernoulli(), un.Uniform()):
        fit = un.fit(model, obs, un.Logistic(q, per_point=10), rng=2)
        assert "Sobol" in fit.diagnostics["points"] or "IID" in fit.diagnostics["points"]  # never a lattice on bits
        assert np.all(np.abs(fit.estimate - exact.estimate) < 3 * fit.se)


def test_constants_of_graphs_with_structural_zeros_are_annealed() -> None:
    mask = np.zeros((8, 8), dtype=bool)
    mask[0] = mask[:, 0] = True
    omega = un.Graphs(8, fixed=mask)
    A = np.zeros((8, 8))
    A[1, 2] = A[2, 1] = A[3, 4] = A[4, 3] = A[1, 5] = A[5, 1] = 1
    obs = un.networks(A, omega)
    held = un.fit(un.GraphStatistics("edges", omega), obs, un.PseudoLikelihood()).held_out(obs)
    assert abs(held.loglik - (3 * np.log(3 / 21) + 18 * np.log(18 / 21))) < 4 * held.quadrature_error + 1e-9
    assert held.quadrature_error < 0.02


# --- missing ties are no zeros ----------------------------------------------------------------------------------------


def _missing() -> tuple[un.GraphStatistics, un.Observations, un.Observations]:
    omega = un.Graphs(6, directed=True)
    A = ((np.random.default_rng(5).random((6, 6, 6)) < 0.35) & ~np.eye(6, dtype=bool)).astype(float)
    B = A.copy()
    B[1, 0, 1] = B[2, 0, 1] = B[3, 2, 3] = np.nan
    return (
        un.GraphStatistics("edges + mutual + memory", omega),
        un.networks(A, omega),
        un.networks(B, omega, missing="skip"),
    )


def test_held_out_graphs_with_missing_ties_are_refused() -> None:
    model, whole, holes = _missing()
    fit = un.fit(model, whole, un.PseudoLikelihood(draws=100), rng=1)
    with pytest.raises(InputError, match=re.escape("4 of 5 observations have bits that are missing")):
        fit.held_out(holes)
    assert holes.masks is not None
    kept = holes.take(holes.masks.complete)
    assert kept.n == 1
    assert fit.held_out(kept).loglik == pytest.approx(fit.held_out(whole.take(np.array([4]))).loglik, abs=0.2)


def test_ties_missing_twice_are_said_to_count_as_absent() -> None:
    model, _, holes = _missing()
    fit = un.fit(model, holes, un.MonteCarloML(draws=200, loglik=False), rng=1)
    assert any(
        note.startswith("1 of the missing ties were missing or absent in the graph before") for note in fit.notes
    )


def test_chains_start_where_all_ties_were_seen() -> None:
    model, _, holes = _missing()
    fit = un.fit(model, holes, un.PseudoLikelihood(draws=100), rng=1)
    table = fit.simulate(1, chains=30, rng=2)
    starts = np.stack([table[name] for name in holes.outcome_names], axis=1)[table["step"] == 0]
    assert holes.masks is not None
    allowed = holes.previous()[~holes.masks.before.any(axis=1)]
    assert {tuple(row) for row in starts} <= {tuple(row) for row in allowed}


def test_goodness_of_fit_counts_missing_ties_alike() -> None:
    """The statistics of simulations with their missing ties absent, as in the data: twelve of thirty are."""
    omega = un.Graphs(6, directed=True)
    A = 1.0 - np.eye(6)
    A[0, 1] = A[1, 2] = A[4, 5] = A[5, 0] = 0
    A[2:4] = np.where(np.eye(6)[2:4] == 1, 0.0, np.nan)
    A[2, 0] = 1
    fit = un.fit(
        un.GraphStatistics("edges", omega), un.networks(A, omega, missing="skip"), un.PseudoLikelihood(), rng=1
    )
    gof = un.graph_gof(fit, draws=200, rng=2)
    assert abs(gof["statistics"].simulated.mean() - gof["statistics"].observed[0]) < 1
    assert gof["statistics"].simulated.max() <= 21
    assert gof["outdegree"].observed @ np.arange(6) == gof["statistics"].observed[0]


def test_goodness_of_fit_p_values() -> None:
    """Exact under exchangeability: uniform ranks, never 0, whatever the number of levels is beside the draws."""
    from unnorm.results.graph_gof import Compared

    rng, R, m, L = np.random.default_rng(3), 400, 40, 16
    p = np.array([Compared(("",) * L, *_split(rng.poisson(3.0, (m + 1, L)))).overall for _ in range(R)])
    assert abs(np.mean(p <= 0.1) - 0.1) < 3 * np.sqrt(0.09 / R) + 1 / (m + 1)
    assert p.min() >= 1 / (m + 1)
    far = Compared(("a", "b"), np.array([9, 9]), rng.poisson(1.0, (m, 2)))
    assert far.overall == pytest.approx(1 / (m + 1))
    np.testing.assert_allclose(far.p, 2 / (m + 1))
    np.testing.assert_allclose(Compared(("a",), np.array([0]), 1 + rng.poisson(9.0, (m, 1))).p, 2 / (m + 1))
    unseen = Compared(("a",), np.array([1]), np.zeros((m, 1)))  # a level that no simulation has
    assert unseen.overall == pytest.approx(1 / (m + 1))
    assert Compared(("a",), np.array([2]), np.full((m, 1), 2)).overall == 1.0


def _split(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return draws[0], draws[1:]


def test_scores_whose_mean_is_not_zero_are_centred() -> None:
    from unnorm.objectives.pseudo import SquaresNearData

    rng, n, rounds = np.random.default_rng(1), 2, 4000
    squares = SquaresNearData(n, 1, 0.5, np.ones((n, 60), dtype=bool), centred=np.array([True, False]))
    y = np.tile([0.0, 1.0], (n, 30))
    for _ in range(rounds):
        squares.add(y, np.stack([[3.0], [0.0]]) + rng.normal(size=(n, 1)))
    for _ in range(squares.lag):
        squares.add(y, None)
    assert squares.total()[0, 0] == pytest.approx(2.0, rel=0.1)  # 11 with the mean counted


# --- what does not exist ----------------------------------------------------------------------------------------------

U = un.Graphs(12)
RING = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
RING[[0, 5, 2, 7, 0, 2], [5, 0, 7, 2, 2, 0]] = 1
SEX = [0, 1] * 6
SAME = np.triu((np.random.default_rng(0).random((12, 12)) < 0.4) & np.equal.outer(SEX, SEX), 1)
SAME = (SAME | SAME.T).astype(float)


def _fit(formula: str, A: np.ndarray, objective: Any) -> Callable[[], Any]:
    return lambda: un.fit(un.GraphStatistics(formula, U, {"sex": SEX}), un.networks(A, U), objective, rng=1)


@pytest.mark.parametrize(
    ("fit", "kind", "sentence"),
    [
        (_fit("edges + isolates", RING, un.MonteCarloML()), NoEstimateError, "'isolates' is as small or as large as it can"),
        (_fit("edges + degree(1)", RING, un.MonteCarloML()), NoEstimateError, "'degree(1)' is as small or as large"),
        (_fit("edges + isolates", RING, un.PseudoLikelihood()), NotIdentifiedError, "no flip of a single bit changes it"),
        (_fit("edges + nodematch(sex)", SAME, un.MonteCarloML()), NoEstimateError, "edges → −∞, nodematch(sex) → +∞, as these"),
        (_fit("edges + nodematch(sex)", SAME, un.PseudoLikelihood()), NoEstimateError, "edges → −∞, nodematch(sex) → +∞"),
        (_fit("edges", RING, un.Exact()), InputError, "Use un.PseudoLikelihood() or, of un.GraphStatistics, un.MonteCarloML()"),
    ],
)  # fmt: skip
def test_what_has_no_estimate_is_said_in_its_own_words(fit: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=re.escape(sentence)):
        fit()


def test_data_at_the_edge_of_the_statistics_together() -> None:
    """Every tie is mutual: neither statistic is extreme by itself, and the model is not degenerate."""
    omega = un.Graphs(6, directed=True)
    A = np.zeros((6, 6))
    for i, j in [(0, 1), (2, 3), (1, 4)]:
        A[i, j] = A[j, i] = 1
    with pytest.raises(NoEstimateError, match=re.escape("edges → −∞, mutual → +∞. Remove one of these")):
        un.fit(un.GraphStatistics("edges + mutual", omega), un.networks(A, omega), un.MonteCarloML(), rng=1)


def test_likelihood_ratios_say_how_well_their_likelihoods_are_known() -> None:
    rng = np.random.default_rng(3)
    A = np.triu(rng.random((15, 15)) < 0.25, 1)
    obs = un.networks((A | A.T).astype(float), omega := un.Graphs(15))
    small = un.fit(un.GraphStatistics("edges", omega), obs, un.MonteCarloML(draws=300), rng=1)
    large = un.fit(un.GraphStatistics("edges + gwesp(0.25)", omega), obs, un.MonteCarloML(draws=300), rng=2)
    assert large.likelihood_ratio(small).p_value > 0
    rough = dataclasses.replace(large, diagnostics={**large.diagnostics, "loglik_se": 0.5})
    with pytest.warns(UnnormWarning, match="Monte Carlo error of 1 in the statistic"):
        rough.likelihood_ratio(small)


def test_missing_attributes_of_tables() -> None:
    """They were read as the first level, or as zero."""
    pd = pytest.importorskip("pandas")
    omega = un.Graphs(4)
    table = pd.DataFrame(
        {"sex": ["f", "m", None, "f"], "n": pd.array([1, None, 3, 4], dtype="Int64"), "age": [1.0, 2.0, 3.0, 4.0]}
    )
    with pytest.raises(DataError, match=re.escape("nodes['sex'] is missing for 1 of 4 values, first actor 2")):
        un.GraphStatistics("edges + nodematch(sex)", omega, table)
    with pytest.raises(DataError, match=re.escape("nodes['n'] is missing for 1 of 4 values, first actor 1")):
        un.GraphStatistics("edges + nodecov(n)", omega, table)
    with pytest.raises(DataError, match="first actor 1"):
        un.GraphStatistics("nodecov(n)", omega, {"n": np.array([1, pd.NA, 3, 4], dtype=object)})
    assert un.GraphStatistics("edges + nodecov(age)", omega, table).names == ("edges", "nodecov(age)")


# --- actors who come and go, in a sequence, by enumeration -----------------------------------------------------------


def _sequence() -> tuple[np.ndarray, np.ndarray]:
    """Seven waves of four actors; one is away at first, another for two waves; two ties were not seen."""
    rng = np.random.default_rng(12)
    present = np.ones((7, 4), dtype=bool)
    present[2, 3] = present[3, 3] = present[0, 1] = False
    A = ((rng.random((7, 4, 4)) < 0.45) & ~np.eye(4, dtype=bool)).astype(float)
    A *= present[:, :, None] & present[:, None]
    A[4, 0, 2] = A[5, 1, 0] = np.nan
    return A, present


def test_a_sequence_of_actors_who_come_and_go_with_missing_ties() -> None:
    """ℓ(θ) = Σ_t log Σ over what the missing ties can be − log Σ over all graphs, each by loops over the free dyads."""
    A, present = _sequence()
    tables = []
    for t in range(1, 7):
        before, now = np.nan_to_num(A[t - 1]), np.nan_to_num(A[t])
        unknown = ~np.outer(present[t - 1], present[t - 1]) | np.isnan(A[t - 1])
        here = np.outer(present[t], present[t]) & ~unknown & ~unknown.T & ~np.eye(4, dtype=bool)
        free = np.argwhere(here)
        bits = np.arange(2 ** len(free))[:, None] >> np.arange(len(free)) & 1
        Y = np.repeat(now[None], len(bits), axis=0)
        Y[:, free[:, 0], free[:, 1]] = bits
        mutual = (Y * np.swapaxes(Y, 1, 2)).sum(axis=(1, 2)) / 2
        sums = [(Y * W).sum(axis=(1, 2)) for W in (np.ones((4, 4)), 2 * before - 1, before.T)]
        seen = A[t][here]
        like_data = np.all((bits == seen) | np.isnan(seen), axis=1)
        tables.append((np.stack([sums[0], mutual, *sums[1:]], axis=1), like_data))

    def loglik(theta: np.ndarray) -> float:
        return sum(np.logaddexp.reduce((S @ theta)[k]) - np.logaddexp.reduce(S @ theta) for S, k in tables)

    exact = minimize(lambda theta: -loglik(theta), np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    omega = un.Graphs(4, directed=True)
    model = un.GraphStatistics("edges + mutual + memory + delrecip", omega)
    fit = un.fit(model, un.networks(A, omega, present=present, missing="skip"), un.MonteCarloML(draws=8000), rng=1)
    assert fit.errors is not None
    assert np.all(np.abs(fit.estimate - exact.x) < 4 * np.sqrt(np.diag(fit.errors.reference)))
    moments = [[_moments(S, exact.x, k) for k in (np.ones(len(S), dtype=bool), like_data)] for S, like_data in tables]
    information = np.sum([whole - given for whole, given in moments], axis=0)
    np.testing.assert_allclose(np.sqrt(np.diag(np.linalg.inv(information))), fit.se, rtol=0.05)
    assert abs(fit.loglik + exact.fun) < 4 * fit.diagnostics["loglik_se"]


def _moments(S: np.ndarray, theta: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The covariance of the statistics over some graphs."""
    f = S[keep] @ theta
    p = np.exp(f - f.max())
    return np.atleast_2d(np.cov(S[keep].T, aweights=p / p.sum(), ddof=0))
