"""Is χ̂ a normaliser? χ̂(x) against −log ∫ exp f̂(y|x) dy.

The estimate of χ comes from the classifier, the integral from quadrature on f̂ alone. At the truth they agree; where
they part, χ's terms are too stiff, the smoothing is too strong, or f̂ leaves the data's region.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.numerics import read_only
from ..data.observations import Observations
from .density import Density
from ..domains.base import whole
from .draws import Proposal
from ..errors import InputError
from .held_out import constants

GOOD, FAIR = 0.05, 0.2  # rms difference on the log scale: constants known to 5 %, to 20 %


@dataclass(frozen=True)
class NormaliserCheck:
    """χ̂(x_t) and −log ∫ exp f̂(y|x_t) dy at some contexts.

    `rms` and `largest` are the differences on the log scale, `level` their mean and `shape` what remains of the rms
    after it: a level that is off moves nothing but χ; a shape that is off moves f̂ too.
    """

    chi: np.ndarray = field(repr=False)  # (c,)
    integral: np.ndarray = field(repr=False)  # (c,) −log ∫ exp f̂
    at: np.ndarray = field(repr=False)  # (c,) the observations whose contexts were taken
    rms: float
    largest: float
    level: float
    shape: float
    spread: float  # sd of −log ∫ exp f̂ over the contexts: how much there was to follow
    quadrature_error: float
    free: bool  # one free constant for each observation, which is noisy by itself
    verdict: str = ""

    def __str__(self) -> str:
        return self.verdict

    def plot(self, ax: Any = None) -> Any:
        """χ̂ against the integral, with the diagonal; returns the Axes."""
        from .plots import against

        text = f"rms {self.rms:.3g}, largest {self.largest:.3g}"
        labels = ("−log ∫ exp f̂(y|x) dy, by quadrature", "χ̂(x)")
        return against(self.integral, self.chi, *labels, text, ax)


def check_normaliser(
    density: Density,
    obs: Observations,
    chi: np.ndarray,
    contexts: int = 200,
    order: int | None = None,
    free: bool = False,
    proposal: Proposal | None = None,
) -> NormaliserCheck:
    """Compare χ̂ (one value, or one for each observation) with the integrals at contexts spread over the data."""
    count = whole(contexts, "contexts", least=1)
    if chi.size == 0:
        raise InputError(
            "This objective has no normalising constants to check: they cancel (Ranking, ConditionalNCE). "
            "fit.log_density computes them by quadrature."
        )
    if chi.size not in (1, obs.n):
        raise InputError(f"The fit has {chi.size} constants and the observations given are {obs.n}: not those fitted.")
    at = np.unique(np.linspace(0, obs.n - 1, min(count, obs.n)).astype(int)) if obs.has_context else np.zeros(1, int)
    some = obs.take(at)
    known = constants(density, some, order, proposal)
    log_z, error = known.log_z, known.error
    here = (np.full(len(at), chi[0]) if chi.size == 1 else chi[at]) + some.offsets
    gap = here + log_z
    rms, largest, level = float(np.sqrt(np.mean(gap**2))), float(np.max(np.abs(gap))), float(np.mean(gap))
    shape, spread = float(np.std(gap)), float(np.std(log_z))
    return NormaliserCheck(
        chi=read_only(here),
        integral=read_only(-log_z),
        at=read_only(at),
        rms=rms,
        largest=largest,
        level=level,
        shape=shape,
        spread=spread,
        quadrature_error=error,
        free=free,
        verdict=_verdict(len(at), rms, largest, level, shape, spread, error, free),
    )


def _verdict(
    count: int, rms: float, largest: float, level: float, shape: float, spread: float, error: float, free: bool
) -> str:
    where = f"over {count} contexts" if count > 1 else "for the one constant"
    fact = f"χ̂ and −log ∫ exp f̂ differ by {rms:.2g} (rms) and at most {largest:.2g} on the log scale {where}"
    if error > max(0.3 * rms, 0.01):
        return f"{fact}, but the integrals themselves are uncertain by {error:.1g}: nothing can be said. Raise order=."
    if rms <= GOOD:
        return f"{fact}: the constants are known to {100 * np.expm1(max(rms, 1e-12)):.2g} %. Good."
    if free:
        return (
            f"{fact}. Each ν_t rests on one observation and its own reference points and is noisy by itself: the "
            f"scatter of {shape:.2g} says little; the mean difference is {level:.2g}."
        )
    if shape > max(GOOD, 0.5 * spread):
        return (
            f"{fact}; their sd over the contexts is {shape:.2g} where the constants themselves vary by {spread:.2g}: χ̂ "
            "does not follow them. Give the normaliser more or other terms (a larger k=), or more reference points."
        )
    if shape <= GOOD:
        return f"{fact}, nearly all of it a common level ({level:.2g}), which moves χ̂ and not f̂. Fair."
    if rms <= FAIR:
        return f"{fact}: the constants are known to {100 * np.expm1(rms):.2g} %. Fair; a larger k= may do better."
    return f"{fact}: too much to trust χ̂ as a normaliser. Give it more terms, or take more reference points."
