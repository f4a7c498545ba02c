"""Ranking and conditional NCE on minibatches: the constants cancel, and fresh points leave only the data's error."""

import itertools

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError
from unnorm.references import BitFlip, Gaussian, Mixture, Uniform
from unnorm.solvers.stochastic import SGD, sources
from unnorm.solvers.stochastic.estimator import StepDesign, estimator

NORMAL = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 2))
ISING = un.ExponentialFamily(lambda y: (y.sum(), (y[:-1] * y[1:]).sum()), ("h", "J"), un.BinaryVectors(6))
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))


def _normal(n: int) -> un.Observations:
    y = np.random.default_rng(1).normal(0.4, 0.6, 4 * n)
    return un.iid(y[(y > -1) & (y < 2)][:n])


def _ising(n: int) -> un.Observations:
    states = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    p = np.exp(-0.5 * states.sum(axis=1) + 0.8 * (states[:, :-1] * states[:, 1:]).sum(axis=1))
    return un.iid(states[np.random.default_rng(0).choice(64, n, p=p / p.sum())])


CASES = {
    "normal": (NORMAL, _normal, Gaussian(cov=0.25, around="outcome")),  # truncated at both ends: forth ≠ back
    "mixture": (
        NORMAL,
        _normal,
        Mixture((0.5, Gaussian(cov=0.5, around="outcome")), (0.5, Gaussian(cov=0.05, around="outcome"))),
    ),
    "ising": (ISING, _ising, BitFlip()),
    "not around the outcome": (NORMAL, _normal, Gaussian(mean=0.5, cov=0.4)),
}


@pytest.mark.parametrize("case", [pytest.param("normal", marks=pytest.mark.slow), "ising"])
def test_conditional_nce_is_newton_s_averaged_over_its_points(case: str) -> None:
    model, draw, kernel = CASES[case]
    obs, redraws = draw(600), 12
    objective = un.ConditionalNCE(kernel, per_point=3)
    sgd = un.fit(model, obs, objective, solver=SGD(steps=400, batch=150), rng=1)
    fits = [un.fit(model, obs, objective, rng=seed) for seed in range(redraws)]
    several = np.array([fit.estimate for fit in fits])
    spread = several.std(axis=0, ddof=1)
    assert np.all(np.abs(sgd.estimate - several.mean(axis=0)) < 4 * spread / np.sqrt(redraws) + 0.1 * sgd.se)
    total = np.mean([fit.se**2 for fit in fits], axis=0)
    np.testing.assert_allclose(sgd.se**2, total - spread**2, rtol=0.45)  # what the points added is gone
    assert sgd.nu.size == 0
    assert sgd.converged


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("host", [False, True])
def test_the_gradient_of_conditional_nce_is_unbiased(case: str, host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the device and on the host, against the mean of Newton's objective over independent points."""
    model, draw, kernel = CASES[case]
    obs, theta = draw(40), np.array([0.3, 0.5])
    if host:
        monkeypatch.setattr(type(kernel.bind(model.domain, obs)), "traceable", lambda bound, obs: None)
    e = estimator(model, obs, kernel, un.PerContext(), StepDesign(batch=7, references=3), "conditional")
    assert isinstance(e.source, sources.HostSource) == host
    value, g, _ = e.gradients(theta, 3, 4000)
    k = kernel.bind(model.domain, obs).distinct or 200  # drawn without replacement where they are finitely many
    objective = un.ConditionalNCE(kernel, per_point=k)
    if case == "not around the outcome":  # Newton wants a kernel of each observation's own: written out instead
        bound, rng = kernel.bind(model.domain, obs), np.random.default_rng(5)
        at = np.repeat(np.arange(obs.n), 20_000)
        y = bound.sample(obs, at, rng)
        every = np.arange(obs.n)
        s, s0 = (model.jacobian(theta, rows, ()) for rows in (y, obs.outcome))
        d = s0[at] - s
        odds = d @ theta + bound.log_density(y, obs, at) - np.repeat(bound.log_density(obs.outcome, obs, every), 20_000)
        want_value = -np.logaddexp(0, -odds).mean() * 3 * obs.n
        want = (d * np.exp(-np.logaddexp(0, odds))[:, None]).mean(axis=0) * 3 * obs.n
        noise = np.zeros(2)
    else:
        problems = [objective.bind(model, obs, un.PerContext(), seed).derivatives(theta) for seed in range(40)]
        want_value = np.mean([d.value for d in problems]) * 3 / k
        slopes = np.array([d.gradient for d in problems]) * 3 / k
        want, noise = slopes.mean(axis=0), slopes.var(axis=0, ddof=1) / 40
    z = (g.mean(axis=0) - want) / np.sqrt(g.var(axis=0, ddof=1) / len(g) + noise)
    assert np.max(np.abs(z)) < 4
    assert value.mean() == pytest.approx(want_value, rel=0.02)


@pytest.mark.slow
def test_ranking_needs_no_normaliser_and_no_optimiser() -> None:
    obs = un.transitions(un.datasets.toy_chain(1000, 0.5, 5.0, rng=1))
    ml = un.fit(TOY, obs)
    sgd = un.fit(TOY, obs, un.Ranking(Uniform(), per_point=20), solver=SGD(steps=200, batch=200), rng=1)
    assert np.all(np.abs(sgd.estimate - ml.estimate) < 0.5 * ml.se)  # ranking loses some efficiency, and no more
    assert np.all(sgd.se > 0.98 * ml.se)
    assert np.all(sgd.se < 1.4 * ml.se)
    assert sgd.nu.size == 0


def test_other_losses_refuse_a_kernel_around_the_outcome() -> None:
    with pytest.raises(CombinationError, match=r"un\.ConditionalNCE"):
        un.fit(NORMAL, _normal(50), un.Logistic(Gaussian(around="outcome"), total=100), solver=SGD(), rng=1)
