"""Steps that are short in a wide window, against uniform points: information vanishes at light penalties."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import EstimationError
from unnorm.solvers import penalised

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")


def _steps(seed: int, n: int, size: float) -> un.Observations:
    """Three walks that are reflected at the sides of the unit square."""
    rng = np.random.default_rng(seed)
    walks = np.cumsum(size * rng.normal(size=(3, n // 3, 2)), axis=1) + rng.random((3, 1, 2))
    places = np.abs((walks + 1.0) % 2.0 - 1.0).reshape(-1, 2)
    who = np.repeat(np.arange(3), n // 3)
    return un.transitions({"x": places[:, 0], "y": places[:, 1], "who": who}, y=("x", "y"), group="who")


def _fitted(terms: str, obs: un.Observations, k: int, **options: Any) -> un.Fit:
    model = un.Additive(terms, un.Box((0, 1), (0, 1)))
    return un.fit(model, obs, un.Ranking(un.Uniform(), per_point=k), rng=1, **options)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("terms", "n", "size", "k"),
    [("te(step, angle, bs=('tp', 'cc'), k=5)", 60, 0.04, 20), ("s(step, bs='ad', k=15)", 60, 0.01, 20)],
)
def test_an_end_or_a_sentence(terms, n, size, k, seed):
    """A fit, converged or not, or a reason why there is none: matrices that cannot be inverted are no reason."""
    try:
        fit = _fitted(terms, _steps(seed, n, size), k)
    except EstimationError:
        return
    assert fit.solution is not None
    assert fit.converged == fit.solution.reason.startswith("the last step in the smoothing parameters")


def test_where_nothing_can_be_inverted_it_is_said(monkeypatch):
    monkeypatch.setattr(penalised, "_inverse", lambda matrix: None)
    obs = _steps(0, 60, 0.2)
    with pytest.raises(EstimationError, match="Lower k, or give smoothing="):
        _fitted("s(step, k=5)", obs, 5)
    with pytest.raises(EstimationError, match="Lower k, or give smoothing="):
        _fitted("s(step, k=5)", obs, 5, smoothing=un.Smoothing(sp={"s(step)": 1.0}))


def test_where_a_first_penalty_is_too_light_those_that_were_given_stay(monkeypatch):
    inverse, asked = penalised._inverse, []

    def at_first_none(matrix: np.ndarray) -> np.ndarray | None:
        asked.append(matrix)
        return None if len(asked) <= 2 else inverse(matrix)

    obs, terms = _steps(0, 60, 0.2), "s(step, k=5) + s(angle, bs='cc', k=5)"
    given = un.Smoothing(sp={"s(angle)": 2.0})
    plain = _fitted(terms, obs, 5, smoothing=given)
    monkeypatch.setattr(penalised, "_inverse", at_first_none)
    fit = _fitted(terms, obs, 5, smoothing=given)
    assert len(asked) > 2
    assert fit.smooths is not None
    assert plain.smooths is not None
    assert fit.smooths.sp["s(angle)"] == 2.0
    assert fit.smooths.score == pytest.approx(plain.smooths.score, abs=1e-3)


def test_an_end_whose_estimate_was_not_reached_keeps_its_reason():
    nothing: Any = None
    end = penalised._End(*[nothing] * 6, converged=False, reason="stopped", updates=3, score=1.0, joint=nothing)
    step: Any = SimpleNamespace(gain=1e-6)
    assert penalised._ended(end, step, []) is end
    reached = penalised._ended(replace(end, converged=True), step, [])
    assert reached.reason == "the last step in the smoothing parameters would gain 1e-06"
    falling = penalised._ended(end, step, ["s(x)"])
    assert not falling.converged
    assert "s(x) goes to zero" in falling.reason
