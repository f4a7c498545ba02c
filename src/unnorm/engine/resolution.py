"""Are compact columns fine enough for what the rows know?

Splines on fewer breaks and products on grids stand for a term's own columns to some 1e-4 of their size, far below the
standard errors, unless the rows know the curves almost to that: counts of 10⁵ in thousands of rows, responses with
hardly any noise. There the fit is made again with columns to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..terms.base import Columns
    from .response import Response
    from .smoothed import Smoothed

_APART = 0.02  # standard errors, rms over the rows, by which they may move the linear predictor
_NATS = 0.01  # by which they may move the likelihood: as much as the search for minima looks at
_FEW = 5_000  # rows up to which it is asked too, and all of them are measured
_SOME = 2_000  # of more rows
_ROUNDING = 1e-12  # relative errors of columns that are none
_WIDE = 500  # columns of a term up to which it is measured


def too_coarse(
    fit: Smoothed, distribution: Response, columns: Columns, y: np.ndarray, weights: np.ndarray | None
) -> bool:
    """Whether Σ w d²/φ > .02² tr F for d = (X̃ − X)β̂, X̃ the compact columns: .02 standard errors, rms. Where rows are
    few, also whether d is worth nats, as it may be where the curves are too smooth for the rows."""
    design, enough = fit.design, _APART**2 * float(fit.edf.sum()) * fit.scale
    coarse = [term for term in design.terms if design.errors.get(term.label, 0.0) > _ROUNDING and term.size <= _WIDE]
    approximate, most = np.zeros_like(fit.beta), 0.0
    for term in coarse:
        span, beta = fit.slices[term.label], np.zeros_like(fit.beta)
        approximate[span] = beta[span] = fit.beta[span]
        flat = design.to_flat(beta)
        most += design.errors[term.label] * max(float(flat @ fit.cross.dot(flat)), 0.0) ** 0.5
    few = design.rows <= _FEW
    if not coarse or (most**2 <= enough and not few):
        return False
    part, taken = design.every(1 if few else design.rows // _SOME)
    rows = taken if design.order is None else design.order[taken]
    some = {name: np.asarray(column)[rows] for name, column in columns.items()}
    apart = part.predict(design.to_flat(approximate))
    for term in coarse:
        apart -= term.design(some) @ fit.beta[fit.slices[term.label]]
    eta = part.predict(design.to_flat(fit.beta)) + (fit.offset[rows] if fit.offset.size else 0.0)
    w, mu = np.ones(rows.size) if weights is None else weights[rows], distribution.mean(eta)
    precision = w * distribution.slope(eta) ** 2 / np.maximum(distribution.variance(mu), 1e-300)
    if float(precision @ apart**2) * design.rows > enough * rows.size:
        return True
    there, here = (distribution.unit_deviance(y[rows], mean) for mean in (distribution.mean(eta - apart), mu))
    return few and abs(float(w @ (there - here))) > 2.0 * _NATS * fit.scale
