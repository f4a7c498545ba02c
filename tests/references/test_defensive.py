"""The default reference: uniform, and with a step kernel mixed in where the steps of a chain are short."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.references.defensive import SHORT, relative_length

SQUARE = un.Box((0, 1), (0, 1))


def walk(scale: float, n: int = 400, d: int = 2, seed: int = 1) -> un.Observations:
    """A random walk that bounces off the walls of the unit cube."""
    path = np.cumsum(scale * np.random.default_rng(seed).standard_normal((n, d)), axis=0)
    path = 1.0 - np.abs(1.0 - path % 2.0)
    return un.transitions(path if d > 1 else path[:, 0])


def lengths(obs: un.Observations) -> np.ndarray:
    return np.linalg.norm(obs.outcome - obs.previous(), axis=1)


def test_relative_length_is_that_of_uniform_points() -> None:
    obs = walk(0.1)
    u = np.random.default_rng(2).random((obs.n, 400, 2))
    far = np.sqrt(np.mean(np.sum((u - obs.previous()[:, None]) ** 2, axis=2)))
    expected = np.sqrt(np.mean(lengths(obs) ** 2)) / far
    assert relative_length(SQUARE, obs, lengths(obs)) == pytest.approx(expected, rel=5e-3)


def test_relative_length_on_the_circle() -> None:
    """Steps that are uniform on the circle have a relative length of one."""
    step = np.random.default_rng(3).uniform(-np.pi, np.pi, 20_000)
    obs = un.transitions(np.cumsum(step) % (2 * np.pi))
    length = np.abs(un.Circle().wrap(obs.outcome - obs.previous())[:, 0])
    assert relative_length(un.Circle(), obs, length) == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(("scale", "short"), [(0.02, True), (0.08, True), (0.3, False), (0.6, False)])
def test_short_steps_mix_a_kernel_in(scale: float, short: bool) -> None:
    obs = walk(scale)
    assert (relative_length(SQUARE, obs, lengths(obs)) < SHORT) == short
    found = un.Defensive().bind(SQUARE, obs)
    if not short:
        assert found.reference == un.Uniform().bind(SQUARE, obs).reference
        return
    same = un.Mixture((0.5, un.StepKernel()), (0.5, un.Uniform())).bind(SQUARE, obs)
    assert found.to_dict() == same.to_dict()


def test_kernels_by_domain() -> None:
    line = un.Defensive().bind(un.Interval(0, 1), walk(0.02, d=1)).reference
    assert [type(part).__name__ for part in line.components] == ["Gaussian", "Uniform"]
    space = un.Defensive().bind(un.Box((0, 1), (0, 1), (0, 1)), walk(0.02, d=3)).reference
    assert [type(part).__name__ for part in space.components] == ["Gaussian", "Uniform"]
    path = np.repeat(walk(0.02).outcome, 2, axis=0)  # every other step has length zero, which has no direction
    still = un.Defensive().bind(SQUARE, un.transitions(path)).reference
    assert [type(part).__name__ for part in still.components] == ["Gaussian", "Uniform"]
    iid = un.Defensive().bind(SQUARE, un.iid(path))
    assert type(iid.reference).__name__ == "Uniform"


def test_it_is_the_default_and_the_record_says_what_it_chose() -> None:
    model = un.Additive("s(step, k=5)", SQUARE)
    fit = un.fit(model, walk(0.05), un.Logistic(per_point=5), rng=2)
    assert fit.settings["objective"]["reference"] == {"reference": "Defensive"}
    assert fit.diagnostics["law"]["reference"] == "Mixture"
    assert "reference: mixture of 0.5 × [step kernel" in fit.summary()
    assert un.Logistic(per_point=5) == un.Logistic(un.Defensive(), per_point=5)
    assert un.Logistic.from_dict(fit.settings["objective"]) == un.Logistic(per_point=5)
