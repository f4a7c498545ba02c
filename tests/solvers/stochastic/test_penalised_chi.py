"""χ(x) as a penalised smooth, un.Smooth, in SGD, Langevin, NUTS and the gradient, against the additive engine."""

from pathlib import Path

import numpy as np
import optax
import pytest

import unnorm as un
from unnorm.bayes.langevin import Langevin
from unnorm.bayes.nuts import NUTS
from unnorm.bayes.sampling import sample
from unnorm.errors import CombinationError, TermError, UnnormWarning
from unnorm.references import Uniform
from unnorm.solvers.stochastic import SGD, loop, unbiased_gradient
from unnorm.solvers.stochastic.estimator import estimator

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHI = un.Smooth("s(y_prev, k=10)", smoothing="reml")


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(2000, 0.5, 5.0, rng=1))


def test_sgd_is_the_engine_s_penalised_fit(obs: un.Observations) -> None:
    engine = un.fit(TOY, obs, un.Poisson(), CHI)
    sgd = un.fit(TOY, obs, un.Poisson(), CHI, solver=SGD(steps=200, batch=200), rng=1)
    assert np.all(np.abs(sgd.estimate - engine.estimate) < 0.02 * engine.se)
    np.testing.assert_allclose(sgd.se, engine.se, rtol=0.02)
    np.testing.assert_allclose(sgd.nu, engine.nu, atol=0.01)
    (label,) = engine.smooths.sp
    assert sgd.diagnostics["smoothing_parameters"][label] == pytest.approx(engine.smooths.sp[label], rel=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:χ̂ and −log ∫ exp f̂ differ")  # as they must with a smoothing parameter of 300
@pytest.mark.parametrize("sp", [1e-3, 300.0])
def test_a_fixed_smoothing_parameter_is_kept(obs: un.Observations, sp: float) -> None:
    chi = un.Smooth(f"s(y_prev, k=10, sp={sp})")
    engine = un.fit(TOY, obs, un.Poisson(), chi)
    sgd = un.fit(TOY, obs, un.Poisson(), chi, solver=SGD(steps=300, batch=200), rng=1)
    assert np.all(np.abs(sgd.estimate - engine.estimate) < 0.05 * engine.se)
    np.testing.assert_allclose(sgd.nu, engine.nu, atol=0.02)
    assert sgd.diagnostics["smoothing_parameters"]["s(y_prev)"] == sp


@pytest.mark.slow
def test_a_smooth_that_is_not_needed_is_smoothed_away() -> None:
    """f without x has one constant: χ must be flat, and its smoothing parameter large."""
    obs = un.transitions(un.datasets.toy_chain(1000, 0.5, 0.0, rng=1))
    model = un.ExponentialFamily(lambda y, x: (y,), ("theta1",), un.Interval(-1, 1))
    sgd = un.fit(model, obs, un.Poisson(), CHI, solver=SGD(steps=400, batch=200), rng=1)
    assert np.ptp(sgd.nu) < 0.02
    assert sgd.estimate[0] == pytest.approx(un.fit(model, obs).estimate[0], abs=0.01 * sgd.se[0])


@pytest.mark.slow
def test_with_an_energy_and_another_optimiser(obs: un.Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a network no joint curvature is formed: λ comes from χ's own block."""
    monkeypatch.setattr(loop, "MOST_DENSE", 5)
    model = un.Energy(
        lambda t, y, x: t["a"] * y - 0.5 * t["b"] * (y - x) ** 2, {"a": 0.0, "b": 1.0}, un.Interval(-1, 1)
    )
    engine = un.fit(TOY, obs, un.Poisson(), CHI)
    solver = SGD(optax.adam(optax.cosine_decay_schedule(0.1, 1500)), steps=1500, batch=200, average=0.8)
    sgd = un.fit(model, obs, un.Poisson(), CHI, solver=solver, rng=1)
    assert np.all(np.abs(sgd.estimate - engine.estimate) < 0.4 * engine.se)
    assert np.sqrt(np.mean((sgd.nu - engine.nu) ** 2)) < 0.03
    (label,) = engine.smooths.sp
    assert sgd.diagnostics["smoothing_parameters"][label] == pytest.approx(engine.smooths.sp[label], rel=0.3)


@pytest.mark.slow
def test_an_interrupted_run_keeps_its_smoothing(obs: un.Observations, tmp_path: Path) -> None:
    def fit(steps: int, path: Path | None) -> un.Fit:
        solver = SGD(steps=steps, batch=100, block=20, checkpoint=path, checkpoint_every=1, average=0.0)
        with pytest.warns(UnnormWarning, match="use more steps"):  # the start is in the average
            return un.fit(TOY, obs, un.Poisson(), CHI, solver=solver, rng=3)

    whole = fit(240, None)
    fit(120, tmp_path / "run")
    resumed = fit(240, tmp_path / "run")
    np.testing.assert_array_equal(resumed.estimate, whole.estimate)
    assert resumed.diagnostics["smoothing_parameters"] == whole.diagnostics["smoothing_parameters"]


def test_the_gradient_in_the_coefficients_of_a_smooth(obs: un.Observations) -> None:
    """Against quadrature and the chain rule through one ν_t for each observation."""
    few = obs.take(np.arange(0, 2000, 50))
    theta = np.array([0.3, 4.0])
    e = estimator(TOY, few, Uniform(), un.Smooth("s(y_prev, k=5)", smoothing="reml"))
    B = e.chi.design[np.argsort(e.position)]
    beta = np.array([-0.5, 0.1, -0.2, 0.3, 0.1])
    d = un.Poisson().bind(TOY, few, un.PerContext()).joint_derivatives(theta, B @ beta)
    g = unbiased_gradient(
        TOY,
        few,
        Uniform(),
        theta,
        beta,
        normaliser=un.Smooth("s(y_prev, k=5)", smoothing="reml"),
        batch=10,
        draws=4000,
        rng=1,
    )
    assert np.max(np.abs(g.theta - d.gradient_theta) / g.se_theta) < 4
    assert np.max(np.abs(g.nu - B.T @ d.gradient_nu) / (g.se_nu + 1e-12)) < 4


@pytest.mark.slow
def test_langevin_and_nuts_sample_a_penalised_chi() -> None:
    few = un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))
    chi = un.Smooth("s(y_prev, k=8)", smoothing="reml")
    nuts = sample(TOY, few, NUTS(draws=1000, warmup=300), normaliser=chi, rng=1)
    exact = sample(TOY, few, NUTS(draws=1000, warmup=300), rng=2)  # each ν_t integrated out: the posterior of 𝓛
    assert np.all(np.abs(nuts.mean - exact.mean) < 0.2 * exact.sd)
    np.testing.assert_allclose(nuts.sd, exact.sd, rtol=0.15)
    langevin = sample(TOY, few, Langevin(draws=2000, batch=100), normaliser=chi, rng=1)
    assert np.all(np.abs(langevin.mean - nuts.mean) < 0.2 * nuts.sd)
    np.testing.assert_allclose(langevin.sd, nuts.sd, rtol=0.15)
    assert np.all(langevin.rhat < 1.03)
    engine = un.fit(TOY, few, un.Poisson(), chi).smooths.sp["s(y_prev)"]
    assert nuts.diagnostics["smoothing_parameters"]["s(y_prev)"] == pytest.approx(engine, rel=0.15)


def test_what_sgd_cannot_smooth_is_named(obs: un.Observations) -> None:
    with pytest.raises(CombinationError, match="additive engine"):
        un.fit(un.Additive("s(y, k=5)", un.Interval(-1, 1)), obs, un.Poisson(), CHI, solver=SGD(), rng=1)
    with pytest.raises(CombinationError, match="additive engine"):
        un.fit(TOY, obs, un.Poisson(), CHI, solver=un.Newton(), rng=1)
    with pytest.raises(CombinationError, match="by REML"):
        un.fit(TOY, obs, un.Poisson(), CHI, solver=SGD(), smoothing="gcv", rng=1)
    with pytest.raises(TermError, match="function of the context"):
        un.fit(TOY, obs, un.Poisson(), un.Smooth("s(y, k=5)", smoothing="reml"), solver=SGD(), rng=1)
