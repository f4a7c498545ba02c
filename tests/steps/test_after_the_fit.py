"""What is asked of a fitted step selection model: contrasts, rows, tracks, maps of utilisation, calibration."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import unnorm as un
from steps.walks import SIDE, deer_walk, fixes, walk, wood, wood_map
from unnorm.errors import CombinationError, InputError, UnnormWarning
from unnorm.references import Gamma, VonMisesAngle

BOX = un.Box((0.0, SIDE), (0.0, SIDE))
SMALL = un.Box((0.0, 3_000.0), (0.0, 3_000.0))


@cache
def fitted() -> un.StepFit:
    return un.fit_steps(deer_walk(301), "forest + forest:night + log(step)", maps=wood_map(), rng=1)


def test_relative_selection_strength_by_hand() -> None:
    """log RSS of a linear term is β Δx, with an interaction at the given night; its error follows from V."""
    fit = fitted().fit
    theta, V = fit.theta, fit.covariance
    found = fitted().contrast({"forest": [0.2, 0.9], "night": 1.0}, {"forest": 0.1, "night": 1.0})
    slope = theta["forest"] + theta["forest:night"]
    np.testing.assert_allclose(found["log_rss"], slope * np.array([0.1, 0.8]))
    i, j = fit.names.index("forest"), fit.names.index("forest:night")
    se = np.sqrt(V[i, i] + V[j, j] + 2 * V[i, j])
    np.testing.assert_allclose(found["se"], se * np.array([0.1, 0.8]))
    np.testing.assert_allclose(found["rss"], np.exp(found["log_rss"]))
    np.testing.assert_allclose(found["upper"] - found["log_rss"], 1.959964 * found["se"], rtol=1e-5)


def test_contrasts_compute_what_they_can() -> None:
    """log_step from a given step, and a map from a place; what is not given is held at its median."""
    by_step = fitted().contrast({"step": 200.0}, {"step": 100.0})
    np.testing.assert_allclose(by_step["log_rss"], fitted().fit.theta["log_step"] * np.log(2.0))
    place = fitted().contrast({"x": 9000.0, "y": 9500.0, "night": 0.0}, {"forest": 0.5, "night": 0.0})
    gap = wood(np.array([9000.0]), np.array([9500.0])) - 0.5
    np.testing.assert_allclose(place["log_rss"], fitted().fit.theta["forest"] * gap, rtol=2e-3)
    with pytest.raises(InputError, match=r"'night' stands in at1 only.*give it in both"):
        fitted().contrast({"forest": 0.9, "night": 1.0}, {"forest": 0.1})
    with pytest.raises(InputError, match="'night' stands in at2 only"):
        fitted().contrast({"forest": 0.9}, {"forest": 0.1, "night": 1.0})
    median = float(np.median(fitted().rows()["night"]))
    middle = fitted().contrast({"forest": 0.9, "night": median}, {})
    others = fitted().contrast({"forest": 0.9}, {})
    np.testing.assert_allclose(middle["log_rss"], others["log_rss"])
    with pytest.raises(InputError, match="elevation"):
        fitted().contrast({"elevation": 1.0}, {"elevation": 0.0})
    with pytest.raises(InputError, match="one value, or as many"):
        fitted().contrast({"forest": [0.1, 0.2]}, {"forest": [0.1, 0.2, 0.3]})
    parametric = un.fit(
        un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1)), un.iid(np.linspace(-0.5, 0.9, 50))
    )
    with pytest.raises(InputError, match="terms of f"):
        parametric.contrast({}, {})
    with pytest.raises(InputError, match="no rows"):
        parametric.rows()


def test_rows_of_any_contrast() -> None:
    fit = fitted().fit
    rows = fitted().rows()
    assert rows["case"].sum() == fit.obs.n
    assert len(rows["case"]) == fit.obs.n * 21
    np.testing.assert_allclose(rows["x"][rows["case"] == 1], fit.obs.outcome[:, 0])
    np.testing.assert_allclose(
        rows["log_step"], np.log(np.hypot(rows["x"] - rows["x_prev"], rows["y"] - rows["y_prev"]))
    )
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
    obs = un.transitions(un.datasets.toy_chain(100, 0.5, 5.0, rng=1))
    table = un.fit(toy, obs, un.Logistic(un.Uniform(), per_point=4), rng=1).rows()
    np.testing.assert_allclose(table["offset"], np.log(2.0) - np.log(4.0))  # −log q + log(n/m)


def test_random_steps_are_the_kernels() -> None:
    track = deer_walk(301)
    steps = un.random_steps(track, 30, maps=wood_map(), domain=BOX, rng=1)
    free = steps["case"] == 0
    real = steps["step"][~free]
    law = Gamma().fit(real, np.ones(real.size))
    assert steps["step"][free].mean() == pytest.approx(law.shape * law.scale, rel=0.03)
    np.testing.assert_allclose(steps["forest_end"], wood(steps["x_end"], steps["y_end"]), atol=0.01)
    np.testing.assert_allclose(steps["forest_start"], wood(steps["x_start"], steps["y_start"]), atol=0.01)
    np.testing.assert_array_equal(steps["stratum"], np.repeat(np.arange(299), 31))
    with pytest.raises(InputError, match="k"):
        un.random_steps(track, 0)
    with pytest.raises(InputError, match=r"Steps come from un\.track"):
        un.random_steps({"x": [1.0]}, 5)


def test_simulated_tracks_follow_the_model() -> None:
    """Steps and habitat of long tracks against a direct simulation with the fitted coefficients."""
    kernel = un.StepKernel(Gamma(2.0, 150.0), VonMisesAngle(0.0, 0.5))
    fit = un.fit_steps(deer_walk(201, night=0.0), "forest", maps=wood_map(), kernel=kernel, domain=BOX, rng=1)
    table = fit.simulate(150, chains=40, rng=2)
    x, y = (table[name].reshape(40, -1) for name in ("x", "y"))
    assert BOX.contains(np.column_stack([x.ravel(), y.ravel()])).all()
    direct = deer_walk(3001, seed=11, beta=fit.fit.theta["forest"], night=0.0)
    ours, theirs = np.hypot(np.diff(x), np.diff(y)), direct.steps()["step"]
    assert ours.mean() == pytest.approx(theirs.mean(), abs=5 * theirs.std() / np.sqrt(theirs.size))
    used = wood(x[:, 50:], y[:, 50:]).mean()
    assert used == pytest.approx(wood(direct.x, direct.y).mean(), abs=0.05)


@pytest.mark.parametrize(
    "terms", ["s(step, k=5)", "log_step", "s(step, k=4) + forest:night", "forest:night + log_step"]
)
def test_simulation_ends_without_a_base_too(terms: str) -> None:
    """Fits with StepKernel points and no base: with extra columns, s(step) and a falling log-step they once hung or
    crashed, and a declared covariate that no term reads was an error."""
    obs = deer_walk(101).observations()
    covariates = [wood_map(), un.Expression("log_step", "log(step)"), un.Expression("unused", "night_start * 2")]
    model = un.Additive(terms, BOX, covariates=covariates)
    fit = un.fit(model, obs, un.Ranking(un.StepKernel("gamma", "vonmises"), per_point=10), rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # a curve of the step is extrapolated over a large Ω
        table = fit.simulate(12, chains=3, rng=1)
    assert BOX.contains(np.column_stack([table["x"], table["y"]])).all()


def test_a_landscape_without_values_is_said() -> None:
    track = deer_walk(101)
    axis = np.linspace(4_000.0, 16_000.0, 200)
    part = un.Map("forest", wood(axis[None, :], axis[:, None]), axis, axis)
    with pytest.raises(un.errors.OutsideError, match=r"Map 'forest' has no value at .* first .*outside='nearest'"):
        un.fit_steps(track, "forest", maps=part, domain=BOX, rng=1).simulate(3_000, chains=20, rng=1)


def test_the_stationary_law_of_a_symmetric_kernel() -> None:
    """With uniform turns and habitat alone the chain is reversible: π(x) ∝ exp w(x) ∫ k(|y − x|) exp w(y) dy over Ω."""
    kernel = un.StepKernel(Gamma(2.0, 150.0), "uniform")
    axis = np.linspace(0.0, 3_000.0, 121)
    grid = un.Map("forest", wood(axis[None, :], axis[:, None]), axis, axis)
    points = walk(301, np.random.default_rng(4), lambda y, _, t: 3.0 * wood(*y.T), kappa=0.0, side=3_000.0)
    track = un.track(fixes(points), time="t", x="x", y="y")
    fit = un.fit_steps(track, "forest", maps=grid, kernel=kernel, domain=SMALL, rng=1)
    found = fit.utilisation(60.0)
    beta = fit.fit.theta["forest"]
    assert beta > 1.0
    gx, gy = np.meshgrid(found.x, found.y)
    places = np.column_stack([gx.ravel(), gy.ravel()])
    w = np.exp(beta * wood(*places.T))
    d = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    fine = np.where(d > 0, np.exp(kernel.step.log_density(np.maximum(d, 1.0))) / np.maximum(d, 1.0), 0.0)
    own = kernel.step.cdf(np.array([60.0 / np.sqrt(np.pi)]))[0] * 2 * np.pi / 60.0**2  # of a cell from its middle
    pi = w * ((fine + own * (d == 0)) @ w)
    pi /= pi.sum()
    assert 0.5 * np.abs(found.probability.ravel() - pi).sum() < 0.01
    assert found.probability.sum() == pytest.approx(1.0)
    assert found.error < 0.05
    table = found.tidy()
    assert table["probability"].sum() == pytest.approx(1.0)


def test_utilisation_needs_to_know_the_night() -> None:
    with pytest.raises(InputError, match=r"f reads 'night'.*at=\{'night'"):
        fitted().utilisation()
    found = fitted().utilisation(500.0, at={"night": 0.0})
    other = fitted().utilisation(500.0, at={"night": 1.0})
    habitat = wood(*np.meshgrid(found.x, found.y))
    assert (found.probability * habitat).sum() > (other.probability * habitat).sum()  # it likes the wood by day
    with pytest.raises(InputError, match="method"):
        fitted().utilisation(method="guess")
    sampled = fitted().utilisation(5_000.0, method="simulation", steps=30, chains=5, at={"night": 0.0}, rng=1)
    assert sampled.se is not None
    assert sampled.probability.sum() == pytest.approx(1.0)


def test_calibration_covers_the_truth_and_not_a_wrong_model() -> None:
    track = deer_walk(801, seed=2, beta=4.0, night=0.0)
    right = un.fit_steps(track, "forest", maps=wood_map(), rng=1).calibration("forest", draws=100)
    assert right.inside >= 0.8
    wrong = un.fit_steps(track, "log(step)", maps=wood_map(), rng=1).calibration("forest", draws=100)
    assert wrong.inside < right.inside
    assert right.used.sum() == pytest.approx(1.0)
    empty = replace(right, used=np.r_[right.used, 0.0], available=np.r_[right.available, 0.0],
                    lower=np.r_[right.lower, 0.0], upper=np.r_[right.upper, 0.0])  # fmt: skip
    assert empty.inside == right.inside  # a bin that no step ends in says nothing


def test_pictures() -> None:
    import matplotlib

    matplotlib.use("Agg")
    fit = fitted()
    assert fit.plot().get_xlabel() == "step"
    assert fit.calibration("forest", draws=20).plot().get_xlabel() == "forest"
    with pytest.warns(UnnormWarning, match=r"map of utilisation may be off .*cell=…"):  # cells of many steps' width
        rough = fit.utilisation(2_000.0, at={"night": 0.0})
    assert rough.plot().get_aspect() == 1.0


def test_step_fits_need_a_kernel() -> None:
    obs = deer_walk(41).observations()
    fit = un.fit(un.Additive("x", BOX), obs, un.Ranking(un.Uniform(), per_point=5), rng=1)
    with pytest.raises(CombinationError, match="relative to a kernel"):
        un.StepFit(fit)
    with pytest.raises(InputError, match=r"maps must be un\.Map"):
        un.fit_steps(obs, "x", maps=["forest"])
    with pytest.raises(InputError, match="objective"):
        un.fit_steps(obs, "x", objective="clogit")
