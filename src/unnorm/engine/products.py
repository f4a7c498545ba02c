"""Terms of two or three covariates as products of cubic B-splines: X = B C, 4^d non-zeros a row.

Tensor products of splines are exactly that, on their margins' breaks. Thin plates are not piecewise cubic: C
interpolates them on an even grid, and the distance from them is measured between its points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from .._base.threads import run_tasks
from .splines import Margin, margin

SURFACE_ERROR = 2e-3  # rms error of a column, of its rms, up to which a surface is replaced by its interpolant
_CELLS = 16  # at least, along each covariate
_TIMES = 2  # grids that are tried, each half as fine again
_EXACT = 24  # cells along a margin up to which its own breaks are used
_CHECKS = 1_000  # points at which the error is measured
_PAIRS = 4_000_000  # entries of a table of a product against the other columns
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

    def values(self, u: np.ndarray, begin: int, end: int, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """V and the first function of rows begin…end−1."""
        from .product_kernels import product_values

        value, first = np.empty((end - begin, len(self.steps))), np.empty(end - begin, np.int64)
        cell0, poly, sizes = self.layout
        product_values(u, begin, end, cell0, poly, sizes, by, value, first)
        return value, first

    def columns(self, points: Sequence[np.ndarray]) -> np.ndarray:
        """(n, p) at points within the margins' ranges."""
        from .kernels import locate
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
    grid: Grid, box: Sequence[tuple[float, float]], functions: Callable[[np.ndarray], np.ndarray], size: int, most: int
) -> ProductBasis | None:
    """The product form of the `size` columns functions(points), points (r, d); None where it would not be within
    `SURFACE_ERROR`, or needs more than `most` raw functions."""
    cells = max(_CELLS, round(4 * size ** (1 / len(grid))))
    fitted: ProductBasis | None = None
    for _ in range(_TIMES):
        breaks = [_breaks(own, period, ends, cells) for (own, period), ends in zip(grid, box)]
        if prod(b.size + 2 for b in breaks) > most:
            return None
        margins = tuple(margin(b, period) for b, (_, period) in zip(breaks, grid))
        fitted = _interpolate(margins, functions)
        if fitted.error <= SURFACE_ERROR:
            return fitted
        cells = (3 * cells) // 2
    return None


def _breaks(own: np.ndarray | None, period: float | None, ends: tuple[float, float], cells: int) -> np.ndarray:
    """A margin's own breaks, as far as the data go, or even ones."""
    if own is None:
        return np.linspace(*ends, cells + 1)
    own = np.asarray(own, dtype=np.float64)
    if not period:
        low, high = ends
        own = np.concatenate([[low] if low < own[0] else [], own, [high] if high > own[-1] else []])
    return own if own.size - 1 <= _EXACT else np.linspace(own[0], own[-1], cells + 1)


def _interpolate(margins: tuple[Margin, ...], functions: Callable[[np.ndarray], np.ndarray]) -> ProductBasis:
    from .kernels import solve_sites

    sites = np.stack([axis.ravel() for axis in np.meshgrid(*(one.sites for one in margins), indexing="ij")], axis=1)
    C = functions(sites)
    C = C.reshape(*(one.sites.size for one in margins), -1)
    for axis, one in enumerate(margins):
        turned = np.moveaxis(C, axis, 0)
        flat = np.ascontiguousarray(turned.reshape(len(turned), -1))
        C = np.moveaxis(solve_sites(one.site_cells, one.site_values, flat).reshape(turned.shape), 0, axis)
    basis = ProductBasis(margins, np.ascontiguousarray(C.reshape(len(sites), -1)), 0.0)
    low = np.array([one.breaks[0] for one in margins])
    high = np.array([one.breaks[-1] for one in margins])
    checks = low + (high - low) * np.random.default_rng(0).random((_CHECKS, len(margins)))
    exact = functions(checks)
    apart = basis.columns(list(checks.T)) - exact
    scale = np.sqrt(np.mean(exact**2, axis=0))
    error = float(np.max(np.sqrt(np.mean(apart**2, axis=0)) / np.where(scale > 0, scale, 1.0)))
    return ProductBasis(margins, basis.coefficients, error)


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

    def predict(self, beta: np.ndarray, begin: int, end: int) -> np.ndarray:
        """Its part of η on rows begin…end−1; β in its own columns."""
        from .product_kernels import product_dot

        out = np.zeros((end - begin, 1))
        product_dot(*self.basis.values(self.u, begin, end, self.by), self.basis.steps, self._raw(beta), out)
        return out[:, 0]

    def _raw(self, beta: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray((self.basis.coefficients @ beta)[:, None])

    # long: the pieces of one pass
    def add(
        self, begin: int, end: int, others: tuple, kept: np.ndarray,
        score: np.ndarray, band: np.ndarray, table: np.ndarray,
    ) -> None:  # fmt: skip
        """Rows begin…end−1, with kept (rows, 2) = (dℓ/dη, w), to score, band and table."""
        from .product_kernels import by_cell, product_cross, product_gram

        value, first = self.basis.values(self.u, begin, end, self.by)
        order = by_cell(first, len(score))
        steps = self.basis.steps
        product_gram(value, first, order, steps, self.basis.band[1], kept, band, score)
        product_cross(value, first, steps, *others, kept, table)

    def gather(
        self, score: np.ndarray, band: np.ndarray, table: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same in its own columns: (p,), (p, p), (p, other columns)."""
        from .product_kernels import band_times

        C = self.basis.coefficients
        half = np.zeros(C.shape)
        band_times(band, self.basis.band[0], C, half)
        cross = C.T @ half
        return C.T @ score, cross + cross.T, C.T @ table

    def lever(self, own: np.ndarray, across: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """P in raw functions: the band of C P Cᵀ, pairs once, and 2 C P against the other columns."""
        from .product_kernels import band_of

        C, offsets = self.basis.coefficients, self.basis.band[0]
        band = np.zeros((len(C), offsets.size))

        def work(a: int, b: int) -> None:
            band_of(C[a:b] @ own, C, offsets, a, band[a:b])

        cuts = np.linspace(0, len(C), max(threads, 1) + 1).astype(int)
        run_tasks(work, [(int(a), int(b)) for a, b in zip(cuts[:-1], cuts[1:])], threads)
        return band, np.ascontiguousarray(2.0 * (C @ across))

    def leverage(self, begin: int, end: int, others: tuple, band: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Its part of h on rows begin…end−1."""
        from .product_kernels import by_cell, product_across, product_leverage

        value, first = self.basis.values(self.u, begin, end, self.by)
        out = np.zeros(end - begin)
        product_leverage(value, first, by_cell(first, len(band)), self.basis.steps, self.basis.band[1], band, out)
        product_across(value, first, self.basis.steps, *others, table, out)
        return out

    def sums(self, v: np.ndarray, label: np.ndarray, count: int, begin: int, end: int) -> np.ndarray:
        """(count, p) Σ v_r x_r by label, rows begin…end−1."""
        from .product_kernels import product_sums

        totals = np.zeros((count, len(self.basis.coefficients)))
        product_sums(*self.basis.values(self.u, begin, end, self.by), self.basis.steps, v, label, totals)
        return totals @ self.basis.coefficients


def worth(basis: ProductBasis, rows: int, width: int) -> bool:
    """Whether the product form is cheaper than dense columns, and its table against the others small enough."""
    raw, p = basis.coefficients.shape
    return raw * width <= _PAIRS and 4 ** len(basis.margins) < p and raw < rows
