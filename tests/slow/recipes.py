"""Ways of fitting a law, by name: objective, points, constants.

The constants are exact (`Exact`, `Poisson`, known), cancel (`Ranking`, `ConditionalNCE`), or are not penalised: one ν
for IID data, a saturated or spline χ otherwise (`Law.chi`), or one ν_t for each context against many points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from law import CLUSTER, Law, Variant, is_clustered

import unnorm as un

SMOOTHING = un.Smoothing("reml", threads=1)
Recipe = Callable[[Law, str | None], dict[str, Any]]  # (law, cluster column) → arguments of un.fit


def _count(law: Law, k: int | None = None) -> dict[str, int]:
    return {"total": law.points} if law.kind == "iid" else {"per_point": law.points if k is None else k}


def _integral(objective: Any) -> Recipe:
    return lambda law, cluster: {"objective": objective(order=law.order, cluster=cluster)}


def _poisson_smooth(law: Law, cluster: str | None) -> dict[str, Any]:
    """𝓜 with an unpenalised χ in place of a ν_t for each context."""
    return {"objective": un.Poisson(cluster=cluster), "normaliser": un.Smooth(law.chi), "smoothing": SMOOTHING}


def _rows(objective: Any, points: Any, k: int | None = None) -> Recipe:
    """An objective that is a sum over rows, its constants not penalised."""

    def recipe(law: Law, cluster: str | None) -> dict[str, Any]:
        found: dict[str, Any] = {
            "objective": objective(law.reference, points=points, cluster=cluster, **_count(law, k))
        }
        if law.kind != "iid":
            found |= {"normaliser": un.Smooth(law.chi), "smoothing": SMOOTHING}
        return found

    return recipe


def _per_context(objective: Any, k: int) -> Recipe:
    return lambda law, cluster: {
        "objective": objective(law.reference, per_point=k, points=un.IID(), cluster=cluster),
        "normaliser": un.PerContext(),
    }


def _known(objective: Any, points: Any) -> Recipe:
    """Constants that are known: the model integrates to one."""
    return lambda law, cluster: {
        "model": law.flat,
        "objective": objective(law.reference, points=points, cluster=cluster, **_count(law)),
        "normaliser": un.Fixed(0.0),
    }


def _choice(objective: Any, k: int | None = None) -> Recipe:
    return lambda law, cluster: {"objective": objective(law.reference, cluster=cluster, **_count(law, k))}


def _flips(law: Law, cluster: str | None) -> dict[str, Any]:
    """Conditional NCE with a kernel around the outcome: a flipped bit, or a step on the interval."""
    kernel = un.BitFlip() if law.finite else un.Gaussian(mean=0.0, cov=0.04, around="outcome")
    return {"objective": un.ConditionalNCE(kernel, per_point=4, cluster=cluster)}


RECIPES: Mapping[str, Recipe] = {
    "exact": _integral(un.Exact),
    "poisson": _integral(un.Poisson),
    "poisson smooth": _poisson_smooth,
    "logistic iid": _rows(un.Logistic, un.IID()),
    "logistic stratified": _rows(un.Logistic, un.Stratified()),
    "logistic lattice": _rows(un.Logistic, un.Lattice()),
    "logistic lattice ×4": _rows(un.Logistic, un.Lattice(randomisations=4), 8),
    "logistic sobol": _rows(un.Logistic, un.Sobol()),
    "logistic iid k=1": _rows(un.Logistic, un.IID(), 1),
    "logistic lattice k=2": _rows(un.Logistic, un.Lattice(), 2),
    "logistic per context": _per_context(un.Logistic, 40),
    "logistic known": _known(un.Logistic, un.IID()),
    "logistic known lattice": _known(un.Logistic, un.Lattice()),
    "importance iid": _rows(un.Importance, un.IID()),
    "importance stratified": _rows(un.Importance, un.Stratified()),
    "importance lattice": _rows(un.Importance, un.Lattice()),
    "importance known": _known(un.Importance, un.IID()),
    "ranking": _choice(un.Ranking),
    "ranking k=1": _choice(un.Ranking, 1),
    "cnce": _choice(un.ConditionalNCE),
    "cnce k=1": _choice(un.ConditionalNCE, 1),
    "cnce flips": _flips,
}


def arguments(law: Law, recipe: str, variant: Variant) -> dict[str, Any]:
    """What `un.fit` is called with, observations and rng excepted."""
    found = RECIPES[recipe](law, CLUSTER if is_clustered(variant) else None)
    return {"model": law.model, **found}
