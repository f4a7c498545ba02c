"""Laws of step lengths, as in step selection; parameters left None are fitted by maximum likelihood."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from ..errors import InputError, unknown
from .angles import UniformAngle, VonMisesAngle
from .base import is_number, parameters, root
from .laws import Law, Tiltable
from .quantiles import LOG_2PI, RadialTable

_MANY = 10_000  # numbers from which a table pays


class StepLaw(Tiltable):
    """The law of a step length r > 0."""

    @abstractmethod
    def fit(self, r: np.ndarray, weight: np.ndarray) -> StepLaw:
        """The law with its free parameters fitted to positive step lengths."""

    @abstractmethod
    def log_density(self, r: np.ndarray) -> np.ndarray:
        """log p(r)."""

    @abstractmethod
    def cdf(self, r: np.ndarray) -> np.ndarray:
        """F(r)."""

    @abstractmethod
    def quantile(self, u: np.ndarray) -> np.ndarray:
        """F⁻¹(u)."""


@final
@dataclass(frozen=True)
class Gamma(StepLaw):
    """p(r) ∝ r^(shape − 1) exp(−r/scale).

    Args:
        shape: fitted where None.
        scale: fitted where None.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(step=un.references.Gamma(2.0, 30.0)).step
        Gamma(shape=2.0, scale=30.0)
    """

    shape: Any = None
    scale: Any = None

    statistics = ("step", "log_step")

    def tilted(self, beta: Mapping[str, float]) -> Gamma:
        shape = self.shape + beta.get("log_step", 0.0)
        rate = 1.0 / self.scale - beta.get("step", 0.0)
        if not (shape > 0.0 and rate > 0.0):
            raise self._no_mass(f"shape {shape:.4g} and rate {rate:.4g} must be positive", beta)
        return Gamma(shape, 1.0 / rate)

    def slopes(self) -> dict[str, dict[str, float]]:
        return {"shape": {"log_step": 1.0}, "scale": {"step": self.scale**2}}

    def fit(self, r: np.ndarray, weight: np.ndarray) -> Gamma:
        from scipy.special import digamma

        mean, mean_log = np.average(r, weights=weight), np.average(np.log(r), weights=weight)
        shape, scale = self.shape, self.scale
        if shape is None and scale is None:
            gap = max(np.log(mean) - mean_log, 1e-12)
            shape = np.exp(root(lambda log_a: log_a - digamma(np.exp(log_a)) - gap, -30.0, 30.0))
        elif shape is None:
            target = mean_log - np.log(scale)
            shape = np.exp(root(lambda log_a: digamma(np.exp(log_a)) - target, -10.0, 30.0))
        shape = float(shape)
        return replace(self, shape=shape, scale=float(mean / shape) if scale is None else scale)

    def log_density(self, r: np.ndarray) -> np.ndarray:
        from scipy.special import gammaln

        a, b = self.shape, self.scale
        with np.errstate(divide="ignore"):
            return (a - 1.0) * np.log(r) - r / b - gammaln(a) - a * np.log(b)

    def cdf(self, r: np.ndarray) -> np.ndarray:
        from scipy.special import gammainc

        return self._table.cdf(r / self.scale) if np.size(r) > _MANY else gammainc(self.shape, r / self.scale)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import gammaincinv

        return self.scale * (self._table.quantile(u) if np.size(u) > _MANY else gammaincinv(self.shape, u))

    @cached_property
    def _table(self) -> RadialTable:
        from scipy.special import gammainc, gammaincinv

        a, unit = self.shape, replace(self, scale=1.0)
        return RadialTable(lambda r: gammainc(a, r), lambda u: gammaincinv(a, u), unit.log_density)


@final
@dataclass(frozen=True)
class Weibull(StepLaw):
    """F(r) = 1 − exp(−(r/scale)^shape).

    Args:
        shape: fitted where None.
        scale: fitted where None.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(step=un.references.Weibull(1.5, 30.0)).step
        Weibull(shape=1.5, scale=30.0)
    """

    shape: Any = None
    scale: Any = None

    statistics = ("step_power",)  # r^shape: the shape itself stays

    def written(self) -> dict[str, str]:
        return {"step_power": f"step ** {float(self.shape)!r}"}

    def tilted(self, beta: Mapping[str, float]) -> Weibull:
        rate = self.scale**-self.shape - beta.get("step_power", 0.0)
        if not rate > 0.0:
            raise self._no_mass(f"scale^−shape = {rate:.4g} must be positive", beta)
        return replace(self, scale=float(rate ** (-1.0 / self.shape)))

    def slopes(self) -> dict[str, dict[str, float]]:
        return {"scale": {"step_power": self.scale ** (self.shape + 1.0) / self.shape}}

    def fit(self, r: np.ndarray, weight: np.ndarray) -> Weibull:
        log_r = np.log(r)
        top = log_r.max()
        mean_log = np.average(log_r, weights=weight)

        def score(log_k: float) -> float:
            k = np.exp(log_k)
            power = weight * np.exp(k * (log_r - top))
            return float(power @ log_r / power.sum() - 1.0 / k - mean_log)

        shape = self.shape
        if shape is None:
            rough = -np.log(max(np.std(log_r), 1e-6))  # of log k, since the sd of log r is π/(k √6)
            shape = float(np.exp(root(score, rough - 4.0, rough + 4.0)))
        scale = self.scale
        if scale is None:
            scale = float(np.exp(top) * np.average(np.exp(shape * (log_r - top)), weights=weight) ** (1.0 / shape))
        return replace(self, shape=shape, scale=scale)

    def log_density(self, r: np.ndarray) -> np.ndarray:
        k, b = self.shape, self.scale
        with np.errstate(divide="ignore"):
            return np.log(k / b) + (k - 1.0) * np.log(r / b) - (r / b) ** k

    def cdf(self, r: np.ndarray) -> np.ndarray:
        return -np.expm1(-((r / self.scale) ** self.shape))

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return self.scale * (-np.log1p(-u)) ** (1.0 / self.shape)


@final
@dataclass(frozen=True)
class Exponential(StepLaw):
    """p(r) = exp(−r/scale)/scale.

    Args:
        scale: the mean; fitted where None.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(step=un.references.Exponential(30.0)).step
        Exponential(scale=30.0)
    """

    scale: Any = None

    statistics = ("step",)

    def wider(self, names: Collection[str]) -> StepLaw:
        return Gamma(1.0, self.scale) if "log_step" in names else self

    def tilted(self, beta: Mapping[str, float]) -> Exponential:
        rate = 1.0 / self.scale - beta.get("step", 0.0)
        if not rate > 0.0:
            raise self._no_mass(f"the rate {rate:.4g} must be positive", beta)
        return Exponential(1.0 / rate)

    def slopes(self) -> dict[str, dict[str, float]]:
        return {"scale": {"step": self.scale**2}}

    def fit(self, r: np.ndarray, weight: np.ndarray) -> Exponential:
        return replace(self, scale=float(np.average(r, weights=weight)) if self.scale is None else self.scale)

    def log_density(self, r: np.ndarray) -> np.ndarray:
        return -r / self.scale - np.log(self.scale)

    def cdf(self, r: np.ndarray) -> np.ndarray:
        return -np.expm1(-r / self.scale)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return -self.scale * np.log1p(-u)


@final
@dataclass(frozen=True)
class LogNormal(StepLaw):
    """log r ~ N(mu, sigma²).

    Args:
        mu: the mean of log r; fitted where None.
        sigma: its standard deviation; fitted where None.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(step=un.references.LogNormal(3.0, 0.5)).step
        LogNormal(mu=3.0, sigma=0.5)
    """

    mu: Any = None
    sigma: Any = None

    def _allowed(self, name: str, value: Any) -> bool:
        return is_number(value) if name == "mu" else is_number(value, 0.0, strict=True)

    statistics = ("log_step", "log_step2")

    def tilted(self, beta: Mapping[str, float]) -> LogNormal:
        precision = self.sigma**-2.0 - 2.0 * beta.get("log_step2", 0.0)
        if not precision > 0.0:
            raise self._no_mass(f"1/sigma² = {precision:.4g} must be positive", beta)
        mu = (self.mu * self.sigma**-2.0 + beta.get("log_step", 0.0)) / precision
        return LogNormal(mu, precision**-0.5)

    def slopes(self) -> dict[str, dict[str, float]]:
        v = self.sigma**2
        return {"mu": {"log_step": v, "log_step2": 2.0 * self.mu * v}, "sigma": {"log_step2": self.sigma**3}}

    def fit(self, r: np.ndarray, weight: np.ndarray) -> LogNormal:
        log_r = np.log(r)
        mu = float(np.average(log_r, weights=weight)) if self.mu is None else self.mu
        sigma = self.sigma
        if sigma is None:
            sigma = max(float(np.sqrt(np.average((log_r - mu) ** 2, weights=weight))), 1e-8)
        return replace(self, mu=mu, sigma=sigma)

    def log_density(self, r: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            log_r = np.log(r)
            value = -0.5 * ((log_r - self.mu) / self.sigma) ** 2 - log_r - np.log(self.sigma) - 0.5 * LOG_2PI
        return np.where(r > 0.0, value, -np.inf)

    def cdf(self, r: np.ndarray) -> np.ndarray:
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            return ndtr((np.log(r) - self.mu) / self.sigma)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import ndtri

        return np.exp(self.mu + self.sigma * ndtri(u))


@final
@dataclass(frozen=True)
class HalfNormal(StepLaw):
    """r = |N(0, scale²)|.

    Args:
        scale: fitted where None.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(step=un.references.HalfNormal(30.0)).step
        HalfNormal(scale=30.0)
    """

    scale: Any = None

    statistics = ("step2",)

    def tilted(self, beta: Mapping[str, float]) -> HalfNormal:
        precision = self.scale**-2.0 - 2.0 * beta.get("step2", 0.0)
        if not precision > 0.0:
            raise self._no_mass(f"1/scale² = {precision:.4g} must be positive", beta)
        return HalfNormal(precision**-0.5)

    def slopes(self) -> dict[str, dict[str, float]]:
        return {"scale": {"step2": self.scale**3}}

    def fit(self, r: np.ndarray, weight: np.ndarray) -> HalfNormal:
        scale = float(np.sqrt(np.average(r**2, weights=weight))) if self.scale is None else self.scale
        return replace(self, scale=scale)

    def log_density(self, r: np.ndarray) -> np.ndarray:
        return -0.5 * (r / self.scale) ** 2 - np.log(self.scale) + np.log(2.0) - 0.5 * LOG_2PI

    def cdf(self, r: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        return erf(r / (self.scale * np.sqrt(2.0)))

    def quantile(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import erfinv

        return self.scale * np.sqrt(2.0) * erfinv(u)


STEPS: Mapping[str, type[StepLaw]] = {
    "gamma": Gamma,
    "exponential": Exponential,
    "weibull": Weibull,
    "lognormal": LogNormal,
    "halfnormal": HalfNormal,
}
LAWS: Mapping[str, type[Law]] = {
    cls.__name__: cls for cls in (Gamma, Exponential, Weibull, LogNormal, HalfNormal, UniformAngle, VonMisesAngle)
}


def step_law(value: Any) -> StepLaw:
    """A step law from its name or itself."""
    if isinstance(value, StepLaw):
        return value
    if not isinstance(value, str) or value not in STEPS:
        raise InputError(unknown("step", value, STEPS) + " Or pass a law with its parameters, e.g. Gamma(2.0, 30.0).")
    return STEPS[value]()


def law_from_dict(description: Mapping[str, Any]) -> Law:
    """The law that `to_dict` described."""
    name = description.get("law")
    if not isinstance(name, str) or name not in LAWS:
        raise InputError(unknown("The 'law' of a description", name, LAWS))
    return LAWS[name](**parameters(description))
