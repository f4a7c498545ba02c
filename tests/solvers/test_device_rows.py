"""Chains of many points with device=: rows are made there where they can be, and the fit is the engine's own."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.data.covariates.resolve import CovariateSet
from unnorm.engine.device.chain import outcomes
from unnorm.errors import CombinationError, UnnormWarning
from unnorm.objectives import contrastive
from unnorm.references import blocks
from unnorm.solvers import device_rows

BOX = un.Box((0, 20), (0, 15))
TERMS = "s(step, k=6) + s(angle, bs='cc', k=8)"
CHI = un.Smooth("s(x_prev, y_prev, k=8)")


def _obs(n: int = 2600, seed: int = 1) -> un.Observations:
    """Three walks, one of them with a step of length zero."""
    rng, wide = np.random.default_rng(seed), np.array([20.0, 15.0])
    path, who = [wide / 2], np.arange(n + 3) * 3 // (n + 3)
    while len(path) < n + 3:
        y = path[-1] + 3 * rng.normal(size=2)
        if np.all((y > 0) & (y < wide)):
            path.append(y)
    path[9] = path[8]
    xy = np.array(path)
    return un.transitions({"a": xy[:, 0], "b": xy[:, 1], "who": who}, y=("a", "b"), group="who")


OBS = _obs()


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As if rows were too many to be held; which road was taken."""
    monkeypatch.setattr(contrastive, "MANY", 5_000)
    monkeypatch.setattr(blocks, "ROWS", 4_000)
    taken: list[str] = []

    def seen(name: str, real: Any) -> Any:
        def call(*given: Any) -> Any:
            found = real(*given)
            taken.append(name)
            return found

        return call

    monkeypatch.setattr(device_rows.MadeThere, "design", seen("made", device_rows.MadeThere.design))
    monkeypatch.setattr(device_rows, "placed_there", seen("placed", device_rows.placed_there))
    return taken


def _fit(model: Any, obs: un.Observations, **more: Any) -> un.Fit:
    given = {"objective": un.Logistic(per_point=5), "normaliser": CHI, "rng": 3, **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # χ of so few functions does not follow the constants
        return un.fit(model, obs, **given)


def _agree(here: un.Fit, there: un.Fit) -> None:
    assert here.smooths is not None
    assert there.smooths is not None
    assert np.abs(there.smooths.beta - here.smooths.beta).max() < 1e-8
    assert there.smooths.score == pytest.approx(here.smooths.score, rel=1e-10)
    assert there.value == pytest.approx(here.value, rel=1e-10)
    for name in ("total", "sampling", "reference"):
        a, b = getattr(here.smooths.errors, name), getattr(there.smooths.errors, name)
        assert np.abs(a - b).max() < 1e-6 * np.abs(a).max(), name
    assert there.smooths.edf == pytest.approx(here.smooths.edf, rel=1e-7)


@pytest.mark.parametrize("y_down", [False, True])
def test_rows_made_on_a_device_give_the_engines_fit(many: list[str], y_down: bool) -> None:
    model = un.Additive(f"{TERMS} + s(dcenter, k=5)", BOX, y_down=y_down)
    here = _fit(model, OBS)
    assert many == []
    there = _fit(model, OBS, device=un.Device("cpu"))
    assert many == ["made"]
    _agree(here, there)
    assert any("JAX" in note and "float64" in note for note in there.notes)


def test_points_are_those_that_blocks_draw(many: list[str]) -> None:
    bound = un.Uniform().bind(BOX, OBS)
    drawn = blocks.Contrasts(OBS, bound, un.Lattice(), 5, (7,))
    problem = un.Logistic(per_point=5).additive(un.Additive(TERMS, BOX), OBS, CHI, np.random.default_rng(1))
    there = device_rows.made_there(problem, un.Device("cpu"))
    assert there is not None
    shifts = drawn.shifts()
    assert shifts is not None
    assert drawn.count > 3
    with x64():
        made = jax.device_get(outcomes(5, dataclasses.replace(there, contrasts=drawn, shifts=shifts).chain))
    expected = np.concatenate([one.outcome for one in drawn.blocks()])
    assert np.abs(np.stack([one.ravel() for one in made], axis=1) - expected).max() < 1e-9


@pytest.mark.parametrize("pixels", [False, True])
def test_terms_are_built_on_the_same_rows(many: list[str], pixels: bool) -> None:
    """Whole numbers may be labels, of which a sample has the first rows."""
    obs = un.transitions(np.round(OBS.outcome)) if pixels else OBS
    model = un.Additive(TERMS, BOX)
    problem = un.Logistic(per_point=5).additive(model, obs, CHI, np.random.default_rng(1))
    there = device_rows.made_there(problem, un.Device("cpu"))
    assert there is not None
    with pytest.MonkeyPatch.context() as patch:
        for module in (device_rows, __import__("unnorm.objectives.additive", fromlist=["SAMPLE"])):
            patch.setattr(module, "SAMPLE", 3_000)
        here, found = problem._sampled(), there.sample()
    assert found.part.columns.keys() == here.part.columns.keys()
    for name, column in here.part.columns.items():
        np.testing.assert_allclose(found.part.columns[name], column, atol=1e-9)
    for name in ("at", "data", "offset", "log_q", "randomisation"):
        np.testing.assert_allclose(getattr(found.rows, name), getattr(here.rows, name), atol=1e-12)
    np.testing.assert_allclose(found.rows.likelihood.a, here.rows.likelihood.a)
    assert str(found.part.terms) == str(here.part.terms)


def _weighted() -> un.Observations:
    return dataclasses.replace(OBS, weight=np.random.default_rng(5).uniform(0.5, 2.0, OBS.n))


@pytest.mark.parametrize(
    ("model", "obs", "more"),
    [
        (un.Additive("s(far, k=6)", BOX, covariates=[un.Expression("far", "step / 2")]), OBS, {}),
        (un.Additive("s(step, k=6) + dcenter", BOX), OBS, {}),
        (un.Additive("s(step, k=6)", BOX), _weighted(), {}),
        (un.Additive("s(step, k=6)", BOX), OBS, {"objective": un.Importance(per_point=5, points=un.IID())}),
    ],
    ids=["expression", "linear term", "weights", "importance, IID"],
)
def test_what_a_device_cannot_make_is_made_here_and_met_there(
    many: list[str], model: Any, obs: un.Observations, more: dict[str, Any]
) -> None:
    here, there = _fit(model, obs, **more), _fit(model, obs, device=un.Device("cpu"), **more)
    assert many == ["placed"]
    _agree(here, there)


def test_float32_says_its_error(many: list[str]) -> None:
    model = un.Additive(TERMS, BOX)
    here, there = _fit(model, OBS), _fit(model, OBS, device=un.Device("cpu", "float32"))
    assert many == ["made"]
    assert here.smooths is not None
    assert there.smooths is not None
    note = next(one for one in there.notes if "float32" in one)
    said = float(note.rsplit("than ", 1)[1].split(" ")[0])
    apart = np.abs(there.smooths.beta - here.smooths.beta) / np.sqrt(np.diag(here.smooths.errors.total))
    assert 0.0 < said < 1e-2
    assert apart.max() < 10 * said + 1e-2


def test_covariates_in_jax_are_those_in_numpy() -> None:
    lagged = un.transitions({"a": OBS.outcome[:, 0], "b": OBS.outcome[:, 1]}, y=("a", "b"), lags=2)
    for obs in (OBS, lagged):
        known = CovariateSet(obs, centre=(10.0, 7.5), y_down=True)
        names = [name for name in ("x", "y", "x_prev", "b_prev", "step", "angle", "dcenter") if name in known]
        traced = known.traced(names, obs)
        assert traced is not None
        hash(traced)
        with x64():
            found = traced([obs.outcome[:, :1], obs.outcome[:, 1:]], obs.context)
        for name, values in known.values(names, obs).items():
            np.testing.assert_allclose(np.asarray(found[name]).ravel(), values, atol=1e-12)
    assert CovariateSet(OBS, [un.Expression("far", "step / 2")]).traced(["far"], OBS) is None
    assert CovariateSet(OBS).traced(["who"], OBS) is None


def test_parts_and_a_device_are_not_combined(many: list[str]) -> None:
    with pytest.raises(CombinationError, match="leave memory= and workers= out"):
        _fit(un.Additive(TERMS, BOX), OBS, device=un.Device("cpu"), memory="1GB")
