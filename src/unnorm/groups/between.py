"""Who was observed in which condition: conditions between subjects, or within them, found from the data.

A cell is a subject in a condition. Where every subject is in one condition, cells are subjects, and conditions are
compared between them; where subjects are in several, they are compared within. Neither is a matter of choice: what a
difference is measured against, the spread between subjects or that of their own differences, follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np

from .._base.words import at_row, option
from ..data.observations import Observations
from ..errors import DataError, InputError, listing
from ..terms.levels import level_name

SHOWN = 6  # offenders that a message names
MOST = 50  # conditions: more are a number, whose effect is smooth
BY_GROUPS = "Pass group=({by!r}, {between!r}, …) when the observations are made."

Design = Literal["between", "within"]


@final
@dataclass(frozen=True)
class Crossing:
    """The cells of a design, in the order of the subjects and then of the conditions."""

    by: str  # the column of subjects
    between: str  # the column of conditions
    subjects: tuple[str, ...]
    conditions: tuple[str, ...]
    cells: tuple[tuple[int, int], ...]  # (subject, condition)
    of: np.ndarray  # (n,) the cell of each observation

    @cached_property
    def design(self) -> Design:
        """Between where every subject is in one condition, else within."""
        return "between" if len(self.cells) == len(self.subjects) else "within"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the cells: the subject, and its condition where it is in several."""
        alone = self.design == "between"
        return tuple(self.subjects[s] if alone else f"{self.subjects[s]} · {self.conditions[c]}" for s, c in self.cells)

    def condition_of(self, cell: str) -> str:
        """The condition of a cell."""
        return self.conditions[self.cells[self.names.index(cell)][1]]

    def counts(self) -> Mapping[str, int]:
        """Subjects by condition."""
        return {name: sum(c == at for _, c in self.cells) for at, name in enumerate(self.conditions)}

    def sentence(self) -> str:
        """The design in words."""
        counts = ", ".join(f"{name}: {count}" for name, count in self.counts().items())
        if self.design == "between":
            return (
                f"Conditions of {self.between!r} are between levels of {self.by!r}, each in one of them ({counts}): "
                f"differences are judged by the spread between levels."
            )
        return (
            f"Conditions of {self.between!r} are within levels of {self.by!r} ({counts}): differences are judged by "
            f"the spread of each level's own differences."
        )

    def notes(self) -> tuple[str, ...]:
        """What there is to say about cells without data."""
        absent = len(self.subjects) * len(self.conditions) - len(self.cells)
        if self.design == "between" or not absent:
            return ()
        seen = set(self.cells)
        empty = [
            f"{name} in {condition}"
            for s, name in enumerate(self.subjects)
            for c, condition in enumerate(self.conditions)
            if (s, c) not in seen
        ]
        return (
            f"{absent} of {len(self.subjects) * len(self.conditions)} pairs of {self.by!r} and {self.between!r} have "
            f"no observations (first {listing(empty, SHOWN)}); these levels count in the conditions that they have.",
        )

    def kept(self, names: tuple[str, ...]) -> Crossing:
        """The cells that have a fit, checked again; subjects and conditions without any are left out."""
        if names == self.names:
            return self
        kept = [self.cells[self.names.index(name)] for name in names]
        pairs = [(self.subjects[s], self.conditions[c]) for s, c in kept]
        return _checked(self.by, self.between, pairs, self.subjects, self.conditions, np.empty(0, dtype=np.intp))


def crossing(obs: Observations, by: str, between: str) -> Crossing:
    """The cells of the observations, or a sentence about what stands in the way."""
    if between == by:
        raise InputError(f"between must name the conditions, and by the subjects; got {by!r} for both.")
    columns = {**obs.context, **obs.group}
    if between not in columns:
        raise InputError(
            f"between must name a column of the observations ({listing(sorted(columns)) or 'there are none'}); got "
            f"{between!r}. {BY_GROUPS.format(by=by, between=between)}"
        )
    condition, subject = np.asarray(columns[between]), np.asarray(obs.group[by])
    _no_gaps(condition, subject, by, between, obs)
    who, which = (np.unique(column, return_inverse=True) for column in (subject, condition))
    subjects, conditions = (_named(values, name) for (values, _), name in ((who, by), (which, between)))
    if len(conditions) > min(MOST, len(condition) / 4):
        raise InputError(
            f"between must name a column of conditions, each with many observations; {between!r} has {len(conditions)} "
            f"values in {len(condition)} observations. A smooth interaction with a number is a term of the model: "
            f"te(step, {between})."
        )
    codes = who[1] * len(conditions) + which[1]
    seen, of = np.unique(codes, return_inverse=True)
    pairs = [(subjects[code // len(conditions)], conditions[code % len(conditions)]) for code in seen.tolist()]
    return _checked(by, between, pairs, subjects, conditions, of)


def _checked(
    by: str,
    between: str,
    pairs: list[tuple[str, str]],
    subjects: tuple[str, ...],
    conditions: tuple[str, ...],
    of: np.ndarray,
) -> Crossing:
    subjects = tuple(name for name in subjects if any(name == s for s, _ in pairs))
    conditions = tuple(name for name in conditions if any(name == c for _, c in pairs))
    cells = tuple((subjects.index(s), conditions.index(c)) for s, c in pairs)
    found = Crossing(by, between, subjects, conditions, cells, of)
    if len(conditions) < 2:
        raise DataError(
            f"A comparison needs at least two conditions; {between!r} has one, {listing(conditions)}. Leave "
            f"{option('between')} out."
        )
    times = np.bincount([s for s, _ in cells])
    if times.max() > 1 and times.min() == 1:
        raise DataError(_mixed(found, times))
    if alone := [name for name, count in found.counts().items() if count == 1]:
        only = subjects[next(s for s, c in cells if conditions[c] == alone[0])]
        raise DataError(
            f"Every condition needs at least two levels of {by!r}, whose spread is what a difference is judged by; "
            f"{between}={alone[0]} has one ({only}), and {len(alone)} of {len(conditions)} conditions are so. Leave "
            f"these conditions out, or give them more levels of {by!r}."
        )
    if found.design == "within":
        _connected(found)
    return found


def _mixed(found: Crossing, times: np.ndarray) -> str:
    """A subject in several conditions among those that are in one, or the other way about: which are fewer?"""
    several, by, between = np.flatnonzero(times > 1), found.by, found.between
    single = np.flatnonzero(times == 1)
    if len(several) <= len(single):
        first = int(several[0])
        where = listing([found.conditions[c] for s, c in found.cells if s == first])
        return (
            f"Conditions are between levels of {by!r} or within them, not both: {len(single)} levels are in one "
            f"condition of {between!r}, and {len(several)} in several, first {by}={found.subjects[first]} ({where}). "
            f"Correct the column {between!r}, or leave these levels out."
        )
    first = int(single[0])
    where = listing([found.conditions[c] for s, c in found.cells if s == first])
    return (
        f"Conditions are between levels of {by!r} or within them, not both: {len(several)} levels are in several "
        f"conditions of {between!r}, and {len(single)} in one alone, first {by}={found.subjects[first]} (only {where}),"
        f" which has no difference of its own. Leave these levels out, or correct the column {between!r}."
    )


def _connected(found: Crossing) -> None:
    """Whether levels lead from every condition to every other one."""
    sets = [{c} for c in range(len(found.conditions))]
    for s in range(len(found.subjects)):
        mine = {c for t, c in found.cells if t == s}
        joined = [one for one in sets if one & mine]
        sets = [one for one in sets if not one & mine] + [set().union(*joined)]
    if len(sets) > 1:
        first, second = ([found.conditions[c] for c in sorted(one)] for one in sorted(sets, key=min)[:2])
        raise DataError(
            f"No level of {found.by!r} leads from conditions {listing(first)} to {listing(second)} of "
            f"{found.between!r} ({len(sets)} sets of conditions never meet): their differences are between levels, the "
            f"others within. Fit each set by itself."
        )


def _no_gaps(condition: np.ndarray, subject: np.ndarray, by: str, between: str, obs: Observations) -> None:
    if condition.dtype.kind == "f":
        lost = np.isnan(condition)
    elif condition.dtype.kind in "OUS":
        lost = np.array([value is None or not str(value).strip() for value in condition.tolist()], dtype=bool)
    else:
        lost = np.zeros(len(condition), dtype=bool)
    if lost.any():
        first = int(np.flatnonzero(lost)[0])
        row = first if obs.row is None else int(obs.row[first])
        raise DataError(
            f"Every observation needs a condition; {int(lost.sum())} of {len(lost)} have none in {between!r}, first "
            f"{by}={level_name(subject[first].item())} in {at_row(row)}. Fill the column, or leave these rows out."
        )


def _named(values: np.ndarray, column: str) -> tuple[str, ...]:
    names = tuple(level_name(value) for value in values.tolist())
    if len(set(names)) < len(names):
        same = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"Levels of {column!r} have the same name: {listing(same)}.")
    return names
