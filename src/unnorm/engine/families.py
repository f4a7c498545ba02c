"""The three likelihoods: constants, saturated log-likelihoods, null deviances, and what their responses must be."""

from __future__ import annotations

import numpy as np

from ..errors import DataError, InputError, unknown
from .segment import ResponseRows

FAMILIES = {"binomial": 0, "poisson": 1, "gaussian": 2}  # the codes of kernels.py


def checked(family: str, y: object, weights: object, offset: object, n: int) -> ResponseRows:
    """The response, weights and offset as float64 arrays, or an error that says what is wrong with which row."""
    if family not in FAMILIES:
        raise InputError(unknown("family", family, FAMILIES))

    def column(values: object, what: str) -> np.ndarray:
        if values is None:
            return np.empty(0)
        out = np.asarray(values, dtype=np.float64)
        if out.shape != (n,):
            raise DataError(f"{what} must have one value for each of the {n} rows; got shape {out.shape}.")
        if not np.isfinite(out).all():
            raise DataError(
                f"{what} must be finite; row {int(np.argmin(np.isfinite(out)))} is "
                f"{out[np.argmin(np.isfinite(out))]}. Drop the row."
            )
        return out

    y_, w_, o_ = column(y, "The response"), column(weights, "weights"), column(offset, "offset")
    if w_.size and w_.min() < 0:
        raise DataError(f"weights must not be negative; row {int(np.argmin(w_))} has {w_.min()}.")
    if family == "binomial" and n and (y_.min() < 0 or y_.max() > 1):
        raise DataError(
            "A binomial response is 0, 1 or a proportion (with the trials as weights); "
            f"got values from {y_.min():g} to {y_.max():g}."
        )
    if family == "poisson" and n and y_.min() < 0:
        raise DataError(f"A Poisson response is a count; got {y_.min():g}.")
    return ResponseRows(y_, w_, o_)


def _xlogx(v: np.ndarray) -> np.ndarray:
    return np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0)


def saturated(family: str, rows: ResponseRows) -> float:
    """The largest log-likelihood, in the kernels' form (without constants)."""
    y = rows.y
    if family == "gaussian" or (family == "binomial" and bool(np.all((y == 0) | (y == 1)))):
        return 0.0
    each = _xlogx(y) + _xlogx(1 - y) if family == "binomial" else _xlogx(y) - y
    return float(np.sum(each * rows.weights if rows.weights.size else each))


def constant(family: str, rows: ResponseRows) -> float:
    """What the kernels' log-likelihood lacks: binomial coefficients, Σ log y!, ½ Σ log weight (the scale's part is
    the criterion's)."""
    y, w = rows.y, rows.weights
    if family == "gaussian":
        return 0.5 * float(np.sum(np.log(w[w > 0]))) if w.size else 0.0
    from scipy.special import gammaln

    if family == "binomial":
        if not w.size:
            return 0.0
        return float(np.sum(gammaln(w + 1) - gammaln(w * y + 1) - gammaln(w * (1 - y) + 1)))
    each = gammaln(y + 1)
    return -float(np.sum(each * w if w.size else each))


def null_fit(family: str, rows: ResponseRows) -> tuple[float, float]:
    """The intercept of the model with nothing else but the offset, and its log-likelihood (kernels' form)."""
    y = rows.y
    w = rows.weights if rows.weights.size else np.ones(1)
    total = float(np.sum(w)) if rows.weights.size else float(y.size)
    mean = float(np.sum(w * y)) / total
    offset = rows.offset
    if family == "gaussian":
        left = y - offset if offset.size else y
        intercept = float(np.sum(w * left)) / total
        return intercept, -0.5 * float(np.sum(w * (left - intercept) ** 2))
    if family == "binomial":
        clipped = min(max(mean, 1e-10), 1 - 1e-10)
        intercept = float(np.log(clipped / (1 - clipped)))
        if not offset.size:
            return intercept, total * (mean * intercept - float(np.logaddexp(0, intercept)))
        intercept -= float(np.mean(offset))
        for _ in range(50):
            mu = 1 / (1 + np.exp(-(intercept + offset)))
            step = float(np.sum(w * (y - mu)) / max(np.sum(w * mu * (1 - mu)), 1e-300))
            intercept += float(np.clip(step, -4, 4))
            if abs(step) < 1e-9:
                break
        eta = intercept + offset
        return intercept, float(np.sum(w * (y * eta - np.logaddexp(0, eta))))
    if not offset.size:
        return float(np.log(max(mean, 1e-10))), total * (mean * float(np.log(max(mean, 1e-300))) - mean)
    shift = float(offset.max())
    intercept = float(np.log(max(np.sum(w * y), 1e-10) / np.sum(w * np.exp(offset - shift)))) - shift
    eta = intercept + offset
    return intercept, float(np.sum(w * (y * eta - np.exp(eta))))
