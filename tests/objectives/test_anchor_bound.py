"""What errors of the integrals can move at most: the errors are those of log Z, in nats, not a multiple of them."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

import unnorm as un
from unnorm.objectives.anchor import CHECKED, model_anchor
from unnorm.objectives.integrals import telling

PRECISION = 500.0


def log_z(x: np.ndarray) -> np.ndarray:
    """log ∫ exp{−½ τ (y − x)²} dy over [−1, 1], in closed form."""
    root = np.sqrt(PRECISION)
    mass = np.exp(log_ndtr((1 - x) * root)) - np.exp(log_ndtr((-1 - x) * root))
    return 0.5 * np.log(2 * np.pi / PRECISION) + np.log(mass)


def test_the_error_is_that_of_log_z_and_the_shift_its_bound():
    x = np.random.default_rng(1).uniform(-0.9, 0.9, 60)
    obs = un.conditional({"y": x, "x": x}, "y", "x")
    model = un.ExponentialFamily(lambda y, c: (-0.5 * (y - c["x"]) ** 2,), ("tau",), un.Interval(-1, 1))
    theta = np.array([PRECISION])
    anchor = model_anchor(model, obs)
    found, sort = anchor.at(theta).log_z, np.argsort(x)  # contexts are in the order of x
    some = telling(found[sort], CHECKED)
    wrong = (found - log_z(x))[sort][some]
    assert np.std(wrong) > 0.01  # 25 nodes are too few here, and the finest rule is not
    np.testing.assert_allclose(anchor.error(theta), np.std(wrong), rtol=1e-6)
    np.testing.assert_allclose(anchor.shift(theta, 49.0), 7.0 * np.std(wrong), rtol=1e-6)
