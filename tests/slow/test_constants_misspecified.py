"""A model that is wrong, judged against the pseudo-true value of its own objective, by quadrature.

Data: f = −y + 1.2 z y + .9 w sin 3y on [0, 2]. Model: f = t1 y + t2 z y. With k uniform points for each observation the
anchored contrast maximises, over (t, δ) and in expectation,

    E_x { ∫ p(y|x) log σ(h) dy + k ∫ q(y) log(1 − σ(h)) dy },   h = f_t − log Z_t(x) + δ − log q − log k.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from calibration import COVER, ENOUGH, REPS, SEED
from laws import LAWS, REGRESSION
from scipy.optimize import minimize

import unnorm as un

pytestmark = pytest.mark.slow

N, MOST = 2000, 1000  # observations, enough for ML's own bias of order 1/n to be small; repetitions
K = 4  # few, so that the value is not maximum likelihood's
SHIFT = 0.1
MODEL = un.ExponentialFamily(lambda y, x: (y, x["z"] * y), ("t1", "t2"), un.Interval(0, 2))


def expected(k: float) -> np.ndarray:
    """The pseudo-true (t1, t2); k = ∞ for that of maximum likelihood."""
    (z, wz), (w, ww), (y, wy) = (
        np.polynomial.hermite_e.hermegauss(40),
        np.polynomial.legendre.leggauss(24),
        np.polynomial.legendre.leggauss(60),
    )
    w, y = w + 1, y + 1  # both on [0, 2]
    weight = (wz / wz.sum())[:, None] * (ww / ww.sum())
    a, b, c = REGRESSION
    f = (a + b * z)[:, None, None] * y + c * w[:, None] * np.sin(3 * y)
    p = np.exp(f)
    p /= (p @ wy)[..., None]
    mass = (weight[..., None] * p * wy).sum(axis=1)  # (z, y), w integrated out: the model does not see it
    weight = wz / wz.sum()

    def loss(t: np.ndarray) -> float:
        g = (t[0] + t[1] * z)[:, None] * y
        g = g - np.log(np.exp(g) @ wy)[:, None]
        if not np.isfinite(k):
            return -float(np.sum(mass * g))
        h = g + t[2] + np.log(2.0) - np.log(k)
        return float(np.sum(mass * np.logaddexp(0, -h)) + k * np.sum(weight[:, None] * wy / 2 * np.logaddexp(0, h)))

    found = minimize(loss, np.array([*REGRESSION[:2], 0.0]), method="BFGS", options={"gtol": 1e-9})
    return found.x[:2]


def one(i: int, points: un.IID | None) -> dict[str, np.ndarray]:
    obs = LAWS["regression"].simulate(N, np.random.default_rng([SEED, 5, i]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The constants follow", un.errors.UnnormWarning)  # δ varies: f is wrong
        fit = un.fit(MODEL, obs, un.Logistic(per_point=K, points=points), rng=np.random.default_rng([SEED, 6, i]))
    table = fit.tidy(robust=True)
    return {name: np.array(table[name], dtype=float) for name in ("estimate", "se", "lower", "upper")}


@pytest.mark.parametrize("points", [un.IID(), None], ids=["iid", "lattice"])
def test_estimates_centre_on_the_objective_s_own_value(points: un.IID | None) -> None:
    assert any(judged(points, reps) for reps in (min(REPS, MOST), MOST))


def judged(points: un.IID | None, R: int) -> bool:
    truth, ml = expected(K), expected(np.inf)
    rows = [one(i, points) for i in range(R)]
    estimate, se, lower, upper = (
        np.array([row[name] for row in rows]) for name in ("estimate", "se", "lower", "upper")
    )
    shift, error = (estimate - truth).mean(axis=0) / se.mean(axis=0), 3 / np.sqrt(R)
    cover, binomial = np.mean((lower <= truth) & (truth <= upper), axis=0), 3 * np.sqrt(0.95 * 0.05 / R)
    for j, name in enumerate(("t1", "t2")):
        print(f"\n{name}: pseudo-true {truth[j]:.4f} (ML's {ml[j]:.4f}), bias {shift[j]:+.3f} ± {error:.3f} se, "
              f"robust cover {cover[j]:.3f} ({COVER[0]}–{COVER[1]}; 3 binomial errors ±{binomial:.3f})")  # fmt: skip
    band = COVER if R >= ENOUGH else (0.95 - binomial, 0.95 + binomial)
    inside = (band[0] <= cover) & (cover <= band[1])
    return bool(np.all(np.abs(shift) <= SHIFT + error * (R < ENOUGH)) and np.all(inside))
