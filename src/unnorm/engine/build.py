"""`build_design`: which rows share a context, which columns belong to one level, and where each coefficient lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError, TermError
from .arrange import Order, arrange, first_rows, number
from .design import Design, Placement
from .forms import Forms, Part
from .level_forms import alike, level_columns
from .penalties import EVERY, Group, Penalties, PenaltyPiece
from .runs import consecutive
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns, Penalty

_DIGITS = 1e-4  # a singular value, of the largest, whose square still has eight digits in S
_WIDE = 200  # levels from which a random intercept alone is worth a partition


@dataclass(frozen=True)
class _Partition:
    """The factor by which rows are partitioned, or nothing."""

    name: str | None = None
    codes: np.ndarray | None = None
    values: tuple[object, ...] = ()
    first: np.ndarray | None = None  # a row of each level
    alike: bool = False  # whether every level's own columns are the same functions

    def owns(self, term: BuiltTerm) -> bool:
        """Whether the term has a block of columns for each level."""
        return self.alike and term.factor_levels is not None and term.factor_levels[0] == self.name


def factors(terms: Sequence[BuiltTerm]) -> dict[str, int]:
    """The factors that may partition the rows of these terms, with the columns that belong to one level of each."""
    weight: dict[str, int] = {}
    for term in terms:
        if term.level is not None:
            weight[term.level[0]] = weight.get(term.level[0], 0) + term.size
        elif term.factor_levels is not None and (len(term.covariates) > 1 or (term.penalties and term.size > _WIDE)):
            weight[term.factor_levels[0]] = weight.get(term.factor_levels[0], 0) + term.size
    return weight


def _partition(terms: Sequence[BuiltTerm], arrays: dict[str, np.ndarray]) -> _Partition:
    """The factor with most columns of its own."""
    weight = factors(terms)
    if not weight:
        return _Partition()
    name = max(weight, key=lambda factor: weight[factor])
    codes, levels = number([arrays[name]])
    first = first_rows(codes, levels)
    values = tuple(arrays[name][first].tolist())
    same = alike(terms, name, codes.size, levels) and all(
        min(_numbers(term, values)) >= 0
        for term in terms
        if term.factor_levels is not None and term.factor_levels[0] == name
    )
    return _Partition(name, codes, values, first, same)


def _arranged(
    terms: Sequence[BuiltTerm], arrays: dict[str, np.ndarray], partition: _Partition, context: np.ndarray | None,
    n: int, threads: int,
) -> tuple[Order, frozenset[str]]:  # fmt: skip
    """Rows by level and context, and the columns that are known to be constant along its runs. Contexts, where they are
    not given, are the distinct values of the widest term that takes at most n/4 of them, if any does."""
    levels = len(partition.values)
    wide = [t for t in terms if t.breaks is None and t.factor_levels is None and len(t.covariates) > 1]
    sets = [[name for name in t.covariates if name != partition.name] for t in sorted(wide, key=lambda t: -t.size)]
    tried = [([], [np.asarray(context)], n)] if context is not None else [
        (names, [arrays[name] for name in names], n // 4) for names in sets if names
    ]  # fmt: skip
    for names, columns, most in tried:
        if partition.codes is None and (order := consecutive(columns, most, threads)) is not None:
            return order, frozenset(names)
        ids, count = number(columns, most)
        if count > 0:
            return arrange(n, partition.codes, levels, ids), frozenset(names)
    return arrange(n, partition.codes, levels, None), frozenset()


class _Rotations:
    """U (p, p) orthogonal, the joint range of a term's penalties first, then their null space; and the roots E_j U on
    the range. The rank is the term's own word: eigenvalues that are small are not zero.

    Levels of one factor share their penalties, so that each set of roots is turned once.
    """

    def __init__(self) -> None:
        self._done: dict[tuple[Any, ...], tuple[np.ndarray, tuple[np.ndarray, ...]]] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def of(
        self, penalties: Sequence[Penalty], pick: np.ndarray, null_dim: int
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        if penalties and penalties[0].copies > 1 and len(penalties[0].block) == pick.size:
            roots, pick = [penalty.block_root for penalty in penalties], np.arange(pick.size)  # one of equal blocks
        else:
            roots = [penalty.square_root for penalty in penalties]
        key = (tuple(map(id, roots)), pick.tobytes(), null_dim)
        if key not in self._done:
            self._kept.append(roots)
            self._done[key] = self._turn([_touched(E[:, pick]) for E in roots], pick.size, null_dim)
        return self._done[key]

    @staticmethod
    def _turn(roots: list[np.ndarray], size: int, null_dim: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        if not roots:
            return np.eye(size), ()
        rank = size - null_dim
        matrices = [E.T @ E for E in roots]
        balance = [1.0] if len(roots) == 1 else [1 / max(np.linalg.norm(S) ** 0.5, 1e-300) for S in matrices]
        values, vectors = np.linalg.eigh(sum((b * b) * S for b, S in zip(balance, matrices)))
        d, U = np.sqrt(np.maximum(values[::-1], 0.0)), np.ascontiguousarray(vectors[:, ::-1])
        if d[rank - 1] < _DIGITS * d[0]:  # S has lost digits of its smaller eigenvalues: its root has not
            _, d, turned = np.linalg.svd(np.concatenate([b * E for b, E in zip(balance, roots)]))
            d, U = np.maximum(d, 1e-18 * d[0]), np.ascontiguousarray(turned.T)
        if len(roots) == 1:  # in these coordinates S is diagonal
            return U, (np.diag(d[:rank]),)
        return U, tuple(E @ U[:, :rank] for E in roots)


def _touched(E: np.ndarray) -> np.ndarray:
    """The rows of a root that are not zero."""
    return E[np.abs(E).max(axis=1, initial=0.0) > 0]


def _numbers(term: BuiltTerm, values: Sequence[object]) -> list[int]:
    """Which of the term's levels each of the values is, −1 for none."""
    assert term.factor_levels is not None
    number = {level: i for i, level in enumerate(term.factor_levels[1])}
    return [number.get(value, -1) for value in values]


def _split_levels(term: BuiltTerm, values: Sequence[object]) -> list[np.ndarray]:
    """The columns that only rows of each of the levels `values` touch: one equal block a level, as the term declares
    (none for a level that it codes by zeros)."""
    assert term.factor_levels is not None
    block = term.size // len(term.factor_levels[1])
    at = _numbers(term, values)
    return [np.arange(i * block, (i + 1) * block) if i >= 0 else np.arange(0) for i in at]


def _parts(terms: Sequence[BuiltTerm], partition: _Partition, intercept: bool) -> tuple[list[Part], np.ndarray]:
    """Which columns of which term live in which block of the arrow, in order; and where the blocks start."""
    levels = len(partition.values)
    found: list[tuple[int, int, np.ndarray, int]] = []
    at = int(intercept)
    for k, term in enumerate(terms):
        here: list[tuple[int, np.ndarray]] = [(-1, np.arange(term.size))]
        if partition.name is not None and term.level is not None and term.level[0] == partition.name:
            if term.level[1] not in partition.values:
                name, value = term.level
                raise TermError(f"{term.label}: no row has {name} = {value!r}. Drop the level, or the term.")
            here = [(partition.values.index(term.level[1]), np.arange(term.size))]
        elif partition.owns(term):
            here = []  # below, once for all levels
        elif partition.name is not None and term.factor_levels is not None and term.factor_levels[0] == partition.name:
            picks = _split_levels(term, partition.values)
            if sum(pick.size for pick in picks) == term.size:
                here = [(level, pick) for level, pick in enumerate(picks) if pick.size]
        found += [(k, level, pick, at) for level, pick in here]
        at += term.size
    parts: list[Part] = []
    rotations = _Rotations()
    starts = [0]
    by_level: list[list[tuple[int, np.ndarray, int]]] = [[] for _ in range(levels + 1)]
    for k, where, pick, begin in found:
        by_level[where + 1].append((k, pick, begin))
    for level in range(-1, levels):
        place = int(intercept) if level < 0 else 0
        for k, pick, begin in by_level[level + 1]:
            null_dim = terms[k].null_dim * pick.size // terms[k].size  # of equal blocks, each has its share
            rotation, roots = rotations.of(terms[k].penalties, pick, null_dim)
            parts.append(Part(k, level, begin + pick, pick, rotation, roots, slice(place, place + pick.size)))
            place += pick.size
        starts.append(starts[-1] + place)
    if partition.alike:
        own, at, place = [], int(intercept), 0
        for k, term in enumerate(terms):
            if partition.owns(term):
                own.append(_every_level(k, term, partition.values, at, place, rotations))
                place += own[-1].size
            at += term.size
        return parts + own, np.concatenate([[0], starts[1] + place * np.arange(levels + 1)])
    return parts, np.array(starts)


def _every_level(k: int, term: BuiltTerm, values: Sequence[object], at: int, place: int, rotations: _Rotations) -> Part:
    """The part of a term that each level has alike: `user` (L, k) for all levels, `pick` for the first."""
    block = term.size // len(values)
    rotation, roots = rotations.of(term.penalties, np.arange(block), term.null_dim // len(values))
    user = at + block * np.array(_numbers(term, values))[:, None] + np.arange(block)
    return Part(k, 0, user, np.arange(block), rotation, roots, slice(place, place + block))


# long: those of `core.build_design`
def build(
    terms: Sequence[BuiltTerm],
    columns: Columns,
    intercept: bool,
    context: np.ndarray | None,
    rows: int | None,
    threads: int,
    whole_contexts: bool = False,
    all_rows: int | None = None,
    exact: bool = False,
) -> Design:
    """See `core.build_design`."""
    return arranged(terms, columns, intercept, context, rows, threads, whole_contexts, all_rows, exact=exact)[0]


# long: `build`'s arguments, and whether a factor may partition the rows
def arranged(
    terms: Sequence[BuiltTerm], columns: Columns, intercept: bool, context: np.ndarray | None, rows: int | None,
    threads: int, whole_contexts: bool = False, all_rows: int | None = None, partitioned: bool = True,
    exact: bool = False,
) -> tuple[Design, Forms, frozenset[str]]:  # fmt: skip
    """The design, the forms that its terms take, and the columns that make its contexts."""
    arrays = {name: np.asarray(columns[name]) for name in {name for term in terms for name in term.covariates}}
    counts = {a.shape[0] for a in arrays.values()}
    counts |= {np.asarray(context).shape[0]} if context is not None else set()
    counts |= {rows} if rows is not None else set()
    if len(counts) != 1:
        raise DataError(f"Columns and context must have one length; got {sorted(counts)}. Pass rows of one table.")
    n = counts.pop()
    labels = [term.label for term in terms]
    if len(set(labels)) < len(labels):
        twice = sorted({label for label in labels if labels.count(label) > 1})
        raise TermError(f"Every term needs its own label; {twice} came more than once. Drop the repetition.")

    partition = _partition(terms, arrays) if partitioned else _Partition()
    if whole_contexts and context is not None and partition.codes is not None:
        own, count = number([np.asarray(context)])
        split = np.any(partition.codes != partition.codes[first_rows(own, count)][own])
        levels = {term.level[1] for term in terms if term.level is not None and term.level[0] == partition.name}
        if split or not levels.issubset(partition.values):  # or some of the rows only, without some level
            partition = _Partition()
    levels = len(partition.values)
    order, known = _arranged(terms, arrays, partition, context, n, threads)
    parts, starts = _parts(terms, partition, intercept)
    placements = [Placement(-1, np.zeros(1, np.int64), slice(0, 1), np.eye(1))] if intercept else []
    for part in parts:
        begin = int(starts[part.level + 1])
        flat = slice(begin + part.at.start, begin + part.at.stop)
        index = starts[1:-1, None] + np.arange(part.at.start, part.at.stop) if part.user.ndim == 2 else None
        placements.append(Placement(part.term, part.user, flat, part.rotation, index))
    penalties, fixed = _penalties(terms, parts, starts)

    constant = {name: order.contexts and (name in known or order.constant(array)) for name, array in arrays.items()}
    if partition.name is not None:
        constant[partition.name] = True
    values = partition.values[:1] if partition.alike else partition.values  # one segment, or one for each level
    forms = Forms(terms, parts, starts, arrays, order, constant, values, intercept, n, threads, all_rows or n, exact)
    forms = forms if partitioned else replace(forms, rows=all_rows or n)  # a plan: for all rows
    own = None
    if partition.alike:
        segments = (forms.segment(None, 0, order.level.size),)
        own = level_columns(forms, [i for i, part in enumerate(parts) if part.level == 0], order, levels)
    else:
        bounds = np.searchsorted(order.level, np.arange(max(levels, 1) + 1))
        segments = tuple(
            forms.segment(k if levels else None, int(bounds[k]), int(bounds[k + 1])) for k in range(max(levels, 1))
        )
    slices, at = ({INTERCEPT: slice(0, 1)}, 1) if intercept else ({}, 0)
    for term in terms:
        slices[term.label] = slice(at, at + term.size)
        at += term.size
    run_ids = np.arange(order.level.size) if order.contexts else None
    design = Design(
        tuple(terms), slices, segments, tuple(placements), penalties, fixed, order.order, run_ids, levels, n,
        forms.errors, forms.kinds, own, exact=exact,
    )  # fmt: skip
    return design, forms, known


def _penalties(terms: Sequence[BuiltTerm], parts: Sequence[Part], starts: np.ndarray) -> tuple[Penalties, np.ndarray]:
    """The penalties in rotated coordinates, and the terms' own fixed smoothing parameters."""
    labels: list[str] = []
    pieces: list[tuple[PenaltyPiece, ...]] = []
    groups: list[Group] = []
    fixed: list[float] = []
    free = np.ones(int(starts[-1]), bool)
    first: dict[str, tuple[int, ...]] = {}  # link → the penalties of the first term that has it
    for k, term in enumerate(terms):
        mine = [part for part in parts if part.term == k]
        numbers = tuple(range(len(labels), len(labels) + len(term.penalties)))
        shared = first.setdefault(term.link, numbers) if term.link is not None else numbers
        if shared is numbers:
            labels += [penalty.label for penalty in term.penalties]
            fixed += [np.nan if own is None else float(own) for own in term.fixed_sp]
            pieces += [()] * len(numbers)
        numbers = shared
        for part in mine:
            matrices = tuple(E.T @ E for E in part.roots)  # on the penalties' joint range
            for penalty, matrix in zip(numbers, matrices):
                block = EVERY if part.user.ndim == 2 else part.level
                pieces[penalty] += (PenaltyPiece(block, part.at, _padded(matrix, part.size)),)
            if term.penalties:
                spectrum = term.spectrum if len(part.roots) > 1 and part.size == term.size else None
                copies = len(part.user) if part.user.ndim == 2 else 1
                groups.append(Group(numbers, matrices, part.roots, spectrum, copies))
                for begin in starts[part.level + 1 :][:copies] + part.at.start:
                    free[begin : begin + part.range] = False
    return Penalties(tuple(labels), tuple(pieces), tuple(groups), starts, free), np.array(fixed)


def _padded(matrix: np.ndarray, size: int) -> np.ndarray:
    """S on the penalties' joint range, zero on their null space."""
    rank = len(matrix)
    out = np.zeros((size, size))
    out[:rank, :rank] = matrix
    return out
