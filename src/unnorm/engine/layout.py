"""`build_design`: which rows share a context, which columns belong to one level, and which form each term takes.

A term is, in this order of preference,
- CONTEXT: its covariates are constant along every run of rows: one row of columns per run;
- LOCAL: cubic splines of one covariate: four non-zeros a row;
- FACTOR: a function of one factor alone: one non-zero a row;
- DENSE: anything else: its columns, stored (or evaluated anew in each pass where they would take too much memory).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError, TermError
from .design import Design, Placement
from .penalties import Group, Penalties, Piece
from .segment import Block, Segment
from .splines import LocalBasis, local_basis
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns

_RUN = 64  # rows in a run where there are no contexts
_STORE = 1_500_000_000  # bytes of dense columns kept; beyond, they are evaluated in each pass
_LOCAL_ERROR = 3e-4  # largest relative error of a local form; beyond, the term is dense


def _keys(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The columns as rows of uint64, equal where the values are equal."""
    parts = []
    for column in columns:
        column = np.asarray(column)
        if column.dtype.kind == "f":
            parts.append((column.astype(np.float64) + 0.0).view(np.uint64)[:, None])
        elif column.dtype.kind in "iub":
            parts.append(column.astype(np.int64).view(np.uint64)[:, None])
        elif column.dtype.kind in "US":
            width = -(-column.dtype.itemsize // 8)
            padded = np.zeros((column.size, 8 * width), np.uint8)
            padded[:, : column.dtype.itemsize] = np.ascontiguousarray(column).view(np.uint8).reshape(column.size, -1)
            parts.append(padded.view(np.uint64))
        else:
            seen: dict[object, int] = {}
            numbers = (seen.setdefault(value, len(seen)) for value in column.tolist())
            parts.append(np.fromiter(numbers, np.int64, column.size).view(np.uint64)[:, None])
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _number(columns: Sequence[np.ndarray], most: int | None = None) -> tuple[np.ndarray, int]:
    """Distinct combinations numbered by first appearance; count −1 if there are more than `most`."""
    from .kernels import group_rows

    keys = _keys(columns)
    return group_rows(keys, len(keys) if most is None else most)


@dataclass(frozen=True)
class _Order:
    """Rows sorted by level and context: order (None: as they are), run starts, the level of each run, each run's first row (caller's)."""

    order: np.ndarray | None
    starts: np.ndarray
    level: np.ndarray
    first: np.ndarray
    contexts: bool


def _arrange(n: int, codes: np.ndarray | None, levels: int, context: Sequence[np.ndarray] | None) -> _Order:
    from .kernels import counting_sort

    if context is not None:
        ids, count = _number([*context, *([codes] if codes is not None else [])])
        first = np.full(count, -1, np.int64)
        first[ids[::-1]] = np.arange(n - 1, -1, -1)
        level = np.zeros(count, np.int64) if codes is None else codes[first].astype(np.int64)
        if codes is not None:
            rank = np.empty(count, np.int32)
            by_level = np.argsort(level, kind="stable")
            rank[by_level] = np.arange(count, dtype=np.int32)
            ids, first, level = rank[ids], first[by_level], level[by_level]
        order, starts = counting_sort(ids, count)
    elif codes is not None:
        order, bounds = counting_sort(codes, levels)
        cuts = [np.arange(a, b, _RUN) for a, b in zip(bounds[:-1], bounds[1:])]
        level = np.repeat(np.arange(levels), [cut.size for cut in cuts])
        starts = np.concatenate([*cuts, [n]])
        first = order[starts[:-1]].astype(np.int64)
    else:
        starts = np.append(np.arange(0, n, _RUN), n)
        return _Order(None, starts, np.zeros(starts.size - 1, np.int64), starts[:-1], False)
    in_place = bool(np.all(order[1:] > order[:-1]))
    return _Order(None if in_place else order, starts, level, first, context is not None)


def _constant(column: np.ndarray, order: _Order) -> bool:
    """Whether the column is constant along every run."""
    lengths = np.diff(order.starts)
    some = min(50, lengths.size)
    for runs in (some, lengths.size):  # a few runs first: most columns that vary, vary at once
        rows = slice(0, order.starts[runs])
        values = column[rows] if order.order is None else column[order.order[rows]]
        if not np.array_equal(values, np.repeat(column[order.first[:runs]], lengths[:runs])):
            return False
    return True


@dataclass(frozen=True)
class _Part:
    """Some columns of one term, in the shared block (level −1) or in one level's: rotated, with its local form if it has one."""

    term: int
    level: int
    user: np.ndarray  # places in the user's coefficients
    pick: np.ndarray  # columns of the term's design
    rotation: np.ndarray
    range: int  # rank of the joint penalty


def _rotation(matrices: Sequence[np.ndarray], size: int) -> tuple[np.ndarray, int]:
    """U: eigenvectors of the balanced Σ S_j/|S_j|, range first; and its rank. Orthogonal, so that S stays S."""
    if not matrices:
        return np.eye(size), 0
    values, vectors = np.linalg.eigh(sum(s / max(np.linalg.norm(s), 1e-300) for s in matrices))
    order = np.argsort(values)[::-1]
    rank = int(np.sum(values > 1e-8 * max(values.max(), 1e-300)))
    return np.ascontiguousarray(vectors[:, order]), rank


def _split_levels(term: BuiltTerm, columns: Columns, levels: int, representative: np.ndarray) -> list[np.ndarray] | None:
    """The columns that only rows of each level touch, or None where the term does not fall apart by level."""
    rows = {name: np.asarray(columns[name])[representative] for name in term.covariates}
    alone = set(term.covariates) == {term.factor_levels[0]} if term.factor_levels else False
    if alone:
        touched = term.design(rows) != 0
        if np.any(touched.sum(axis=0) > 1):
            return None
        picks = [np.flatnonzero(row) for row in touched]
    else:  # one equal block a level, in the order of the term's levels
        block = term.size // levels
        if term.size != block * levels:
            return None
        touched = np.abs(term.design(rows)).reshape(levels, levels, block).max(axis=2) > 0
        if np.any(touched.sum(axis=1) > 1):
            return None
        where = touched.argmax(axis=1)
        picks = [np.arange(w * block, (w + 1) * block) for w in where]
    inside = np.zeros((term.size, term.size), bool)
    for pick in picks:
        inside[np.ix_(pick, pick)] = True
    if any(np.any(np.abs(penalty.matrix[~inside]) > 1e-12 * np.abs(penalty.matrix).max()) for penalty in term.penalties):
        return None
    return picks


def build(
    terms: Sequence[BuiltTerm], columns: Columns, intercept: bool, context: np.ndarray | None, rows: int | None = None
) -> Design:
    """See `core.build_design`."""
    names = {name for term in terms for name in term.covariates}
    arrays = {name: np.asarray(columns[name]) for name in names}
    counts = {a.shape[0] for a in arrays.values()}
    if context is not None:
        counts.add(np.asarray(context).shape[0])
    if rows is not None:
        counts.add(rows)
    if len(counts) != 1:
        raise DataError(f"Columns and context must have one length; got {sorted(counts)}. Pass rows of one table.")
    n = counts.pop()
    labels = [term.label for term in terms]
    if len(set(labels)) < len(labels):
        twice = sorted({label for label in labels if labels.count(label) > 1})
        raise TermError(f"Every term needs its own label; {twice} came more than once. Drop the repetition.")

    # the factor by which rows are partitioned: the one with most columns of its own
    weight: dict[str, int] = {}
    for term in terms:
        if term.level is not None:
            weight[term.level[0]] = weight.get(term.level[0], 0) + term.size
        elif term.factor_levels is not None and (len(term.covariates) > 1 or (term.penalties and term.size > 200)):
            weight[term.factor_levels[0]] = weight.get(term.factor_levels[0], 0) + term.size
    partition = max(weight, key=lambda name: weight[name]) if weight else None
    codes, levels, level_values, representative = None, 0, [], np.empty(0, np.int64)
    if partition is not None:
        codes, levels = _number([arrays[partition]])
        representative = np.full(levels, -1, np.int64)
        representative[codes[::-1]] = np.arange(n - 1, -1, -1)
        level_values = arrays[partition][representative].tolist()

    # contexts: given, or the covariates of the widest term that takes few distinct values
    runs_by: Sequence[np.ndarray] | None = None if context is None else [np.asarray(context)]
    if runs_by is None:
        wide = [t for t in terms if t.breaks is None and t.factor_levels is None and len(t.covariates) > 1]
        for term in sorted(wide, key=lambda t: -t.size):
            found = [arrays[name] for name in term.covariates if name != partition]
            if found and _number(found, n // 4)[1] > 0:
                runs_by = found
                break
    order = _arrange(n, codes, levels, runs_by)

    # which columns of which term live where
    parts: list[_Part] = []
    at = 1 if intercept else 0
    slices: dict[str, slice] = {INTERCEPT: slice(0, 1)} if intercept else {}
    for k, term in enumerate(terms):
        slices[term.label] = slice(at, at + term.size)
        here: list[tuple[int, np.ndarray]] = [(-1, np.arange(term.size))]
        if partition is not None and term.level is not None and term.level[0] == partition:
            if term.level[1] not in level_values:
                raise TermError(f"{term.label}: no row has {partition} = {term.level[1]!r}. Drop the level, or the term.")
            here = [(level_values.index(term.level[1]), np.arange(term.size))]
        elif partition is not None and term.factor_levels is not None and term.factor_levels[0] == partition:
            picks = _split_levels(term, arrays, levels, representative)
            if picks is not None and sum(pick.size for pick in picks) == term.size:
                here = [(level, pick) for level, pick in enumerate(picks) if pick.size]
        for level, pick in here:
            matrices = [penalty.matrix[np.ix_(pick, pick)] for penalty in term.penalties]
            rotation, rank = _rotation(matrices, pick.size)
            parts.append(_Part(k, level, at + pick, pick, rotation, rank))
        at += term.size
    size = at

    # arrow order, placements and penalties
    placements: list[Placement] = []
    if intercept:
        placements.append(Placement(-1, np.array([0]), slice(0, 1), np.eye(1)))
    starts = [0]
    flat_at = 1 if intercept else 0
    local_at: dict[int, slice] = {}  # part number → columns within its block
    for level in range(-1, levels):
        for number, part in enumerate(parts):
            if part.level == level:
                placements.append(Placement(part.term, part.user, slice(flat_at, flat_at + part.pick.size), part.rotation))
                local_at[number] = slice(flat_at - starts[-1], flat_at - starts[-1] + part.pick.size)
                flat_at += part.pick.size
        starts.append(flat_at)
    penalties, fixed = _penalties(terms, parts, local_at, np.array(starts), size, intercept)

    # rows
    constant = {name: order.contexts and _constant(arrays[name], order) for name in names}
    if partition is not None:
        constant[partition] = True
    bases: dict[int, LocalBasis | None] = {}
    errors: dict[str, float] = {}
    kinds: dict[str, str] = {}
    bounds = np.searchsorted(order.level, np.arange(max(levels, 1) + 1))
    segments = tuple(
        _segment(level if levels else None, int(bounds[level]), int(bounds[level + 1]), terms, parts, local_at, starts, arrays,
                 order, constant, partition, level_values, bases, errors, kinds, intercept, n)
        for level in range(max(levels, 1))
    )  # fmt: skip
    return Design(
        tuple(terms), slices, segments, tuple(placements), penalties, fixed, order.order,
        np.arange(order.level.size) if order.contexts else None, levels, n, errors, kinds,
    )  # fmt: skip


def _penalties(
    terms: Sequence[BuiltTerm], parts: Sequence[_Part], local_at: dict[int, slice], starts: np.ndarray, size: int, intercept: bool
) -> tuple[Penalties, np.ndarray]:
    labels, pieces, groups, fixed = [], [], [], []
    free = np.ones(size, bool)
    for k, term in enumerate(terms):
        if not term.penalties:
            continue
        mine = [(number, part) for number, part in enumerate(parts) if part.term == k]
        rotated = [
            [_clean(part.rotation.T @ penalty.matrix[np.ix_(part.pick, part.pick)] @ part.rotation, part.range) for penalty in term.penalties]
            for _, part in mine
        ]
        numbers = tuple(range(len(labels), len(labels) + len(term.penalties)))
        for j, penalty in enumerate(term.penalties):
            labels.append(penalty.label)
            fixed.append(np.nan if term.fixed_sp[j] is None else float(term.fixed_sp[j]))  # type: ignore[arg-type]
            pieces.append(tuple(Piece(part.level, local_at[number], rotated[i][j]) for i, (number, part) in enumerate(mine)))
        for i, (number, part) in enumerate(mine):
            groups.append(Group(numbers, tuple(m[: part.range, : part.range] for m in rotated[i])))
            begin = starts[part.level + 1] + local_at[number].start
            free[begin : begin + part.range] = False
    return Penalties(tuple(labels), tuple(pieces), tuple(groups), starts, free), np.array(fixed)


def _clean(matrix: np.ndarray, rank: int) -> np.ndarray:
    """Exact zeros on the null space, exact symmetry; a diagonal matrix where it is one but for rounding."""
    out = (matrix + matrix.T) / 2
    out[rank:] = 0.0
    out[:, rank:] = 0.0
    off = out - np.diag(np.diag(out))
    if np.abs(off).max(initial=0.0) < 1e-10 * np.abs(out).max(initial=0.0):
        out = np.diag(np.diag(out))
    return out


def _site_columns(term: BuiltTerm, x: np.ndarray, covariate: str, partition: str | None, value: object, arrays: Columns) -> Columns:
    """Columns for `design` at sites x of one covariate: multipliers at 1, factors at the level at hand."""
    out: dict[str, np.ndarray] = {covariate: x}
    for name in term.covariates:
        if name == covariate:
            continue
        if name == term.by:
            out[name] = np.ones(x.size)
        else:
            here = term.level[1] if term.level is not None and term.level[0] == name else value
            filled = np.empty(x.size, dtype=np.asarray(arrays[name]).dtype)
            filled[:] = here
            out[name] = filled
    return out


def _segment(
    level: int | None, run0: int, run1: int, terms: Sequence[BuiltTerm], parts: Sequence[_Part], local_at: dict[int, slice],
    starts: Sequence[int], arrays: dict[str, np.ndarray], order: _Order, constant: dict[str, bool], partition: str | None,
    level_values: Sequence[object], bases: dict[int, LocalBasis | None], errors: dict[str, float], kinds: dict[str, str],
    intercept: bool, n: int,
) -> Segment:  # fmt: skip
    from .kernels import locate

    lo, hi = int(order.starts[run0]), int(order.starts[run1])
    rows = None if order.order is None else order.order[lo:hi]
    pick_rows = slice(lo, hi) if rows is None else rows
    firsts = order.first[run0:run1]
    value = level_values[level] if level is not None else None
    shared = starts[1]
    columns = np.arange(shared)
    if level is not None:
        columns = np.concatenate([columns, np.arange(starts[level + 1], starts[level + 2])])

    local: list[tuple[LocalBasis, np.ndarray, int, _Part, slice, int]] = []
    factor: list[tuple[np.ndarray, np.ndarray, _Part, slice]] = []
    dense: list[tuple[int, _Part, slice]] = []
    context: list[tuple[np.ndarray, np.ndarray, slice]] = []
    multipliers: list[np.ndarray] = []
    u_columns: list[np.ndarray] = []
    if intercept:
        context.append((np.ones((run1 - run0, 1)), np.eye(1), slice(0, 1)))
    for number, part in enumerate(parts):
        if part.level >= 0 and part.level != level:
            continue
        term = terms[part.term]
        at = local_at[number]
        if part.level >= 0:
            at = slice(at.start + shared, at.stop + shared)
        if all(constant[name] for name in term.covariates):
            here = {name: arrays[name][firsts] for name in term.covariates}
            context.append((np.ascontiguousarray(term.design(here)[:, part.pick]), part.rotation, at))
            kinds[term.label] = "context"
            continue
        numeric = [c for c in term.covariates if c != term.by and not (term.level and c == term.level[0])]
        if term.factor_levels is not None:
            numeric = [c for c in numeric if c != term.factor_levels[0]]
        whole_factor = term.factor_levels is not None and part.level < 0
        if term.breaks is not None and len(numeric) == 1 and not whole_factor:
            key = number
            if key not in bases:
                def design(x: np.ndarray, term=term, part=part, covariate=numeric[0]) -> np.ndarray:
                    return term.design(_site_columns(term, x, covariate, partition, value, arrays))[:, part.pick]

                breaks = np.asarray(term.breaks, dtype=np.float64)
                if not term.period:  # beyond its breaks a natural spline is a line: still a spline, on more breaks
                    x = np.asarray(arrays[numeric[0]], dtype=np.float64)
                    ends = float(x.min()), float(x.max())
                    breaks = np.concatenate([[ends[0]] if ends[0] < breaks[0] else [], breaks, [ends[1]] if ends[1] > breaks[-1] else []])
                basis = local_basis(breaks, term.period, design, part.pick.size)
                bases[key] = basis if basis.error <= _LOCAL_ERROR else None
                errors[term.label] = max(basis.error, errors.get(term.label, 0.0))
            basis = bases[key]
            if basis is not None:
                u = np.empty((hi - lo, 1))
                x = np.asarray(arrays[numeric[0]], dtype=np.float64)
                empty = np.empty(0, np.int32)
                if rows is None:
                    outside = locate(x[lo:hi], empty, basis.breaks, basis.period, u, 0)
                else:
                    outside = locate(x, rows, basis.breaks, basis.period, u, 0)
                if outside == 0:
                    m = -1
                    if term.by is not None or (term.level is not None and part.level < 0):
                        m = len(multipliers)
                        by = np.ones(hi - lo)
                        if term.by is not None:
                            by = by * np.asarray(arrays[term.by], dtype=np.float64)[pick_rows]
                        if term.level is not None and part.level < 0:
                            by = by * (arrays[term.level[0]][pick_rows] == term.level[1])
                        multipliers.append(by)
                    local.append((basis, u, m, part, at, 0))
                    u_columns.append(u)
                    kinds[term.label] = "local"
                    continue
        if term.factor_levels is not None and not numeric and term.by is None:
            ids, count = _number([arrays[term.factor_levels[0]]])
            first = np.full(count, -1, np.int64)
            first[ids[::-1]] = np.arange(n - 1, -1, -1)
            values = term.design({name: arrays[name][first] for name in term.covariates})[:, part.pick]
            factor.append((ids[pick_rows], values, part, at))
            kinds[term.label] = "factor"
            continue
        dense.append((part.term, part, at))
        kinds[term.label] = "dense"

    blocks: list[Block] = []
    tables: list[slice] = []
    raw = 0
    i0, cell0, polys, ms = [], [], [], []
    cells = 0
    for basis, _, m, part, at, _ in local:
        q = len(basis.coefficients)
        i0.append(raw)
        cell0.append(cells)
        ms.append(m)
        polys.append(basis.poly.ravel())
        cells += len(basis.poly)
        blocks.append(Block(slice(raw, raw + q), at, np.ascontiguousarray(basis.coefficients @ part.rotation)))
        tables.append(slice(raw, raw + q))
        raw += q
    indices = np.empty((hi - lo, len(factor)), np.int32)
    for j, (ids, values, part, at) in enumerate(factor):
        indices[:, j] = ids + raw
        blocks.append(Block(slice(raw, raw + len(values)), at, np.ascontiguousarray(values @ part.rotation)))
        tables.append(slice(raw, raw + len(values)))
        raw += len(values)
    q_total = raw
    d_total = sum(part.pick.size for _, part, _ in dense)
    for _, part, at in dense:
        blocks.append(Block(slice(raw, raw + part.pick.size), at, part.rotation))
        raw += part.pick.size
    for values, rotation, at in context:
        blocks.append(Block(slice(raw, raw + values.shape[1]), at, rotation))
        raw += values.shape[1]

    def evaluate(a: int, b: int) -> np.ndarray:
        out = np.empty((b - a, d_total))
        k = 0
        for t, part, _ in dense:
            which = slice(lo + a, lo + b) if rows is None else rows[a:b]
            here = {name: arrays[name][which] for name in terms[t].covariates}
            out[:, k : k + part.pick.size] = terms[t].design(here)[:, part.pick]
            k += part.pick.size
        return out

    stored = n * d_total * 8 <= _STORE
    count = hi - lo
    if d_total and stored:
        x_dense = np.empty((count, d_total))
        for a in range(0, count, 65_536):
            x_dense[a : a + 65_536] = evaluate(a, min(a + 65_536, count))
    else:
        x_dense = np.empty((0 if d_total else count, d_total))
    u_all = u_columns[0] if len(u_columns) == 1 else (np.concatenate(u_columns, axis=1) if u_columns else np.empty((count, 0)))
    mult = np.ascontiguousarray(np.stack(multipliers, axis=1)) if multipliers else np.empty((count, 0))
    z = np.ascontiguousarray(np.concatenate([values for values, _, _ in context], axis=1)) if context else np.empty((run1 - run0, 0))
    return Segment(
        level, lo, hi, columns, tuple(blocks), tuple(tables), np.ascontiguousarray(order.starts[run0 : run1 + 1] - lo, dtype=np.int64),
        np.ascontiguousarray(u_all), np.array(cell0, np.int64), np.concatenate(polys) if polys else np.empty(0),
        np.array(ms, np.int64), mult, np.array(i0, np.int64), indices, x_dense, z, evaluate if d_total and not stored else None, q_total,
    )  # fmt: skip
