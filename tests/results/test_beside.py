"""Durations beside places, as an outcome and as a covariate."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError
from unnorm.report.analysis import pooled
from unnorm.report.sections import durations

BOX = un.Box((0, 8), (0, 6))


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    rng = np.random.default_rng(1)
    n, paths = 12, 60
    x = np.empty((paths, n, 2))
    x[:, 0] = rng.uniform((2, 2), (6, 4), (paths, 2))
    for t in range(1, n):
        x[:, t] = np.clip(
            0.8 * x[:, t - 1] + 0.2 * np.array([4, 3]) + rng.normal(0, 0.8, (paths, 2)), 0.01, (7.99, 5.99)
        )
    step = np.hypot(*np.moveaxis(np.diff(x, axis=1, prepend=x[:, :1]), -1, 0))
    level = rng.normal(0, 0.3, 5)
    subject = np.arange(paths) % 5
    duration = np.exp(5.5 + 0.2 * step + level[subject][:, None] + rng.normal(0, 0.3, (paths, n)))
    table = {
        "path": np.repeat(np.arange(paths), n), "subject": np.repeat(subject, n), "t": np.tile(np.arange(n), paths),
        "x": x[..., 0].ravel(), "y": x[..., 1].ravel(), "duration": duration.ravel(),
    }  # fmt: skip
    return un.transitions(
        table, y=("x", "y"), order="t", group=("path", "subject"), extra="duration_prev", beside="duration"
    )


def test_log_duration_on_the_terms_of_the_place(obs):
    model = un.Additive("step + s(angle, bs='cc', k=6)", BOX)
    fit = un.fit(model, obs, un.Logistic(per_point=5), rng=2)
    gam = fit.beside("log(duration)", random=("subject",))
    slope, se = gam.coefficients["step"], float(np.sqrt(gam.vcov()[1, 1]))
    assert abs(slope - 0.2) < 4 * se < 0.2
    assert "s(subject)" in gam.edf
    by_hand = un.gam(
        "log(duration) ~ step + s(angle, bs='cc', k=6) + s(subject, bs='re')",
        {
            **model.covariates(obs).values(["step", "angle"], obs),
            "duration": obs.beside["duration"],
            "subject": obs.group["subject"].astype(str),
        },
        periods={"angle": 2 * np.pi},
    )
    assert slope == pytest.approx(by_hand.coefficients["step"], abs=1e-10)
    with pytest.raises(InputError, match="random names 'observer'"):
        fit.beside("log(duration)", random=("observer",))
    shown = pooled(fit, model, obs, duration="duration")
    section = durations.section(shown)
    assert section is not None
    assert "logarithm of duration at 660 points" in section.text[0]


def test_durations_as_a_covariate_at_the_start(obs):
    slow = un.Expression("slow", "step * log(duration_prev / 250)")
    model = un.Additive("step + slow", BOX, covariates=[slow])
    fit = un.fit(model, obs, un.Logistic(per_point=10), rng=2)
    assert fit.converged
    assert abs(fit.theta["slow"]) < 4 * fit.se[list(fit.names).index("slow")]  # the law has no such effect


def test_a_column_that_a_built_in_hides_is_hidden_here_too():
    rng = np.random.default_rng(3)
    xy = rng.random((80, 2))
    table = {"a": xy[:, 0], "b": xy[:, 1], "step": 100 * rng.random(80), "duration": rng.random(80)}
    obs = un.transitions(table, y=("a", "b"), extra="step", beside="duration")
    fit = un.fit(un.Additive("step", un.Box((0, 1), (0, 1))), obs, un.Logistic(per_point=5), rng=2)
    np.testing.assert_allclose(fit.beside("duration").columns["step"], np.hypot(*np.diff(xy, axis=0).T))
