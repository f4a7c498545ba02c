"""The same numbers on a GPU as on the CPU, up to rounding. Skipped where JAX has no GPU:

python -m pytest tests/stochastic/test_gpu.py -rs
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np
import optax
import pytest

import unnorm as un
from unnorm.bayes.langevin import Langevin
from unnorm.bayes.sampling import sample
from unnorm.references import IID, Uniform
from unnorm.solvers.stochastic import SGD, Features, log_z, unbiased_gradient

T = TypeVar("T")


def _gpu() -> jax.Device | None:
    return next((device for device in jax.devices() if device.platform == "gpu"), None)


pytestmark = pytest.mark.skipif(_gpu() is None, reason="JAX has no GPU here")

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHI = Features(lambda x: (1.0, x, x**2, x**3))
BOX = un.Box((-1, 1), (-1, 1))


def _both(function: Callable[[], T]) -> tuple[T, T]:
    """On the CPU and on the GPU."""
    out = []
    for device in (jax.devices("cpu")[0], _gpu()):
        with jax.default_device(device):
            out.append(function())
    return out[0], out[1]


def _chain() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(2000, 0.5, 5.0, rng=1))


def _network() -> un.Energy:
    rng = np.random.default_rng(0)
    sizes = [(2, 64), (64, 64), (64, 1)]
    layers = [{"w": rng.normal(0, (2 / a) ** 0.5, (a, b)), "b": np.zeros(b)} for a, b in sizes]

    def f(layers, y):
        for layer in layers[:-1]:
            y = jax.nn.silu(y @ layer["w"] + layer["b"])
        return (y @ layers[-1]["w"] + layers[-1]["b"])[0]

    return un.Energy(f, layers, BOX)


@pytest.mark.parametrize(("dtype", "share"), [("float64", 1e-9), ("float32", 1e-2)])
@pytest.mark.parametrize("objective", ["poisson", "logistic"])
def test_the_same_fit(objective: str, dtype: str, share: float) -> None:
    loss = un.Poisson() if objective == "poisson" else un.Logistic(Uniform(), per_point=5)
    solver = SGD(steps=200, batch=200, dtype=dtype)
    cpu, gpu = _both(lambda: un.fit(TOY, _chain(), loss, CHI, solver=solver, rng=1))
    assert np.all(np.abs(cpu.estimate - gpu.estimate) < share * cpu.se)
    np.testing.assert_allclose(gpu.se, cpu.se, rtol=max(share, 1e-6))
    np.testing.assert_allclose(gpu.nu, cpu.nu, atol=share)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 2e-4)])
def test_the_same_network_with_points_drawn_on_the_device(dtype: str, tolerance: float) -> None:
    """Enough points for the generator inside the loop; few steps, since rounding grows with them."""
    rng = np.random.default_rng(1)
    angle, radius = rng.uniform(0, 2 * np.pi, 5000), rng.normal(0.6, 0.1, 5000).clip(0.05, 0.95)
    obs = un.iid(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
    model = _network()
    solver = SGD(optax.adam(1e-3), steps=10, block=5, batch=2500, references=10, points=IID(), dtype=dtype, average=0.0)
    cpu, gpu = _both(lambda: un.fit(model, obs, un.Logistic(Uniform(), total=50_000), solver=solver, rng=1))
    np.testing.assert_allclose(gpu.estimate, cpu.estimate, atol=tolerance)
    z_cpu, z_gpu = _both(lambda: log_z(model, cpu.estimate, n=50_000, rng=2))
    assert z_gpu.value == pytest.approx(z_cpu.value, abs=1e-9)


def test_the_same_gradient() -> None:
    cpu, gpu = _both(lambda: unbiased_gradient(TOY, _chain(), Uniform(), [0.4, 4.0], normaliser=CHI, batch=100, rng=1))
    np.testing.assert_allclose(gpu.theta, cpu.theta, rtol=1e-9)


def test_the_same_draws() -> None:
    pytest.importorskip("blackjax")
    sampler = Langevin(draws=100, warmup=50, thin=2, batch=100)
    cpu, gpu = _both(lambda: sample(TOY, _chain(), sampler, normaliser=CHI, rng=1))
    np.testing.assert_allclose(gpu.theta, cpu.theta, rtol=1e-6)
