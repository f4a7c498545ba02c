"""Bits of outcomes that could not vary or were not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np


@final
@dataclass(frozen=True, eq=False)
class Masks:
    """(n, d) booleans beside the outcomes, which hold 0 wherever one of the first two is true."""

    fixed: np.ndarray  # the bit could only be 0: an actor was not there
    missing: np.ndarray  # it was not observed
    before: np.ndarray  # the same bit of the previous outcome did not exist or was not observed

    @classmethod
    def of(cls, fixed: np.ndarray, missing: np.ndarray, before: np.ndarray) -> Masks | None:
        """The masks, or None where all are false."""
        return cls(fixed, missing, before) if fixed.any() or missing.any() or before.any() else None

    def take(self, index: np.ndarray) -> Masks:
        return Masks(self.fixed[index], self.missing[index], self.before[index])

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
