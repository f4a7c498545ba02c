"""What a contrast says about itself: what its reference points cost, how many would do, whether they lie too far off.

With c times as many reference points the log-odds fall by log c, and the reference rows count c times: the variances of
θ̂ at other k follow from the rows at hand. The variance of points that are not IID is measured: on fresh ones at the
present number and at fewer, where their noise grows faster than IID points'. More of them are taken to gain as IID
points would, which they surpass: a stated number is then more than enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np

from .._base.numerics import quadratic_forms
from .._base.threads import cores, run_tasks
from ..objectives.scores import Drawn, Scores
from .sandwich import ErrorParts, bread, information_penalty

MULTIPLES = tuple(4.0**j for j in range(-2, 5))  # of the present number of reference points
LIMIT = 1e4  # times as many points: as good as infinitely many


@final
class Evidence:
    """Computed once, when first asked for."""

    def __init__(self, compute: Callable[[], dict[str, Any]]) -> None:
        self._compute: Callable[[], dict[str, Any]] | None = compute
        self._found: dict[str, Any] | None = None

    def __call__(self) -> dict[str, Any]:
        if self._found is None:
            assert self._compute is not None
            self._found, self._compute = self._compute(), None  # releases the rows
        return self._found

    @property
    def computed(self) -> dict[str, Any] | None:
        """The evidence if it has been asked for: what saving may keep without computing."""
        return self._found


@final
@dataclass(frozen=True)
class Quantities:
    """What variances are wanted of: single parameters, or terms as functions over their grids."""

    names: tuple[str, ...]
    variances: Callable[[np.ndarray], np.ndarray]  # covariance of the scores' coordinates → one variance for each name


def parameters(names: Sequence[str], moved: Callable[[np.ndarray], np.ndarray] | None = None) -> Quantities:
    """The first coordinates, one by one; `moved`: their covariance on the user's scale, where that is another."""
    return Quantities(tuple(names), lambda V: np.diag(V if moved is None else moved(V))[: len(names)])


def terms(designs: Mapping[str, tuple[slice, np.ndarray]]) -> Quantities:
    """Terms by label, each with its coefficients and its columns on a grid: the mean variance over the grid, as far as
    the term is defined there (a film is not, outside its boundary)."""
    inside = [(at, C[~np.isnan(C).any(axis=1)]) for at, C in designs.values()]
    return Quantities(tuple(designs), lambda V: np.array([quadratic_forms(C, V[at, at]).mean() for at, C in inside]))


def evidence(
    scores: Scores,
    errors: ErrorParts,
    wanted: Quantities,
    *,
    value: float,
    least: float,
    criterion: bool = True,
) -> dict[str, Any]:
    """What `Fit.advise` reads.

    Args:
        scores: at the estimate.
        errors: of all its coordinates.
        wanted: of what.
        value: of the objective, for NCIC.
        least: the multiple at which one point (of each context) is left: there is nothing below.
        criterion: whether NCIC means something (not with a constant for each observation).
    """
    auc, effective = scores.overlap()
    penalty = information_penalty(scores) if criterion else None
    return {
        **_costs(scores, errors, wanted, least),
        "auc": auc,
        "effective": effective,
        "penalty": penalty,
        "ncic": None if penalty is None else -2 * value + 2 * penalty,
    }


def _costs(scores: Scores, errors: ErrorParts, wanted: Quantities, least: float) -> dict[str, Any]:
    """For each name the reference points' share of the variance at each multiple, and the inflation of its se."""
    total, reference = wanted.variances(errors.total), wanted.variances(errors.reference)

    @cache
    def cost(c: float) -> tuple[np.ndarray, np.ndarray]:
        """Sampling and (IID) reference variance with c times as many points."""
        there = scores.more(c)
        if there is None:
            return total - reference, reference / c
        V = bread(there)
        points = wanted.variances(V @ there.points_spread(2) @ V)
        sigma1 = there.data_spread() if there.penalty is None else there.data_spread() + there.penalty
        sampling = np.maximum(wanted.variances(V @ sigma1 @ V), 1e-3 * wanted.variances(V))
        return scores.widened * sampling, points

    gain = reference / np.maximum(cost(1.0)[1], 1e-300)  # what evenly spread points have over IID ones

    def at(c: float) -> tuple[np.ndarray, np.ndarray]:
        sampling, iid = cost(c)
        if scores.drawn is Drawn.EVENLY and c < 1.0:
            there = scores.more(c)
            if there is not None:
                V, spread = bread(there), scores.measured_spread(c)
                if spread is not None:
                    return sampling, np.maximum(wanted.variances(V @ spread @ V), gain * iid)
        return sampling, gain * iid

    wide, *each = run_tasks(at, [(LIMIT,), *((max(c, least),) for c in MULTIPLES)], cores())
    limit = np.maximum(wide[0], 1e-300)
    shares, inflations = [], []
    for sampling, other in each:
        shares.append(other / np.maximum(sampling + other, 1e-300))
        inflations.append(np.sqrt(np.maximum((sampling + other) / limit, 1.0)))
    return {
        "names": list(wanted.names),
        "share": (reference / np.maximum(total, 1e-300)).tolist(),
        "multiples": list(MULTIPLES),
        "shares": np.array(shares).tolist(),  # by multiple, then name
        "inflation": inflations[MULTIPLES.index(1.0)].tolist(),
        "inflations": np.array(inflations).tolist(),
    }
