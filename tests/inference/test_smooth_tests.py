"""p-values of smooth terms come from the covariance that the fit reports."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.engine import gam_summary
from unnorm.engine.inference import Curvature, random_test, smooth_test
from unnorm.inference.sandwich import bread

OMEGA = un.Interval(0.0, 1.0)
F = un.Additive("s(gap, k=6) + s(y, bs='cc', k=7)", OMEGA, covariates=[un.Expression("gap", "abs(y - c)")])


def _observations(n: int = 120) -> un.Observations:
    rng = np.random.default_rng(11)
    c = rng.uniform(size=n)
    y = np.clip(c + 0.15 * rng.standard_normal(n), 0.001, 0.999)
    return un.conditional({"y": y, "c": c}, y="y", x="c")


def _fit(objective: un.Objective, **more: object) -> un.Fit:
    return un.fit(F, _observations(), objective, un.Smooth("s(c, k=5)"), rng=np.random.default_rng(1), **more)


def test_without_reference_points_they_are_mgcvs() -> None:
    part = _fit(un.Poisson(order=33)).smooths
    engine = gam_summary.smooth(part.gam)
    assert part.table["term"].tolist() == engine["term"].tolist()
    for name in ("edf", "ref_df", "statistic"):
        np.testing.assert_allclose(part.table[name], engine[name], rtol=3e-3, err_msg=name)
    np.testing.assert_allclose(part.table["p"], engine["p"], rtol=0.02, atol=1e-9)


@pytest.mark.parametrize(
    "objective",
    [un.Logistic(un.Uniform(), per_point=3), un.Importance(un.Uniform(), per_point=3)],
    ids=["logistic", "importance"],
)
def test_reference_points_widen_or_narrow_them(objective: un.Objective) -> None:
    fit = _fit(objective)
    part, scores = fit.smooths, fit.solution.scores
    V, A, S = bread(scores), scores.information, scores.penalty
    known = part.errors.total - part.errors.smoothing
    index = np.arange(*part.slices["s(gap)"].indices(len(A)))
    here = np.ix_(index, index)
    edf1 = np.diag(2 * V @ A - V @ A @ V @ A)[index].sum()
    found = dict(zip(part.table["term"].tolist(), part.table["statistic"].tolist()))
    by_hand = smooth_test(part.beta[index], A[here], known[here], edf1, None)
    assert found["s(gap)"] == pytest.approx(by_hand.statistic, rel=3e-3)
    assert found["s(gap)"] != pytest.approx(
        smooth_test(part.beta[index], A[here], V[here], edf1, None).statistic, rel=0.01
    )
    # every direction of the cyclic term is penalised: the law of its statistic takes the variance of the score alone
    index = np.arange(*part.slices["s(y)"].indices(len(A)))
    over_repetitions = known - V @ S @ V
    test = random_test(index, part.beta, Curvature(A, S, V, V_e=over_repetitions), np.empty(0, dtype=int), None)
    p = dict(zip(part.table["term"].tolist(), part.table["p"].tolist()))
    assert p["s(y)"] == pytest.approx(test.p, rel=1e-4)
