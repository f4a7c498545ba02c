"""What a fit with smooth terms is asked for: its terms, their effects, χ̂ elsewhere, and the columns that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.observations import Observations
from ..errors import InputError, unknown
from .smooths import SmoothPart

if TYPE_CHECKING:
    from .fit import Fit


def smooth_terms(fit: Fit) -> SmoothPart:
    """The smooth terms of a fit that has some."""
    if fit.smooths is None:
        raise InputError("This fit has no smooth terms; its parameters are in `theta` and `tidy()`.")
    return fit.smooths


def effect_columns(
    fit: Fit, label: str, at: Any, level: float, centre: str, robust: bool = False
) -> dict[str, np.ndarray]:
    """One term's effect by column."""
    part = smooth_terms(fit)
    if centre == "rows":
        return part.effect(label, at, level, robust=robust)
    if centre != "observations":
        raise InputError(unknown("centre", centre, ("rows", "observations")))
    if fit.model is None or fit.obs is None:
        raise InputError("A loaded fit has no observations to centre over: centre='rows', or fit again.")
    names = part.term(label).covariates
    return part.effect(label, at, level, fit.model.covariates(fit.obs).values(names, fit.obs), robust)


def chi_at(fit: Fit, part: SmoothPart, obs: Observations) -> np.ndarray:
    """χ̂ at the contexts of other observations."""
    assert fit.model is not None
    names = dict.fromkeys(name for label in part.normaliser_labels for name in part.term(label).covariates)
    return part.chi(fit.model.covariates(obs).values(names, obs), obs.n)


def columns_read(fit: Fit) -> tuple[str, ...] | None:
    """The columns that f's terms read, through the user's own covariates too; None where f is a function."""
    if fit.smooths is None or fit.model is None or fit.model.parametric:
        return None
    names = [name for label in fit.smooths.model_labels for name in fit.smooths.term(label).covariates]
    for name in names:  # grows as it goes
        names += [need for need in fit.model.needs(name) if need not in names]
    return tuple(names)
