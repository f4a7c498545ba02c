"""`gp`: Gaussian processes with a given correlation function, cut to their leading eigenvectors (Kammann & Wand 2003).

f(x) = α₀ + αᵀx + Σ_j δ_j c(|x − x_j|/ρ), penalty δᵀCδ with C the correlations of the knots; C = U D Uᵀ is cut to its
largest eigenvalues, and δ = U_k β has the penalty βᵀD_kβ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..errors import TermError, listing
from .basis import PlainBasis, Setup, chunked, saved_basis
from .kinds import BasisKind, Request

_DEFAULT_K = {1: 10, 2: 30, 3: 100}  # beside the unpenalised functions
SPHERICAL, POWER, MATERN_3, MATERN_5, MATERN_7 = 1, 2, 3, 4, 5


def correlation(r: np.ndarray, kind: int, power: float) -> np.ndarray:
    """c(r): spherical, exp(−r^κ), or Matérn with ν = 3/2, 5/2, 7/2."""
    if kind == SPHERICAL:
        return np.where(r <= 1.0, 1.0 - 1.5 * r + 0.5 * r**3, 0.0)
    if kind == POWER:
        return np.exp(-(r**power))
    factor = {
        MATERN_3: 1.0 + r,
        MATERN_5: 1.0 + r * (1.0 + r / 3.0),
        MATERN_7: 1.0 + r * (1.0 + r * (0.4 + r / 15.0)),
    }[kind]
    return factor * np.exp(-r)


@saved_basis
@dataclass(frozen=True, eq=False)
class GaussianProcess(PlainBasis):
    """Correlations with the knots times the leading eigenvectors; then 1, and x where the process is not stationary."""

    kind: ClassVar[str] = "gaussian-process"
    form: int  # which correlation function
    power: float
    rho: float
    stationary: bool
    centre: np.ndarray  # (d,)
    knots: np.ndarray  # (r, d), less the centre
    vectors: np.ndarray  # (r, k)

    @property
    def raw_shape(self) -> tuple[int, int]:
        d = self.knots.shape[1]
        return d, self.vectors.shape[1] + 1 + (0 if self.stationary else d)

    @property
    def unit(self) -> float:
        """Of the linear functions: the data's, as mgcv's score has it, unless these would dwarf the correlations."""
        return 1.0 if 1e-6 <= self.rho <= 1e6 else self.rho

    def raw(self, points: np.ndarray) -> np.ndarray:
        return chunked(points, self.raw_shape[1], max(64, (1 << 20) // len(self.knots)), self._rows)

    def _rows(self, points: np.ndarray) -> np.ndarray:
        from scipy.spatial.distance import cdist

        at = points - self.centre
        near = correlation(cdist(at, self.knots) / self.rho, self.form, self.power) @ self.vectors
        return np.concatenate([near, np.ones((len(at), 1)), *([] if self.stationary else [at / self.unit])], axis=1)


def knots_of(request: Request, k: int) -> np.ndarray:
    """Knots (r, d): the given ones, or rows of the data."""
    given = [request.given_knots(name) for name in request.names]
    there = [values for values in given if values is not None]
    if not there:
        return request.knot_rows(k)[0]
    if len(there) < len(given) or len({values.size for values in there}) > 1:
        raise TermError(
            f"{request.label}: knots are one list of equal length for each of {listing(request.names)}, one row a knot."
        )
    return np.unique(np.column_stack(there), axis=0)


@final
class GaussianProcesses(BasisKind):
    """`gp`: a Gaussian process of one to three covariates; m = (correlation, range, power)."""

    name = "gp"
    covariates = (1, 3)
    takes_m = True

    def checked_m(self, label: str, m: Any) -> tuple[float, ...]:
        values = tuple(m) if isinstance(m, list | tuple | np.ndarray) else (m,)
        plain = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values)
        if not plain or not 1 <= len(values) <= 3 or abs(values[0]) not in (1, 2, 3, 4, 5):
            raise TermError(
                f"{label}: m of bs='gp' is the correlation 1 to 5 (spherical, power exponential, Matérn 3/2, 5/2, 7/2; "
                f"negative: stationary, without a linear trend), then its range and its power; got {m!r}."
            )
        if len(values) > 2 and not 0 < values[2] <= 2:
            raise TermError(f"{label}: the power in m of bs='gp' lies in (0, 2]; got {values[2]!r}.")
        return tuple(float(v) for v in values)

    def setup(self, request: Request) -> Setup:
        from scipy.spatial.distance import pdist, squareform

        what, dim, sample = request.label, len(request.names), request.sample
        m: tuple[float, ...] = (3.0,)
        if request.m is not None:
            m = tuple(map(float, request.m)) if isinstance(request.m, tuple) else (float(request.m),)
        first, *more = m
        stationary = first < 0
        null = 1 + (0 if stationary else dim)
        k = dim + 1 + _DEFAULT_K[dim] if request.k is None else request.k
        if k < dim + 2:
            raise TermError(f"{what}: k={k} is too small for bs='gp'; it is at least {dim + 2}.")
        centre = sample.weights @ sample.points
        knots = knots_of(request, k) - centre
        if len(knots) < k - null:
            raise TermError(f"{what}: k={k} needs {k - null} knots or distinct rows; there are {len(knots)}. Lower k.")
        apart = squareform(pdist(knots))
        rho = more[0] if more and more[0] > 0 else float(apart.max())
        form, power = int(abs(first)), more[1] if len(more) > 1 else 1.0
        values, vectors = np.linalg.eigh(correlation(apart / rho, form, power))
        leading = np.argsort(-np.abs(values))[: k - null]
        if values[leading].min() <= 0:
            raise TermError(f"{what}: its correlations have no {k - null} positive eigenvalues. Lower k, or change m.")
        basis = GaussianProcess(form, power, rho, stationary, centre, knots, np.ascontiguousarray(vectors[:, leading]))
        E = np.zeros((k - null, k))
        E[:, : k - null] = np.diag(np.sqrt(values[leading]))
        return Setup(basis, basis.evaluate(sample.points), (E,), (k - null,), null)

    def examples(self) -> tuple[str, ...]:
        return ("s(x, bs='gp')", "s(x, z, bs='gp', k=20)", "s(x, bs='gp', k=8, m=(-4, 0.5))", "te(x, z, bs='gp', k=5)")
