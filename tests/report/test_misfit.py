"""What the report says that a model misses: exchanged pairs as a test, and the term that would mend it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.report.analysis import pooled
from unnorm.report.misfit import FEATURES, TIMES, misfits
from unnorm.report.sections import misfit

BOX = un.Box((0, 8), (0, 6))


def _paths(rng, pairs=60, steps=8, shift=0.0, noise=0.0):
    """Steps of paths that depend on each other within a path."""
    level = np.repeat(rng.normal(size=pairs) * noise, steps)
    return {"step": shift + level + rng.normal(size=pairs * steps), "turn": rng.vonmises(shift, 1.0, pairs * steps)}


def test_p_is_uniform_where_pairs_may_be_exchanged_and_small_where_not():
    rng = np.random.default_rng(1)
    pair = np.repeat(np.arange(60), 8)
    p = [misfits(_paths(rng, noise=1.0), _paths(rng, noise=1.0), pair, seed)[0].p for seed in range(60)]
    assert np.mean(np.array(p) <= 0.1) < 0.25  # steps of a path go together, and the exchange knows it
    assert np.mean(p) == pytest.approx(0.5, abs=0.12)
    found = misfits(_paths(rng, shift=0.5), _paths(rng), pair, 1)
    assert [one.feature.name for one in found] == ["step", "turn"]
    for one in found:
        assert one.p == 1 / (1 + TIMES)
        assert one.missed
        assert one.distance > one.envelope


def test_the_distance_is_kolmogorovs():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(2)
    a, b = rng.normal(size=80).round(1), rng.normal(0.3, 1, 80).round(1)  # with ties
    found = misfits({"step": a}, {"step": b}, np.repeat(np.arange(10), 8), 1)[0]
    expected: Any = ks_2samp(a, b)
    assert found.distance == pytest.approx(expected.statistic)


def test_advice_names_the_term_or_a_larger_k():
    one = misfits({"step": np.arange(40.0) + 100}, {"step": np.arange(40.0)}, np.repeat(np.arange(20), 2), 1)[0]
    assert one.advice(frozenset()) == "add s(step, k=20)"
    assert "larger k" in one.advice(frozenset({"step"}))
    assert {one.name for one in FEATURES} == {
        "step", "direction", "turn", "across", "down", "distance from the centre",
    }  # fmt: skip


@pytest.fixture(scope="module")
def walks() -> un.Observations:
    """Steps that go on in their direction, near the left side of the window."""
    rng = np.random.default_rng(3)
    rows = []
    for path in range(80):
        x, phi = rng.uniform((1, 1), (5, 5)), rng.uniform(-np.pi, np.pi)
        for t in range(12):
            rows.append((path, t, *x))
            while True:
                turned = phi + rng.vonmises(0.0, 4.0)
                y = x + rng.gamma(4, 0.2) * np.array([np.cos(turned), np.sin(turned)])
                if BOX.contains(y[None])[0]:
                    break
                phi = rng.uniform(-np.pi, np.pi)
            x, phi = y, turned
    table = {name: np.array(c) for name, c in zip(("path", "t", "x", "y"), zip(*rows))}
    return un.transitions(table, y=("x", "y"), order="t", group="path")


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_the_section_says_that_turns_are_missed(walks):
    model = un.Additive("s(step, k=8)", BOX)
    fit = un.fit(model, walks, un.Logistic(per_point=8), rng=1)
    found = misfit.section(pooled(fit, model, walks))
    assert found is not None
    assert "add s(turn, bs='cc', k=10) with --lags 2" in found.text[0]
    assert "length of steps (" not in found.text[0]
