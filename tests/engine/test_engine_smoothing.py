"""Smoothing selection: exact criteria and gradients against dense brute force, the two paths, infinity, and what is
refused."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unnorm.engine import build as design_build
from unnorm.engine.arrow import Arrow
from unnorm.engine.core import build_design, fit_many, smooth_fit
from unnorm.engine.criteria import Laplace, PredictionError, Working, solve
from unnorm.engine.families import FAMILIES, POISSON
from unnorm.engine.outer import Iteration
from unnorm.engine.segment import ResponseRows
from unnorm.errors import InputError, NoEstimateError, NotIdentifiedError, UnnormWarning
from unnorm.terms.parser import parse

N = 600


@cache
def table(n: int = N, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    data = {"a": rng.uniform(0, 1, n), "b": rng.uniform(0, 1, n), "c": rng.uniform(0, 1, n)}
    data["g"] = np.array(["u", "v", "w"])[rng.integers(0, 3, n)]
    shift = {"u": -0.5, "v": 0.0, "w": 0.8}
    eta = np.sin(6 * data["a"]) + 4 * (data["b"] - 0.5) ** 2 + np.array([shift[g] for g in data["g"]]) * data["b"] - 0.8
    data["binomial"] = (rng.random(n) < 1 / (1 + np.exp(-2 * eta))).astype(float)
    data["poisson"] = rng.poisson(np.exp(0.7 * eta)).astype(float)
    data["gaussian"] = eta + 0.5 * rng.normal(size=n)
    return data


FORMULA = "s(a, k=9, bs='cr') + s(b, k=8, bs='cr') + s(g, bs='re')"


@cache
def problem(formula: str = FORMULA):
    data = table()
    terms = parse(formula).build(data)
    return terms, build_design(terms, data), np.column_stack([np.ones(N), *(t.design(data) for t in terms)])


def penalty_matrices(terms, p: int) -> list[np.ndarray]:
    out, at = [], 1
    for term in terms:
        for penalty in term.penalties:
            S = np.zeros((p, p))
            S[at : at + term.size, at : at + term.size] = penalty.matrix
            out.append(S)
        at += term.size
    return out


class Dense:
    """REML, ML, UBRE and GCV as the formulas say, with dense matrices and Newton steps to convergence."""

    def __init__(self, terms, X, y, family):
        self.X, self.y, self.family = X, y, family
        self.S = penalty_matrices(terms, X.shape[1])

    def fit(self, rho):
        X, y = self.X, self.y
        S = sum(np.exp(r) * s for r, s in zip(rho, self.S))
        beta = np.zeros(X.shape[1])
        for _ in range(60):
            eta = X @ beta
            if self.family == "binomial":
                mu = 1 / (1 + np.exp(-eta))
                w, loglik = mu * (1 - mu), np.sum(y * eta - np.logaddexp(0, eta))
            elif self.family == "poisson":
                mu = np.exp(eta)
                w, loglik = mu, np.sum(y * eta - mu)
            else:
                mu, w, loglik = eta, np.ones_like(y), -0.5 * np.sum((y - eta) ** 2)
            A = X.T @ (w[:, None] * X)
            step = np.linalg.solve(A + S, X.T @ (y - mu) - S @ beta)
            beta = beta + step
            if np.abs(step).max() < 1e-10:
                break
        return beta, S, A, loglik

    def criterion(self, rho, method):
        from scipy.special import gammaln, xlogy

        y, n = self.y, len(self.y)
        beta, S, A, loglik = self.fit(rho)
        if self.family == "poisson":
            constant, saturated = -np.sum(gammaln(y + 1)), np.sum(xlogy(y, y) - y)
        else:
            constant, saturated = 0.0, 0.0
        if method == "GCV":
            tau = np.trace(np.linalg.solve(A + S, A))
            deviance = 2 * (saturated - loglik)
            return n * deviance / (n - tau) ** 2 if self.family == "gaussian" else (deviance + 2 * tau) / n - 1
        values, vectors = np.linalg.eigh(sum(s / np.linalg.norm(s) for s in self.S))
        ranged = vectors[:, values > 1e-8]
        null = len(values) - ranged.shape[1] if method == "REML" else 0
        inside = ranged if method == "ML" else np.eye(len(values))
        log_h = np.linalg.slogdet(inside.T @ (A + S) @ inside)[1]
        log_s = np.linalg.slogdet(ranged.T @ S @ ranged)[1]
        half = -loglik + 0.5 * beta @ S @ beta
        if self.family != "gaussian":
            return half - constant + 0.5 * (log_h - log_s) - 0.5 * null * np.log(2 * np.pi)
        left = n - null
        return 0.5 * left * (np.log(2 * np.pi * 2 * half / left) + 1) + 0.5 * (log_h - log_s)

    def gradient(self, rho, method, h=1e-3):
        return np.array(
            [
                (
                    8 * (self.criterion(rho + e, method) - self.criterion(rho - e, method))
                    - (self.criterion(rho + 2 * e, method) - self.criterion(rho - 2 * e, method))
                )
                / (12 * h)
                for e in h * np.eye(len(rho))
            ]
        )


CASES = [(family, method) for family in ("binomial", "poisson", "gaussian") for method in ("REML", "ML", "GCV")]


@pytest.mark.parametrize(("family", "method"), CASES)
def test_score_and_stationarity_of_the_exact_criterion(family, method):
    terms, design, X = problem()
    fit = smooth_fit(design, table()[family], family, method=method)
    dense = Dense(terms, X, table()[family], family)
    assert fit.converged
    assert fit.score == pytest.approx(dense.criterion(fit.rho, method), rel=1e-7, abs=1e-7)
    unit = N / 2 if method == "GCV" else 1.0  # on the scale of a log-likelihood
    if method == "GCV" and family == "gaussian":
        unit /= fit.score
    assert np.abs(unit * dense.gradient(fit.rho, method)).max() < 5e-3
    beta, S, A, _loglik = dense.fit(fit.rho)
    P = np.linalg.inv(A + S)
    np.testing.assert_allclose(fit.beta, beta, atol=2e-3 * np.sqrt(np.diag(P)).max())
    np.testing.assert_allclose(fit.Vp, fit.scale * P, atol=2e-3 * np.abs(fit.scale * P).max())
    np.testing.assert_allclose(fit.Ve, fit.scale * P @ A @ P, atol=2e-3 * np.abs(fit.scale * P).max())
    F = P @ A
    np.testing.assert_allclose(fit.F, F, atol=2e-3)
    np.testing.assert_allclose(fit.edf, np.diag(F), atol=2e-3)
    np.testing.assert_allclose(fit.edf1, np.diag(2 * F - F @ F), atol=2e-3)
    label = terms[0].label
    np.testing.assert_allclose(fit.covariance_block(label), fit.Vp[fit.slices[label], fit.slices[label]], atol=1e-10)
    np.testing.assert_allclose(fit.linear_predictor(), X @ fit.beta, atol=1e-8)
    h = 1e-4
    for j in range(len(fit.rho)):
        e = h * np.eye(len(fit.rho))[j]
        slope = (dense.fit(fit.rho + e)[0] - dense.fit(fit.rho - e)[0]) / (2 * h)
        np.testing.assert_allclose(fit.dbeta_drho[:, j], slope, atol=2e-3 * np.abs(slope).max() + 1e-4)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("method", ["REML", "ML", "GCV"])
def test_gradient_away_from_the_optimum_needs_the_leverage_pass(family, method):
    terms, design, X = problem()
    y = table()[family]
    dense = Dense(terms, X, y, family)
    rho = np.array([0.5, -1.0, 1.0])
    beta = design.to_flat(dense.fit(rho)[0])
    rows = ResponseRows(design.sort(y), np.empty(0), np.empty(0))
    loglik, score, cross = design.sweep(rows, FAMILIES[family], beta, 1)
    criterion = PredictionError(0.0) if method == "GCV" else Laplace(method == "REML")
    bare = Working(beta, loglik, score, cross, 0.0, N, True, np.zeros(design.size))
    lever = criterion.lever(bare, design.penalties, solve(bare, design.penalties, rho))
    tilt = design.leverage(rows, FAMILIES[family], beta, lever, 1)
    full = Working(beta, loglik, score, cross, 0.0, N, True, tilt)
    unit = N / 2 if method == "GCV" else 1.0
    exact = unit * dense.gradient(rho, method)
    with_w = criterion.full(full, design.penalties, rho).gradient
    without = criterion.full(bare, design.penalties, rho).gradient
    np.testing.assert_allclose(with_w, exact, atol=1e-6 * np.abs(exact).max())
    assert np.abs(without - exact).max() > 1e-4 * np.abs(exact).max()  # what dW/dρ is worth


@pytest.mark.parametrize("method", ["REML", "ML", "GCV"])
@pytest.mark.parametrize("family", ["binomial", "gaussian"])
@pytest.mark.parametrize(
    "formula",
    [
        "s(a, k=6, bs='cr') + s(b, k=6, by=g, bs='cr') + factor(g)",
        "s(a, k=6, bs='cr') + s(b, g, bs='fs', k=5)",
    ],
)
def test_the_path_by_levels_is_the_dense_path(formula, family, method, monkeypatch):
    data = table()
    terms = parse(formula).build(data)
    by_levels = build_design(terms, data)
    assert by_levels.levels == 3
    monkeypatch.setattr(design_build, "_partition", lambda terms, arrays: design_build._Partition())
    together = build_design(terms, data)
    assert together.levels == 0
    one = smooth_fit(by_levels, data[family], family, method=method)
    two = smooth_fit(together, data[family], family, method=method)
    close = 1e-8 if "fs" not in formula else 2e-6  # fs is of thin plates: local by levels, dense together
    assert one.score == pytest.approx(two.score, rel=close, abs=2 * close)
    finite = ~(one.flat | two.flat) & (np.abs(one.rho) < 9)
    np.testing.assert_allclose(one.rho[finite], two.rho[finite], atol=0.02)
    np.testing.assert_allclose(one.linear_predictor(), two.linear_predictor(), atol=2e-3)
    np.testing.assert_allclose(one.edf, two.edf, atol=5e-3)
    np.testing.assert_allclose(one.edf1, two.edf1, atol=5e-3)
    np.testing.assert_allclose(one.Vp, two.Vp, atol=5e-3 * np.abs(two.Vp).max())
    np.testing.assert_allclose(one.Ve, two.Ve, atol=5e-3 * np.abs(two.Vp).max())


def test_a_straight_line_takes_an_infinite_smoothing_parameter():
    rng = np.random.default_rng(1)
    data = {"a": rng.uniform(0, 1, 800), "b": rng.uniform(0, 1, 800)}
    y = (rng.random(800) < 1 / (1 + np.exp(-(2 * data["a"] - 1 + np.sin(6 * data["b"]))))).astype(float)
    terms = parse("s(a, k=20) + s(b, k=10)").build(data)
    fit = smooth_fit(build_design(terms, data), y)
    assert fit.converged
    assert fit.flat.tolist() == [True, False]
    assert fit.edf[fit.slices["s(a)"]].sum() == pytest.approx(1.0, abs=2e-3)
    line = parse("linear(a) + s(b, k=10)").build(data)
    same = smooth_fit(build_design(line, data), y)
    np.testing.assert_allclose(fit.linear_predictor(), same.linear_predictor(), atol=5e-3)


def test_fixed_smoothing_parameters_are_kept():
    terms, design, X = problem()
    y = table()["binomial"]
    labels = design.penalties.labels
    fit = smooth_fit(design, y, sp={labels[0]: 2.0})
    assert np.exp(fit.rho[0]) == pytest.approx(2.0)
    assert fit.estimated.tolist() == [False, True, True]
    all_fixed = smooth_fit(design, y, sp=np.exp(fit.rho))
    assert all_fixed.method == "fixed"
    np.testing.assert_allclose(all_fixed.beta, fit.beta, atol=1e-3)
    np.testing.assert_allclose(all_fixed.beta, Dense(terms, X, y, "binomial").fit(fit.rho)[0], atol=1e-4)
    with pytest.raises(InputError, match="must be one of"):
        smooth_fit(design, y, sp={"s(nothing)": 1.0})


def test_from_a_first_fit_on_some_rows_to_the_same_optimum(monkeypatch):
    data = table(4000, 3)
    terms = parse("s(a, k=9) + s(b, k=9)").build(data)
    design = build_design(terms, data)
    plain = smooth_fit(design, data["binomial"])
    monkeypatch.setattr("unnorm.engine.core._MANY", 1000)
    monkeypatch.setattr("unnorm.engine.core._FEW", 500)
    monkeypatch.setattr("unnorm.engine.core._PER_COLUMN", 20)
    warm = smooth_fit(design, data["binomial"])
    assert "first fit on some contexts" in warm.timings
    assert warm.iterations["passes"] < plain.iterations["passes"]
    assert warm.score == pytest.approx(plain.score, abs=1e-4)
    np.testing.assert_allclose(warm.rho, plain.rho, atol=0.02)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("seed", [3, 4, 5, 6])
def test_standard_errors_of_many_rows_are_those_at_the_reported_estimate(family, seed):
    """Where rows are many the iteration stops early: not before W is that at β̂, and a few steps more change nothing."""
    data = {name: column.copy() for name, column in table(21_000, seed).items()}
    if family == "binomial":  # rare ones: W moves with β
        chance = 1 / (1 + np.exp(4 - 2 * np.sin(6 * data["a"]) - data["b"]))
        data["binomial"] = (np.random.default_rng(seed + 100).random(21_000) < chance).astype(float)
    design = build_design(parse("s(a, k=12) + s(b, k=12) + s(c, k=8)").build(data), data)
    fit = smooth_fit(design, data[family], family)
    rows = ResponseRows(design.sort(data[family]), np.empty(0), np.empty(0))
    cross = design.sweep(rows, FAMILIES[family], design.to_flat(fit.beta))[2]
    there = cross.add(*design.penalties.parts(np.exp(fit.rho))).invert()
    np.testing.assert_allclose(fit.inverse.diagonal(), there.diagonal(), rtol=2e-3)
    fixed = smooth_fit(design, data[family], family, sp=np.exp(fit.rho))  # Newton's steps to the end, at this ρ
    assert np.abs(design.to_flat(fit.beta - fixed.beta) / np.sqrt(there.diagonal())).max() < 1e-3
    assert fit.score == pytest.approx(fixed.score, abs=1e-3)


def tilted(formula, family):
    """A design and its quadratic at β = 0, with a tilt that is not zero."""
    data = table()
    design = build_design(parse(formula).build(data), data)
    rows, beta = ResponseRows(design.sort(data[family]), np.empty(0), np.empty(0)), np.zeros(design.size)
    loglik, score, cross = design.sweep(rows, FAMILIES[family], beta)
    tilt = np.random.default_rng(1).normal(size=design.size)
    working = Working(beta, loglik, score, cross, 0.0, N, family == "binomial", tilt)
    return design, working


@pytest.mark.parametrize("formula", ["s(a, k=9) + s(b, k=9)", "te(a, b, k=4) + s(c, k=9)"])
@pytest.mark.parametrize("family", ["binomial", "gaussian"])
def test_the_criterion_along_one_parameter_is_that_at_each_value(formula, family):
    from unnorm.engine.criteria import Criterion
    from unnorm.engine.outer import starting_rho

    design, working = tilted(formula, family)
    centre, criterion = starting_rho(working.cross, design.penalties), Laplace()
    for j in range(design.penalties.count):
        values = centre[j] + np.linspace(-8.0, 13.0, 8)
        found = criterion.along(working, design.penalties, centre, j, values)
        np.testing.assert_allclose(
            found, Criterion.along(criterion, working, design.penalties, centre, j, values), atol=1e-6
        )
        assert np.ptp(found) > 0.1


@pytest.mark.parametrize("formula", ["s(a, k=9) + s(b, k=9)", "te(a, b, k=4) + s(c, k=9)"])
@pytest.mark.parametrize("family", ["binomial", "gaussian"])
def test_gradient_and_hessian_of_the_criterion_are_its_derivatives(formula, family):
    from unnorm.engine.outer import starting_rho

    design, working = tilted(formula, family)
    rho, criterion, h = starting_rho(working.cross, design.penalties), Laplace(), 1e-4
    here = criterion.full(working, design.penalties, rho)
    for j, step in enumerate(h * np.eye(rho.size)):
        above, below = (criterion.full(working, design.penalties, at) for at in (rho + step, rho - step))
        assert here.gradient[j] == pytest.approx((above.value - below.value) / (2 * h), abs=1e-5)
        np.testing.assert_allclose(here.hessian[j], (above.gradient - below.gradient) / (2 * h), atol=1e-5)


def test_derivatives_that_nobody_reads_are_not_formed(monkeypatch):
    """A step far from the estimate is taken on the criterion's value alone, and the first inverse is formed once."""
    data = table(3000, 4)
    design = build_design(parse("s(a, k=9) + s(b, k=9)").build(data), data)
    counts = {"at": 0, "_derived": 0, "invert": 0}

    def counted(owner, name, label):
        own = getattr(owner, name)

        def call(*given):
            counts[label] += 1
            return own(*given)

        monkeypatch.setattr(owner, name, call)

    counted(Laplace, "at", "at")
    counted(Laplace, "_derived", "_derived")
    counted(Arrow, "invert", "invert")
    monkeypatch.setattr("unnorm.engine.core.reconsider", lambda problem, criterion, found, *rest: found)
    fit = smooth_fit(design, data["binomial"])
    assert fit.converged
    assert counts["_derived"] < counts["at"]
    tilts = fit.iterations["leverage passes"]  # each asks for the criterion again, with the same inverse
    assert counts["invert"] == counts["at"] - tilts


def test_cross_validation_is_at_its_minimum_and_keeps_contexts_together():
    from unnorm.engine.crossval import _Folds, fold_of_rows
    from unnorm.engine.outer import Clock, PenalisedRows

    data = table()
    terms = parse("s(a, k=9, bs='cr') + s(b, k=8, bs='cr')").build(data)
    design = build_design(terms, data)
    y = data["binomial"]
    fit = smooth_fit(design, y, method="CV", folds=5, rng=1)
    rows = ResponseRows(design.sort(y), np.empty(0), np.empty(0))
    setting = PenalisedRows(design, rows, "binomial", 0, 0.0, N, np.ones(2, bool), 1, Clock())
    fold = fold_of_rows(setting, None, 5, 1)
    folds = _Folds(setting, fold, 5, [np.zeros(design.size) for _ in range(5)])
    value, gradient = folds.evaluate(fit.rho)
    assert fit.score == pytest.approx(2 * value / N, rel=1e-4)
    assert np.abs(gradient[~fit.flat]).max() < 0.05
    rho, h = np.array([0.0, 1.0]), 1e-3
    gradient = folds.evaluate(rho)[1]
    numeric = [(folds.evaluate(rho + e)[0] - folds.evaluate(rho - e)[0]) / (2 * h) for e in h * np.eye(2)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4)
    assert value <= folds.evaluate(rho)[0]
    groups = np.arange(N) // 6
    fold = fold_of_rows(setting, groups, 5, 1)
    assert all(len(set(fold[groups == k])) == 1 for k in range(N // 6))
    with pytest.raises(InputError, match="folds must be"):
        smooth_fit(design, y, method="CV", folds=1)


def test_many_problems_are_what_each_is_alone():
    tables = [table(500 + 40 * k, k) for k in range(4)]
    problems = []
    for data in tables:
        terms = parse("s(a, k=8) + s(b, k=6)").build(data)
        problems.append({"terms": terms, "columns": data, "y": data["binomial"], "family": "binomial"})
    together = fit_many(problems, threads=2)
    for data, many, setting in zip(tables, together, problems):
        alone = smooth_fit(build_design(setting["terms"], data), data["binomial"], threads=1)
        np.testing.assert_allclose(many.beta, alone.beta, atol=1e-8)


@pytest.mark.parametrize("formula", [FORMULA, "s(a, k=8) + s(b, by=g, k=6)", "s(a, k=7) + te(b, c, k=4)"])
def test_smoothing_starts_where_penalty_and_data_weigh_the_same(formula: str):
    from unnorm.engine.outer import starting_rho

    _, design, _ = problem(formula)
    rows = ResponseRows(table()["binomial"], np.empty(0), np.empty(0))
    A = design.sweep(rows, 0, np.zeros(design.size))[2].dense()
    expected = []
    for j in range(design.penalties.count):
        S = np.diag(design.penalties.columns(np.ones(design.size))[:, j] * 0.0)
        for k in range(design.size):
            S[k] = design.penalties.columns(np.eye(design.size)[k])[:, j]
        expected.append(np.log(np.diag(A)[np.abs(S).max(axis=0) > 0].sum() / np.trace(S)))
    found = starting_rho(design.sweep(rows, 0, np.zeros(design.size))[2], design.penalties)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_step_is_the_last_only_if_it_moves_no_row_far(monkeypatch: pytest.MonkeyPatch):
    from unnorm.engine import outer

    rng = np.random.default_rng(2)
    data = {"a": rng.random(25_000), "b": rng.random(25_000)}
    y = (rng.random(25_000) < 1 / (1 + np.exp(3 - np.sin(6 * data["a"]) - data["b"]))).astype(float)
    asked = []

    def at_rest(self, step: np.ndarray) -> bool:
        asked.append(self.design.rows)
        return True

    monkeypatch.setattr(outer.Iteration, "at_rest", at_rest)
    smooth_fit(build_design(parse("s(a) + s(b)").build(data), data), y)
    assert asked == [25_000]  # of the last alone


def test_terms_that_the_rows_do_not_tell_apart_are_named():
    data = {**table(), "twin": 2 * table()["a"] + 1}
    terms = parse("linear(a) + linear(twin) + s(b, k=5)").build(data)
    with pytest.raises(NotIdentifiedError, match=r"'a'.*'twin'|'twin'.*'a'"):
        smooth_fit(build_design(terms, data), data["binomial"])


def test_separation_is_named():
    rng = np.random.default_rng(5)
    data = {"a": rng.uniform(-1, 1, 300), "b": rng.uniform(-1, 1, 300)}
    y = (data["a"] > 0).astype(float)
    terms = parse("linear(a) + s(b, k=5)").build(data)
    with pytest.raises(NoEstimateError, match=r"\ba\b.*separates"):
        smooth_fit(build_design(terms, data), y)


def test_stopping_early_is_said():
    _, design, _ = problem()
    with pytest.warns(UnnormWarning, match="Stopped after 1 iteration"):
        fit = smooth_fit(design, table()["binomial"], max_outer=1)
    assert not fit.converged


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": np.full(N, 2.0)}, "binomial response"),
        ({"y": np.zeros(N - 1)}, "one value for each"),
        ({"weights": np.full(N, -1.0)}, "weights must not be negative"),
        ({"offset": np.full(N, np.nan)}, "offset must be finite"),
        ({"family": "gamma"}, "family must be one of"),
        ({"method": "AIC"}, "method must be one of"),
        ({"sp": [1.0]}, "one value for each"),
    ],
)
def test_what_cannot_be_used_is_refused(changed, message):
    _, design, _ = problem()
    with pytest.raises(InputError, match=message):
        smooth_fit(design, **{"y": table()["binomial"], **changed})


def test_a_step_is_the_last_only_where_little_is_left_of_it():
    """Rows are many, and ρ can gain nothing: then what Newton's step in β is expected to leave decides."""
    problem = SimpleNamespace(
        code=POISSON, scale_known=True, free=np.array([True]), rows=SimpleNamespace(y=np.zeros(30_000))
    )
    run: Any = SimpleNamespace(problem=problem, tilted=True, tolerance=2.5e-3)
    at: Any = SimpleNamespace(gradient=np.array([1e-6]), hessian=np.array([[1.0]]))
    assert Iteration.expected(run, at, 1e-4)
    assert not Iteration.expected(run, at, 1e-3)
    at.gradient = np.array([0.1])  # and here ρ gains .005
    assert not Iteration.expected(run, at, 1e-4)
