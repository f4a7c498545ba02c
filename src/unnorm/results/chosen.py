"""Errors of parameters that the user names, where all of them at once are too many or not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.frames import to_native
from .._base.intervals import quantile
from .._base.numerics import Rng, generator, whole
from ..errors import InputError, listing, unknown
from ..inference.sandwich import too_few
from .fit import Fit
from .making import SIMULATED


def errors_of(fit: Fit, which: str | Sequence[str], level: float, simulated: int | None, rng: Rng) -> Any:
    """The table of `Fit.errors_of`."""
    names = [which] if isinstance(which, str) else list(which)
    place = {name: j for j, name in enumerate(fit.names)}
    for name in names:
        if name not in place:
            raise InputError(unknown("which", name, fit.names))
    if not names or len(set(names)) < len(names):
        raise InputError(f"which must name parameters, each once; got {listing(names) or 'none'}.")
    index = np.array([place[name] for name in names])
    V = _covariance(fit, index, simulated, rng)
    df = fit.df if simulated is None and fit.has_covariance else None
    estimate, se, z = fit.estimate[index], np.sqrt(np.diag(V)), quantile(level, df)
    table = {"term": np.array(names), "estimate": estimate, "se": se}
    return to_native({**table, "lower": estimate - z * se, "upper": estimate + z * se}, fit.backend)


def _covariance(fit: Fit, index: np.ndarray, simulated: int | None, rng: Rng) -> np.ndarray:
    some = None if fit.solution is None else fit.solution.chosen
    if simulated is not None:
        draws = whole(simulated, "simulated", least=100)
        if some is None:
            raise InputError(
                "Simulated errors are those of a pseudo-likelihood, objective=un.ConditionalNCE(un.BitFlip(every=True))"
                ", before the fit is saved."
            )
        return _on_users_scale(fit, index, lambda at: some.simulated(at, draws, generator(rng)))
    if fit.has_covariance or some is None:
        return fit.covariance[np.ix_(index, index)]
    if "clusters" in fit.diagnostics:
        raise InputError(
            "Errors of chosen parameters are from the scores of single observations, and the objective names clusters, "
            "within which these depend on each other. Leave cluster= out where a chain's steps are independent given "
            "the past."
        )
    if fit.n <= len(fit.names):
        raise InputError(too_few(fit.n, False, len(fit.names), SIMULATED))
    return _on_users_scale(fit, index, some.empirical)


def _on_users_scale(fit: Fit, index: np.ndarray, covariance: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The covariance of parameters, from that of the solver's, which may count covariates from their means."""
    moved = None if fit.solution is None else fit.solution.centred
    if moved is None:
        return covariance(index)
    needed, T = moved.rows(index)
    return T @ covariance(needed) @ T.T
