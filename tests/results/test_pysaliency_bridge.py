"""pysaliency both ways, with stand-ins for its objects; tests/slow/test_pysaliency.py has the real ones."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, DataError, MissingLibraryError


def trains(seed: int = 1, paths: int = 40, length: int = 10) -> SimpleNamespace:
    """As FixationTrains has them: every fixation with its history, NaN-padded."""
    rng = np.random.default_rng(seed)
    x, y, hist_x, hist_y, n, subject = [], [], [], [], [], []
    for path in range(paths):
        at = np.array([30.0, 20.0])
        before: list[np.ndarray] = []
        for _ in range(length):
            pad = [np.nan] * (length - len(before))
            x.append(at[0])
            y.append(at[1])
            hist_x.append([*(b[0] for b in before), *pad])
            hist_y.append([*(b[1] for b in before), *pad])
            n.append(path % 2)
            subject.append(path % 4)
            before.append(at)
            at = np.clip(at + rng.normal(0, 5, 2), 0.5, (59.5, 39.5))
    durations = rng.gamma(4, 60, len(x))
    return SimpleNamespace(
        x=np.array(x), y=np.array(y), n=np.array(n), subject=np.array(subject), durations=durations,
        x_hist=np.array(hist_x), y_hist=np.array(hist_y), __attributes__=["subject", "durations"],
    )  # fmt: skip


def test_fixation_trains_are_the_transitions_of_their_table():
    given = trains()
    obs = un.pysaliency.observations(given)
    table = {
        "path": np.repeat(np.arange(40), 10), "t": np.tile(np.arange(10), 40), "x": given.x, "y": given.y,
        "image": given.n, "subject": given.subject, "durations": given.durations,
    }  # fmt: skip
    expected = un.transitions(table, y=("x", "y"), order="t", group=("path", "subject", "image"), extra="durations")
    np.testing.assert_array_equal(obs.outcome, expected.outcome)
    for name in ("x_prev", "y_prev", "durations"):
        np.testing.assert_array_equal(obs.context[name], expected.context[name])
    for name in ("subject", "image"):
        np.testing.assert_array_equal(obs.group[name], expected.group[name])
    np.testing.assert_array_equal(obs.sequence, expected.sequence)
    two = un.pysaliency.observations(given, lags=2)
    np.testing.assert_array_equal(two.context["x_prev2"], given.x[np.asarray(two.row) - 2])
    with pytest.raises(DataError, match="no fixation has 20 before it"):
        un.pysaliency.observations(given, lags=20)


def test_names_of_older_versions_and_selections_of_fixations():
    """Published versions say `subjects`; a selection may lack the first fixations, which began each scanpath."""
    given = trains()
    given.subjects = given.subject
    del given.subject
    every = un.pysaliency.observations(given)
    assert np.unique(every.group["subject"]).tolist() == [0, 1, 2, 3]
    history = np.sum(~np.isnan(given.x_hist), axis=1)
    kept = (history > 0) & (history != 4)
    fields = ("x", "y", "n", "subjects", "durations", "x_hist", "y_hist")
    some = SimpleNamespace(**{name: getattr(given, name)[kept] for name in fields}, __attributes__=["durations"])
    obs = un.pysaliency.observations(some)
    assert obs.n == 40 * 8
    assert np.bincount(np.asarray(obs.sequence)).tolist() == [3, 5] * 40  # a fixation left out ends a sequence


def test_attributes_with_gaps_are_named():
    given = trains()
    given.durations[3] = np.nan
    obs = un.pysaliency.observations(given)
    assert "durations" not in obs.context
    assert obs.notes[-1] == "The attribute 'durations' is left out: 1 of 360 values are missing."


class Base:
    """pysaliency.ScanpathModel, as far as it is used."""


@pytest.fixture
def fitted(monkeypatch):
    fake = ModuleType("pysaliency")
    fake.ScanpathModel = Base  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "pysaliency", fake)
    obs = un.pysaliency.observations(trains())
    domain = un.pysaliency.windows(SimpleNamespace(sizes=[(40, 60), (40, 60)]))
    return un.fit(un.Additive("step + dcenter", domain), obs, un.Logistic(per_point=10), rng=1)


def test_a_fit_is_a_scanpath_model_whose_pixels_sum_to_one(fitted):
    model: Any = un.pysaliency.scanpath_model(fitted)
    assert issubclass(type(model), Base)
    stimulus = SimpleNamespace(size=(40, 60))
    log_p = model.conditional_log_density(stimulus, [10.0, 30.0, np.nan], [10.0, 20.0, np.nan], [0.0, 1.0, np.nan])
    assert log_p.shape == (40, 60)
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-12)
    places = np.array([[12.5, 7.5], [40.5, 30.5]])
    x = {"x_prev": 30.0, "y_prev": 20.0, "durations": 1.0, "image": 0}
    expected = fitted.log_density(places, x)
    np.testing.assert_allclose([log_p[7, 12], log_p[30, 40]], expected, atol=0.01)
    pixels = np.zeros((40, 60, 3))  # pysaliency also hands over plain arrays, whose size is a number
    assert np.array_equal(model.conditional_log_density(pixels, [10.0, 30.0], [10.0, 20.0], [0.0, 1.0]), log_p)
    first = model.conditional_log_density(stimulus, [], [], [])
    np.testing.assert_allclose(first, -np.log(2400.0))
    out = np.empty((40, 60))
    assert model.conditional_log_density(stimulus, [30.0], [20.0], [0.0], out=out) is out


def test_maps_by_image_need_to_know_the_image(fitted):
    rng = np.random.default_rng(3)
    places: Any = {"x": np.arange(60) + 0.5, "y": np.arange(40) + 0.5}
    saliency = un.Map("saliency", {0: rng.random((40, 60)), 1: rng.random((40, 60))}, **places, key="image")
    domain = un.pysaliency.windows(SimpleNamespace(sizes=[(40, 60), (40, 60)]))
    model = un.Additive("step + saliency", domain, covariates=[saliency])
    fit = un.fit(model, un.pysaliency.observations(trains()), un.Logistic(per_point=10), rng=1)
    stimulus = SimpleNamespace(size=(40, 60), name=1)
    with pytest.raises(CombinationError, match=r"pysaliency does not say .*Pass image_of=.*'saliency' reads 'image'"):
        un.pysaliency.scanpath_model(fit).conditional_log_density(stimulus, [30.0], [20.0], [0.0])
    log_p = un.pysaliency.scanpath_model(fit, lambda one: one.name).conditional_log_density(
        stimulus, [30.0], [20.0], [0.0]
    )
    x = {"x_prev": 30.0, "y_prev": 20.0, "durations": 1.0, "image": 1}
    expected = fit.log_density(np.array([[12.5, 7.5], [40.5, 30.5]]), x)
    np.testing.assert_allclose([log_p[7, 12], log_p[30, 40]], expected, atol=0.01)


def test_what_is_wrong_is_said(fitted, monkeypatch):
    one = un.fit(
        un.Additive("step", un.Box((0, 60), (0, 40))), un.pysaliency.observations(trains()), un.Logistic(), rng=1
    )
    model = un.pysaliency.scanpath_model(one)
    with pytest.raises(CombinationError, match="the stimulus has 30 × 20 pixels"):
        model.conditional_log_density(SimpleNamespace(size=(20, 30)), [1.0], [1.0], [0.0])
    monkeypatch.setitem(sys.modules, "pysaliency", None)
    with pytest.raises(MissingLibraryError, match="needs pysaliency"):
        un.pysaliency.scanpath_model(fitted)
