"""A weight of two is a row that is there twice, also for smooth effects in the plane: on the same reference points the
fits are equal, and on others they differ by those points alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import unnorm as un

BOX = un.Box((0, 8), (0, 6))
MODEL = un.Additive("s(step, k=8) + s(dcenter, k=8)", BOX)
LOGISTIC = un.Logistic(per_point=10)
AT = {"s(step)": {"step": np.array([0.3, 0.8, 1.5, 2.5])}, "s(dcenter)": {"dcenter": np.array([0.6, 1.5, 2.5, 3.3])}}


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    rng = np.random.default_rng(4)
    y = [np.array([4.0, 3.0])]
    for _ in range(540):
        y.append(np.clip(y[-1] + rng.normal(0, 0.9, 2) + 0.2 * (np.array([4.0, 3.0]) - y[-1]), 0.05, [7.95, 5.95]))
    x = np.array(y)
    return un.transitions({"i": np.arange(len(x)), "x": x[:, 0], "y": x[:, 1]}, y=("x", "y"), order="i")


def _twice(obs: un.Observations) -> tuple[un.Observations, un.Observations]:
    return dataclasses.replace(obs, weight=np.full(obs.n, 2.0)), obs.take(np.repeat(np.arange(obs.n), 2))


@pytest.mark.parametrize("normaliser", [un.Anchored(), un.Smooth("s(x_prev, y_prev, k=10)")])
def test_on_the_same_points_the_fits_are_equal(obs: un.Observations, normaliser: un.Normaliser) -> None:
    weighted, copies = _twice(obs)
    drawn = LOGISTIC.draw(MODEL, weighted, normaliser, np.random.default_rng(5))
    k = drawn.k or 0
    of = np.repeat(np.arange(obs.n), 2)
    rows = (of[:, None] * (k + 1) + np.arange(k + 1)).ravel()
    own = {name: getattr(drawn, name)[rows] for name in ("outcome", "z", "log_q", "randomisation")}
    at = np.repeat(np.arange(copies.n), k + 1)
    same = dataclasses.replace(drawn, obs=copies, at=at, weight=np.ones(len(rows)), **own)
    one = un.fit(MODEL, weighted, LOGISTIC.holding(drawn), normaliser, rng=1)
    two = un.fit(MODEL, copies, LOGISTIC.holding(same), normaliser, rng=1)
    for label, points in AT.items():
        a, b = one.effect(label, at=points), two.effect(label, at=points)
        np.testing.assert_allclose(a["estimate"], b["estimate"], rtol=0, atol=1e-6 * b["se"].min())
        np.testing.assert_allclose(a["se_sampling"], b["se_sampling"], rtol=1e-5)
    assert one.value == pytest.approx(two.value, rel=1e-10)


@pytest.mark.slow
def test_on_other_points_they_differ_by_those_alone(obs: un.Observations) -> None:
    weighted, copies = _twice(obs)
    # λ held: chosen, that of s(dcenter) jumps to ∞ with some of the points and not with others
    model = un.Additive("s(step, k=8, sp=0.01) + s(dcenter, k=8, sp=10)", BOX)

    def steps(data: un.Observations, seed: int) -> np.ndarray:
        fit = un.fit(model, data, LOGISTIC, rng=seed)
        return np.concatenate([np.diff(fit.effect(label, at=points)["estimate"]) for label, points in AT.items()])

    apart = np.array([steps(weighted, seed) - steps(copies, 1000 + seed) for seed in range(60)])
    z = apart.mean(axis=0) / (apart.std(axis=0, ddof=1) / np.sqrt(len(apart)))
    assert np.abs(z).max() < 3.5  # of six, nearly independent
