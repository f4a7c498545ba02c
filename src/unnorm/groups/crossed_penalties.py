"""The penalties of a crossed design: f, the contrasts δ, the random curves d and e of subjects, and χ in every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np

from ..engine.design import Design
from ..engine.penalties import Group, Penalties, PenaltyPiece
from ..terms.base import BuiltTerm
from .joint import within
from .leading import leading

if TYPE_CHECKING:
    from .crossed import Layout

Place = tuple[int, int]  # a block of the arrow (−1: shared), and where a copy of f's or χ's columns starts in it


@final
@dataclass
class Ledger:
    """Penalties as they are added, one term and kind of curve at a time."""

    starts: np.ndarray
    free: np.ndarray
    labels: list[str] = field(default_factory=list)
    pieces: list[tuple[PenaltyPiece, ...]] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    fixed: list[float] = field(default_factory=list)

    # long: one penalty, named at the call
    def add(
        self,
        label: str,
        places: Sequence[Place],
        at: slice,
        matrix: np.ndarray,
        held: float = np.nan,
        times: Sequence[float] | None = None,
    ) -> int:
        """One penalty on the columns `at` of each copy, `times` its weight there; its number."""
        weights = [1.0] * len(places) if times is None else times
        self.labels.append(label)
        self.pieces.append(
            tuple(
                PenaltyPiece(block, slice(begin + at.start, begin + at.stop), weight * matrix)
                for (block, begin), weight in zip(places, weights)
            )
        )
        self.fixed.append(held)
        return len(self.labels) - 1

    def bind(self, places: Sequence[Place], at: slice) -> None:
        """These columns are penalised."""
        for block, begin in places:
            first = int(self.starts[block + 1]) + begin
            self.free[first + at.start : first + at.stop] = False


@final
@dataclass(frozen=True)
class _Term:
    """One term's penalties in the engine's coordinates: its range first, then its null space."""

    label: str
    labels: tuple[str, ...]
    matrices: tuple[np.ndarray, ...]
    fixed: tuple[float, ...]
    at: slice
    rank: int

    @property
    def size(self) -> int:
        return self.at.stop - self.at.start

    def smooth(self, ledger: Ledger, places: Sequence[Place], suffix: str, times: Sequence[float]) -> None:
        """Its own penalties, with a weight in each place: curves whose null space is free."""
        numbers = tuple(
            ledger.add(label + suffix, places, self.at, matrix, fixed, times)
            for label, matrix, fixed in zip(self.labels, self.matrices, self.fixed)
        )
        if numbers:
            ranged = [matrix[: self.rank, : self.rank] for matrix in self.matrices]
            ledger.groups += [Group(numbers, tuple(weight * matrix for matrix in ranged)) for weight in times]
            ledger.bind(places, slice(self.at.start, self.at.start + self.rank))

    def random(self, ledger: Ledger, places: Sequence[Place], suffix: str) -> None:
        """A proper law: the smoothest directions and the null space have variances of their own (leading.py)."""
        lead = leading(self.matrices[0], self.rank) if len(self.matrices) == 1 else []
        cut = lead[0].start if lead else self.rank
        numbers = tuple(
            ledger.add(label + suffix, places, self.at, within(matrix, 0, cut))
            for label, matrix in zip(self.labels, self.matrices)
        )
        if numbers:
            ledger.groups += [Group(numbers, tuple(m[:cut, :cut] for m in self.matrices)) for _ in places]
        for i, own in enumerate(lead):
            one = within(self.matrices[0], own.start, own.stop)
            j = ledger.add(f"{self.label}{suffix} ({len(lead) - i})", places, self.at, one)
            ledger.groups += [Group((j,), (one[own, own],)) for _ in places]
        if self.rank < self.size:
            typical = np.trace(self.matrices[0]) / max(self.rank, 1) if self.matrices else 1.0
            ridge = np.zeros((self.size, self.size))
            null = range(self.rank, self.size)
            ridge[null, null] = typical
            j = ledger.add(f"{self.label}{suffix} (null space)", places, self.at, ridge)
            ledger.groups += [Group((j,), (np.eye(self.size - self.rank) * typical,)) for _ in places]
        ledger.bind(places, self.at)


def crossed_penalties(
    first: Design, terms: Sequence[BuiltTerm], count: int, layout: Layout
) -> tuple[Penalties, np.ndarray]:
    """`first`: a cell's design, from which penalties are taken; `count`: how many of the terms are f's.

    Second: λ where it is fixed, else nan.
    """
    q, subjects = layout.q, range(len(layout.crossing.subjects))
    by, between = layout.crossing.by, layout.crossing.between
    ledger = Ledger(layout.starts, np.ones(int(layout.starts[-1]), bool))
    curves: list[Place] = [(-1, q * i) for i in range(1 + layout.contrasts)]  # f, then the δ_i
    times = [1.0 + layout.contrasts, *[1.0] * layout.contrasts]  # so that conditions' curves are independent, λS each
    d: list[Place] = [(s, 0) for s in subjects]
    e: list[Place] = [(s, q * i) for s in subjects for i in range(1, layout.random)]
    chi: list[Place] = [(s, layout.chi_at(u)) for u, (s, _) in enumerate(layout.crossing.cells)]
    position = 0
    for k, term in enumerate(terms):
        place = next(p for p in first.placements if p.term == k)
        mine = range(position, position + len(term.penalties))
        position += len(mine)
        rank = next(
            (len(group.matrices[0]) for group in first.penalties.groups if mine and group.which == tuple(mine)), 0
        )
        shift = 1 if k < count else q  # the cell's columns are (1, f, χ); χ's place has its intercept first
        one = _Term(
            term.label,
            tuple(first.penalties.labels[j] for j in mine),
            tuple(first.penalties.pieces[j][0].matrix for j in mine),
            tuple(float(first.fixed[j]) for j in mine),
            slice(place.flat.start - shift, place.flat.stop - shift),
            rank,
        )
        if k >= count:
            one.smooth(ledger, chi, f":{by}", [1.0] * len(chi))
            continue
        one.smooth(ledger, curves, "", times)
        one.random(ledger, d, f":{by}")
        if e:
            one.random(ledger, e, f":{by}:{between}")
    penalties = Penalties(tuple(ledger.labels), tuple(ledger.pieces), tuple(ledger.groups), layout.starts, ledger.free)
    return penalties, np.array(ledger.fixed)
