"""Curves from tables: those of the term's own columns, to the error that is stated, wherever the covariate goes."""

from __future__ import annotations

import numpy as np
import pytest

from unnorm.errors import DataError, UnnormWarning, hush
from unnorm.terms import parse
from unnorm.terms.curves import ERROR, combined, curve_table

RNG = np.random.default_rng(3)
X = RNG.gamma(2.0, 50.0, 3000)
ANGLE = RNG.uniform(-np.pi, np.pi, 3000)


def _curve(text: str, columns: dict[str, np.ndarray], **options):
    (term,) = parse(text).build(columns, **options)
    beta = np.random.default_rng(5).normal(size=term.size)
    name = term.covariates[0]
    with hush():
        return term, beta, curve_table(term, lambda x: term.design({name: x}) @ beta)


@pytest.mark.parametrize("text", ["s(x, k=10)", "s(x, k=40)", "s(x, bs='cr', k=12)", "s(x, bs='ps', k=12)"])
def test_a_table_is_the_curve_within_its_error(text: str) -> None:
    term, beta, table = _curve(text, {"x": X})
    assert (table is None) == ("ps" in text)  # beyond the data a P-spline has a kink: too rough for a table
    x = np.linspace(X.min(), X.max(), 5001)
    exact = term.design({"x": x}) @ beta
    assert np.max(np.abs(combined(term, beta, {"x": x}, table) - exact)) <= 20 * ERROR * np.ptp(exact)


def test_beyond_its_ends_the_term_speaks_and_says_so() -> None:
    term, beta, table = _curve("s(x, k=10)", {"x": X})
    x = np.array([X.min() - 300.0, X.mean(), X.max() + 500.0])
    with pytest.warns(UnnormWarning, match="2 of 3 rows lie far outside"):
        found = combined(term, beta, {"x": x}, table)
    with hush():
        np.testing.assert_allclose(found, term.design({"x": x}) @ beta, rtol=1e-7)
    with pytest.raises(DataError, match="missing or infinite"):
        combined(term, beta, {"x": np.array([1.0, np.nan])}, table)


def test_a_periodic_curve_goes_round_and_is_zero_without_a_direction() -> None:
    term, beta, table = _curve(
        "s(angle, bs='cc', k=12)", {"angle": ANGLE}, periods={"angle": 2 * np.pi}, partial=("angle",)
    )
    assert table is not None
    angle = np.array([-np.pi, -1.0, np.nan, 0.3, np.pi, 0.3 + 2 * np.pi, -1.0 - 4 * np.pi])
    found = combined(term, beta, {"angle": angle}, table)
    np.testing.assert_allclose(found, term.design({"angle": angle}) @ beta, atol=1e-7)
    assert found[2] == 0.0
    np.testing.assert_allclose(found[[5, 6]], found[[3, 1]], atol=1e-7)


def test_terms_that_are_no_spline_of_one_covariate_have_none() -> None:
    columns = {"x": X, "z": RNG.normal(size=3000)}
    for text in ("s(x, z, k=10)", "linear(x)"):
        term, beta, table = _curve(text, columns) if text == "linear(x)" else (*_surface(columns), None)
        assert table is None
        own = {name: columns[name] for name in term.covariates}
        assert np.array_equal(combined(term, beta, own, None), term.design(own) @ beta)


def _surface(columns: dict[str, np.ndarray]):
    (term,) = parse("s(x, z, k=10)").build(columns)
    beta = np.ones(term.size)
    assert curve_table(term, lambda x: x) is None
    return term, beta
