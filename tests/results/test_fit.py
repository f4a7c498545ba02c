"""`un.fit` and what can be asked of its result."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import integrate, optimize, stats

import unnorm as un
from unnorm.errors import (
    CombinationError,
    InputError,
    NoEstimateError,
    NotIdentifiedError,
    OutsideError,
    UnnormWarning,
    hush,
)

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
GAUSS = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 2))


@pytest.fixture(scope="module")
def chain() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    y = np.random.default_rng(1).normal(0.4, 0.6, 400)
    return y[(y > -1) & (y < 2)]


@pytest.fixture(scope="module")
def gauss(values: np.ndarray) -> un.Fit:
    return un.fit(GAUSS, un.iid(values))


# --- the numbers, against scipy ---------------------------------------------------------------------------------------


def test_estimates_and_errors_are_those_of_scipy(values: np.ndarray, gauss: un.Fit) -> None:
    def minus(theta: np.ndarray) -> float:
        z = integrate.quad(lambda y: np.exp(theta[0] * y - 0.5 * theta[1] * y**2), -1, 2)[0]
        return -float(theta[0] * values.sum() - 0.5 * theta[1] * (values**2).sum() - len(values) * np.log(z))

    best = optimize.minimize(minus, np.array([1.0, 3.0]), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(gauss.estimate, best.x, rtol=1e-5)
    assert gauss.loglik == pytest.approx(-best.fun, abs=1e-7)
    h = 1e-3
    hessian = np.array(
        [
            [
                (
                    minus(best.x + h * (np.eye(2)[i] + np.eye(2)[j]))
                    - minus(best.x + h * (np.eye(2)[i] - np.eye(2)[j]))
                    - minus(best.x - h * (np.eye(2)[i] - np.eye(2)[j]))
                    + minus(best.x - h * (np.eye(2)[i] + np.eye(2)[j]))
                )
                / (4 * h * h)
                for j in range(2)
            ]
            for i in range(2)
        ]
    )
    np.testing.assert_allclose(gauss.covariance, np.linalg.inv(hessian), rtol=1e-4)
    assert gauss.aic == pytest.approx(2 * best.fun + 4, abs=1e-6)
    assert gauss.converged
    assert "gain of the last step" in gauss.reason


def test_log_density_integrates_to_one_and_is_minus_infinity_outside(gauss: un.Fit) -> None:
    total = integrate.quad(lambda y: np.exp(gauss.log_density(y)[0]), -1, 2)[0]
    assert total == pytest.approx(1.0, abs=1e-8)
    assert gauss.log_density([2.5, 0.0])[0] == -np.inf
    assert np.isfinite(gauss.log_density([2.5, 0.0])[1])


def test_log_density_of_a_chain_takes_contexts_one_by_one_or_one_for_all(chain: un.Observations) -> None:
    fit = un.fit(TOY, chain)
    one = fit.log_density([0.1, 0.2, 0.3], 0.5)
    each = fit.log_density([0.1, 0.2, 0.3], [0.5, 0.5, 0.5])
    np.testing.assert_allclose(one, each)
    with pytest.raises(InputError, match="x is needed"):
        fit.log_density([0.1])
    with pytest.raises(InputError, match="one row for each y"):
        fit.log_density([0.1, 0.2, 0.3], [0.5, 0.1])


def test_tidy_has_the_interval_of_the_level(gauss: un.Fit) -> None:
    table = gauss.tidy(level=0.9)
    assert list(table) == ["term", "estimate", "se", "lower", "upper"]
    np.testing.assert_allclose((table["upper"] - table["estimate"]) / table["se"], stats.norm.ppf(0.95))
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        gauss.tidy(level=95)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_come_back_in_the_users_kind(kind: Any, values: np.ndarray) -> None:
    data = kind({"u": values})
    table = un.fit(GAUSS, un.iid(data, y="u")).tidy()
    assert type(table) is type(data)
    names = table.column_names if isinstance(table, pa.Table) else list(table.columns)
    assert names == ["term", "estimate", "se", "lower", "upper"]


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        ({"a": 1.0, "b": {"c": [1.0, 2.0]}}, ("a", "b.c[0]", "b.c[1]")),
        ({"W": np.zeros((1, 2)), "depth": 3}, ("W[0,0]", "W[0,1]")),
        ([1.0, {"x": 2.0}], ("theta[0]", "theta[1].x")),
        (1.0, ("theta",)),
        (np.zeros(2), ("theta[0]", "theta[1]")),
        ({"a.b": 1.0, "a": {"b": 2.0}}, ("['a']['b']", "['a.b']")),  # the plain names would be one
        ({"a": np.zeros(1), "a[0]": 2.0}, ("['a'][0]", "['a[0]']")),
    ],
)
def test_parameters_of_an_energy_have_plain_names(tree: Any, names: tuple[str, ...]) -> None:
    assert un.Energy(lambda th, y: y, tree, un.Interval(0, 1)).names == names


def test_energy_parameters_come_back_as_their_own_tree() -> None:
    y = np.random.default_rng(3).vonmises(0.7, 2.0, 300)
    tree = {"kappa": jnp.ones(1), "place": {"mu": 0.1}}
    model = un.Energy(lambda th, y: th["kappa"][0] * jnp.cos(y - th["place"]["mu"]), tree, un.Circle())
    fit = un.fit(model, un.iid(y))
    assert fit.tidy()["term"].tolist() == ["kappa[0]", "place.mu"]
    kappa, mu, _ = stats.vonmises.fit(y, fscale=1)
    assert fit.theta["kappa"][0] == pytest.approx(kappa, rel=1e-3)
    assert fit.theta["place"]["mu"] == pytest.approx(mu, rel=1e-3)
    assert set(fit.theta) == {"kappa", "place"}


def test_the_fit_is_frozen(gauss: un.Fit) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        gauss.loglik = 0.0  # type: ignore[misc]


def test_summary_names_what_was_fitted(gauss: un.Fit, chain: un.Observations) -> None:
    text = gauss.summary()
    for word in ("ExponentialFamily", "Interval", "Exact", "Constant", "converged", "ν =", "AIC"):
        assert word in text
    assert "NOT CONVERGED" not in text
    text = un.fit(TOY, chain, objective=un.Ranking(un.Uniform(), per_point=5), rng=1).summary()
    assert "constants cancel" in text


# --- points outside Ω -------------------------------------------------------------------------------------------------


def test_points_outside_are_an_error_that_names_the_first(values: np.ndarray) -> None:
    y = np.concatenate([values[:5], [3.0], values[5:], [-7.0]])
    with pytest.raises(OutsideError, match=r"2 of \d+ observations lie outside Interval\(-1, 2\); the first is row 5"):
        un.fit(GAUSS, un.iid(y))
    fit = un.fit(GAUSS, un.iid(y), outside="drop")
    np.testing.assert_allclose(fit.estimate, un.fit(GAUSS, un.iid(values)).estimate)
    assert fit.n == len(values)
    assert any("2 of" in note and "were dropped" in note for note in fit.notes)
    with pytest.raises(InputError, match="outside must be one of 'error', 'drop'"):
        un.fit(GAUSS, un.iid(y), outside="ignore")  # type: ignore[arg-type]
    with pytest.raises(OutsideError, match=r"All 2 observations lie outside .* Check the units"):
        un.fit(GAUSS, un.iid([10.0, 20.0]), outside="drop")


def test_a_transition_with_either_end_outside_counts_as_outside() -> None:
    y = un.datasets.toy_chain(60, 0.5, 5.0, rng=2)
    y[30] = 5.0
    obs = un.transitions(y)
    with pytest.raises(OutsideError, match="2 of 60 observations"):
        un.fit(TOY, obs)
    fit = un.fit(TOY, obs, outside="drop")
    assert fit.n == 58
    two = un.transitions(y, lags=2)
    model = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x[0]) ** 2, y * x[1]), ("a", "b", "c"), TOY.domain)
    assert un.fit(model, two, outside="drop").n == two.n - 3


# --- estimates that do not exist --------------------------------------------------------------------------------------


def test_a_statistic_of_the_context_only_is_not_identified(chain: un.Observations) -> None:
    model = un.ExponentialFamily(lambda y, x: (y, x**2), ("drift", "before"), TOY.domain)
    for objective in (un.Exact(), un.Poisson(), un.Ranking(un.Uniform(), per_point=5)):
        with pytest.raises(NotIdentifiedError, match=r"'before' cannot be estimated.*normaliser absorbs it"):
            un.fit(model, chain, objective=objective, rng=1)


def test_statistics_that_cannot_be_told_apart_are_named(values: np.ndarray) -> None:
    model = un.ExponentialFamily(lambda y: (y, y**2, 2 * y + 3), ("a", "b", "c"), GAUSS.domain)
    with pytest.raises(NotIdentifiedError, match=r"'a', 'c' cannot be told apart.*Remove one"):
        un.fit(model, un.iid(values))


def test_a_constant_statistic_is_not_identified(values: np.ndarray) -> None:
    model = un.ExponentialFamily(lambda y: (y, 1.0), ("a", "one"), GAUSS.domain)
    with pytest.raises(NotIdentifiedError, match="'one' cannot be estimated"):
        un.fit(model, un.iid(values))


def test_an_mle_at_infinity_names_the_statistic_and_the_direction() -> None:
    bits = un.BinaryVectors(3)
    y = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]] * 5, dtype=float)
    model = un.ExponentialFamily(lambda y: (y[0], y[1]), ("first", "second"), bits)
    with pytest.raises(NoEstimateError, match=r"does not exist.*first → \+∞"):
        un.fit(model, un.iid(y))


def test_perfect_separation_is_named() -> None:
    y = np.random.default_rng(0).uniform(0.9, 1.0, 30)
    model = un.ExponentialFamily(lambda y: (jnp.where(y > 0.5, 1.0, 0.0),), ("right",), un.Interval(0, 1))
    with pytest.raises(NoEstimateError, match=r"right → \+∞"):
        un.fit(model, un.iid(y), objective=un.Logistic(un.Uniform(), total=300), rng=1)


def test_a_solver_that_stops_early_says_so(values: np.ndarray) -> None:
    with pytest.warns(UnnormWarning, match="did not converge: still rising after 1 steps"):
        fit = un.fit(GAUSS, un.iid(values), solver=un.Newton(max_steps=1))
    assert not fit.converged
    assert "still rising" in fit.reason
    assert "NOT CONVERGED" in fit.summary()


def test_newton_refuses_more_parameters_than_a_dense_covariance_can_have() -> None:
    model = un.Energy(lambda th, y: jnp.sum(th) * y, np.zeros(2001), un.Interval(0, 1))
    with pytest.raises(
        CombinationError, match=r"2,001 × 2,001.*limit is 2,000 parameters\. Use solver=un\.LBFGS\(\) or un\.SGD"
    ):
        un.fit(model, un.iid([0.1, 0.2]))


# --- what does not go together ----------------------------------------------------------------------------------------


def test_wrong_parts_are_named(values: np.ndarray, chain: un.Observations) -> None:
    obs = un.iid(values)
    with pytest.raises(CombinationError, match=r"obs must be the result of un\.iid.*got ndarray"):
        un.fit(GAUSS, values)  # type: ignore[arg-type]
    with pytest.raises(CombinationError, match=r"model must be un\.ExponentialFamily"):
        un.fit("y + y**2", obs)  # type: ignore[arg-type]
    with pytest.raises(CombinationError, match=r"objective must be un\.Exact\(\)"):
        un.fit(GAUSS, obs, objective="exact")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="takes a context x, and the observations are IID"):
        un.fit(TOY, obs)
    with pytest.raises(InputError, match=r"outcomes of 1 column\(s\); the observations have 2"):
        un.fit(GAUSS, un.iid(np.zeros((3, 2))))
    with pytest.raises(CombinationError, match=r"fails with few private reference points \(5 here\)"):
        un.fit(TOY, chain, un.Importance(un.Uniform(), per_point=5), un.PerContext())


def test_a_constant_for_all_contexts_warns(chain: un.Observations) -> None:
    with pytest.warns(UnnormWarning, match="gives one constant to all contexts"):
        fit = un.fit(TOY, chain, objective=un.Poisson(), normaliser=un.Constant())
    assert any("gives one constant" in note for note in fit.notes)
    assert abs(fit.estimate[0] - un.fit(TOY, chain).estimate[0]) > 0.03  # what the paper warns of


# --- weights, offsets, randomness -------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [un.Exact(), un.Poisson()])
def test_whole_weights_are_repeated_rows(values: np.ndarray, objective: Any) -> None:
    y = values[:80]
    w = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = un.fit(GAUSS, un.iid({"y": y, "w": w}, y="y", weight="w"), objective=objective)
    repeated = un.fit(GAUSS, un.iid(np.repeat(y, w)), objective=objective)
    np.testing.assert_allclose(weighted.estimate, repeated.estimate, rtol=1e-8)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-7)
    assert weighted.loglik == pytest.approx(repeated.loglik, rel=1e-10)


def test_whole_weights_are_repeated_transitions() -> None:
    y = un.datasets.toy_chain(60, 0.5, 5.0, rng=4)
    w = np.random.default_rng(1).integers(1, 3, 61)
    obs = un.transitions({"y": y, "w": w}, y="y", weight="w")
    twice = obs.take(np.repeat(np.arange(obs.n), w[1:].astype(int)))
    twice = dataclasses.replace(twice, weight=None)
    for objective in (un.Exact(), un.Poisson()):
        a, b = un.fit(TOY, obs, objective=objective), un.fit(TOY, twice, objective=objective)
        np.testing.assert_allclose(a.estimate, b.estimate, rtol=1e-8)
        np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-7)


def test_an_offset_moves_the_constants_and_nothing_else() -> None:
    y = un.datasets.toy_chain(80, 0.5, 5.0, rng=5)
    shift = np.random.default_rng(2).normal(size=81)
    plain = un.transitions(y)
    moved = un.transitions({"y": y, "o": shift}, y="y", offset="o")
    a, b = un.fit(TOY, plain, objective=un.Poisson()), un.fit(TOY, moved, objective=un.Poisson())
    np.testing.assert_allclose(a.estimate, b.estimate, rtol=1e-8)
    np.testing.assert_allclose(b.nu, a.nu - shift[1:], atol=1e-8)
    assert b.check_normaliser().rms < 1e-8


OFFSET = np.random.default_rng(2).normal(size=81)


@pytest.mark.parametrize("kind", ["parametric", "additive"])
def test_exact_and_poisson_agree_on_the_constants_with_an_offset(kind: str) -> None:
    """f + offset normalises to −log Z − offset_t, whatever the objective."""
    y = un.datasets.toy_chain(80, 0.5, 5.0, rng=5)
    obs = un.transitions({"y": y, "o": OFFSET}, y="y", offset="o")
    model = TOY if kind == "parametric" else un.Additive("s(y, k=5)", un.Interval(-1, 1))
    settings = {"smoothing": un.Smoothing(sp={"s(y)": 1.0})} if kind == "additive" else {}
    exact, poisson = (un.fit(model, obs, one, un.PerContext(), **settings) for one in (un.Exact(), un.Poisson()))
    np.testing.assert_allclose(poisson.nu, exact.nu, atol=1e-7)
    np.testing.assert_allclose(exact.nu, -exact.density.log_z(obs) - OFFSET[1:], atol=1e-7)
    np.testing.assert_allclose(poisson.nu_se, exact.nu_se, rtol=1e-5)
    assert exact.loglik == pytest.approx(poisson.loglik, abs=1e-6)
    assert exact.check_normaliser().rms < 1e-6


def test_exact_and_poisson_agree_on_one_constant_with_an_offset(values: np.ndarray) -> None:
    """IID data share −log Z − offset; smooth terms too. An offset of each observation's own is refused."""
    obs = un.iid({"y": values[:80], "o": np.full(80, 0.7)}, y="y", offset="o")
    exact, poisson = (un.fit(GAUSS, obs, one) for one in (un.Exact(), un.Poisson()))
    expected = -exact.density.log_z(obs)[0] - 0.7
    assert exact.nu == pytest.approx([expected], abs=1e-7)
    assert poisson.nu == pytest.approx([expected], abs=1e-7)
    assert exact.check_normaliser().rms < 1e-7
    curve = un.Additive("s(y, k=5)", GAUSS.domain)
    for one in (un.Exact(), un.Poisson()):
        fit = un.fit(curve, obs, one)
        assert fit.loglik == pytest.approx(fit.log_density(values[:80]).sum(), abs=1e-3)
        assert fit.check_normaliser().rms < 1e-4
        with pytest.raises(InputError, match=r"differs between IID observations.*un.conditional"):
            un.fit(GAUSS, un.iid({"y": values[:80], "o": OFFSET[:80]}, y="y", offset="o"), one)


def test_weight_zero_is_no_observation() -> None:
    y = un.datasets.toy_chain(80, 0.5, 5.0, rng=5)
    w = np.ones(81)
    w[10:30] = 0.0
    obs = un.transitions({"y": y, "w": w}, y="y", weight="w")
    for objective in (un.Exact(), un.Poisson()):
        a, b = un.fit(TOY, obs, objective), un.fit(TOY, obs.take(w[1:] > 0), objective)
        np.testing.assert_allclose(a.estimate, b.estimate, rtol=1e-8)
        np.testing.assert_allclose(a.nu[w[1:] > 0], b.nu, atol=1e-8)
        assert a.check_normaliser().rms < 1e-8


def test_the_same_seed_gives_the_same_numbers(values: np.ndarray) -> None:
    objective = un.Logistic(un.Uniform(), total=500, points=un.IID())
    first, second = (un.fit(GAUSS, un.iid(values), objective=objective, rng=7) for _ in range(2))
    np.testing.assert_array_equal(first.estimate, second.estimate)
    other = un.fit(GAUSS, un.iid(values), objective=objective, rng=8)
    assert abs(other.estimate - first.estimate).max() > 1e-6
    assert first.seed == 7
    unseeded = un.fit(GAUSS, un.iid(values), objective=objective)
    again = un.fit(GAUSS, un.iid(values), objective=objective, rng=unseeded.seed)
    np.testing.assert_array_equal(unseeded.estimate, again.estimate)


# --- nested models ----------------------------------------------------------------------------------------------------


def test_likelihood_ratio_against_scipy(values: np.ndarray, gauss: un.Fit) -> None:
    obs = un.iid(values)
    small = un.fit(un.ExponentialFamily(lambda y: -0.5 * y**2, ("b",), GAUSS.domain), obs)
    test = gauss.likelihood_ratio(small)
    assert test.df == 1
    assert test.statistic == pytest.approx(2 * (gauss.loglik - small.loglik))
    assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 1))
    assert "on 1 df" in str(test)
    with pytest.raises(InputError, match="needs a smaller model"):
        small.likelihood_ratio(gauss)
    with pytest.raises(InputError, match="same observations"):
        gauss.likelihood_ratio(un.fit(small.model, un.iid(values[:50])))  # type: ignore[arg-type]


def test_nested_test_is_calibrated_under_the_null() -> None:
    """θ1 = 0: p-values are uniform, to a Kolmogorov–Smirnov test over 60 chains."""
    small = un.ExponentialFamily(lambda y, x: -0.5 * (y - x) ** 2, ("theta2",), TOY.domain)
    p = []
    for seed in range(60):
        obs = un.transitions(un.datasets.toy_chain(120, 0.0, 5.0, rng=seed))
        p.append(un.fit(TOY, obs).likelihood_ratio(un.fit(small, obs)).p_value)
    assert stats.kstest(p, "uniform").pvalue > 0.01


# --- save and load ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [un.Exact(), un.Logistic(un.Uniform(), total=800)])
def test_a_saved_fit_comes_back(tmp_path: Path, values: np.ndarray, objective: Any) -> None:
    fit = un.fit(GAUSS, un.iid(pd.DataFrame({"y": values}), y="y"), objective=objective, rng=3)
    fit.advise()  # what was asked for is saved
    fit.save(tmp_path / "fit")
    bare, full = un.load(tmp_path / "fit"), un.load(tmp_path / "fit", model=GAUSS)
    for one in (bare, full):
        assert one.names == fit.names
        np.testing.assert_array_equal(one.estimate, fit.estimate)
        np.testing.assert_array_equal(one.covariance, fit.covariance)
        np.testing.assert_array_equal(one.nu, fit.nu)
        assert (one.loglik, one.converged, one.reason, one.n, one.seed) == (
            fit.loglik, fit.converged, fit.reason, fit.n, fit.seed,
        )  # fmt: skip
        np.testing.assert_array_equal(one.tidy()["se"], fit.tidy()["se"].to_numpy())
        assert one.summary() == fit.summary()
        assert one.advise() == fit.advise()
        assert one.theta == fit.theta
    np.testing.assert_array_equal(full.log_density([0.1, 0.9]), fit.log_density([0.1, 0.9]))
    with pytest.raises(InputError, match=r"needs the function f, which is not stored: load with un\.load"):
        bare.log_density([0.1])
    for needs in (lambda: bare.simulate(3), lambda: bare.held_out(un.iid(values)), bare.check_normaliser):
        with pytest.raises(InputError, match="needs the function f"):
            needs()


def test_a_model_that_does_not_match_is_refused(tmp_path: Path, gauss: un.Fit) -> None:
    gauss.save(tmp_path / "fit")
    other = un.ExponentialFamily(lambda y: (y, y**3), ("a", "c"), GAUSS.domain)
    with pytest.raises(InputError, match="does not match the saved fit"):
        un.load(tmp_path / "fit", model=other)
    moved = un.ExponentialFamily(GAUSS.statistics, ("a", "b"), un.Interval(0, 1))
    with pytest.raises(InputError, match="does not match the saved fit"):
        un.load(tmp_path / "fit", model=moved)


def test_a_folder_with_a_field_missing_is_damaged(tmp_path: Path, gauss: un.Fit) -> None:
    gauss.save(tmp_path / "fit")
    path = tmp_path / "fit" / "fit.json"
    about = json.loads(path.read_text())
    del about["reason"]
    path.write_text(json.dumps(about))
    with pytest.raises(InputError, match="damaged: it is not as it was saved"):
        un.load(tmp_path / "fit")


def test_saving_again_replaces(tmp_path: Path, gauss: un.Fit, values: np.ndarray) -> None:
    gauss.save(tmp_path / "fit")
    half = un.fit(GAUSS, un.iid(values[:100]))
    half.save(tmp_path / "fit")
    assert un.load(tmp_path / "fit").n == 100


# --- robust errors ----------------------------------------------------------------------------------------------------


def _repeated_chains() -> tuple[un.Observations, un.Observations]:
    """Twelve chains, and the same with every chain standing five times, as if it were five."""
    chains = [un.datasets.toy_chain(40, 0.5, 5.0, rng=seed) for seed in range(12)]
    once = {"y": np.concatenate(chains), "who": np.repeat(np.arange(12), 41)}
    five = {
        "y": np.tile(np.concatenate(chains), 5),
        "who": np.tile(once["who"], 5),
        "run": np.repeat(np.arange(5), len(once["y"])),
    }
    return un.transitions(once, y="y", group="who"), un.transitions(five, y="y", group=("who", "run"))


@pytest.mark.parametrize(
    ("objective", "normaliser"),
    [
        (un.Logistic(un.Uniform(), per_point=10, cluster="who"), un.PerContext()),
        (un.Ranking(un.Uniform(), per_point=10, cluster="who"), None),
        (un.Logistic(un.Uniform(), per_point=10, cluster="who"), un.Smooth("s(y_prev, k=8)")),
    ],
)
def test_robust_errors_see_through_copies(objective: Any, normaliser: Any) -> None:
    """Five copies of each chain: the plain se falls by √5, the cluster-robust one does not."""
    once, five = _repeated_chains()
    a, b = (un.fit(TOY, obs, objective, normaliser, rng=1) for obs in (once, five))
    assert np.all(b.se < 0.55 * a.se)
    robust_a, robust_b = (np.sqrt(np.diag(one.covariance_robust)) for one in (a, b))
    np.testing.assert_allclose(robust_b / robust_a, 1.0, atol=0.35)
    np.testing.assert_allclose(b.tidy(robust=True)["se"], robust_b)


def test_robust_errors_are_saved(values: np.ndarray, chain: un.Observations, tmp_path: Path) -> None:
    gauss = un.fit(GAUSS, un.iid(values))
    gauss.save(tmp_path / "gauss")
    np.testing.assert_array_equal(un.load(tmp_path / "gauss").covariance_robust, gauss.covariance_robust)
    with pytest.raises(InputError, match=r"cluster must name group columns \(there are none\)"):
        un.fit(TOY, chain, un.Ranking(un.Uniform(), per_point=5, cluster="who"), rng=1)
    once, _ = _repeated_chains()
    fit = un.fit(TOY, once, un.Ranking(un.Uniform(), per_point=5, cluster="who"), rng=1)
    fit.save(tmp_path / "robust")
    np.testing.assert_array_equal(un.load(tmp_path / "robust").covariance_robust, fit.covariance_robust)


def test_a_peak_between_the_nodes_of_the_first_rule_is_found() -> None:
    """Data narrower than the coarse rule's spacing: the fit begins coarse, and must not call this an infinite MLE."""
    y = np.random.default_rng(0).normal(0.03, (0.1, 0.2), (500, 2))
    model = un.ExponentialFamily(
        lambda y: (y[0], y[1], -0.5 * y[0] ** 2, -0.5 * y[1] ** 2), ("a", "b", "c", "d"), un.Box((-1, 1), (-1, 1))
    )
    fit = un.fit(model, un.iid(y))
    np.testing.assert_allclose(fit.estimate[2:], 1 / y.var(axis=0), rtol=0.01)


def test_a_fit_without_covariance_still_has_a_summary() -> None:
    from dataclasses import replace

    fit = un.fit(un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1)), un.iid(np.linspace(0.2, 0.9, 30)))
    assert "1 parameter, without standard errors" in replace(fit, errors=None).summary()


def test_a_seed_that_made_the_data_does_not_make_the_points() -> None:
    """Equal integer seeds for data and fit: the points are not the draws that became the data; the same fit again."""
    y = np.random.default_rng(1).random(200)
    obs = un.iid(y)
    model = un.ExponentialFamily(lambda y: (y, y**2), ("a", "b"), un.Interval(0, 1))
    fit, again = (un.fit(model, obs, un.Logistic(un.Uniform(), total=2000, points=un.IID()), rng=1) for _ in "ab")
    np.testing.assert_array_equal(fit.estimate, again.estimate)
    assert fit.seed == 1
    rows = fit.solution.scores.as_rows()
    (block,) = rows.blocks()
    points = block.design.X[~block.data, 0]
    assert len(points) == 2000
    assert not np.isin(np.round(points, 12), np.round(y, 12)).any()


def test_curves_of_other_coefficients_are_not_those_of_these():
    """f̂ at many rows is read from tables, which belong to their β."""
    obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    model = un.Additive("s(step, k=6)", un.Box((0, 800), (0, 600)))
    with hush():  # a model without the place does not fit
        fit = un.fit(model, obs.take(obs.group["subject"] == 1), un.Logistic(per_point=5), rng=1)
    part, columns = fit.smooths, {"step": np.linspace(10.0, 500.0, 50_000)}
    f, few = part.f(columns), part.f({"step": columns["step"][:100]})
    exact = part.term("s(step)").design(columns) @ part.beta[part.slices["s(step)"]]
    np.testing.assert_allclose(f, exact, atol=1e-7)
    np.testing.assert_allclose(few, exact[:100], atol=1e-7)
    np.testing.assert_allclose(dataclasses.replace(part, beta=2.0 * part.beta).f(columns), 2.0 * exact, atol=1e-7)
