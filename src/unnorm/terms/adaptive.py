"""`ad`: P-splines whose smoothness changes along the covariate, or over the plane of two (Wood 2011, section 5.1).

βᵀSβ = Σ_i λ_i Σ_j v_i(j) (Δ²β_j)²: the weight of the j-th difference is itself a spline in j, with m coefficients λ_i.

Of two covariates, B-splines' products have coefficients β_rc, and

    βᵀSβ = Σ_i λ_i Σ_rc v_i(r, c) {(Δ²_r β)² + (Δ²_c β)² + 2 (Δ_rΔ_c β)²},

where the mixed difference spans two steps each way and v_i are products of m × m B-splines. Only planes are free of
penalty.
"""

from __future__ import annotations

from typing import final

import numpy as np

from ..errors import TermError, listing
from .arguments import not_too_many
from .basis import Setup
from .bsplines import PSplines, even_knots
from .kinds import BasisKind, Request, with_order
from .tensor import TensorProduct


def weights(rows: int, k: int, m: int) -> np.ndarray:
    """v (rows, m): B-splines over the differences, cubic (quadratic for m = 3; 1 and j for m = 2)."""
    from scipy.interpolate import BSpline

    x = np.arange(1.0, rows + 1) / k
    if m == 1:
        return np.ones((rows, 1))
    if m == 2:
        return np.column_stack([np.ones(rows), x])
    degree = 2 if m == 3 else 3
    knots = even_knots(float(x[0]), float(x[-1]), m, degree)
    return np.asarray(BSpline.design_matrix(x, knots, degree).todense())


def differences(k: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """D (·, k²) and the places (·, 2) of its rows, for second differences along each side of β (k, k) and the mixed."""
    one, two = np.eye(k), np.diff(np.eye(k), n=2, axis=0)
    ahead = np.zeros((k - 2, k))
    ahead[np.arange(k - 2), np.arange(k - 2)], ahead[np.arange(k - 2), np.arange(2, k)] = -1.0, 1.0
    every, inner = np.arange(k), np.arange(1, k - 1)

    def places(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)

    mixed = np.sqrt(2.0) / 4.0 * np.kron(ahead, ahead)
    return (
        (np.kron(two, one), places(inner, every)),
        (np.kron(one, two), places(every, inner)),
        (mixed, places(inner, inner)),
    )


def surface_weights(places: np.ndarray, k: int, m: tuple[int, int]) -> np.ndarray:
    """v (places, m₁m₂): products of B-splines over the square of coefficients, quadratic (linear where m is 2)."""
    from scipy.interpolate import BSpline

    if m == (1, 1):
        return np.ones((len(places), 1))
    degree = 1 if min(m) == 2 else 2
    sides = []
    for j, count in enumerate(m):
        knots = even_knots(0.0, k - 1.0, count, degree)
        sides.append(np.asarray(BSpline.design_matrix(places[:, j].astype(np.float64), knots, degree).todense()))
    return (sides[0][:, :, None] * sides[1][:, None, :]).reshape(len(places), -1)


@final
class Adaptive(BasisKind):
    """`ad`: one covariate, k functions (40), m smoothing parameters along it (5); or two, k × k functions (15) and
    m × m smoothing parameters (3)."""

    name = "ad"
    covariates = (1, 2)
    takes_m = True
    margin = False

    def setup(self, request: Request) -> Setup:
        return self._curve(request) if len(request.names) == 1 else self._surface(request)

    def _surface(self, request: Request) -> Setup:
        what, k = request.label, 15 if request.k is None else request.k
        m = (3, 3) if request.m is None else (request.m,) * 2 if isinstance(request.m, int) else tuple(request.m)
        m = m * 2 if len(m) == 1 else m
        if len(m) != 2 or min(m) < 1 or (min(m) == 1 and m != (1, 1)) or max(m) > k - 2:
            raise TermError(
                f"{what}: m, the smoothing parameters along each side of bs='ad', is one or two numbers from 2 to "
                f"k − 2 = {k - 2}, or 1; got {listing(m)}."
            )
        not_too_many(what, f"k={k}, for each of the two covariates,", k * k)
        margins = [PSplines().setup(request.margin(i, k, (2, 2))) for i in range(2)]
        basis = TensorProduct(tuple(margin.basis for margin in margins))
        parts = [(D, surface_weights(places, k, m)) for D, places in differences(k)]
        roots, ranks = [], []
        for i in range(m[0] * m[1]):
            rows = [(D[v[:, i] > 0], v[v[:, i] > 0, i]) for D, v in parts]
            # which differences count is known; that some count little does not make the rank smaller
            ranks.append(int(np.linalg.matrix_rank(np.concatenate([D for D, _ in rows]))))
            E = np.concatenate([np.sqrt(v)[:, None] * D for D, v in rows])
            roots.append(np.linalg.qr(E, mode="r") if len(E) > k * k else E)
        columns = basis.evaluate(request.sample.points)
        return Setup(basis, columns, tuple(roots), tuple(ranks), 3, isotropic=False)

    def _curve(self, request: Request) -> Setup:
        what, k = request.label, 40 if request.k is None else request.k
        m = 5 if request.m is None else int(request.m if not isinstance(request.m, tuple) else request.m[0])
        if m < 1 or m >= k - 2:
            raise TermError(f"{what}: m, the smoothing parameters along bs='ad', lies between 1 and k − 3; got {m}.")
        plain = PSplines().setup(with_order(request, k, (2, 2)))
        difference = np.diff(np.eye(k), n=2, axis=0)
        v = weights(len(difference), k, m)
        roots = tuple(np.sqrt(v[v[:, i] > 0, i])[:, None] * difference[v[:, i] > 0] for i in range(m))
        ranks = tuple(len(E) for E in roots)
        return Setup(plain.basis, plain.columns, roots, ranks, 2)

    def examples(self) -> tuple[str, ...]:
        return ("s(x, bs='ad', k=20)", "s(x, bs='ad', k=15, m=3)", "s(x, bs='ad', k=12, m=2)", "s(x, z, bs='ad', k=5)")
