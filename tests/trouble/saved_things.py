"""One small result of each kind that can be saved, twice with different numbers, and how each is read back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import unnorm as un
from unnorm.errors import UnnormWarning

OMEGA = un.Interval(-1, 1)
WALK = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), OMEGA)
CURVE = un.Additive("y + s(gap, k=5)", OMEGA, covariates=[un.Expression("gap", "abs(y - y_prev)")])
LOGISTIC = un.Logistic(un.Uniform(), per_point=5, points=un.IID())
CHI = un.Smooth("s(y_prev, k=5)")


@dataclass(frozen=True)
class Kind:
    """A saved result, another of the same kind, how to read one, and what tells two apart."""

    one: Path
    other: Path
    read: Callable[[Path], Any]
    same: Callable[[Any], Any]


def _chain(seed: int) -> un.Observations:
    obs = un.transitions(un.datasets.toy_chain(90, 0.5, 5.0, rng=seed))
    return un.Observations(**{**vars(obs), "group": {"who": np.arange(obs.n) // 45}})


def _gam(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x, g = rng.uniform(size=80), rng.integers(0, 3, 80)
    return un.gam("y ~ s(x, k=5) + s(g, bs='re')", {"y": np.sin(5 * x) + rng.normal(size=80) / 4, "x": x, "g": g})


def _pattern(seed: int) -> Any:
    xy = np.random.default_rng(seed).uniform(size=(60, 2))
    points = un.pattern({"x": xy[:, 0], "y": xy[:, 1]}, ("x", "y"), window=un.Box((0, 1), (0, 1)))
    return un.fit_pattern(points, "s(x, k=4)", dummies=400, rng=seed)


def _results(seed: int) -> dict[str, Any]:
    chain = _chain(seed)
    return {
        "fit": un.fit(WALK, chain, LOGISTIC, CHI, rng=seed),
        "smooth": un.fit(CURVE, chain, LOGISTIC, CHI, rng=seed),
        "group": un.fit_each(CURVE, chain, "who", LOGISTIC, CHI, rng=seed),
        "gam": _gam(seed),
        "pattern": _pattern(seed),
    }


def make(folder: Path) -> dict[str, Kind]:
    """Fit and save everything once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        for seed in (1, 2):
            for name, result in _results(seed).items():
                result.save(folder / f"{name}-{seed}")
    kinds = {
        name: Kind(folder / f"{name}-1", folder / f"{name}-2", un.load, lambda found: found.summary())
        for name in ("fit", "smooth", "group", "gam", "pattern")
    }
    return {**kinds, "checkpoint": _checkpoint(folder)}


def _checkpoint(folder: Path) -> Kind:
    """An SGD run's, read as the run itself reads it."""
    import optax
    import pytest

    from unnorm.solvers.stochastic import loop
    from unnorm.solvers.stochastic.checkpoint import resume

    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), OMEGA)
    seen: dict[str, tuple[Any, ...]] = {}
    for seed in (1, 2):
        path = folder / f"checkpoint-{seed}"
        y = np.random.default_rng(seed).uniform(-1, 1, 200)
        solver = un.SGD(optax.adam(0.02), steps=40, batch=50, block=20, checkpoint=path)

        def spied(*given: Any, seed: int = seed) -> Any:
            seen[f"checkpoint-{seed}"] = given
            return resume(*given)

        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(loop, "resume", spied)
            un.fit(model, un.iid(y), un.Poisson(), solver=solver, rng=3)
    e, s, seed, fresh = seen["checkpoint-1"]

    def read(path: Path) -> Any:
        from dataclasses import replace

        return resume(e, replace(s, checkpoint=path), seed, fresh)[0]

    return Kind(
        folder / "checkpoint-1",
        folder / "checkpoint-2",
        read,
        lambda state: (state.step, state.phi.tobytes(), state.counted, repr(state.history), state.stopped),
    )
