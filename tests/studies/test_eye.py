"""Scanpaths: the simulator against quadrature, the bundled data against its script, chains from a fitted density."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError, OutsideError
from unnorm.results.density import SmoothDensity
from unnorm.results.planar import PolarLaw, polar_chains, simulate_planar
from unnorm.studies.eye import (
    CENTRE,
    LABELS,
    SEED,
    EyeCurves,
    draw_subjects,
    eye,
    eye_truth,
    population_curve,
    simulate_eye,
)

BOX = un.Box((0, 800), (0, 600))


def exact_moments(log_f, start, functions):
    """E g(y) under p(y | start) ∝ exp f, by a fine midpoint rule on the window."""
    x, y = (np.arange(2.0, 800, 4), np.arange(2.0, 600, 4))
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    f = log_f(grid, start)
    p = np.exp(f - f.max())
    p /= p.sum()
    return np.array([p @ g(grid, start) for g in functions])


def step_and_angle(y, start):
    d = y - start
    return np.hypot(d[:, 0], d[:, 1]), np.arctan2(-d[:, 1], d[:, 0])


FUNCTIONS = (
    lambda y, s: step_and_angle(y, s)[0],
    lambda y, s: np.cos(4 * step_and_angle(y, s)[1]),
    lambda y, s: np.sin(step_and_angle(y, s)[1]),
    lambda y, s: np.hypot(*(y - np.array(CENTRE)).T),
    lambda y, s: y[:, 0],
    lambda y, s: (y[:, 1] > 300).astype(float),
)


def log_f(curves):
    def f(y, start):
        d, phi = step_and_angle(y, start)
        return curves.step(d) + curves.angle(phi) + curves.dcenter(np.hypot(*(y - np.array(CENTRE)).T))

    return f


@pytest.mark.parametrize("start", [(400.0, 300.0), (60.0, 560.0)])
def test_one_step_has_the_moments_of_the_density(start):
    curves = draw_subjects(1, 3)[0]
    n = 40_000
    starts = np.broadcast_to(np.array(start), (n, 1, 2))

    def rest(y, _):
        return curves.dcenter(np.hypot(*(y - np.array(CENTRE)).T))

    y = polar_chains(PolarLaw(BOX, curves.step, curves.angle, rest, y_down=True), starts, 1, 1)[:, 1]
    values = np.array([g(y, np.array(start)) for g in FUNCTIONS])
    expected = exact_moments(log_f(curves), np.array(start), FUNCTIONS)
    z = (values.mean(axis=1) - expected) / (values.std(axis=1) / np.sqrt(n))
    assert np.abs(z).max() < 4.5, z


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few terms, on purpose
def test_chains_from_a_fitted_density_have_its_moments():
    obs = un.transitions(eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    one = obs.take(obs.group["subject"] == 2)
    model = un.Additive("s(step) + s(angle, bs='cc') + s(x, y, k=15) + s(dcenter)", BOX, y_down=True)
    fit = un.fit(model, one, un.Logistic(un.Uniform(), per_point=5), un.Smooth("s(x_prev, y_prev, k=15)"), rng=1)
    density = fit.density
    assert isinstance(density, SmoothDensity)
    n, start = 30_000, np.array([250.0, 200.0])
    y = simulate_planar(density, np.broadcast_to(start, (n, 2)), 1, rng=2)[:, 1]
    values = np.array([g(y, start) for g in FUNCTIONS])
    place = un.Observations("transitions", start[None], ("x", "y"), {"x_prev": start[:1], "y_prev": start[1:]}, lags=1)
    expected = exact_moments(lambda g, s: density.log_f(place, g, np.zeros(len(g), dtype=int)), start, FUNCTIONS)
    z = (values.mean(axis=1) - expected) / (values.std(axis=1) / np.sqrt(n))
    assert np.abs(z).max() < 4.5, z


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few terms, on purpose
def test_chains_refuse_starts_outside():
    obs = un.transitions(eye(), y=("x", "y"), order="fix", group=("subject", "image")).take(np.arange(300))
    model = un.Additive("s(step, k=5)", BOX)
    fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5), un.Smooth("s(x_prev, y_prev, k=10)"), rng=1)
    with pytest.raises(OutsideError, match="outside"):
        simulate_planar(fit.density, [[900.0, 10.0]], 2, rng=1)  # type: ignore[arg-type]


def test_the_bundled_data_are_what_the_script_writes():
    table = eye()
    subjects, counts = np.unique(table["subject"], return_counts=True)
    assert subjects.tolist() == list(range(1, 15))
    assert counts.min() >= 600
    assert counts.max() <= 2000
    assert BOX.contains(np.column_stack([table["x"], table["y"]])).all()
    rng = np.random.default_rng(SEED)
    again = simulate_eye(rng, curves=draw_subjects(14, rng))
    np.testing.assert_allclose(table["x"], again["x"], atol=0.0501)
    assert np.array_equal(table["fix"], again["fix"])
    assert np.array_equal(eye_truth()[3].u, draw_subjects(14, np.random.default_rng(SEED))[3].u)


def test_the_law_has_the_population_as_its_mean():
    x = {"s(step)": np.linspace(0, 900, 7), "s(dcenter)": np.linspace(0, 480, 7), "s(angle)": np.linspace(-3, 3, 7)}
    many = draw_subjects(4000, 1)
    for label in LABELS:
        curves = np.array([one.curve(label, x[label]) for one in many])
        se = curves.std(axis=0) / np.sqrt(len(many))
        assert np.all(np.abs(curves.mean(axis=0) - population_curve(label, x[label])) < 4.5 * np.maximum(se, 1e-12))
    assert np.array_equal(EyeCurves(np.zeros(8)).step(x["s(step)"]), population_curve("s(step)", x["s(step)"]))


def test_simulation_repeats_with_its_seed_and_refuses_nonsense():
    a, b = (simulate_eye(5, subjects=2, fixations=(40, 60), length=10) for _ in range(2))
    assert all(np.array_equal(a[name], b[name]) for name in a)
    with pytest.raises(InputError, match="length"):
        simulate_eye(1, fixations=(5, 10), length=20)
    with pytest.raises(InputError, match="subjects"):
        simulate_eye(1, subjects=0)
