"""Langevin and NUTS against the exact posterior of the toy chain, by quadrature over θ."""

from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.bayes.draws import Draws
from unnorm.bayes.langevin import Langevin
from unnorm.bayes.nuts import NUTS
from unnorm.bayes.sampling import sample
from unnorm.errors import CombinationError, UnnormWarning
from unnorm.models.priors import Normal
from unnorm.solvers.stochastic import DivergenceError, Features

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHI = Features(lambda x: (1.0, x, x**2, x**3, x**4))
NORMAL = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))


def _posterior(obs: un.Observations, prior_sd: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds of θ under 𝓛 (closed-form log Z), on a grid of ± 6 sd."""
    ml = un.fit(TOY, obs)
    y, x = obs.outcome[:, 0], obs.context["y_prev"]
    axes = [m + s * np.linspace(-6, 6, 61) for m, s in zip(ml.estimate, ml.se)]
    a, b = np.meshgrid(*axes, indexing="ij")
    log_z = un.datasets.toy_log_normaliser(a.ravel()[:, None], b.ravel()[:, None], x[None, :]).sum(axis=1)
    log_p = a.ravel() * y.sum() - 0.5 * b.ravel() * np.sum((y - x) ** 2) - log_z
    log_p -= 0.5 * (a.ravel() ** 2 + b.ravel() ** 2) / prior_sd**2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    t = np.column_stack([a.ravel(), b.ravel()])
    mean = p @ t
    return mean, np.sqrt(p @ (t - mean) ** 2)


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))


def test_langevin_agrees_with_the_exact_posterior(obs: un.Observations, tmp_path: Path) -> None:
    mean, sd = _posterior(obs)
    draws = sample(TOY, obs, Langevin(draws=1000, thin=10, batch=60, references=10), normaliser=CHI, rng=1)
    assert np.all(np.abs(draws.mean - mean) < 0.1 * sd)
    np.testing.assert_allclose(draws.sd, sd, rtol=0.15)
    assert np.all(draws.rhat < 1.03)
    assert np.all(draws.ess > 400)
    assert draws.diagnostics["sd_inflation"] < 1.05
    tree = draws.tree
    assert tree["posterior"]["theta1"].dims == ("chain", "draw")
    assert tree["posterior"]["nu"].shape == (4, 1000, 5)
    assert "theta2" in draws.summary()
    draws.save(tmp_path / "draws")
    again = un.load(tmp_path / "draws")
    assert isinstance(again, Draws)
    np.testing.assert_array_equal(again.theta, draws.theta)


@pytest.mark.slow
def test_nuts_agrees_with_the_exact_posterior(obs: un.Observations) -> None:
    mean, sd = _posterior(obs)
    draws = sample(TOY, obs, NUTS(draws=1000, warmup=300), rng=1)
    assert np.all(np.abs(draws.mean - mean) < 0.1 * sd)
    np.testing.assert_allclose(draws.sd, sd, rtol=0.1)
    assert np.all(draws.rhat < 1.02)
    # ν_t | θ: e^{ν_t} Z_t is exponential with mean 1, whatever θ
    t = draws.theta.reshape(-1, 2)
    z = np.exp(un.datasets.toy_log_normaliser(t[:, 0], t[:, 1], obs.context["y_prev"][7]))
    unit = np.exp(draws.nu[:, :, 7].ravel()) * z
    assert unit.mean() == pytest.approx(1.0, abs=0.08)
    assert unit.std() == pytest.approx(1.0, abs=0.12)


@pytest.mark.slow
def test_nuts_with_a_prior_and_smooth_chi(obs: un.Observations) -> None:
    mean, sd = _posterior(obs, prior_sd=1.0)
    draws = sample(TOY, obs, NUTS(draws=1000, warmup=300), prior=Normal(1.0), normaliser=CHI, rng=2)
    flat, _ = _posterior(obs)
    assert abs(flat[1] - mean[1]) > sd[1]  # the prior matters
    assert np.all(np.abs(draws.mean - mean) < 0.15 * sd)
    np.testing.assert_allclose(draws.sd, sd, rtol=0.15)


@pytest.mark.slow
def test_nuts_integrates_the_constant_of_iid_data_out() -> None:
    """One parameter, conjugate-like: the posterior of a under exp(a y) on [−1, 1] by quadrature."""
    y = un.datasets.toy_chain(60, 0.8, 0.0, rng=3)
    draws = sample(NORMAL, un.iid(y), NUTS(draws=600, warmup=150, chains=2), rng=1)
    a = np.linspace(-3, 4, 2001)
    log_p = a * y.sum() - len(y) * un.datasets.toy_log_normaliser(a, 0.0, 0.0)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ a
    sd = np.sqrt(p @ (a - mean) ** 2)
    assert abs(draws.mean[0] - mean) < 0.15 * sd
    assert draws.sd[0] == pytest.approx(sd, rel=0.12)
    assert draws.nu.shape == (2, 600, 1)
    stats = draws.tree["sample_stats"]
    assert stats["diverging"].shape == (2, 600)
    assert 0.6 < float(stats["acceptance_rate"].mean()) < 1.0
    assert int(stats["n_steps"].min()) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["sgld", "sghmc"])
def test_kernels_and_control_variates(obs: un.Observations, kernel: str) -> None:
    mean, sd = _posterior(obs)
    h = 0.05 if kernel == "sgld" else 0.1
    draws = sample(TOY, obs, Langevin(draws=2000, thin=5, batch=100, kernel=kernel, step_size=h), normaliser=CHI, rng=3)
    assert np.all(np.abs(draws.mean - mean) < 0.15 * sd)
    np.testing.assert_allclose(draws.sd, sd, rtol=0.15)


@pytest.mark.slow
def test_too_large_a_step_inflates_as_the_formula_says(obs: un.Observations) -> None:
    """h = 0.8: standard deviations are √(1/(1 − h/2)) = 1.29 times too large, and the run says so."""
    _, sd = _posterior(obs)
    with pytest.warns(UnnormWarning, match="inflates"):
        draws = sample(TOY, obs, Langevin(draws=4000, thin=1, batch=100, step_size=0.8), normaliser=CHI, rng=1)
    ratio = draws.sd / sd
    assert np.all(ratio > 1.15)
    np.testing.assert_allclose(ratio, draws.diagnostics["sd_inflation"], rtol=0.12)


def test_refusals(obs: un.Observations) -> None:
    with pytest.raises(CombinationError, match="NUTS"):
        sample(TOY, obs, Langevin(), rng=1)  # one ν_t each
    with pytest.raises(CombinationError, match="sampler must be"):
        sample(TOY, obs, object(), rng=1)


@pytest.mark.slow
def test_divergence_names_the_step_size(obs: un.Observations) -> None:
    with pytest.raises(DivergenceError, match="smaller step_size"):
        sample(TOY, obs, Langevin(draws=50, warmup=50, batch=50, step_size=50.0), normaliser=CHI, rng=1)


def test_a_way_to_the_mode_that_diverges_twice_goes_by_the_logistic_loss(
    obs: un.Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Langevin(draws=20, warmup=5, thin=2, chains=2, batch=50)
    want = sample(TOY, obs, sampler, normaliser=un.Constant(), rng=1).diagnostics["mode"]
    climb, losses = un.SGD.climb, []

    def diverging(self, e, random):
        losses.append(e.loss)
        if e.loss == "poisson":
            raise DivergenceError("It diverged.", 1, np.zeros(1))
        return climb(self, e, random)

    monkeypatch.setattr(un.SGD, "climb", diverging)
    found = sample(TOY, obs, sampler, normaliser=un.Constant(), rng=1).diagnostics["mode"]
    assert losses == ["poisson", "poisson", "ncd"]
    np.testing.assert_allclose(found, want, atol=0.3)


def test_draws_show_themselves_in_a_line() -> None:
    draws = un.Draws(tuple("abcdefgh"), np.zeros((4, 1000, 8)), np.zeros((4, 1000, 0)), {})
    assert repr(draws) == "Draws(a, b, c, d, e, f, …: 4 chains of 1,000)"
