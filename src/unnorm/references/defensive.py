"""The reference that is used where none is named: uniform, with a step kernel mixed in where steps are short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from ..domains import Box, Circle, Interval
from .base import BoundReference, Example, Reference
from .gaussian import Gaussian
from .mixture import Mixture
from .step_kernel import StepKernel
from .uniform import Uniform

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

SHORT = 1 / 3  # of the distance of a uniform point: measured by benchmarks/constants.py steps (docs/constants.md)
SHARE = 0.5  # of the points that the kernel draws


@final
@dataclass(frozen=True, repr=False)
class Defensive(Reference):
    """q = 1/|Ω|; where the steps of a chain are short, half of that and half a step kernel fitted to the steps.

    Short: the rms step is below a third of the rms distance of uniform points from the previous points. Few uniform
    points then fall where the data are, and estimates pay for it; the uniform half keeps q from being too thin anywhere
    (Owen and Zhou 2000). The kernel is `StepKernel()` in the plane, `Gaussian(around="context")` on a line, a circle,
    in space, and where a step has length zero. The fit's record and `summary()` say which reference was used.

    >>> import numpy as np
    >>> import unnorm as un
    >>> rng = np.random.default_rng(1)
    >>> walk = un.transitions(np.sin(0.1 * np.cumsum(rng.standard_normal(400))))
    >>> un.Defensive().bind(un.Interval(-1, 1), walk).reference.weights
    (0.5, 0.5)
    >>> un.Defensive().bind(un.Interval(-1, 1), un.transitions(rng.uniform(-1, 1, 400))).reference
    Uniform(along='places')
    """

    chooses: ClassVar[bool] = True

    @property
    def everywhere(self) -> bool:
        return True

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return Example(cls(), Box((0, 8), (0, 6)), 60), Example(cls(), Interval(-1, 1)), Example(cls(), Circle())

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        kernel = self._kernel(domain, obs)
        if kernel is None:
            return Uniform().bind(domain, obs)
        return Mixture((SHARE, kernel), (1.0 - SHARE, Uniform())).bind(domain, obs)

    def _kernel(self, domain: Domain, obs: Observations) -> Reference | None:
        """The kernel to mix in, where steps are short."""
        if obs.kind != "transitions" or not Gaussian.takes(domain):
            return None
        step = obs.outcome - obs.previous()
        if domain.period is not None:
            step = domain.wrap(step)
        length = np.linalg.norm(step, axis=1)
        if not 0.0 < relative_length(domain, obs, length) < SHORT:
            return None
        return StepKernel() if StepKernel.takes(domain) and np.all(length > 0.0) else Gaussian(around="context")


def relative_length(domain: Domain, obs: Observations, length: np.ndarray) -> float:
    """rms step over the rms distance of a uniform point from the previous points."""
    rule = domain.quadrature(None if domain.default_order is None else min(8, domain.default_order))
    share = rule.weights / rule.weights.sum()
    if domain.period is not None:
        far = domain.period**2 / 12  # of the shorter way round
    else:
        centre = share @ rule.points
        spread = share @ ((rule.points - centre) ** 2).sum(axis=1)
        far = spread + np.average(((obs.previous() - centre) ** 2).sum(axis=1), weights=obs.weights)
    return float(np.sqrt(np.average(length**2, weights=obs.weights) / far))
