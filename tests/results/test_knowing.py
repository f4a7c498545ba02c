"""What a fit says of itself: constants that fail, columns that χ does not see, k, the reach of the reference."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.errors import NoEstimateError
from unnorm.inference.delta_test import DeltaTest
from unnorm.results.constants import worst
from unnorm.results.knowing import apart
from unnorm.results.normaliser_check import Anchoring

CIRCLE = un.ExponentialFamily(lambda y, x: (jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)), ("a", "b", "c"), un.Circle())
FORMS = [un.Expression("zy", "z*y"), un.Expression("ws", "w*sin(3*y)")]
REGRESSION = un.Additive("y + zy + ws", un.Interval(0, 2), covariates=FORMS)


def circle_chain(n: int, seed: int) -> un.Observations:
    rng, grid, y = np.random.default_rng(seed), np.linspace(-np.pi, np.pi, 721)[:-1], [0.0]
    for _ in range(n):
        mass = np.cumsum(np.exp(2 * np.cos(grid - y[-1]) + 0.7 * np.cos(grid) - 0.5 * np.cos(2 * grid)))
        y.append(grid[np.searchsorted(mass, rng.random() * mass[-1])])
    return un.transitions(np.array(y))


def regression(n: int, seed: int) -> un.Observations:
    rng = np.random.default_rng(seed)
    z, w, g = rng.normal(size=n), rng.uniform(0, 2, n), np.linspace(0, 2, 401)
    mass = np.cumsum(np.exp(-g + 1.2 * z[:, None] * g + 0.9 * w[:, None] * np.sin(3 * g)), axis=1)
    y = g[(mass < rng.random(n)[:, None] * mass[:, -1:]).sum(axis=1)]
    return un.conditional({"y": y, "z": z, "w": w}, y="y", x=("z", "w"))


def said(*parts: Any, **more: Any) -> tuple[un.Fit, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = un.fit(*parts, rng=33, **more)
    return fit, [str(one.message) for one in caught]


def points(k: int) -> un.Logistic:
    return un.Logistic(un.Uniform(), per_point=k)


def test_constants_smoothed_away_are_a_warning_whose_remedy_works(tmp_path: Path) -> None:
    """The review's N1: edf 0, no bias with Anchored(), and the verdict is kept."""
    obs = circle_chain(300, 1)
    fit, warned = said(CIRCLE, obs, points(5), un.Smooth("s(y_prev, bs='cc', k=12)", smoothing="reml"))
    assert fit.constants_failed
    assert warned == [fit.constants]
    assert fit.constants in fit.notes
    assert "χ̂ does not follow them" in warned[0]
    assert "Use normaliser=un.Anchored()." in warned[0]
    assert f"constants FAIL: {fit.constants}" in fit.summary()
    assert str(fit.advise()).startswith(f"The constants come first, as no number of points mends them. {fit.constants}")
    fit.save(tmp_path / "fit")
    loaded = un.load(tmp_path / "fit", model=CIRCLE)
    assert (loaded.constants, loaded.constants_failed) == (fit.constants, True)
    assert loaded.check_normaliser(obs=obs).failed
    cured, silence = said(CIRCLE, obs, points(5), un.Anchored())
    assert silence == []
    assert not cured.constants_failed
    assert "constants checked: The constants follow f̂" in cured.summary()
    assert str(cured.advise()).startswith("Logistic against uniform")
    assert np.abs((fit.estimate - cured.estimate) / cured.se).max() > 0.5
    free, silence = said(CIRCLE, obs, points(5), un.Smooth("s(y_prev, bs='cc', k=12)"))
    assert silence == []
    assert "Good" in str(free.constants)


def test_a_column_that_the_normaliser_does_not_read() -> None:
    """The review's N2."""
    obs = regression(400, 2)
    fit, warned = said(REGRESSION, obs, points(8), un.Smooth("s(z)"))
    assert fit.constants_failed
    assert warned[0] == fit.constants
    assert warned[1].startswith("f reads 'w' of the context, which the normaliser does not")
    assert len(warned) == 2
    cured, silence = said(REGRESSION, obs, points(8), un.Anchored())
    assert silence == []
    assert np.abs((fit.estimate - cured.estimate) / cured.se).max() > 2
    exact = un.fit(REGRESSION, obs, un.Exact())
    np.testing.assert_allclose(cured.estimate, exact.estimate, atol=0.5 * float(exact.se.min()))


def test_anchored_constants_know_their_rule_and_delta(tmp_path: Path) -> None:
    obs = regression(400, 2)
    fit, _ = said(REGRESSION, obs, points(8))
    assert fit.anchored
    assert fit.anchoring is not None
    assert fit.anchoring.shift == fit.diagnostics["anchor_shift"]
    assert set(fit.anchoring.tests or {}) == {"z", "w"}
    check = fit.check_normaliser(60)
    assert check.level == pytest.approx(fit.anchoring.delta, abs=1e-6)
    assert check.shape < 1e-6
    assert abs(check.level) < 4 * (fit.anchoring.se or 0.0)
    fit.save(tmp_path / "fit")
    loaded = un.load(tmp_path / "fit", model=REGRESSION)
    assert loaded.anchoring == fit.anchoring
    new = regression(50, 9)
    for one in (fit, loaded):
        check = one.check_normaliser(obs=new)
        np.testing.assert_allclose(check.gap, fit.anchoring.delta, atol=1e-12)
        np.testing.assert_allclose(check.integral, -one.density.log_z(new), atol=1e-12)
        assert check.verdict == fit.constants


def test_the_parametric_and_the_additive_delta_agree() -> None:
    obs = regression(300, 4)
    flat = un.ExponentialFamily(
        lambda y, x: (y, x["z"] * y, x["w"] * jnp.sin(3 * y)), ("y", "zy", "ws"), un.Interval(0, 2)
    )
    one, two = (said(model, obs, points(6))[0].anchoring for model in (flat, REGRESSION))
    assert one is not None
    assert two is not None
    assert one.delta == pytest.approx(two.delta, abs=1e-4)
    assert one.se == pytest.approx(two.se, rel=1e-2)


def test_an_edf_at_its_k() -> None:
    """The review's N5: a narrow peak on a broad curve."""
    rng = np.random.default_rng(1)
    u = np.concatenate([rng.beta(0.3, 0.3, 2000), rng.normal(0.5, 0.005, 1000)])
    obs = un.iid({"u": u[(u > 0) & (u < 1)]}, y="u")
    objective = un.Logistic(un.Uniform(), total=8000)
    _, warned = said(un.Additive("s(u, k=5)", un.Interval(0, 1)), obs, objective)
    assert any("s(u): edf 4.0 is at its limit of 4 (k-index" in one and "Try k=10." in one for one in warned)
    smooth = un.iid({"u": rng.beta(2, 3, 500)}, y="u")
    assert said(un.Additive("s(u, k=10)", un.Interval(0, 1)), smooth, objective)[1] == []
    assert said(un.Additive("s(u, k=5, fx=True)", un.Interval(0, 1)), smooth, objective)[1] == []


def test_a_covariate_that_reaches_beyond_the_points() -> None:
    """The review's N7: steps of a kernel against those that Ω allows; a tenth of uniform points is the cure."""
    rng, p = np.random.default_rng(3), [np.array([400.0, 300.0])]
    while len(p) < 400:
        q = p[-1] + rng.normal(0, 30, 2)
        if 0 < q[0] < 800 and 0 < q[1] < 600:
            p.append(q)
    obs = un.transitions(dict(zip("xy", np.array(p).T)), y=("x", "y"))
    model = un.Additive("s(step, k=6)", un.Box((0, 800), (0, 600)))
    kernel = un.StepKernel()
    _, warned = said(model, obs, un.Logistic(kernel, per_point=10))
    assert any("On Ω step goes from" in one and "un.Mixture((0.9, un.StepKernel(…))" in one for one in warned)
    mixed = un.Mixture((0.9, kernel), (0.1, un.Uniform()))
    assert not any("On Ω" in one for one in said(model, obs, un.Logistic(mixed, per_point=10))[1])


def test_a_covariate_that_reaches_below_the_points() -> None:
    """The lower end alone: data and Gaussian points at the top of Ω."""
    u = 1.0 - 0.1 * np.random.default_rng(5).beta(2, 3, 400)
    model, obs = un.Additive("s(u, k=6)", un.Interval(0, 1)), un.iid({"u": u}, y="u")
    _, warned = said(model, obs, un.Logistic(un.Gaussian(), total=4000))
    assert any("On Ω u goes from" in one for one in warned)


def test_no_point_resembles_the_data() -> None:
    """The review's N8: said in place of what follows from it."""
    line = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-50, 150))
    far = un.Logistic(un.Gaussian(0.0, 1.0), total=2000)
    rng = np.random.default_rng(1)
    with pytest.raises(NoEstimateError, match=r"No reference point resembles the data \(the data lie between"):
        un.fit(line, un.iid(rng.normal(12, 1, 300)), far, rng=2)
    _, warned = said(line, un.iid(rng.normal(100, 1, 300)), far)
    assert any(one.startswith("No reference point resembles the data") for one in warned)
    near = un.Logistic(un.Mixture((0.9, un.Gaussian(100.0, 2.0)), (0.1, un.Uniform())), total=2000)
    assert said(line, un.iid(rng.normal(100, 1, 300)), near)[1] == []


def test_apart_needs_a_coordinate_without_overlap() -> None:
    a, b = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.5, 2.0], [0.7, 3.0]])
    assert "between 2 and 3 on axis 2" in str(apart(a, b))
    assert apart(a, a + 0.5) is None


def test_the_poisson_rule_is_refined_until_it_sees_the_peak() -> None:
    """The review's N3: a steep intensity between the nodes of the first rule; Exact is the oracle."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(size=(2, 40_000))
    bump = np.exp(-((x - 0.37) ** 2 + (y - 0.61) ** 2) / 0.002)
    keep = np.flatnonzero(rng.random(40_000) < np.exp(3 * bump + x - 4))[:1000]
    obs = un.iid({"x": x[keep], "y": y[keep]}, y=("x", "y"))
    steep = un.Expression("g", "exp(-((x - 0.37)**2 + (y - 0.61)**2)/0.002)")
    model = un.Additive("x + g", un.Box((0, 1), (0, 1)), covariates=[steep])
    exact, poisson, coarse = (un.fit(model, obs, one) for one in (un.Exact(), un.Poisson(), un.Poisson(order=13)))
    np.testing.assert_allclose(poisson.estimate, exact.estimate, atol=0.01 * float(exact.se.min()))
    np.testing.assert_allclose(poisson.se, exact.se, rtol=1e-3)
    assert poisson.diagnostics["rule_moved"] < 0.05
    assert coarse.diagnostics["nodes"] == 169  # as asked for
    assert abs(coarse.theta["g"] - exact.theta["g"]) > 5 * float(exact.se[1])


def test_a_rule_that_may_not_grow_says_what_it_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    peak = np.concatenate([rng.uniform(size=300), rng.normal(0.317, 0.002, 300)])
    narrow = un.Expression("g", "exp(-(u - 0.317)**2/0.000008)")
    model = un.Additive("u + g", un.Interval(0, 1), covariates=[narrow])
    monkeypatch.setattr("unnorm.objectives.exact.MOST_SHARED", 140)
    fit, warned = said(model, un.iid({"u": peak}, y="u"), un.Poisson())
    assert fit.diagnostics["rule_moved"] > 0.05
    assert any("may be too coarse: f̂ still moved by" in one for one in warned)


def test_the_worst_of_many_fits_is_one_that_failed() -> None:
    """A rule whose error is allowed says nothing, however it compares; of those that failed, the smallest p."""
    base = un.fit(CIRCLE, circle_chain(60, 1), un.Logistic(un.Uniform(), per_point=5), rng=9)

    def known(shift: float, p: float) -> un.Fit:
        one = Anchoring(0.0, 0.1, shift, {"y_prev": DeltaTest(9.0, 3, p)})
        return replace(base, anchoring=one, constants_failed=bool(one.doubtful))

    fits = {
        "fine": known(0.04, 0.5),
        "first": known(0.001, 9e-4),
        "worst": known(0.002, 1e-5),
        "rough": known(0.049, 1),
    }
    assert worst(fits) == "worst"
    coarse = {"fine": known(0.049, 0.01), "coarse": known(0.2, 0.9)}
    assert worst(coarse) == "coarse"
    plain = replace(base, anchoring=None)
    gaps = {name: replace(plain, diagnostics={"constants_bias": b}) for name, b in (("a", 1.0), ("b", 3.0), ("c", 2.0))}
    assert worst(gaps) == "b"


def test_a_group_names_the_level_whose_constants_are_worst() -> None:
    """Not the first that fails: the interaction that f misses is the strongest in the second subject."""
    rng, g = np.random.default_rng(2), np.linspace(0, 2, 401)
    z, who = rng.normal(size=900), np.repeat(["a", "b", "c"], 300)
    slope = np.repeat([1.2, 2.5, 0.0], 300)
    mass = np.cumsum(np.exp(-g + slope[:, None] * z[:, None] * g), axis=1)
    y = g[(mass < rng.random(900)[:, None] * mass[:, -1:]).sum(axis=1)]
    obs = un.conditional({"y": y, "z": z, "who": who}, y="y", x="z", group="who")
    model = un.Additive("y", un.Interval(0, 2))
    with pytest.warns(un.errors.UnnormWarning, match="2 of 3 levels of 'who' fail .*The worst, b:"):
        group = un.fit_each(model, obs, "who", objective=un.Logistic(un.Uniform(), per_point=5), rng=3)
    assert group.fits["b"].anchoring.p < group.fits["a"].anchoring.p < 1e-3 < group.fits["c"].anchoring.p  # type: ignore[union-attr]


WAVES = (np.arange(1000) + 0.5) / 1000


def waves(n: int, seed: int) -> np.ndarray:
    rng, mass = np.random.default_rng(seed), np.cumsum(np.exp(1.5 * np.sin(40 * WAVES)))
    return WAVES[np.searchsorted(mass, rng.random(n) * mass[-1])] + rng.uniform(-0.0005, 0.0005, n)


@pytest.mark.parametrize("objective", [un.Exact(), un.Poisson(), un.Logistic(un.Uniform(), total=9000)])
def test_k_is_judged_whatever_the_objective(objective: Any) -> None:
    _, notes = said(un.Additive("s(y, k=10)", un.Interval(0, 1)), un.iid(waves(3000, 5)), objective)
    # Poisson's rule is doubled while f̂ moves, knots with it, and ends in a sentence of its own: it once ran for minutes
    (told,) = [note for note in notes if "is at its limit" in note]
    assert "is at its limit of 9" in told
    assert told.endswith("Try k=20.")
    finer = un.Additive("s(y, k=40)", un.Interval(0, 1))
    assert not [note for note in said(finer, un.iid(waves(3000, 5)), objective)[1] if "limit" in note]


def test_a_tensor_product_has_k_for_each_margin() -> None:
    """Twice the columns, and not twice the columns along each axis."""
    obs, box = un.iid(np.stack([waves(300, 6), waves(300, 7)], axis=1)), un.Box((0, 1), (0, 1))
    model = un.Additive("s(y1, k=6) + s(y2, k=6) + ti(y1, y2, k=5)", box)
    part = said(model, obs, un.Logistic(un.Uniform(), total=900))[0].smooths
    assert part is not None
    assert [(term.size, term.larger) for term in part.terms] == [(5, "k=12"), (5, "k=12"), (16, "k=7")]
    plane = said(un.Additive("s(y1, y2, k=12)", box), obs, un.Logistic(un.Uniform(), total=900))[0].smooths
    assert plane is not None
    assert [(term.size, term.larger) for term in plane.terms] == [(11, "k=24")]
