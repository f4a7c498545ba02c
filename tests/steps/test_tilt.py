"""Models relative to a kernel: f = 0 is the kernel, constants are those of k exp f, and all objectives agree."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from steps.walks import SIDE, deer_walk, wood, wood_map
from unnorm.errors import CombinationError, InputError
from unnorm.references import Gamma, VonMisesAngle

BOX = un.Box((0.0, SIDE), (0.0, SIDE))
KERNEL = un.StepKernel(Gamma(2.0, 150.0), VonMisesAngle(0.0, 0.5))


def model(terms: str = "forest", kernel: un.StepKernel = KERNEL) -> un.Additive:
    return un.Additive(terms, BOX, covariates=[wood_map()], base=un.Tilt(kernel))


def test_its_nodes_integrate_the_kernel() -> None:
    """E_k of a smooth function, in the middle and in a corner of Ω, against many draws and against a fine rule."""
    obs = un.transitions({"x": [9000.0, 9100.0, 9300.0], "y": [9000.0, 9050.0, 9000.0]}, y=("x", "y"), lags=2)
    edge = un.transitions({"x": [300.0, 150.0, 100.0], "y": [200.0, 90.0, 80.0]}, y=("x", "y"), lags=2)
    for one, order in ((obs, 16), (edge, 96)):
        law = KERNEL.bind(BOX, one)
        y, w, of = law.rule(one, order)
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        assert BOX.contains(y).all()
        assert not of.any()
        value = float(w @ wood(*y.T))
        draws = law.sample(one, np.zeros(200_000, dtype=int), np.random.default_rng(1))
        assert value == pytest.approx(float(wood(*draws.T).mean()), abs=4 * 0.2 / np.sqrt(200_000))
        fine, weight, _ = law.rule(one, 3 * order)
        assert value == pytest.approx(float(weight @ wood(*fine.T)), abs=2e-4)


def test_log_density_is_normalised() -> None:
    """log p = f + log k − log Z integrates to one over Ω by a rule that knows nothing of the kernel."""
    track = deer_walk(41)
    fit = un.fit(model(), track.observations(), un.Ranking(KERNEL, per_point=10), rng=1)
    obs = fit.obs.take(np.arange(1))
    y, w, _ = BOX.centred(obs.previous(), 160)
    at = {name: np.repeat(column, len(y)) for name, column in obs.context.items()}
    assert float(w @ np.exp(fit.log_density(y, at))) == pytest.approx(1.0, abs=5e-3)
    np.testing.assert_allclose(fit.log_density(fit.obs), fit.held_out(fit.obs, order=40).log_density)


def test_objectives_agree_whatever_the_points() -> None:
    """With points of k, of other kernels and of a mixture: f is relative to k in all."""
    obs, both = deer_walk(201).observations(), model("forest + step")
    other = un.StepKernel(Gamma(1.0, 600.0), "uniform")
    fits = [
        un.fit(both, obs, un.Ranking(KERNEL, per_point=100), rng=1),
        un.fit(both, obs, un.Logistic(KERNEL, per_point=40), rng=2),
        un.fit(both, obs, un.Logistic(other, per_point=60), rng=3),
        un.fit(both, obs, un.Ranking(un.Mixture((0.8, KERNEL), (0.2, un.Uniform())), per_point=150), rng=4),
    ]
    for one in fits[1:]:
        np.testing.assert_array_less(np.abs(one.estimate - fits[0].estimate) / fits[0].se, 0.25)
    assert fits[1].anchored
    assert abs(fits[1].anchoring.delta) < 4 * fits[1].anchoring.se + 1e-3


def test_a_parametric_model_takes_a_base() -> None:
    """f = b x/1000: the same as the linear term of an additive model."""
    obs = deer_walk(151).observations()
    linear = un.Additive("km", BOX, covariates=[un.Expression("km", "x / 1000")], base=un.Tilt(KERNEL))
    family = un.ExponentialFamily(lambda y, x: (y[0] / 1000,), ("km",), BOX, base=un.Tilt(KERNEL))
    for objective in (un.Ranking(KERNEL, per_point=20), un.Logistic(KERNEL, per_point=20)):
        a, b = (un.fit(one, obs, objective, rng=1) for one in (linear, family))
        np.testing.assert_allclose(a.estimate, b.estimate, rtol=2e-3)
        np.testing.assert_allclose(a.se, b.se, rtol=0.02)
    assert b.held_out(obs, order=24).loglik == pytest.approx(a.held_out(obs, order=24).loglik, abs=0.2)


def test_the_kernel_is_fitted_once_and_remembered(tmp_path) -> None:
    obs = deer_walk(151).observations()
    free = model(kernel=un.StepKernel("gamma", "vonmises"))
    fit = un.fit(free, obs, un.Ranking(un.StepKernel("gamma", "vonmises"), per_point=5), rng=1)
    law = fit.model.base.kernel.step
    assert law.known
    assert law == Gamma().fit(np.hypot(*(obs.outcome - obs.previous()).T), obs.weights)
    fit.save(tmp_path / "fit")
    back = un.load(tmp_path / "fit", model=free)
    assert back.model.base.kernel == fit.model.base.kernel
    few = obs.take(np.arange(20))
    np.testing.assert_allclose(back.held_out(few, order=20).loglik, fit.held_out(few, order=20).loglik)
    with pytest.raises(InputError, match="does not match the saved fit"):
        un.load(tmp_path / "fit", model=un.Additive("forest", BOX, covariates=[wood_map()]))


def test_what_takes_no_base() -> None:
    obs = deer_walk(51).observations()
    for objective in (un.Exact(), un.Poisson()):
        with pytest.raises(CombinationError, match=r"un.Ranking\(kernel"):
            un.fit(model(), obs, objective)
    with pytest.raises(InputError, match=r"base must be un.Tilt"):
        un.Additive("forest", BOX, base=KERNEL)
    with pytest.raises(InputError, match="must be a reference"):
        un.Tilt("gamma")
    with pytest.raises(InputError, match="log_partition"):
        un.ExponentialFamily(lambda y, x: (y[0],), ("a",), BOX, log_partition=lambda t, x: 0.0, base=un.Tilt(KERNEL))


def test_conditional_nce_counts_the_base() -> None:
    """Pairs around the outcome know nothing of k: without its density the estimate would be that of f + log k."""
    obs = deer_walk(301).observations()
    near = un.ConditionalNCE(un.Gaussian(cov=200.0**2, around="outcome"), per_point=20)
    ours = un.fit(model(), obs, near, rng=1)
    ranking = un.fit(model(), obs, un.Ranking(KERNEL, per_point=50), rng=2)
    assert abs(ours.estimate[0] - ranking.estimate[0]) < 3.0 * float(np.hypot(ours.se[0], ranking.se[0]))


def test_turns_back_have_their_mean_at_pi() -> None:
    back = VonMisesAngle().fit(np.array([3.0, -3.0, 2.5, -2.9]), np.ones(4))
    assert back.mean == pytest.approx(np.pi)
    assert back.kappa > 1
    on = VonMisesAngle().fit(np.array([0.1, -0.2, 0.3, 0.1]), np.ones(4))
    assert on.mean == 0.0
    free = VonMisesAngle("free").fit(np.array([1.0, 1.2, 0.9, 1.1]), np.ones(4))
    assert free.mean == pytest.approx(1.05, abs=0.01)
