"""Anchored constants of chains whose steps are far smaller than Ω: centred rules, and what is said of their level."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import unnorm as un
from unnorm.inference.delta_test import DeltaTest
from unnorm.objectives.anchor import LEVEL, model_anchor
from unnorm.results.normaliser_check import Anchoring

LINE, BOX = un.Interval(0, 1), un.Box((0, 1), (0, 1))
SQUARE = un.ExponentialFamily(lambda y, x: (-0.5 * (y - x) ** 2,), ("q",), LINE)
ENERGY = un.Energy(lambda t, y, x: -0.5 * t["q"] * (y - x) ** 2, {"q": 1.0}, LINE)
TERM = un.Additive("q", LINE, covariates=[un.Expression("q", "-0.5 * (y - y_prev) ** 2")])
PLANE = un.ExponentialFamily(lambda y, x: (-0.5 * ((y - x) ** 2).sum(),), ("q",), BOX)


def walk(step: float, n: int, dim: int = 1) -> np.ndarray:
    z = 0.5 + np.cumsum(step * np.random.default_rng(17).standard_normal((n, dim)), axis=0)
    return z[:, 0] if dim == 1 else z


def log_z(x: np.ndarray, q: float) -> np.ndarray:
    """log ∫ exp{−½ q |y − x|²} dy over [0, 1]^d, in closed form."""
    root = np.sqrt(q)
    mass = np.exp(log_ndtr((1 - x) * root)) - np.exp(log_ndtr(-x * root))
    return np.sum(0.5 * np.log(2 * np.pi / q) + np.log(mass), axis=1)


def settled(model: Any, obs: Any, theta: np.ndarray) -> Any:
    anchor = model_anchor(model, obs)
    while (excess := anchor.excess(theta, 300.0)) > 1 and (finer := anchor.finer(theta, excess)) is not None:
        anchor = finer
    return anchor


@pytest.mark.parametrize(
    ("model", "step"), [(SQUARE, 1e-3), (ENERGY, 1e-3), (PLANE, 5e-3)], ids=["family", "energy", "plane"]
)
def test_integrals_centred_at_the_previous_point(model: Any, step: float) -> None:
    """Against the closed form: log Z, E ∂f = ∂ log Z, the errors reported, and the nodes handed out."""
    obs = un.transitions(walk(step, 200, model.domain.dim))
    q = np.array([step**-2])
    anchor, x = settled(model, obs, q), obs.previous()
    assert anchor.centred is None  # it has turned to them
    assert anchor.nodes < 200 * 4000
    found = anchor.at(q)
    np.testing.assert_allclose(found.log_z, log_z(x, q[0]), atol=LEVEL)
    h = 1e-4 * q[0]
    slope = (log_z(x, q[0] + h) - log_z(x, q[0] - h)) / (2 * h)
    np.testing.assert_allclose(found.mean[:, 0], slope, rtol=0.03)
    y, w, of = anchor.rule(np.array([3, 50]))
    some = x[[3, 50]]
    mass = np.bincount(of, w * np.exp(-0.5 * q[0] * np.sum((y - some[of]) ** 2, axis=1)))
    np.testing.assert_allclose(np.log(mass), found.log_z[[3, 50]], atol=1e-9)
    wrong = found.log_z - log_z(x, q[0])
    assert abs(anchor.errors(q)).max() == pytest.approx(abs(wrong).max(), rel=0.5, abs=1e-6)


def test_a_smooth_f_keeps_the_shared_rule() -> None:
    obs = un.transitions(un.datasets.toy_chain(100, 0.0, 20.0, rng=3))
    model = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
    assert settled(model, obs, np.array([0.0, 20.0])).centred is not None
    iid = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
    assert model_anchor(iid, obs).centred is None  # f does not read the previous point


@pytest.mark.parametrize("model", [SQUARE, TERM], ids=["family", "terms"])
def test_steps_far_smaller_than_the_domain(model: Any) -> None:
    """Steps of 10⁻⁴ on [0, 1]: q̂ near n / Σ step², no talk of separation, and δ̂ near zero."""
    z = walk(1e-4, 300)
    fit = un.fit(model, un.transitions(z), un.Logistic(per_point=20), rng=3)
    best = 299 / np.sum(np.diff(z) ** 2)
    assert fit.converged
    assert abs(fit.estimate[0] - best) < 0.3 * best * np.sqrt(2 / 299)
    assert fit.anchoring is not None
    assert abs(fit.anchoring.delta) < LEVEL
    assert "Good" in str(fit.constants)


def test_a_parametric_walk_in_the_plane_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    w = walk(2e-3, 200, 2)
    begin = time.process_time()
    monkeypatch.setattr("unnorm.objectives.anchor.ModelAnchor.many_nodes", 200_000)
    with pytest.warns(un.errors.UnnormWarning, match="integrated at every distinct context"):
        fit = un.fit(PLANE, un.transitions(w), un.Logistic(per_point=20), rng=3)
    assert time.process_time() - begin < 15
    best = 2 * 199 / np.sum(np.diff(w, axis=0) ** 2)
    assert abs(fit.estimate[0] - best) < 0.3 * best * np.sqrt(2 / 398)
    assert fit.diagnostics["nodes"] < 10_000


@pytest.mark.parametrize(
    ("delta", "p", "said", "good"),
    [
        (0.003, 0.5, "does not vary with the context", True),
        (0.009, 0.5, "does not vary with the context", True),  # sure, and too small to matter
        (-0.54, 0.5, "common factor of 1.72", False),
        (0.003, 0.04, "may vary with 'z'", False),
        (0.003, 1e-5, "varies with 'z'", False),
    ],
)
def test_what_is_said_of_delta(delta: float, p: float, said: str, good: bool) -> None:
    text = Anchoring(delta, 0.001, 0.01, {"z": DeltaTest(9.0, 3, p)}).sentence()
    assert said in text
    assert ("Good" in text) == good


def test_a_large_delta_within_its_error_is_no_matter() -> None:
    assert "Good" in Anchoring(0.03, 0.01, 0.01, {"z": DeltaTest(9.0, 3, 0.5)}).sentence()
