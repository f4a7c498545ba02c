"""`FitGroup`: the fits of all levels, the population's curves, and what can be asked of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._numerics import Rng
from ..models.base import Unnormalised
from ..results import Fit


@final
@dataclass(frozen=True, eq=False)
class FitGroup:
    """The same model fitted to each level of a factor, and the population's curves from a joint fit.

    `fits["3"]` is level 3's own `Fit`. `group` is a `Fit` too: its terms are the main effects of the joint fit, its bands
    are for the population's mean curve, and it can be simulated from and saved like any other.
    """

    by: str  # the group column
    fits: Mapping[str, Fit]  # level as text → its fit, in the order of the levels
    group: Fit | None  # the population's curves; None with group=False, with one level, or where the joint fit failed
    failures: Mapping[str, str]  # level → why it has no fit
    labels: tuple[str, ...]  # the terms of f, in the model's order
    grids: Mapping[str, Mapping[str, np.ndarray]]  # label → covariate → values: one grid for all levels
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()  # about the whole; each fit has its own besides
    seed: int | None = None
    model: Unnormalised | None = None
    backend: Any = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)  # seconds, rows, the deviations' sd by term

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that have a fit."""
        return tuple(self.fits)

    def effect(self, label: str, which: str = "group", at: Any = None, level: float = 0.95) -> Any:
        """One term's effect as a table: its covariates, estimate, se, se_sampling, se_reference, lower, upper.

        Args:
            label: as in `labels`, e.g. "s(angle)".
            which: "group" (the population, joint fit), "mean" (the plain mean of the separate fits, as in the paper; its
                bands are too narrow: smoothing bias does not average out), or a level.
            at: covariate values; default the common grid.
            level: of the pointwise band.
        """
        raise NotImplementedError

    def effects(self, level: float = 0.95) -> Any:
        """All effects as one long table: by ("group", or the level), term, each covariate under its own name (nan where
        a term does not have it), estimate, se, se_reference, lower, upper."""
        raise NotImplementedError

    def tidy(self, level: float = 0.95) -> Any:
        """A table of smooth terms and parameters: by, term, edf, p (smooths), estimate, se, lower, upper (parameters)."""
        raise NotImplementedError

    def summary(self) -> str:
        """The fits as a text for people."""
        raise NotImplementedError

    def plot(self, labels: Any = None) -> Any:
        """(Figure, axes): a panel for each term; levels grey, group blue with its band, plain mean dashed."""
        raise NotImplementedError

    def simulate(
        self, n: int = 100, which: str = "group", rng: Rng = None, steps: int = 10, starts: Any = None
    ) -> Any:
        """n chains of `steps` steps from the population's density or a level's: a table chain, step, and the outcome."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder with one folder for each fit; `un.load(path)` reads it."""
        raise NotImplementedError


def load_group(path: str | os.PathLike[str], model: Unnormalised | None = None) -> FitGroup:
    """Read a saved FitGroup; with `model`, everything works; without it, numbers and tables do."""
    raise NotImplementedError
