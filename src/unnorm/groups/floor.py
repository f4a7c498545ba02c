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

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..engine.penalties import Group
from .joint import Joint, Levels

LESS = 0.5  # of the deviations' variance: above it the floor would move little
NEGLIGIBLE = 1e-8  # a prior variance against that of the likelihood, which keeps the algebra sound


class _Main(NamedTuple):
    """The penalties of one main effect, and the two laws on its penalised columns."""

    group: int
    which: tuple[int, ...]
    own: np.ndarray  # (r, r) S_λ
    deviations: np.ndarray  # (r, r) D_μ
    A: np.ndarray  # (r, r)

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
    penalties, fixed = levels.penalties
    small = [main for main in _mains(levels, joint) if np.isnan(fixed[list(main.which)]).all() and main.too_small]
    if not small:
        return None
    pieces, groups, fixed = list(penalties.pieces), list(penalties.groups), fixed.copy()
    labels = {label: j for j, label in enumerate(penalties.labels)}
    for main in small:
        if not main.single:
            for j in main.which:
                fixed[j] = np.exp(joint.rho[labels[f"{penalties.labels[j]}:{levels.by}"]])
            continue
        j, rank = main.which[0], len(main.own)
        (piece,) = penalties.pieces[j]
        precision = 1.0 / np.maximum(*main.variances)
        fixed[j] = np.exp(np.mean(np.log(precision / np.diag(piece.matrix)[:rank])))
        matrix = np.zeros_like(piece.matrix)
        matrix[range(rank), range(rank)] = precision / fixed[j]
        pieces[j] = (replace(piece, matrix=matrix),)
        groups[main.group] = Group(main.which, (matrix[:rank, :rank],))
    names = (*levels.floors, *(penalties.labels[main.which[0]] for main in small))
    given = replace(penalties, pieces=tuple(pieces), groups=tuple(groups)), fixed
    return replace(levels, given=given, floors=names)


def _mains(levels: Levels, joint: Joint) -> Iterator[_Main]:
    penalties, q = levels.penalties[0], levels.q
    blocks = penalties.blocks(np.exp(joint.rho))
    shared, deviations = blocks[0], blocks[1][1 : 1 + q, 1 : 1 + q]
    for g, group in enumerate(penalties.groups):
        piece = penalties.pieces[group.which[0]][0]
        if piece.block != -1:
            continue
        at = slice(piece.at.start, piece.at.start + len(group.matrices[0]))
        yield _Main(g, group.which, shared[at, at], deviations[at, at], joint.common[at, at])
