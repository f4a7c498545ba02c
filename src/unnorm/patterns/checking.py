"""Envelopes of a fitted model: simulations, and summary functions that know the fitted intensity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.numerics import Rng, generator, whole
from ..errors import InputError, unknown
from .functions.envelope import FUNCTIONS, Envelope, summarised
from .point_pattern import Pattern

if TYPE_CHECKING:
    from .result import PatternFit

BY_INTENSITY = ("K", "L", "g")  # functions that can divide by λ


def model_envelope(
    fit: PatternFit, function: str, n: int, r: Any, level: float, rng: Rng, options: dict[str, Any]
) -> Envelope:
    """The data's function beside those of n patterns of the model."""
    if function not in FUNCTIONS:
        raise InputError(unknown("function", function, tuple(FUNCTIONS)))
    pattern = fit.pattern
    if pattern.replicates > 1:
        raise InputError("An envelope is of one pattern: fit one replicate, pattern.only(0).")
    compute, varying = FUNCTIONS[function], _varies(fit) and function in BY_INTENSITY

    def value(one: Pattern, grid: Any) -> Any:
        more = {"intensity": np.exp(fit.process().log_trend(one.places))} if varying else {}
        return compute(one, grid, **more, **options)

    own = value(pattern, r)
    least = 1 if function == "F" else 2
    simulated = [one for one in fit.simulate(whole(n, "n", 19), generator(rng)) if one.n >= least]
    if len(simulated) < n:
        raise InputError(f"{n - len(simulated)} of {n} simulated patterns have too few points for {function}.")
    curves = np.stack([value(one, own.r).value for one in simulated])
    return summarised(function, own, curves, level)


def _varies(fit: PatternFit) -> bool:
    """Whether a Poisson model's intensity varies over the window."""
    return fit.poisson and bool(fit.fitted.model.terms.terms or fit.fitted.model.terms.offsets)
