"""The additive engine on rows that come in blocks: one block or many, the same fit, errors and group."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.objectives import additive, rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::unnorm.errors.UnnormWarning"
)  # penalised χ, and few functions for a curve

RNG = np.random.default_rng(4)
BOX = un.Box((0, 1), (0, 1))
WALK = np.clip(0.5 + np.cumsum(0.1 * RNG.standard_normal((160, 2)), axis=0) % 0.5, 0.01, 0.99)
OBS = dataclasses.replace(un.transitions(WALK), weight=RNG.integers(1, 3, 159).astype(float))
CURVES = un.Additive("s(step, k=5) + s(angle, bs='cc', k=5)", BOX)
LINES = un.Additive("step + dcenter", BOX)
ENERGY = un.Energy(lambda t, y, x: -t["a"] * ((y[0] - x[0]) ** 2 + (y[1] - x[1]) ** 2) ** 0.5, {"a": 1.0}, BOX)
CHI = un.Smooth("s(x_prev, y_prev, k=8)", smoothing="reml")
CASES: dict[str, tuple[Any, Any, Any]] = {
    "curves": (CURVES, un.Logistic(un.Uniform(), per_point=6), CHI),
    "IID points": (CURVES, un.Logistic(un.Uniform(), per_point=6, points=un.IID()), CHI),
    "importance": (CURVES, un.Importance(un.Uniform(), per_point=9), CHI),
    "anchored": (CURVES, un.Logistic(un.Uniform(), per_point=6), un.Anchored()),
    "lines": (LINES, un.Logistic(un.Uniform(), per_point=6), un.Anchored("s(x_prev, k=4)")),
    "energy": (ENERGY, un.Logistic(un.Uniform(), per_point=6), un.Smooth("s(y1_prev, y2_prev, k=8)")),
    "quadrature": (CURVES, un.Poisson(order=12), CHI),
}


def _fits(name: str, monkeypatch: pytest.MonkeyPatch, change: Any = None) -> list[un.Fit]:
    model, objective, normaliser = CASES[name]
    obs = OBS if model is not ENERGY else dataclasses.replace(OBS)
    found = []
    for block in (rows.BLOCK, 90):

        def init(self: Any, *args: Any, _block: int = block, _init: Any = rows.ArrayRows.__init__, **more: Any) -> None:
            _init(self, *args, **{**more, "block": _block})

        with monkeypatch.context() as patch:
            patch.setattr(rows.ArrayRows, "__init__", init)
            found.append(un.fit(model, obs, objective, normaliser, rng=3))
    return found


@pytest.mark.parametrize("name", CASES)
def test_many_blocks_are_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = _fits(name, monkeypatch)
    assert many.solution.scores is not None
    assert len(list(one.solution.scores.blocks())) == 1
    assert len(list(many.solution.scores.blocks())) > 5
    a, b = one.smooths, many.smooths
    # χ's surface is interpolated on the range of the rows at hand (engine/products.py): a thousandth of an error
    se = np.sqrt(np.diag(a.errors.total))
    assert np.all(np.abs(b.beta - a.beta) <= 1e-4 * np.abs(a.beta).max() + 2e-3 * se)
    for part in ("total", "sampling", "reference"):
        V, W = getattr(a.errors, part), getattr(b.errors, part)
        np.testing.assert_allclose(W, V, rtol=5e-3, atol=5e-3 * np.abs(V).max(), err_msg=part)
    V, W = a.errors.robust.covariance, b.errors.robust.covariance
    np.testing.assert_allclose(W, V, rtol=5e-3, atol=5e-3 * np.abs(V).max())
    np.testing.assert_allclose(many.nu, one.nu, atol=1e-4)
    assert many.value == pytest.approx(one.value, rel=1e-5, abs=2e-3)


def test_columns_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = _fits("curves", monkeypatch)
    for name in ("step", "angle", "x_prev"):
        np.testing.assert_array_equal(many.smooths.gam.columns[name], one.smooths.gam.columns[name])
    assert isinstance(many.smooths.gam.columns, additive.BlockColumns)
    with pytest.raises(KeyError):
        many.smooths.gam.columns["nothing"]


def test_terms_of_many_rows_are_built_on_a_sample_of_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "SAMPLE", 300)
    one, many = _fits("curves", monkeypatch)
    gap = np.asarray(many.smooths.gam.linear_predictor) - np.asarray(one.smooths.gam.linear_predictor)
    assert np.sqrt(np.mean(gap**2)) < 0.05  # other knots, the same fit
    problem = CASES["curves"][1].additive(CURVES, OBS, CHI, 3)
    part = problem.built[1].part
    assert 200 < len(part.columns["step"]) < 320
    assert part.columns["step"].max() == problem.linear[1].columns["step"].max()


def test_a_partition_by_levels_takes_the_rows_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    obs = dataclasses.replace(OBS, group={"who": np.arange(OBS.n) // 40})
    by = un.Additive("s(step, by=who, k=4)", BOX)
    monkeypatch.setitem(CASES, "levels", (by, un.Logistic(un.Uniform(), per_point=6), un.Smooth("s(x_prev, k=5)")))
    monkeypatch.setattr("test_engine_blocks.OBS", obs, raising=False)
    monkeypatch.setitem(globals(), "OBS", obs)
    one, many = _fits("levels", monkeypatch)
    np.testing.assert_allclose(many.smooths.beta, one.smooths.beta, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(many.smooths.errors.total, one.smooths.errors.total, rtol=1e-3, atol=1e-5)
