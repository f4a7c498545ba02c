"""Additive models with every objective; penalised 𝓛 and penalised 𝓜 (Section 4.2)."""

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import TermError

OBS = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
MODEL = un.Additive("linear(y) + s(gap, k=6)", un.Interval(-1, 1), covariates=[un.Expression("gap", "abs(y - y_prev)")])
AT = np.array([0.05, 0.3, 0.6, 0.9])


def _shape(fit: un.Fit) -> np.ndarray:
    """The effect relative to its first point: centring differs between objectives and means nothing."""
    effect = fit.effect("s(gap)", at=AT)["estimate"]
    return effect - effect[0]


def test_penalised_likelihood_and_transform_agree_at_the_same_smoothing() -> None:
    for sp in (1e-3, 1.0, 1e3):
        smoothing = un.Smoothing(sp={"s(gap)": sp})
        exact = un.fit(MODEL, OBS, un.Exact(), smoothing=smoothing)
        poisson = un.fit(MODEL, OBS, un.Poisson(), un.PerContext(), smoothing=smoothing)
        np.testing.assert_allclose(poisson.smooths.beta, exact.smooths.beta, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(poisson.smooths.errors.total, exact.smooths.errors.total, rtol=1e-6, atol=1e-10)


def test_penalised_likelihood_against_direct_maximisation() -> None:
    """The same penalised 𝓛 written out with dense arrays and a general optimiser."""
    from scipy.optimize import minimize

    sp = 0.5
    fit = un.fit(MODEL, OBS, un.Exact(order=400), smoothing=un.Smoothing(sp={"s(gap)": sp}))
    linear, smooth = fit.smooths.terms
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x = OBS.previous()[:, 0]

    def columns(y, x):
        return np.column_stack([y, smooth.design({"gap": np.abs(y - x)})])

    X = columns(OBS.outcome[:, 0], x)
    N = columns(np.tile(nodes, OBS.n), np.repeat(x, 400)).reshape(OBS.n, 400, -1)
    S = np.zeros((X.shape[1],) * 2)
    S[1:, 1:] = sp * smooth.penalties[0].matrix

    def negative(beta):
        f = N @ beta
        top = f.max(axis=1)
        return -(X @ beta).sum() + (top + np.log(np.exp(f - top[:, None]) @ weights)).sum() + 0.5 * beta @ S @ beta

    best = minimize(negative, fit.smooths.beta * 0.9, method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(fit.smooths.beta, best, atol=2e-4)
    assert linear.parametric


@pytest.mark.parametrize(
    ("objective", "normaliser"),
    [
        (un.Poisson(), un.Smooth("s(y_prev, k=8)")),
        (un.Logistic(un.Uniform(), per_point=60), un.Smooth("s(y_prev, k=8)")),
        (un.Importance(un.Uniform(), per_point=60), un.Smooth("s(y_prev, k=8)")),
        (un.Ranking(un.Uniform(), per_point=60), None),
        (un.Logistic(un.Uniform(), per_point=60), un.PerContext()),
    ],
    ids=["poisson", "logistic", "importance", "ranking", "per-context"],
)
def test_every_objective_finds_the_same_effect(objective, normaliser) -> None:
    exact = un.fit(MODEL, OBS, un.Exact())
    other = un.fit(MODEL, OBS, objective, normaliser, rng=1)
    se = exact.effect("s(gap)", at=AT)["se"].max()
    assert np.max(np.abs(_shape(other) - _shape(exact))) < 0.5 * se
    assert other.edf["s(gap)"] == pytest.approx(exact.edf["s(gap)"], abs=0.6)


def test_reml_of_penalised_newton_is_near_its_optimum() -> None:
    """The Laplace criterion at the chosen λ against its value on a grid around it."""
    best = un.fit(MODEL, OBS, un.Exact())
    chosen = best.smooths.sp["s(gap)"]
    scores = [
        un.fit(MODEL, OBS, un.Exact(), smoothing=un.Smoothing(sp={"s(gap)": chosen * factor})).smooths.score
        for factor in (0.1, 0.5, 2.0, 10.0)
    ]
    assert best.smooths.score < min(scores) + 0.05


def test_chi_is_minus_log_normaliser() -> None:
    fit = un.fit(MODEL, OBS, un.Logistic(un.Uniform(), per_point=60), un.Smooth("s(y_prev, k=8)"), rng=1)
    log_z = fit.density.log_z(OBS)
    off = np.sqrt(np.mean((fit.nu + log_z) ** 2))
    assert off < 0.6 * np.std(log_z)  # a constant in χ's place would give 1
    assert abs(np.mean(fit.nu + log_z)) < 0.05


def test_log_density_integrates_to_one() -> None:
    fit = un.fit(MODEL, OBS, un.Logistic(un.Uniform(), per_point=20), un.Smooth("s(y_prev, k=8)"), rng=1)
    nodes, weights = np.polynomial.legendre.leggauss(400)  # |y − x| has a kink
    for x in (-0.7, 0.0, 0.9):
        assert np.exp(fit.log_density(nodes, x)) @ weights == pytest.approx(1.0, abs=1e-5)


def test_normaliser_of_the_outcome_is_refused() -> None:
    with pytest.raises(TermError, match="depends on the outcome"):
        un.fit(MODEL, OBS, un.Logistic(un.Uniform(), per_point=5), un.Smooth("s(y)"), rng=1)


def test_save_and_load_without_the_data(tmp_path) -> None:
    fit = un.fit(MODEL, OBS, un.Logistic(un.Uniform(), per_point=10), un.Smooth("s(y_prev, k=8)"), rng=1)
    fit.save(tmp_path / "fit")
    again = un.load(tmp_path / "fit")
    for name, values in fit.effect("s(gap)").items():
        np.testing.assert_array_equal(again.effect("s(gap)")[name], values)
    assert again.edf == fit.edf
    whole = un.load(tmp_path / "fit", model=MODEL)
    np.testing.assert_allclose(whole.log_density([0.1], [0.0]), fit.log_density([0.1], [0.0]))


def test_log_likelihood_by_poisson_rows_is_the_likelihood() -> None:
    fit = un.fit(MODEL, OBS, un.Poisson(order=200), un.Smooth("s(y_prev, k=12)"))
    direct = float(np.sum(fit.log_density(OBS.outcome[:, 0], OBS.previous()[:, 0])))
    assert fit.loglik == pytest.approx(direct, abs=1.0)  # χ is smooth: 𝓜 + n ≤ 𝓛, with equality where χ = −log Z
    assert fit.loglik <= direct + 1e-6
    assert fit.value == pytest.approx(fit.loglik - OBS.n, rel=1e-12)


@pytest.mark.parametrize("n", [400, 2000])
def test_the_rule_of_poisson_settles_with_many_columns(n: int) -> None:
    """k = 40 columns, more than the first rule has nodes: doubling it refines the integrals, and leaves the basis."""
    grid = np.linspace(0, 1, 2001)
    law = np.cumsum(np.exp(1.5 * np.sin(8 * np.pi * grid)))
    y = np.interp(np.random.default_rng(5).random(n), law / law[-1], grid)
    model = un.Additive("s(y, k=40)", un.Interval(0, 1))
    poisson, exact = (un.fit(model, un.iid(y), objective) for objective in (un.Poisson(), un.Exact()))
    assert poisson.diagnostics["order"] < 300
    assert poisson.diagnostics["rule_moved"] < 0.05
    assert poisson.smooths is not None
    assert exact.smooths is not None
    assert poisson.smooths.edf["s(y)"] == pytest.approx(exact.smooths.edf["s(y)"], rel=2e-3)
    gap = np.array(poisson.effect("s(y)")["estimate"]) - np.array(exact.effect("s(y)")["estimate"])
    assert np.max(np.abs(gap) / np.array(exact.effect("s(y)")["se"])) < 0.1
