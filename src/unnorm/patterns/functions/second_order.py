"""Second-order functions: K, L and the pair correlation, with or without a given intensity, within or between types."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import InputError, unknown
from ..edge_weights import translation
from ..places import borders, close_pairs
from ..point_pattern import Pattern
from .kernels import BORDER, ISOTROPIC, NONE, TRANSLATE, pair_sums, smoothed_pairs
from .summary import Summary, alone, distances, positive_at_points, widest

Edge = Literal["isotropic", "translate", "border", "none"]
EDGES = {"isotropic": ISOTROPIC, "translate": TRANSLATE, "border": BORDER, "none": NONE}
STOYAN = 0.15  # bandwidth of the pair correlation, times 1/√λ


def K(
    pattern: Pattern,
    r: Any = None,
    *,
    correction: Edge = "isotropic",
    intensity: Any = None,
    types: tuple[Any, Any] | None = None,
) -> Summary:
    """Ripley's K: λK(r) is the mean number of further points within r of a point; πr² for a Poisson process.

        K̂(r) = |W|/(n (n − 1)) Σ_{i≠j} 1{d_ij ≤ r} e_ij

    Args:
        pattern: one pattern.
        r: distances; default 513, up to a quarter of the window's shorter side.
        correction: of pairs cut off by the border: "isotropic" (Ripley), "translate", "border", "none".
        intensity: (n,) λ at the points, for a process whose intensity varies (Baddeley, Møller & Waagepetersen 2000).
        types: two marks (i, j): points of type j around points of type i.

    >>> import numpy as np, unnorm as un
    >>> points = un.pattern(np.random.default_rng(1).random((500, 2)), window=un.Box((0, 1), (0, 1)))
    >>> k = un.patterns.K(points, [0.05, 0.1])
    >>> bool(np.all(np.abs(k.value[1:] / k.theory[1:] - 1) < 0.1))
    True
    """
    alone(pattern, "K")
    grid = distances(r, widest(pattern), pattern)
    first, second = _chosen(pattern, types)
    share = _shares(pattern, intensity)
    area, how = pattern.area, _edge(correction)
    arguments = _arguments(pattern)
    if how == TRANSLATE and pattern.windows[0].sides is None:
        d, w = _translated(pattern, share, first, second, float(grid[-1]))
        sums = np.bincount(np.searchsorted(grid, d), w, len(grid))
    else:
        gone = np.searchsorted(grid, arguments[0])
        sums = pair_sums(pattern.xy, share, (first, second), (arguments[0], gone), grid, how, arguments[1:])
    n1, n2 = int(first.sum()), int(second.sum())
    if correction == "border":
        if intensity is not None:
            raise InputError("K with an intensity has no border correction here: use 'isotropic' or 'translate'.")
        at_risk = n1 - np.searchsorted(np.sort(arguments[0][first]), grid, side="right")
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.cumsum(sums) / at_risk / (n2 / area)
    elif intensity is None:
        value = np.cumsum(sums) * area / (n1 * n2 if types is not None and types[0] != types[1] else n1 * (n1 - 1))
    else:
        value = np.cumsum(sums) / area
    return Summary("K", correction, grid, value, np.pi * grid**2, pattern.backend)


def L(pattern: Pattern, r: Any = None, **options: Any) -> Summary:
    """Besag's L = √(K/π), r for a Poisson process, whose noise hardly depends on r; arguments as in `K`.

    Args:
        pattern: the data.
        r: distances.
        options: those of `K`.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> float(un.patterns.L(points, r=[0.0, 0.1]).value[0])
        0.0
    """
    k = K(pattern, r, **options)
    return Summary("L", k.correction, k.r, np.sqrt(np.maximum(k.value, 0.0) / np.pi), k.r.copy(), pattern.backend)


def pair_correlation(
    pattern: Pattern, r: Any = None, *, correction: Edge = "isotropic", intensity: Any = None, bandwidth: Any = None
) -> Summary:
    """g(r) = K′(r)/(2πr), by an Epanechnikov kernel of standard deviation `bandwidth` (default 0.15/√(5λ), Stoyan's);
    1 for a Poisson process, above where points attract each other. Unreliable below the bandwidth.

    Args:
        pattern: the data.
        r: distances.
        correction: of edges: "isotropic", "translate", "border" or "none".
        intensity: λ at the points, for a process whose intensity varies.
        bandwidth: the kernel's standard deviation.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> un.patterns.pair_correlation(points, r=[0.0, 0.05, 0.1]).value.shape
        (3,)
    """
    alone(pattern, "The pair correlation")
    if correction == "border":
        raise InputError("The pair correlation has no border correction: use 'isotropic', 'translate' or 'none'.")
    grid = distances(r, widest(pattern), pattern)
    share, area, n = _shares(pattern, intensity), pattern.area, pattern.n
    band = STOYAN / np.sqrt(5.0 * n / area) if bandwidth is None else float(bandwidth)
    if not 0.0 < band < np.inf:
        raise InputError(f"bandwidth must be a positive distance; got {bandwidth!r}.")
    gap, low, high, edges, rectangle = _arguments(pattern)
    how = _edge(correction)
    if how == TRANSLATE and not rectangle:
        everything = np.ones(n, dtype=bool)
        sums = _smoothed(
            *_translated(pattern, share, everything, everything, grid[-1] + band * np.sqrt(5.0)), grid, band
        )
    else:
        sums = smoothed_pairs(pattern.xy, share, gap, grid, band, how, (low, high, edges, rectangle))
    squared = n * (n - 1) / area**2 if intensity is None else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sums / (2 * np.pi * grid * area * squared)
    return Summary("g", correction, grid, value, np.ones(len(grid)), pattern.backend)


def _edge(correction: str) -> int:
    if correction not in EDGES:
        raise InputError(unknown("correction", correction, tuple(EDGES)))
    return EDGES[correction]


def _translated(
    pattern: Pattern, share: np.ndarray, first: np.ndarray, second: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of close pairs in a polygon, each pair once, and their weights by translation, both ways together."""
    pairs = close_pairs(pattern.places, pattern.places, reach)
    i, j, d = (one[pairs.a < pairs.b] for one in (pairs.a, pairs.b, pairs.d))
    times = (first[i] & second[j]).astype(float) + (first[j] & second[i])
    i, j, d, times = (one[times > 0] for one in (i, j, d, times))
    return d, times * share[i] * share[j] * translation(pattern.xy[j] - pattern.xy[i], pattern.windows[0])


def _smoothed(d: np.ndarray, w: np.ndarray, grid: np.ndarray, band: float) -> np.ndarray:
    """Σ w k_h(r − d) for each r, as `smoothed_pairs`."""
    half = band * np.sqrt(5.0)
    order = np.argsort(d)
    d, w = d[order], w[order]
    begin, end = np.searchsorted(d, grid - half), np.searchsorted(d, grid + half)
    return np.array(
        [0.75 / half * np.sum(w[b:e] * (1 - ((d[b:e] - r) / half) ** 2)) for r, b, e in zip(grid, begin, end)]
    )


def _arguments(pattern: Pattern) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    window = pattern.windows[0]
    assert window.enclosing_box is not None
    assert window.edges is not None
    low, high = window.enclosing_box
    gap = borders(pattern.places, pattern.windows)
    return gap, np.asarray(low, float), np.asarray(high, float), np.array(window.edges), window.sides is not None


def _chosen(pattern: Pattern, types: tuple[Any, Any] | None) -> tuple[np.ndarray, np.ndarray]:
    if types is None:
        everything = np.ones(pattern.n, dtype=bool)
        return everything, everything
    if pattern.mark_name is None:
        raise InputError("types= names two marks, and this pattern has none: un.pattern(…, marks='…').")
    for one in types:
        if one not in pattern.mark_levels:
            raise InputError(unknown("types", one, tuple(map(str, pattern.mark_levels))))
    first, second = (pattern.places.mark == pattern.mark_levels.index(one) for one in types)
    return first, second


def _shares(pattern: Pattern, intensity: Any) -> np.ndarray:
    """(n,) 1 for each point, or 1/λ scaled so that Σ 1/λ is the window's area."""
    if intensity is None:
        return np.ones(pattern.n)
    given = positive_at_points(pattern, intensity)
    return np.sqrt(pattern.area / np.sum(1.0 / given)) / given
