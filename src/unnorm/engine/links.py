"""Links of a binomial response other than the logit, compiled: log-likelihood, slope and observed curvature of one row.

ℓ = w{y log μ + (1 − y) log(1 − μ)} is concave in η for both, so that −d²ℓ/dη² serves Newton's steps as it is.

- probit, μ = Φ(η): with λ = φ/Φ, d log Φ/dη = λ and −d²log Φ/dη² = λ(λ + η); 1 − μ is Φ(−η).
- cloglog, μ = 1 − exp(−t), t = e^η: with q = t/(eᵗ − 1), d log μ/dη = q, dq/dη = q(1 − t − q), and log(1 − μ) = −t.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
import math

from .._base.cached import inner

PROBIT, CLOGLOG = 3, 4
_FAR = 35.0  # |η| beyond which Φ is 0 or 1 to the last digit, and λ = −η


@inner(error_model="numpy")
def _log_phi(eta):
    """log Φ(η) and its first three derivatives, the second and third negative: (log Φ, λ, λ(λ + η), d of it)."""
    at = max(eta, -_FAR)
    below = 0.5 * math.erfc(-at * math.sqrt(0.5))
    value = math.log1p(-0.5 * math.erfc(at * math.sqrt(0.5))) if at > 0.0 else math.log(below)
    ratio = math.exp(-0.5 * at * at) / (math.sqrt(2.0 * math.pi) * below)
    if eta < -_FAR:  # Φ(η) ≈ φ(η)/|η|
        value -= 0.5 * (eta * eta - at * at) + math.log(eta / at)
        s = 1.0 / (eta * eta)
        ratio = -eta * (1.0 + s * (1.0 - s * (2.0 - s * 10.0)))
    curve = ratio * (ratio + eta)
    if eta < -12.0:  # λ + η has lost digits; its series in 1/η has not
        s = 1.0 / (eta * eta)
        curve = 1.0 - s * (1.0 - s * (6.0 - s * (50.0 - s * 518.0)))
    return value, ratio, curve, ratio - curve * (2.0 * ratio + eta)


@inner(error_model="numpy")
def binary_row(family, y, eta, weight):
    """ℓ, dℓ/dη, w = −d²ℓ/dη² and dw/dη of one row."""
    if family == PROBIT:
        value, g, w, dw = 0.0, 0.0, 0.0, 0.0
        if y > 0.0:
            a, b, c, d = _log_phi(eta)
            value, g, w, dw = y * a, y * b, y * c, y * d
        if y < 1.0:
            a, b, c, d = _log_phi(-eta)
            value, g, w, dw = value + (1.0 - y) * a, g - (1.0 - y) * b, w + (1.0 - y) * c, dw - (1.0 - y) * d
        return weight * value, weight * g, weight * w, weight * dw
    t = math.exp(min(max(eta, -500.0), 500.0))
    value, g, w, dw = -(1.0 - y) * t, -(1.0 - y) * t, (1.0 - y) * t, (1.0 - y) * t
    if y > 0.0 and t < 500.0:  # beyond, μ is one
        if t < 1e-3:
            excess, q = t * (0.5 + t / 12.0), 1.0 - t * (0.5 - t / 12.0)  # t + q − 1
            value += y * (eta - 0.5 * t + t * t / 24.0)
        else:
            q = t / math.expm1(t)
            excess = t + q - 1.0
            value += y * math.log(-math.expm1(-t))
        g += y * q
        w += y * q * excess
        dw += y * q * (t - q * excess - excess * excess)
    return weight * value, weight * g, weight * w, weight * dw
