"""The response's side of a fit: what is known of it before the first pass, from rows in memory or in parts."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, final

import numpy as np

from . import families
from .segment import ResponseRows

if TYPE_CHECKING:
    from .design import Design
    from .parts import Held, Parts, Sums
    from .plan import Plan

_ORDER = 7  # of the expansion of log(1 + e^η) in the intercept
_NEAR = 0.03  # the distance at which it has all digits
_MOST = 50


@final
@dataclass(frozen=True)
class Sides:
    """What the iteration needs of the response."""

    rows: ResponseRows  # in the design's order
    count: int  # rows with positive weight
    constant: float
    saturated: float
    null_intercept: float
    null_loglik: float
    offset: np.ndarray  # as given


# long: as `smooth_fit`
def sides(
    design: Design, y: object, family: str, link: str | None, theta: float | None, weights: object, offset: object
) -> Sides:
    """Of vectors of all rows, in the caller's order."""
    given = families.checked(family, y, weights, offset, design.rows)
    seen = families.working_rows(family, given, theta)
    rows = ResponseRows(
        *(writable(design.sort(part) if part.size else part) for part in (seen.y, seen.weights, seen.offset))
    )
    count = int(np.sum(rows.weights > 0)) if rows.weights.size else design.rows
    constant, saturated = families.constant(family, given, theta), families.saturated(family, rows)
    return Sides(rows, count, constant, saturated, *families.null_fit(family, rows, link), given.offset)


def writable(array: np.ndarray) -> np.ndarray:
    """C-contiguous and writable: the kernels are compiled for one kind of array only."""
    return np.require(array, requirements=("C", "W"))


# the intercept of the model with nothing else but the offset, from sums over parts


def null_of_parts(parts: Parts, family: str, link: str | None, sums: tuple[float, ...]) -> tuple[float, float]:
    """As `families.null_fit`. `sums`: Σw, Σwy, the mean of the offset, and whether there is one."""
    weight, wy, mean, offset = sums
    if link is not None:
        return _by_scoring(parts, family, link, weight, wy, mean)
    share = wy / weight
    if family == "gaussian":
        pivot = share - mean
        first, second = parts.total(_moments, pivot)
        return pivot + first / weight, -0.5 * (second - first * first / weight)
    if family == "binomial":
        share = min(max(share, 1e-10), 1 - 1e-10)
        pivot = float(np.log(share / (1 - share)))
        if not offset:
            return pivot, weight * (wy / weight * pivot - float(np.logaddexp(0, pivot)))
        return _by_expansion(parts, wy, pivot - mean)
    if not offset:
        return float(np.log(max(share, 1e-10))), weight * (share * float(np.log(max(share, 1e-300))) - share)
    mass, wyo = parts.total(_exponentials, pivot := -mean)
    intercept = pivot + float(np.log(max(wy, 1e-10) / mass))
    return intercept, intercept * wy + wyo - mass * float(np.exp(intercept - pivot))


def _by_expansion(parts: Parts, wy: float, pivot: float) -> tuple[float, float]:
    """The binomial maximum from one pass or two: ℓ is expanded about the pivot."""
    evaluate = np.polynomial.polynomial.polyval
    wyo, S, delta = 0.0, np.zeros(_ORDER + 1), 0.0
    for _ in range(_MOST):
        wyo, *found = parts.total(_derivatives, pivot)
        S = np.array(found)
        slopes = S[1:] / [factorial(k) for k in range(_ORDER)]  # of A′ in δ
        curves = slopes[1:] * np.arange(1, _ORDER)
        delta = 0.0
        for _ in range(_MOST):  # Σwy = Σ_k slopes_k δ^k
            step = (wy - float(evaluate(delta, slopes))) / max(float(evaluate(delta, curves)), 1e-300)
            if abs(delta + step) > 1.0:  # far away the expansion says the direction only
                delta = float(np.sign(delta + step))
                break
            delta += step
            if abs(step) < 1e-14:
                break
        if abs(delta) <= _NEAR:
            break
        pivot, delta = pivot + delta, 0.0
    powers = delta ** np.arange(_ORDER + 1) / [factorial(k) for k in range(_ORDER + 1)]
    return pivot + delta, (pivot + delta) * wy + wyo - float(S @ powers)


def _by_scoring(parts: Parts, family: str, link: str, weight: float, wy: float, mean: float) -> tuple[float, float]:
    from .response import response

    intercept = response(family, link).link_of(float(np.clip(wy / weight, 1e-10, 1 - 1e-10))) - mean
    for _ in range(_MOST):
        score, information, _ = parts.total(_scoring, family, link, intercept)
        step = score / max(information, 1e-300)
        intercept += float(np.clip(step, -2, 2))
        if abs(step) < 1e-9:
            break
    return intercept, parts.total(_scoring, family, link, intercept)[2]


def _weights(rows: ResponseRows) -> np.ndarray:
    return rows.weights if rows.weights.size else np.ones(rows.y.size)


def _offset(rows: ResponseRows) -> np.ndarray:
    return rows.offset if rows.offset.size else np.zeros(rows.y.size)


def _moments(plan: Plan, part: Held, i: int, pivot: float) -> Sums:
    left = part.rows.y - _offset(part.rows) - pivot
    w = _weights(part.rows)
    return float(w @ left), float(w @ left**2)


def _exponentials(plan: Plan, part: Held, i: int, pivot: float) -> Sums:
    w, offset = _weights(part.rows), _offset(part.rows)
    return float(w @ np.exp(pivot + offset)), float((w * part.rows.y) @ offset)


def _derivatives(plan: Plan, part: Held, i: int, pivot: float) -> Sums:
    """Σ w y offset, and Σ w A^(k)(pivot + offset), k = 0 … 7, of A = log(1 + e^η): polynomials in μ = A′."""
    w, offset = _weights(part.rows), _offset(part.rows)
    eta = pivot + offset
    mu = 1.0 / (1.0 + np.exp(-eta))
    powers, polynomial = [w.copy()], np.array([0.0, 1.0])
    for _ in range(_ORDER + 1):
        powers.append(powers[-1] * mu)
    moments = np.array([float(one.sum()) for one in powers])
    out = [float(w @ np.logaddexp(0.0, eta))]
    for _ in range(_ORDER):
        out.append(float(polynomial @ moments[: polynomial.size]))
        polynomial = np.convolve(polynomial[1:] * np.arange(1, polynomial.size), [0.0, 1.0, -1.0])
    return (float((w * part.rows.y) @ offset), *out)


def _scoring(plan: Plan, part: Held, i: int, family: str, link: str, intercept: float) -> Sums:
    from .response import response

    law, w, y = response(family, link), _weights(part.rows), part.rows.y
    eta = intercept + _offset(part.rows)
    mu = np.clip(law.mean(eta), 1e-15, 1 - 1e-15)
    slope, v = law.slope(eta), law.variance(mu)
    value = float(np.sum(w * (y * np.log(mu) + (1 - y) * np.log1p(-mu))))
    return float(np.sum(w * (y - mu) * slope / v)), float(np.sum(w * slope**2 / v)), value
