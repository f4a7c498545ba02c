"""Points a few Gibbs sweeps from the data: conditional NCE in which y' is nearly a draw of the model.

A sweep under a law p_φ visits the bits in turn and redraws each given the others; visited in one order or its reverse,
with even odds, the sweeps are reversible, p_φ(y) q(y'|y) = p_φ(y') q(y|y'). The ratio that conditional NCE needs is
therefore known, whatever the number of sweeps, though q itself is not:

    log q(y'|y) − log q(y|y') = f_φ(y'|x) − f_φ(y|x).

Any φ will do for a consistent estimate; near θ the pairs differ in what the law leaves to chance, and with many sweeps
the variance falls to (1 + 1/k) times that of maximum likelihood. With φ = θ the score is contrastive divergence's
(Hinton 2002), which this kernel makes an estimator with an objective and standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final, runtime_checkable

import numpy as np

from .._base.numerics import whole
from ..domains import BinaryVectors
from ..errors import CombinationError, InputError
from .base import BoundReference, Example, Given, Reference

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


class Sweeps(Protocol):
    """Gibbs sweeps of many vectors side by side."""

    def sweep(
        self, y: np.ndarray, sweeps: int, rng: np.random.Generator, free: Any = None, either_way: bool = False
    ) -> np.ndarray: ...


class BitLaw(Protocol):
    """p_φ(y|x) ∝ exp f_φ(y|x) on bits, with its Gibbs sweeps."""

    @property
    def domain(self) -> Domain: ...

    def log_f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray: ...

    def sampler(self, obs: Observations, at: np.ndarray) -> Sweeps | None: ...


@runtime_checkable
class Fitted(Protocol):
    """What has such a law: a fit."""

    @property
    def density(self) -> BitLaw: ...


@final
@dataclass(frozen=True, repr=False)
class GibbsSteps(Reference):
    """y' = y_t after some Gibbs sweeps under an earlier fit. For ConditionalNCE only.

    Args:
        pilot: a fit of a model on the same bits, e.g. by pseudo-likelihood; it need not be the model that is fitted.
        sweeps: from each observation to each of its points. More of them are nearer to maximum likelihood.

    A saved fit remembers the number of sweeps only: to use the reference again, give the pilot again.

    >>> import numpy as np, unnorm as un
    >>> obs = un.iid(np.random.default_rng(0).integers(0, 2, (300, 3)))
    >>> pilot = un.fit(un.Ising(3), obs, un.ConditionalNCE(un.BitFlip(every=True)))
    >>> fit = un.fit(un.Ising(3), obs, un.ConditionalNCE(un.GibbsSteps(pilot, sweeps=2), per_point=4), rng=1)
    >>> fit.converged
    True
    """

    call: ClassVar[str] = "GibbsSteps(pilot) (conditional NCE)"
    lives_on: ClassVar[str] = "binary vectors and graphs"
    saved: ClassVar[bool] = False

    pilot: Fitted = field(compare=False)
    sweeps: int = 1

    def __post_init__(self) -> None:
        whole(self.sweeps, "sweeps of GibbsSteps", least=1)
        if not isinstance(self.pilot, Fitted):
            raise InputError(
                "pilot of GibbsSteps must be a fit, such as un.fit(model, obs, "
                f"un.ConditionalNCE(un.BitFlip(every=True))); got {type(self.pilot).__name__}."
            )

    def __repr__(self) -> str:
        return f"GibbsSteps(…, sweeps={self.sweeps})"

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.free is not None

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        if self.pilot.density.domain != domain:
            raise CombinationError(
                f"The pilot of GibbsSteps lives on {self.pilot.density.domain!r}, the model on {domain!r}. Fit the "
                "pilot to the same outcomes."
            )
        return BoundGibbsSteps(domain, self)

    def to_dict(self) -> dict[str, Any]:
        return {"reference": "GibbsSteps", "sweeps": self.sweeps}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> GibbsSteps:
        raise CombinationError(
            "The pilot of GibbsSteps is a fit of its own, which is not saved: make it again with GibbsSteps(pilot, "
            f"sweeps={description.get('sweeps')})."
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example(cls(_Coins(BinaryVectors(4))), BinaryVectors(4)),)


@final
class BoundGibbsSteps(BoundReference):
    """Sweeps of the pilot's law."""

    ratio_only = True

    def __init__(self, domain: Domain, reference: GibbsSteps) -> None:
        super().__init__(domain, reference)
        self._law, self._sweeps = reference.pilot.density, reference.sweeps

    @property
    def given(self) -> Given:
        return "outcome"

    @property
    def cube_dim(self) -> None:
        return None

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        raise NotImplementedError("Gibbs sweeps have no map from the unit cube")

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        sampler = self._law.sampler(obs, t)
        if sampler is None:
            raise CombinationError("The pilot of GibbsSteps has no Gibbs sweeps: fit a parametric model of bits.")
        free = None if self.domain.free is None else np.broadcast_to(self.domain.free, (len(t), self.domain.dim))
        return sampler.sweep(obs.outcome[t], self._sweeps, rng, free, either_way=True)

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self._law.log_f(obs, y, t)

    def log_density_back(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self._law.log_f(obs, obs.outcome[t], t)

    def describe(self) -> str:
        return f"{self._sweeps} Gibbs sweeps from the observed outcome under an earlier fit; reversible"


@final
@dataclass(frozen=True)
class _Coins:
    """Fair coins, whose Gibbs sweeps are fresh draws: the least law, for the example."""

    domain: Domain

    @property
    def density(self) -> _Coins:
        return self

    def log_f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.full(len(y), -self.domain.dim * np.log(2.0))

    def sampler(self, obs: Observations, at: np.ndarray) -> _Coins:
        return self

    def sweep(
        self, y: np.ndarray, sweeps: int, rng: np.random.Generator, free: Any = None, either_way: bool = False
    ) -> np.ndarray:
        return rng.integers(0, 2, y.shape).astype(np.float64)
