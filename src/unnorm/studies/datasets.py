"""Data that unnorm simulates itself: scanpaths (`eye.py`), and the toy chain of the paper (Section 4.1, eq. 4.1).

p(y_t | y_{t−1}) ∝ exp{θ1 y_t − ½ θ2 (y_t − y_{t−1})²},      y_t ∈ [−1, 1].
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from .._base.numerics import Rng, floats, generator
from ..errors import InputError
from .eye import EyeCurves, eye, eye_truth, simulate_eye

__all__ = ["EyeCurves", "eye", "eye_truth", "simulate_eye", "toy_chain", "toy_log_normaliser"]


def toy_chain(
    n: int, theta1: float, theta2: float, rng: Rng = None, y0: Any = None, reps: int | None = None
) -> np.ndarray:
    """Exact draws y_0 … y_n of the toy chain, by inverse CDF: shape (n + 1,), or (reps, n + 1) for independent chains.

    y_0 is a constant of the model: given, or drawn uniformly.
    A step of a single chain takes a few microseconds with θ2 > 0 and about a hundred with θ2 < 0 (shared by `reps`).

    Args:
        n: steps.
        theta1: θ1, the pull to one side.
        theta2: θ2, the pull to the previous point; it may be zero or negative.
        rng: seed or generator.
        y0: the first point; default uniform on [−1, 1].
        reps: independent chains; None for one, without an axis for it.

    >>> toy_chain(3, 0.5, 5.0, rng=1).shape
    (4,)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number of at least 1; got {n!r}.")
    if reps is not None and (isinstance(reps, bool) or not isinstance(reps, int | np.integer) or reps < 1):
        raise InputError(f"reps must be None or a whole number of at least 1; got {reps!r}.")
    theta1, theta2 = _parameter(theta1, "theta1"), _parameter(theta2, "theta2")
    random = generator(rng)
    chains = 1 if reps is None else int(reps)
    start = random.uniform(-1, 1, chains) if y0 is None else np.broadcast_to(floats(y0, "y0"), (chains,))
    if not np.all(np.abs(start) <= 1):
        raise InputError(f"y0 must lie in [-1, 1]; got {y0!r}.")
    u = random.random((int(n), chains))
    y = np.empty((int(n) + 1, chains))
    y[0] = start
    if theta2 == 0:  # no memory
        y[1:] = _exponential_quantile(u, np.asarray(theta1))
    elif theta2 > 1e-8 * max(1.0, abs(theta1)) and reps is None:
        y[:, 0] = _single_chain(float(start[0]), u[:, 0], theta1, theta2)
    else:
        for t in range(int(n)):
            y[t + 1] = _quantile(u[t], theta1, theta2, y[t])
    return y[:, 0].copy() if reps is None else np.ascontiguousarray(y.T)


def toy_log_normaliser(theta1: Any, theta2: Any, y_prev: Any) -> np.ndarray:
    """log ∫_{−1}^{1} exp{θ1 y − ½ θ2 (y − y_prev)²} dy, arguments broadcast; any finite θ1 and θ2, of either sign.

    Closed form by erfcx, erf (θ2 > 0) or Dawson's integral (θ2 < 0), whose exponentials are those of the exponent at
    the ends of the interval; 32-point Gauss–Legendre where the exponent varies too little for a difference of two.

    Args:
        theta1: θ1.
        theta2: θ2.
        y_prev: the previous point, or points.

    >>> float(toy_log_normaliser(0.0, 0.0, 0.3).round(6))  # log 2
    0.693147
    """
    theta1, theta2, y_prev = (floats(v, k) for v, k in ((theta1, "theta1"), (theta2, "theta2"), (y_prev, "y_prev")))
    theta1, theta2, y_prev = np.broadcast_arrays(theta1, theta2, y_prev)
    # Beyond this bound one of the two terms of the closed forms is at most e^{-2} of the other, or they have one sign:
    # |θ2| ≥ 1 or |θ1| > 2 makes a monotone exponent rise by 2 or more.
    flat = np.abs(theta1) + 2 * np.abs(theta2) <= 4
    out = np.empty(theta1.shape)
    for where, formula in (
        (flat, _log_integral_flat),
        (~flat & (theta2 > 0), _log_integral_gaussian),
        (~flat & (theta2 < 0), _log_integral_dawson),
        (~flat & (theta2 == 0), _log_integral_exponential),
    ):
        if np.any(where):
            out[where] = formula(theta1[where], theta2[where], y_prev[where])
    return out


def _parameter(value: Any, what: str) -> float:
    array = floats(value, what)
    if array.ndim or not np.isfinite(array):
        raise InputError(f"{what} must be one finite number; got {value!r}.")
    return float(array)


def _exponent(y: float | np.ndarray, theta1: np.ndarray, theta2: np.ndarray, y_prev: np.ndarray) -> np.ndarray:
    return theta1 * y - 0.5 * theta2 * (y - y_prev) ** 2


def _log_integral_flat(theta1: np.ndarray, theta2: np.ndarray, y_prev: np.ndarray) -> np.ndarray:
    nodes, weights = np.polynomial.legendre.leggauss(32)
    centre = _exponent(0.0, theta1, theta2, y_prev)
    total = sum(w * np.exp(_exponent(y, theta1, theta2, y_prev) - centre) for y, w in zip(nodes, weights))
    return centre + np.log(total)


def _log_integral_exponential(theta1: np.ndarray, theta2: np.ndarray, y_prev: np.ndarray) -> np.ndarray:
    rate = np.abs(theta1)
    return rate + np.log(-np.expm1(-2 * rate) / rate)


def _log_integral_gaussian(theta1: np.ndarray, theta2: np.ndarray, y_prev: np.ndarray) -> np.ndarray:
    """∫ e^f = √(π/2θ2) [e^{f(−1)} erfcx z(−1) − e^{f(1)} erfcx z(1)], z(y) = √(θ2/2) (y − μ), μ = y_prev + θ1/θ2."""
    from scipy.special import erf, erfcx

    # The mirror image y → −y puts μ at or left of 0, so that the tail is on the right.
    mirror = np.where(theta2 * y_prev + theta1 > 0, -1.0, 1.0)
    theta1, y_prev = mirror * theta1, mirror * y_prev
    root = np.sqrt(theta2 / 2)
    shift = theta1 / (2 * root)  # √(θ2/2) · θ1/θ2 without the overflow of θ1/θ2
    low, high = root * (-1 - y_prev) - shift, root * (1 - y_prev) - shift
    f_low, f_high = _exponent(-1.0, theta1, theta2, y_prev), _exponent(1.0, theta1, theta2, y_prev)
    inside = low < 0  # the peak μ is in the interval
    peak = np.where(inside, theta1 * (y_prev + theta1 / (2 * theta2)), f_low)
    from_low, from_high = erfcx(np.where(inside, 0.0, low)), erfcx(np.where(inside, 0.0, high))
    mass = np.where(inside, erf(high) - erf(low), from_low - np.exp(np.where(inside, 0.0, f_high - f_low)) * from_high)
    return 0.5 * np.log(np.pi / (2 * theta2)) + peak + np.log(mass)


def _log_integral_dawson(theta1: np.ndarray, theta2: np.ndarray, y_prev: np.ndarray) -> np.ndarray:
    """∫ e^f = √(2/τ) [e^{f(1)} D(z(1)) − e^{f(−1)} D(z(−1))], τ = −θ2, z(y) = √(τ/2) (y − m), m = y_prev + θ1/θ2."""
    from scipy.special import dawsn

    root = np.sqrt(-theta2 / 2)
    shift = theta1 / (2 * root)
    low, high = root * (-1 - y_prev) + shift, root * (1 - y_prev) + shift
    f_low, f_high = _exponent(-1.0, theta1, theta2, y_prev), _exponent(1.0, theta1, theta2, y_prev)
    top = np.maximum(f_low, f_high)
    return top + np.log((np.exp(f_high - top) * dawsn(high) - np.exp(f_low - top) * dawsn(low)) / root)


# --- quantiles -------------------------------------------------------------------------------------------------------

_TAIL = 2.0  # where [−1, 1] lies further than this many σ from the centre, measure from the near end


def _single_chain(y0: float, u: np.ndarray, theta1: float, theta2: float) -> list[float]:
    """One chain with θ2 > 0: `_quantile` step by step on Python floats, which is forty times as fast as on arrays."""
    inverse, erfc = NormalDist().inv_cdf, math.erfc
    sigma, drift, root = theta2**-0.5, theta1 / theta2, math.sqrt(2)
    y = [y0]
    for v in u.tolist():
        centre = y[-1] + drift
        side = -1.0 if centre > 0 else 1.0
        low = (-1 - side * centre) / sigma
        if low > _TAIL:
            y.append(float(_quantile(np.array([v]), theta1, theta2, np.array([y[-1]]))[0]))
            continue
        if side < 0:
            v = 1 - v
        q = (1 - v) * 0.5 * erfc(low / root) + v * 0.5 * erfc((1 - side * centre) / (sigma * root))
        z = -inverse(min(max(q, 1e-300), 1 - 2**-53))
        y.append(min(max(side * (side * centre + sigma * z), -1.0), 1.0))
    return y


def _quantile(u: np.ndarray, theta1: float, theta2: float, y_prev: np.ndarray) -> np.ndarray:
    """F⁻¹(u | y_prev).

    For |θ2| < 1e-8 (more for |θ1| > 1) y² in the exponent is replaced by its tangent at the mean, which changes the
    density by a factor within 1e-7 of one: nothing else is lost.
    """
    if abs(theta2) < 1e-8 * max(1.0, abs(theta1)):
        return _exponential_quantile(u, theta1 + theta2 * (y_prev - np.tanh(theta1)))
    # The mirror image y → −y puts the centre of the parabola at or left of 0.
    sigma = abs(theta2) ** -0.5
    centre = y_prev + theta1 / theta2
    side = np.where(centre > 0, -1.0, 1.0)
    centre = side * centre
    v = np.where(side > 0, u, 1 - u)
    low, high = (-1 - centre) / sigma, (1 - centre) / sigma
    tail = low > _TAIL
    y = np.empty(v.shape)
    if np.any(~tail):
        between = _normal_between if theta2 > 0 else _inverse_normal_between
        y[~tail] = centre[~tail] + sigma * between(v[~tail], low[~tail], high[~tail])
    if np.any(tail):
        beyond = _normal_beyond if theta2 > 0 else _inverse_normal_beyond
        y[tail] = -1 + sigma * beyond(v[tail], low[tail], 2 / sigma)
    return np.clip(side * y, -1.0, 1.0)


def _exponential_quantile(u: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """F⁻¹(u) for the density ∝ e^{rate·y} on [−1, 1]: from its high end, y = 1 + log(v + (1 − v) e^{−2r}) / r."""
    steep = np.abs(rate)
    v = np.where(rate > 0, u, 1 - u)
    flat = steep < 1e-9
    safe = np.where(flat, 1.0, steep)
    y = np.where(flat, 2 * v - 1, 1 + np.log1p((1 - v) * np.expm1(-2 * safe)) / safe)
    return np.where(rate > 0, y, -y)


def _normal_between(v: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """z with Q(z) = (1 − v) Q(low) + v Q(high), Q = 1 − Φ."""
    from scipy.special import ndtr, ndtri

    q = (1 - v) * ndtr(-low) + v * ndtr(-high)
    return -ndtri(np.clip(q, 1e-300, 1 - 2**-53))


def _normal_beyond(v: np.ndarray, low: np.ndarray, length: float) -> np.ndarray:
    """d in [0, length], z = low + d as above, for large `low`: Q(low + d)/Q(low) = e^{−low·d − d²/2} R(d), R a ratio
    of erfcx that is near 1."""
    from scipy.special import erfcx

    def ratio(d: np.ndarray | float) -> np.ndarray:
        return erfcx((low + d) / np.sqrt(2)) / erfcx(low / np.sqrt(2))

    w = -np.log1p(v * (np.exp(-(low + length / 2) * length) * ratio(length) - 1))  # = −log Q(z)/Q(low)
    d = 2 * w / (low + np.sqrt(low**2 + 2 * w))
    for _ in range(6):  # Newton: the hazard is √(2/π)/erfcx
        hazard = np.sqrt(2 / np.pi) / erfcx((low + d) / np.sqrt(2))
        d = np.clip(d - ((low + d / 2) * d - np.log(ratio(d)) - w) / hazard, 0.0, length)
    return d


def _inverse_normal_between(v: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """z with G(z) = (1 − v) G(low) + v G(high), G(z) = ∫_0^z e^{t²/2} dt = √2 e^{z²/2} D(z/√2); here |low| ≤ high."""
    from scipy.special import dawsn

    # divide by e^{high²/2} to keep G in range
    scaled = (1 - v) * np.exp((low**2 - high**2) / 2) * dawsn(low / np.sqrt(2)) + v * dawsn(high / np.sqrt(2))
    with np.errstate(divide="ignore"):
        target = 0.5 * high**2 + np.log(np.sqrt(2) * np.abs(scaled))  # log |G(z)|
    # G(z) ≥ z gives a start at or above the root; so does √(2 log G + 4) for large G.
    z = np.minimum(np.exp(np.minimum(target, 3.0)), np.sqrt(2 * np.maximum(target, 0.0) + 4))
    for _ in range(60):
        slope = np.sqrt(2) * dawsn(z / np.sqrt(2))  # 1 / (log G)'
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(z > 0, (0.5 * z**2 + np.log(slope) - target) * slope, 0.0)
        z = np.maximum(z - step, 0.0)
        if np.all(np.abs(step) <= 1e-13 * (1 + z)):
            break
    return np.clip(np.sign(scaled) * z, low, high)


def _inverse_normal_beyond(v: np.ndarray, low: np.ndarray, length: float) -> np.ndarray:
    """d in [0, length], z = low + d as above, for large `low`: G(low + d)/G(low) = e^{low·d + d²/2} R(d)."""
    from scipy.special import dawsn

    def log_ratio(d: np.ndarray | float) -> np.ndarray:
        return np.log(dawsn((low + d) / np.sqrt(2)) / dawsn(low / np.sqrt(2)))

    rise = (low + length / 2) * length + log_ratio(length)
    with np.errstate(divide="ignore"):
        w = rise + np.log(v + (1 - v) * np.exp(-rise))  # = log G(z)/G(low)
    w = np.maximum(np.where(rise < 1, np.log1p(v * np.expm1(np.minimum(rise, 1.0))), w), 0.0)
    d = np.minimum(2 * w / (low + np.sqrt(low**2 + 2 * w)), length)
    for _ in range(8):
        slope = np.sqrt(2) * dawsn((low + d) / np.sqrt(2))
        d = np.clip(d - ((low + d / 2) * d + log_ratio(d) - w) * slope, 0.0, length)
    return d
