"""Few levels: the population's band holds its curve whatever the curve's size against the levels' differences.

The laws are on the circle, exp(f + d_s) with f and d_s random sums of three harmonics, the differences of one size, f
of none, some or twice that size. REML's variance of f is often zero here: bands from it alone cover 40 to 64 % where
f is somewhat smaller than the differences between 2 to 5 levels, and 0 ± 0 is half of all curves.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

import unnorm as un

pytestmark = pytest.mark.slow
REPEATS = int(os.environ.get("UNNORM_REPS", "150"))
MODEL = un.Additive("s(y, bs='cc', k=8)", un.Circle())
GRID = np.linspace(-np.pi, np.pi, 721)[:-1]
HARMONICS = np.array([c(j * GRID) / j for j in (1, 2, 3) for c in (np.cos, np.sin)])


def levels(rng: np.random.Generator, count: int, size: float) -> tuple[un.Observations, np.ndarray]:
    """Data of the levels, and f on the grid."""
    f = size * rng.normal(size=6) @ HARMONICS
    y, who = [], []
    for s in range(count):
        mass, n = np.exp(f + 0.5 * rng.normal(size=6) @ HARMONICS), int(rng.integers(200, 600))
        jitter = rng.uniform(-0.004, 0.004, n)
        y.append((rng.choice(GRID, n, p=mass / mass.sum()) + jitter + np.pi) % (2 * np.pi) - np.pi)
        who.append(np.full(n, s))
    return un.iid({"y": np.concatenate(y), "who": np.concatenate(who)}, y="y", group="who"), f


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_bands_of_few_levels(count: int, size: float) -> None:
    cover, p = [], []
    for i in range(REPEATS):
        obs, f = levels(np.random.default_rng([count, int(10 * size), i]), count, size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = un.fit_each(MODEL, obs, "who", un.Logistic(un.Uniform(), total=2000), rng=i)
        assert each.group is not None
        effect = each.group.effect("s(y)", {"y": GRID[::10]})
        rows = np.concatenate([fit.smooths.gam.columns["y"] for fit in each.fits.values()])
        truth = f[::10] - np.interp(rows, GRID, f, period=2 * np.pi).mean()
        cover.append(np.mean((effect["lower"] <= truth) & (truth <= effect["upper"])))
        p.append(each.group.smooths.table["p"][0])
    rejected = float(np.mean(np.array(p) < 0.05))
    print(f"{count} levels, f {size:g}: cover {np.mean(cover):.3f}, p < .05 in {100 * rejected:.0f} %")
    assert np.mean(cover) >= 0.92  # wide where the floor is above the truth
    if size == 0.0:
        assert rejected <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPEATS)
    if size == 1.0:
        assert np.mean(cover) <= 0.995
        assert count < 5 or rejected > 0.9
