"""The rule of a step kernel near the edge of Ω, where most directions leave it, against a sum over a fine polar grid."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.references import Gamma, VonMisesAngle

BOX = un.Box((0.0, 1_000.0), (0.0, 1_000.0))


def moments(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.array([w @ y[:, 0], w @ np.exp(-y[:, 1] / 300.0), w @ np.cos(y[:, 0] / 150.0 + y[:, 1] / 200.0)])


@pytest.mark.parametrize("kappa", [0.5, 4.0])
@pytest.mark.parametrize("place", [(999.0, 500.0), (975.0, 500.0), (990.0, 985.0), (700.0, 400.0)])
def test_moments_near_the_edge(kappa: float, place: tuple[float, float]) -> None:
    kernel = un.StepKernel(Gamma(2.0, 100.0), VonMisesAngle(0.0, kappa))
    (x, y), one = place, np.ones(1)
    context = {"x_prev": x * one, "y_prev": y * one, "x_prev2": (x - 100.0) * one, "y_prev2": (y - 30.0) * one}
    obs = un.Observations("transitions", np.full((1, 2), 500.0), ("x", "y"), context, 2)
    law = kernel.bind(BOX, obs)
    nodes, w, _ = law.rule(obs, 24)
    phi = np.linspace(-np.pi, np.pi, 3_001)[:-1]
    u = (np.arange(400) + 0.5) / 400
    r = kernel.step.quantile(u)
    to = (np.array(place) + r[:, None] * np.stack([np.cos(phi), np.sin(phi)], axis=1)[:, None]).reshape(-1, 2)
    p = np.exp(kernel.turn.log_density(phi - np.arctan2(30.0, 100.0)))
    fine = np.repeat(p, 400) * BOX.contains(to)
    np.testing.assert_allclose(moments(nodes, w), moments(to, fine / fine.sum()), rtol=0.01, atol=0.01)
