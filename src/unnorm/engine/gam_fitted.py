"""A `Gam` at its fitted rows: log-likelihood, residuals, a term's values, the design some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InputError, unknown
from . import gam_effects, gam_levels, gam_predict

if TYPE_CHECKING:
    from .gam_result import Gam

RESIDUALS = ("deviance", "pearson", "response", "working")


def loglik(fit: Gam) -> float:
    """See `Gam.loglik`."""
    if not fit.distribution.likelihood:
        return float("nan")
    if fit.whole is not None:
        return fit.smoothed.loglik
    if not fit.smoothed.scale_known:
        w = np.ones(1) if fit.weights is None else fit.weights[fit.weights > 0.0]
        n, D = fit.n, fit.deviance
        return -0.5 * (n * (np.log(2.0 * np.pi * D / n) + 1.0) - float(np.sum(np.log(w))))
    total = 0.0
    for rows in gam_predict.chunks(fit.y.size):
        mu = fit.distribution.mean(fit.linear_predictor[rows])
        w = np.ones(mu.size) if fit.weights is None else fit.weights[rows]
        total += fit.distribution.loglik(fit.y[rows], mu, w)
    return total


# --- methods of `Gam` -------------------------------------------------------------------------------------------------


def residuals(self: Gam, kind: Literal["deviance", "pearson", "response", "working"] = "deviance") -> np.ndarray:
    """Residuals at the fitted rows: sign(y − μ)√(w d), (y − μ)√(w/v), y − μ, or (y − μ) dη/dμ.

    Args:
        kind: "deviance", "pearson", "response" or "working".
    """
    if kind not in RESIDUALS:
        raise InputError(unknown("kind", kind, RESIDUALS))
    mu = self.fitted
    raw = self.y - mu
    if kind == "response":
        return raw
    if kind == "working":
        return raw / self.distribution.slope(self.linear_predictor)
    w = 1.0 if self.weights is None else self.weights
    if kind == "pearson":
        return raw * np.sqrt(w / self.distribution.variance(mu))
    return np.sign(raw) * np.sqrt(np.maximum(w * self.distribution.unit_deviance(self.y, mu), 0.0))


def term_values(self: Gam, label: str) -> np.ndarray:
    """One term's contribution to η at the fitted rows.

    Args:
        label: the term.
    """
    term = self.term(label)
    beta = self.smoothed.beta[self.smoothed.slices[term.label]]
    out = np.empty(self.y.size)
    for here in gam_predict.chunks(out.size):
        columns = {name: self.columns[name][here] for name in term.covariates}
        if self.smoothed.wide:
            flat = self.smoothed.design.to_flat(self.smoothed.beta)
            out[here] = gam_levels.term_rows(self, term, columns).dot(flat)
        else:
            out[here] = term.design(columns) @ beta
    known = gam_effects.known(term, {name: self.columns[name] for name in term.covariates})
    return out if known is None else out + known


def gram(self: Gam, most: int | None = None) -> np.ndarray:
    """XᵀX over the fitted rows (over `most` evenly spread ones), in chunks.

    Args:
        most: rows at most; None for all.
    """
    G = np.zeros((self.smoothed.size, self.smoothed.size))
    for _, X in design_chunks(self, 1 if most is None else -(-self.y.size // most)):
        G += X.T @ X
    return G


def design_chunks(self: Gam, step: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
    """The dense design at every `step`-th fitted row, some rows at a time.

    Args:
        step: 1 for every row, 2 for every second one, …
    """
    rows = step * max(1, min(gam_predict.CHUNK, gam_predict.HELD // max(self.smoothed.size, 1)))
    for first in range(0, self.y.size, rows):
        here = slice(first, min(self.y.size, first + rows), step)
        columns = {name: column[here] for name, column in self.columns.items()}
        yield here, gam_predict.design(self, columns, self.y[here].size)
