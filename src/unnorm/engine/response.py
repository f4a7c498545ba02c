"""The three response distributions as a reader of results needs them: mean, variance, unit deviance, log-likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
from scipy import special

from ..errors import DataError, InputError, unknown


class Response(ABC):
    """μ = g⁻¹(η), Var y = φ v(μ)/w, and w d(y, μ), the deviance of one row. All links are canonical."""

    name: str
    link: str
    scale_known: bool

    @abstractmethod
    def mean(self, eta: np.ndarray) -> np.ndarray:
        """μ(η)."""

    @abstractmethod
    def variance(self, mu: np.ndarray) -> np.ndarray:
        """v(μ), which is dμ/dη too, the link being canonical."""

    @abstractmethod
    def variance_slopes(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of v(μ(η)) in η."""

    @abstractmethod
    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """d(y, μ) = 2{ℓ(y; y) − ℓ(μ; y)} φ, without the weight."""

    @abstractmethod
    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        """Σ log p(y; μ) with its constants (Gaussian: at the maximum-likelihood variance D/n, as R's `logLik` does)."""

    @abstractmethod
    def check(self, y: np.ndarray, name: str) -> None:
        """Refuse responses that the distribution cannot give."""


@final
class Gaussian(Response):
    name, link, scale_known = "gaussian", "identity", False

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return eta

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return np.ones_like(mu)

    def variance_slopes(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(mu), np.zeros_like(mu)

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return (y - mu) ** 2

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        w, e = w[w > 0.0], (y - mu)[w > 0.0]
        n, D = w.size, float(np.sum(w * e**2))
        return -0.5 * (n * (np.log(2.0 * np.pi * D / n) + 1.0) - float(np.sum(np.log(w))))

    def check(self, y: np.ndarray, name: str) -> None:
        if y.size and np.ptp(y) == 0.0:
            raise DataError(f"The response {name!r} is {y[0]:g} in every row: there is nothing to explain.")


@final
class Binomial(Response):
    name, link, scale_known = "binomial", "logit", True

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return special.expit(eta)

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return mu * (1.0 - mu)

    def variance_slopes(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = mu * (1.0 - mu)
        return v * (1.0 - 2.0 * mu), v * (1.0 - 6.0 * v)

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return 2.0 * (special.rel_entr(y, mu) + special.rel_entr(1.0 - y, 1.0 - mu))

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        # w trials with k = wy successes. R's binomial()$aic rounds weights that are no counts (0.4 → 0): not here
        k = w * y
        constant = special.gammaln(w + 1.0) - special.gammaln(k + 1.0) - special.gammaln(w - k + 1.0)
        return float(np.sum(constant + special.xlogy(k, mu) + special.xlogy(w - k, 1.0 - mu)))

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


@final
class Poisson(Response):
    name, link, scale_known = "poisson", "log", True

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def variance(self, mu: np.ndarray) -> np.ndarray:
        return mu

    def variance_slopes(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return mu, mu

    def unit_deviance(self, y: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return 2.0 * (special.rel_entr(y, mu) - (y - mu))

    def loglik(self, y: np.ndarray, mu: np.ndarray, w: np.ndarray) -> float:
        return float(np.sum(w * (special.xlogy(y, mu) - mu - special.gammaln(y + 1.0))))

    def check(self, y: np.ndarray, name: str) -> None:
        if np.any(y < 0.0):
            raise DataError(f"A Poisson response must not be negative; {name!r} contains {y.min():g}.")
        if y.size and y.max() == 0.0:
            raise DataError(f"The response {name!r} is 0 in every row: the Poisson intercept is minus infinity.")


RESPONSES: dict[str, Response] = {response.name: response for response in (Binomial(), Poisson(), Gaussian())}


def response(family: str) -> Response:
    """The response distribution of that name."""
    if not isinstance(family, str) or family not in RESPONSES:
        raise InputError(unknown("family", family, RESPONSES))
    return RESPONSES[family]
