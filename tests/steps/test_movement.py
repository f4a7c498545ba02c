"""The updated movement kernel: each law tilted by its statistics, derivatives, and recovery of the true kernel."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from steps.walks import SIDE, deer_walk, wood_map
from unnorm.errors import InputError
from unnorm.references import Exponential, Gamma, HalfNormal, LogNormal, UniformAngle, VonMisesAngle, Weibull
from unnorm.references.laws import Tiltable

BOX = un.Box((0.0, SIDE), (0.0, SIDE))
LAWS = [
    (Gamma(2.0, 150.0), {"step": 0.002, "log_step": -0.4}),
    (Exponential(200.0), {"step": -0.003}),
    (LogNormal(5.0, 0.8), {"log_step": 0.7, "log_step2": -0.3}),
    (Weibull(1.3, 250.0), {"step_power": -5e-4}),
    (HalfNormal(300.0), {"step2": -4e-6}),
]
STATISTICS = {
    "step": lambda r: r,
    "log_step": np.log,
    "log_step2": lambda r: np.log(r) ** 2,
    "step2": lambda r: r**2,
    "step_power": lambda r: r**1.3,
}


@pytest.mark.parametrize(("law", "beta"), LAWS, ids=lambda v: type(v).__name__)
def test_a_tilted_law_of_steps(law: Tiltable, beta: dict[str, float]) -> None:
    """log p' − log p − β·T is constant in r, and parameters move as `slopes` says."""
    new, r = law.tilted(beta), np.linspace(5.0, 900.0, 50)
    shift = new.log_density(r) - law.log_density(r) - sum(b * STATISTICS[name](r) for name, b in beta.items())
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    assert type(new) is type(law)
    check_slopes(law, beta)


def check_slopes(law: Tiltable, beta: dict[str, float]) -> None:
    for parameter, slope in law.tilted(beta).slopes().items():
        for name in law.statistics:
            h = 1e-5 * max(abs(beta.get(name, 0.0)), 1e-4)
            ends = [getattr(law.tilted({**beta, name: beta.get(name, 0.0) + d}), parameter) for d in (-h, h)]
            assert (ends[1] - ends[0]) / (2 * h) == pytest.approx(slope.get(name, 0.0), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("law", [VonMisesAngle(0.0, 1.2), VonMisesAngle(np.pi, 0.4), VonMisesAngle(0.7, 0.9)])
@pytest.mark.parametrize("beta", [{"cos_turn": 0.5}, {"cos_turn": -0.9, "sin_turn": 0.3}])
def test_a_tilted_law_of_turns(law: VonMisesAngle, beta: dict[str, float]) -> None:
    new, phi = law.tilted(beta), np.linspace(-3.0, 3.0, 40)
    shift = new.log_density(phi) - law.log_density(phi)
    shift = shift - beta["cos_turn"] * np.cos(phi) - beta.get("sin_turn", 0.0) * np.sin(phi)
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    if "sin_turn" in beta or abs(np.sin(law.mean)) > 1e-6:
        check_slopes(law, {"sin_turn": 0.0, **beta})


def test_an_exponential_becomes_a_gamma_and_uniform_turns_von_mises() -> None:
    assert Exponential(200.0).wider({"log_step"}) == Gamma(1.0, 200.0)
    assert UniformAngle().tilted({"cos_turn": -0.4}) == VonMisesAngle(np.pi, 0.4)
    with pytest.raises(InputError, match="no finite mass"):
        Gamma(2.0, 100.0).tilted({"step": 0.02})


@pytest.mark.parametrize("objective", ["ranking", "logistic"])
def test_the_true_kernel_is_recovered(objective: str) -> None:
    """A kernel of the wrong law (longer steps, no turns) is updated to that of the walk."""
    wrong = un.StepKernel(Gamma(1.2, 400.0), VonMisesAngle(0.0, 0.0))
    track = deer_walk(801, seed=3, beta=2.0, night=0.0, shape=2.0, scale=150.0, kappa=0.8)
    fit = un.fit_steps(
        track, "forest", maps=wood_map(), kernel=wrong, integrated=True, objective=objective, per_point=40, rng=1
    )
    found = fit.movement()
    assert list(found["law"]) == ["gamma", "gamma", "von Mises", "von Mises"]
    truth = {"shape": 2.0, "scale": 150.0, "mean": 0.0, "kappa": 0.8}
    for name, estimate, se in zip(found["parameter"], found["estimate"], found["se"]):
        assert abs(estimate - truth[name]) < 3.5 * se + 1e-9, name
    assert fit.fit.estimate[fit.fit.names.index("forest")] == pytest.approx(2.0, abs=3.5 * fit.fit.se[0])
    new = fit.updated_kernel()
    assert new.step.shape == pytest.approx(float(found["estimate"][0]))


def test_the_kernel_does_not_matter() -> None:
    """η + β is the same whatever η: two tentative kernels give one movement kernel, to the error of the points."""
    track = deer_walk(401, seed=5)
    rows = [
        un.fit_steps(track, "forest", maps=wood_map(), kernel=kernel, integrated=True, per_point=150, rng=2).movement()
        for kernel in (un.StepKernel("gamma", "vonmises"), un.StepKernel(Gamma(1.5, 220.0), VonMisesAngle(0.0, 0.1)))
    ]
    gap = np.abs(rows[0]["estimate"] - rows[1]["estimate"])
    assert np.all(gap <= 0.4 * rows[0]["se"] + 1e-12)


def test_a_kernel_that_changes_at_night() -> None:
    track = deer_walk(301)
    fit = un.fit_steps(track, "forest + cos(turn) + cos(turn):night", maps=wood_map(), rng=1)
    night, day = (fit.movement({"night": value}) for value in (1.0, 0.0))
    at = list(night["parameter"]).index("kappa")
    sign = [np.cos(one["estimate"][at - 1]) for one in (night, day)]
    gap = sign[0] * night["estimate"][at] - sign[1] * day["estimate"][at]
    assert gap == pytest.approx(fit.fit.theta["cos_turn:night"], abs=1e-9)


def test_what_has_no_name() -> None:
    track = deer_walk(151)
    curve = un.fit_steps(track, "s(step, k=5)", maps=wood_map(), rng=1)
    with pytest.raises(InputError, match="not a straight line in step"):
        curve.movement()
    with pytest.raises(InputError, match=r"f reads 'log_step'.*only when tilted by 'cos_turn', 'sin_turn', 'step2'"):
        un.fit_steps(
            track, "log(step)", kernel=un.StepKernel("halfnormal", "vonmises"), maps=wood_map(), rng=1
        ).movement()


@pytest.mark.parametrize("terms", ["step + cos(turn) + step:cos(turn)", "log(step) + cos(turn) + log(step):cos(turn)"])
def test_a_kernel_that_is_no_product_has_no_name(terms: str) -> None:
    """With an interaction of steps and turns, the slope in the one hangs on the other: no updated law of either."""
    fit = un.fit_steps(deer_walk(201), f"forest + {terms}", maps=wood_map(), rng=1)
    for call in (fit.movement, fit.updated_kernel):
        with pytest.raises(InputError, match=r"depend on .*no product of a law of steps and one of turns"):
            call()
    assert fit.plot().get_xlabel() == "step"


def test_intervals_of_positive_parameters_are_not_negative() -> None:
    """Six fixes: a shape is hardly known, but it is not below zero."""
    found = un.fit_steps(deer_walk(7), "x", domain=BOX, integrated=True, rng=1).movement()
    for name, lower, estimate in zip(found["parameter"], found["lower"], found["estimate"]):
        assert lower <= estimate
        assert name == "mean" or lower >= 0.0
