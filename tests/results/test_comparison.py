"""Several specs on common points, and pictures of what they found."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import unnorm as un
from unnorm.errors import CombinationError, InputError, OutsideError, UnnormWarning
from unnorm.results.comparison import compare

mpl.use("Agg")

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))


def _specs() -> dict[str, dict[str, Any]]:
    """The specs of DESIGN, plus Ranking."""
    points = {"per_point": 10}
    return {
        "ML": {"objective": un.Exact()},
        "semiparametric": {
            "objective": un.Logistic(un.Uniform(), **points),
            "normaliser": un.Smooth("s(y_prev, k=8)"),
        },
        "parametric": {"objective": un.Logistic(un.Uniform(), **points), "normaliser": un.PerContext()},
        "ranking": {"objective": un.Ranking(un.Uniform(), **points)},
        "ignored": {"objective": un.Logistic(un.Uniform(), **points), "normaliser": un.Constant()},
    }


@pytest.fixture(scope="module")
def chain() -> un.Observations:
    y = un.datasets.toy_chain(400, 0.5, 5.0, rng=1)
    return un.transitions(pd.DataFrame({"y": y}), y="y")


@pytest.fixture(scope="module")
def found(chain: un.Observations) -> Any:
    with pytest.warns(UnnormWarning, match="one constant"):
        return compare(TOY, chain, _specs(), rng=1)


def test_the_table_has_a_row_for_each_spec_and_term(found: Any) -> None:
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table.columns) == [
        "spec", "term", "estimate", "se", "se_sampling", "se_reference", "lower", "upper",
    ]  # fmt: skip
    assert found.table["spec"].tolist() == [name for name in _specs() for _ in range(2)]
    for name, fit in found.fits.items():
        rows = found.table[found.table["spec"] == name]
        np.testing.assert_array_equal(rows["estimate"], fit.estimate)
        np.testing.assert_array_equal(rows["se"], fit.se)
        np.testing.assert_allclose(rows["se"] ** 2, rows["se_sampling"] ** 2 + rows["se_reference"] ** 2, rtol=1e-6)
    assert (found.table[found.table["spec"] == "ML"]["se_reference"] == 0).all()


def test_specs_with_the_same_scheme_share_their_points(found: Any) -> None:
    assert found.shared == (("semiparametric", "ignored"), ("parametric", "ranking"))
    text = found.summary()
    assert "semiparametric, ignored share their reference points" in text
    for name in _specs():
        assert name in text


def test_shared_points_are_the_same_points(chain: un.Observations) -> None:
    """Two equal specs: the same estimates when points are shared, different ones when they are not."""
    one = {"objective": un.Logistic(un.Uniform(), per_point=5, points=un.IID()), "normaliser": un.PerContext()}
    shared = compare(TOY, chain, {"a": one, "b": dict(one)}, rng=1)
    np.testing.assert_array_equal(shared["a"].estimate, shared["b"].estimate)
    apart = compare(TOY, chain, {"a": one, "b": dict(one)}, share_references=False, rng=1)
    assert np.abs(apart["a"].estimate - apart["b"].estimate).max() > 1e-3
    assert apart.shared == ()


def test_other_references_or_numbers_are_not_shared(chain: un.Observations) -> None:
    specs = {
        "five": {"objective": un.Ranking(un.Uniform(), per_point=5)},
        "six": {"objective": un.Ranking(un.Uniform(), per_point=6)},
        "near": {"objective": un.Ranking(un.Gaussian(around="context"), per_point=5)},
    }
    assert compare(TOY, chain, specs, rng=1).shared == (("five",), ("six",), ("near",))


def test_a_seed_repeats_everything(chain: un.Observations) -> None:
    specs = {name: spec for name, spec in _specs().items() if name in ("parametric", "ranking")}
    a, b = (compare(TOY, chain, specs, rng=3).table["estimate"] for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_criteria_say_what_each_objective_can_say(found: Any) -> None:
    criteria = found.criteria.set_index("spec")
    assert criteria.loc["ML", "aic"] == pytest.approx(found["ML"].aic)
    assert np.isnan(criteria.loc["ML", "ncic"])
    assert criteria.loc["semiparametric", "ncic"] == pytest.approx(found["semiparametric"].ncic)
    assert np.isnan(criteria.loc["parametric", "ncic"])
    assert criteria.loc["parametric", "points"] == 4000
    assert criteria.loc["semiparametric", "ncic"] < criteria.loc["ignored", "ncic"]


def test_models_can_be_compared_on_one_domain() -> None:
    y = np.random.default_rng(0).vonmises(0.5, 1.5, 300)
    one = un.ExponentialFamily(lambda y: (jnp.cos(y), jnp.sin(y)), ("cos", "sin"), un.Circle())
    two = un.ExponentialFamily(lambda y: (jnp.cos(y), jnp.sin(y), jnp.cos(2 * y)), ("cos", "sin", "cos2"), un.Circle())
    objective = un.Logistic(un.Uniform(), total=3000)
    obs = un.iid(pl.DataFrame({"angle": y + 20 * np.pi}), y="angle")  # the same angles by another name
    found = compare(one, obs, {"one": {"objective": objective}, "two": {"objective": objective, "model": two}}, rng=1)
    assert isinstance(found.table, pl.DataFrame)
    assert found.table["term"].to_list() == ["cos", "sin", "cos", "sin", "cos2"]
    assert found.shared == (("one", "two"),)
    other = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1))
    with pytest.raises(InputError, match="All models must be on the same domain"):
        compare(one, obs, {"one": {}, "other": {"model": other}})


def test_wrong_specs_are_named(chain: un.Observations) -> None:
    with pytest.raises(InputError, match="specs must be a mapping"):
        compare(TOY, chain, {})
    with pytest.raises(InputError, match=r"specs\['a'\] must be a dict"):
        compare(TOY, chain, {"a": un.Exact()})  # type: ignore[dict-item]
    with pytest.raises(InputError, match=r"specs\['a'\] may hold .* got 'objectiv'"):
        compare(TOY, chain, {"a": {"objectiv": un.Exact()}})
    with pytest.raises(InputError, match="There is no spec 'b'"):
        _ = compare(TOY, chain, {"a": {}})["b"]


def test_points_outside_are_dropped_once_and_noted() -> None:
    y = un.datasets.toy_chain(100, 0.5, 5.0, rng=2)
    y[50] = 9.0
    obs = un.transitions(y)
    with pytest.raises(OutsideError):
        compare(TOY, obs, {"ML": {}})
    found = compare(
        TOY, obs, {"ML": {}, "R": {"objective": un.Ranking(un.Uniform(), per_point=5)}}, outside="drop", rng=1
    )
    for fit in found.fits.values():
        assert fit.n == 98
        assert sum("were dropped" in note for note in fit.notes) == 1


def test_its_repr_is_one_line(found: Any) -> None:
    names = "'ML', 'semiparametric', 'parametric', 'ranking', 'ignored'"
    assert repr(found) == f"Comparison({names}; see .summary())"


def test_an_objective_that_is_none(chain: un.Observations) -> None:
    with pytest.raises(CombinationError, match=r"specs\['a'\]: objective must be .*; got str"):
        compare(TOY, chain, {"a": {"objective": "logistic"}}, rng=1)
