"""Fits from several threads of a program at once, as Dask's workers make them: the numbers of fits in turn."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import unnorm as un
from unnorm._base import blas

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
MODEL = un.Additive("s(step, k=5) + s(angle, bs='cc', k=5)", un.Box((0, 1), (0, 1)))


def _gam(seed: int) -> np.ndarray:
    rng = np.random.default_rng([15, seed])
    x, who = rng.uniform(0, 1, 300), np.repeat(np.arange(6), 50)
    y = np.sin(6 * x) + rng.normal(0, 0.5, 6)[who] + rng.normal(0, 0.3, 300)
    found = un.gam("y ~ s(x, k=8) + s(who, bs='re')", {"y": y, "x": x, "who": who.astype(str)})
    return np.concatenate([found.smoothed.beta, found.predict().se])


def _fit(seed: int) -> np.ndarray:
    path = np.cumsum(0.15 * np.random.default_rng([16, seed]).standard_normal((150, 2)), axis=0) % 1.0
    obs = un.transitions({"x": path[:, 0], "y": path[:, 1]}, y=["x", "y"])
    found = un.fit(MODEL, obs, un.Logistic(un.Uniform(), per_point=4), rng=seed)
    assert found.smooths is not None
    return found.smooths.beta


def test_threads_do_not_disturb_each_other() -> None:
    tasks = [(work, seed) for seed in range(3) for work in (_gam, _fit)]
    alone = [work(seed) for work, seed in tasks]
    filters, threads = list(warnings.filters), [one.num_threads for one in blas._libraries()]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda task: task[0](task[1]), tasks))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-8)  # BLAS may have had other threads
    assert list(warnings.filters) == filters
    assert [one.num_threads for one in blas._libraries()] == threads


def test_many_fits_take_turns_quickly() -> None:
    import sys

    from unnorm._base.threads import TURN
    from unnorm.engine.core import fit_many
    from unnorm.terms.parser import parse

    rng, spec, seen = np.random.default_rng(3), parse("y ~ s(x, k=5)"), []
    before = sys.getswitchinterval()

    def build(columns):
        seen.append(sys.getswitchinterval())
        return spec.build(columns)

    tables = [{"x": rng.random(200), "y": rng.random(200)} for _ in range(3)]
    problems = [{"terms": build, "columns": one, "y": one["y"], "family": "gaussian"} for one in tables]
    fit_many(problems, threads=2)
    np.testing.assert_allclose(seen, min(before, TURN), rtol=1e-3)
    assert sys.getswitchinterval() == before
