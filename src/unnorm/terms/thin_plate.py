"""Thin-plate regression splines (Wood 2003, JRSS-B 65(1)): the best k functions for the penalty Σ ∫ (∂^m f)², in 1
to 3 dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, final

import numpy as np

from .._base.lapack import largest_eigenpairs
from .._base.threads import apart
from ..errors import TermError, listing
from .base import spectral_root
from .basis import Basis, Setup, chunked, saved_basis
from .cubic import CubicSpline, natural_spline
from .kinds import BasisKind, Request
from .sample import Sample

_COMPILED = 1 << 16  # distances from which a compiled loop gains more than loading it takes
_HELD = 1 << 19  # distances at a time
_DEFAULT_K = {1: 8, 2: 27, 3: 100}  # on top of the null space, as mgcv: 10, 30 and 110 in all


def default_order(dim: int) -> int:
    """The smallest m with 2m > d + 1, for which f and its first derivatives are continuous (mgcv's default)."""
    return (dim + 1) // 2 + 1


def null_powers(m: int, dim: int) -> list[tuple[int, ...]]:
    """The monomials of degree < m, which the penalty does not see; first covariate fastest, as mgcv orders them."""
    return [p[::-1] for p in product(range(m), repeat=dim) if sum(p) < m]


def _factor(m: int, dim: int) -> float:
    """c of η_md, for even d."""
    constant = 2 ** (2 * m - 1) * math.pi ** (dim / 2) * math.factorial(m - 1) * math.factorial(m - dim // 2)
    return (-1) ** (m + 1 + dim // 2) / constant


def radial(squared: np.ndarray, m: int, dim: int) -> np.ndarray:
    """η_md(r) of r² > 0, in place: c r^{2m−d} log r for even d, c r^{2m−d} for odd (Wood 2003, eq. 6)."""
    power = 2 * m - dim
    if dim % 2 == 0:
        logs = np.log(squared)
        logs *= _factor(m, dim) / 2
        if power > 2:
            np.power(squared, power // 2, out=squared)
        squared *= logs
        return squared
    c = math.gamma(dim / 2 - m) / (2 ** (2 * m) * math.pi ** (dim / 2) * math.factorial(m - 1))
    roots = np.sqrt(squared)
    if power > 1:
        roots *= squared if power == 3 else squared ** ((power - 1) // 2)
    roots *= c
    return roots


def _squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.subtract.outer(a[:, 0], b[:, 0])
    np.square(out, out=out)
    for j in range(1, a.shape[1]):
        step = np.subtract.outer(a[:, j], b[:, j])
        out += np.square(step, out=step)
    return np.maximum(out, 1e-300, out=out)  # r^p log r → 0


def _monomials(x: np.ndarray, powers: list[tuple[int, ...]]) -> np.ndarray:
    out = np.ones((len(x), len(powers)))
    for column, power in enumerate(powers):
        for j, exponent in enumerate(power):
            if exponent:
                out[:, column] *= x[:, j] ** exponent
    return out


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """Functions of two covariates at places where they have been evaluated: at the rows of a small table, which a fit
    asks for again."""

    places: np.ndarray  # (r,) x + iz, in order: NumPy sorts complex numbers by x, then z
    columns: np.ndarray  # (r, q)
    transform: np.ndarray  # T (q, p): the functions are these columns times T

    @staticmethod
    def of(points: np.ndarray, columns: np.ndarray) -> Seen | None:
        """Of distinct points (r, d) in order; None where they are not, or d is not 2."""
        if points.shape[1] != 2 or len(points) == 0:
            return None
        places = np.ascontiguousarray(points).view(np.complex128)[:, 0]
        return Seen(places, columns, np.eye(columns.shape[1])) if np.all(places[1:] > places[:-1]) else None

    def times(self, transform: np.ndarray) -> Seen:
        return Seen(self.places, self.columns, self.transform @ transform)

    def at(self, points: np.ndarray) -> np.ndarray | None:
        """The functions at these points (n, 2); None where one of them is new."""
        if not 0 < len(points) <= len(self.places):
            return None
        wanted = np.ascontiguousarray(points).view(np.complex128)[:, 0]
        last = len(self.places) - 1
        if self.places[min(int(np.searchsorted(self.places, wanted[0])), last)] != wanted[0]:
            return None
        at = np.minimum(np.searchsorted(self.places, wanted), last)
        return self.columns[at] @ self.transform if np.array_equal(self.places[at], wanted) else None


@saved_basis
@dataclass(frozen=True, eq=False)
class ThinPlate(Basis):
    """f(x) = Σ_j η_md(|x − κ_j|) A_j + Σ_l x^{α_l} B_l, x measured from `centre`: radial functions at knots and
    polynomials."""

    kind: ClassVar[str] = "thin-plate"
    m: int
    centre: np.ndarray  # (d,)
    knots: np.ndarray  # (r, d), from the centre
    radials: np.ndarray  # A (r, p)
    polynomials: np.ndarray  # B (M, p)
    seen: Seen | None = field(default=None, repr=False)  # not saved

    def __post_init__(self) -> None:
        self._describe(self.knots.shape[1], self.radials.shape[1])

    @property
    def grid(self) -> tuple[tuple[np.ndarray | None, float | None], ...] | None:
        return ((None, None),) * 2 if self.dim == 2 else None

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, dtype=np.float64).reshape(-1, self.dim)
        with apart():
            return chunked(points, self.size, max(64, (1 << 16) // len(self.knots)), self._rows)

    def known(self, points: np.ndarray) -> np.ndarray | None:
        return None if self.seen is None else self.seen.at(points)

    def first(self, points: np.ndarray) -> np.ndarray:
        """`evaluate` while the basis is set up, in few long steps: other threads set terms up meanwhile, and each step
        may wait for them. Compiled, as is the fit that follows (evaluated later, functions need no compiler)."""
        if self.dim % 2 or points.shape[0] * len(self.knots) < _COMPILED:
            return self.evaluate(points)
        from .basis_kernels import plate_rows

        turned, scale = np.ascontiguousarray(self.knots.T), _factor(self.m, self.dim) / 2

        def rows(points: np.ndarray) -> np.ndarray:
            x = points - self.centre
            out = np.empty((len(x), len(self.knots)))
            plate_rows(x, turned, scale, 2 * self.m - self.dim, out)
            out = out @ self.radials
            out += _monomials(x, null_powers(self.m, self.dim)) @ self.polynomials
            return out

        with apart():
            return chunked(points, self.size, max(64, _HELD // len(self.knots)), rows)

    def _rows(self, points: np.ndarray) -> np.ndarray:
        x = points - self.centre
        out = radial(self._squared(x), self.m, self.dim) @ self.radials
        out += _monomials(x, null_powers(self.m, self.dim)) @ self.polynomials
        return out

    def _squared(self, x: np.ndarray) -> np.ndarray:
        """|x − κ|² as |x|² − 2xᵀκ + |κ|², one product; x and κ are centred, so that rounding is ε|κ|²."""
        left = np.concatenate([x, np.sum(x * x, axis=1, keepdims=True), np.ones((len(x), 1))], axis=1)
        out = left @ self._sides
        return np.maximum(out, 1e-300, out=out)

    @cached_property
    def _sides(self) -> np.ndarray:
        squares = np.sum(self.knots**2, axis=1)
        return np.concatenate([-2.0 * self.knots.T, np.ones((1, len(squares))), squares[None]])

    def times(self, transform: np.ndarray) -> ThinPlate:
        radials, polynomials = self.radials @ transform, self.polynomials @ transform
        seen = None if self.seen is None else self.seen.times(transform)
        return ThinPlate(self.m, self.centre, self.knots, radials, polynomials, seen)

    def scaled(self, factors: np.ndarray) -> ThinPlate:
        seen = None if self.seen is None else replace(self.seen, transform=self.seen.transform * factors)
        radials, polynomials = self.radials * factors, self.polynomials * factors
        return replace(self, radials=radials, polynomials=polynomials, seen=seen)

    def to_dict(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("centre", "knots", "radials", "polynomials")}
        return {"kind": self.kind, "m": self.m, **arrays}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> ThinPlate:
        names = ("centre", "knots", "radials", "polynomials")
        centre, knots, radials, polynomials = (np.array(saved[name], dtype=np.float64) for name in names)
        return cls(int(saved["m"]), centre, knots, radials, polynomials)


def _largest(E: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """D (k, k) and U (n, k): the k eigenpairs of E largest in magnitude, in descending order of their signed values; of
    all n, where nothing is cut, E and I, as in mgcv: the penalty's scale depends on which."""
    n = len(E)
    if k == n:
        return E, np.eye(n)
    # measured, dense and Lanczos, ms: 200 knots, k = 10: 1.9 and 1.1; k = 40: 2.5 and 4.4; 400 knots, k = 40: 8 and 6;
    # 900 knots, k = 120: 61 and 50; k = 200: 85 and 117; 2,000 knots, k = 120: 550 and 420; k = 400: 830 and 1,860
    if n < (8.0 if n < 250 else 5.0 + n / 400) * k:
        with apart():
            values, vectors = (largest_eigenpairs(E, k) if 4 * k < n else None) or np.linalg.eigh(E)
        keep = np.argsort(-np.abs(values), kind="stable")[:k]
    else:
        from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

        product = LinearOperator(E.shape, matvec=E.dot, dtype=E.dtype)  # pyright: ignore[reportCallIssue] - a matrix would be wrapped twice
        try:
            values, vectors = eigsh(
                product, k, which="LM", v0=np.cos(np.arange(n, dtype=np.float64)), tol=0, ncv=min(n, 3 * k // 2 + 10)
            )
        except ArpackError:
            values, vectors = np.linalg.eigh(E)
        keep = np.argsort(-np.abs(values), kind="stable")[:k]
    keep = keep[np.argsort(-values[keep], kind="stable")]
    return np.diag(values[keep]), vectors[:, keep]


def _null_of_rows(A: np.ndarray) -> np.ndarray:
    """Z (k, k − M) with A Z = 0, by reflections that clear each row up to its last entry.

    Any orthonormal Z gives the same functions; the penalty's scale depends on which, and this is the one mgcv has
    (up to a few per cent on exactly symmetric knots, where an entry is zero and its sign is rounding).
    """
    A = A.copy()
    M, k = A.shape
    Q = np.eye(k)
    for i in range(M):
        v = A[i].copy()
        v[k - i :] = 0.0
        v[k - i - 1] += math.copysign(math.sqrt(v @ v), v[k - i - 1])
        v *= math.sqrt(2.0 / (v @ v))
        A -= (A @ v)[:, None] * v
        Q -= (Q @ v)[:, None] * v
    return Q[:, : k - M]


def _reaching(spline: CubicSpline, low: float, high: float) -> CubicSpline:
    """The same functions with break points as far as the data go; beyond the knots they are straight lines."""
    slack = 1e-9 * (high - low)
    ends = [end for end in (low, high) if end < spline.knots[0] - slack or end > spline.knots[-1] + slack]
    if not ends:
        return spline
    breaks = np.sort(np.concatenate([spline.knots, ends]))
    curvatures = np.zeros((len(breaks), spline.size))
    curvatures[np.searchsorted(breaks, spline.knots)] = spline.curvatures
    return CubicSpline(breaks, spline.evaluate(breaks), curvatures)


def _definite_root(S: np.ndarray) -> np.ndarray:
    """E with EᵀE = S: Cholesky's, or by eigenvalues where rounding has taken one below zero."""
    try:
        return np.linalg.cholesky(S).T
    except np.linalg.LinAlgError:
        return spectral_root(S, len(S))


def thin_plate(knots: np.ndarray, share: np.ndarray, sample: Sample, k: int, m: int, what: str) -> Setup:
    """`tp` with k functions: E = U D Uᵀ at the knots cut to its k largest |D|, and δ = U_k Z with Tᵀ U_k Z = 0
    (Wood 2003, section 3.2)."""
    dim = sample.dim
    centre = sample.weights @ sample.points
    at = knots - centre
    powers = null_powers(m, dim)
    M = len(powers)
    if k < M + 1:
        raise TermError(
            f"{what}: k={k} is too small; m={m} in {dim} dimension(s) leaves {M} functions unpenalised, "
            f"so k is at least {M + 1}."
        )
    if len(at) < k:
        raise TermError(f"{what}: k={k} needs at least as many knots or distinct rows; there are {len(at)}. Lower k.")
    eta = radial(_squared_distances(at, at), m, dim)
    T = _monomials(at, powers)
    root = np.sqrt(share)
    D, U = _largest(eta * np.outer(root, root), k)
    Z = _null_of_rows(T.T @ (root[:, None] * U))
    S = Z.T @ D @ Z  # positive definite: E is, on the δ with Tᵀδ = 0
    E = np.concatenate([_definite_root((S + S.T) / 2), np.zeros((k - M, M))], axis=1)
    basis: Basis
    if dim == 1 and m == 2:  # E δ + T α is the natural cubic spline on the knots
        order = np.argsort(knots[:, 0])
        values = np.concatenate([U @ (D @ Z) / root[:, None], T], axis=1)
        basis = _reaching(natural_spline(knots[order, 0], values[order]), sample.lower[0], sample.upper[0])
        columns = basis.evaluate(sample.points)
    else:
        A = np.concatenate([root[:, None] * (U @ Z), np.zeros((len(at), M))], axis=1)
        B = np.concatenate([np.zeros((M, k - M)), np.eye(M)], axis=1)
        plate = ThinPlate(m, centre, at, A, B)
        columns = plate.first(sample.points)
        basis = replace(plate, seen=Seen.of(sample.points, columns) if sample.exact else None)
    rms = np.sqrt(sample.mean(columns**2))  # columns of unit mean square
    return Setup(basis.scaled(1 / rms), columns / rms, (E / rms,), (k - M,), M)


@final
class ThinPlates(BasisKind):
    """`tp`: thin-plate regression splines of one to three covariates, on the same scale."""

    name = "tp"
    covariates = (1, 3)
    takes_m = True

    def setup(self, request: Request) -> Setup:
        what, dim, m = request.label, len(request.names), request.m
        order = default_order(dim) if m is None else m if isinstance(m, int) else m[0]
        if 2 * order <= dim:
            raise TermError(
                f"{what}: the order m of a thin-plate penalty needs 2m > {dim} covariates; got m={order}. "
                f"Leave m out for {default_order(dim)}."
            )
        k = len(null_powers(order, dim)) + _DEFAULT_K[dim] if request.k is None else request.k
        knots, share = self._knots(request, k)
        return thin_plate(knots, share, request.sample, k, order, what)

    def _knots(self, request: Request, k: int) -> tuple[np.ndarray, np.ndarray]:
        what, sample = request.label, request.sample
        given = [request.given_knots(name) for name in request.names]
        there = [values for values in given if values is not None]
        if not there:
            if k > sample.distinct and sample.exact:
                raise TermError(
                    f"{what}: k={k} needs at least as many distinct rows of {listing(request.names)}; "
                    f"there are {sample.distinct}. Lower k."
                )
            return request.knot_rows(k)
        if len(there) < len(given):
            missing = [name for name, values in zip(request.names, given) if values is None]
            raise TermError(f"{what}: knots are given for some covariates but not for {listing(missing)}.")
        sizes = {values.size for values in there}
        if len(sizes) > 1:
            raise TermError(
                f"{what}: its covariates have {sorted(sizes)} knots; give as many for each, one column a covariate."
            )
        knots = np.unique(np.column_stack(there), axis=0)
        return knots, np.ones(len(knots))

    def examples(self) -> tuple[str, ...]:
        return ("s(x)", "s(x, k=6, m=3)", "s(x, z, k=20)", "s(x, z, w, k=30)", "s(x, m=1)")
