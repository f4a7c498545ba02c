"""A population's curve is not believed smaller than the differences between its members.

The variance of a main effect f_j is estimated from one curve. With few levels REML often finds it to be zero, and
f_j = 0 ± 0 where every level's own curve is far from flat: a band that is no band. Exchangeability sets a floor. In the
coordinates in which S_j is diagonal, with 1/(λ_j s_i) and 1/μ_i the prior variances of f_j and of the deviations d_js,

    Var f_ji = max{ 1/(λ_j s_i), 1/μ_i }

where REML's is less than half of the deviations' for some i, and the rest is estimated again. From S levels that differ
by σ² the curve is then at least S/(S + 1) of their mean, with variance σ²/(S + 1). Of a tensor product the penalties
take the λ of the deviations' where its variance over the rows, tr(A S_λ⁻¹), is less than half of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..engine.penalties import Group, Penalties
from .joint import Joint, Levels

LESS = 0.5  # of the deviations' variance: above it the floor would move little
NEGLIGIBLE = 1e-8  # a prior variance against that of the likelihood, which keeps the algebra sound


class Main(NamedTuple):
    """The penalties of one main effect, and the two laws on its penalised columns."""

    which: tuple[int, ...]
    own: np.ndarray  # (r, r) S_λ
    deviations: np.ndarray  # (r, r) D_μ
    A: np.ndarray  # (r, r)
    laws: tuple[str, ...]  # labels of the deviations' penalties
    places: tuple[int, ...] = (0,)  # its pieces among those of the penalties

    @property
    def single(self) -> bool:
        """One penalty, which is diagonal, and so is the deviations'."""
        return len(self.which) == 1

    @property
    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Of f's directions and of the deviations', or over the rows where they are not diagonal."""
        if self.single:
            least = NEGLIGIBLE / np.maximum(np.diag(self.A), 1e-300)
            return np.maximum(1.0 / np.diag(self.own), least), np.maximum(1.0 / np.diag(self.deviations), least)
        own, deviations = (np.atleast_1d(np.trace(np.linalg.solve(S, self.A))) for S in (self.own, self.deviations))
        return own, deviations

    @property
    def too_small(self) -> bool:
        own, deviations = self.variances
        return bool(np.any(own < LESS * deviations))


def floored(levels: Levels, joint: Joint) -> Levels | None:
    """The levels with the floor for every main effect that is below it; None where none is."""
    found = raised(*levels.penalties, _mains(levels, joint), joint.rho)
    return None if found is None else replace(levels, given=found[0], floors=(*levels.floors, *found[1]))


def raised(
    penalties: Penalties, fixed: np.ndarray, mains: Iterable[Main], rho: np.ndarray
) -> tuple[tuple[Penalties, np.ndarray], tuple[str, ...]] | None:
    """The penalties with the floor where a main effect is below it, and the labels of those; None where none is.

    Main effects with the same penalties (f and the contrasts of conditions) are raised together, each above its own
    floor.
    """
    together: dict[tuple[int, ...], list[Main]] = {}
    for main in mains:
        if np.isnan(fixed[list(main.which)]).all():
            together.setdefault(main.which, []).append(main)
    small = {which: mains for which, mains in together.items() if any(main.too_small for main in mains)}
    if not small:
        return None
    pieces, groups, fixed = list(penalties.pieces), list(penalties.groups), fixed.copy()
    labels = {label: j for j, label in enumerate(penalties.labels)}
    for which, mains in small.items():
        if not mains[0].single:
            for j, law in zip(which, mains[0].laws):
                fixed[j] = np.exp(rho[labels[law]])
            continue
        j, rank, mine = which[0], len(mains[0].own), list(penalties.pieces[which[0]])
        numbers = [g for g, group in enumerate(groups) if group.which == which]
        for main in mains:
            precision = 1.0 / np.maximum(*main.variances)
            if main is mains[0]:
                old = np.diag(mine[main.places[0]].matrix)[:rank]
                fixed[j] = np.exp(np.mean(np.log(precision / old)))
            matrix = np.zeros_like(mine[main.places[0]].matrix)
            matrix[range(rank), range(rank)] = precision / fixed[j]
            for at in main.places:
                mine[at] = replace(mine[at], matrix=matrix)
                groups[numbers[at]] = Group(which, (matrix[:rank, :rank],))
        pieces[j] = tuple(mine)
    names = tuple(penalties.labels[which[0]] for which in small)
    return (replace(penalties, pieces=tuple(pieces), groups=tuple(groups)), fixed), names


def _mains(levels: Levels, joint: Joint) -> Iterator[Main]:
    penalties, q = levels.penalties[0], levels.q
    blocks = penalties.blocks(np.exp(joint.rho))
    shared, deviations = blocks[0], blocks[1][1 : 1 + q, 1 : 1 + q]
    for group in penalties.groups:
        piece = penalties.pieces[group.which[0]][0]
        if piece.block != -1:
            continue
        at = slice(piece.at.start, piece.at.start + len(group.matrices[0]))
        laws = tuple(f"{penalties.labels[j]}:{levels.by}" for j in group.which)
        yield Main(group.which, shared[at, at], deviations[at, at], joint.common[at, at], laws)
