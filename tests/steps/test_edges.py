"""Animals at the edge of the landscape that head outwards: little of the kernel is inside, and it is drawn from."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.references import Gamma, VonMisesAngle

BOX = un.Box((0.0, 1_000.0), (0.0, 1_000.0))
KERNEL = un.StepKernel(Gamma(2.0, 100.0), VonMisesAngle(0.0, 4.0))


def leaving(x: float, y: float = 500.0, n: int = 2) -> un.Observations:
    """Contexts at one place near the right edge, entered from the left."""
    columns = {"x_prev": np.full(n, x), "y_prev": np.full(n, y), "x_prev2": np.full(n, x - 200.0)}
    return un.Observations(
        "transitions", np.full((n, 2), 500.0), ("x", "y"), {**columns, "y_prev2": np.full(n, y)}, 2
    )  # fmt: skip


@pytest.mark.parametrize("x", [999.9, 999.0, 990.0])
def test_draws_at_the_edge_follow_the_density(x: float) -> None:
    """Shares of a few cells against a fine Riemann sum of the kernel's own density."""
    obs = leaving(x)
    law = KERNEL.bind(BOX, obs)
    y = law.sample(obs, np.zeros(20_000, dtype=int), np.random.default_rng(1))
    assert BOX.contains(y).all()
    side = 500
    axis = (np.arange(side) + 0.5) * 1_000.0 / side
    grid = np.column_stack([a.ravel() for a in np.meshgrid(axis, axis)])
    mass = np.exp(law.log_density(grid, obs, np.zeros(len(grid), dtype=int)))
    assert mass.mean() * 1e6 == pytest.approx(1.0, abs=0.05)  # the density is singular at its centre
    for inside in (lambda p: p[:, 0] < 900.0, lambda p: np.abs(p[:, 1] - 500.0) > 150.0, lambda p: p[:, 1] > 600.0):
        expected = float(mass[inside(grid)].sum() / mass.sum())
        got = float(inside(y).mean())
        assert got == pytest.approx(expected, abs=0.02)


def test_tracks_that_keep_their_heading_stay_in_the_landscape() -> None:
    """With concentrated turns an animal walks into the edge, where 1e-3 of its kernel's mass is left, and less."""
    rng = np.random.default_rng(2)
    n, points, heading = 120, [np.array([500.0, 500.0])], 0.0
    while len(points) < n:
        phi = heading + rng.vonmises(0.0, 4.0)
        new = points[-1] + rng.gamma(2.0, 100.0) * np.array([np.cos(phi), np.sin(phi)])
        if BOX.contains(new[None])[0]:
            points.append(new)
            heading = phi
        else:
            heading += np.pi / 4  # the walker turns; the model does not know
    x, y = np.array(points).T
    track = un.track({"t": np.arange(n) * 60.0, "x": x, "y": y}, time="t", x="x", y="y", unit="metres")
    fit = un.fit_steps(track, "x", kernel=KERNEL, domain=BOX, rng=1)
    table = fit.simulate(100, chains=10, rng=3)
    assert BOX.contains(np.column_stack([table["x"], table["y"]])).all()
