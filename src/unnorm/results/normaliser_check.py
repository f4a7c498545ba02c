"""Is χ̂ a normaliser? χ̂(x) against −log ∫ exp f̂(y|x) dy.

The estimate of χ comes from the classifier, the integral from quadrature on f̂ alone. At the truth they agree; where
they differ, χ's terms are too stiff, the smoothing is too strong, or f̂ leaves the data's region.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from .._base.numerics import read_only
from .._base.words import either, option
from ..data.observations import Observations
from ..domains.base import whole
from ..errors import InputError
from .density import Density
from .draws import Proposal
from .held_out import constants, evenly

GOOD, FAIR = 0.05, 0.2  # rms difference on the log scale: constants known to 5 %, to 20 %
Grade = Literal["good", "fair", "poor"]


@final
@dataclass(frozen=True, eq=False)
class NormaliserCheck:
    """χ̂(x_t) and −log ∫ exp f̂(y|x_t) dy at some contexts; `print(check)` gives the verdict.

    `rms` and `largest` are the differences on the log scale, `level` their mean and `shape` what remains of the rms
    after it: a level that is off moves nothing but χ; a shape that is off moves f̂ too.
    """

    chi: np.ndarray  # (c,)
    integral: np.ndarray  # (c,) −log ∫ exp f̂
    rows: np.ndarray  # (c,) the observations whose contexts were taken
    quadrature_error: float  # of the integrals
    free: bool = False  # one free constant for each observation, which is noisy by itself

    @cached_property
    def gap(self) -> np.ndarray:
        """(c,) χ̂ + log ∫ exp f̂, zero where χ̂ is a normaliser."""
        return read_only(self.chi - self.integral)

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.gap**2)))

    @property
    def largest(self) -> float:
        return float(np.max(np.abs(self.gap)))

    @property
    def level(self) -> float:
        return float(np.mean(self.gap))

    @property
    def shape(self) -> float:
        return float(np.std(self.gap))

    @property
    def variation(self) -> float:
        """sd of −log ∫ exp f̂ over the contexts: how much there was to follow."""
        return float(np.std(self.integral))

    @property
    def grade(self) -> Grade:
        """By the rms: "good" up to 0.05, "fair" up to 0.2, else "poor"."""
        return "good" if self.rms <= GOOD else "fair" if self.rms <= FAIR else "poor"

    @property
    def fact(self) -> str:
        """The two numbers, as the beginning of a sentence."""
        where = f"over {len(self.rows)} contexts" if len(self.rows) > 1 else "for the one constant"
        return (
            f"χ̂ and −log ∫ exp f̂ differ by {self.rms:.2g} (rms) and at most {self.largest:.2g} on the log scale {where}"
        )

    @property
    def verdict(self) -> str:
        """What the differences mean, and what to do about them."""
        if self.quadrature_error > max(0.3 * self.rms, 0.01):
            finer = either(" Raise order=.", "")
            return (
                f"{self.fact}, but the integrals themselves are uncertain by {self.quadrature_error:.1g}: nothing can "
                f"be said.{finer}"
            )
        percent = f"{100 * np.expm1(max(self.rms, 1e-12)):.2g} %"
        if self.grade == "good":
            return f"{self.fact}: the constants are known to {percent}. Good."
        if self.free:
            return (
                f"{self.fact}. Each ν_t rests on one observation and its own reference points and is noisy by itself: "
                f"the scatter of {self.shape:.2g} says little; the mean difference is {self.level:.2g}."
            )
        chi, more = either("the normaliser", "--normaliser"), f"more reference points ({option('per_point')})"
        if self.shape > max(GOOD, 0.5 * self.variation):
            return (
                f"{self.fact}; their sd over the contexts is {self.shape:.2g} where the constants themselves vary by "
                f"{self.variation:.2g}: χ̂ does not follow them. Give {chi} more or other terms (a larger k=), or take "
                f"{more}."
            )
        if self.shape <= GOOD:
            return f"{self.fact}, nearly all of it a common level ({self.level:.2g}), which moves χ̂ and not f̂. Fair."
        if self.grade == "fair":
            return f"{self.fact}: the constants are known to {percent}. Fair; a larger k= in {chi} may do better."
        return f"{self.fact}: too much to trust χ̂ as a normaliser. Give {chi} more terms, or take {more}."

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        return (
            f"NormaliserCheck({self.grade}: rms {self.rms:.3g}, largest {self.largest:.3g}, {len(self.rows)} contexts)"
        )

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
    rows = evenly(obs.n, count) if obs.has_context else np.zeros(1, int)
    some = obs.take(rows)
    found = constants(density, some, order, proposal)
    here = (np.full(len(rows), chi[0]) if chi.size == 1 else chi[rows]) + some.offsets
    return NormaliserCheck(read_only(here), read_only(-found.log_z), read_only(rows), found.error, free)
