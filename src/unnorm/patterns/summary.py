"""A fitted pattern as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .result import PatternFit


def summary(fit: PatternFit) -> str:
    """Model, coefficients with errors, smooth terms, and notes."""
    fitted, pattern = fit.fitted, fit.pattern
    rows, data = fitted.places.n, int(fitted.data.sum())
    kind = "Poisson process" if fit.poisson else f"Gibbs process, {fitted.model.interaction!r}"
    lines = [
        f"{kind}: log λ = {fitted.model.terms}",
        f"{pattern!r}",
        f"{data:,} data and {rows - data:,} dummy points ({fitted.dummies.design})"
        + ("" if fit.poisson else f", correction: {fitted.model.correction}"),
        "",
        f"{'':<20}{'estimate':>12}{'se':>11}{'se from dummies':>17}{'z':>9}",
    ]
    se, share = fit.se, np.sqrt(np.maximum(np.diag(fit.errors.reference), 0.0))
    lines += [
        f"{fit.names[k]:<20}{fit.estimate[k]:>12.6g}{se[k]:>11.4g}{share[k]:>17.3g}{fit.estimate[k] / se[k]:>9.2f}"
        for k in fit.parametric
    ]
    smooths = [term.label for term in fitted.gam.smooths]
    if smooths:
        lines += ["", f"{'smooth terms':<20}{'edf':>12}"]
        lines += [f"{label:<20}{fit.edf[label]:>12.2f}" for label in smooths]
    if fitted.model.interaction is not None and fitted.model.interaction.multiplies:
        (name,) = fitted.model.statistics
        lines.append(f"γ = exp({name}) = {np.exp(fit.theta[name]):.4g}")
    return "\n".join([*lines, *(f"note: {note}" for note in fit.notes)])
