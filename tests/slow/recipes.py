"""Ways of fitting a law, by name: objective, points, constants.

The constants are exact (`Exact`, `Poisson`, known), cancel (`Ranking`, `ConditionalNCE`), or are not penalised: one ν
for IID data, a saturated or spline χ otherwise (`Law.chi`), or one ν_t for each context against many points; or they
follow θ (`Anchored`, the default).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from law import CLUSTER, Law, Variant, is_clustered

import unnorm as un

SMOOTHING = un.Smoothing("reml", threads=1)
Recipe = Callable[[Law, Variant], dict[str, Any]]  # what un.fit is called with, observations and rng excepted


def _cluster(variant: Variant) -> str | None:
    return CLUSTER if is_clustered(variant) else None


def _count(law: Law, variant: Variant, k: int | None = None) -> dict[str, Any]:
    """Number of points, and clusters."""
    points = law.weighted_points if variant == "weighted" else law.points
    number = {"total": points} if law.kind == "iid" else {"per_point": points if k is None else k}
    return {**number, "cluster": _cluster(variant)}


def _integral(objective: Any) -> Recipe:
    return lambda law, variant: {"objective": objective(order=law.order, cluster=_cluster(variant))}


def _poisson_smooth(law: Law, variant: Variant) -> dict[str, Any]:
    """𝓜 with an unpenalised χ in place of a ν_t for each context."""
    return {
        "objective": un.Poisson(cluster=_cluster(variant)),
        "normaliser": un.Smooth(law.chi),
        "smoothing": SMOOTHING,
    }


def _rows(objective: Any, points: Any, k: int | None = None) -> Recipe:
    """An objective that is a sum over rows, its constants not penalised."""

    def recipe(law: Law, variant: Variant) -> dict[str, Any]:
        found: dict[str, Any] = {"objective": objective(law.reference, points=points, **_count(law, variant, k))}
        if law.kind != "iid":
            found |= {"normaliser": un.Smooth(law.chi), "smoothing": SMOOTHING}
        return found

    return recipe


def _per_context(objective: Any, k: int) -> Recipe:
    return lambda law, variant: {
        "objective": objective(law.reference, points=un.IID(), **_count(law, variant, k)),
        "normaliser": un.PerContext(),
    }


def _known(objective: Any, points: Any, k: int | None = None) -> Recipe:
    """Constants that are known: the model integrates to one."""
    return lambda law, variant: {
        "model": law.flat,
        "objective": objective(law.reference, points=points, **_count(law, variant, k)),
        "normaliser": un.Fixed(0.0),
    }


def _choice(objective: Any, k: int | None = None) -> Recipe:
    return lambda law, variant: {"objective": objective(law.reference, **_count(law, variant, k))}


def _defaults(k: int, points: Any = None) -> Recipe:
    """Everything left out that can be: the reference, and with a context constants that follow θ."""
    return lambda law, variant: {"objective": un.Logistic(points=points, per_point=k, cluster=_cluster(variant))}


def _flips(law: Law, variant: Variant) -> dict[str, Any]:
    """Conditional NCE with a kernel around the outcome: a flipped bit, or a step on the interval."""
    kernel = un.BitFlip() if law.finite else un.Gaussian(mean=0.0, cov=0.04, around="outcome")
    k = 4 if law.finite or variant != "weighted" else 40
    return {"objective": un.ConditionalNCE(kernel, per_point=k, cluster=_cluster(variant))}


RECIPES: Mapping[str, Recipe] = {
    "exact": _integral(un.Exact),
    "poisson": _integral(un.Poisson),
    "poisson smooth": _poisson_smooth,
    "logistic iid": _rows(un.Logistic, un.IID()),
    "logistic stratified": _rows(un.Logistic, un.Stratified()),
    "logistic lattice": _rows(un.Logistic, un.Lattice()),
    "logistic lattice ×4": _rows(un.Logistic, un.Lattice(randomisations=4), 8),
    "logistic sobol": _rows(un.Logistic, un.Sobol()),
    "logistic sobol ×4": _rows(un.Logistic, un.Sobol(randomisations=4), 8),
    "logistic iid k=1": _rows(un.Logistic, un.IID(), 1),
    "logistic lattice k=1": _rows(un.Logistic, un.Lattice(), 1),
    "logistic lattice k=2": _rows(un.Logistic, un.Lattice(), 2),
    "logistic stratified k=4": _rows(un.Logistic, un.Stratified(), 4),
    "logistic per context": _per_context(un.Logistic, 40),
    "logistic known": _known(un.Logistic, un.IID()),
    "logistic known lattice": _known(un.Logistic, un.Lattice()),
    "importance iid": _rows(un.Importance, un.IID()),
    "importance stratified": _rows(un.Importance, un.Stratified()),
    "importance lattice": _rows(un.Importance, un.Lattice()),
    "importance sobol": _rows(un.Importance, un.Sobol()),
    "importance known": _known(un.Importance, un.IID(), 12),
    "ranking": _choice(un.Ranking),
    "ranking k=1": _choice(un.Ranking, 1),
    "cnce": _choice(un.ConditionalNCE),
    "cnce k=1": _choice(un.ConditionalNCE, 1),
    "cnce flips": _flips,
    "anchored": _defaults(20),
    "anchored iid": _defaults(20, un.IID()),
    "anchored stratified": _defaults(20, un.Stratified()),
    "anchored k=2": _defaults(2),
    "anchored iid k=2": _defaults(2, un.IID()),
}


def arguments(law: Law, recipe: str, variant: Variant) -> dict[str, Any]:
    """What `un.fit` is called with, observations and rng excepted."""
    return {"model": law.model, **RECIPES[recipe](law, variant)}
