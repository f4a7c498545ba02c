"""von Mises references on the circle and von Mises–Fisher references on the sphere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from .._base.numerics import floats
from ..domains import Circle, Sphere
from ..errors import InputError
from .around import Around, KernelReference, centres, check_around
from .base import BoundReference, Example, Reference, is_number, numbers, root
from .kernels import CircleVonMises, SphereFisher

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

_MOST = 1e6  # a fitted κ is kept below this: all outcomes in one direction


def concentration_circle(length: float) -> float:
    """κ with I₁(κ)/I₀(κ) = R̄, the maximum-likelihood estimate."""
    from scipy.special import i0e, i1e

    if length <= 1e-8:
        return 0.0
    if length >= i1e(_MOST) / i0e(_MOST):
        return _MOST
    return root(lambda k: i1e(k) / i0e(k) - length, 0.0, _MOST)


def concentration_sphere(length: float) -> float:
    """κ with coth κ − 1/κ = R̄, the maximum-likelihood estimate."""

    def mean(k: float) -> float:
        return 1.0 / np.tanh(k) - 1.0 / k if k > 1e-4 else k / 3.0

    if length >= mean(_MOST):
        return _MOST
    return root(lambda k: mean(k) - length, 0.0, _MOST)


def _check_kappa(kappa: float | None, name: str) -> None:
    if kappa is not None and not is_number(kappa, 0.0):
        raise InputError(f"kappa of {name} must be a finite number of at least 0; got {kappa!r}.")


@final
@dataclass(frozen=True, repr=False)
class VonMises(Reference):
    """exp(κ cos(y − μ)) / 2π I₀(κ) on the circle; with `around="context"` μ is counted from the previous angle.

    What is left None is fitted by maximum likelihood. `around="outcome"` (conditional NCE) needs a κ.

    Args:
        mu: the mean angle; fitted where None.
        kappa: the concentration; fitted where None.
        around: None, "context" (the previous point) or "outcome" (the observation itself, for conditional NCE).

    >>> from unnorm.references import VonMises
    >>> VonMises(kappa=2.0, around="context").kappa
    2.0
    """

    lives_on: ClassVar[str] = "a circle"

    mu: float | None = None
    kappa: float | None = None
    around: Around = None

    def __post_init__(self) -> None:
        check_around(self.around)
        _check_kappa(self.kappa, "VonMises")
        if self.mu is not None and not is_number(self.mu):
            raise InputError(f"mu of VonMises must be a finite angle; got {self.mu!r}.")

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.period is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        sharp = cls(mu=1.0, kappa=200.0)
        return tuple(Example(one, Circle()) for one in (cls(), cls(kappa=3.0, around="context"), sharp))

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        assert domain.period is not None
        mu, kappa = self.mu, self.kappa
        if self.around == "outcome":
            mu, kappa = 0.0 if mu is None else mu, _needed(kappa, "VonMises")
        turn = 2.0 * np.pi / domain.period
        if mu is None or kappa is None:
            angle = obs.outcome if self.around is None else obs.outcome - centres(self.around, obs)
            resultant = np.average(np.exp(1j * turn * angle[:, 0]), weights=obs.weights)
            mu = float(np.angle(resultant) / turn) if mu is None else mu
            length = max(float(np.real(resultant * np.exp(-1j * turn * mu))), 0.0)
            kappa = concentration_circle(length) if kappa is None else kappa
        filled = replace(self, mu=float(mu), kappa=float(kappa))
        text = f"von Mises with μ = {numbers(mu)} and κ = {numbers(kappa)}"
        kernel = CircleVonMises(domain, float(kappa))
        return KernelReference(domain, filled, kernel, self.around, np.array([mu], dtype=np.float64), text)


@final
@dataclass(frozen=True, repr=False)
class VonMisesFisher(Reference):
    """κ exp(κ μ·y) / 4π sinh κ on the unit sphere; with `around="context"` μ is the previous direction.

    What is left None is fitted by maximum likelihood. `around="outcome"` (conditional NCE) needs a κ.

    Args:
        mu: the mean direction, a unit vector; fitted where None.
        kappa: the concentration; fitted where None.
        around: None, "context" (the previous point) or "outcome" (the observation itself, for conditional NCE).

    >>> from unnorm.references import VonMisesFisher
    >>> VonMisesFisher(mu=(0.0, 0.0, 1.0)).mu
    (0.0, 0.0, 1.0)
    """

    lives_on: ClassVar[str] = "the unit sphere"

    mu: Sequence[float] | None = None
    kappa: float | None = None
    around: Around = None

    def __post_init__(self) -> None:
        check_around(self.around)
        _check_kappa(self.kappa, "VonMisesFisher")
        if self.mu is None:
            return
        mu = floats(self.mu, "mu of VonMisesFisher")
        if self.around is not None:
            raise InputError("VonMisesFisher takes mu or around, not both: around says where the kernel is centred.")
        if mu.shape != (3,) or not np.linalg.norm(mu) > 0.0:
            raise InputError(f"mu of VonMisesFisher must be a direction, three numbers not all 0; got {self.mu!r}.")
        if abs(np.linalg.norm(mu) - 1.0) > 1e-12:
            mu = mu / np.linalg.norm(mu)
        object.__setattr__(self, "mu", tuple(mu.tolist()))

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.sphere

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        kernels = cls(kappa=4.0, around="context"), cls(kappa=10.0, around="outcome")
        return tuple(Example(one, Sphere()) for one in (cls(), *kernels))

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        mu, kappa = self.mu, self.kappa
        if self.around is None:
            resultant = np.average(obs.outcome, axis=0, weights=obs.weights)
            if mu is None:
                size = np.linalg.norm(resultant)
                mu = tuple((resultant / size).tolist()) if size > 1e-12 else (0.0, 0.0, 1.0)
            length = float(resultant @ np.asarray(mu))
        elif self.around == "outcome":
            length, kappa = 0.0, _needed(kappa, "VonMisesFisher")
        else:
            length = float(np.average(np.sum(obs.outcome * centres(self.around, obs), axis=1), weights=obs.weights))
        kappa = concentration_sphere(max(length, 0.0)) if kappa is None else kappa
        kappa = max(float(kappa), 1e-8)  # κ = 0 is the uniform law; the formulas divide by it
        filled = replace(self, mu=mu, kappa=kappa)
        text = f"von Mises–Fisher with κ = {numbers(kappa)}" + ("" if mu is None else f" and μ = {numbers(mu)}")
        shift = np.zeros(3) if mu is None else np.asarray(mu, dtype=np.float64)
        return KernelReference(domain, filled, SphereFisher(kappa), self.around, shift, text)


def _needed(kappa: float | None, name: str) -> float:
    if kappa is None:
        raise InputError(f"{name} with around='outcome' has no steps to fit kappa to: give it, e.g. kappa=20.0.")
    return kappa
