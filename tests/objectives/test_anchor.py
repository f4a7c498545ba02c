"""Anchored constants: the integrals, the score and its curvature, the limit of many points, and the equivalences."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.engine.core import build_design
from unnorm.engine.families import FAMILIES
from unnorm.engine.segment import ResponseRows
from unnorm.errors import CombinationError, UnnormWarning
from unnorm.models.built_additive import BuiltAdditive
from unnorm.objectives.anchor import (
    ENOUGH,
    model_anchor,
    spread,
    terms_anchor,
)
from unnorm.objectives.representatives import representatives
from unnorm.solvers import Newton, anchored
from unnorm.terms import parse

OMEGA = un.Interval(-1, 1)
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), OMEGA)
ENERGY = un.Energy(lambda t, y, x: t["a"] * y - 0.5 * t["b"] * (y - x) ** 2, {"a": 0.1, "b": 0.5}, OMEGA)
SQUARE = un.Expression("b", "-0.5 * (y - y_prev) ** 2")
LINEAR = un.Additive("a + b", OMEGA, covariates=[un.Expression("a", "y"), SQUARE])
CHAIN = un.datasets.toy_chain(120, -2.0, 20.0, rng=3)


def _logistic(k: int, points: Any = None) -> un.Logistic:
    return un.Logistic(un.Uniform(), per_point=k, points=points)


# --- the engine's part --------------------------------------------------------------------------------------------


def _design(levels: bool) -> tuple[Any, np.ndarray, np.ndarray, np.random.Generator]:
    """A design with local, dense, context and level terms, and its dense matrix."""
    rng = np.random.default_rng(5)
    context = np.repeat(np.arange(40), 6)
    columns = {
        "u": rng.uniform(size=240),
        "v": rng.uniform(size=240),
        "w": rng.uniform(size=40)[context],
        "g": np.array(["a", "b", "c"])[np.arange(40) % 3][context],
    }
    text = "s(u, bs='cr', k=6) + te(u, v, k=3) + s(w, bs='cr', k=4)" + (" + s(v, by=g, bs='cr', k=4)" if levels else "")
    terms = tuple(parse(text).build(columns))
    design = build_design(terms, columns, context=context)
    X = np.column_stack([np.ones(240), *(t.design({n: columns[n] for n in t.covariates}) for t in terms)])
    return design, X, context, rng


@pytest.mark.parametrize("levels", [False, True], ids=["one segment", "a segment for each level"])
def test_columns_less_a_mean_for_each_context(levels: bool) -> None:
    design, X, context, rng = _design(levels)
    mean = rng.standard_normal((40, X.shape[1])) * (np.abs(X).reshape(40, 6, -1).max(axis=1) > 0)
    mean[:, 0] = 0.0  # and no mean of another level's columns
    less, Y = design.less(mean, context), X - mean[context]
    beta = rng.standard_normal(X.shape[1]) / 5
    np.testing.assert_allclose(less.unsort(less.predict(less.to_flat(beta))), Y @ beta, rtol=1e-4, atol=1e-4)
    y, d = rng.integers(0, 2, 240).astype(float), rng.uniform(0.5, 2.0, 240)
    rows = ResponseRows(less.sort(y), less.sort(d), np.empty(0))
    _, score, arrow = less.sweep(rows, FAMILIES["gaussian"], np.zeros(less.size))
    np.testing.assert_allclose(less.to_user(score), Y.T @ (d * y), rtol=1e-3, atol=1e-3)
    cross = less.to_user(less.to_user(arrow.dense()).T)
    np.testing.assert_allclose(cross, Y.T @ (d[:, None] * Y), rtol=1e-3, atol=2e-3)
    P = np.eye(less.size)
    hats, rows = np.empty(240), ResponseRows(less.sort(y), np.empty(0), np.empty(0))
    lever = {segment.level: P[np.ix_(segment.columns, segment.columns)] for segment in less.segments}
    less.leverage(rows, FAMILIES["binomial"], less.to_flat(beta), lever.__getitem__, 1, hats)
    np.testing.assert_allclose(less.unsort(hats), np.sum(less.to_flat(Y.T) ** 2, axis=0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("levels", [False, True], ids=["one segment", "a segment for each level"])
@pytest.mark.parametrize("threads", [1, 2])
def test_integrals_by_run(levels: bool, threads: int) -> None:
    design, X, context, rng = _design(levels)
    beta, log_w = rng.standard_normal(X.shape[1]), rng.standard_normal(240)
    log_z, mean = design.integrals(beta, log_w, threads)
    ids = design.sort(context)[np.concatenate([s.lo + s.ptr[:-1] for s in design.segments])]
    e = np.exp(X @ beta + log_w)
    total = np.bincount(context, e)
    np.testing.assert_allclose(log_z, np.log(total)[ids], atol=1e-3)
    expected = np.stack([np.bincount(context, e * x) / total for x in X.T], axis=1)
    np.testing.assert_allclose(mean, expected[ids], atol=1e-3)


@pytest.mark.parametrize("levels", [False, True], ids=["one segment", "a segment for each level"])
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_by_label(levels: bool, threads: int) -> None:
    """Labels of contexts, several contexts with one label, weights of either sign and none; or no answer."""
    design, X, context, rng = _design(levels)
    v = rng.standard_normal(240) * (rng.random(240) < 0.7)
    for label in (context, context % 7, np.where(context < 9, 4, 0)):
        expected = np.stack([np.bincount(label, v * x, context.max() + 1) for x in X.T], axis=1)
        np.testing.assert_allclose(design.sums(v, label, context.max() + 1, threads), expected, atol=2e-3)
    mean = rng.standard_normal((context.max() + 1, X.shape[1]))
    if not levels:
        expected = np.stack([np.bincount(context, v * x) for x in (X - mean[context]).T], axis=1)
        np.testing.assert_allclose(design.less(mean, context).sums(v, context, len(mean)), expected, atol=2e-3)
    assert design.sums(v, np.arange(240), 240) is None


# --- contexts -----------------------------------------------------------------------------------------------------


def test_contexts_are_those_that_f_reads() -> None:
    rng = np.random.default_rng(0)
    table = {"x": rng.uniform(size=30), "y": rng.uniform(size=30), "night": np.arange(30) % 2}
    obs = un.transitions(table, y=("x", "y"), extra="night")
    box = un.Box((0, 1), (0, 1))
    assert un.Additive("step + dcenter", box).covariates(obs).reads(("step", "dcenter")) == ("x_prev", "y_prev")
    known = un.Additive("step", box, covariates=[un.Expression("late", "night * step")]).covariates(obs)
    assert set(known.reads(("late",))) == {"night", "x_prev", "y_prev"}
    model = un.Additive("dcenter", box)
    places, of = representatives(model, obs, ("dcenter",), None)
    assert places.n == 1
    assert not of.any()
    model = un.Additive("late", box, covariates=[un.Expression("late", "night * x")])
    places, of = representatives(model, obs, ("late",), None)
    assert places.n == 2
    np.testing.assert_array_equal(places.context["night"][of], obs.context["night"])


def test_a_grid_of_contexts_interpolates_the_integrals() -> None:
    rng = np.random.default_rng(1)
    obs = un.transitions(rng.uniform(size=(400, 2)))
    model = un.Additive("s(step, k=6) + s(angle, bs='cc', k=6)", un.Box((0, 1), (0, 1)))
    part = model.linear_part(obs, obs.outcome, np.arange(obs.n), None)
    built = BuiltAdditive(model, obs, tuple(part.terms.build(part.columns, periods={"angle": 2 * np.pi})))
    beta = np.concatenate([[-1.0, 0.6, -0.4, -0.3, -1.5], [0.3, -0.3, 0.2, 0.1]])
    assert terms_anchor(built).grid is None  # few contexts: each has its own
    coarse = dataclasses.replace(terms_anchor(built), order=24, grid=9)
    direct = dataclasses.replace(coarse, grid=None, _kept={})
    (z, E), (exact, means) = coarse.at(beta), direct.at(beta)
    assert 0 < np.std(z - exact) < 5e-3
    assert np.abs(E - means).max() < 0.02
    finer = dataclasses.replace(coarse, grid=17, _kept={})
    assert np.std(finer.at(beta).log_z - exact) < 0.25 * np.std(z - exact)
    assert coarse.shift(beta, 400.0) == pytest.approx(20 * coarse.error(beta))  # √Σw: errors may all push one way
    again = coarse.finer(beta, 8.0)
    assert again.grid > 9
    assert again.error(beta) < 0.5 * coarse.error(beta)


# --- the score ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [TOY, ENERGY], ids=["family", "energy"])
@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
def test_the_gradient_is_that_of_the_normalised_likelihood(model: Any, objective: Any) -> None:
    obs = un.transitions(CHAIN)
    problem = objective(un.Uniform(), per_point=4).bind(model, obs, un.Anchored(), 2)
    theta = np.array([-1.5, 14.0])
    d = problem.derivatives(theta)
    h = 1e-5
    slopes = [(problem.value(theta + h * e) - problem.value(theta - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(d.gradient, slopes, rtol=1e-6, atol=1e-6)
    assert d.value == pytest.approx(problem.value(theta))
    assert np.all(np.linalg.eigvalsh(d.information) > 0)


def test_the_curvature_is_that_of_scoring() -> None:
    """Σ w v̂ v̂ᵀ with δ profiled out, by hand."""
    obs = un.transitions(CHAIN)
    problem = _logistic(4).bind(TOY, obs, un.Anchored(), 2)
    theta = np.array([-1.5, 14.0])
    rows = problem.source.whole()
    y, x = rows.y[:, 0], obs.context["y_prev"][rows.at]
    grid, w = np.polynomial.legendre.leggauss(200)
    s = lambda y, x: np.stack([y + 0 * x, -0.5 * (y - x) ** 2], axis=-1)  # noqa: E731
    table = s(grid[None, :], obs.context["y_prev"][:, None])
    density = w * np.exp(table @ theta)
    log_z = np.log(density.sum(axis=1))
    mean = np.einsum("tj,tjp->tp", density, table) / density.sum(axis=1)[:, None]
    v = np.column_stack([s(y, x) - mean[rows.at], np.ones(len(y))])
    eta = s(y, x) @ theta - log_z[rows.at] + rows.offset + problem.nu_at(theta)[0]
    p = 1 / (1 + np.exp(-eta))
    full = v.T @ ((p * (1 - p))[:, None] * v)
    profiled = full[:2, :2] - np.outer(full[:2, 2], full[2, :2]) / full[2, 2]
    np.testing.assert_allclose(problem.derivatives(theta).information, profiled, rtol=1e-6)
    np.testing.assert_allclose(problem.derivatives(theta).gradient, v[:, :2].T @ (rows.data - p), rtol=1e-5, atol=1e-6)


def test_many_points_give_the_maximum_likelihood_estimate() -> None:
    obs = un.transitions(CHAIN)
    ml = un.fit(TOY, obs)
    many = un.fit(TOY, obs, _logistic(3000), un.Anchored(), rng=1)
    few = un.fit(TOY, obs, _logistic(3), un.Anchored(), rng=1)
    se = np.array(ml.tidy()["se"])
    assert np.max(np.abs(many.estimate - ml.estimate) / se) < 0.02
    assert np.max(np.abs(few.estimate - ml.estimate) / se) > 0.05
    np.testing.assert_allclose(np.array(many.tidy()["se"]), se, rtol=0.02)
    np.testing.assert_allclose(many.nu, ml.nu, atol=0.02 * ml.nu_se.max())


# --- one thing in two ways ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
def test_family_energy_and_terms_agree(objective: Any) -> None:
    obs = un.transitions(CHAIN)
    fits = [un.fit(m, obs, objective(un.Uniform(), per_point=6), un.Anchored(), rng=4) for m in (TOY, ENERGY, LINEAR)]
    for other in fits[1:]:
        np.testing.assert_allclose(other.estimate, fits[0].estimate, rtol=1e-6)
        for part in ("se", "se_sampling", "se_reference"):
            np.testing.assert_allclose(other.tidy()[part], fits[0].tidy()[part], rtol=1e-5, err_msg=part)
    np.testing.assert_allclose(fits[2].nu, fits[0].nu, atol=1e-6)


def test_offsets_of_a_context_cancel() -> None:
    plain = un.transitions(CHAIN)
    shifted = dataclasses.replace(plain, offset=np.random.default_rng(0).standard_normal(plain.n))
    for model in (TOY, LINEAR):
        a, b = (un.fit(model, obs, _logistic(6), un.Anchored(), rng=4) for obs in (plain, shifted))
        np.testing.assert_allclose(b.estimate, a.estimate, rtol=1e-6)
        np.testing.assert_allclose(b.tidy()["se"], a.tidy()["se"], rtol=1e-6)


def test_a_smooth_delta_is_near_zero_and_moves_little() -> None:
    obs = un.transitions(CHAIN)
    plain = un.fit(TOY, obs, _logistic(6), un.Anchored(), rng=4)
    smooth = un.fit(TOY, obs, _logistic(6), un.Anchored("s(y_prev, k=5)"), rng=4)
    assert smooth.smooths is not None
    assert smooth.smooths.normaliser_labels == ("s(y_prev)",)
    assert np.max(np.abs(smooth.estimate - plain.estimate) / np.array(plain.tidy()["se"])) < 0.3
    np.testing.assert_allclose(smooth.nu, plain.nu, atol=0.5)


def test_terms_of_the_context_only_are_refused() -> None:
    model = un.Additive("a + y_prev", OMEGA, covariates=[un.Expression("a", "y")])
    with pytest.raises(un.errors.NotIdentifiedError, match="y_prev"):
        un.fit(model, un.transitions(CHAIN), _logistic(4), un.Anchored(), rng=1)


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few functions for a curve
@pytest.mark.parametrize("terms", ["s(y, by=z, k=5)", "te(y, z, k=4)", "s(y, k=5) + s(y, by=z, k=5)"])
def test_functions_of_the_context_alone_are_held_at_zero(terms: str) -> None:
    """f = 4 z y: what such terms say of z alone cannot be seen, and all else can."""
    rng = np.random.default_rng(8)
    z, u = rng.uniform(-1, 1, 400), rng.uniform(size=400)
    y = np.log1p(u * np.expm1(4 * z)) / (4 * z)
    obs = un.conditional({"y": y, "z": z}, y="y", x="z")
    fit = un.fit(un.Additive(terms, un.Interval(0, 1)), obs, _logistic(20), rng=5)
    assert fit.converged
    at, edge = np.repeat([-0.8, 0.1, 0.8], 2), np.tile([0.1, 0.9], 3)
    f = fit.smooths.f({"y": edge, "z": at}).reshape(3, 2)
    rise = f[:, 1] - f[:, 0]
    np.testing.assert_allclose(rise, 4 * 0.8 * np.array([-0.8, 0.1, 0.8]), atol=0.8)
    assert abs(fit.smooths.f({"y": np.linspace(0, 1, 50), "z": np.full(50, 0.8)}).mean()) < 3.0


@pytest.mark.parametrize("extra", [lambda y, x: x, lambda y, x: 0.0 * y + 1.0], ids=["context", "constant"])
def test_statistics_of_the_context_only_are_refused(extra: Any) -> None:
    model = un.ExponentialFamily(lambda y, x: (y, extra(y, x)), ("a", "b"), OMEGA)
    with pytest.raises(un.errors.NotIdentifiedError, match="'b' cannot be estimated"):
        un.fit(model, un.transitions(CHAIN), _logistic(10), rng=1)


def test_rare_levels_of_a_factor() -> None:
    """Levels that are missing from the contexts at which errors are measured, or from a block of nodes."""
    rng = np.random.default_rng(2)
    elsewhere = np.setdiff1d(np.arange(300), spread(300))[::40]
    c = np.where(np.isin(np.arange(300), elsewhere), "rare", "common")
    obs = un.conditional({"y": rng.uniform(size=300), "c": c}, y="y", x="c")
    fit = un.fit(un.Additive("s(y, by=c, k=5)", un.Interval(0, 1)), obs, _logistic(10), rng=1)
    assert set(fit.smooths.edf) == {"s(y):ccommon", "s(y):crare"}


@pytest.mark.parametrize("objective", [un.Exact(), un.Poisson()], ids=repr)
@pytest.mark.parametrize("model", [TOY, LINEAR], ids=["family", "terms"])
def test_objectives_that_integrate_themselves_refuse_it(objective: Any, model: Any) -> None:
    with pytest.raises(CombinationError, match="leave normaliser out"):
        un.fit(model, un.transitions(CHAIN), objective, un.Anchored())


def test_delta_of_a_correct_model_is_all_but_known() -> None:
    """Its error is its spread over data sets, not 5 % of 1/Σw."""
    found = []
    for r in range(60):
        obs = un.transitions(un.datasets.toy_chain(150, 0.5, 5.0, rng=1000 + r))
        fit = un.fit(TOY, obs, _logistic(20), rng=r)
        found.append((fit.anchoring.delta, fit.anchoring.se))
    delta, se = np.array(found).T
    assert 0.5 < np.sqrt(np.mean(se**2)) / delta.std() < 4.0


# --- how fine -----------------------------------------------------------------------------------------------------


def test_the_rule_is_refined_until_it_moves_nothing() -> None:
    sharp = un.transitions(un.datasets.toy_chain(300, 0.0, 4000.0, rng=2))
    problem = _logistic(20).bind(TOY, sharp, un.Anchored(), 1)
    first = problem.anchor.figures()["order"]
    end, path = Newton().climb(problem, np.array([0.0, 10.0]))
    assert end.anchor.figures()["order"] > first
    assert end.anchor.shift(path.theta, 300.0) < ENOUGH
    fit = un.fit(TOY, sharp, _logistic(20), un.Anchored(), rng=1)
    assert fit.diagnostics["anchor_shift"] < ENOUGH


def test_a_coarse_rule_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unnorm.objectives.anchor.MOST_REFINEMENTS", 0)
    sharp = un.transitions(un.datasets.toy_chain(300, 0.0, 4000.0, rng=2))
    with pytest.warns(un.errors.UnnormWarning, match="can move an estimate by up to"):
        un.fit(TOY, sharp, _logistic(20), un.Anchored(), rng=1)


def test_domains_without_a_rule_are_refused_with_a_remedy() -> None:
    domain = un.BinaryVectors(40)
    model = un.ExponentialFamily(lambda y, x: (y.sum(), (y * x).sum()), ("a", "b"), domain)
    obs = un.transitions(np.random.default_rng(0).integers(0, 2, (20, 40)).astype(float))
    with pytest.raises(CombinationError, match=r"un\.Ranking"):
        un.fit(model, obs, _logistic(4), un.Anchored(), rng=1)


def test_the_default_wherever_the_integral_can_be_had() -> None:
    obs = un.transitions(CHAIN)
    assert _logistic(4).default_normaliser(TOY, obs) == un.Anchored()
    assert _logistic(4).default_normaliser(TOY, obs, anchored=False) != un.Anchored()
    assert un.Logistic(un.Uniform(), total=50).default_normaliser(TOY, un.iid(CHAIN)) == un.Constant()
    assert un.fit(TOY, obs, _logistic(4), rng=1).settings["normaliser"] == {"normaliser": "Anchored"}


def test_model_anchor_is_exact_on_finite_domains() -> None:
    domain = un.BinaryVectors(3)
    model = un.ExponentialFamily(lambda y, x: (y.sum(), (y * x).sum()), ("a", "b"), domain)
    obs = un.transitions(np.random.default_rng(0).integers(0, 2, (50, 3)).astype(float))
    anchor = model_anchor(model, obs)
    assert anchor.shift(np.array([0.3, 1.0]), 1e6) == 0.0
    assert anchor.finer(np.array([0.3, 1.0]), 2.0) is None


def test_sums_of_centred_columns_where_labels_vary_within_a_context() -> None:
    """By label = the whole sums of each label's rows, whichever way they are made."""
    obs = un.transitions(CHAIN)
    model = un.Additive("s(y, k=5) + b", OMEGA, covariates=[SQUARE])
    fit = un.fit(model, obs, _logistic(4), rng=9)
    assert fit.solution is not None
    assert fit.solution.scores is not None
    (rows,) = fit.solution.scores.as_rows().blocks()  # type: ignore[union-attr]
    v, label = np.random.default_rng(1).standard_normal(len(rows.at)), np.arange(len(rows.at)) % 3
    expected = np.stack([rows.design.total(v * (label == j)) for j in range(3)])
    np.testing.assert_allclose(rows.design.sums(v, label, 3), expected, atol=1e-2)  # the compact form is to 2e-4


def test_a_step_too_far_is_halved_until_the_likelihood_does_not_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    held_back = anchored._held_back

    def spy(*arguments: Any) -> Any:
        kept.append(arguments)
        return held_back(*arguments)

    monkeypatch.setattr(anchored, "_held_back", spy)
    un.fit(LINEAR, un.transitions(CHAIN), _logistic(10), un.Anchored(), rng=1)
    rounds, gam, anchor, (beta, here), (new, there) = kept[0]
    before = rounds.value(gam, beta, here, here, beta)
    assert held_back(rounds, gam, anchor, (beta, here), (new, there))[0] is new  # a good step is kept whole
    full = gam.smoothed.beta.copy()
    full[rounds.index] = new
    eta = rounds.design.unsort(rounds.design.predict(rounds.design.to_flat(full)))
    eta += (rounds.part.offset if rounds.part.offset is not None else 0.0) - there.log_z[rounds.problem.rows.context]
    penalty = 0.5 * full @ gam.smoothed.penalty @ full
    assert rounds.value(gam, new, there, here, beta) == pytest.approx(rounds.problem.value(eta) - penalty, abs=1e-6)
    far = beta + 40.0 * (new - beta)
    ahead, constants = held_back(rounds, gam, anchor, (beta, here), (far, anchor.at(far)))
    assert rounds.value(gam, far, anchor.at(far), here, beta) < before - 1.0
    assert rounds.value(gam, ahead, constants, here, beta) >= before - 1e-6 * (1 + abs(before))
    share = (ahead - beta) / (far - beta)
    np.testing.assert_allclose(np.log2(share), np.round(np.log2(share)), atol=1e-9)  # the same power of ½ for all
    np.testing.assert_allclose(share, share[0])
    assert 0 < share[0] < 1
    np.testing.assert_array_equal(constants.log_z, anchor.at(ahead).log_z)


def test_a_round_starts_at_the_level_that_its_constants_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """δ takes up their mean change: f − (log Z + E (β̂ − β)) + δ keeps its mean over contexts; nothing else moves."""
    kept: list[Any] = []
    levelled = anchored._levelled

    def spy(*arguments: Any) -> Any:
        kept.append((arguments, levelled(*arguments)))
        return kept[-1][1]

    monkeypatch.setattr(anchored, "_levelled", spy)
    un.fit(LINEAR, un.transitions(CHAIN), _logistic(10), un.Anchored(), rng=1)
    (ended, index, (beta, here), (new, there)), begun = kept[0]
    b = ended.beta[index]
    assert not np.allclose(here.log_z, there.log_z, atol=0.1)
    before = ended.beta[0] - here.log_z - here.mean @ (b - beta)
    after = begun.beta[0] - there.log_z - there.mean @ (b - new)
    assert np.mean(after) == pytest.approx(np.mean(before))
    np.testing.assert_array_equal(begun.beta[1:], ended.beta[1:])


def test_rounds_that_do_not_converge_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes all the steps that it may: three in a row are enough, and the fit says that it did not converge."""
    made: list[Any] = []
    fit_round = anchored.RowRounds.fit

    def failing(self: Any, *arguments: Any) -> Any:
        gam = fit_round(self, *arguments)
        made.append(dataclasses.replace(gam, smoothed=dataclasses.replace(gam.smoothed, converged=len(made) == 2)))
        return made[-1]

    monkeypatch.setattr(anchored.RowRounds, "fit", failing)
    monkeypatch.setattr(anchored, "SETTLED_FIXED", 0.0)  # so that no move is small enough
    with pytest.warns(UnnormWarning, match="did not converge"):
        fit = un.fit(LINEAR, un.transitions(CHAIN), _logistic(10), un.Anchored(), rng=1)
    assert not fit.converged
    assert len(made) == 6  # two, one that converged, and three more
    np.testing.assert_allclose(fit.estimate, made[-1].smoothed.beta[made[-1].smoothed.beta.size - fit.estimate.size :])
