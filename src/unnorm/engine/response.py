"""The response distributions as a reader of results needs them: mean, variance, unit deviance, log-likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
from scipy import special

from ..errors import DataError, InputError, unknown
from .families import log_rising

SMALLEST, LARGEST = 1e-60, 1e60  # of a Gaussian response's range: D² must be a number, and not zero


def _check_size(y: np.ndarray, name: str) -> None:
    if y.size and not SMALLEST < (size := float(np.max(np.abs(y)))) < LARGEST:
        how = "underflow" if size <= SMALLEST else "overflow"
        raise DataError(
            f"The response {name!r} is as large as {size:.3g}, whose squares {how}. Measure it in other units."
        )


class Response(ABC):
    """μ = g⁻¹(η), Var y = φ v(μ)/w, and w d(y, μ), the deviance of one row. Links are canonical but where a class says
    otherwise."""

    name: str
    link: str
    scale_known: bool
    parameters: int = 0  # of the distribution itself, estimated and counted in AIC
    theta: float | None = None
    likelihood: bool = True  # whether the distribution has one (a quasi-likelihood has none)

    @abstractmethod
    def mean(self, eta: np.ndarray) -> np.ndarray:
        """μ(η)."""

    @abstractmethod
    def link_of(self, mu: float) -> float:
        """g(μ)."""

    @abstractmethod
    def variance(self, mu: np.ndarray) -> np.ndarray:
        """v(μ)."""

    def slope(self, eta: np.ndarray) -> np.ndarray:
        """dμ/dη, which is v(μ) where the link is canonical."""
        return self.variance(self.mean(eta))

    @abstractmethod
    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives in η of a row's −d²ℓ/dη² (of v(μ), where the link is canonical)."""

    @abstractmethod
    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """d(y, μ) = 2{ℓ(y; y) − ℓ(μ; y)} φ, without the weight."""

    @abstractmethod
    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        """Σ log p(y; μ) with its constants (Gaussian: at the maximum-likelihood variance D/n, as R's `logLik` does)."""

    def simulate(self, mu: np.ndarray, w: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray | None:
        """A response drawn from the distribution; None where there is none to draw from."""
        return None

    @abstractmethod
    def check(self, y: np.ndarray, name: str) -> None:
        """Refuse responses that the distribution cannot give."""


@final
class Gaussian(Response):
    name, link, scale_known = "gaussian", "identity", False

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return eta

    def link_of(self, mu: float) -> float:
        return mu

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return np.ones_like(mu)

    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(eta), np.zeros_like(eta)

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return (y - mu) ** 2

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        w, e = w[w > 0.0], (y - mu)[w > 0.0]
        n, D = w.size, float(np.sum(w * e**2))
        return -0.5 * (n * (np.log(2.0 * np.pi * D / n) + 1.0) - float(np.sum(np.log(w))))

    def simulate(self, mu: np.ndarray, w: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
        return mu + np.sqrt(scale / w) * rng.standard_normal(mu.size)

    def check(self, y: np.ndarray, name: str) -> None:
        if y.size and np.ptp(y) == 0.0:
            raise DataError(f"The response {name!r} is {y[0]:g} in every row: there is nothing to explain.")
        if y.size and not SMALLEST <= np.ptp(y) <= LARGEST:
            how = "underflow" if np.ptp(y) < SMALLEST else "overflow"
            raise DataError(f"The response {name!r} spans {np.ptp(y):.3g}, whose powers {how}. Use other units.")


class Binomial(Response):
    """0, 1 or a proportion of trials; its links are the classes below."""

    name, scale_known = "binomial", True

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return mu * (1.0 - mu)

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return 2.0 * (special.rel_entr(y, mu) + special.rel_entr(1.0 - y, 1.0 - mu))

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        # w trials with k = wy successes. R's binomial()$aic rounds weights that are no counts (0.4 → 0): not here
        k = w * y
        constant = special.gammaln(w + 1.0) - special.gammaln(k + 1.0) - special.gammaln(w - k + 1.0)
        return float(np.sum(constant + special.xlogy(k, mu) + special.xlogy(w - k, 1.0 - mu)))

    def simulate(self, mu: np.ndarray, w: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray | None:
        trials = np.round(w)
        return rng.binomial(trials.astype(np.int64), mu) / trials if np.abs(trials - w).max() < 1e-9 else None

    def check(self, y: np.ndarray, name: str) -> None:
        if np.any((y < 0.0) | (y > 1.0)):
            worst = y[np.argmax(np.abs(y - 0.5))]
            raise DataError(
                f"A binomial response must be 0 or 1, or a proportion in [0, 1] with weights= the number of trials; "
                f"{name!r} contains {worst:g}. Recode it, divide counts by their trials, or use family='poisson'."
            )
        if y.size and np.ptp(y) == 0.0:
            raise DataError(
                f"The response {name!r} is {y[0]:g} in every row: a binomial model needs both outcomes, else its "
                "intercept is infinite."
            )
        _check_size(y, name)


@final
class Logit(Binomial):
    link = "logit"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return special.expit(eta)

    def link_of(self, mu: float) -> float:
        return float(special.logit(mu))

    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mu = self.mean(eta)
        v = mu * (1.0 - mu)
        return v * (1.0 - 2.0 * mu), v * (1.0 - 6.0 * v)


@final
class Probit(Binomial):
    """μ = Φ(η)."""

    link = "probit"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return special.ndtr(eta)

    def slope(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi)

    def link_of(self, mu: float) -> float:
        return float(special.ndtri(mu))

    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of y c(η) + (1 − y) c(−η) with c = λ(λ + η), λ = φ/Φ, λ′ = −c."""

        def slopes(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            ratio = np.exp(-0.5 * z**2 - special.log_ndtr(z)) / np.sqrt(2.0 * np.pi)
            c = ratio * (ratio + z)
            first = ratio - c * (2.0 * ratio + z)
            return first, -c - first * (2.0 * ratio + z) - c * (1.0 - 2.0 * c)

        (a1, a2), (b1, b2) = slopes(eta), slopes(-eta)
        return y * a1 - (1.0 - y) * b1, y * a2 + (1.0 - y) * b2


@final
class Cloglog(Binomial):
    """μ = 1 − exp(−e^η): whether a count with mean e^η is positive."""

    link = "cloglog"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return -np.expm1(-np.exp(np.minimum(eta, 500.0)))

    def slope(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta - np.exp(np.minimum(eta, 500.0)))

    def link_of(self, mu: float) -> float:
        return float(np.log(-np.log1p(-mu)))

    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of y q x + (1 − y) t with t = e^η, q = t/(eᵗ − 1), x = t + q − 1; q′ = −q x, x′ = t − q x."""
        t = np.exp(np.clip(eta, -500.0, 500.0))
        small = t < 1e-3
        safe = np.where(small, 1.0, np.minimum(t, 500.0))
        q = np.where(small, 1.0 - t * (0.5 - t / 12.0), safe / np.expm1(safe))
        x = np.where(small, t * (0.5 + t / 12.0), t + q - 1.0)
        qx = q * x
        first = q * (t - qx - x * x)
        dqx = first
        second = -qx * (t - qx - x * x) + q * (t - dqx - 2.0 * x * (t - qx))
        return y * first + (1.0 - y) * t, y * second + (1.0 - y) * t


class Counts(Response):
    """Counts with v(μ) = μ and the log link."""

    link = "log"

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def link_of(self, mu: float) -> float:
        return float(np.log(mu))

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return mu

    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mu = self.mean(eta)
        return mu, mu

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return 2.0 * (special.rel_entr(y, mu) - (y - mu))

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        return float(np.sum(w * (special.xlogy(y, mu) - mu - special.gammaln(y + 1.0))))

    def check(self, y: np.ndarray, name: str) -> None:
        if np.any(y < 0.0):
            raise DataError(f"A {self.name} response must not be negative; {name!r} contains {y.min():g}.")
        if y.size and y.max() == 0.0:
            raise DataError(f"The response {name!r} is 0 in every row: the intercept is minus infinity.")
        _check_size(y, name)


@final
class Poisson(Counts):
    name, scale_known = "poisson", True

    def simulate(self, mu: np.ndarray, w: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(mu).astype(np.float64)


@final
class QuasiPoisson(Counts):
    """Var y = φμ with φ estimated. There is no likelihood, hence no AIC."""

    name, scale_known, likelihood = "quasipoisson", False, False

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        return float("nan")


@final
class NegativeBinomial(Response):
    """Var y = μ + μ²/θ; smaller θ, more overdispersion."""

    name, link, scale_known, parameters = "nb", "log", True, 1

    def __init__(self, theta: float | None) -> None:
        self.theta = theta

    @property
    def _theta(self) -> float:
        assert self.theta is not None
        return self.theta

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def link_of(self, mu: float) -> float:
        return float(np.log(mu))

    def slope(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return mu + mu**2 / self._theta

    def weight_slopes(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of (y + θ) p (1 − p) with p = μ/(μ + θ)."""
        p = special.expit(eta - np.log(self._theta))
        v = (y + self._theta) * p * (1.0 - p)
        return v * (1.0 - 2.0 * p), v * (1.0 - 6.0 * p * (1.0 - p))

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        theta = self._theta
        return 2.0 * (special.xlogy(y, np.where(y > 0, y, 1.0) / mu) - (y + theta) * np.log1p((y - mu) / (mu + theta)))

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        theta = self._theta
        constant = log_rising(theta, y) - special.gammaln(y + 1.0)
        each = constant + special.xlogy(y, mu / theta) - (y + theta) * np.log1p(mu / theta)
        return float(np.sum(w * each))

    def simulate(self, mu: np.ndarray, w: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(mu * rng.gamma(self._theta, 1.0 / self._theta, mu.size)).astype(np.float64)

    def check(self, y: np.ndarray, name: str) -> None:
        Poisson().check(y, name)


FAMILIES: dict[str, tuple[str, ...]] = {  # family → its links, the default first
    "binomial": ("logit", "probit", "cloglog"),
    "poisson": ("log",),
    "gaussian": ("identity",),
    "quasipoisson": ("log",),
    "nb": ("log",),
}


def response(family: str, link: str | None = None, theta: float | None = None) -> Response:
    """The response distribution of that name and link; theta of a negative binomial one."""
    if not isinstance(family, str) or family not in FAMILIES:
        raise InputError(unknown("family", family, FAMILIES))
    if link is not None and link not in FAMILIES[family]:
        raise InputError(unknown(f"link of family {family!r}", link, FAMILIES[family]))
    if family == "nb":
        return NegativeBinomial(theta)
    made: dict[str, type[Response]] = {
        "gaussian": Gaussian, "binomial": Logit, "poisson": Poisson, "quasipoisson": QuasiPoisson, "probit": Probit,
        "cloglog": Cloglog,
    }  # fmt: skip
    return made[link if link is not None and link in made else family]()
