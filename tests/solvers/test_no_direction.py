"""A step of length zero has no direction: cyclic terms add nothing there, in every form that a term takes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.engine import core
from unnorm.errors import DataError
from unnorm.objectives import rows
from unnorm.solvers.redraw_scores import RedrawScores
from unnorm.terms import parse

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few functions, coarse rules

BOX = un.Box((0, 1), (0, 1))
AT = np.linspace(-3.0, 3.0, 13)
RNG = np.random.default_rng(8)


def _walk(n: int, still: tuple[int, ...]) -> un.Observations:
    """Steps that favour one direction; those in `still` have length zero."""
    y = np.full((n + 1, 2), 0.5)
    for t in range(1, n + 1):
        while t not in still:
            angle, step = RNG.vonmises(1.0, 1.0), RNG.gamma(4.0, 0.02)
            y[t] = y[t - 1] + step * np.array([np.cos(angle), np.sin(angle)])
            if (y[t] > 0.0).all() and (y[t] < 1.0).all():
                break
        if t in still:
            y[t] = y[t - 1]
        elif t % 6 == 0:
            y[t] = RNG.uniform(0.3, 0.7, 2)  # away from the edges
    return un.transitions(y)


OBS = _walk(150, (20, 21, 90))
STILL = np.flatnonzero(np.all(OBS.outcome == OBS.previous(), axis=1))
MODEL = un.Additive("s(angle, bs='cc', k=6)", BOX)
OBJECTIVES: dict[str, Any] = {
    "exact": un.Exact(order=14),
    "poisson": un.Poisson(order=14),
    "logistic": un.Logistic(un.Uniform(), per_point=6),
    "ranking": un.Ranking(un.Uniform(), per_point=6),
}


def _columns(n: int = 400) -> dict[str, np.ndarray]:
    angle, x = RNG.uniform(-np.pi, np.pi, n), RNG.uniform(0.0, 1.0, n)
    angle[::37] = np.nan
    return {"angle": angle, "x": x, "g": np.array(list("abc"))[RNG.integers(0, 3, n)]}


FORMS = [
    "s(angle, bs='cc', k=6)",
    "s(angle, bs='cp', k=6)",
    "s(angle, bs='cc', k=6, by=x)",
    "s(angle, bs='cc', k=6, by=g)",
    "s(angle, g, bs='fs', xt='cc', k=6)",
    "te(x, angle, bs=('cr', 'cc'), k=4)",
]


@pytest.mark.parametrize("text", FORMS)
def test_columns_are_zero_there_and_centred_on_the_rest(text: str) -> None:
    columns = _columns()
    gone = np.isnan(columns["angle"])
    whole = {name: values[~gone] for name, values in columns.items()}
    settings: dict[str, Any] = {"periods": {"angle": 2 * np.pi}}
    if text.startswith("te"):  # x has a value in every row, and its knots are among all of them
        settings["knots"] = {"x": (0.0, 0.3, 0.7, 1.0)}
    terms = parse(text).build(columns, partial=("angle",), **settings)
    for term, other in zip(terms, parse(text).build(whole, **settings)):
        X = term.design(columns)
        assert not X[gone].any()
        np.testing.assert_allclose(X[~gone], other.design(whole), atol=1e-12)
        for mine, its in zip(term.penalties, other.penalties):
            np.testing.assert_allclose(mine.matrix, its.matrix, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("text", FORMS)
def test_the_engine_s_compact_rows_are_the_same(text: str) -> None:
    columns = _columns()
    terms = parse(text).build(columns, partial=("angle",), periods={"angle": 2 * np.pi})
    design = core.build_design(terms, columns, intercept=True)
    beta = RNG.standard_normal(design.size)
    dense = np.column_stack([np.ones(400), *(term.design(columns) for term in terms)])
    eta = design.unsort(design.predict(design.to_flat(beta)))
    np.testing.assert_allclose(eta, dense @ beta, atol=3e-3)  # the local form's own error
    gone = np.isnan(columns["angle"])
    np.testing.assert_allclose(eta[gone], beta[0], atol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_log_density_has_no_angle_part_there(name: str) -> None:
    fit = un.fit(MODEL, OBS, OBJECTIVES[name], rng=5)
    part = fit.smooths
    assert part is not None
    values = MODEL.covariates(OBS).values(("angle",), OBS)
    f = part.f(values)
    assert (f[STILL] == 0.0).all()
    assert np.abs(np.delete(f, STILL)).max() > 0.3
    assert any("3 of 150 steps have length zero" in note and "zero there" in note for note in fit.notes)
    grid = fit.effect("s(angle)")
    assert np.isfinite(np.asarray(grid["estimate"])).all()


@pytest.mark.parametrize("name", ["exact", "poisson"])
def test_the_curve_hardly_depends_on_them(name: str) -> None:
    """One of them counts as an observation of density 1/Z, which moves the curve by little."""
    one, none = (OBS.take(np.setdiff1d(np.arange(OBS.n), STILL[k:])) for k in (1, 0))
    curves = [un.fit(MODEL, obs, OBJECTIVES[name], rng=5).effect("s(angle)", at=AT) for obs in (one, none)]
    a, b = (np.asarray(one["estimate"]) - np.mean(one["estimate"]) for one in curves)
    assert np.abs(a - b).max() < 0.15 * np.asarray(curves[0]["se"]).mean()


def test_one_block_or_many(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for block in (rows.BLOCK, 90):

        def init(self: Any, *args: Any, _block: int = block, _init: Any = rows.ArrayRows.__init__, **more: Any) -> None:
            _init(self, *args, **{**more, "block": _block})

        with monkeypatch.context() as patch:
            patch.setattr(rows.ArrayRows, "__init__", init)
            model = un.Additive("s(step, k=5) + s(angle, bs='cc', k=6)", BOX)
            found.append(un.fit(model, OBS, OBJECTIVES["logistic"], rng=5))
    one, many = (fit.smooths for fit in found)
    assert one is not None
    assert many is not None
    np.testing.assert_allclose(many.beta, one.beta, rtol=1e-4, atol=1e-4 * np.abs(one.beta).max())
    np.testing.assert_allclose(
        np.diag(many.errors.reference), np.diag(one.errors.reference), rtol=1e-3, atol=1e-9 * np.abs(one.beta).max()
    )


def test_fresh_points_at_a_standstill_have_no_angle_part_either() -> None:
    model, chi = un.Additive("s(step, k=5) + s(angle, bs='cc', k=6)", BOX), un.Smooth("s(x_prev, k=4)")
    problem = OBJECTIVES["logistic"].additive(model, OBS, chi, 1)
    gam = un.Smoothing(reference_error=False).solve_rows(problem).terms.gam
    inner = gam.smoothed
    fresh = problem.redraw(0, 1.0).whole()
    still = np.flatnonzero(~fresh.data)[::5]
    y = fresh.y.copy()
    y[still] = OBS.previous()[fresh.context[still]]
    fresh = dataclasses.replace(fresh, y=y)
    part = problem.predictor(fresh)[1]
    assert np.isnan(part.columns["angle"][still]).all()
    X = np.ones((len(fresh), inner.size))
    for term in gam.terms:
        X[:, inner.slices[term.label]] = term.design({name: part.columns[name] for name in term.covariates})
    v = np.where(fresh.data, 0.0, fresh.likelihood.slopes(X @ inner.beta + part.offset)[0])
    found = RedrawScores(problem, gam.terms, inner.slices, inner.beta, gam.columns)(fresh)
    assert np.max(np.abs(found - X.T @ v) / np.sqrt((X**2).T @ v**2)) < 2e-3


def test_turns_are_simulated_from_a_standstill() -> None:
    chain = dataclasses.replace(OBS)
    y = np.concatenate([chain.previous()[:1], chain.outcome])
    obs = un.transitions(y, lags=2)
    fit = un.fit(un.Additive("s(step, k=5) + s(turn, bs='cc', k=6)", BOX), obs, OBJECTIVES["logistic"], rng=5)
    start = np.full((3, 2, 2), 0.5)
    path = fit.simulate(4, x0=start, rng=1)
    assert np.isfinite(np.column_stack([np.asarray(path[name], dtype=float) for name in obs.outcome_names])).all()


def test_every_other_use_is_refused_with_a_remedy() -> None:
    objective = OBJECTIVES["logistic"]
    with pytest.raises(DataError, match=r"3 of 1,050 rows have no angle .* Use bs='cc'"):
        un.fit(un.Additive("s(angle, k=6)", BOX), OBS, objective, rng=5)
    cosine = un.Expression("east", "cos(angle)")
    with pytest.raises(
        DataError, match=r"no angle; say what 'east' is there, as in where\(step > 0, cos\(angle\), 0\)"
    ):
        un.fit(un.Additive("east", BOX, covariates=[cosine]), OBS, objective, rng=5)
    mended = un.Expression("east", "where(step > 0, cos(angle), 0)")
    un.fit(un.Additive("east", BOX, covariates=[mended]), OBS, objective, rng=5)


def test_other_missing_values_are_refused_still() -> None:
    angle = RNG.uniform(-np.pi, np.pi, 60)
    angle[3] = np.nan
    with pytest.raises(DataError, match="1 missing or infinite"):
        parse("s(angle, bs='cc')").build({"angle": angle}, periods={"angle": 2 * np.pi})


def test_knots_of_a_direction_do_not_depend_on_the_objective_s_rows() -> None:
    fits = [un.fit(MODEL, OBS, objective, rng=5).smooths for objective in OBJECTIVES.values()]
    for part in fits:
        assert part is not None
        np.testing.assert_allclose(part.term("s(angle)").breaks, np.linspace(-np.pi, np.pi, 6), atol=1e-12)
    exact, poisson = fits[:2]
    assert exact is not None
    assert poisson is not None
    assert exact.edf["s(angle)"] == pytest.approx(poisson.edf["s(angle)"], rel=1e-4)
