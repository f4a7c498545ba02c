"""What a model of scanpaths misses: observed against simulated points, steps, directions and turns.

Simulated paths start where observed ones do and are as long. If the model holds, the two of each pair may be exchanged:
the distance between observed and simulated distributions (Kolmogorov's, Kuiper's for angles) is compared with its
values when the paths of some pairs, chosen at random, change places. These values are the simulation envelope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

TIMES = 199  # pairs are exchanged so many times
SURELY, MATTERS = 0.01, 0.02  # p and distance from which a feature is said to be missed


@final
@dataclass(frozen=True)
class Feature:
    """A number of each step, how to say what is different about it, and the term that would mend it."""

    name: str
    circular: bool
    term: str  # to add
    enough: tuple[str, ...]  # covariates that the term is of: where the model has them all, a larger k
    words: str  # what the means are of


FEATURES = (
    Feature("step", False, "s(step, k=20)", ("step",), "length of steps"),
    Feature("direction", True, "s(angle, bs='cc', k=20)", ("angle",), "direction of steps"),
    Feature("turn", True, "s(turn, bs='cc', k=10) with --lags 2", ("turn",), "turn from the step before"),
    Feature("across", False, "s(x, y, k=40)", ("x", "y"), "place across the window, 0 to 1"),
    Feature("down", False, "s(x, y, k=40)", ("x", "y"), "place along y, 0 to 1"),
    Feature("distance from the centre", False, "s(drel, k=10)", ("drel",), "distance from the centre, 1 at a side"),
)


@final
@dataclass(frozen=True)
class Misfit:
    """One feature, observed and simulated."""

    feature: Feature
    observed: float  # mean; of angles the mean cosine
    simulated: float
    distance: float
    envelope: float  # the 95 % point of the distance when pairs are exchanged
    p: float

    @property
    def missed(self) -> bool:
        """Whether the model misses it: surely, and by enough to matter."""
        return self.p <= SURELY and self.distance > MATTERS

    def advice(self, columns: frozenset[str]) -> str:
        """The term to add, or what to do about one that is there."""
        if set(self.feature.enough) <= columns:
            name = ", ".join(self.feature.enough)
            return f"it has a term of {name}: try a larger k, or te({name}, …) with what it changes with"
        return f"add {self.feature.term}"


Values = Mapping[str, np.ndarray]  # feature → (N,), NaN where a step has none


def misfits(observed: Values, simulated: Values, pair: np.ndarray, seed: int) -> list[Misfit]:
    """The features of observed and simulated steps (N,) each, of which step i of both belongs to path pair[i]."""
    pairs = int(pair.max()) + 1
    exchanged = np.random.default_rng(seed).random((TIMES, pairs)) < 0.5
    out = []
    for feature in FEATURES:
        a, b = observed.get(feature.name), simulated.get(feature.name)
        if a is None or b is None or not (np.isfinite(a).any() and np.isfinite(b).any()):
            continue
        values, owner = np.concatenate([a, b]), np.concatenate([pair, pair])
        here = np.isfinite(values)
        order = np.argsort(values[here], kind="stable")
        sorted_values = values[here][order]
        last = np.append(sorted_values[1:] != sorted_values[:-1], True)  # steps of the distribution functions
        side = (2 * owner + np.repeat([0, 1], len(a)))[here][order]  # the path, and whether it was simulated
        distances = [_distance(side, some, last, feature.circular) for some in (np.zeros(pairs, bool), *exchanged)]
        distance, null = distances[0], np.array(distances[1:])
        mean = (lambda v: float(np.nanmean(np.cos(v)))) if feature.circular else (lambda v: float(np.nanmean(v)))
        p = (1 + int(np.sum(null >= distance - 1e-12))) / (1 + TIMES)
        out.append(Misfit(feature, mean(a), mean(b), distance, float(np.quantile(null, 0.95)), p))
    return out


def _distance(side: np.ndarray, exchanged: np.ndarray, last: np.ndarray, circular: bool) -> float:
    """The largest difference of two distribution functions; for angles the largest above plus below.

    Of the first k steps c_k more belong to the first sample than to the second, so that (k + c_k)/2 are the first's and
    (k − c_k)/2 the second's: one running sum gives both functions.
    """
    sign = np.where(exchanged, -1, 1).astype(np.int32)
    c = np.cumsum(np.stack([sign, -sign], axis=1).ravel().take(side), dtype=np.int32)
    n = len(c)
    first, second = max((n + int(c[-1])) / 2, 1.0), max((n - int(c[-1])) / 2, 1.0)
    if not last.all():
        c = c[last]
    if first == second:
        high, low = int(c.max()) / first, int(c.min()) / first
    else:
        k = np.flatnonzero(last) + 1
        gap = (k + c) / (2 * first) - (k - c) / (2 * second)
        high, low = float(gap.max()), float(gap.min())
    above, below = max(high, 0.0), max(-low, 0.0)
    return above + below if circular else max(above, below)
