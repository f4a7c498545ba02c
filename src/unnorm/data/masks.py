"""Bits of outcomes that could not vary or were not seen: of binary vectors and of graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np


@final
@dataclass(frozen=True, eq=False)
class Masks:
    """(n, d) booleans beside the outcomes.

    Where a bit is missing the outcome holds NaN if draws are to stand in for it (`imputed`). Else it holds 0, as it
    does where the bit is fixed; its own term is left out, and others count it as absent.
    """

    fixed: np.ndarray  # the bit could only be 0: an actor was not there
    missing: np.ndarray  # it was not observed
    before: np.ndarray  # the same bit of the previous outcome did not exist or was not observed
    imputed: bool = False  # whether draws stand in for missing bits where others read them

    @classmethod
    def of(cls, fixed: np.ndarray, missing: np.ndarray, before: np.ndarray) -> Masks | None:
        """The masks, or None where all are false."""
        return cls(fixed, missing, before) if fixed.any() or missing.any() or before.any() else None

    @classmethod
    def holes(cls, missing: np.ndarray) -> Masks | None:
        """Missing bits that are to be imputed, and nothing else; None where there are none."""
        nothing = np.broadcast_to(np.False_, missing.shape)
        return cls(nothing, missing, nothing, imputed=True) if missing.any() else None

    def take(self, index: np.ndarray) -> Masks:
        return replace(self, fixed=self.fixed[index], missing=self.missing[index], before=self.before[index])

    @property
    def complete(self) -> np.ndarray:
        """(n,) the observations of which every bit, now and before, could vary and was seen."""
        return ~np.any(self.fixed | self.missing | self.before, axis=1)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is left out, in sentences."""
        out = []
        if count := int(self.fixed.sum()):
            out.append(f"{count:,} of {self.fixed.size:,} dyads are fixed at no tie, as an actor was not there.")
        if count := int(self.missing.sum()):
            out.append(
                f"{count:,} of {self.missing.size:,} ties are missing: they are not modelled as zeros. "
                "Pseudo-likelihood leaves out their terms, and counts them as absent in the change statistics of "
                "others, as ergm does; un.MonteCarloML() sums over what they can be."
            )
        return tuple(out)
