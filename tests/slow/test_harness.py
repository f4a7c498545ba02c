"""The harness itself: the laws are what they say, and a wrong error is caught."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import BLOCK, Case, Runs, block_of, judged, share
from law import FEW, is_clustered
from laws import LAWS

import unnorm as un

SHAPES = [
    (name, variant)
    for name, law in LAWS.items()
    for variant in ("plain", "clustered", "weighted")
    if (variant != "weighted" or law.finite) and (variant != "clustered" or law.quantile is not None)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), SHAPES)
def test_the_score_has_mean_zero_at_the_truth(name: str, variant: str) -> None:
    """Over 50 data sets, by its own spread: θ is the truth of every variant, dependent and aggregated ones included."""
    case = Case(name, "exact", variant)  # pyright: ignore[reportArgumentType]
    law = case.known
    fits = [un.fit(law.model, obs, un.Exact(order=law.order)) for obs in case.data(0)]
    away = np.array([np.linalg.solve(fit.covariance, fit.estimate - law.truth) for fit in fits])  # ≈ the score
    assert np.all(np.abs(away.mean(axis=0)) < 4 * away.std(axis=0, ddof=1) / np.sqrt(BLOCK))


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.finite])
def test_counts_are_the_rows(name: str) -> None:
    """The weighted variant has the rows of the plain one, aggregated."""
    law = LAWS[name]
    plain, counts = (law.simulate(200, np.random.default_rng(1), variant) for variant in ("plain", "weighted"))
    assert counts.weights.sum() == 200
    assert counts.n < 200
    np.testing.assert_allclose(counts.weights @ counts.outcome, plain.outcome.sum(axis=0))


def test_clusters_are_complete() -> None:
    for law in LAWS.values():
        if law.quantile is not None:
            obs = law.simulate(law.size("few clusters"), np.random.default_rng(1), "few clusters")
            assert is_clustered("few clusters")
            assert np.unique(obs.group["cluster"]).size == FEW


def _runs(factor: float, R: int = 2000) -> Runs:
    rng = np.random.default_rng(0)
    estimate, se = 1.5 + 0.2 * rng.standard_normal((R, 1)), np.full((R, 1), 0.2 * factor)
    numbers = {"estimate": estimate, "se": se, "lower": estimate - 1.96 * se, "upper": estimate + 1.96 * se}
    return Runs(numbers, (), np.ones(R))


@pytest.mark.parametrize(("factor", "caught"), [(1.0, 0), (1.15, 2), (0.85, 2), (1.05, 0)])
def test_wrong_errors_are_caught(factor: float, caught: int) -> None:
    assert len(judged(Case("interval", "exact"), _runs(factor)).wrong) == caught


def test_failures_and_parts_that_do_not_add_up_are_caught() -> None:
    runs = _runs(1.0)
    half = runs.numbers["se"] / np.sqrt(2)
    parts = {"se_sampling": half, "se_reference": half}
    assert not judged(Case("interval", "exact"), Runs(runs.numbers | parts, (), runs.seconds)).wrong
    parts["se_reference"] = 1.01 * half
    assert judged(Case("interval", "exact"), Runs(runs.numbers | parts, (), runs.seconds)).wrong
    assert judged(Case("interval", "exact"), Runs(runs.numbers, ("did not converge",), runs.seconds)).wrong


def test_bands() -> None:
    """93–97 % from 1,000 repetitions on, three binomial errors below."""
    many, few = (share("cover", np.ones(R, dtype=bool), 0.95, (0.93, 0.97)).band for R in (1000, 400))
    assert many == (0.93, 0.97)
    assert few == pytest.approx((0.95 - 3 * (0.95 * 0.05 / 400) ** 0.5, 0.95 + 3 * (0.95 * 0.05 / 400) ** 0.5))


def test_a_repetition_is_its_seed() -> None:
    """The same numbers whatever came before in the process."""
    case = Case("interval", "logistic iid")
    once = block_of(case, 3, 4)
    block_of(Case("ising", "exact"), 0, 2)
    again = block_of(case, 3, 2)
    np.testing.assert_array_equal(once.numbers["estimate"][:2], again.numbers["estimate"])
