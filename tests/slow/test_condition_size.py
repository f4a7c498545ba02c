"""Conditions compared over repeated data sets: the test's size and power, and what the bands of a difference cover.

Subjects on the circle with densities exp(f + δ_c + d_s (+ e_sc)), f, d and e random sums of three harmonics, in two
conditions that do not differ, differ a little (a third of the subjects' own spread is hard to see), or much. Conditions
are between subjects (14, seven in each) or within them (10).

UNNORM_REPS=1000 python -m pytest -n 16 -m slow tests/slow/test_condition_size.py
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

import unnorm as un

pytestmark = pytest.mark.slow
REPEATS = int(os.environ.get("UNNORM_REPS", "60"))
MODEL = un.Additive("s(y, bs='cc', k=8)", un.Circle())
GRID = np.linspace(-np.pi, np.pi, 721)[:-1]
HARMONICS = np.array([c(j * GRID) / j for j in (1, 2, 3) for c in (np.cos, np.sin)])
SHAPE = np.array([1.0, -1.0, 0.5, 0.5, 0.0, 0.0])  # of the difference
SUBJECTS = {"between": 14, "within": 10}
POWER = {0.3: 0.08, 0.8: 0.8}  # at least, by the size of the difference


def subjects(rng: np.random.Generator, design: str, size: float) -> tuple[un.Observations, np.ndarray]:
    """Data, and the difference of the second condition from the first on the grid."""
    f, delta = rng.normal(size=6), size * SHAPE
    y, who, where = [], [], []
    for s in range(SUBJECTS[design]):
        d = 0.4 * rng.normal(size=6)
        for c in (0, 1) if design == "within" else (s % 2,):
            e = 0.3 * rng.normal(size=6) * (design == "within")
            mass, n = np.exp((f + c * delta + d + e) @ HARMONICS), int(rng.integers(100, 250))
            drawn = rng.choice(GRID, n, p=mass / mass.sum()) + rng.uniform(-0.004, 0.004, n)
            y.append((drawn + np.pi) % (2 * np.pi) - np.pi)
            who.append(np.full(n, s))
            where.append(np.full(n, "ab"[c]))
    table = {"y": np.concatenate(y), "who": np.concatenate(who), "where": np.concatenate(where)}
    return un.iid(table, y="y", group=("who", "where")), delta @ HARMONICS


@pytest.mark.parametrize("size", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("design", ["between", "within"])
def test_size_power_and_bands(design: str, size: float) -> None:
    cover, whole, p = [], [], []
    for i in range(REPEATS):
        obs, delta = subjects(np.random.default_rng([16, len(design), int(10 * size), i]), design, size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = un.fit_each(MODEL, obs, "who", un.Logistic(un.Uniform(), total=1000), rng=i, between="where")
        assert each.conditions is not None, each.notes
        assert each.conditions.design == design
        rows = np.concatenate([fit.smooths.gam.columns["y"] for fit in each.fits.values()])
        truth = delta[::10] - np.interp(rows, GRID, delta, period=2 * np.pi).mean()
        band = each.difference("s(y)", "b", "a", {"y": GRID[::10]})
        cover.append(np.mean((band["lower"] <= truth) & (truth <= band["upper"])))
        whole.append(np.all((band["lower_simultaneous"] <= truth) & (truth <= band["upper_simultaneous"])))
        p.append(each.conditions.p("s(y)"))
    rejected, covered = float(np.mean(np.array(p) <= 0.05)), float(np.mean(cover))
    print(f"{design}, difference {size:g}: p ≤ .05 in {rejected:.3f}, cover {covered:.3f}, whole {np.mean(whole):.3f}")
    chance = 2.5 * float(np.std(cover)) / np.sqrt(REPEATS)
    assert 0.93 - chance <= covered <= 0.97 + chance
    assert np.mean(whole) >= 0.93 - 2.5 * np.sqrt(0.05 * 0.95 / REPEATS)
    if size == 0.0:
        assert abs(rejected - 0.05) <= max(0.02, 2.6 * np.sqrt(0.05 * 0.95 / REPEATS))
    else:
        assert rejected >= POWER[size] - 2.5 * np.sqrt(POWER[size] * (1 - POWER[size]) / REPEATS)
