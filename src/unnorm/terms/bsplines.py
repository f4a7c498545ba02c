"""P-splines: B-splines on even knots with a penalty on differences of coefficients (Eilers & Marx 1996), open
(`ps`) or round a circle (`cp`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .basis import Basis, Setup, saved_basis
from .cubic import CubicSpline
from .sample import Sample


@saved_basis
@dataclass(frozen=True, eq=False)
class BSplines(Basis):
    """Σ_j B_j(x) C_j of any degree on `knots`; a straight line outside the inner knots, or wrapped if cyclic."""

    kind: ClassVar[str] = "b-spline"
    knots: np.ndarray
    coefficients: np.ndarray  # C (J, p)
    degree: int
    cyclic: bool = False

    def __post_init__(self) -> None:
        low, high = self.ends
        self._describe(1, self.coefficients.shape[1], None, high - low if self.cyclic else None)

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.knots[self.degree]), float(self.knots[-self.degree - 1])

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        from scipy.interpolate import BSpline

        x = np.asarray(points, dtype=np.float64).reshape(-1)
        low, high = self.ends
        if self.cyclic:
            x = low + np.mod(x - low, high - low)
        spline = BSpline(self.knots, self.coefficients, self.degree)
        inside = np.clip(x, low, high)
        out = spline(inside)
        outside = np.flatnonzero(x != inside)
        if outside.size:
            out[outside] += (x - inside)[outside, None] * spline.derivative()(inside[outside])
        return out

    def times(self, transform: np.ndarray) -> BSplines:
        return BSplines(self.knots, self.coefficients @ transform, self.degree, self.cyclic)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "knots": self.knots.tolist(),
            "coefficients": self.coefficients.tolist(),
            "degree": self.degree,
            "cyclic": self.cyclic,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> BSplines:
        knots, coefficients = (np.array(saved[name], dtype=np.float64) for name in ("knots", "coefficients"))
        return cls(knots, coefficients, int(saved["degree"]), bool(saved["cyclic"]))


def _setup(
    knots: np.ndarray, coefficients: np.ndarray, degree: int, cyclic: bool, E: np.ndarray, null_dim: int, sample: Sample
) -> Setup:
    basis: Basis = BSplines(knots, coefficients, degree, cyclic)
    if degree == 3:  # the same functions as values and second derivatives at the inner knots
        from scipy.interpolate import BSpline

        inner = knots[3:-3]
        spline = BSpline(knots, coefficients, 3)
        basis = CubicSpline(inner, spline(inner), spline.derivative(2)(inner), cyclic)
    return Setup(basis, basis.evaluate(sample.points), (E,), (E.shape[1] - null_dim,), null_dim)


def even_knots(low: float, high: float, k: int, degree: int) -> np.ndarray:
    """mgcv's `ps` knots: k − degree + 1 inner ones over the range widened by 0.1 % each way, and `degree` more on
    each side."""
    widen = 0.001 * (high - low)
    low, high = low - widen, high + widen
    step = (high - low) / (k - degree)
    return np.linspace(low - degree * step, high + degree * step, k + degree + 1)


def p_spline(knots: np.ndarray, degree: int, order: int, sample: Sample) -> Setup:
    """`ps`: βᵀSβ = |Δ^order β|²."""
    k = len(knots) - degree - 1
    difference = np.diff(np.eye(k), n=order, axis=0)
    return _setup(knots, np.eye(k), degree, False, difference, order, sample)


def cyclic_p_spline(knots: np.ndarray, degree: int, order: int, sample: Sample) -> Setup:
    """`cp`: the k + 1 knots close a circle, and differences go round it; only constants are unpenalised (for order
    ≥ 1)."""
    k = len(knots) - 1
    period = knots[-1] - knots[0]
    extended = np.concatenate([knots[-degree - 1 : -1] - period, knots, knots[1 : degree + 1] + period])
    fold = np.eye(k)[np.arange(k + degree) % k]
    difference = np.eye(k)
    for _ in range(order):
        difference = np.roll(difference, -1, axis=0) - difference
    return _setup(extended, fold, degree, True, difference, min(order, 1), sample)
