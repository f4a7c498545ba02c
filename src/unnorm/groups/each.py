"""`fit_each`: the same model for each level of a group column, as one batch on all cores."""

from __future__ import annotations

from .._numerics import Rng
from ..data import Observations
from ..fitting import Outside
from ..models.base import Unnormalised
from ..normalisers import Normaliser
from ..objectives.base import Objective
from ..solvers.smoothing import Smoothing
from .result import FitGroup


def fit_each(
    model: Unnormalised,
    obs: Observations,
    by: str,
    objective: Objective | None = None,
    normaliser: Normaliser | None = None,
    smoothing: str | Smoothing = "reml",
    rng: Rng = None,
    group: bool = True,
    outside: Outside = "error",
) -> FitGroup:
    """Fit the model separately to each level of `by`, and jointly for the population's curves."""
    raise NotImplementedError
