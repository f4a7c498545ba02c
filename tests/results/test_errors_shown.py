"""How results show their errors: AIC, intervals by cluster, tests, bits with weights, what is saved."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import unnorm as un
from unnorm.errors import InputError, UnnormWarning

OMEGA = un.Interval(-1, 1)
WALK = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), OMEGA)
CHAIN = dataclasses.replace(
    un.transitions(un.datasets.toy_chain(120, 0.5, 5.0, rng=1)),
    group={"who": np.arange(120) // 20, "half": np.arange(120) % 2},
)
GAP = [un.Expression("gap", "abs(y - y_prev)")]
CURVE = un.Additive("y + s(gap, k=6)", OMEGA, covariates=GAP)


# --- AIC and likelihood ratios ----------------------------------------------------------------------------------------


def test_aic_counts_parameters_and_effective_degrees_of_freedom() -> None:
    curve = un.fit(CURVE, CHAIN, un.Exact(), smoothing=un.Smoothing(sp={"s(gap)": 1.0}))
    scores = curve.solution.scores
    F = np.linalg.solve(scores.information + scores.penalty, scores.information)
    assert curve.aic == pytest.approx(
        -2 * curve.loglik + 2 * np.trace(F), rel=1e-3
    )  # y, unpenalised, counts one nearly
    assert curve.aic == pytest.approx(-2 * curve.loglik + 2 * (1 + curve.edf["s(gap)"]))
    walk = un.fit(WALK, CHAIN)
    assert walk.aic == pytest.approx(-2 * walk.loglik + 4)


def test_likelihood_ratios_need_two_likelihoods() -> None:
    small = un.ExponentialFamily(lambda y, x: -0.5 * (y - x) ** 2, ("theta2",), OMEGA)
    ranking = un.Ranking(un.Uniform(), per_point=5)
    exact, contrast = (un.fit(WALK, CHAIN, one, rng=1) for one in (un.Exact(), ranking))
    for larger, objective in ((exact, ranking), (contrast, un.Exact()), (contrast, ranking)):
        with pytest.raises(InputError, match="likelihood ratio needs two likelihoods"):
            larger.likelihood_ratio(un.fit(small, CHAIN, objective, rng=1))
    assert exact.likelihood_ratio(un.fit(small, CHAIN)).df == 1


# --- clusters ---------------------------------------------------------------------------------------------------------


def test_intervals_and_tests_with_few_clusters(tmp_path) -> None:
    """Student's t on C − 1 degrees of freedom and Hotelling's T², of the fit and of the fit loaded; else the normal."""
    fit = un.fit(WALK, CHAIN, un.Exact(cluster="who"))
    fit.save(tmp_path / "fit")
    for one in (fit, un.load(tmp_path / "fit")):
        table = one.tidy(level=0.9, robust=True)
        se = np.sqrt(np.diag(fit.covariance_robust))
        np.testing.assert_allclose(table["upper"] - table["estimate"], stats.t.ppf(0.95, 5) * se)
        np.testing.assert_allclose(table["estimate"] - table["lower"], stats.t.ppf(0.95, 5) * se)
        plain = one.tidy(level=0.9)
        np.testing.assert_allclose(plain["upper"] - plain["estimate"], stats.norm.ppf(0.95) * fit.se)
        test = one.wald(("theta1", "theta2"), robust=True)
        W = fit.estimate @ np.linalg.solve(fit.covariance_robust, fit.estimate)
        assert test.statistic == pytest.approx(W)
        assert test.p_value == pytest.approx(stats.f.sf(W * 4 / (5 * 2), 2, 4))
        assert one.wald("theta1").p_value == pytest.approx(stats.chi2.sf((fit.estimate[0] / fit.se[0]) ** 2, 1))


def test_bands_with_few_clusters(tmp_path) -> None:
    smoothing = un.Smoothing(sp={"s(gap)": 100.0})  # edf below the number of clusters
    fit = un.fit(CURVE, CHAIN, un.Exact(cluster="who"), smoothing=smoothing)
    fit.save(tmp_path / "fit")
    V = fit.smooths.errors.robust.covariance[1:, 1:]
    C = fit.smooths.term("s(gap)").design({"gap": np.array([0.1, 0.5])})
    se = np.sqrt(np.einsum("np,pq,nq->n", C, V, C))
    for one in (fit, un.load(tmp_path / "fit")):
        band = one.effect("s(gap)", at={"gap": np.array([0.1, 0.5])}, robust=True)
        np.testing.assert_allclose(band["se"], se, rtol=1e-6)
        np.testing.assert_allclose(band["upper"] - band["estimate"], stats.t.ppf(0.975, 5) * se, rtol=1e-6)


def test_clusters_by_several_columns() -> None:
    """The combinations of two columns are the levels of one."""
    both = CHAIN.group["who"] * 2 + CHAIN.group["half"]
    obs = dataclasses.replace(CHAIN, group={**CHAIN.group, "both": both})
    one, two = (un.fit(WALK, obs, un.Exact(cluster=cluster)) for cluster in ("both", ("who", "half")))
    np.testing.assert_allclose(one.covariance_robust, two.covariance_robust)
    assert one.errors.robust.df == two.errors.robust.df == 11
    assert not np.allclose(one.covariance_robust, un.fit(WALK, obs, un.Exact(cluster="who")).covariance_robust)


# --- parts ------------------------------------------------------------------------------------------------------------


def test_effects_show_each_part() -> None:
    fit = un.fit(
        CURVE, CHAIN, un.Logistic(un.Uniform(), per_point=5, points=un.IID()), un.Smooth("s(y_prev, k=6)"), rng=1
    )
    at = {"gap": np.array([0.1, 0.5, 0.9])}
    table, errors = fit.effect("s(gap)", at=at), fit.smooths.errors
    span, C = fit.smooths.slices["s(gap)"], fit.smooths.term("s(gap)").design(at)
    for name, V in (("se", errors.total), ("se_sampling", errors.sampling), ("se_reference", errors.reference)):
        np.testing.assert_allclose(table[name], np.sqrt(np.diag(C @ V[span, span] @ C.T)), rtol=1e-8)


def test_constants_carry_the_points_error() -> None:
    """ν̂ of IID data is the last coordinate of the scores, its error the total; that of 𝓛 from dν/dθ."""
    y = np.random.default_rng(0).beta(2, 3, 80)
    model = un.ExponentialFamily(lambda y: y, ("y",), un.Interval(0, 1))
    fit = un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=100, points=un.IID()), rng=1)
    from unnorm.inference.sandwich import error_parts

    parts = error_parts(fit.solution.scores)
    assert fit.nu_se[0] ** 2 == pytest.approx(parts.total[1, 1])
    assert parts.reference[1, 1] > 0.1 * parts.total[1, 1]
    exact = un.fit(model, un.iid(y))
    a, h = exact.estimate[0], 1e-4
    log_z = [np.log(np.expm1(v) / v) for v in (a + h, a - h)]  # ∫ e^{ay} over [0, 1]
    assert exact.nu_se[0] == pytest.approx(abs(log_z[0] - log_z[1]) / (2 * h) * exact.se[0], rel=1e-5)


# --- criteria and advice ----------------------------------------------------------------------------------------------


def test_ncic_where_the_constants_do_not_grow_with_the_data() -> None:
    ranking = un.fit(WALK, CHAIN, un.Ranking(un.Uniform(), per_point=5), rng=1)
    assert ranking.ncic == pytest.approx(-2 * ranking.value + 2 * ranking.advise().penalty)
    private = un.fit(WALK, CHAIN, un.Logistic(un.Uniform(), per_point=5), un.PerContext(), rng=1)
    with pytest.raises(InputError, match="not PerContext"):
        _ = private.ncic


def test_there_are_no_fewer_points_than_sets() -> None:
    """Two randomisations of k = 6: with c = 1/16 there would be none, and 1/3 is the least."""
    lattice = un.Lattice(randomisations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        fit = un.fit(WALK, CHAIN, un.Logistic(un.Uniform(), per_point=6, points=lattice), un.Constant(), rng=1)
        evidence = fit.evidence()
    assert evidence["multiples"][:2] == [1 / 16, 1 / 4]
    np.testing.assert_allclose(evidence["shares"][0], evidence["shares"][1])  # both at 1/3


# --- held out ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", [un.Uniform(), un.Gaussian()], ids=["uniform", "gaussian"])
def test_bits_of_weighted_observations_are_those_of_copies(reference: Any) -> None:
    rng = np.random.default_rng(0)
    y, new, w = rng.beta(2, 3, 200), rng.beta(2, 3, 50), rng.integers(1, 6, 50)
    model = un.ExponentialFamily(lambda y: (y, y**2), ("y", "y2"), un.Interval(0, 1))
    fit = un.fit(model, un.iid(y), un.Logistic(reference, total=500), rng=1)
    counts, copies = (fit.held_out(obs) for obs in (un.iid(new, weight=w), un.iid(np.repeat(new, w))))
    assert counts.loglik == pytest.approx(copies.loglik)
    assert counts.bits == pytest.approx(copies.bits)
    assert counts.bits_uniform == pytest.approx(copies.bits_uniform)
    log_p = fit.log_density(np.repeat(new, w))
    assert copies.bits_uniform == pytest.approx(np.mean(log_p) / np.log(2))
    assert copies.loglik == pytest.approx(log_p.sum())
    flat = fit.held_out(un.iid(new))
    assert abs(flat.bits - counts.bits) > 1e-3
    assert abs(flat.bits_uniform - counts.bits_uniform) > 1e-3


def test_a_sampled_constant_has_its_standard_error() -> None:
    """log Z of 30 bits with f = Σ a_j y_j is Σ log(1 + e^{a_j}): the error stated is that of 12 repetitions."""
    bits = un.BinaryVectors(30)
    model = un.ExponentialFamily(lambda y: y[:3], ("a", "b", "c"), bits)
    obs = un.iid((np.random.default_rng(0).random((100, 30)) < 0.6).astype(float))
    fit = un.fit(model, obs, un.ConditionalNCE(un.BitFlip(), per_point=20), rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        held = [fit.held_out(obs, rng=r) for r in range(12)]
    log_z = np.array([-(one.log_density[0] - fit.estimate @ obs.outcome[0, :3]) for one in held])
    truth = np.sum(np.log1p(np.exp(fit.estimate))) + 27 * np.log(2)
    assert abs(log_z.mean() - truth) < 4 * log_z.std() / np.sqrt(12)
    assert np.mean([one.quadrature_error for one in held]) == pytest.approx(log_z.std(ddof=1), rel=0.6)
