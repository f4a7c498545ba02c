"""Xᵀ(dℓ/dη) on fresh reference points, without a design: curves of one covariate from tables, χ once for each context.

A table has `CELLS` cells; v is shared between a cell's two ends, so that Xᵀv = Dᵀh with D the columns at the ends and h
the histogram of v: the error is that of linear interpolation, (cell/knot distance)²/8 or about 1e-4 of a column, while
these scores serve only to estimate a variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..engine.smoothed import INTERCEPT
from ..errors import hush
from ..objectives.additive import AdditiveProblem
from ..objectives.anchor import Integrated
from ..objectives.redraws import Probe, Read, points_only
from ..objectives.rows import Rows
from ..terms.base import BuiltTerm, Columns

Score = Callable[[np.ndarray], np.ndarray]  # Xᵀv of a term
CELLS = 4096
CHUNK = 65_536  # rows whose columns are held at once
MOST_HELD = 2**25  # numbers of a term at all contexts that are kept between sets of points
MARGIN = 0.25  # of the data's range beyond which fresh points are taken to its end


@dataclass
class RedrawScores:
    """Scores of the coefficients at β on rows that differ from the fitted ones in their reference points only."""

    problem: AdditiveProblem
    terms: Sequence[BuiltTerm]
    slices: Mapping[str, slice]
    beta: np.ndarray
    fitted: Columns  # the fitted rows, for the range of the tables
    integrated: Integrated | None = None  # of anchored constants, at β
    _tables: dict[str, tuple[float, float, np.ndarray]] = field(default_factory=dict)
    _contexts: dict[str, np.ndarray] = field(default_factory=dict)

    def __call__(self, rows: Rows, theta: np.ndarray | None = None) -> np.ndarray:
        return self.probed(rows, None, theta)[0]

    def probed(
        self, rows: Rows, probe: Probe | None, theta: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """(p,) the score g, and (q,) a probe's, Σ_r ℓ'_r h_r = Σ_t b_t Σ_r ℓ'_r − K g: it needs no row's own h."""
        with hush():  # fresh points may reach beyond the fitted rows
            slopes, _, back = self._read(rows, None, theta)
            v, out = slopes[0], np.zeros(self.beta.size)
            if INTERCEPT in self.slices:
                out[self.slices[INTERCEPT]] = v.sum()
            for at, score in back:
                out[at] = score(v)
            if self.integrated is None and probe is None:
                return out, None
            by_context = np.bincount(rows.context, v, self.problem.obs.n)
            if self.integrated is not None:
                out -= by_context @ self.integrated.mean
            return out, None if probe is None else by_context @ probe.B - probe.K @ out

    def read(self, rows: Rows, probe: Probe, theta: np.ndarray | None = None) -> Read:
        """What a probe needs of rows that are all points."""
        with hush():
            slopes, Kx, _ = self._read(rows, probe, theta)
            return Read(rows.context, slopes, probe.read(rows.context, Kx))

    def by_label(self, rows: Rows, label: np.ndarray, count: int, theta: np.ndarray | None = None) -> np.ndarray:
        """(count, p) the same by label of the row, from the terms' columns themselves, a chunk of rows at a time."""
        from scipy import sparse

        out = np.zeros((count, self.beta.size))
        with hush():
            _, part = self.problem.predictor(rows, theta)
            for begin in range(0, len(rows), CHUNK):
                here = slice(begin, min(begin + CHUNK, len(rows)))
                some = rows.take(here)
                X = self._columns({name: column[here] for name, column in part.columns.items()}, len(some))
                eta = X @ self.beta if part.offset is None else X @ self.beta + part.offset[here]
                if self.integrated is not None:
                    eta, X = eta - self.integrated.log_z[some.context], X - self.integrated.mean[some.context]
                v = np.where(some.data, 0.0, some.likelihood.slopes(eta)[0])
                out += sparse.csr_array((v, (label[here], np.arange(len(v)))), shape=(count, len(v))) @ X
        return out

    def _columns(self, columns: Columns, size: int) -> np.ndarray:
        X = np.zeros((size, self.beta.size))
        if INTERCEPT in self.slices:
            X[:, self.slices[INTERCEPT]] = 1.0
        for term in self.terms:
            X[:, self.slices[term.label]] = term.design({name: columns[name] for name in term.covariates})
        return X

    def _read(
        self, rows: Rows, probe: Probe | None, theta: np.ndarray | None
    ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, list[tuple[slice, Score]]]:
        """ℓ' and −ℓ'' (zero for data), K x (q, N), and for each term how its score follows from ℓ'."""
        _, part = self.problem.predictor(rows, theta)
        C = self.beta[None] if probe is None else np.concatenate([self.beta[None], probe.K])
        Cx = np.zeros((len(C), len(rows)))  # β's first, then K's
        if INTERCEPT in self.slices:
            Cx += C[:, self.slices[INTERCEPT]]
        back = [(self.slices[term.label], self._term(term, part.columns, rows, C, Cx)) for term in self.terms]
        eta = Cx[0] if part.offset is None else Cx[0] + part.offset
        Kx = Cx[1:]
        if self.integrated is not None:
            eta = eta - self.integrated.log_z[rows.context]
            Kx = Kx - (C[1:] @ self.integrated.mean.T)[:, rows.context]
        return points_only(rows.likelihood.slopes(eta), rows.data), Kx, back

    def _term(self, term: BuiltTerm, columns: Columns, rows: Rows, C: np.ndarray, Cx: np.ndarray) -> Score:
        """Adds the term's part of C x, coefficients (1 + q, p), to Cx; and how its score follows from v."""
        C = C[:, self.slices[term.label]]
        if term.breaks is not None and len(term.covariates) == 1:
            low, high, D = self._table(term)
            x = columns[term.covariates[0]]
            gone = np.flatnonzero(np.isnan(x)) if term.partial else np.empty(0, dtype=np.intp)
            u = (np.where(np.isnan(x), low, x) if len(gone) else x) - low
            u = np.mod(u, high - low) if term.period else u
            u = np.clip(u * (CELLS / (high - low)), 0.0, CELLS)
            i = np.minimum(u.astype(np.intp), CELLS - 1)
            w = u - i
            for f, out in zip(C @ D.T, Cx):
                values = f[i] + w * (f[1:] - f[:-1])[i]
                values[gone] = 0.0
                out += values

            def binned(v: np.ndarray) -> np.ndarray:
                if len(gone):
                    v = v.copy()
                    v[gone] = 0.0
                far = v * w
                return D.T @ (np.bincount(i, v - far, CELLS + 1) + np.bincount(i + 1, far, CELLS + 1))

            return binned
        if self._of_context(term):
            first, Z = self._context(term, rows)
            at = rows.context - first
            Cx += (C @ Z.T)[:, at]
            return lambda v: Z.T @ np.bincount(at, v, len(Z))
        X = term.design(columns)
        Cx += C @ X.T
        return lambda v: X.T @ v

    def _table(self, term: BuiltTerm) -> tuple[float, float, np.ndarray]:
        if term.label not in self._tables:
            (name,) = term.covariates
            low, high = float(np.min(self.fitted[name])), float(np.max(self.fitted[name]))
            if term.period:
                assert term.breaks is not None
                low, high = float(term.breaks[0]), float(term.breaks[0]) + term.period
            else:
                low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
            self._tables[term.label] = (low, high, term.design({name: np.linspace(low, high, CELLS + 1)}))
        return self._tables[term.label]

    def _of_context(self, term: BuiltTerm) -> bool:
        chi = self.problem.normaliser.terms
        return self.problem.obs.has_context and chi is not None and set(term.covariates) <= set(chi.columns)

    def _context(self, term: BuiltTerm, rows: Rows) -> tuple[int, np.ndarray]:
        """The first context and the term's columns from there on: at all contexts, or of very many at the rows'."""
        if self.problem.obs.n * term.size > MOST_HELD:
            first, last = int(rows.context.min()), int(rows.context.max())
            return first, term.design(self.problem.normaliser_columns(np.arange(first, last + 1)))
        if term.label not in self._contexts:
            every = np.arange(self.problem.obs.n)
            self._contexts[term.label] = term.design(self.problem.normaliser_columns(every))
        return 0, self._contexts[term.label]
