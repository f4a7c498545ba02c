"""log Z of smooth chains, the one that log_density, held_out, check_normaliser and the report share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un

BOX = un.Box((0, 800), (0, 600))
pytestmark = pytest.mark.filterwarnings("ignore:.*extrapolated there:unnorm.errors.UnnormWarning")


@pytest.fixture(scope="module")
def fit() -> un.Fit:
    table = un.datasets.simulate_eye(rng=2, subjects=1, fixations=(400, 420))
    obs = un.transitions(table, y=("x", "y"), order="fix", group=("subject", "image"))
    model = un.Additive("s(step, k=8) + s(dcenter, k=6) + s(angle, bs='cc', k=12)", BOX, y_down=True)
    return un.fit(
        model, obs, un.Logistic(un.Uniform(), per_point=5), un.Smooth("s(x_prev, y_prev, k=10)"), rng=1
    )  # fmt: skip


@pytest.fixture(scope="module")
def brute(fit: un.Fit) -> tuple[un.Observations, np.ndarray]:
    """Midpoints of 1000 × 750 cells."""
    assert fit.obs is not None
    some = fit.obs.take(np.array([57, 133]))
    x, y = (np.arange(1000) + 0.5) * 0.8, (np.arange(750) + 0.5) * 0.8
    grid = np.column_stack([a.ravel() for a in np.meshgrid(x, y)])
    f = [fit.density.log_f(some, grid, np.full(len(grid), i)) for i in range(some.n)]
    return some, np.array([np.log(np.mean(np.exp(one))) + np.log(480_000) for one in f])


def test_against_brute_force(fit, brute):
    some, expected = brute
    np.testing.assert_allclose(fit.density.log_z(some), expected, atol=5e-4)
    np.testing.assert_allclose(fit.density.log_z(some, 30), expected, atol=2e-3)
    np.testing.assert_allclose(fit.density.log_z(some, 100), expected, atol=2e-4)
    plain = fit.density._by(BOX.quadrature(), some)
    assert np.abs(plain - expected).max() > 2 * np.abs(fit.density.log_z(some) - expected).max()


def test_everything_that_is_normalised_uses_it(fit, brute):
    some, log_z = brute
    f = fit.density.log_f(some, some.outcome, np.arange(some.n))
    previous = np.column_stack([some.context["x_prev"], some.context["y_prev"]])
    np.testing.assert_allclose(fit.log_density(some.outcome, previous), f - log_z, atol=5e-4)
    held = fit.held_out(some)
    np.testing.assert_allclose(held.log_density, f - log_z, atol=5e-4)
    assert held.quadrature_error < 1e-3
    check = fit.check_normaliser(obs=some)
    np.testing.assert_allclose(check.integral, -log_z, atol=5e-4)
    assert check.quadrature_error < 1e-3


def test_at_a_corner(fit):
    some = fit.obs.take(np.array([0]))
    some = replace(some, context={"x_prev": np.array([0.0]), "y_prev": np.array([600.0])})
    np.testing.assert_allclose(fit.density.log_z(some), fit.density.log_z(some, 120), atol=2e-3)


def test_a_window_with_the_same_outline_gives_the_same(fit, brute):
    some, _ = brute
    window = un.Window([(0, 0), (800, 0), (800, 600), (0, 600)])
    other = replace(fit, model=un.Additive(fit.model.terms, window, centre=(400, 300), y_down=True))
    np.testing.assert_allclose(other.density.log_z(some), fit.density.log_z(some), atol=5e-4)
