"""Step selection on simulated tracks: 95 % intervals of f and of the updated kernel cover, by Ranking and by Logistic.

The tracks are drawn in tests/steps/walks.py, without the library. UNNORM_REPS repetitions (default 40; 1,000 for a
reading): coverage must lie within 93–97 %, widened by its own Monte Carlo error at few repetitions.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import unnorm as un
from steps.walks import walk, wood, wood_map
from unnorm.references import Gamma, VonMisesAngle

REPS = int(os.environ.get("UNNORM_REPS", "40"))
TRUTH = {"forest": 1.5, "forest:night": -1.0, "shape": 2.0, "scale": 150.0, "kappa": 0.6}


def one(rep: int, objective: str) -> dict[str, tuple[float, float]]:
    """Estimates and standard errors of one track of 300 steps."""
    rng = np.random.default_rng([16, rep])
    n = 303
    night = (np.arange(n) % 4 >= 2).astype(float)
    points = walk(
        n, rng, lambda y, _, t: (TRUTH["forest"] + TRUTH["forest:night"] * night[t]) * wood(*y.T),
        TRUTH["shape"], TRUTH["scale"], TRUTH["kappa"],
    )  # fmt: skip
    table = {"t": np.arange(n) * 3600.0, "x": points[:, 0], "y": points[:, 1], "night": night}
    track = un.track(table, time="t", x="x", y="y", columns=("night",))
    fit = un.fit_steps(
        track, "forest + forest:night", maps=wood_map(), kernel=un.StepKernel("gamma", "vonmises"), integrated=True,
        objective=objective, per_point=20, rng=rep,
    )  # fmt: skip
    out = {name: (b, se) for name, b, se in zip(fit.fit.names, fit.fit.estimate, fit.fit.se)}
    found = fit.movement()
    kappa = next(np.cos(m) for name, m in zip(found["parameter"], found["estimate"]) if name == "mean")
    for name, value, se in zip(found["parameter"], found["estimate"], found["se"]):
        out[str(name)] = (float(value) * (kappa if name == "kappa" else 1.0), float(se))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["ranking", "logistic"])
def test_intervals_cover(objective: str) -> None:
    found = [one(rep, objective) for rep in range(REPS)]
    room = 0.02 + 3.0 * np.sqrt(0.05 * 0.95 / REPS) * (REPS < 500)
    report = {}
    for name, truth in TRUTH.items():
        z = np.array([(draw[name][0] - truth) / draw[name][1] for draw in found])
        report[name] = (float(np.mean(np.abs(z) < 1.96)), float(z.mean()), float(z.std()))
    print(objective, report)
    for name, (cover, bias, _) in report.items():
        assert abs(cover - 0.95) <= room, (name, report)
        assert abs(bias) < 0.15 + 4.0 / np.sqrt(REPS), (name, report)


@pytest.mark.slow
def test_the_test_of_no_effect_has_its_size() -> None:
    """A map that the walk does not read: |z| > 1.96 in 5 % of tracks."""
    z = []
    for rep in range(REPS):
        points = walk(203, np.random.default_rng([17, rep]), lambda y, _, t: np.zeros(len(y)), 2.0, 150.0, 0.6)
        table = {"t": np.arange(203) * 3600.0, "x": points[:, 0], "y": points[:, 1]}
        track = un.track(table, time="t", x="x", y="y")
        kernel = un.StepKernel(Gamma(2.0, 150.0), VonMisesAngle(0.0, 0.6))
        fit = un.fit_steps(track, "forest", maps=wood_map(), kernel=kernel, per_point=20, rng=rep).fit
        z.append(fit.estimate[0] / fit.se[0])
    share = float(np.mean(np.abs(z) > 1.96))
    print("size", share)
    assert abs(share - 0.05) <= 0.02 + 3.0 * np.sqrt(0.05 * 0.95 / REPS) * (REPS < 500)
