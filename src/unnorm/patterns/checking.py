"""Envelopes of a fitted model: simulations, and summary functions that know the fitted intensity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.numerics import Rng, generator, whole
from ..errors import InputError, unknown
from .functions.envelope import FUNCTIONS, Envelope, summarised
from .functions.inhomogeneous import SHARE
from .point_pattern import Pattern
from .where import places_at

if TYPE_CHECKING:
    from .result import PatternFit

BY_NEAREST = ("F", "G", "J")  # functions that need a lower bound of λ too
ACROSS = 64  # cells of the grid on which the bound is sought


def model_envelope(
    fit: PatternFit, function: str, n: int, r: Any, level: float, rng: Rng, options: dict[str, Any]
) -> Envelope:
    """The data's function beside those of n patterns of the model."""
    if function not in FUNCTIONS:
        raise InputError(unknown("function", function, tuple(FUNCTIONS)))
    pattern, count = fit.pattern, whole(n, "n", 19)
    if pattern.replicates > 1:
        raise InputError("An envelope is of one pattern: fit one replicate, pattern.only(0).")
    least = 1 if function == "F" else 2
    simulated = [one for one in fit.simulate(count, generator(rng)) if one.n >= least]
    if len(simulated) < count:
        raise InputError(f"{count - len(simulated)} of {count} simulated patterns have too few points for {function}.")
    patterns = [pattern, *simulated]
    given = _intensities(fit, patterns, function) if _varies(fit) else [{}] * len(patterns)
    own = FUNCTIONS[function](pattern, r, **given[0], **options)
    curves = [FUNCTIONS[function](one, own.r, **more, **options).value for one, more in zip(simulated, given[1:])]
    return summarised(function, own, np.stack(curves), level)


def _intensities(fit: PatternFit, patterns: list[Pattern], function: str) -> list[dict[str, Any]]:
    """What a function of each pattern is told of λ; one lower bound for all, so that they estimate one function."""
    process = fit.process()
    found = [np.exp(process.log_trend(one.places)) for one in patterns]
    if function not in BY_NEAREST:
        return [{"intensity": one} for one in found]
    everywhere = np.exp(process.log_trend(places_at(fit.pattern, ACROSS)))
    bound = SHARE * float(min(everywhere.min(), *(one.min() for one in found)))
    return [{"intensity": one, "least": bound} for one in found]


def _varies(fit: PatternFit) -> bool:
    """Whether a Poisson model's intensity varies over the window."""
    return fit.poisson and bool(fit.fitted.model.terms.terms or fit.fitted.model.terms.offsets)
