"""What a model of scanpaths misses: observed points against points drawn from the fit at the same contexts.

At every context x_t one or more points are drawn from p̂(·|x_t). The odds that a point was observed, and not drawn, are

    p(y|x)/p̂(y|x) = exp{f(y|x) − f̂(y|x) + c(x)}

so that a logistic regression of observed against drawn points on smooth functions of length, direction, turn and place
estimates what f̂ lacks, each in the presence of the others: a bias to the left moves places, too, and is found in the
directions alone. c(x), the difference of the log constants, is a sum of smooth functions of the previous place: across,
down, and its distance from the centre. Contexts are the observed ones, so that nothing a path did before is held
against a step.

Places are rounded to a grid, finer than a surface of 20 coefficients can tell, and rows are sorted by its cells: the
engine then has few distinct places, each a run of rows, and needs no kernels that other fits have not compiled.
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
CONSTANTS = "s(across_before) + s(down_before) + s(out_before)"  # c(x)
LEAST = 100  # observed points below which nothing is said
SIDES = (2.0 ** (np.arange(3, 34) / 3)).astype(int)  # cells along a side of the grids of places, from 2 to 2,048
MOST_CELLS, FEWEST_CELLS, EACH = 400, 40, 4  # that hold a place, and rows for each


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
PLACE = Feature("place", "place in the window", "s(across, down, k=20)", ("across", "down"), "", frozenset())
FEATURES = (
    Feature("step", "length of steps", "s(step, k=10)", ("step",), "s(step, k=20)", frozenset({"step"})),
    Feature(
        "direction", "direction of steps", "s(direction, bs='cc', k=12)", ("direction",), "s(angle, bs='cc', k=20)",
        frozenset({"angle"}), True,
    ),
    TURN,
    PLACE,
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


# columns of the features, across_before and down_before → (N,); NaN where a step has no turn. Places are in [0, 1]².
Values = Mapping[str, np.ndarray]


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
    rows = np.flatnonzero(turning if TURN in features else here)
    place, cell = _cells(np.stack([both[name][rows] for name in PLACE.columns]))
    order = np.argsort(cell, kind="stable")
    rows, place = rows[order], place[:, order]
    table = {name: both[name][rows] for one in features for name in one.columns}
    before = [both[name][rows] for name in ("across_before", "down_before")]
    constants = dict(zip(("across_before", "down_before", "out_before"), (*before, _out(before))))
    case = np.concatenate([np.ones(n), np.zeros(count)])[rows]
    w = np.ones(rows.size) if weight is None else np.tile(weight, 1 + count // n)[rows]
    formula = f"case ~ {' + '.join([*(one.smooth for one in features), CONSTANTS])}"
    found = gam(
        formula, {**table, **dict(zip(PLACE.columns, place)), **constants, "case": case}, "binomial",
        weights=None if weight is None else w,
        periods={name: 2 * np.pi for name in ("direction", "turn") if name in table},
    )  # fmt: skip
    case = case > 0

    def means(one: Feature, side: np.ndarray) -> tuple[float, ...]:
        read = np.cos if one.circular else np.asarray
        return tuple(float(np.average(read(table[name][side]), weights=w[side])) for name in one.columns)

    out = []
    for one in features:
        label = f"s({','.join(one.columns)})"
        lacks = found.term_values(label)[~case]
        lacks = lacks - np.average(lacks, weights=w[~case])
        size = float(np.sqrt(np.average(lacks**2, weights=w[~case])))
        radial = one is PLACE and _radial_share(_out(place[:, ~case]), lacks) >= RADIAL
        out.append(Misfit(one, means(one, case), means(one, ~case), size, float(found.p_values[label]), radial))
    return out


def _cells(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places (2, n) in [0, 1]² moved to the centres of the cells of a grid, and the number of each one's cell (n,). The
    grid is the finest of which at most n/4 and 400 cells hold a place, or 40 where rows are very few."""
    most = max(min(place.shape[1] // EACH, MOST_CELLS), FEWEST_CELLS)

    def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
        at = np.clip(np.floor(side * place), 0, side - 1)
        return (at + 0.5) / side, at[0] * side + at[1]

    out = grid(1)
    for side in SIDES:
        finer = grid(side)
        if np.unique(finer[1]).size > most:
            break
        out = finer
    return out


def _out(place: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """The distance from the centre of the window, in halves of its sides."""
    return np.hypot(*(2 * u - 1 for u in place))


def _radial_share(d: np.ndarray, surface: np.ndarray) -> float:
    """How much of a surface is a smooth function of the distance d from the centre: R² of a cubic in it."""
    X = np.vander(d, 4)
    rest = surface - X @ np.linalg.lstsq(X, surface, rcond=None)[0]
    return 1.0 - float(np.sum(rest**2) / max(np.sum((surface - surface.mean()) ** 2), 1e-300))
