"""Ridge and lasso: optimality conditions, and the path that chooses their strength."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import unnorm as un
from unnorm.errors import CombinationError, InputError

EVERY = un.ConditionalNCE(un.BitFlip(every=True))
D = 8
MODEL = un.Ising(D)
TRUTH = np.concatenate([np.full(D, -0.5), np.where(np.arange(MODEL.size - D) < 5, 1.2, 0.0)])


def _data(n: int = 600) -> np.ndarray:
    return MODEL.sampler(TRUTH, ()).sweep(np.zeros((n, D)), 50, np.random.default_rng(1))


def test_ridge_is_the_penalised_maximum() -> None:
    y, lam = _data(), 0.05
    X = MODEL.changes(y, ()).reshape(-1, MODEL.size)
    S = lam * len(y) * MODEL.penalised
    found = minimize(
        lambda v: np.logaddexp(0, X @ v).sum() + 0.5 * S @ v**2,
        np.zeros(MODEL.size),
        jac=lambda v: X.T @ expit(X @ v) + S * v,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    fit = un.fit(MODEL, un.iid(y), EVERY, solver=un.LBFGS(1e-14, ridge=lam), rng=1)
    np.testing.assert_allclose(fit.estimate, found.x, atol=1e-6)
    p = expit(X @ found.x)
    V = np.linalg.inv(X.T @ (X * (p * (1 - p))[:, None]) + np.diag(S))
    g = (-p[:, None] * X).reshape(len(y), D, -1).sum(axis=1)
    expected = np.sqrt(np.diag(V @ (g.T @ g * len(y) / (len(y) - 1)) @ V))
    table = fit.solution.chosen.empirical(np.arange(MODEL.size))  # pyright: ignore
    np.testing.assert_allclose(np.sqrt(np.diag(table)), expected, rtol=1e-3)
    assert any("do not make up" in note for note in fit.notes)


def test_lasso_fulfils_its_optimality_conditions() -> None:
    y, lam = _data(), 0.02
    fit = un.fit(MODEL, un.iid(y), EVERY, solver=un.LBFGS(1e-13, lasso=lam), rng=1)
    X = MODEL.changes(y, ()).reshape(-1, MODEL.size)
    g = -X.T @ expit(X @ fit.estimate) / len(y)
    zero, on = fit.estimate == 0, MODEL.penalised
    assert 5 < zero.sum() < 27
    assert np.abs(g[zero]).max() <= lam
    np.testing.assert_allclose(g[on & ~zero], lam * np.sign(fit.estimate[on & ~zero]), atol=1e-6)
    np.testing.assert_allclose(g[~on], 0.0, atol=1e-6)
    assert not fit.has_covariance
    assert any("intervals that ignore the selection are too short" in note for note in fit.notes)


@pytest.mark.parametrize("kind", ["ridge", "lasso"])
def test_the_path_finds_a_penalty_that_predicts_better(kind) -> None:
    path = un.penalty_path(MODEL, un.iid(_data(150)), kind, folds=4, rng=3)
    assert path.score.max() > path.score[-1]  # hardly any penalty
    assert path.chosen >= path.best
    assert path.fit.settings["solver"][kind] == path.chosen
    error = [np.abs(f.estimate - TRUTH).mean() for f in (path.fit, un.fit(MODEL, un.iid(_data(150)), EVERY))]
    assert error[0] < error[1]
    assert np.all(np.diff(path.strengths) < 0)
    if kind == "lasso":
        assert path.nonzero[0] <= 3
        assert path.nonzero[-1] > 15


@pytest.mark.parametrize("kind", ["ridge", "lasso"])
def test_the_choice_is_the_largest_within_an_error_of_the_best(kind) -> None:
    path = un.penalty_path(MODEL, un.iid(_data(150)), kind, np.geomspace(0.2, 0.003, 12), folds=4, rng=4)
    near = path.score >= path.score.max() - path.se
    assert path.chosen == path.strengths[near].max() > path.best
    assert path.best == path.strengths[np.argmax(path.score)]


@pytest.mark.parametrize("kind", ["ridge", "lasso"])
def test_ncic_is_its_formula(kind) -> None:
    y, lams = _data(500), np.array([0.05, 0.01, 0.002])
    weight = np.random.default_rng(2).integers(1, 3, len(y))
    path = un.penalty_path(MODEL, un.iid(y, weight=weight), kind, lams, rng=1, selection="ncic")
    every = np.repeat(y, weight, axis=0)  # a weight of two is two observations
    X = MODEL.changes(every, ()).reshape(-1, MODEL.size)
    for lam, score in zip(lams, path.score):
        solver = un.LBFGS(1e-13, **{kind: lam})
        theta = un.fit(MODEL, un.iid(every), EVERY, solver=solver, rng=1).estimate
        on = (theta != 0) if kind == "lasso" else np.full(MODEL.size, True)
        p = expit(X @ theta)
        J = (X.T @ (X * (p * (1 - p))[:, None]))[np.ix_(on, on)]
        S = np.diag((lam * len(every) * MODEL.penalised if kind == "ridge" else np.zeros(MODEL.size))[on])
        g = (-p[:, None] * X).reshape(len(every), D, -1).sum(axis=1)[:, on]
        trace = np.trace(np.cov(g, rowvar=False) * len(every) @ np.linalg.inv(J + S))
        ncic = 2 * np.logaddexp(0, X @ theta).sum() + 2 * trace
        assert score == pytest.approx(-ncic / (2 * len(every)), abs=2e-6)
    assert path.best == path.chosen == lams[np.argmax(path.score)]
    assert np.isnan(path.se).all()
    assert any("chosen by NCIC" in note for note in path.fit.notes)


@pytest.mark.parametrize("kind", ["ridge", "lasso"])
def test_ncic_chooses_nearly_what_cross_validation_does(kind) -> None:
    obs, lams = un.iid(_data(600)), np.geomspace(0.1, 0.0005, 9)
    cv, ncic = (un.penalty_path(MODEL, obs, kind, lams, folds=8, rng=2, selection=s) for s in ("cv", "ncic"))
    assert abs(np.log(ncic.best / cv.best)) <= 1.01 * abs(np.log(lams[1] / lams[0]))
    inner = slice(0, 7)
    np.testing.assert_allclose(ncic.score[inner] - ncic.score.max(), cv.score[inner] - cv.score.max(), atol=0.01)


def test_ncic_says_where_it_is_not_for_the_data() -> None:
    y = np.where(np.random.default_rng(5).random((120, D)) < 0.1, np.nan, _data(120))
    with pytest.raises(CombinationError, match="bits are missing: use selection='cv'"):
        un.penalty_path(MODEL, un.iid(y, missing="keep"), "ridge", selection="ncic")
    few = np.random.default_rng(6).integers(0, 2, (30, D))
    with pytest.raises(InputError, match="30 observations are too few for NCIC"):
        un.penalty_path(MODEL, un.iid(few), "ridge", [1e-4], selection="ncic")
    with pytest.raises(InputError, match="'cv', 'ncic'"):
        un.penalty_path(MODEL, un.iid(_data(50)), selection="aic")  # pyright: ignore


def test_missing_bits_and_words() -> None:
    y = np.where(np.random.default_rng(5).random((120, D)) < 0.1, np.nan, _data(120))
    path = un.penalty_path(MODEL, un.iid(y, missing="keep"), "ridge", [0.1, 0.01], folds=2, rng=1)
    assert path.fit.settings["solver"]["solver"] == "Imputing"
    with pytest.raises(InputError, match="'ridge', 'lasso'"):
        un.penalty_path(MODEL, un.iid(_data(50)), "both")  # pyright: ignore
    with pytest.raises(InputError, match="positive"):
        un.penalty_path(MODEL, un.iid(_data(50)), strengths=[-1])
    with pytest.raises(InputError, match="Use fewer folds"):
        un.penalty_path(MODEL, un.iid(_data(3)), folds=5)
    with pytest.raises(CombinationError, match="on bits"):
        un.penalty_path(un.ExponentialFamily(lambda y: y, "a", un.Interval(0, 1)), un.iid([0.2, 0.4, 0.5]), folds=2)
    with pytest.raises(InputError, match="non-negative"):
        un.LBFGS(ridge=-1)
