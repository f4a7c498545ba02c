"""A cyclic smooth of a coordinate of Ω closes at the ends of Ω, whatever rows there are."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import hush
from unnorm.solvers.stochastic.chi import SmoothChi, chi_of

Y = un.iid(np.random.default_rng(1).beta(4.0, 6.0, 200))  # none near the ends of [−1, 2]
OMEGA = un.Interval(-1, 2)
EVEN = un.Logistic(total=400)


def toy(omega: un.Interval) -> un.ExponentialFamily:
    return un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), omega)


def ends(fit: un.Fit, label: str) -> list[float]:
    assert fit.smooths is not None
    breaks = fit.smooths.term(label).breaks
    assert breaks is not None
    return [float(breaks[0]), float(breaks[-1])]


@pytest.mark.parametrize("bs", ["cc", "cp"])
@pytest.mark.parametrize("objective", [EVEN, un.Exact()], ids=["logistic", "exact"])
def test_the_circle_closes_at_the_ends_of_the_interval(bs: str, objective: un.objectives.Objective) -> None:
    fit = un.fit(un.Additive(f"s(y, bs='{bs}', k=6)", OMEGA), Y, objective, rng=1)
    assert ends(fit, "s(y)") == [-1.0, 2.0]
    low, high = fit.log_density([-1.0, 2.0])
    assert low == pytest.approx(high, abs=1e-9)


def test_reference_points_do_not_move_its_knots() -> None:
    model = un.Additive("s(y, bs='cc', k=6)", OMEGA)
    narrow = un.Logistic(un.Gaussian(mean=0.4, cov=0.01), total=400)
    one, other = (un.fit(model, Y, objective, rng=1).smooths for objective in (EVEN, narrow))
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.term("s(y)").breaks, other.term("s(y)").breaks)


def test_given_knots_come_first_and_other_bases_are_left_alone() -> None:
    for terms, knots in (("s(y, bs='cc', k=6)", {"y": (0.0, 1.0)}), ("s(y, bs='cc', k=6, knots=(0, 1))", None)):
        with hush():  # that circle is not Ω's
            assert ends(un.fit(un.Additive(terms, OMEGA, knots=knots), Y, EVEN, rng=1), "s(y)") == [0.0, 1.0]
    low, high = un.fit(un.Additive("s(y, k=6)", OMEGA), Y, EVEN, rng=1).log_density([-1.0, 2.0])
    assert abs(low - high) > 0.1  # no circle where none was asked for


def test_every_coordinate_has_its_own_ends_and_so_have_earlier_points() -> None:
    xy = np.random.default_rng(2).uniform((0.0, 0.0), (10.0, 5.0), (150, 2))
    obs = un.transitions({"a": xy[:, 0], "b": xy[:, 1]}, y=("a", "b"))
    model = un.Additive("s(x, bs='cc', k=5) + s(b, bs='cc', k=5) + te(x, y, bs='cc', k=4)", un.Box((0, 10), (0, 5)))
    fit = un.fit(model, obs, un.Logistic(per_point=2), un.Smooth("s(y_prev, bs='cc', k=5)"), rng=1)
    assert [ends(fit, label) for label in ("s(x)", "s(b)", "s(y_prev)")] == [[0.0, 10.0], [0.0, 5.0], [0.0, 5.0]]
    assert fit.smooths is not None
    corner = fit.smooths.term("te(x,y)").design({"x": np.array([0.0, 10.0, 0.0]), "y": np.array([0.0, 0.0, 5.0])})
    np.testing.assert_allclose(corner, corner[[1, 2, 0]], atol=1e-9)


def test_other_columns_close_at_the_rows() -> None:
    x = np.random.default_rng(3).uniform(3.0, 7.0, 200)
    obs = un.conditional({"y": Y.outcome[:, 0], "hour": x}, y="y", x="hour")
    model = un.Additive("te(y, hour, bs=('cr', 'cc'), k=4)", OMEGA)
    known = model.covariates(obs)
    assert known.ends("y") == (-1.0, 2.0, True)
    assert known.ends("hour") is None
    assert un.Additive("s(y)", un.Circle()).covariates(un.iid([0.1, 0.2])).ends("y") is None  # it has a period


def test_so_it_does_in_stochastic_runs_and_joint_fits() -> None:
    walk = un.transitions(Y.outcome[:, 0])
    chi = chi_of(un.Smooth("s(y_prev, bs='cc', k=5)"), walk, toy(OMEGA))
    assert isinstance(chi, SmoothChi)
    assert chi.terms[0].breaks is not None
    assert chi.terms[0].breaks[[0, -1]].tolist() == [-1.0, 2.0]
    who = un.iid({"y": Y.outcome[:, 0], "who": np.repeat(["a", "b"], 100)}, y="y", group="who")
    with hush():  # two levels are few
        group = un.fit_each(un.Additive("s(y, bs='cc', k=6)", OMEGA), who, "who", EVEN, rng=1)
    low, high = group.effect("s(y)", at=[-1.0, 2.0])["estimate"]
    assert low == pytest.approx(high, abs=1e-9)


@pytest.mark.parametrize("terms", ["s(y_prev, bs='cc')", "s(y_prev, bs='cc', k=20)"])
def test_constants_are_estimable_where_the_rows_leave_most_of_the_domain_empty(terms: str) -> None:
    """Their smooth has no penalty: with even steps most functions would be the same on the rows."""
    walk, wide = un.transitions(Y.outcome[:, 0]), un.Interval(-20, 20)
    near = un.Logistic(un.Gaussian(mean=0.4, cov=0.05), per_point=4)
    with hush():  # a χ without a penalty is rough
        fit = un.fit(toy(wide), walk, near, un.Smooth(terms), rng=1)
    assert ends(fit, "s(y_prev)") == [-20.0, 20.0]
    assert fit.smooths is not None
    inner = fit.smooths.term("s(y_prev)").breaks[1:-1]  # pyright: ignore[reportOptionalSubscript]
    before = walk.context["y_prev"]
    assert before.min() < inner.min() < inner.max() < before.max()


def test_points_of_reference_move_no_knots_of_earlier_points_either() -> None:
    walk = un.transitions(Y.outcome[:, 0])
    model = un.Additive("s(y, k=5) + s(y_prev, bs='cc', k=6, by=y)", OMEGA)
    one, other = (un.fit(model, walk, un.Logistic(per_point=m), rng=m).smooths for m in (2, 3))
    assert one is not None
    assert other is not None
    label = "s(y_prev):y"
    np.testing.assert_array_equal(one.term(label).breaks, other.term(label).breaks)


def test_which_names_have_ends() -> None:
    xy = np.random.default_rng(6).random((30, 2))
    table = {"a": xy[:, 0], "b": xy[:, 1], "age": xy[:, 0]}
    known = un.Additive("step", un.Box((0, 2), (0, 1))).covariates(
        un.transitions(table, y=("a", "b"), extra="age", lags=2)
    )
    for name in ("a", "x"):
        assert known.ends(name) == (0.0, 2.0, True)
    for name in ("b_prev", "y_prev", "b_prev2"):
        assert known.ends(name) == (0.0, 1.0, False)
    for name in ("age", "step", "dcenter", "nobody"):
        assert known.ends(name) is None
    assert un.Additive("y1", OMEGA).covariates(un.iid(np.ones((3, 2)))).ends("y2") is None  # it is not Ω's
    four = un.Additive("s(y, bs='cc')", un.FiniteSet([0.0, 1.0, 2.0, 5.0])).covariates(un.iid([0.0, 1.0]))
    assert four.ends("y") is None
