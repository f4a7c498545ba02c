"""Energies that are networks: held-out likelihood on a ring with a known normaliser, and log Z with its error."""

import warnings

import numpy as np
import optax
import pytest

import unnorm as un
from unnorm.errors import CombinationError, InputError, UnnormWarning
from unnorm.references import Gaussian, GaussianMixture, Lattice, Uniform
from unnorm.solvers.stochastic import SGD, log_z

BOX = un.Box((-1, 1), (-1, 1))
RULE = BOX.quadrature(120)


def _ring(y: np.ndarray) -> np.ndarray:
    return -0.5 * ((np.hypot(y[:, 0], y[:, 1]) - 0.6) / 0.1) ** 2


LOG_Z_RING = float(np.log(RULE.weights @ np.exp(_ring(RULE.points))))


def _draw(n: int, rng: np.random.Generator) -> np.ndarray:
    y = rng.uniform(-1, 1, (12 * n, 2))
    kept = y[np.log(rng.random(len(y))) < _ring(y)]
    assert len(kept) >= n
    return kept[:n]


def _network(width: int, seed: int = 0) -> un.Energy:
    import equinox as eqx
    import jax

    net = eqx.nn.MLP(2, "scalar", width, 2, activation=jax.nn.silu, key=jax.random.key(seed))
    return un.Energy(lambda net, y: net(y), net, BOX)


def _train(model: un.Energy, obs: un.Observations, steps: int, objective: un.Logistic, **options) -> un.Fit:
    solver = SGD(
        optax.adam(optax.cosine_decay_schedule(1e-2, steps)),
        steps=steps,
        batch=500,
        references=4,
        block=100,
        average=0.9,
        dtype="float32",
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # a few hundred steps learn the ring, and are not at the maximum
        return un.fit(model, obs, objective, solver=solver, rng=1)


def _gap(model: un.Energy, theta: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Nats per point below the truth on held-out points, normalised by quadrature; and log Z by quadrature."""
    by_rule = float(np.log(RULE.weights @ np.exp(model.log_f(theta, RULE.points, ()))))
    held_out = float(np.mean(model.log_f(theta, test, ()) - by_rule))
    return float(np.mean(_ring(test)) - LOG_Z_RING) - held_out, by_rule


def test_two_hidden_layers_learn_a_ring() -> None:
    rng = np.random.default_rng(0)
    obs, test = un.iid(_draw(5000, rng)), _draw(5000, rng)
    model = _network(16)
    fit = _train(model, obs, 600, un.Logistic(Uniform(), total=20_000))
    gap, by_rule = _gap(model, fit.estimate, test)
    assert gap < 0.05
    # ν goes with the network's output bias: f + ν is normalised, neither alone means anything
    assert fit.nu[0] == pytest.approx(-by_rule, abs=0.05)
    z = log_z(fit, reference=GaussianMixture(10).bind(BOX, obs), n=20_000, rng=1)
    assert abs(z.value - by_rule) < 4 * z.se
    assert z.se < 0.01
    # the tree comes back with its own structure
    assert fit.theta.layers[0].weight.shape == (16, 2)


@pytest.mark.slow
def test_a_network_has_converged_when_little_is_left_to_gain() -> None:
    """The remedy of the warning, more steps on a longer schedule, makes it quiet; the objective has risen by then."""
    obs, model, objective = (
        un.iid(_draw(5000, np.random.default_rng(0))),
        _network(16),
        un.Logistic(Uniform(), total=20_000),
    )
    short, long = (_train(model, obs, steps, objective) for steps in (600, 2400))
    assert not short.converged
    assert "predicted to rise by" in short.reason
    assert "steps=2400" in short.reason
    assert long.converged
    assert long.diagnostics["left_in_se"] < short.diagnostics["left_in_se"]
    assert long.value > short.value + 10


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ncd", "importance"])
def test_a_mixture_reference_that_is_refreshed(loss: str) -> None:
    rng = np.random.default_rng(1)
    obs, test = un.iid(_draw(5000, rng)), _draw(5000, rng)
    objective = un.Logistic if loss == "ncd" else un.Importance
    model = _network(32)
    fit = _train(model, obs, 3000, objective(GaussianMixture(10), total=20_000), refresh=500)
    gap, _ = _gap(model, fit.estimate, test)
    assert gap < 0.05
    assert fit.diagnostics["effective_share"] > 0.5


@pytest.mark.slow
def test_log_z_within_two_standard_errors_in_90_of_100() -> None:
    rng = np.random.default_rng(2)
    obs = un.iid(_draw(5000, rng))
    model = _network(16)
    fit = _train(model, obs, 600, un.Logistic(Uniform(), total=20_000))
    _, by_rule = _gap(model, fit.estimate, obs.outcome)
    reference = GaussianMixture(10).bind(BOX, obs)
    for points in (None, Lattice()):
        found = [log_z(fit, reference=reference, n=8000, points=points, rng=seed) for seed in range(100)]
        inside = sum(abs(z.value - by_rule) < 2 * z.se for z in found)
        assert inside >= 90
        spread = np.std([z.value for z in found])
        assert spread == pytest.approx(np.mean([z.se for z in found]), rel=0.3)


def test_log_z_of_a_closed_form_and_its_warnings() -> None:
    model = un.Energy(lambda t, y: t * y, 0.0, un.Interval(-1, 1))
    for points in (None, Lattice()):
        found = [log_z(model, np.array([3.0]), n=4000, points=points, rng=seed) for seed in range(60)]
        inside = sum(abs(z.value - np.log(2 * np.sinh(3.0) / 3.0)) < 2 * z.se for z in found)
        assert 49 <= inside <= 60
    with pytest.warns(UnnormWarning, match="effective points"):
        log_z(model, np.array([80.0]), Gaussian(mean=-0.5, cov=0.2**2), n=2000, rng=1)
    with pytest.raises(InputError, match="theta"):
        log_z(model)
    chain = un.Energy(lambda t, y, x: t * y * x, 0.0, un.Interval(-1, 1))
    with pytest.raises(CombinationError, match="context"):
        log_z(chain, np.array([1.0]))
