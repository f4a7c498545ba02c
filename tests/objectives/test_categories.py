"""Observations keep the levels of their categories, and whether they are ordered, for un.Additive as for un.gam."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import unnorm as un
from unnorm.errors import UnnormError

ORDER = ["low", "mid", "high", "never"]
LOGISTIC, RANKING = un.Logistic(un.Uniform(), per_point=4), un.Ranking(un.Uniform(), per_point=4)
BOX = un.Box((0, 1), (0, 1))


def _columns():
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 150))
    return {"x": x, "y": y, "i": np.arange(150)}, rng.integers(0, 3, 150)


def _observations(ordered: bool, numbers: bool = False) -> un.Observations:
    columns, at = _columns()
    levels = [3, 1, 2, 9] if numbers else ORDER
    category = pd.Categorical([levels[i] for i in at], categories=levels, ordered=ordered)
    return un.transitions(pd.DataFrame({**columns, "l": category}), y=("x", "y"), order="i", extra=("l", "l_prev"))


def _labels(terms: str, obs: un.Observations, objective: Any) -> list[str]:
    """Of the smooth terms."""
    smooths = _fitted(terms, obs, objective).smooths
    assert smooths is not None
    return list(smooths.edf)


def _fitted(terms: str, obs: un.Observations, objective: Any) -> un.Fit:
    return un.fit(un.Additive(terms, BOX), obs, objective, rng=1)


@pytest.mark.parametrize("objective", [LOGISTIC, RANKING], ids=["logistic", "ranking"])
def test_levels_come_in_their_own_order(objective):
    obs = _observations(False)
    assert list(_fitted("step:l", obs, objective).theta) == ["step:llow", "step:lmid", "step:lhigh"]
    assert next(iter(_fitted("step:l_prev", obs, objective).theta)) == "step:l_prevlow"
    assert _labels("s(step, by=l, k=5)", obs, objective) == [f"s(step):l{level}" for level in ORDER[:3]]
    effect = _fitted("s(step, l, bs='fs', k=4)", obs, objective).effect("s(step,l)")
    assert list(dict.fromkeys(effect["l"])) == ORDER[:3]


@pytest.mark.parametrize("objective", [LOGISTIC, RANKING], ids=["logistic", "ranking"])
def test_an_ordered_by_gives_differences_from_the_first_level(objective):
    terms = "s(step, k=5) + s(step, by=l, k=5)"
    assert _labels(terms, _observations(True), objective) == ["s(step)", "s(step):lmid", "s(step):lhigh"]
    every = ["s(step)", *(f"s(step):l{level}" for level in ORDER[:3])]
    assert _labels(terms, _observations(False), objective) == every


def test_a_polars_enum_is_an_order():
    pl = pytest.importorskip("polars")
    columns, at = _columns()
    table = pl.DataFrame({**columns, "l": pl.Series([ORDER[i] for i in at], dtype=pl.Enum(ORDER))})
    obs = un.transitions(table, y=("x", "y"), order="i", extra="l")
    labels = _labels("s(step, k=5) + s(step, by=l, k=5)", obs, RANKING)
    assert labels == ["s(step)", "s(step):lmid", "s(step):lhigh"]


@pytest.mark.parametrize("objective", [LOGISTIC, RANKING], ids=["logistic", "ranking"])
def test_a_category_of_numbers_is_a_factor(objective):
    """As in un.gam: `by=` a number would be another model."""
    obs = _observations(False, numbers=True)
    assert list(_fitted("step:l", obs, objective).theta) == ["step:l3", "step:l1", "step:l2"]
    assert _labels("s(step, by=l, k=5)", obs, objective) == ["s(step):l3", "s(step):l1", "s(step):l2"]
    ordered = _observations(True, numbers=True)
    labels = _labels("s(step, k=5) + s(step, by=l, k=5)", ordered, objective)
    assert labels == ["s(step)", "s(step):l1", "s(step):l2"]


def test_other_observations_keep_them_too():
    columns, at = _columns()
    table = pd.DataFrame({**columns, "l": pd.Categorical([ORDER[i] for i in at], categories=ORDER)})
    obs = un.conditional(table, y="x", x=("y", "l")).take(np.arange(100))
    fit = un.fit(un.Additive("s(x, by=l, k=5)", un.Interval(0, 1)), obs, un.Poisson())
    assert fit.smooths is not None
    assert list(fit.smooths.edf) == ["s(x):llow", "s(x):lmid", "s(x):lhigh"]
    track = un.track(table.assign(t=60 * np.arange(150)), time="t", x="x", y="y", columns=("l",), unit="metres")
    assert track.observations().categories["l_start"].levels == tuple(ORDER)


def test_the_joint_fit_of_levels_has_the_order():
    columns, at = _columns()
    who = np.repeat(["a", "b"], 75)
    category = pd.Categorical([ORDER[i] for i in at], categories=ORDER, ordered=True)
    table = pd.DataFrame({**columns, "who": who, "l": category})
    obs = un.transitions(table, y=("x", "y"), order="i", group="who", extra="l")
    each = un.fit_each(un.Additive("s(step, k=5) + s(step, by=l, k=4)", BOX), obs, "who", LOGISTIC, rng=1)
    assert each.group is not None
    assert each.group.smooths is not None
    assert list(each.group.smooths.edf) == ["s(step)", "s(step):lmid", "s(step):lhigh"]


def test_a_checkpoint_knows_the_order(tmp_path):
    columns, at = _columns()
    columns["who"] = np.repeat(["a", "b"], 75)
    model = un.Additive("step:l", BOX)

    def fitted(order: list[str]) -> un.FitGroup:
        category = pd.Categorical([ORDER[i] for i in at], categories=order)
        table = pd.DataFrame({**columns, "l": category})
        obs = un.transitions(table, y=("x", "y"), order="i", group="who", extra="l")
        return un.fit_each(model, obs, "who", LOGISTIC, rng=1, group=False, checkpoint=tmp_path / "kept")

    first = fitted(ORDER)
    assert list(first.fits["a"].theta) == list(fitted(ORDER).fits["a"].theta)
    with pytest.raises(UnnormError):
        fitted(ORDER[::-1])
