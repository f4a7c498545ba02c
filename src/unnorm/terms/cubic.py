"""Cubic splines of one covariate as values and second derivatives at break points; `cr` and `cc` bases on them
(Wood 2017, section 5.3)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..errors import TermError
from .basis import Basis, Setup, chunked, saved_basis
from .kinds import BasisKind, Request, increasing
from .sample import Sample


@saved_basis
@dataclass(frozen=True, eq=False)
class CubicSpline(Basis):
    """p cubic splines, C²: row j of `values` and `curvatures` holds the p functions and their f″ at knot j.

    On [x_j, x_{j+1}] of length h, with a = (x_{j+1} − x)/h and b = 1 − a,

        f = a f_j + b f_{j+1} + (a³ − a) h²/6 f″_j + (b³ − b) h²/6 f″_{j+1}.

    Outside, the function is a straight line, or wraps round if the spline is periodic.
    """

    kind: ClassVar[str] = "cubic"
    knots: np.ndarray
    values: np.ndarray
    curvatures: np.ndarray
    cyclic: bool = False

    def __post_init__(self) -> None:
        self._describe(
            1, self.values.shape[1], self.knots, float(self.knots[-1] - self.knots[0]) if self.cyclic else None
        )

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        x = np.asarray(points, dtype=np.float64).reshape(-1)
        return chunked(x, self.size, max(256, (1 << 19) // self.size), self._rows)

    def _rows(self, x: np.ndarray) -> np.ndarray:
        low, high = self.knots[0], self.knots[-1]
        if "numba" in sys.modules:  # of a fit; functions that are evaluated alone need no compiler for the same numbers
            from .basis_kernels import spline_rows

            out, period = np.empty((len(x), self.size)), self.period or 0.0
            given = (x, self.knots, self.values, self.curvatures)
            at, *own = (np.require(array, requirements=("C", "W")) for array in given)
            beyond = spline_rows(at, period, *own, out)
            return out if self.cyclic or not beyond else self._straight(x, out)
        if self.cyclic:
            x = low + np.mod(x - low, high - low)
        inside = np.minimum(np.maximum(x, low), high)
        j = self.knots[1:-1].searchsorted(inside, side="right")
        start = self.knots[j]
        h = self.knots[j + 1] - start
        weights = np.empty((len(x), 4))
        a, b = weights[:, 0], weights[:, 1]
        np.divide(inside - start, h, out=b)
        np.subtract(1.0, b, out=a)
        h *= h / 6.0
        np.multiply((a * a - 1.0) * a, h, out=weights[:, 2])
        np.multiply((b * b - 1.0) * b, h, out=weights[:, 3])
        r = len(self.knots)
        at = j.astype(np.int32)[:, None] + np.array([0, 1, r, r + 1], np.int32)
        starts = np.arange(0, 4 * len(x) + 1, 4, dtype=np.int32)
        from scipy.sparse import csr_array

        rows = csr_array((weights.ravel(), at.ravel(), starts), shape=(len(x), 2 * r))
        out = rows @ np.concatenate([self.values, self.curvatures])
        return out if np.array_equal(x, inside) else self._straight(x, out)

    def _straight(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Values at the nearest knot, made those of straight lines beyond the knots."""
        low, high = self.knots[0], self.knots[-1]
        inside = np.minimum(np.maximum(x, low), high)
        outside = np.flatnonzero(x != inside)
        slope = np.where((x[outside] < low)[:, None], self.slopes(0), self.slopes(-1))
        out[outside] += (x - inside)[outside, None] * slope
        return out

    def slopes(self, end: int) -> np.ndarray:
        """f′ at the first (0) or last (−1) break."""
        j = 0 if end == 0 else len(self.knots) - 2
        h = self.knots[j + 1] - self.knots[j]
        chord = (self.values[j + 1] - self.values[j]) / h
        here, there = (j, j + 1) if end == 0 else (j + 1, j)
        bend = h * (self.curvatures[here] / 3 + self.curvatures[there] / 6)
        return chord - bend if end == 0 else chord + bend

    def times(self, transform: np.ndarray) -> CubicSpline:
        return CubicSpline(self.knots, self.values @ transform, self.curvatures @ transform, self.cyclic)

    def scaled(self, factors: np.ndarray) -> CubicSpline:
        return CubicSpline(self.knots, self.values * factors, self.curvatures * factors, self.cyclic)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "knots": self.knots.tolist(),
            "values": self.values.tolist(),
            "curvatures": self.curvatures.tolist(),
            "cyclic": self.cyclic,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> CubicSpline:
        return cls(
            np.array(saved["knots"], dtype=np.float64),
            np.array(saved["values"], dtype=np.float64),
            np.array(saved["curvatures"], dtype=np.float64),
            bool(saved["cyclic"]),
        )


def natural_curvatures(knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """f″ at the knots of the natural cubic splines through `values`: B f″ = D f with B tridiagonal, zero at both
    ends."""
    from scipy.linalg import lapack

    routines: Any = lapack
    h = knots[1:] - knots[:-1]
    curvatures = np.zeros_like(values, dtype=np.float64)
    if len(knots) > 2:
        slopes = (values[1:] - values[:-1]) / h[:, None]
        diagonal, bends = (h[:-1] + h[1:]) / 3, slopes[1:] - slopes[:-1]
        curvatures[1:-1] = bends / diagonal if len(knots) == 3 else routines.dptsv(diagonal, h[1:-1] / 6, bends)[2]
    return curvatures


def natural_spline(knots: np.ndarray, values: np.ndarray) -> CubicSpline:
    """The natural cubic splines that take `values` (r, p) at the knots (r,)."""
    return CubicSpline(knots, np.asarray(values, dtype=np.float64), natural_curvatures(knots, values))


def cubic_regression(knots: np.ndarray, sample: Sample) -> Setup:
    """`cr`: the coefficients are values at the knots; βᵀSβ = ∫f″², S = DᵀB⁻¹D."""
    k = len(knots)
    basis = natural_spline(knots, np.eye(k))
    return Setup(basis, basis.evaluate(sample.points), (_bending_root(knots),), (k - 2,), 2, by_value=True)


def cyclic_cubic(knots: np.ndarray, sample: Sample) -> Setup:
    """`cc`: values at all but the last knot, which is the first again; f, f′, f″ agree there."""
    h = np.diff(knots)
    p = len(h)
    B, D = np.zeros((p, p)), np.zeros((p, p))
    for j in range(p):  # continuity of f′ at knot j, whose neighbours are j − 1 and j + 1 modulo p
        before, after = h[j - 1], h[j]
        B[j, j] += (before + after) / 3
        B[j, (j + 1) % p] += after / 6
        B[j, j - 1] += before / 6
        D[j, j] -= 1 / before + 1 / after
        D[j, (j + 1) % p] += 1 / after
        D[j, j - 1] += 1 / before
    curvatures = np.linalg.solve(B, D)
    E = np.linalg.solve(np.linalg.cholesky(B), D)  # S = DᵀB⁻¹D
    round_trip = np.arange(p + 1) % p
    basis = CubicSpline(knots, np.eye(p)[round_trip], curvatures[round_trip], cyclic=True)
    return Setup(basis, basis.evaluate(sample.points), (E,), (p - 1,), 1, by_value=True)


def _bending_root(knots: np.ndarray) -> np.ndarray:
    """E (k − 2, k) with ∫f″² = |E f|² of the natural spline through f at the knots: f″ is piecewise linear, so the
    integral is (D f)ᵀB⁻¹(D f) with B = LLᵀ its Gram matrix and D f the jumps of f's chords; E = L⁻¹D."""
    from scipy.linalg import cholesky_banded, solve_banded

    h = np.diff(knots)
    jumps = np.diff(np.diff(np.eye(len(knots)), axis=0) / h[:, None], axis=0)
    band = np.zeros((2, len(knots) - 2))
    band[0] = (h[:-1] + h[1:]) / 3
    band[1, :-1] = h[1:-1] / 6
    return solve_banded((1, 0), cholesky_banded(band, lower=True), jumps)


@final
class CubicRegression(BasisKind):
    """`cr`: natural cubic splines by their values at k knots."""

    name = "cr"

    def setup(self, request: Request) -> Setup:
        what, k = request.label, 10 if request.k is None else request.k
        if k < 3:
            raise TermError(f"{what}: k={k} is too small for bs='cr'; straight lines take 2, so k is at least 3.")
        knots = request.given_knots(request.name)
        if knots is None:
            knots = request.quantile_knots(k, None)
        return cubic_regression(increasing(knots, k, request.name, what), request.sample)

    def examples(self) -> tuple[str, ...]:
        return ("s(x, bs='cr')", "s(x, bs='cr', k=3)", "te(x, z, bs='cr', k=4)")


@final
class CyclicCubic(BasisKind):
    """`cc`: cubic splines that close a circle."""

    name = "cc"
    cyclic = True

    def setup(self, request: Request) -> Setup:
        what, k = request.label, 10 if request.k is None else request.k
        if k < 4:
            raise TermError(f"{what}: k={k} is too small for bs='cc'; it is at least 4.")
        knots = request.given_knots(request.name)
        ends = request.period_ends(request.name) if knots is None else None
        if ends is not None and not request.even(request.name):
            knots, ends = ends, None
        if ends is not None:  # even steps round a declared period: reference and quadrature rows do not move them
            knots = np.linspace(ends[0], ends[1], k)
        elif knots is None:
            knots = request.quantile_knots(k, None)
        elif knots.size == 2:  # two end knots; the rest at quantiles, as mgcv
            knots = request.quantile_knots(k, (float(min(knots)), float(max(knots))))
        return cyclic_cubic(increasing(knots, k, request.name, what, "two ends, or "), request.sample)

    def examples(self) -> tuple[str, ...]:
        return ("s(angle, bs='cc')", "s(angle, bs='cc', k=4)", "te(x, angle, bs=('cr', 'cc'), k=(4, 6))")
