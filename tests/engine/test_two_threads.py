"""Fits from several threads of a program at once, as Dask's workers make them: the numbers of fits in turn."""

from __future__ import annotations

import os
import subprocess
import sys
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


NESTED = """
import numpy as np
from unnorm.engine.core import fit_many
from unnorm.terms.parser import parse

rng, spec = np.random.default_rng(4), parse("y ~ s(x, k=5)")
tables = [{"x": rng.random(200), "y": rng.random(200)} for _ in range(4)]

def problem(table, build=spec.build):
    return {"terms": build, "columns": table, "y": table["y"], "family": "gaussian"}

alone, inner = [fit.score for fit in fit_many([problem(one) for one in tables], threads=1)], []

def build(columns):
    inner.append([fit.score for fit in fit_many([problem(one) for one in tables], threads=2)])
    return spec.build(columns)

outer = [fit.score for fit in fit_many([problem(one, build) for one in tables], threads=2)]
np.testing.assert_allclose(outer, alone, rtol=1e-10)
np.testing.assert_allclose(inner, [alone] * 4, rtol=1e-10)
print("as expected")
"""


def test_many_fits_inside_many_fits_do_not_wait_for_themselves() -> None:
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "as expected", done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not keep threads on cores")
def test_many_short_fits_leave_threads_free_to_move() -> None:
    from unnorm.engine.core import fit_many
    from unnorm.terms.parser import parse

    rng, spec, before = np.random.default_rng(5), parse("y ~ s(x, k=5)"), os.sched_getaffinity(0)
    table = {"x": rng.random(200), "y": rng.random(200)}

    def build(columns):
        seen.append(os.sched_getaffinity(0))
        return spec.build(columns)

    seen: list[set[int]] = []
    problem = {"terms": build, "columns": table, "y": table["y"], "family": "gaussian"}
    fit_many([problem] * 4, threads=2)
    assert len(before) < 2 or all(len(cores) < len(before) for cores in seen)
    assert os.sched_getaffinity(0) == before
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(os.sched_getaffinity, 0).result() == before
