"""Every reference on every Ω it takes, with observations to bind it to: the registry of the generic tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import unnorm as un
from unnorm import domains
from unnorm.references import (
    BitFlip,
    Custom,
    Empirical,
    Gamma,
    Gaussian,
    GaussianMixture,
    LogNormal,
    Marginal,
    Mixture,
    ProductBernoulli,
    Reference,
    StepKernel,
    Uniform,
    VonMises,
    VonMisesAngle,
    VonMisesFisher,
    Weibull,
)


@dataclass(frozen=True)
class Case:
    """A reference on a domain; `tolerance` is for its integral by the domain's rule of this order."""

    domain: Callable[[], domains.Domain]
    reference: Reference
    order: int | None = None
    tolerance: float = 1e-9
    lags: int = 1


def transitions(domain: domains.Domain, n: int = 40, lags: int = 1, seed: int = 0) -> un.Observations:
    """Pairs of points of Ω, the outcome somewhat nearer to the context than by chance."""
    rng = np.random.default_rng(seed)
    y, *before = (domain.uniform(n, rng) for _ in range(lags + 1))
    names = tuple(f"y{j}" for j in range(domain.dim))
    if not domain.finite and domain.period is None and domain.cube_dim == domain.dim:
        near = 0.5 * (y + before[0])
        y = np.where(domain.contains(near)[:, None], near, y)
    context = {}
    for lag, points in enumerate(before, start=1):
        suffix = "_prev" if lag == 1 else f"_prev{lag}"
        context |= {name + suffix: points[:, j] for j, name in enumerate(names)}
    return un.Observations("transitions", y, names, context, lags=lags)


def star() -> domains.Domain:
    return domains.REGISTRY["Window"].examples[1]()


def box3() -> domains.Domain:
    return un.Box((-1, 1), (0, 1), (2, 5))


def interval() -> domains.Domain:
    return un.Interval(-1, 1)


def screen() -> domains.Domain:
    return un.Box((0, 8), (0, 6))


def weighted() -> domains.Domain:
    return un.FiniteSet([[0, 1], [2, 3.5], [-1, 0]], weights=[1, 2.5, 0.5])


def _ramp_sample(rng, n, x):
    return 2.0 * np.sqrt(rng.random(n)) - 1.0


def _ramp(y, x):
    with np.errstate(divide="ignore"):
        return np.log(0.5 * (y + 1.0))


CASES: dict[str, Case] = {
    **{f"uniform-{name}": Case(entry.examples[0], Uniform()) for name, entry in domains.REGISTRY.items()},
    "uniform-places": Case(screen, Uniform("places")),
    "uniform-star": Case(star, Uniform("steps")),
    "gaussian-interval": Case(interval, Gaussian()),
    "gaussian-interval-outside": Case(interval, Gaussian(mean=-4.0, cov=0.5)),
    "gaussian-interval-step": Case(interval, Gaussian(around="context")),
    "gaussian-interval-outcome": Case(interval, Gaussian(around="outcome", cov=0.04)),
    "gaussian-box": Case(screen, Gaussian(scale=1.5), 60),
    "gaussian-box-step": Case(screen, Gaussian(around="context"), 60),
    "gaussian-box-correlated": Case(screen, Gaussian(around="context", cov=((2.0, 1.0), (1.0, 1.5))), 80),
    "gaussian-box-wide": Case(screen, Gaussian(cov=((50.0, 10.0), (10.0, 40.0))), 60),
    "gaussian-box3": Case(box3, Gaussian(around="context", mean=0.0), 30),
    "gaussian-box3-correlated": Case(box3, Gaussian(mean=(0.2, 0.4, 3.0), diagonal=False, scale=1.2), 30, 1e-5),
    "gaussian-mixture": Case(interval, GaussianMixture(3)),
    "gaussian-mixture-box": Case(screen, GaussianMixture(4, defensive=0.2), 120),
    "gaussian-star": Case(star, Gaussian(), 80),
    "gaussian-star-step": Case(star, Gaussian(around="context", cov=0.5), 80),
    "gaussian-star-wide": Case(star, Gaussian(cov=9.0), 60),
    "gaussian-circle": Case(un.Circle, Gaussian()),
    "gaussian-circle-step": Case(un.Circle, Gaussian(around="context", cov=0.3)),
    "vonmises": Case(un.Circle, VonMises()),
    "vonmises-step": Case(un.Circle, VonMises(kappa=3.0, around="context")),
    "vonmises-sharp": Case(un.Circle, VonMises(mu=1.0, kappa=200.0)),
    "fisher": Case(un.Sphere, VonMisesFisher()),
    "fisher-step": Case(un.Sphere, VonMisesFisher(kappa=4.0, around="context")),
    "fisher-outcome": Case(un.Sphere, VonMisesFisher(kappa=10.0, around="outcome")),
    # the density is r^(shape − 2) at the context: with these laws it is bounded, with a kink that slows the rule
    "steps-gamma": Case(screen, StepKernel(Gamma(3.0, 0.8)), 240, 2e-5),
    "steps-fitted": Case(screen, StepKernel(), 240, 2e-3),
    "steps-weibull-heading": Case(screen, StepKernel(Weibull(2.0, 2.0), "heading"), 240, 2e-3),
    "steps-lognormal-turn": Case(screen, StepKernel(LogNormal(0.7, 0.4), VonMisesAngle(kappa=2.0)), 240, 1e-4, lags=2),
    "steps-star": Case(star, StepKernel(Gamma(4.0, 0.3), "vonmises"), 160, 1e-4, lags=2),
    "empirical-interval": Case(interval, Empirical()),
    "empirical-box": Case(screen, Empirical(centres=30), 60),
    "empirical-star": Case(star, Empirical(bandwidth=(0.4, 0.6)), 80),
    "empirical-circle": Case(un.Circle, Empirical()),
    "empirical-sphere": Case(un.Sphere, Empirical(bandwidth=0.4)),
    "mixture": Case(screen, Mixture((1, Uniform()), (3, Gaussian(around="context")), (1, Empirical(centres=20))), 60),
    "bernoulli": Case(lambda: un.BinaryVectors(8), ProductBernoulli()),
    "bernoulli-step": Case(lambda: un.BinaryVectors(5), ProductBernoulli(around="context")),
    "bernoulli-graph": Case(lambda: un.Graphs(4), ProductBernoulli(0.3)),
    "flip": Case(lambda: un.Graphs(3, directed=True), BitFlip()),
    "marginal": Case(weighted, Marginal()),
    "marginal-bits": Case(lambda: un.BinaryVectors(4), Marginal(add=0.5)),
    "custom": Case(interval, Custom(_ramp_sample, _ramp, name="ramp")),
}
