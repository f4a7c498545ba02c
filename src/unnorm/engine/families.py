"""The likelihoods: constants, saturated log-likelihoods, null deviances, and what their responses must be.

With θ known a negative binomial response is a binomial one: y log μ − (y + θ) log(θ + μ) is, but for a constant,
(y + θ){ȳ η̄ − log(1 + e^η̄)} with ȳ = y/(y + θ) and η̄ = η − log θ (`working_rows`). Quasi-Poisson rows are Poisson's, and
their log-likelihood is −D/2, so that the scale comes in as it does for a Gaussian response.
"""

from __future__ import annotations

import numpy as np

from ..errors import DataError, InputError, unknown
from .segment import ResponseRows

FAMILIES = {"binomial": 0, "poisson": 1, "gaussian": 2, "nb": 0, "quasipoisson": 1}  # the codes of kernels.py
BINOMIAL, POISSON = FAMILIES["binomial"], FAMILIES["poisson"]
LINKS = {"probit": 3, "cloglog": 4}  # of a binomial response, beside the logit
UNKNOWN_SCALE = ("gaussian", "quasipoisson")


def code_of(family: str, link: str | None) -> int:
    """The kernels' number for a likelihood; `link` is None where it is the family's own."""
    return FAMILIES[family] if link is None else LINKS[link]


def working_rows(family: str, rows: ResponseRows, theta: float | None) -> ResponseRows:
    """The rows as the kernels see them."""
    if family != "nb":
        return rows
    assert theta is not None
    total = rows.y + theta
    w = total * rows.weights if rows.weights.size else total
    offset = rows.offset if rows.offset.size else np.zeros(rows.y.size)
    return ResponseRows(rows.y / total, w, offset - np.log(theta))


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
    if family in ("poisson", "quasipoisson", "nb") and n and y_.min() < 0:
        raise DataError(f"A response of family {family!r} is a count; got {y_.min():g}.")
    return ResponseRows(y_, w_, o_)


def _xlogx(v: np.ndarray) -> np.ndarray:
    return np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0)


def saturated(family: str, rows: ResponseRows) -> float:
    """The largest log-likelihood of working rows, in the kernels' form (without constants)."""
    y = rows.y
    if family == "gaussian" or (family == "binomial" and bool(np.all((y == 0) | (y == 1)))):
        return 0.0
    if family == "nb":  # y/(y + θ) is tiny where θ is large, and the weight y + θ is not
        from scipy.special import xlog1py

        each = _xlogx(y) + xlog1py(1 - y, -y)
    else:
        each = _xlogx(y) + _xlogx(1 - y) if family == "binomial" else _xlogx(y) - y
    return float(np.sum(each * rows.weights if rows.weights.size else each))


def constant(family: str, rows: ResponseRows, theta: float | None = None) -> float:
    """What the kernels' log-likelihood lacks: binomial coefficients, Σ log y!, ½ Σ log weight (the scale's part is
    the criterion's)."""
    y, w = rows.y, rows.weights
    if family in UNKNOWN_SCALE:
        own = 0.5 * float(np.sum(np.log(w[w > 0]))) if w.size else 0.0
        count = int(np.sum(w > 0)) if w.size else y.size
        return (
            own if family == "gaussian" else own + 0.5 * count * float(np.log(2.0 * np.pi))
        )  # mgcv's quasi-likelihood
    from scipy.special import gammaln

    if family == "nb":
        assert theta is not None
        each = log_rising(theta, y) - gammaln(y + 1)
        return float(np.sum(each * w if w.size else each))

    if family == "binomial":
        if not w.size:
            return 0.0
        return float(np.sum(gammaln(w + 1) - gammaln(w * y + 1) - gammaln(w * (1 - y) + 1)))
    each = gammaln(y + 1)
    return -float(np.sum(each * w if w.size else each))


def log_rising(theta: float, y: np.ndarray) -> np.ndarray:
    """log Γ(y + θ) − log Γ(θ); by Stirling's series where θ is so large that their difference would be rounding."""
    from scipy.special import gammaln

    if theta < 1e4:
        return gammaln(y + theta) - gammaln(theta)
    total = y + theta
    return (total - 0.5) * np.log1p(y / theta) + y * (np.log(theta) - 1.0) + (1.0 / total - 1.0 / theta) / 12.0


def null_fit(family: str, rows: ResponseRows, link: str | None = None) -> tuple[float, float]:
    """The intercept of the model with nothing else but the offset, and its log-likelihood (kernels' form)."""
    if link is not None:
        return _null_by_scoring(family, link, rows)
    y = rows.y
    w = rows.weights if rows.weights.size else np.ones(1)
    total = float(np.sum(w)) if rows.weights.size else float(y.size)
    mean = float(np.sum(w * y)) / total
    offset = rows.offset
    if family == "gaussian":
        left = y - offset if offset.size else y
        intercept = float(np.sum(w * left)) / total
        return intercept, -0.5 * float(np.sum(w * (left - intercept) ** 2))
    if family in ("binomial", "nb"):
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


def pearson_scale(rows: ResponseRows, eta: np.ndarray, left: float) -> float:
    """φ of quasi-Poisson rows: Pearson's statistic over its degrees of freedom, by Fletcher's (2012) correction for
    small counts, as in mgcv."""
    mu = np.exp(eta + rows.offset if rows.offset.size else eta)
    w = rows.weights if rows.weights.size else np.ones(mu.size)
    bar = float(np.mean((rows.y - mu) * np.sqrt(w) / mu))
    return float(np.sum(w * (rows.y - mu) ** 2 / mu)) / max(left, 1e-300) / (1.0 + max(-0.9, bar))


def _null_by_scoring(family: str, link: str, rows: ResponseRows) -> tuple[float, float]:
    """Fisher's scoring for the intercept under any link."""
    from .response import response

    distribution = response(family, link)
    w = rows.weights if rows.weights.size else np.ones(rows.y.size)
    offset = rows.offset if rows.offset.size else np.zeros(rows.y.size)
    mean = float(np.clip(np.sum(w * rows.y) / np.sum(w), 1e-10, 1 - 1e-10))
    intercept = distribution.link_of(mean) - float(np.mean(offset))
    for _ in range(100):
        eta = intercept + offset
        mu = np.clip(distribution.mean(eta), 1e-15, 1 - 1e-15)
        slope, v = distribution.slope(eta), distribution.variance(mu)
        step = float(np.sum(w * (rows.y - mu) * slope / v) / max(np.sum(w * slope**2 / v), 1e-300))
        intercept += float(np.clip(step, -2, 2))
        if abs(step) < 1e-9:
            break
    mu = np.clip(distribution.mean(intercept + offset), 1e-15, 1 - 1e-15)
    return intercept, float(np.sum(w * (rows.y * np.log(mu) + (1 - rows.y) * np.log1p(-mu))))
