"""Which form each term takes on a segment, and the segment's rows in that form.

A term is, in this order of preference,
- CONTEXT: its covariates are constant along every run of rows: one row of columns per run;
- LOCAL: cubic splines of one covariate: four non-zeros a row;
- FACTOR: a function of one factor alone: one non-zero a row;
- PRODUCT: a smooth of two or three covariates as products of cubic splines: 4² or 4³ non-zeros a row; at most one term;
- DENSE: anything else: its columns, stored (or evaluated anew in each pass where they would take too much memory).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .._base.threads import BRIEF, apart, run_tasks
from ..errors import DataError, hush
from .arrange import Order, first_rows, number
from .products import Product, ProductBasis, product_basis, worth
from .segment import Block, Segment
from .splines import LocalBasis, local_basis, thins, with_empty_cell

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns

STORE = 1_500_000_000  # bytes of dense columns kept; beyond, they are evaluated in each pass
CHUNK = 65_536  # rows evaluated at a time
_SHARE = 8_192  # rows that are worth a thread
_WIDE = 64  # columns from which a local form is: its arithmetic is then more than its Python
FINE = 5_000  # rows up to which more cells cost nothing
_LEVELS = 20  # or hardly anything, of curves that levels have to themselves: each pays for the products of cells
LOCAL_ERROR = 3e-4  # largest relative error of a local form; beyond, the term is dense
_ROUNDING = 1e-9  # the same where columns are to be exact


@dataclass(frozen=True)
class Part:
    """Some columns of one term, in the shared block (level −1) or in one level's."""

    term: int
    level: int
    user: np.ndarray  # places in the user's coefficients
    pick: np.ndarray  # columns of the term's design
    rotation: np.ndarray  # U
    roots: tuple[np.ndarray, ...]  # E_j U on the penalties' joint range, S_j = EᵀE there
    at: slice  # columns within its block

    @property
    def size(self) -> int:
        return self.pick.size

    def columns(self, term: BuiltTerm, columns: Columns) -> np.ndarray:
        """The term's columns of this part, on rows that this part is for."""
        if self.level >= 0 and term.factor_levels is not None and self.size < term.size:
            return term.level_design(columns, int(self.pick[0]) // self.size)
        return term.design(columns)[:, self.pick]

    @property
    def range(self) -> int:
        """Rank of the joint penalty."""
        return self.roots[0].shape[1] if self.roots else 0


@dataclass
class Forms:
    """What the segments of one design have in common."""

    terms: Sequence[BuiltTerm]
    parts: Sequence[Part]
    starts: np.ndarray  # of the arrow's blocks
    arrays: dict[str, np.ndarray]
    order: Order
    constant: dict[str, bool]  # name → constant along runs
    level_values: Sequence[object]
    intercept: bool
    rows: int
    threads: int
    all_rows: int  # where these are a block
    exact: bool = False  # no columns but to rounding: see `resolution`
    bases: dict[int, LocalBasis | None] = field(default_factory=dict)  # by part number
    surfaces: dict[int, ProductBasis | None] = field(default_factory=dict)  # by part number
    factors: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # levels and columns at each
    codes: dict[int, np.ndarray] = field(default_factory=dict)  # each row's level there
    errors: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def _numeric(self, term: BuiltTerm) -> list[str]:
        """The covariates that are neither multiplier nor factor."""
        aside = {term.by, term.level[0] if term.level else None, term.factor_levels[0] if term.factor_levels else None}
        return [name for name in term.covariates if name not in aside]

    def kind(self, n: int, value: object) -> str:
        """The form of part n on the rows of one level (`value`)."""
        part = self.parts[n]
        term = self.terms[part.term]
        numeric = self._numeric(term)
        if all(self.constant[name] for name in term.covariates):
            return "context"
        whole_factor = term.factor_levels is not None and part.level < 0
        if term.breaks is not None and len(numeric) == 1 and not whole_factor and self._basis(n, value) is not None:
            return "local"
        if term.factor_levels is not None and not numeric and term.by is None:
            return "factor"
        return "dense"

    def _basis(self, n: int, value: object) -> LocalBasis | None:
        """The local form of part n, if it is exact enough."""
        if n not in self.bases:
            part = self.parts[n]
            term = self.terms[part.term]
            (covariate,) = self._numeric(term)

            def design(x: np.ndarray) -> np.ndarray:
                """At sites of the covariate, multipliers at 1 and factors at the level at hand."""
                columns = {covariate: x}
                for name in set(term.covariates) - {covariate}:
                    level = term.level[1] if term.level is not None and term.level[0] == name else value
                    columns[name] = (
                        np.ones(x.size) if name == term.by else np.full(x.size, level, self.arrays[name].dtype)
                    )
                with hush():  # knots beyond the data are no rows
                    return part.columns(term, columns)

            breaks = np.asarray(term.breaks, dtype=np.float64)
            if not term.period:  # beyond its breaks a natural spline is a line: still a spline, on more breaks
                x = self.arrays[covariate]
                low, high = float(x.min()), float(x.max())
                breaks = np.concatenate([[low] if low < breaks[0] else [], breaks, [high] if high > breaks[-1] else []])
            if self.exact and thins(breaks, part.size):
                self.bases[n] = None
                return None
            several = len(self.level_values)
            fine = self.all_rows <= FINE and (several <= 1 or (part.level >= 0 and several <= _LEVELS))
            basis = local_basis(breaks, term.period, design, part.size, fine)
            basis = with_empty_cell(basis) if term.partial else basis
            self.errors[term.label] = max(basis.error, self.errors.get(term.label, 0.0))
            self.bases[n] = basis if basis.error <= (_ROUNDING if self.exact else LOCAL_ERROR) else None
        return self.bases[n]

    def _surface(self, n: int, rows: int) -> ProductBasis | None:
        """Part n as products of splines, where it has such a form and `rows` evaluations are more work than finding
        it."""
        part = self.parts[n]
        term = self.terms[part.term]
        if self.exact or term.grid is None or part.size < term.size or self.all_rows <= FINE:
            return None
        if n not in self.surfaces:
            at = [self.arrays[name] for name in term.smooth_covariates]
            self.surfaces[n] = product_basis(term.grid, at, term.functions, part.size, rows // 3)
            if (found := self.surfaces[n]) is not None:
                self.errors[term.label] = max(found.error, self.errors.get(term.label, 0.0))
        return self.surfaces[n]

    def _product(self, here: list, q: int, c: int) -> int | None:
        """Which of the dense parts is taken as a product: the one with most columns."""
        for k in sorted(range(len(here)), key=lambda k: -here[k][1].size):
            n, part, _ = here[k]
            if part.size <= 16 or part.level >= 0:
                continue
            basis = self._surface(n, self.rows)
            others = q + c + sum(other.size for _, other, _ in here) - part.size
            if basis is not None and worth(basis, self.rows, others):
                return k
        return None

    def segment(self, level: int | None, run0: int, run1: int) -> Segment:
        """Runs run0…run1−1, all of one level (None: there are no levels)."""
        lo, hi = int(self.order.starts[run0]), int(self.order.starts[run1])
        value = None if level is None else self.level_values[level]
        shared = int(self.starts[1])
        own = np.arange(0) if level is None else np.arange(self.starts[level + 1], self.starts[level + 2])
        here: dict[str, list[tuple[int, Part, slice]]] = {"local": [], "factor": [], "dense": [], "context": []}
        mine = [n for n, part in enumerate(self.parts) if part.level < 0 or part.level == level]
        wide = max((self.parts[n].size for n in mine), default=0) > _WIDE
        # local forms are found
        kinds = run_tasks(lambda n: self.kind(n, value), [(n,) for n in mine], self.threads if wide else 1)
        for n, kind in zip(mine, kinds):
            part = self.parts[n]
            shift = 0 if part.level < 0 else shared
            self.kinds[self.terms[part.term].label] = kind
            here[kind].append((n, part, slice(part.at.start + shift, part.at.stop + shift)))

        blocks: list[Block] = []
        raw = 0

        def block(matrix: np.ndarray, at: slice) -> slice:
            nonlocal raw
            blocks.append(Block(slice(raw, raw + len(matrix)), at, np.ascontiguousarray(matrix)))
            raw += len(matrix)
            return blocks[-1].raw

        u, cell0, poly, i0 = self._local(here["local"], lo, hi, block)
        m, mult = self._multipliers(here["local"], lo, hi)
        f = self._factors(here["factor"], lo, hi, block)
        tables = tuple(b.raw for b in blocks)
        local = raw
        c = sum(part.size for _, part, _ in here["context"]) + self.intercept
        chosen = self._product(here["dense"], local, c)
        last = None if chosen is None else here["dense"].pop(chosen)
        for _, part, at in here["dense"]:
            block(part.rotation, at)
        d = raw - local
        product = None if last is None else self._rows_of_product(last, lo, hi, block)
        z = self._context(here["context"], self.order.first[run0:run1], block)

        dense = [(self.terms[part.term], part) for _, part, _ in here["dense"]]

        def evaluate(a: int, b: int) -> np.ndarray:
            rows = self.order.pick(lo + a, lo + b)
            columns = [p.columns(t, {name: self.arrays[name][rows] for name in t.covariates}) for t, p in dense]
            return np.ascontiguousarray(np.concatenate(columns, axis=1))

        stored = self.rows * d * 8 <= STORE
        x = np.empty((hi - lo if stored or not d else 0, d))
        if d and stored:
            for a in range(0, hi - lo, CHUNK):
                x[a : a + CHUNK] = evaluate(a, min(a + CHUNK, hi - lo))
        ptr = np.ascontiguousarray(self.order.starts[run0 : run1 + 1] - lo, dtype=np.int64)
        columns = np.concatenate([np.arange(shared), own])
        lazy = None if stored or not d else evaluate
        return Segment(
            level, lo, hi, columns, tuple(blocks), tables, ptr, u, cell0, poly, m, mult, i0, f, x, z,
            lazy, local, product,
        )  # fmt: skip

    def _local(self, here, lo: int, hi: int, block) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """u (cell + t), first cells, cubics and first raw functions of the local blocks."""
        from .arrange_kernels import locate

        u = np.empty((hi - lo, len(here)))
        cell0, i0 = np.zeros(len(here), np.int64), np.zeros(len(here), np.int64)
        polys: list[np.ndarray] = []

        def place(b: int, part: Part, basis: LocalBasis, a: int, c: int) -> None:
            here = self.order.pick(lo + a, lo + c)
            x = np.asarray(self.arrays[self._numeric(self.terms[part.term])[0]], dtype=np.float64)
            x, order = (x[here], np.empty(0, np.int32)) if isinstance(here, slice) else (x, here)
            locate(np.require(x, requirements=("C", "W")), order, basis.breaks, basis.period, u[a:c], b)
            if self.terms[part.term].partial:
                lacking = np.isnan(x if isinstance(here, slice) else x[here])
                u[a:c][lacking, b] = basis.breaks.size - 1  # the empty cell

        placed: list[tuple[int, Part, LocalBasis]] = []
        for b, (n, part, at) in enumerate(here):
            basis = self.bases[n]
            assert basis is not None
            placed.append((b, part, basis))
            cell0[b] = sum(p.size for p in polys) // 16
            polys.append(basis.poly.ravel())
            i0[b] = block(basis.coefficients @ part.rotation, at).start

        def stretch(a: int, c: int) -> None:
            """All blocks of these rows: they share cache lines, which two threads would take from each other."""
            with apart():
                for one in placed:
                    place(*one, a, c)

        chunk = min(CHUNK, max(_SHARE, -(-(hi - lo) // self.threads)))
        run_tasks(
            stretch,
            [(a, min(a + chunk, hi - lo)) for a in range(0, hi - lo, chunk)],
            self.threads,
            brief=hi - lo <= BRIEF,
        )
        return u, cell0, np.concatenate([*polys, np.empty(0)]), i0

    def _rows_of_product(self, one: tuple[int, Part, slice], lo: int, hi: int, block) -> Product:
        """The part's rows as products of splines; the penalties' rotation is in C already."""
        from .arrange_kernels import locate

        n, part, at = one
        term, basis = self.terms[part.term], self.surfaces[n]
        assert basis is not None
        block(np.eye(part.size), at)
        self.kinds[term.label] = "product"
        u, rows = np.empty((hi - lo, len(basis.margins))), self.order.pick(lo, hi)

        def place(j: int, name: str) -> None:
            x = np.require(np.asarray(self.arrays[name], dtype=np.float64)[rows], requirements=("C", "W"))
            locate(x, np.empty(0, np.int32), basis.margins[j].breaks, basis.margins[j].period, u, j)

        run_tasks(place, list(enumerate(term.smooth_covariates)), self.threads)
        _, by = self._multipliers([one], lo, hi)
        return Product(basis.turned(part.rotation), u, np.ascontiguousarray(by[:, 0]) if by.size else np.empty(0))

    def _multipliers(self, here, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """`by` columns, and indicators of levels that rows are not partitioned by."""
        m, columns = np.full(len(here), -1, np.int64), []
        rows = self.order.pick(lo, hi)
        for b, (_, part, _) in enumerate(here):
            term = self.terms[part.term]
            other = term.level is not None and part.level < 0
            if term.by is not None or other:
                by = np.ones(hi - lo)
                if term.by is not None:
                    by *= np.asarray(self.arrays[term.by], dtype=np.float64)[rows]
                if term.level is not None and other:
                    by *= self.arrays[term.level[0]][rows] == term.level[1]
                m[b] = len(columns)
                columns.append(by)
        return m, np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.empty((hi - lo, 0))

    def _factors(self, here, lo: int, hi: int, block) -> np.ndarray:
        """The raw index of each row's level in every factor block."""
        f = np.empty((hi - lo, len(here)), np.int32)
        for j, (n, part, at) in enumerate(here):
            ids, values = self._numbered(n)
            f[:, j] = ids[self.order.pick(lo, hi)] + block(values @ part.rotation, at).start
        return f

    def _numbered(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Each row's level in the factor of part n, by number, and the part's columns at each level."""
        part = self.parts[n]
        term = self.terms[part.term]
        assert term.factor_levels is not None
        column = self.arrays[term.factor_levels[0]]
        if n in self.codes:  # of another level's rows
            return self.codes[n], self.factors[n][1]
        if n in self.factors:  # decided on other rows
            levels, values = self.factors[n]
            by_size = np.argsort(levels)
            at = by_size[np.minimum(np.searchsorted(levels[by_size], column), levels.size - 1)]
            if not np.array_equal(levels[at], column):
                new = column[int(np.argmax(levels[at] != column))]
                raise DataError(f"{term.label}: {term.factor_levels[0]} = {new!r} is no level of this term.")
            self.codes[n] = at
            return at, values
        ids, count = number([column])
        first = first_rows(ids, count)
        values = term.design({name: self.arrays[name][first] for name in term.covariates})[:, part.pick]
        self.factors[n], self.codes[n] = (column[first], values), ids
        return ids, values

    def _known(self, part: Part, columns: Columns) -> np.ndarray | None:
        """A part's columns, where they are a term's functions and it knows them at these rows."""
        term = self.terms[part.term]
        if part.size < term.size or tuple(term.smooth_covariates) != term.covariates or term.level is not None:
            return None
        return term.known(np.column_stack([columns[name] for name in term.covariates]))

    def _context(self, here, first: np.ndarray, block) -> np.ndarray:
        """The columns of each run, the intercept first."""
        size = sum(part.size for _, part, _ in here) + self.intercept
        z = np.empty((first.size, size))
        k = 0
        if self.intercept:
            z[:, 0] = 1.0
            block(np.eye(1), slice(0, 1))
            k = 1

        def fill(part: Part, surface: ProductBasis | None, k: int, a: int, b: int) -> None:
            term = self.terms[part.term]
            columns = {name: self.arrays[name][first[a:b]] for name in term.covariates}
            if surface is None:
                found = self._known(part, columns)
                z[a:b, k : k + part.size] = part.columns(term, columns) if found is None else found
            else:
                z[a:b, k : k + part.size] = surface.columns([columns[name] for name in term.smooth_covariates])

        tasks = []
        for n, part, at in here:
            block(part.rotation, at)
            term = self.terms[part.term]
            plain = part.level < 0 and term.by is None and term.level is None
            surface = self._surface(n, first.size) if plain else None
            chunk = min(CHUNK, max(256, -(-first.size // self.threads)))
            cuts = range(0, first.size, chunk)
            tasks += [(part, surface, k, a, min(a + chunk, first.size)) for a in cuts]
            k += part.size
        run_tasks(fill, tasks, self.threads, brief=first.size <= BRIEF)
        return z
