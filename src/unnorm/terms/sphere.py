"""`sos`: splines on the sphere, of latitude and longitude in degrees (Wahba 1981; Wendelberger 1981).

f(p) = α + Σ_j δ_j R(p, p_j), Σ_j δ_j = 0, penalty δᵀRδ. For m = 0 the penalty is ∫(Δf)² over the sphere, and
R = {1 − π²/6 + Li₂((1 + z)/2)}/4π with z the cosine of the angle between the two points. For m = 1, …, 4 R is Wahba's
closed form for a penalty near that of order m; m = −1 is Duchon's thin plate in three dimensions, whose null space has
the linear functions too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..errors import TermError
from .basis import PlainBasis, Setup, chunked, saved_basis
from .gaussian_process import knots_of
from .kinds import BasisKind, Request

_DEGREE = np.pi / 180.0


def unit_vectors(points: np.ndarray) -> np.ndarray:
    """(n, 2) latitudes and longitudes in degrees → (n, 3)."""
    latitude, longitude = points[:, 0] * _DEGREE, points[:, 1] * _DEGREE
    round_ = np.cos(latitude)
    return np.column_stack([round_ * np.sin(longitude), round_ * np.cos(longitude), np.sin(latitude)])


def kernel(a: np.ndarray, b: np.ndarray, m: int) -> np.ndarray:
    """R (n, r) between unit vectors a (n, 3) and b (r, 3)."""
    from scipy.special import spence, xlogy

    z = np.clip(a @ b.T, -1.0, 1.0)
    if m == 0:
        return (1.0 - np.pi**2 / 6.0 + spence((1.0 - z) / 2.0)) / (4.0 * np.pi)  # spence(1 − x) = Li₂(x)
    if m == -1:
        chord = np.sqrt(np.maximum(2.0 - 2.0 * z, 0.0))
        return xlogy(chord**2, chord) / (8.0 * np.pi)
    W = np.maximum((1.0 - z) / 2.0, 1e-20)
    C = 2.0 * np.sqrt(W)
    A = np.log1p(2.0 / C)
    if m == 1:
        return (2.0 * A * W - C + 0.5) / (2.0 * np.pi)
    if m == 2:
        q = A * (6.0 * W**2 - 2.0 * W) - 3.0 * C * W + 3.0 * W + 0.5
        return (q / 2.0 - 1.0 / 6.0) / (2.0 * np.pi)
    if m == 3:
        q = (A * (60.0 * W**3 - 36.0 * W**2) + 30.0 * W**2 + C * (8.0 * W - 30.0 * W**2) - 3.0 * W + 1.0) / 3.0
        return (q / 6.0 - 1.0 / 24.0) / (2.0 * np.pi)
    q = A * (70.0 * W**4 - 60.0 * W**3 + 6.0 * W**2) + 35.0 * W**3 * (1.0 - C) + C * 55.0 * W**2 / 3.0
    return ((q - 12.5 * W**2 - W / 3.0 + 0.25) / 24.0 - 1.0 / 120.0) / (2.0 * np.pi)


@saved_basis
@dataclass(frozen=True, eq=False)
class SphereSplines(PlainBasis):
    """R(·, knots) times a matrix; then 1 (and, for m = −1, the three coordinates)."""

    kind: ClassVar[str] = "sphere"
    m: int
    knots: np.ndarray  # (r, 3)
    vectors: np.ndarray  # (r, k)

    @property
    def raw_shape(self) -> tuple[int, int]:
        return 2, self.vectors.shape[1] + (4 if self.m == -1 else 1)

    def raw(self, points: np.ndarray) -> np.ndarray:
        return chunked(points, self.raw_shape[1], max(64, (1 << 19) // len(self.knots)), self._rows)

    def nearest(self, points: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        middle = 0.5 * (lower[1] + upper[1])
        return np.column_stack([points[:, 0], middle + (points[:, 1] - middle + 180.0) % 360.0 - 180.0])

    def _rows(self, points: np.ndarray) -> np.ndarray:
        at = unit_vectors(points)
        return np.concatenate([kernel(at, self.knots, self.m) @ self.vectors, _null(at, self.m)], axis=1)


def _null(at: np.ndarray, m: int) -> np.ndarray:
    return np.concatenate([np.ones((len(at), 1)), at], axis=1) if m == -1 else np.ones((len(at), 1))


@final
class Sphere(BasisKind):
    """`sos`: a smooth function on the sphere, s(latitude, longitude, bs='sos')."""

    name = "sos"
    covariates = (2, 2)
    usage = "s(latitude, longitude, bs='sos'), in degrees"
    takes_m = True
    margin = True

    def checked_m(self, label: str, m: Any) -> int:
        if isinstance(m, bool) or m not in (-1, 0, 1, 2, 3, 4):
            raise TermError(f"{label}: m of bs='sos' is −1, 0, 1, 2, 3 or 4; got {m!r}. Leave it out for 0.")
        return int(m)

    def setup(self, request: Request) -> Setup:
        what, sample = request.label, request.sample
        m = 0 if request.m is None else int(request.m if not isinstance(request.m, tuple) else request.m[0])
        k = 50 if request.k is None else request.k
        if np.abs(sample.points[:, 0]).max() > 90.0:
            raise TermError(
                f"{what}: the first covariate is the latitude in degrees, from −90 to 90; {request.names[0]!r} is not. "
                f"Write s(latitude, longitude, bs='sos')."
            )
        knots = unit_vectors(knots_of(request, k))
        null = 4 if m == -1 else 1
        if k < null + 2 or len(knots) < k:
            raise TermError(
                f"{what}: k={k} must lie between {null + 2} and the number of distinct rows or knots, {len(knots)}."
            )
        values, vectors = np.linalg.eigh(kernel(knots, knots, m))
        leading = np.argsort(-np.abs(values))[:k]
        D, U = values[leading], vectors[:, leading]
        Q = np.linalg.qr(U.T @ _null(knots, m), mode="complete")[0]
        Z = Q[:, null:]  # Tᵀ U Z = 0
        S = Z.T @ (D[:, None] * Z)
        d, V = np.linalg.eigh((S + S.T) / 2)
        if d[0] <= 0:
            raise TermError(f"{what}: k={k} is more than these knots can tell apart. Lower k.")
        basis = SphereSplines(m, knots, np.ascontiguousarray(U @ Z))
        E = np.concatenate([np.sqrt(d)[:, None] * V.T, np.zeros((k - null, null))], axis=1)
        columns = basis.evaluate(sample.points)
        # columns of unit variance, but for the constant: REML depends on the scale of what is not penalised
        spread = np.sqrt(sample.mean((columns - sample.mean(columns)) ** 2) / (1.0 - request.unit))
        spread[k - null] = 1.0
        return Setup(basis.scaled(1 / spread), columns / spread, (E / spread,), (k - null,), null)

    def examples(self) -> tuple[str, ...]:
        return ("s(lat, lon, bs='sos', k=30)", "s(lat, lon, bs='sos', k=20, m=2)", "s(lat, lon, bs='sos', k=20, m=-1)")
