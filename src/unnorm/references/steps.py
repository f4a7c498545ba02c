"""Laws of step lengths and of angles, as in step selection; parameters left None are fitted by maximum likelihood."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from ..errors import InputError, unknown
from .base import is_number, parameters, root
from .directional import concentration_circle
from .kernels import log_bessel0
from .laws import Law, Tiltable
from .quantiles import LOG_2PI, Quantile, RadialTable, circular_quantile

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


class AngleLaw(Tiltable):
    """The law of a direction, relative to `base`: the previous heading (turns) or zero (headings)."""

    @property
    def needs_heading(self) -> bool:
        """Whether the law is of the turn, so that the previous heading must be known (lags=2)."""
        return False

    @property
    def concentration(self) -> float:
        """κ, for the number of quadrature nodes."""
        return 0.0

    @abstractmethod
    def fit(self, angle: np.ndarray, weight: np.ndarray) -> AngleLaw:
        """The law with its free parameters fitted to angles relative to their base."""

    @abstractmethod
    def log_density(self, angle: np.ndarray) -> np.ndarray:
        """log p of the angle relative to its base."""

    @abstractmethod
    def quantile(self, u: np.ndarray) -> np.ndarray:
        """A continuous map from (0, 1) with this law."""


@final
@dataclass(frozen=True)
class UniformAngle(AngleLaw):
    """All directions equally likely.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(turn="uniform").turn
        UniformAngle()
    """

    statistics = ("cos_turn", "sin_turn")

    @property
    def moved_by(self) -> tuple[str, ...]:
        return self.statistics[:1]

    def tilted(self, beta: Mapping[str, float]) -> VonMisesAngle:
        return VonMisesAngle(0.0, 0.0).tilted(beta)

    def fit(self, angle: np.ndarray, weight: np.ndarray) -> UniformAngle:
        return self

    def log_density(self, angle: np.ndarray) -> np.ndarray:
        return np.full(np.shape(angle), -LOG_2PI)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return 2.0 * np.pi * u - np.pi


@final
@dataclass(frozen=True)
class VonMisesAngle(AngleLaw):
    """exp(κ cos(φ − mean)) / 2π I₀(κ), of the turn (from the previous heading) or of the heading itself.

    Where neither is given, the mean turn is 0 or π, whichever the data are nearer to: animals go on, or turn back. With
    a given κ it is 0, and with `mean="free"` it is fitted. The mean heading is fitted unless given.

    Args:
        mean: the mean turn or heading, a number, "free" or None.
        kappa: the concentration; fitted where None.
        of: "turn" or "heading".

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(turn=un.references.VonMisesAngle(kappa=2.0)).turn.kappa
        2.0
    """

    mean: Any = None
    kappa: Any = None
    of: Literal["turn", "heading"] = "turn"

    def __post_init__(self) -> None:
        if self.of not in ("turn", "heading"):
            raise InputError(unknown("of", self.of, ("turn", "heading")))
        for name, least in (("mean", -np.inf), ("kappa", 0.0)):
            value = getattr(self, name)
            if value is not None and not is_number(value, least) and (name, value) != ("mean", "free"):
                raise InputError(f"{name} of VonMisesAngle must be a finite number (kappa at least 0); got {value!r}.")

    @property
    def statistics(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (f"cos_{self._angle}", f"sin_{self._angle}")

    @property
    def moved_by(self) -> tuple[str, ...]:
        return self.statistics[:1] if self.of == "turn" and abs(np.sin(self.mean)) < 1e-9 else self.statistics

    @property
    def _angle(self) -> str:
        return "turn" if self.of == "turn" else "angle"

    def tilted(self, beta: Mapping[str, float]) -> VonMisesAngle:
        """κ e^{i mean} + β_cos + i β_sin; where nothing moves it off the axis, a mean of exactly 0 or π."""
        cos, sin = (beta.get(name, 0.0) for name in self.statistics)
        on_axis = sin == 0.0 and min(abs(self.mean), abs(abs(self.mean) - np.pi)) < 1e-12
        z = complex(self.kappa * np.cos(self.mean) + cos, 0.0 if on_axis else self.kappa * np.sin(self.mean) + sin)
        return VonMisesAngle(float(np.angle(z)), abs(z), self.of)

    def slopes(self) -> dict[str, dict[str, float]]:
        cos, sin = self.statistics
        c, s = float(np.cos(self.mean)), float(np.sin(self.mean))
        turn = {} if self.kappa == 0.0 else {"mean": {cos: -s / self.kappa, sin: c / self.kappa}}
        return {**turn, "kappa": {cos: c, sin: s}}

    @property
    def needs_heading(self) -> bool:
        return self.of == "turn"

    @property
    def concentration(self) -> float:
        return self.kappa or 0.0

    def fit(self, angle: np.ndarray, weight: np.ndarray) -> VonMisesAngle:
        resultant = np.average(np.exp(1j * angle), weights=weight)
        mean = self.mean
        if mean == "free" or (mean is None and self.of == "heading"):
            mean = float(np.angle(resultant))
        elif mean is None:
            mean = 0.0 if resultant.real >= 0.0 or self.kappa is not None else float(np.pi)
        kappa = self.kappa
        if kappa is None:
            kappa = concentration_circle(max(float(np.real(resultant * np.exp(-1j * mean))), 0.0))
        return replace(self, mean=mean, kappa=kappa)

    def log_density(self, angle: np.ndarray) -> np.ndarray:
        return -2.0 * self.kappa * np.sin(0.5 * (angle - self.mean)) ** 2 - LOG_2PI - log_bessel0(self.kappa)

    @cached_property
    def _quantile(self) -> Quantile:
        return circular_quantile(self.kappa)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return self.mean + self._quantile(u)


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


def angle_law(value: Any) -> AngleLaw:
    """An angle law from its name or itself."""
    if isinstance(value, AngleLaw):
        return value
    named = {"uniform": UniformAngle(), "vonmises": VonMisesAngle(), "heading": VonMisesAngle(of="heading")}
    if not isinstance(value, str) or value not in named:
        raise InputError(unknown("turn", value, named) + " Or pass a law, e.g. VonMisesAngle(kappa=2.0).")
    return named[value]


def law_from_dict(description: Mapping[str, Any]) -> Law:
    """The law that `to_dict` described."""
    name = description.get("law")
    if not isinstance(name, str) or name not in LAWS:
        raise InputError(unknown("The 'law' of a description", name, LAWS))
    return LAWS[name](**parameters(description))
