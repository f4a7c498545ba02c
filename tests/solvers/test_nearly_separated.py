"""Steps that are short in a wide window, against uniform points: information vanishes at light penalties."""

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
