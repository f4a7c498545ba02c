"""`mrf`: Markov random fields, a value for each region and a penalty on differences of neighbours (Rue & Held 2005).

βᵀSβ = Σ over pairs of neighbours (β_a − β_b)². Its null space has a function for each connected part of the map.
With k below the number of regions, the k smoothest eigenvectors of S against the rows are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from .._base.files import duplicates
from ..errors import TermError, UnnormError, listing, short
from .basis import PlainBasis, Setup, saved_basis
from .kinds import BasisKind, Request
from .levels import level_name

_WAYS = "xt={'nb': {region: neighbours}}, xt={'polys': {region: points}} or xt={'penalty': matrix, 'regions': names}"


@saved_basis
@dataclass(frozen=True, eq=False)
class Regions(PlainBasis):
    """One indicator for each region; points are the regions' positions 0, 1, …"""

    kind: ClassVar[str] = "regions"
    count: int

    @property
    def raw_shape(self) -> tuple[int, int]:
        return 1, self.count

    def raw(self, points: np.ndarray) -> np.ndarray:
        return np.eye(self.count)[points[:, 0].astype(np.int64)]


def laplacian(xt: Any, label: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The regions in order, and S."""
    try:
        return _read(xt, label)
    except UnnormError:
        raise
    except (AttributeError, TypeError, ValueError) as error:  # numbers for names, names for numbers, lists for mappings
        raise TermError(f"{label}: xt of bs='mrf' is one of {_WAYS}; got xt={short(xt)} ({error}).") from None


def _read(xt: Any, label: str) -> tuple[tuple[str, ...], np.ndarray]:
    if not isinstance(xt, Mapping) or not {"nb", "polys", "penalty"} & set(xt):
        raise TermError(f"{label}: bs='mrf' needs to know which regions are neighbours: {_WAYS}; got xt={xt!r}.")
    if "penalty" in xt:
        S = np.asarray(xt["penalty"], dtype=np.float64)
        names = tuple(level_name(name) for name in xt.get("regions", ()))
        if S.shape != (len(names), len(names)) or not np.allclose(S, S.T):
            raise TermError(
                f"{label}: 'penalty' is a symmetric matrix with a row for each of 'regions'; got {S.shape}."
            )
        if len(set(names)) < len(names):
            raise TermError(
                f"{label}: each of 'regions' has a name of its own; {listing(duplicates(names))} came twice."
            )
        values = np.linalg.eigvalsh(S)
        if not values[-1] > 0.0 or values[0] < -1e-8 * values[-1]:
            raise TermError(
                f"{label}: 'penalty' must have no negative eigenvalue and one that is positive; they go from "
                f"{values[0]:.3g} to {values[-1]:.3g}."
            )
        return names, S
    neighbours = xt["nb"] if "nb" in xt else shared_points(xt["polys"])
    names = tuple(sorted(level_name(name) for name in neighbours))
    at = {name: i for i, name in enumerate(names)}
    S = np.zeros((len(names), len(names)))
    for region, others in neighbours.items():
        for other in (others,) if isinstance(others, str) else others:
            if level_name(other) not in at:
                raise TermError(f"{label}: {region!r} has the neighbour {other!r}, which is no region of xt.")
            i, j = at[level_name(region)], at[level_name(other)]
            if i != j:
                S[i, j] = S[j, i] = -1.0
    return names, S - np.diag(S.sum(axis=1))


def shared_points(polygons: Mapping[str, Any]) -> dict[str, list[str]]:
    """Neighbours: regions whose outlines share a point."""
    owners: dict[tuple[float, float], set[str]] = {}
    for region, outline in polygons.items():
        for x, y in np.asarray(outline, dtype=np.float64):
            if np.isfinite(x) and np.isfinite(y):
                owners.setdefault((float(x), float(y)), set()).add(region)
    out: dict[str, list[str]] = {region: [] for region in polygons}
    for some in owners.values():
        for region in some:
            out[region] += [other for other in some if other != region]
    return {region: sorted(set(others)) for region, others in out.items()}


def parts(S: np.ndarray) -> int:
    """How many parts the map has that no chain of neighbours connects."""
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(S != 0, directed=False)[0])


@final
class MarkovField(BasisKind):
    """`mrf`: a value for each region of a map, neighbours alike."""

    name = "mrf"
    takes_xt = True
    categorical = True
    margin = False

    def levels(self, xt: Any, label: str) -> tuple[str, ...]:
        return laplacian(xt, label)[0]

    def lacking(self, xt: Any, label: str, lost: Sequence[Any]) -> TermError:
        first = level_name(lost[0])
        if "penalty" in xt:
            add = "to 'regions', with a row and a column of 'penalty'"
        elif "nb" in xt:
            add = f"with its neighbours, as {{{first!r}: (…)}}, or {{{first!r}: ()}} where it has none"
        else:
            add = f"with its outline, as {{{first!r}: points}}, which shares points with those of its neighbours"
        return TermError(
            f"{label}: xt= must have every region of the data, and lacks {listing(lost)}. Add "
            f"{'it' if len(lost) == 1 else 'each'} {add}; or leave those rows out."
        )

    def setup(self, request: Request) -> Setup:
        names, S = laplacian(request.xt, request.label)
        n, k = len(names), len(names) if request.k is None else request.k
        values, vectors = np.linalg.eigh(S)
        null = parts(S) if "penalty" not in request.xt else int(np.sum(values < 1e-10 * values[-1]))
        if not null + 1 < k <= n:
            raise TermError(f"{request.label}: k={k} must lie between {null + 2} and the number of regions, {n}.")
        basis, sample = Regions(n), request.sample
        columns = basis.evaluate(sample.points)
        if k == n:
            E = np.sqrt(np.maximum(values[null:], 0.0))[:, None] * vectors[:, null:].T
            return Setup(basis, columns, (E,), (n - null,), null)
        share = sample.weights @ columns  # of the rows, region by region
        share = np.where(share > 0, share, request.unit)  # a region without rows counts as one row
        root = 1 / np.sqrt(share)
        d, V = np.linalg.eigh(root[:, None] * S * root)
        P = (root[:, None] * V)[:, :k][:, ::-1]  # the smoothest k, the null space last
        E = np.zeros((k - null, k))
        E[:, : k - null] = np.diag(np.sqrt(np.maximum(d[null:k][::-1], 0.0)))
        return Setup(basis.times(P), columns @ P, (E,), (k - null,), null)

    def examples(self) -> tuple[str, ...]:
        ring = "{'a': ('b', 'e'), 'b': ('a', 'c'), 'c': ('b', 'd'), 'd': ('c', 'e'), 'e': ('d', 'a')}"
        return (f"s(region, bs='mrf', xt={{'nb': {ring}}})", f"s(region, bs='mrf', k=4, xt={{'nb': {ring}}})")
