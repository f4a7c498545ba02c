"""`ad`: P-splines whose smoothness changes along the covariate (Wood 2011, section 5.1).

βᵀSβ = Σ_i λ_i Σ_j v_i(j) (Δ²β_j)²: the weight of the j-th difference is itself a spline in j, with m coefficients λ_i.
"""

from __future__ import annotations

from typing import final

import numpy as np

from ..errors import TermError
from .basis import Setup
from .bsplines import PSplines, even_knots
from .kinds import BasisKind, Request, with_order


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


@final
class Adaptive(BasisKind):
    """`ad`: one covariate, k functions (40), m smoothing parameters along it (5)."""

    name = "ad"
    takes_m = True
    margin = False

    def setup(self, request: Request) -> Setup:
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
        return ("s(x, bs='ad', k=20)", "s(x, bs='ad', k=15, m=3)", "s(x, bs='ad', k=12, m=2)")
