"""Models relative to a known law k: p(y|x) ∝ k(y|x) exp f(y|x).

f then says how the data differ from k, and f = 0 is k itself. In movement ecology k is the movement kernel, the steps
that an animal would take in a uniform landscape, and exp f the selection of habitat (step selection functions; Fortin
et al. 2005; integrated: Avgar et al. 2016). Points drawn from q = k need no correction: −log q + log k = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from ..errors import InputError
from ..references import from_dict
from ..references.base import BoundReference, Reference
from ..references.by_window import bound

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains.base import Domain


@final
@dataclass(frozen=True)
class Tilt:
    """The base of a model, p(y|x) ∝ k(y|x) exp f(y|x): f is relative to k instead of Ω's own measure.

    Args:
        kernel: k, a reference such as `un.StepKernel("gamma", "vonmises")`. Parameters left open are fitted by maximum
            likelihood to the observed steps, and then held: `fit.model.base.kernel` shows them.
        law: k with every parameter known; `un.fit` fills it in.

    Example:
        >>> import unnorm as un
        >>> kernel = un.StepKernel("gamma", "vonmises")
        >>> model = un.Additive("forest", un.Box((0, 1000), (0, 1000)), base=un.Tilt(kernel))
        >>> objective = un.Ranking(kernel, per_point=20)  # conditional logistic regression, as clogit
    """

    kernel: Reference
    law: BoundReference | None = field(default=None, repr=False, compare=False)  # k with every parameter known

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Reference):
            raise InputError(
                f"The kernel of un.Tilt must be a reference such as un.StepKernel('gamma', 'vonmises'); got "
                f"{self.kernel!r}."
            )

    def on(self, domain: Domain, obs: Observations) -> BoundReference:
        """k on Ω: as it was fitted, or fitted to these observations."""
        return bound(self.kernel, domain, obs) if self.law is None else self.law

    def met(self, domain: Domain, obs: Observations) -> Tilt:
        """The same with k fitted to these observations."""
        law = self.on(domain, obs)
        if law.given == "outcome":
            raise InputError(f"The kernel of un.Tilt must not depend on the outcome itself; got {self.kernel!r}.")
        return Tilt(law.reference, law)

    def to_dict(self) -> dict[str, Any]:
        return {"tilt": self.kernel.to_dict()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Tilt:
        """The base that `to_dict` described."""
        return cls(from_dict(description["tilt"]))


def checked(base: Any, log_partition: Any = None) -> Tilt | None:
    """The `base=` of a model, or a sentence."""
    if base is not None and log_partition is not None:
        raise InputError("log_partition is ∫ exp f dy without the kernel: leave it out with base=un.Tilt(…).")
    if base is None or isinstance(base, Tilt):
        return base
    raise InputError(f"base must be un.Tilt(kernel), e.g. un.Tilt(un.StepKernel('gamma')); got {base!r}.")
