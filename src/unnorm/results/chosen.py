"""Errors of parameters that the user names, where all of them at once are too many or not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.frames import to_native
from .._base.intervals import quantile
from .._base.numerics import Rng, generator, whole
from ..errors import InputError, listing, unknown
from ..inference.clusters import cluster_factor, degrees_of_freedom
from ..inference.sandwich import too_few
from ..objectives.base import cluster_labels
from ..objectives.scores import sum_by
from .fit import Fit
from .making import REMEDY_CLUSTERS, SIMULATED


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
    V, df = _covariance(fit, index, simulated, rng)
    estimate, se, z = fit.estimate[index], np.sqrt(np.diag(V)), quantile(level, df)
    table = {"term": np.array(names), "estimate": estimate, "se": se}
    return to_native({**table, "lower": estimate - z * se, "upper": estimate + z * se}, fit.backend)


def _covariance(fit: Fit, index: np.ndarray, simulated: int | None, rng: Rng) -> tuple[np.ndarray, float | None]:
    """Of these parameters, and the degrees of freedom of intervals."""
    some = None if fit.solution is None else fit.solution.chosen
    if simulated is not None:
        draws = whole(simulated, "simulated", least=100)
        if some is None:
            raise InputError(
                "Simulated errors are those of a pseudo-likelihood, objective=un.ConditionalNCE(un.BitFlip(every=True))"
                ", before the fit is saved."
            )
        return _on_users_scale(fit, index, lambda at: some.simulated(at, draws, generator(rng))), None
    if fit.has_covariance or some is None:
        return fit.covariance[np.ix_(index, index)], fit.df
    units, clustered = fit.diagnostics.get("clusters", fit.n), "clusters" in fit.diagnostics
    if units <= len(fit.names):
        remedy = f"{REMEDY_CLUSTERS} {SIMULATED}" if clustered else SIMULATED
        raise InputError(too_few(units, clustered, len(fit.names), remedy))
    if not clustered:
        return _on_users_scale(fit, index, some.empirical), None
    assert fit.obs is not None
    label = cluster_labels(fit.settings["objective"]["cluster"], fit.obs)
    assert label is not None
    own = some.weights
    share = np.bincount(label, own) / own.sum()
    found: list[float] = []

    def by_cluster(at: np.ndarray) -> np.ndarray:
        G, points = some.influences(at)
        g = sum_by(G, label, len(share)) * cluster_factor(share)[:, None]
        plain = np.sum(G**2 / np.maximum(own, 1e-300)[:, None])
        found.append(degrees_of_freedom(share, float(np.sum(g**2) / max(plain, 1e-300))))
        return g.T @ g + points

    return _on_users_scale(fit, index, by_cluster), found[0]


def _on_users_scale(fit: Fit, index: np.ndarray, covariance: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The covariance of parameters, from that of the solver's, which may count covariates from their means."""
    moved = None if fit.solution is None else fit.solution.centred
    if moved is None:
        return covariance(index)
    needed, T = moved.rows(index)
    return T @ covariance(needed) @ T.T
