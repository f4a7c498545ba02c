"""Random slopes of several animals: both objectives, on the same steps, know the population's slope equally well."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from steps.walks import walk, wood, wood_map
from unnorm.solvers import engine_rows


def herd(animals: int = 8, n: int = 43, spread: float = 1.2) -> un.Track:
    """Animals with slopes of their own about 1.5."""
    rng = np.random.default_rng([99, 5])
    slopes = 1.5 + spread * rng.normal(size=animals)
    paths = [walk(n, rng, lambda y, _, t, b=b: b * wood(*y.T), 2.0, 150.0, 0.6) for b in slopes]
    points = np.concatenate(paths)
    table = {"t": np.tile(np.arange(n) * 3600.0, animals), "x": points[:, 0], "y": points[:, 1]}
    table["id"] = np.repeat([f"a{i}" for i in range(animals)], n)
    return un.track(table, time="t", x="x", y="y", animal="id")


def test_both_objectives_have_the_same_errors_of_the_population(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Logistic, the criterion's curvature was once that of rows without their constants (−87 for 0.9), and the
    standard error of the population's slope half as large again."""
    seen = []
    monkeypatch.setattr(engine_rows, "_chosen", lambda gam, chosen=engine_rows._chosen: seen.append(gam) or chosen(gam))
    terms, track = "forest + s(animal, forest, bs='re')", herd()
    fits = [un.fit_steps(track, terms, maps=wood_map(), objective=one, rng=1).fit for one in ("ranking", "logistic")]
    estimates, errors = np.array([fit.estimate[0] for fit in fits]), np.array([fit.se[0] for fit in fits])
    assert abs(np.diff(estimates)[0]) < 0.5 * errors[0]
    assert errors[1] == pytest.approx(errors[0], rel=0.12)
    gam = seen[-1]
    assert gam.smoothed.design.levels
    np.testing.assert_allclose(gam.criterion_hessian, gam.smoothed.hessian, rtol=0.15)  # the working weights held
