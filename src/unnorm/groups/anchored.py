"""Anchored constants in a joint fit: each level's normalised f, linearised again until all levels settle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ..objectives.anchor import Anchor, Integrated
from .joint import Member

MOST_ROUNDS = 8
SETTLED = 0.1  # standard errors, all coefficients of a level together


@final
@dataclass(frozen=True)
class LevelAnchor:
    """What a level's constants follow."""

    anchor: Anchor  # of f's terms in the common basis
    context: np.ndarray  # (N,) the context of each row, in the caller's order
    log_z: np.ndarray  # (n,) at the separate estimate, where the rounds start


@final
@dataclass(frozen=True)
class AnchoredMember:
    """A level's rows less their context's mean, at some coefficients of f."""

    member: Member
    integrated: Integrated  # mean in the coordinates of f's coefficients

    def moved(self, move: np.ndarray) -> float:
        """At most √(Δᵀ A Δ) for a move Δ of f's coefficients, since Σ w is at most the number of observations."""
        design = self.member.design
        full = np.zeros(design.size)
        full[1 : 1 + move.size] = move
        change = design.predict(design.to_flat(full))
        return float(np.sqrt(np.sum(self.member.data) * np.mean(change**2)))


def anchored_member(member: Member, given: LevelAnchor, beta: np.ndarray) -> AnchoredMember:
    """At f's coefficients β (the terms' own coordinates)."""
    log_z, own = here = given.anchor.at(beta)
    mean = padded(own, member.design.size)
    shift = member.design.sort((own @ beta - log_z)[given.context])
    offset = member.rows.offset + shift if member.rows.offset.size else shift
    rows = replace(member.rows, offset=np.ascontiguousarray(offset))
    less = replace(member, design=member.design.less(mean, given.context), rows=rows)
    return AnchoredMember(less, here)


def padded(mean: np.ndarray, size: int) -> np.ndarray:
    """E of f's columns among all of a level's, (1, f, χ): zero for the others."""
    out = np.zeros((len(mean), size))
    out[:, 1 : 1 + mean.shape[1]] = mean
    return out
