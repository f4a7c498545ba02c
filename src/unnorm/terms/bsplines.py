"""P-splines: B-splines on even knots with a penalty on differences of coefficients (Eilers & Marx 1996), open
(`ps`) or round a circle (`cp`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..errors import TermError
from .basis import Basis, Setup, saved_basis
from .cubic import CubicSpline
from .kinds import BasisKind, Orders, Request, increasing
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


def _degree_and_order(m: Orders, what: str) -> tuple[int, int]:
    """m = (degree − 1, order of the differences), 2 for both by default: cubic B-splines, second differences."""
    pair = (2, 2) if m is None else (m, m) if isinstance(m, int) else m * 2 if len(m) == 1 else m
    if len(pair) != 2:
        raise TermError(
            f"{what}: m takes one or two numbers for P-splines, (degree − 1, order of the differences); got {m!r}."
        )
    return pair[0] + 1, pair[1]


def _size(request: Request, cyclic: str) -> tuple[int, int, int]:
    """k, degree and order of the differences."""
    degree, order = _degree_and_order(request.m, request.label)
    k = max(10, degree) if request.k is None else request.k
    if k < degree + 1 or k <= order:
        raise TermError(
            f"{request.label}: k={k} is too small for {cyclic}B-splines of degree {degree} with differences of order "
            f"{order}; use at least {max(degree, order) + 1}."
        )
    return k, degree, order


@final
class PSplines(BasisKind):
    """`ps`: B-splines on even knots with a penalty on differences of their coefficients."""

    name = "ps"
    takes_m = True

    def setup(self, request: Request) -> Setup:
        what, name, sample = request.label, request.name, request.sample
        k, degree, order = _size(request, "")
        low, high = sample.lower[0], sample.upper[0]
        knots = request.given_knots(name)
        if knots is not None and knots.size != 2:
            knots = increasing(knots, k + degree + 1, name, what, "two ends, or ")
            inner = knots[degree], knots[-degree - 1]
        else:
            inner = (low, high) if knots is None else (float(min(knots)), float(max(knots)))
            if inner[0] == inner[1]:
                raise TermError(f"{what}: the two end knots of {name!r} are equal ({inner[0]:g}).")
            knots = even_knots(*inner, k, degree)
        if inner[0] > low or inner[1] < high:
            raise TermError(
                f"{what}: the knots of {name!r} span [{inner[0]:g}, {inner[1]:g}] but the data [{low:g}, "
                f"{high:g}]. Widen them."
            )
        return p_spline(knots, degree, order, sample)

    def examples(self) -> tuple[str, ...]:
        return ("s(x, bs='ps')", "s(x, bs='ps', k=9, m=(1, 1))", "te(x, z, bs='ps', k=5)")


@final
class CyclicPSplines(BasisKind):
    """`cp`: P-splines round a circle."""

    name = "cp"
    takes_m = True
    cyclic = True

    def setup(self, request: Request) -> Setup:
        k, degree, order = _size(request, "cyclic ")
        knots = request.given_knots(request.name)
        if knots is None:
            knots = request.period_ends(request.name)
        if knots is None:
            knots = np.array([request.sample.lower[0], request.sample.upper[0]])
        if knots.size == 2:
            knots = np.linspace(min(knots), max(knots), k + 1)
        knots = increasing(knots, k + 1, request.name, request.label, "two ends, or ")
        return cyclic_p_spline(knots, degree, order, request.sample)

    def examples(self) -> tuple[str, ...]:
        return ("s(angle, bs='cp')", "s(angle, bs='cp', k=8, m=(2, 1))")
