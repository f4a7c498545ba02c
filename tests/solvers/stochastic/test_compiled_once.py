"""A second run of the same model on arrays of the same shapes compiles nothing."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import jax
import numpy as np
import optax
import pytest

import unnorm as un
from unnorm.bayes.langevin import Langevin
from unnorm.bayes.sampling import sample
from unnorm.errors import UnnormWarning
from unnorm.references import IID, GaussianMixture, Uniform
from unnorm.solvers.stochastic import SGD, Features

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHI = Features(lambda x: (1.0, x, x**2, x**3))
NET = un.Energy(lambda w, y: w["b"] @ y + w["c"] @ y**2, {"b": np.zeros(2), "c": np.zeros(2)}, un.Box((-1, 1), (-1, 1)))


@contextmanager
def compilations() -> Iterator[list[str]]:
    """What XLA compiles inside the block."""
    seen: list[str] = []
    active = True

    def listen(event: str, duration: float, **about: object) -> None:
        if active and event.endswith("backend_compile_duration"):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    active = False


def _chain(seed: int) -> un.Observations:
    return un.transitions(un.datasets.toy_chain(400, 0.5, 5.0, rng=seed))


def test_the_counter_counts() -> None:
    with compilations() as seen:
        jax.jit(lambda x: x + 3.25)(1.0)
    assert seen


def test_a_second_fit_compiles_nothing() -> None:
    def fit(seed: int) -> un.Fit:
        return un.fit(TOY, _chain(seed), un.Poisson(), CHI, solver=SGD(steps=100, batch=50), rng=seed)

    first = fit(1)
    with compilations() as seen:
        second = fit(2)
    assert not seen
    assert not np.allclose(first.estimate, second.estimate)  # other data, other numbers


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["logistic", "ranking"])
def test_other_losses_and_optimisers_too(objective: str) -> None:
    optimiser = optax.adam(0.05)
    loss = un.Logistic(Uniform(), per_point=3) if objective == "logistic" else un.Ranking(Uniform(), per_point=3)

    def fit(seed: int, optimiser: optax.GradientTransformation) -> None:
        normaliser = CHI if objective == "logistic" else None
        solver = SGD(optimiser, steps=100, batch=50)
        un.fit(TOY, _chain(seed), loss, normaliser, solver=solver, rng=seed)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # a short run need not converge
        fit(1, optimiser)
        with compilations() as seen:
            fit(2, optimiser)
        assert not seen
        with compilations() as seen:
            fit(2, optax.adam(0.01))  # the loop alone has to be compiled again
        assert len(seen) <= 2


@pytest.mark.slow
def test_refreshing_a_reference_compiles_nothing_more() -> None:
    y = np.random.default_rng(0).normal(0.0, 0.4, (600, 2)).clip(-1, 1)
    objective = un.Logistic(GaussianMixture(3), total=1800)

    optimiser = optax.adam(0.02)

    def fit(refresh: int | None) -> None:
        solver = SGD(optimiser, steps=150, batch=100, refresh=refresh, points=IID())
        un.fit(NET, un.iid(y), objective, solver=solver, rng=1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # a short run need not converge
        fit(None)
        with compilations() as seen:
            fit(50)
        assert len(seen) <= 2  # f at the points that the mixture is refitted to
        with compilations() as seen:
            fit(50)
        assert not seen


@pytest.mark.slow
def test_a_second_sample_compiles_nothing() -> None:
    sampler = Langevin(draws=50, warmup=20, thin=2, batch=50)

    def draws(seed: int) -> None:
        sample(TOY, _chain(seed), sampler, normaliser=CHI, rng=seed)

    draws(1)
    with compilations() as seen:
        draws(2)
    assert not seen
