"""Envelopes: a summary function of the data beside those of simulated patterns, pointwise and as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..._base.frames import to_native
from ..._base.intervals import quantile
from ..._base.numerics import Rng, generator, whole
from ...errors import InputError, unknown
from ..places import Places
from ..point_pattern import Pattern
from .distances import F, G, J
from .second_order import K, L, pair_correlation
from .summary import Summary

FUNCTIONS: dict[str, Callable[..., Summary]] = {"K": K, "L": L, "g": pair_correlation, "F": F, "G": G, "J": J}


@final
@dataclass(frozen=True, eq=False)
class Envelope:
    """`observed` beside the simulations: their mean, pointwise limits, and limits that a pattern of the model leaves
    anywhere with probability 1 − level only; `p` is that test's p-value.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> band = un.patterns.envelope(points, "L", n=19, rng=2)
        >>> band.simulations, band.global_lower.shape == band.r.shape
        (19, True)
    """

    name: str  #: of the function
    r: np.ndarray  #: distances
    observed: np.ndarray  #: the data's function
    mean: np.ndarray  #: of the simulations
    lower: np.ndarray  #: pointwise limits
    upper: np.ndarray  #: pointwise limits
    global_lower: np.ndarray  #: of the whole curve
    global_upper: np.ndarray  #: of the whole curve
    p: float  #: of the global test
    level: float  #: of both bands
    simulations: int  #: how many
    backend: Any = None  #: the user's kind of table, for those given back

    def table(self) -> Any:
        """All curves by r, as a table of the data's kind."""
        names = ("r", "observed", "mean", "lower", "upper", "global_lower", "global_upper")
        return to_native({name: getattr(self, name) for name in names}, self.backend)

    def __repr__(self) -> str:
        return f"Envelope({self.name}, {self.simulations} simulations, global p = {self.p:.3g})"

    def plot(self, ax: Any = None) -> Any:
        """The data's function, the mean of the simulations, and both bands."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        ax.fill_between(self.r, self.global_lower, self.global_upper, color="0.9", label=f"{self.level:.0%} global")
        ax.fill_between(self.r, self.lower, self.upper, color="0.75", label="pointwise")
        ax.plot(self.r, self.mean, "--", color="0.4", label="mean of simulations")
        ax.plot(self.r, self.observed, color="#c05621", label="data")
        ax.set(xlabel="r", ylabel=f"{self.name}(r)", title=f"p = {self.p:.3g}")
        ax.legend(frameon=False, fontsize=8)
        return ax


def envelope(
    pattern: Pattern,
    function: str = "L",
    n: int = 99,
    *,
    r: Any = None,
    simulated: Sequence[Pattern] | None = None,
    level: float = 0.95,
    rng: Rng = None,
    **options: Any,
) -> Envelope:
    """A summary function of the data beside that of n simulated patterns.

    Args:
        pattern: the data.
        function: "K", "L", "g" (pair correlation), "F", "G" or "J".
        n: simulations of a homogeneous Poisson process with as many points; of a model see `fit.envelope`.
        r: distances.
        simulated: patterns of some other model, in place of the n.
        level: of both bands.
        rng: seed or generator.
        options: of the function, such as correction="border".

    The global band is that of extreme rank lengths (Myllymäki et al. 2017): curves are ordered by how often they are
    among the most extreme, and the band holds the `level` least extreme of all n + 1.

    >>> import numpy as np, unnorm as un
    >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
    >>> 0.0 < un.patterns.envelope(points, "L", n=39, rng=2).p <= 1.0
    True
    """
    if function not in FUNCTIONS:
        raise InputError(unknown("function", function, tuple(FUNCTIONS)))
    compute = FUNCTIONS[function]
    own = compute(pattern, r, **options)
    if simulated is None:
        count, rng = whole(n, "n", 19), generator(rng)
        area = pattern.windows[0]
        simulated = [
            pattern.with_places(Places.of(area.uniform(pattern.n, rng), pattern.places.mark)) for _ in range(count)
        ]
    curves = np.stack([compute(one, own.r, **options).value for one in simulated])
    return summarised(function, own, curves, level)


def summarised(name: str, own: Summary, curves: np.ndarray, level: float) -> Envelope:
    """The envelope of curves (n, R) around the data's."""
    quantile(level, None)  # refuses a level that is none
    every = np.concatenate([own.value[None], curves])
    known = np.all(np.isfinite(every), axis=0)
    n = len(curves)
    k = max(0, int(np.floor((1.0 - level) / 2.0 * (n + 1))) - 1)
    ordered = np.sort(curves, axis=0)
    order = extremeness(every[:, known])
    p = float(np.mean(order <= order[0]))
    kept = order > np.sort(order)[max(0, int(np.floor((1.0 - level) * (n + 1))) - 1)]
    with np.errstate(invalid="ignore"):
        mean, inner = curves.mean(axis=0), every[kept] if kept.any() else every
        low, high = inner.min(axis=0), inner.max(axis=0)
    return Envelope(
        name, own.r, own.value, mean, ordered[k], ordered[-1 - k], low, high, p, level, n, own.backend
    )  # fmt: skip


def extremeness(curves: np.ndarray) -> np.ndarray:
    """(N,) places of curves (N, R) in the order of extreme rank lengths, the most extreme 1; ties share the larger.

    A curve's ranks, from either end and at every r, are sorted; curves are compared by them as words are.
    """
    low = np.stack([_ranks(column) for column in curves.T], axis=1)
    ranks = np.sort(np.minimum(low, len(curves) + 1 - low), axis=1)
    order = np.lexsort(ranks.T[::-1])
    place = np.empty(len(curves))
    place[order] = np.arange(1, len(curves) + 1)
    same = np.concatenate([[False], np.all(ranks[order][1:] == ranks[order][:-1], axis=1)])
    for k in range(len(order) - 1, 0, -1):  # equal curves share the larger place
        if same[k]:
            place[order[k - 1]] = place[order[k]]
    return place


def _ranks(values: np.ndarray) -> np.ndarray:
    """(N,) from 1 for the smallest; equal ones share their mean rank."""
    ordered = np.sort(values)
    return 0.5 * (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1)
