"""Laws of steps and turns, and the kernel made of them, against SciPy and against direct integration."""

from __future__ import annotations

import numpy as np
import pytest
from reference_cases import screen, star, transitions
from scipy import stats

import unnorm as un
from unnorm.errors import CombinationError, InputError, OutsideError
from unnorm.references import (
    Exponential,
    Gamma,
    HalfNormal,
    LogNormal,
    StepKernel,
    UniformAngle,
    VonMisesAngle,
    Weibull,
)

LAWS = {
    "gamma": (Gamma(2.5, 3.0), stats.gamma(2.5, scale=3.0)),
    "gamma-rough": (Gamma(0.6, 1.0), stats.gamma(0.6)),
    "exponential": (Exponential(2.0), stats.expon(scale=2.0)),
    "weibull": (Weibull(1.7, 3.0), stats.weibull_min(1.7, scale=3.0)),
    "lognormal": (LogNormal(0.5, 0.8), stats.lognorm(0.8, scale=np.exp(0.5))),
    "halfnormal": (HalfNormal(2.0), stats.halfnorm(scale=2.0)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("size", [101, 20_001])  # from 10,000 numbers on the gamma law uses a table
def test_step_laws_are_scipys(name, size):
    law, expected = LAWS[name]
    u = (np.arange(size) + 0.5) / size
    r = expected.ppf(u)
    assert law.quantile(u) == pytest.approx(r, rel=1e-9)
    assert law.cdf(r) == pytest.approx(u, abs=1e-9)
    assert law.log_density(r) == pytest.approx(expected.logpdf(r), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_fitted_step_laws_are_maximum_likelihood(name):
    """No neighbouring parameter does better, and weights count as repetitions."""
    law, expected = LAWS[name]
    r = expected.rvs(300, random_state=np.random.default_rng(1))
    weight = np.random.default_rng(2).integers(1, 4, 300).astype(float)
    fitted = type(law)().fit(r, weight)
    repeated = type(law)().fit(np.repeat(r, weight.astype(int)), np.ones(int(weight.sum())))
    best = weight @ fitted.log_density(r)
    for field in fitted.to_dict():
        if field == "law":
            continue
        value = getattr(fitted, field)
        assert value == pytest.approx(getattr(repeated, field), rel=1e-6)
        for factor in (0.99, 1.01):
            other = type(law)(
                **{**{k: getattr(fitted, k) for k in fitted.to_dict() if k != "law"}, field: value * factor}
            )
            assert weight @ other.log_density(r) < best
    given = {field: getattr(law, field) for field in list(law.to_dict())[1:2]}
    assert type(law)(**given).fit(r, weight).to_dict()[next(iter(given))] == next(iter(given.values()))


def ray_mass(omega, c, law, density, directions=4000):
    """∫ p(φ) Σ ± F(r at the crossings) dφ by the trapezoid rule over directions and shapely's own intersections."""
    import shapely

    total = 0.0
    for phi in (np.arange(directions) + 0.5) * 2 * np.pi / directions:
        ray = shapely.LineString([c, c + 100.0 * np.array([np.cos(phi), np.sin(phi)])])
        for piece in shapely.get_parts(shapely.intersection(omega.polygon, ray)):
            if piece.geom_type == "LineString" and piece.length > 0:
                r = np.sort(np.hypot(*(np.array(piece.coords) - c).T))
                total += density(phi) * (law.cdf(r[-1:]) - law.cdf(r[:1]))[0]
    return total * 2 * np.pi / directions


def test_constant_against_ray_casting():
    omega = star()
    obs = transitions(omega, lags=2)
    turn = VonMisesAngle(mean=0.3, kappa=1.5)
    q = StepKernel(Gamma(1.2, 0.9), turn).bind(omega, obs)
    heading = np.arctan2(*(obs.previous(1) - obs.previous(2)).T[::-1])
    for t in (0, 5):
        density = stats.vonmises(1.5, loc=heading[t] + 0.3).pdf
        expected = ray_mass(omega, obs.previous()[t], q.step, density)
        y = q.sample(obs, np.array([t]), np.random.default_rng(0))
        r, phi = np.hypot(*(y - obs.previous()[t])[0]), np.arctan2(*(y - obs.previous()[t])[0][::-1])
        log_q = np.log(density(phi)) + stats.gamma(1.2, scale=0.9).logpdf(r) - np.log(r) - np.log(expected)
        assert q.log_density(y, obs, np.array([t]))[0] == pytest.approx(log_q, abs=2e-3)


def test_steps_and_turns_of_the_draws():
    """Far from the boundary the draws have the laws themselves."""
    omega = un.Box((-1000, 1000), (-1000, 1000))
    n = 4000
    rng = np.random.default_rng(0)
    before, at = rng.uniform(-50, 50, (2, n, 2))
    y = at + rng.normal(0, 5, (n, 2))
    context = {"x_prev": at[:, 0], "y_prev": at[:, 1], "x_prev2": before[:, 0], "y_prev2": before[:, 1]}
    obs = un.Observations("transitions", y, ("x", "y"), context, lags=2)
    q = StepKernel(Weibull(1.5, 10.0), VonMisesAngle(kappa=2.0)).bind(omega, obs)
    step = q.sample(obs, np.arange(n), rng) - at
    assert stats.kstest(np.hypot(*step.T), stats.weibull_min(1.5, scale=10.0).cdf).pvalue > 1e-3
    heading = np.arctan2(*(at - before).T[::-1])
    turn = np.mod(np.arctan2(*step.T[::-1]) - heading + np.pi, 2 * np.pi) - np.pi
    assert stats.kstest(turn, stats.vonmises(2.0).cdf).pvalue > 1e-3


def test_no_heading_means_any_turn():
    """Where the previous step has length zero, all directions are alike, and the density still integrates to one."""
    omega = screen()
    obs = transitions(omega, lags=2)
    still = {name: column.copy() for name, column in obs.context.items()}
    still["y0_prev2"][0], still["y1_prev2"][0] = still["y0_prev"][0], still["y1_prev"][0]
    obs = un.Observations("transitions", obs.outcome, obs.outcome_names, still, lags=2)
    turning = StepKernel(Gamma(3.0, 0.8), VonMisesAngle(kappa=3.0)).bind(omega, obs)
    free = StepKernel(Gamma(3.0, 0.8), UniformAngle()).bind(omega, obs)
    y = omega.uniform(30, 1)
    at = np.zeros(30, dtype=int)
    assert turning.log_density(y, obs, at) == pytest.approx(free.log_density(y, obs, at), abs=1e-7)


def test_what_step_kernels_refuse():
    obs = transitions(screen())
    with pytest.raises(InputError, match="step must be one of 'gamma'"):
        StepKernel("gauss")
    with pytest.raises(InputError, match="scale of Exponential must be a positive number"):
        StepKernel(Exponential(-1.0))
    with pytest.raises(InputError, match="turn must be one of 'uniform'"):
        StepKernel(turn="left")
    with pytest.raises(InputError, match="lags=2"):
        StepKernel(turn="vonmises").bind(screen(), obs)
    with pytest.raises(CombinationError, match=r"box or a window in the plane.*VonMisesFisher"):
        StepKernel().bind(un.Sphere(), transitions(un.Sphere()))
    with pytest.raises(CombinationError, match="iid observations do not have"):
        StepKernel().bind(screen(), un.Observations("iid", obs.outcome, ("x", "y")))
    stuck = obs.outcome.copy()
    stuck[17] = obs.previous()[17]
    again = un.Observations("transitions", stuck, obs.outcome_names, obs.context, lags=1, row=np.arange(40) + 100)
    with pytest.raises(OutsideError, match="length 0, the first at row 117"):
        StepKernel().bind(screen(), again)
