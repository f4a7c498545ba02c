"""What a model of scanpaths misses: observed points against points drawn from the fit at the same contexts.

At every context x_t one or more points are drawn from p̂(·|x_t). The odds that a point was observed, and not drawn, are

    p(y|x)/p̂(y|x) = exp{f(y|x) − f̂(y|x) + c(x)}

so that a logistic regression of observed against drawn points on smooth functions of length, direction, turn and place
estimates what f̂ lacks, each in the presence of the others: a bias to the left moves places, too, and is found in the
directions alone. c(x), the difference of the log constants, is a smooth function of the previous place. Contexts are
the observed ones, so that nothing a path did before is held against a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ..engine import gam

SURELY = 0.01  # p from which a feature is said to be missed, if it also matters:
MATTERS = 0.1  # the typical error of the log density (root mean square over drawn points)
RADIAL = 0.7  # share of a surface that is a function of the distance from the centre, from which it is called one
CONSTANTS = ("s(across_before, down_before, k=20)", ("across_before", "down_before"))  # c(x), and what it reads
LEAST = 100  # observed points below which nothing is said


@final
@dataclass(frozen=True)
class Feature:
    """What is read of a step, how to say it, the smooth function that looks for what is missing, and what to add."""

    name: str
    words: str
    smooth: str  # of the regression of observed against drawn points
    columns: tuple[str, ...]  # that it reads
    term: str  # to add to the model
    enough: frozenset[str]  # covariates that such a term is of: where the model has them all, a larger k
    circular: bool = False


TURN = Feature(
    "turn", "turn from the step before", "s(turn, bs='cc', k=10)", ("turn",),
    "s(turn, bs='cc', k=10) with --lags 2", frozenset({"turn"}), True,
)  # fmt: skip
FEATURES = (
    Feature("step", "length of steps", "s(step, k=10)", ("step",), "s(step, k=20)", frozenset({"step"})),
    Feature(
        "direction", "direction of steps", "s(direction, bs='cc', k=12)", ("direction",), "s(angle, bs='cc', k=20)",
        frozenset({"angle"}), True,
    ),
    TURN,
    Feature("place", "place in the window", "s(across, down, k=20)", ("across", "down"), "", frozenset()),
)  # fmt: skip
AROUND = ("s(drel, k=10)", (frozenset({"drel"}), frozenset({"dcenter"})))  # terms of places, and what is enough of them
ANYWHERE = {False: ("s(x, y, k=40)", frozenset({"x", "y"})), True: ("s(xrel, yrel, k=40)", frozenset({"xrel", "yrel"}))}


@final
@dataclass(frozen=True)
class Misfit:
    """One feature, observed and drawn, and what the model lacks of it."""

    feature: Feature
    observed: tuple[float, ...]  # means, of each column that it reads; of angles the mean cosine
    drawn: tuple[float, ...]
    size: float  # rms of f − f̂ over drawn points, as a function of this feature
    p: float
    radial: bool = False  # of places: whether what lacks is a function of the distance from the centre

    @property
    def missed(self) -> bool:
        """Whether the model misses it: surely, and by enough to matter."""
        return self.p <= SURELY and self.size > MATTERS

    def lacks(self, columns: frozenset[str], windows: bool = False) -> tuple[str | None, frozenset[str]]:
        """The term that a model of these covariates lacks, None where it has it, and what that term is of; `windows`:
        whether each sequence has its own."""
        term, enough = self.feature.term, self.feature.enough
        if not term:
            around = self.radial and not any(one <= columns for one in AROUND[1])
            term, enough = (AROUND[0], AROUND[1][0]) if around else ANYWHERE[windows]
        return None if enough <= columns else term, enough


def advice(found: Sequence[Misfit], columns: frozenset[str], windows: bool = False) -> dict[str, str]:
    """Name of each feature that is missed → what would help. A term that the model has may be wrong only because it
    stands in for one that lacks, which is to be added first."""
    missed = sorted((one for one in found if one.missed), key=lambda one: -one.size)
    lacking = {one.feature.name: one.lacks(columns, windows) for one in missed}
    some = any(term is not None for term, _ in lacking.values())
    out = {}
    for name, (term, enough) in lacking.items():
        own = ", ".join(sorted(enough))
        out[name] = (
            f"add {term}"
            if term is not None
            else "look again when what lacks is added"
            if some
            else f"it has a term of {own}: try a larger k, or te({own}, …) with what it changes with"
        )
    return out


Values = Mapping[str, np.ndarray]  # columns of the features and of CONSTANTS → (N,); NaN where a step has no turn


def misfits(observed: Values, drawn: Values, weight: np.ndarray | None = None) -> list[Misfit]:
    """The features of observed (n,) and of drawn (R n,) points, of which each n belong to the same contexts in order.

    Args:
        weight: (n,) of the observed points and of those drawn for them.
    """
    n, count = len(observed["step"]), len(drawn["step"])
    both = {name: np.concatenate([observed[name], drawn[name]]) for name in observed}
    here = np.isfinite(both["direction"])  # a step of length zero has none
    turning = np.isfinite(both["turn"]) & here
    features = FEATURES if 2 * turning.sum() > here.sum() else tuple(one for one in FEATURES if one is not TURN)
    rows = turning if TURN in features else here
    wanted = (*(name for one in features for name in one.columns), *CONSTANTS[1])
    table = {name: both[name][rows] for name in wanted}
    table["case"] = np.concatenate([np.ones(n), np.zeros(count)])[rows]
    w = None if weight is None else np.tile(weight, 1 + count // n)[rows]
    formula = f"case ~ {' + '.join([*(one.smooth for one in features), CONSTANTS[0]])}"
    found = gam(formula, table, "binomial", weights=w, periods={"direction": 2 * np.pi, "turn": 2 * np.pi})
    case, w = table["case"] > 0, np.ones(int(rows.sum())) if w is None else w

    def means(one: Feature, side: np.ndarray) -> tuple[float, ...]:
        read = np.cos if one.circular else np.asarray
        return tuple(float(np.average(read(table[name][side]), weights=w[side])) for name in one.columns)

    out = []
    for one in features:
        label = f"s({','.join(one.columns)})"
        lacks = found.term_values(label)[~case]
        lacks = lacks - np.average(lacks, weights=w[~case])
        size = float(np.sqrt(np.average(lacks**2, weights=w[~case])))
        radial = not one.term and _radial_share([table[name][~case] for name in one.columns], lacks) >= RADIAL
        out.append(Misfit(one, means(one, case), means(one, ~case), size, float(found.p_values[label]), radial))
    return out


def _radial_share(place: list[np.ndarray], surface: np.ndarray) -> float:
    """How much of a surface is a smooth function of the distance from the centre: R² of a cubic in it."""
    d = np.hypot(*(2 * u - 1 for u in place))
    X = np.vander(d, 4)
    rest = surface - X @ np.linalg.lstsq(X, surface, rcond=None)[0]
    return 1.0 - float(np.sum(rest**2) / max(np.sum((surface - surface.mean()) ** 2), 1e-300))
