"""Levels that are alike (random effects, factor smooths) by blocks: equal to one by one, and to the dense way."""

from __future__ import annotations

import csv
import tracemalloc
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

import unnorm as un
from unnorm.engine import checks, gam_effects, gam_summary, inference, level_covariance
from unnorm.engine.core import build_design
from unnorm.engine.criteria import InverseLever, SandwichLever
from unnorm.engine.families import FAMILIES
from unnorm.engine.gam_result import Gam
from unnorm.engine.segment import ResponseRows
from unnorm.terms.parser import parse

N, LEVELS = 700, 25


@cache
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    g, h = rng.integers(0, LEVELS, N), rng.integers(0, 6, N)
    x, z, a = rng.random(N), rng.random(N), rng.uniform(-np.pi, np.pi, N)
    eta = np.sin(6 * x) + rng.normal(size=LEVELS)[g] * z + 0.7 * np.cos(a + rng.normal(size=LEVELS)[g])
    eta += 0.6 * rng.normal(size=6)[h]
    return {
        "x": x, "z": z, "a": a, "e": 0.3 * rng.random(N), "w": rng.integers(1, 4, N).astype(float),
        "g": np.char.add("g", g.astype(str)), "h": np.char.add("h", h.astype(str)), "v": x < 0.5,
        "y": eta + 0.4 * rng.normal(size=N), "k": rng.poisson(np.exp(0.4 * eta)).astype(float),
        "b": (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float),
    }  # fmt: skip


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "slopes, Gaussian": ("y ~ s(x) + s(z, g, bs='re')", "gaussian", {}),
    "by, weights and offset": ("k ~ s(x) + s(g, bs='re', by=z)", "poisson", {"weights": "w", "offset": "e"}),
    "crossed": ("b ~ s(a, bs='cc') + s(z, g, bs='re') + s(h, bs='re')", "binomial", {}),
    "two of one factor": ("b ~ h + s(x) + s(z, g, bs='re') + s(e, g, bs='re')", "binomial", {"weights": "w"}),
    "fs": ("y ~ s(x, g, bs='fs', k=5) + s(h, bs='re')", "gaussian", {}),
    "fs, cyclic": ("k ~ s(a, g, bs='fs', xt='cc', k=6) + s(x)", "poisson", {"offset": "e"}),
    "fs and slopes, ML": ("b ~ s(x, g, bs='fs', k=4) + s(z, g, bs='re')", "binomial", {"method": "ML"}),
    "GCV": ("y ~ s(x) + s(z, g, bs='re') + te(x, a, k=4)", "gaussian", {"method": "GCV"}),
    "UBRE": ("b ~ s(x, k=6) + s(z, g, bs='re')", "binomial", {"method": "UBRE"}),
    "probit": ("b ~ s(x, by=h, k=4) + s(z, g, bs='re')", "binomial", {"link": "probit"}),
}
FEW = ["slopes, Gaussian", "crossed", "two of one factor", "fs", "fs, cyclic"]


@cache
def fitted(case: str) -> Gam:
    formula, family, options = CASES[case]
    fit = un.gam(formula, table(), family=family, **options)  # pyright: ignore[reportArgumentType]
    assert fit.smoothed.design.own is not None
    return fit


def dense_penalty(fit: Gam, weight: np.ndarray) -> np.ndarray:
    return block_diag(*fit.smoothed.design.penalties.blocks(weight))


# --- the fit ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_blocks_are_levels_one_by_one(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fit, with a segment and a block for each level: the engine's other way."""
    monkeypatch.setattr("unnorm.engine.forms.FINE", 0)  # else the curves' cells differ
    formula, family, options = CASES[case]
    fits = []
    for alike in (True, False):
        if not alike:
            monkeypatch.setattr("unnorm.engine.build.alike", lambda *_: False)
        fits.append(un.gam(formula, table(), family=family, **options))  # pyright: ignore[reportArgumentType]
    a, b = (fit.smoothed for fit in fits)
    assert a.design.own is not None
    assert b.design.own is None
    assert len(b.design.segments) == LEVELS
    assert a.score == pytest.approx(b.score, rel=1e-9, abs=1e-8)
    scale = np.sqrt(np.diag(b.Vp))
    np.testing.assert_allclose(a.beta / scale, b.beta / scale, atol=1e-5)
    live = ~b.flat
    np.testing.assert_allclose(a.rho[live], b.rho[live], atol=1e-4)
    here = np.ix_(live, live)
    np.testing.assert_allclose(a.hessian[here], b.hessian[here], rtol=1e-4, atol=1e-4)  # GCV's is a difference
    for name in ("edf", "edf1"):
        there = getattr(b, name)
        np.testing.assert_allclose(getattr(a, name), there, rtol=1e-5, atol=1e-5 * np.abs(there).max(), err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_blocks_at_given_smoothing_parameters(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sp, fits = fitted(case).sp, []  # before anything is patched: it is kept
    monkeypatch.setattr("unnorm.engine.forms.FINE", 0)
    formula, family, options = CASES[case]
    for alike in (True, False):
        if not alike:
            monkeypatch.setattr("unnorm.engine.build.alike", lambda *_: False)
        fits.append(un.gam(formula, table(), family=family, **{**options, "sp": sp}))  # pyright: ignore[reportArgumentType]
    a, b = (fit.smoothed for fit in fits)
    for name in ("score", "deviance", "beta", "edf", "edf1", "Vp", "Ve", "F", "dbeta_drho"):
        there = np.asarray(getattr(b, name))
        np.testing.assert_allclose(getattr(a, name), there, rtol=1e-8, atol=1e-8 * np.abs(there).max(), err_msg=name)


def design_of(formula: str, context: np.ndarray | None = None):
    spec = parse(formula)
    terms = spec.build(table())
    design = build_design(terms, table(), context=context)
    assert design.own is not None
    X = np.concatenate([np.ones((N, 1)), *(term.design(table()) for term in terms)], axis=1)
    return design, X


FORMULA = "s(x, k=6) + s(h, bs='re') + s(e, a, k=8) + s(z, g, bs='re') + s(x, g, bs='fs', k=4)"


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_passes_are_the_dense_passes(family: str, threads: int) -> None:
    design, X = design_of(FORMULA)
    rng = np.random.default_rng(2)
    beta, y, w = 0.3 * rng.standard_normal(X.shape[1]), rng.integers(0, 2, N) * 1.0, rng.uniform(0.5, 2.0, N)
    offset = rng.standard_normal(N)
    eta = X @ beta + offset
    mu = {"gaussian": eta, "binomial": 1 / (1 + np.exp(-eta)), "poisson": np.exp(eta)}[family]
    d = w * {"gaussian": np.ones(N), "binomial": mu * (1 - mu), "poisson": mu}[family]
    slope = {"gaussian": np.zeros(N), "binomial": d * (1 - 2 * mu), "poisson": d}[family]
    rows = ResponseRows(*(np.ascontiguousarray(design.sort(part)) for part in (y, w, offset)))
    flat = design.to_flat(beta)
    np.testing.assert_allclose(design.unsort(design.predict(flat, threads)), X @ beta, atol=2e-4)
    _, score, arrow = design.sweep(rows, FAMILIES[family], flat, threads)
    expected = X.T @ (w * (y - mu))
    np.testing.assert_allclose(design.to_user(score), expected, atol=2e-3 * np.abs(expected).max())
    A = X.T @ (d[:, None] * X)
    np.testing.assert_allclose(design.to_user(design.to_user(arrow.dense()).T), A, atol=1e-3 * np.abs(A).max())
    lam = np.array([2.0, 0.5, 1.0, 3.0, 2.0, 1.0, 0.7])[: design.penalties.count]
    inverse = arrow.add(*design.penalties.parts(lam)).invert()
    S = block_diag(*design.penalties.blocks(lam))
    H = np.linalg.inv(arrow.dense() + S)
    for lever, P in ((InverseLever(inverse), H), (SandwichLever(inverse, design.penalties, lam), H @ S @ H)):
        hats = np.empty(N)
        found = design.leverage(rows, FAMILIES[family], flat, lever, threads, hats)
        h = np.sum((design.to_flat(X.T).T @ P) * design.to_flat(X.T).T, axis=1)
        np.testing.assert_allclose(design.unsort(hats), h, atol=1e-3 * h.max())
        total = X.T @ (slope * h)
        np.testing.assert_allclose(design.to_user(found), total, atol=2e-3 * max(np.abs(total).max(), 1e-9))


def test_sums_integrals_means_and_parts_of_rows() -> None:
    """What contexts, anchored constants and folds ask of a design."""
    rng = np.random.default_rng(4)
    numbers = np.unique(table()["g"], return_inverse=True)[1]
    context = numbers * 3 + rng.integers(0, 3, N)  # within levels
    context = np.unique(context, return_inverse=True)[1]
    design, X = design_of("s(x, k=6) + s(z, g, bs='re')", context)
    count, beta, v = context.max() + 1, rng.standard_normal(X.shape[1]), rng.standard_normal(N)
    by_context = np.stack([np.bincount(context, v * x) for x in X.T], axis=1)
    np.testing.assert_allclose(design.sums(v, context, count), by_context, atol=1e-3)
    log_w = rng.standard_normal(N)
    log_z, mean = design.integrals(beta, log_w)
    (segment,) = design.segments
    ids = design.sort(context)[segment.ptr[:-1]]
    e = np.exp(X @ beta + log_w)
    total = np.bincount(context, e)
    np.testing.assert_allclose(log_z, np.log(total)[ids], atol=1e-3)
    means = np.stack([np.bincount(context, e * x) / total for x in X.T], axis=1)
    np.testing.assert_allclose(mean, means[ids], atol=1e-3)
    less = design.less(means, context)
    np.testing.assert_allclose(less.unsort(less.predict(less.to_flat(beta))), (X - means[context]) @ beta, atol=2e-3)
    part, rows = design.take(lambda k, segment: np.arange(0, segment.runs, 2))
    np.testing.assert_allclose(part.predict(design.to_flat(beta)), design.sort(X @ beta)[rows], atol=1e-3)
    response = ResponseRows(np.zeros(len(rows)), np.empty(0), np.empty(0))
    cross = part.sweep(response, FAMILIES["gaussian"], np.zeros(design.size))[2].dense()
    kept = design.to_flat(X.T).T[rows if design.order is None else design.order[rows]]
    np.testing.assert_allclose(cross, kept.T @ kept, atol=2e-2)


# --- tests and covariances ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("case", CASES)
def test_tests_by_blocks_are_the_dense_tests(case: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unnorm.engine.level_tests._FEW", few)
    fit = fitted(case)
    df = None if fit.smoothed.scale_known else fit.residual_df
    random = {term.label: fit.index(term.label) for term in fit.smooths if gam_effects.is_random(term)}
    curvature = inference.Curvature(fit.A, fit.S, fit.H_inv, fit.scale)
    compared = 0
    for label, found in gam_summary.tests(fit).items():  # not fit.tests, which are kept
        term, index = fit.term(label), fit.index(label)
        if term.parametric:
            continue
        if term.null_dim == 0:
            rest = [at for other, at in random.items() if other != label]
            others = np.concatenate(rest) if rest else np.empty(0, dtype=np.int64)
            there = inference.random_test(index, fit.smoothed.beta, curvature, others, df)
        else:
            V, edf1 = fit.vcov()[np.ix_(index, index)], float(fit.smoothed.edf1[index].sum())
            there = inference.smooth_test(fit.smoothed.beta[index], fit.A[np.ix_(index, index)], V, edf1, df)
        assert found.statistic == pytest.approx(there.statistic, rel=1e-8)
        assert found.df == pytest.approx(there.df, abs=1e-6)
        assert found.p == pytest.approx(there.p, rel=1e-7, abs=1e-300)
        compared += 1
    assert compared >= 1


@pytest.mark.parametrize("case", ["crossed", "two of one factor", "fs and slopes, ML", "UBRE"])
def test_tests_beside_very_many_shared_columns_are_nearly_those(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the weights are the levels' own, scaled to the mean that the shared columns leave them."""
    monkeypatch.setattr("unnorm.engine.level_tests._FEW", 0)
    fit = fitted(case)
    exact = gam_summary.tests(fit)
    monkeypatch.setattr("unnorm.engine.level_tests._WIDE", -1)
    for label, found in gam_summary.tests(fit).items():
        assert found.p == pytest.approx(exact[label].p, rel=0.1, abs=1e-6)


@pytest.mark.parametrize("case", FEW)
def test_covariances_by_blocks(case: str) -> None:
    """V_β, and V_c against the same formula on dense matrices with the levels' columns first."""
    fit = fitted(case)
    inner = fit.smoothed
    np.testing.assert_allclose(inner.turned(inner.levels.dense), inner.Vp, atol=1e-10 * np.abs(inner.Vp).max())
    free = np.flatnonzero(inner.estimated & ~inner.flat)
    hessian = fit.criterion_hessian[np.ix_(free, free)]
    found = level_covariance.unconditional(inner, free, hessian)
    s, lam = len(inner.cross.shared), np.exp(inner.rho)
    order = np.concatenate([np.arange(s, inner.size), np.arange(s)])
    A, beta = inner.cross.dense()[np.ix_(order, order)], inner.design.to_flat(inner.beta)[order]
    S = [dense_penalty(fit, unit)[np.ix_(order, order)] for unit in np.eye(lam.size)]
    H = A + sum(one * weight for one, weight in zip(S, lam))
    there = inference.unconditional(
        H, A, [(0, S[k]) for k in free], lam[free], beta, inner.scale, hessian, np.full(inner.size, 1e9)
    )
    V = found.parts.dense()[np.ix_(order, order)]
    np.testing.assert_allclose(V, there.covariance, atol=1e-8 * np.abs(there.covariance).max())
    total = float(there.edf2.sum())
    assert found.edf2.sum() == pytest.approx(min(total, float(inner.edf1.sum())), rel=1e-8)


@pytest.mark.parametrize("case", FEW)
def test_whatever_asks_for_the_covariance_gets_the_same(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Predictions, unseen levels, effects, derivatives, draws, concurvity, saving: by blocks and by dense matrices."""
    fit = fitted(case)
    rng = np.random.default_rng(6)
    some = {name: column[rng.integers(0, N, 40)] for name, column in table().items()}
    some["g"] = some["g"].astype("U9")
    if "fs" not in CASES[case][0]:
        some["g"][:3] = "new"
    label = next(term.label for term in fit.terms if "g" in term.covariates)
    curved = next((term.label for term in fit.terms if term.smooth_covariates), None)

    def asked(one: Gam) -> list[np.ndarray]:
        out = [*one.predict(some), *one.predict(some, kind="response", exclude=label)]
        out += list(one.predict(some, kind="terms", terms=label).se.values())
        effect = one.effect(label)
        out += [effect["estimate"], effect["se"], one.predict(se=False), one.term_values(label)]
        if curved is not None:
            out += [one.derivative(curved, order=k)[what] for k in (1, 2) for what in ("estimate", "se")]
        for pairwise in (False, True):
            found = one.concurvity(pairwise)
            out += [np.asarray(found[what]) for what in ("worst", "observed", "estimate")]
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", un.errors.UnnormWarning)
        assert not fit.smoothed.wide
        there = asked(fit)
        monkeypatch.setattr(level_covariance, "WIDE", 0)
        assert fit.smoothed.wide
        for a, b in zip(asked(fit), there):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7 * max(1.0, np.abs(b).max()))
        fit.save(tmp_path / "fit")
        again: Any = un.load(tmp_path / "fit")
        for a, b in zip(asked(again), there):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7 * max(1.0, np.abs(b).max()))
    assert again.summary() == fit.summary()


def test_draws_and_simultaneous_bands_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fitted("fs")
    width = {}
    for wide in (10**6, 0):
        monkeypatch.setattr(level_covariance, "WIDE", wide)
        band = fit.effect("s(x,g)", at={"x": np.linspace(0, 1, 9), "g": np.repeat("g3", 9)}, simultaneous=True, rng=1)
        width[wide] = np.mean((band["upper"] - band["estimate"]) / band["se"])
    assert width[0] == pytest.approx(width[10**6], rel=0.03)
    drawn = fit.draws(4000, unconditional=False, rng=2)
    np.testing.assert_allclose(np.cov(drawn.T), fit.vcov(), atol=0.1 * np.abs(fit.vcov()).max())
    spread = drawn.std(axis=0) / np.sqrt(np.diag(fit.vcov()))
    assert 0.93 < spread.min() < spread.max() < 1.07
    some = {name: column[:5] for name, column in table().items()}
    eta = fit.draws(4000, some, kind="link", unconditional=False, rng=3)
    np.testing.assert_allclose(eta.std(axis=0), fit.predict(some).se, rtol=0.06)


def test_the_tail_of_weights_that_are_not_known_one_by_one() -> None:
    """Σ μχ² with μ those of a diagonal and a few columns more, against its eigenvalues."""
    from unnorm.engine.level_tests import Spectrum

    rng = np.random.default_rng(0)
    n, r = 60, 5
    c, f = rng.standard_normal((n, r)) / 8, rng.uniform(0.1, 0.8, n)
    gamma, N_ = np.eye(r), np.diag(rng.uniform(-0.5, 0.5, r))
    V, M = np.diag(f) + c @ N_ @ c.T, np.linalg.inv(np.eye(n) + c @ gamma @ c.T)
    weights = np.linalg.eigvals(M @ V).real
    spectrum = Spectrum(f, c, gamma, N_)
    assert spectrum.mean() == pytest.approx(weights.sum())
    assert weights.max() < 1.0
    for q in (10.0, 25.0, 45.0, 90.0, 200.0):
        assert inference.tail(q, f, None, spectrum.log_ratio) == pytest.approx(
            inference.tail(q, weights, None), rel=1e-8
        )
        there = inference.tail(q, weights, 40.0)
        assert inference.tail(q, f, 40.0, spectrum.log_ratio) == pytest.approx(there, rel=1e-8)


# --- many levels --------------------------------------------------------------------------------------------------


def test_thousands_of_levels_make_no_square_matrix() -> None:
    """3,000 levels: a dense (p, p) would take 72 MB. Fit, summary, predictions, effect, draws and checks."""
    rng = np.random.default_rng(1)
    n, levels = 9_000, 3_000
    g, x = rng.integers(0, levels, n), rng.random(n)
    y = np.sin(6 * x) + 0.5 * rng.normal(size=levels)[g] + 0.5 * rng.normal(size=n)
    data = {"x": x, "g": np.char.add("g", g.astype(str)), "y": y}
    un.gam("y ~ s(x) + s(g, bs='re')", {key: v[:2000] for key, v in data.items()}).summary()  # compiled
    tracemalloc.start()
    fit = un.gam("y ~ s(x) + s(g, bs='re')", data)
    assert fit.smoothed.design.own is not None
    assert "s(g)" in fit.summary()
    fit.predict()
    fit.predict({"x": x[:50], "g": data["g"][:50]}, unconditional=True, kind="response")
    fit.effect("s(g)", unconditional=True)
    fit.draws(10, rng=3)
    fit.check(rng=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    sigma = np.sqrt(fit.scale / fit.sp["s(g)"])
    assert sigma == pytest.approx(0.5, rel=0.1)
    assert np.sqrt(fit.scale) == pytest.approx(0.5, rel=0.05)


FIELD = un.Box((0, 1), (0, 1))
NOISY = {  # terms, objective, normaliser
    "χ": ("s(step, k=5) + s(step, who, bs='re')", un.Logistic(un.Uniform(), per_point=6), un.Smooth("s(x_prev, k=5)")),
    "fs": ("s(step, who, bs='fs', k=4)", un.Logistic(un.Uniform(), per_point=6), un.Smooth("s(x_prev, k=5)")),
    "anchored": ("step + s(step, who, bs='re')", un.Logistic(un.Uniform(), per_point=6), un.Anchored("s(x_prev, k=4)")),
    "Poisson": ("step + s(step, who, bs='re')", un.Poisson(order=12), un.Smooth("s(x_prev, k=5)")),
}


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
@pytest.mark.parametrize("name", NOISY)
def test_additive_models_with_random_effects(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """un.fit with levels among the terms of f: by blocks and one by one, with all parts of the errors."""
    monkeypatch.setattr("unnorm.engine.forms.FINE", 0)
    rng = np.random.default_rng(4)
    walk = np.clip(0.5 + np.cumsum(0.1 * rng.standard_normal((240, 2)), axis=0) % 0.5, 0.01, 0.99)
    obs = un.transitions(walk)
    obs = replace(obs, group={"who": np.char.add("s", (np.arange(obs.n) // 24).astype(str))})
    formula, objective, normaliser = NOISY[name]
    fits = []
    for alike in (True, False):
        if not alike:
            monkeypatch.setattr("unnorm.engine.build.alike", lambda *_: False)
        fits.append(un.fit(un.Additive(formula, FIELD), obs, objective, normaliser, rng=3).smooths)
        assert (fits[-1].gam.smoothed.design.own is not None) == alike
    a, b = fits
    np.testing.assert_allclose(a.beta, b.beta, rtol=1e-5, atol=1e-5 * np.abs(b.beta).max())
    V = b.errors.total
    np.testing.assert_allclose(a.errors.total, V, rtol=1e-5, atol=1e-5 * np.abs(V).max())
    V = b.errors.sampling
    np.testing.assert_allclose(a.errors.sampling, V, rtol=1e-5, atol=1e-5 * np.abs(V).max())


def test_what_is_less_a_row_with_a_level_has_its_level():
    none, some = (
        level_covariance.LevelRows(np.ones((2, 1)), np.full((2, 1), x), np.full(2, i)) for x, i in ((0, -1), (3, 4))
    )
    for rows, own in ((none.less(some), -3.0), (some.less(none), 3.0)):
        assert rows.level.tolist() == [4, 4]
        assert (rows.own == own).all()


@pytest.mark.parametrize(
    ("formula", "family", "score", "edf", "fitted", "errors"),
    [
        ("y ~ 0 + te(x1, g, bs=('ps', 're'), k=5)", "gaussian", 328.9034363, 23.9212846,
         (-0.38230624, 2.13044419, 1.78616107), (0.53565520, 0.22129867, 0.25701578)),
        ("count ~ 0 + s(x1, g, bs='re')", "poisson", 527.97502856, 5.68645123,
         (0.20508664, 0.62233784, 0.10829463), (0.226862277, 0.056436783, 0.021819678)),
    ],
)  # fmt: skip
def test_levels_alone_without_an_intercept(formula, family, score, edf, fitted, errors, tmp_path):
    """No column is shared then; the numbers are mgcv's."""
    with (Path(__file__).parents[1] / "oracles" / "mgcv" / "fits_rows.csv").open() as file:
        read = list(csv.DictReader(file))
    table = {name: np.array([float(row[name]) for row in read]) for name in ("x1", "y", "count")}
    table["g"] = np.array([row["g"] for row in read])
    fit = un.gam(formula, table, family)
    assert fit.score == pytest.approx(score, abs=1e-4)
    assert fit.edf_total == pytest.approx(edf, rel=1e-4)
    some = fit.predict({name: column[:3] for name, column in table.items()})
    np.testing.assert_allclose(some.estimate, fitted, atol=1e-4)
    np.testing.assert_allclose(some.se, errors, rtol=1e-4)
    assert max(fit.p_values.values()) < 1e-10
    fit.predict(unconditional=True)
    fit.save(tmp_path / "fit")
    assert un.load(tmp_path / "fit").summary() == fit.summary()


def test_many_levels_alone_without_an_intercept():
    rng = np.random.default_rng(4)
    g, x = np.repeat([f"g{i}" for i in range(250)], 6), rng.random(1500)
    y = np.repeat(rng.normal(size=250), 6) + 0.5 * rng.normal(size=1500)
    fit = un.gam("y ~ 0 + s(x, g, bs='fs', k=3)", {"x": x, "g": g, "y": y})
    assert fit.smoothed.wide
    assert np.corrcoef(fit.fitted, y)[0, 1] > 0.8
    new = {"x": x[:9], "g": g[:9]}
    X = fit.predict(new, kind="matrix")
    for unconditional in (False, True):
        V = fit.vcov(unconditional=unconditional)
        found = fit.predict(new, unconditional=unconditional)
        np.testing.assert_allclose(found.se, np.sqrt(np.einsum("ij,jk,ik->i", X, V, X)), rtol=1e-8)
    assert fit.p_values["s(x,g)"] < 1e-10
    assert fit.draws(5, new, kind="link", rng=1).shape == (5, 9)
    assert fit.concurvity()["term"].tolist() == ["s(x,g)"]


@pytest.mark.parametrize("curves", ["s(x, g, bs='fs', k=3)", "te(x, g, bs=('cr', 're'), k=3)"])
def test_concurvity_of_curves_of_many_levels_is_that_of_all_columns(curves):
    rng = np.random.default_rng(6)
    g, x, z = np.repeat([f"g{i}" for i in range(100)], 8), rng.random(800), rng.random(800)
    fit = un.gam("y ~ s(z, k=5) + " + curves, {"x": x, "g": g, "z": z, "y": x + rng.normal(size=800)})
    assert fit.smoothed.wide
    gram, beta, blocks = gam_summary._gram(fit)
    dense = {one.label: one for one in checks.concurvity(gram, beta, blocks)}
    found = fit.concurvity()
    for name in ("worst", "observed", "estimate"):
        expected = [getattr(dense[label], name) for label in found["term"]]
        np.testing.assert_allclose(found[name], expected, atol=1e-6)
    widths = []
    for level in (0.5, 0.95):
        whole = fit.effect("s(z)", level=level, simultaneous=True)
        widths.append(float(np.median((whole["upper"] - whole["estimate"]) / whole["se"])))
    assert 0.6 < widths[0] < widths[1] - 0.5
