"""Terms of two or three covariates as products of cubic B-splines: X = B C, 4^d non-zeros a row.

Tensor products of splines are exactly that, on their margins' breaks. Thin plates are not piecewise cubic: C
interpolates them on a grid, finer where the rows are, and the distance from them is measured at rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from .._base.threads import run_tasks
from .splines import Margin, margin

# The rms error of a column, of its rms, up to which a surface is replaced by its interpolant. Measured at 50,000 rows,
# s(x, z, k=200): an error of .003 moves the linear predictor by .0003 standard errors (rms; edf 63), by .002 where all
# 200 functions are needed (edf 170), REML by .001 and .014.
SURFACE_ERROR = 4e-3
_CELLS = 16  # at least, along each covariate
_FINER = 1.5  # the second grid
_HOPELESS = 5.0  # times SURFACE_ERROR, which a second grid will not mend
_EXACT = 24  # cells along a margin up to which its own breaks are used
_CHECKS = 1_000  # rows at which the error is measured
_SAMPLE = 4_096  # rows by which breaks are placed
_PAIRS = 4_000_000  # entries of a table of a product against the other columns
_CONTEXT = 11  # which of the kernels' arguments has the columns of the contexts
Values = tuple[np.ndarray, np.ndarray]  # V and the first function of some rows
Grid = Sequence[tuple[np.ndarray | None, float | None]]


@dataclass(frozen=True)
class ProductBasis:
    """Margins with their B-splines, and C (Π sizes, p), the last margin fastest."""

    margins: tuple[Margin, ...]
    coefficients: np.ndarray  # C
    error: float  # largest of the columns' rms errors, relative

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(one.breaks.size + 2 for one in self.margins)

    @cached_property
    def layout(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(first cells, cubics, sizes) of the margins, one after the other."""
        cells = [one.breaks.size - 1 for one in self.margins]
        first = np.concatenate([[0], np.cumsum(cells)[:-1]]).astype(np.int64)
        return first, np.concatenate([one.poly.ravel() for one in self.margins]), np.array(self.sizes, np.int64)

    @cached_property
    def steps(self) -> np.ndarray:
        """The raw indices of a row's functions, from the first."""
        strides = [prod(self.sizes[j + 1 :]) for j in range(len(self.sizes))]
        return np.array([np.dot(at, strides) for at in product(range(4), repeat=len(strides))], np.int64)

    @cached_property
    def band(self) -> tuple[np.ndarray, np.ndarray]:
        """(offsets of the band's columns, which of them the pair a ≤ b of a row's functions has)."""
        apart = self.steps[None, :] - self.steps[:, None]
        offsets, which = np.unique(apart[np.triu_indices(len(apart))], return_inverse=True)
        near = np.zeros(apart.shape, np.int64)
        near[np.triu_indices(len(apart))] = which.ravel()
        return offsets, near

    def turned(self, rotation: np.ndarray) -> ProductBasis:
        return ProductBasis(self.margins, np.ascontiguousarray(self.coefficients @ rotation), self.error)

    def values(self, u: np.ndarray, begin: int, end: int, by: np.ndarray) -> Values:
        """V and the first function of rows begin…end−1."""
        from .product_kernels import product_values

        value, first = np.empty((end - begin, len(self.steps))), np.empty(end - begin, np.int64)
        cell0, poly, sizes = self.layout
        product_values(u, begin, end, cell0, poly, sizes, by, value, first)
        return value, first

    def columns(self, points: Sequence[np.ndarray]) -> np.ndarray:
        """(n, p) at points within the margins' ranges."""
        from .arrange_kernels import locate
        from .product_kernels import product_dot

        n = len(points[0])
        u, out = np.empty((n, len(points))), np.zeros((n, self.coefficients.shape[1]))
        for j, (one, x) in enumerate(zip(self.margins, points)):
            x = np.require(x, np.float64, ("C", "W"))
            locate(x, np.empty(0, np.int32), one.breaks, one.period, u, j)
        for a in range(0, n, 4096):
            value, first = self.values(u, a, min(a + 4096, n), np.empty(0))
            product_dot(value, first, self.steps, self.coefficients, out[a : a + 4096])
        return out


def product_basis(
    grid: Grid, rows: Sequence[np.ndarray], functions: Callable[[np.ndarray], np.ndarray], size: int, most: int
) -> ProductBasis | None:
    """The product form of the `size` columns functions(points), points (r, d), on the rows' range; None where it would
    not be within `SURFACE_ERROR` of them at these rows, or needs more than `most` raw functions."""
    cells = max(_CELLS, round(5 * size ** (1 / len(grid))))
    if all(own is None for own, _ in grid) and (cells + 3) ** len(grid) > most:
        return None
    if any(np.ptp(x) == 0.0 for x in rows):  # one value, as in a block of rows that share a context
        return None
    checks = np.random.default_rng(0).integers(0, len(rows[0]), _CHECKS)
    at = np.stack([np.asarray(x, dtype=np.float64)[checks] for x in rows], axis=1)
    exact: np.ndarray | None = None
    for _ in range(2):
        breaks = [_breaks(own, period, x, cells) for (own, period), x in zip(grid, rows)]
        if prod(b.size + 2 for b in breaks) > most:
            return None
        exact = functions(at) if exact is None else exact
        margins = tuple(margin(b, period) for b, (_, period) in zip(breaks, grid))
        basis = ProductBasis(margins, _interpolated(margins, functions), 0.0)
        apart, scale = basis.columns(list(at.T)) - exact, np.sqrt(np.mean(exact**2, axis=0))
        error = float(np.max(np.sqrt(np.mean(apart**2, axis=0)) / np.where(scale > 0, scale, 1.0)))
        if error <= SURFACE_ERROR:
            return ProductBasis(margins, basis.coefficients, error)
        if error > _HOPELESS * SURFACE_ERROR:
            return None
        cells = round(_FINER * cells)
    return None


def _breaks(own: np.ndarray | None, period: float | None, x: np.ndarray, cells: int) -> np.ndarray:
    """A margin's own breaks, as far as the rows go; or so many cells, as a rule between even and equally full."""
    low, high = float(x.min()), float(x.max())
    if own is not None:
        own = np.asarray(own, dtype=np.float64)
        if not period:
            own = np.concatenate([[low] if low < own[0] else [], own, [high] if high > own[-1] else []])
        return own if own.size - 1 <= _EXACT else np.linspace(own[0], own[-1], cells + 1)
    some = np.unique(np.concatenate([[low, high], x[:: max(1, x.size // _SAMPLE)]]))
    place = 0.5 * (some - low) / (high - low) + 0.5 * np.linspace(0.0, 1.0, some.size)
    return np.interp(np.linspace(0.0, 1.0, cells + 1), place, some)


def _interpolated(margins: tuple[Margin, ...], functions: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """C: the functions at the products of the margins' sites, solved margin by margin."""
    from .matrix_kernels import solve_sites

    sites = np.stack([axis.ravel() for axis in np.meshgrid(*(one.sites for one in margins), indexing="ij")], axis=1)
    C = functions(sites).reshape(*(one.sites.size for one in margins), -1)
    for axis, one in enumerate(margins):
        turned = np.moveaxis(C, axis, 0)
        flat = np.ascontiguousarray(turned.reshape(len(turned), -1))
        C = np.moveaxis(solve_sites(one.site_cells, one.site_values, flat).reshape(turned.shape), 0, axis)
    return np.ascontiguousarray(C.reshape(len(sites), -1))


@dataclass(frozen=True)
class Product:
    """One term's rows in product form, on a segment; its coefficients are those of dense columns."""

    basis: ProductBasis
    u: np.ndarray  # (n, d) cell + t
    by: np.ndarray  # (n,) or empty

    @property
    def size(self) -> int:
        return self.basis.coefficients.shape[1]

    @property
    def bytes(self) -> int:
        return self.u.nbytes + self.by.nbytes

    def empty(self, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score, band and table of the other columns, all zero."""
        raw = len(self.basis.coefficients)
        return np.zeros(raw), np.zeros((raw, self.basis.band[0].size)), np.zeros((raw, width))

    def take(self, rows: np.ndarray) -> Product:
        return Product(self.basis, self.u[rows], self.by[rows] if self.by.size else self.by)

    def at(self, begin: int, end: int) -> Values:
        """The non-zeros of rows begin…end−1, which the other methods take."""
        return self.basis.values(self.u, begin, end, self.by)

    def predict(self, beta: np.ndarray, values: Values) -> np.ndarray:
        """Its part of η; β in its own columns."""
        from .product_kernels import product_predict

        out = np.empty(len(values[1]))
        product_predict(*values, self.basis.steps, self.basis.coefficients @ beta, out)
        return out

    def add(self, values: Values, others: tuple[Any, ...], kept: np.ndarray, sums: tuple[np.ndarray, ...]) -> None:
        """Rows with kept (rows, 2) = (dℓ/dη, w) to `sums`: score, band and table."""
        from . import product_kernels as kernels

        product_cross: Any = kernels.product_cross
        score, band, table = sums
        steps = self.basis.steps
        order = kernels.by_cell(values[1], len(score))
        alone = table.shape[1] == 1 and others[_CONTEXT].shape[1] == 1  # one column beside it: the intercept
        side = kept[:, 1] * np.repeat(*_of_runs(others)) if alone else np.empty(0)
        kernels.product_gram(*values, order, steps, self.basis.band[1], kept, side, band, score, table.ravel())
        if not alone:
            product_cross(*values, steps, *others, kept, table)

    def gather(
        self, score: np.ndarray, band: np.ndarray, table: np.ndarray, threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same in its own columns: (p,), (p, p), (p, other columns)."""
        from .product_kernels import band_times

        C = self.basis.coefficients

        def work(a: int, b: int) -> np.ndarray:
            half = np.zeros((b - a, C.shape[1]))
            band_times(band[a:b], self.basis.band[0], C, a, half)
            return C[a:b].T @ half

        cross = np.sum(run_tasks(work, _cuts(len(C), threads), threads), axis=0)
        return C.T @ score, cross + cross.T, C.T @ table

    def lever(self, own: np.ndarray, across: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """P in raw functions: the band of C P Cᵀ, pairs once, and 2 C P against the other columns."""
        from .product_kernels import band_of

        C, offsets = self.basis.coefficients, self.basis.band[0]
        band = np.zeros((len(C), offsets.size))

        def work(a: int, b: int) -> None:
            band_of(C[a:b] @ own, C, offsets, a, band[a:b])

        run_tasks(work, _cuts(len(C), threads), threads)
        return band, np.ascontiguousarray(2.0 * (C @ across))

    def leverage(self, values: Values, others: tuple[Any, ...], band: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Its part of h."""
        from . import product_kernels as kernels

        product_across: Any = kernels.product_across
        out, steps = np.zeros(len(values[1])), self.basis.steps
        order = kernels.by_cell(values[1], len(band))
        kernels.product_leverage(*values, order, steps, self.basis.band[1], band, out)
        product_across(*values, steps, *others, table, out)
        return out

    def sums(self, values: Values, v: np.ndarray, label: np.ndarray, count: int) -> np.ndarray:
        """(count, p) Σ v_r x_r by label."""
        from .product_kernels import product_sums

        totals = np.zeros((count, len(self.basis.coefficients)))
        product_sums(*values, self.basis.steps, v, label, totals)
        return totals @ self.basis.coefficients


def _of_runs(others: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The context's first column by run, and each run's rows."""
    ptr, begin, end = others[:3]
    return others[_CONTEXT][begin:end, 0], np.diff(ptr[begin : end + 1])


def _cuts(size: int, parts: int) -> list[tuple[int, int]]:
    """0…size in so many stretches."""
    return list(pairwise(np.linspace(0, size, max(parts, 1) + 1).astype(int).tolist()))


def worth(basis: ProductBasis, rows: int, width: int) -> bool:
    """Whether the product form is cheaper than dense columns, and its table against the others small enough."""
    raw, p = basis.coefficients.shape
    return raw * width <= _PAIRS and 4 ** len(basis.margins) < p and raw < rows
