"""What a saved fit keeps of its errors, what tables and summaries say of theirs, and how observations are counted."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError, UnnormWarning
from unnorm.results.making import _too_few

OMEGA = un.Interval(-1, 1)
WALK = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), OMEGA)
CHAIN = dataclasses.replace(
    un.transitions(un.datasets.toy_chain(120, 0.5, 5.0, rng=1)),
    group={"who": np.arange(120) // 20, "pair": np.arange(120) // 60},
)
CURVE = un.Additive("y + s(gap, k=6)", OMEGA, covariates=[un.Expression("gap", "abs(y - y_prev)")])
LOGISTIC = un.Logistic(un.Uniform(), per_point=5, points=un.IID())
CHI = un.Smooth("s(y_prev, k=6)")
SLOPE = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(0, 1))


def _both(fit: un.Fit, path: Path) -> tuple[un.Fit, Any]:
    fit.save(path)
    return fit, un.load(path)


# --- saved ------------------------------------------------------------------------------------------------------------


def test_a_refusal_of_robust_errors_is_saved(tmp_path: Path) -> None:
    fit = un.fit(WALK, CHAIN, un.Exact(cluster="pair"))  # two clusters, two parameters
    for one in _both(fit, tmp_path / "fit"):
        with pytest.raises(InputError, match="scores of 2 independent clusters are too few"):
            _ = one.covariance_robust
        assert np.isfinite(one.tidy()["se"]).all()  # what the remedy says


def test_a_refusal_of_all_errors_is_saved(tmp_path: Path) -> None:
    bits = un.ExponentialFamily(lambda y: tuple(y), tuple("abcd"), un.BinaryVectors(4))
    two = un.iid(np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]))
    with pytest.warns(UnnormWarning, match="No standard errors"):
        fit = un.fit(bits, two, un.ConditionalNCE(un.BitFlip(), per_point=4), rng=1)
    assert fit.no_errors in fit.notes
    changed = dataclasses.replace(fit, notes=())  # the reason is a field, not a text among the notes
    for one in _both(changed, tmp_path / "fit"):
        for ask in (lambda one=one: one.covariance, lambda one=one: one.covariance_robust, lambda one=one: one.tidy()):
            with pytest.raises(InputError, match="scores of 2 independent observations are too few"):
                ask()


def test_robust_parameters_and_effects_are_saved_together(tmp_path: Path) -> None:
    """Whichever was asked for before, or neither."""
    fits = [un.fit(CURVE, CHAIN, LOGISTIC, CHI, rng=1) for _ in range(3)]
    fits[0].effect("s(gap)", robust=True)
    _ = fits[1].covariance_robust
    for i, fit in enumerate(fits):
        _, back = _both(fit, tmp_path / str(i))
        np.testing.assert_array_equal(back.covariance_robust, fits[1].covariance_robust)
        band = fits[1].effect("s(gap)", robust=True)
        np.testing.assert_array_equal(back.effect("s(gap)", robust=True)["se"], band["se"])


# --- which errors are shown -------------------------------------------------------------------------------------------


def test_robust_tables_have_no_parts_that_assume_the_model() -> None:
    fit = un.fit(CURVE, CHAIN, LOGISTIC, CHI, rng=1)
    assert {"se_sampling", "se_reference"} < set(fit.tidy())
    assert {"se_sampling", "se_reference"} < set(fit.effect("s(gap)"))
    assert list(fit.tidy(robust=True)) == ["term", "estimate", "se", "lower", "upper"]
    assert list(fit.effect("s(gap)", robust=True)) == ["gap", "estimate", "se", "lower", "upper"]


def test_summaries_say_what_their_errors_rest_on(tmp_path: Path) -> None:
    weight = np.linspace(0.5, 1.5, 120)
    heavy = dataclasses.replace(CHAIN, weight=weight)
    plain, named, refused = (un.fit(WALK, CHAIN, un.Exact(cluster=c)) for c in (None, "who", "pair"))
    relative = un.fit(WALK, heavy, weights="relative")
    expected = [
        (plain, "Standard errors assume the model; robust ones, from the scores of single observations: tidy(robust"),
        (named, "assume the model and independent observations; robust ones, from the scores of clusters: tidy(robust"),
        (refused, "Standard errors assume the model and independent observations.\n"),
        (relative, "Standard errors are robust: from the scores of single observations."),
    ]
    for i, (fit, text) in enumerate(expected):
        for one in _both(fit, tmp_path / str(i)):
            assert text in one.summary()
    assert "120 transitions, independent by cluster: 6\n" in named.summary()


# --- counts -----------------------------------------------------------------------------------------------------------


def test_n_is_the_sum_of_weights_and_rows_are_shown_where_it_differs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y, w = rng.beta(2, 3, 60), rng.integers(0, 6, 60)
    counts, copies = (un.fit(SLOPE, obs) for obs in (un.iid(y, weight=w), un.iid(np.repeat(y, w))))
    total = int(w.sum())
    for one in _both(counts, tmp_path / "fit"):
        assert (one.n, one.n_rows) == (total, 60)
        assert f"{total} observations in 60 rows" in one.summary()
        assert f"n={total} in 60 rows" in repr(one)
    assert (copies.n, copies.n_rows) == (total, total)
    assert "rows" not in copies.summary() + repr(copies)
    held, again = counts.held_out(un.iid(y, weight=w)), counts.held_out(un.iid(np.repeat(y, w)))
    assert (held.n, held.rows) == (total, 60)
    assert held.loglik / held.n == pytest.approx(again.loglik / again.n)
    assert f"over {total} observations in 60 rows" in str(held)
    assert "rows" not in str(again)
    third = un.fit(SLOPE, un.iid(y, weight=np.full(60, 0.71)))
    assert third.n == pytest.approx(42.6)
    assert "42.6 observations in 60 rows" in third.summary()


def test_relative_weights_count_rows() -> None:
    y = np.random.default_rng(0).beta(2, 3, 60)
    fit = un.fit(SLOPE, un.iid(y, weight=np.linspace(0.0, 700, 60)), weights="relative")
    assert (fit.n, fit.n_rows) == (59, 60)  # one weighs nothing


def test_nested_fits_have_the_same_weights(tmp_path: Path) -> None:
    """Also of fits loaded, which know their counts."""
    small = un.ExponentialFamily(lambda y, x: -0.5 * (y - x) ** 2, ("theta2",), OMEGA)
    heavy = dataclasses.replace(CHAIN, weight=np.full(120, 2.0))
    _, smaller = _both(un.fit(small, heavy), tmp_path / "fit")
    with pytest.raises(
        InputError, match=r"weights differ: they have 120 observations and 240 observations in 120 rows"
    ):
        un.fit(WALK, CHAIN).wald(smaller)


def test_nested_fits_have_the_same_outcomes() -> None:
    small = un.ExponentialFamily(lambda y, x: -0.5 * (y - x) ** 2, ("theta2",), OMEGA)
    for other in (CHAIN.take(np.arange(120)[::-1]), dataclasses.replace(CHAIN, weight=np.repeat([0.5, 1.5], 60))):
        with pytest.raises(InputError, match="outcomes or weights differ"):
            un.fit(WALK, CHAIN).wald(un.fit(small, other))


def test_too_few_observations_are_counted_by_weight() -> None:
    for weight, text in ((2.5, "2.5 independent observations"), (2.0, "2 independent observations")):
        scores: Any = SimpleNamespace(weight=weight, size=3)
        assert text in _too_few(scores, "")
    by_cluster: Any = SimpleNamespace(weight=9.0, size=3)
    assert "2 independent clusters" in _too_few(by_cluster, "", np.array([0, 0, 0, 1, 1, 1, 1, 1, 1]))


def test_relative_weights_of_too_few_observations_have_a_remedy_that_works() -> None:
    model = un.ExponentialFamily(lambda y: (y, y**2), ("a", "b"), un.Interval(0, 1))
    obs = un.iid(np.array([0.2, 0.4]), weight=np.array([1.0, 2.0]))
    with pytest.warns(UnnormWarning, match="2 independent observations .* leave weights='relative' out"):
        fit = un.fit(model, obs, weights="relative")
    assert not fit.has_covariance
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(un.fit(model, obs).se).all()


# --- wald -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (
            [],
            "which must be a parameter's name, several names, or a smaller fit; got none. The parameters are 'theta1'",
        ),
        ((), "got none"),
        (0, "several names, or a smaller fit; got 0. The parameters are 'theta1', 'theta2'."),
        (None, "got None"),
        (float("nan"), "got nan"),
        ([0.0, 1.0], r"got \[0\.0, 1\.0\]"),
        (np.eye(3), r"got an array of shape \(3, 3\)"),
        (np.array([np.nan, 1.0]), r"got an array of shape \(2,\)"),
        ("theta", "which must be one of .*; got 'theta'"),
        (["theta1", "mu"], "got 'mu'"),
        (["theta1", "theta1"], "which must name each parameter once; got 'theta1' more than once"),
    ],
)
def test_what_wald_cannot_test(which: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        un.fit(WALK, CHAIN).wald(which)


def test_a_fit_without_parameters_has_no_wald_test() -> None:
    fit = un.fit(un.Additive("s(y, k=5)", OMEGA), CHAIN, LOGISTIC, CHI, rng=1)
    with pytest.raises(InputError, match="no parameters to test"):
        fit.wald("s(y)")
