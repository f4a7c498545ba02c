"""What goodness of fit looks at: degrees, shared partners, geodesic distances and triads of a graph, as counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ..._base.cached import njit

TRIADS = (
    *("003", "012", "102", "021D", "021U", "021C", "111D", "111U"),
    *("030T", "030C", "201", "120D", "120U", "120C", "210", "300"),
)  # Holland & Leinhardt's: mutual, asymmetric and null dyads


def _triad(T: np.ndarray) -> str:
    """The name of a directed graph of three actors."""
    pairs = [(T[a, b], T[b, a]) for a, b in ((0, 1), (0, 2), (1, 2))]
    mutual, null = sum(p == (1, 1) for p in pairs), sum(p == (0, 0) for p in pairs)
    name = f"{mutual}{3 - mutual - null}{null}"
    one_way = T * (1 - T.T)  # asymmetric ties alone
    out, into = one_way.sum(axis=1), one_way.sum(axis=0)
    if name == "021":
        return name + ("D" if out.max() == 2 else "U" if into.max() == 2 else "C")
    if name == "111":  # D: the third points at the pair
        third = int(np.argmin((T * T.T).sum(axis=1)))
        return name + ("D" if out[third] else "U")
    if name == "030":
        return name + ("T" if out.max() == 2 else "C")
    if name == "120":
        third = int(np.argmin((T * T.T).sum(axis=1)))
        return name + ("D" if out[third] == 2 else "U" if into[third] == 2 else "C")
    return name


@cache
def _classes() -> np.ndarray:
    """(64,) the position in TRIADS of the graph with ties 01, 10, 02, 20, 12, 21 as bits, the first the highest."""
    at = ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))
    out = np.empty(64, dtype=np.int64)
    for code in range(64):
        T = np.zeros((3, 3), dtype=int)
        for bit, (a, b) in enumerate(at):
            T[a, b] = code >> (5 - bit) & 1
        out[code] = TRIADS.index(_triad(T))
    return out


@njit(nogil=True, cache=True)
def _census(A, classes, count):
    n = A.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            ij = 32 * A[i, j] + 16 * A[j, i]
            for k in range(j + 1, n):
                count[classes[ij + 8 * A[i, k] + 4 * A[k, i] + 2 * A[j, k] + A[k, j]]] += 1


@njit(nogil=True, cache=True)
def _distances(A, count):
    """Ordered pairs at each distance; the last entry counts those without a path."""
    n = A.shape[0]
    far, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        far[:] = n
        far[i], queue[0] = 0, i
        begin, end = 0, 1
        while begin < end:
            a = queue[begin]
            begin += 1
            for b in range(n):
                if A[a, b] and far[b] == n:
                    far[b], queue[end] = far[a] + 1, b
                    end += 1
        for b in range(n):
            if b != i:
                count[far[b]] += 1


def census(A: np.ndarray) -> np.ndarray:
    """(16,) triads of each class; of an undirected graph four of them occur."""
    count = np.zeros(16, dtype=np.int64)
    _census(A.astype(np.int64), _classes(), count)
    return count


def distances(A: np.ndarray) -> np.ndarray:
    """(n + 1,) ordered pairs at distance 0 (none), 1, …, n − 1, and without a path."""
    count = np.zeros(len(A) + 1, dtype=np.int64)
    _distances(A.astype(np.uint8), count)
    return count


def partners(A: np.ndarray) -> np.ndarray:
    """(n − 1,) ties, as entries of A, with 0, 1, … shared partners i → j → k."""
    return np.bincount((A @ A)[A == 1].astype(np.intp), minlength=len(A) - 1)[: len(A) - 1]


def degrees(A: np.ndarray, axis: int) -> np.ndarray:
    """(n,) actors of degree 0, 1, …"""
    return np.bincount(A.sum(axis=axis).astype(np.intp), minlength=len(A))


Count = Callable[[np.ndarray], np.ndarray]


def counts(directed: bool, n: int) -> dict[str, tuple[tuple[str, ...], Count]]:
    """Name → levels and the function of an adjacency matrix that counts them."""
    upto = tuple(str(k) for k in range(n))
    reach = (*upto[1:], "∞")
    if directed:
        return {
            "outdegree": (upto, lambda A: degrees(A, 1)),
            "indegree": (upto, lambda A: degrees(A, 0)),
            "shared partners": (upto[: n - 1], partners),
            "distance": (reach, lambda A: distances(A)[1:]),
            "triads": (TRIADS, census),
        }
    some = [TRIADS.index(name) for name in ("003", "102", "201", "300")]
    return {
        "degree": (upto, lambda A: degrees(A, 1)),
        "shared partners": (upto[: n - 1], lambda A: partners(A) // 2),
        "distance": (reach, lambda A: distances(A)[1:] // 2),
        "triads": (("0 ties", "1 tie", "2 ties", "3 ties"), lambda A: census(A)[some]),
    }
