"""Draws from the posterior of a `Gam`, derivatives of its smooths, and differences between levels, with bands.

β | y ≈ N(β̂, V), V the Bayesian covariance (or V_c, with the smoothing parameters' uncertainty): every function of the
coefficients has a posterior by drawing them, and those that are linear in them, Cβ, have it exactly, N(Cβ̂, CVCᵀ).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .._base import numerics
from ..errors import CombinationError, InputError
from . import gam_effects, gam_predict, inference

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .gam_result import Gam


def coefficients(fit: Gam, n: int, unconditional: bool, rng: Any) -> np.ndarray:
    """(n, p) draws of β."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number of draws, at least 1; got {n!r}.")
    values, vectors = np.linalg.eigh(fit.vcov(unconditional=unconditional))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return fit.smoothed.beta + numerics.generator(rng).standard_normal((int(n), values.size)) @ root.T


def draws(fit: Gam, n: int, data: Any, kind: str, offset: Any, unconditional: bool, rng: Any) -> np.ndarray:
    """(n, rows) draws of η or μ at rows; (n, p) of β for kind="coefficients"."""
    beta = coefficients(fit, n, unconditional, rng)
    if kind == "coefficients":
        return beta
    if kind not in ("link", "response"):
        raise InputError(f"kind must be 'coefficients', 'link' or 'response'; got {kind!r}.")
    at = gam_predict.rows_of(fit, data, offset, fit.covariates)
    out = np.empty((len(beta), at.n))
    for here in gam_predict.chunks(at.n):
        part = {name: column[here] for name, column in at.columns.items()}
        out[:, here] = beta @ gam_predict.design(fit, part, here.stop - here.start).T
    if at.offset is not None:
        out += at.offset
    return fit.distribution.mean(out) if kind == "response" else out


def derivative_columns(term: BuiltTerm, points: Columns, name: str, order: int, width: float) -> np.ndarray:
    """C (r, p) with Cβ = ∂^order f/∂name^order, by central differences of the basis: of relative error about 1e-7 for
    the first and 1e-5 for the second, far below a standard error."""

    def shifted(by: float) -> np.ndarray:
        return gam_effects.design(term, {**points, name: points[name] + by})

    h = width * (1e-5 if order == 1 else 1e-3)
    if order == 1:
        return (shifted(h) - shifted(-h)) / (2 * h)
    return (shifted(h) - 2 * gam_effects.design(term, points) + shifted(-h)) / h**2


# long: the arguments of the public method
def derivative(
    fit: Gam, label: str, at: Any, of: str | None, order: int, level: float, simultaneous: bool, unconditional: bool,
    rng: Any,
) -> dict[str, np.ndarray]:  # fmt: skip
    """See `Gam.derivative`."""
    term = fit.term(label)
    numeric = [name for name in term.smooth_covariates if gam_effects.is_numeric(fit.columns[name])]
    if not numeric:
        raise CombinationError(f"{term.label} has no numeric covariate to differentiate by.")
    name = numeric[0] if of is None and len(numeric) == 1 else of
    if name not in numeric:
        raise InputError(
            f"of= must name one of {', '.join(map(repr, numeric))}, covariates of {term.label}; got {of!r}."
        )
    if order not in (1, 2):
        raise InputError(f"order must be 1 or 2; got {order!r}.")
    points = gam_effects.grid(term, fit.columns) if at is None else gam_effects.read_at(term, at)
    C = derivative_columns(term, points, name, order, float(np.ptp(fit.columns[name])) or 1.0)
    span = fit.smoothed.slices[term.label]
    V = fit.vcov(unconditional=unconditional)[span, span]
    return {**points, **_banded(C, fit.smoothed.beta[span], V, level, simultaneous, rng)}


def difference(
    fit: Gam, first: str, second: str, at: Any, level: float, simultaneous: bool, unconditional: bool, rng: Any
) -> dict[str, np.ndarray]:
    """f_first − f_second at the same points of their common covariates; see `Gam.difference`."""
    a, b = fit.term(first), fit.term(second)
    if gam_effects.coordinates(a) != gam_effects.coordinates(b):
        raise CombinationError(
            f"{a.label} and {b.label} are functions of different covariates: {gam_effects.coordinates(a)} and "
            f"{gam_effects.coordinates(b)}. Compare levels of one smooth, e.g. 's(x):ga' and 's(x):gb'."
        )
    points = gam_effects.grid(a, fit.columns) if at is None else gam_effects.read_at(a, at)
    n = next(iter(points.values())).size
    C = np.zeros((n, fit.smoothed.size))
    C[:, fit.smoothed.slices[a.label]] += gam_effects.design(a, points)
    C[:, fit.smoothed.slices[b.label]] -= gam_effects.design(b, points)
    V = fit.vcov(unconditional=unconditional)
    return {**points, **_banded(C, fit.smoothed.beta, V, level, simultaneous, rng)}


def _banded(
    C: np.ndarray, beta: np.ndarray, V: np.ndarray, level: float, simultaneous: bool, rng: Any
) -> dict[str, np.ndarray]:
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1; got {level!r}. Pass e.g. level=0.95.")
    estimate, se = C @ beta, inference.standard_errors(C, V)
    if simultaneous:
        width = inference.simultaneous_multiplier(C, V, level, numerics.generator(rng))
    else:
        width = float(ndtri(0.5 * (1.0 + level)))
    return {"estimate": estimate, "se": se, "lower": estimate - width * se, "upper": estimate + width * se}
