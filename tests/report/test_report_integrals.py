"""log Z by the rule centred at the previous point, against brute force with thousands of nodes an axis."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.report.integrals import _rule, log_z


@pytest.fixture(scope="module")
def fit():
    table = un.datasets.simulate_eye(rng=2, subjects=1, fixations=(400, 420))
    obs = un.transitions(table, y=("x", "y"), order="fix", group=("subject", "image"))
    model = un.Additive(
        "s(step, k=8) + s(dcenter, k=6) + s(angle, bs='cc', k=12)", un.Box((0, 800), (0, 600)), y_down=True
    )
    normaliser = un.Smooth("s(x_prev, y_prev, k=10)")
    return un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5), normaliser, rng=1)


def test_area():
    """The weights of a room of area one, in all four quadrants, are four areas."""
    _, _, weights = _rule(16, 6)
    np.testing.assert_allclose(weights.sum(), 4.0, rtol=1e-13)


@pytest.mark.filterwarnings("ignore:.*extrapolated there:unnorm.errors.UnnormWarning")
def test_against_brute_force(fit):
    some = fit.obs.take(np.array([57, 133]))
    nx, ny = 1000, 750
    x, y = (np.arange(nx) + 0.5) * 800 / nx, (np.arange(ny) + 0.5) * 600 / ny
    grid = np.column_stack([a.ravel() for a in np.meshgrid(x, y)])
    brute = []
    for i in range(some.n):
        f = fit.density.log_f(some, grid, np.full(len(grid), i))
        brute.append(np.log(np.mean(np.exp(f))) + np.log(480_000))
    np.testing.assert_allclose(log_z(fit, some), brute, atol=1e-3)
    np.testing.assert_allclose(log_z(fit, some, 16, 6), brute, atol=2e-3)


@pytest.mark.filterwarnings("ignore:.*extrapolated there:unnorm.errors.UnnormWarning")
def test_at_a_corner(fit):
    from dataclasses import replace

    some = fit.obs.take(np.array([0]))
    some = replace(some, context={"x_prev": np.array([0.0]), "y_prev": np.array([600.0])})
    fine = log_z(fit, some, 60, 30)
    assert np.isfinite(fine).all()
    np.testing.assert_allclose(log_z(fit, some), fine, atol=2e-3)
