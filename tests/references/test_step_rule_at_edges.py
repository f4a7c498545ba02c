"""The rule of a step kernel, near the edge of Ω (where most directions leave it) and far from it, against sums."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.references import Gamma, VonMisesAngle

BOX = un.Box((0.0, 1_000.0), (0.0, 1_000.0))


def moments(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.array([w @ y[:, 0], w @ np.exp(-y[:, 1] / 300.0), w @ np.cos(y[:, 0] / 150.0 + y[:, 1] / 200.0)])


@pytest.mark.parametrize("kappa", [0.5, 4.0, 12.0])
@pytest.mark.parametrize("place", [(999.0, 500.0), (975.0, 500.0), (990.0, 985.0), (700.0, 400.0)])
def test_moments_near_the_edge(kappa: float, place: tuple[float, float]) -> None:
    kernel = un.StepKernel(Gamma(2.0, 100.0), VonMisesAngle(0.0, kappa))
    (x, y), one = place, np.ones(1)
    context = {"x_prev": x * one, "y_prev": y * one, "x_prev2": (x - 100.0) * one, "y_prev2": (y - 30.0) * one}
    obs = un.Observations("transitions", np.full((1, 2), 500.0), ("x", "y"), context, 2)
    law = kernel.bind(BOX, obs)
    nodes, w, _ = law.rule(obs, 24)
    phi = 2 * np.pi * (np.arange(4_000) + 0.5) / 4_000
    ray = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    with np.errstate(divide="ignore"):
        reach = np.where(ray > 0, (1_000.0 - np.array(place)) / ray, -np.array(place) / ray).min(axis=1)
    u = (np.arange(400) + 0.5) / 400
    within = kernel.step.cdf(reach)
    r = kernel.step.quantile((within[:, None] * u).ravel()).reshape(-1, 400)
    to = (np.array(place) + r[..., None] * ray[:, None]).reshape(-1, 2)
    fine = np.repeat(within * np.exp(kernel.turn.log_density(phi - np.arctan2(30.0, 100.0))), 400)
    np.testing.assert_allclose(moments(nodes, w), moments(to, fine / fine.sum()), rtol=0.01, atol=0.01)


@pytest.mark.parametrize(
    ("turn", "order"), [(VonMisesAngle(0.0, 10.0), 16), (VonMisesAngle(np.pi, 3.0), 16), ("uniform", 16)]
)
def test_moments_far_from_the_edge(turn: object, order: int) -> None:
    """E r = shape × scale, E r² and E cos φ in closed form: quantiles of the law itself missed its tails."""
    from scipy.special import ive

    wide = un.Box((-1e5, 1e5), (-1e5, 1e5))
    kernel = un.StepKernel(Gamma(3.0, 40.0), turn)
    one = np.zeros(1)
    context = {"x_prev": one, "y_prev": one, "x_prev2": one - 100.0, "y_prev2": one}
    obs = un.Observations("transitions", np.full((1, 2), 5.0), ("x", "y"), context, 2)
    y, w, _ = kernel.bind(wide, obs).rule(obs, order)
    r = np.hypot(*y.T)
    kappa, mean = (0.0, 0.0) if isinstance(turn, str) else (turn.kappa, turn.mean)
    A = ive(1, kappa) / ive(0, kappa)
    np.testing.assert_allclose([w @ r, w @ r**2], [120.0, 3.0 * 4.0 * 1600.0], rtol=3e-4)
    np.testing.assert_allclose(w @ y[:, 0], 120.0 * A * np.cos(mean), rtol=3e-4, atol=0.01)
    np.testing.assert_allclose(w @ y[:, 0] ** 2, 19_200.0 * (0.5 + 0.5 * ive(2, kappa) / ive(0, kappa)), rtol=5e-4)
