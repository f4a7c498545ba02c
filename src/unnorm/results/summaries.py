"""Fits as texts for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.counts import counted, several
from .._base.intervals import quantile

if TYPE_CHECKING:
    from ..inference.sandwich import ErrorParts
    from .fit import Fit


def is_relative(fit: Fit) -> bool:
    """Whether the weights were no counts (`weights="relative"`)."""
    return fit.settings.get("weights") == "relative"


def fit_summary(fit: Fit, level: float = 0.95) -> str:
    """What was fitted, the estimates with their errors, smooth terms with edf and p-values, and the notes."""
    s = fit.settings
    unit = "transitions" if fit.kind == "transitions" else "observations"
    lines = [
        f"{s['model']['model']} on {s['model']['domain'].get('domain', '?')}, "
        + counted(fit.n, fit.n_rows, unit)
        + (f", independent by cluster: {fit.diagnostics['clusters']:,}" if "clusters" in fit.diagnostics else ""),
        f"objective {s['objective']['objective']}, normaliser {s['normaliser']['normaliser']}"
        + (f" {s['normaliser']['terms']}" if "terms" in s["normaliser"] else ""),
        f"{'converged' if fit.converged else 'NOT CONVERGED'} after {fit.iterations} steps: {fit.reason}",
    ]
    if fit.names:
        lines += ["", *_parameters(fit, level)]
    if fit.smooths is not None and len(fit.smooths.table["term"]):
        lines += ["", *_smooth_terms(fit)]
    if fit.errors is not None:
        lines.append(_kind_of_errors(fit, fit.errors))
    lines += ["", *_constants(fit)]
    if fit.constants is not None:
        lines.append(f"constants {'FAIL' if fit.constants_failed else 'checked'}: {fit.constants}")
    what = "log-likelihood" if fit.is_likelihood else "log-likelihood of the contrast"
    with_aic = fit.is_likelihood and not is_relative(fit)
    if np.isnan(fit.loglik):
        lines.append("log-likelihood not computed")
    else:
        lines.append(f"{what} {fit.loglik:.6g}" + (f", AIC {fit.aic:.6g}" if with_aic else ""))
    reference = fit.diagnostics.get("reference")
    if reference is not None:
        m = fit.diagnostics.get("m")  # None where points are drawn afresh at every step
        lines.append(f"reference: {reference}" + ("" if m is None else f"; {m:,} points, {fit.diagnostics['points']}"))
    return "\n".join([*lines, *[f"note: {note}" for note in fit.notes]])


def _kind_of_errors(fit: Fit, errors: ErrorParts) -> str:
    """What the standard errors above rest on, and where the other kind is."""
    by_cluster = fit.settings["objective"].get("cluster") is not None
    scores = "clusters" if by_cluster else "single observations"
    if not fit.assumes_model:
        return f"Standard errors are robust: from the scores of {scores}."
    more = errors.robust is not None and errors.robust.refusal is None
    kind = "Standard errors assume the model" + (" and independent observations" if by_cluster else "")
    return kind + (f"; robust ones, from the scores of {scores}: tidy(robust=True)." if more else ".")


def _parameters(fit: Fit, level: float) -> list[str]:
    if not fit.has_covariance:
        return [f"{several(len(fit.names), 'parameter')}, without standard errors; their values are in fit.theta"]
    z = quantile(level, fit.df)
    parts = fit.errors is not None and fit.errors.points
    wide = max(20, *(len(name) for name in fit.names))
    head = f"{'term':<{wide}} {'estimate':>12} {'se':>10} {'lower':>12} {'upper':>12}"
    lines = [head + (f" {'of which: data':>15} {'points':>9}" if parts else "")]
    for i, (name, value, error) in enumerate(zip(fit.names, fit.estimate, fit.se)):
        line = f"{name:<{wide}} {value:>12.5g} {error:>10.3g} {value - z * error:>12.5g} {value + z * error:>12.5g}"
        if fit.errors is not None and parts:
            data, points = (np.sqrt(max(V[i, i], 0.0)) for V in (fit.errors.sampling, fit.errors.reference))
            line += f" {data:>15.3g} {points:>9.2g}"
        lines.append(line)
    return lines


def _smooth_terms(fit: Fit) -> list[str]:
    assert fit.smooths is not None
    table = fit.smooths.table
    lines = [f"{'smooth term':<24} {'edf':>8} {'ref df':>8} {'statistic':>11} {'p':>10}"]
    rows = zip(table["term"], table["edf"], table["ref_df"], table["statistic"], table["p"])
    return lines + [f"{t!s:<24} {e:>8.3f} {d:>8.3f} {x:>11.4g} {p:>10.3g}" for t, e, d, x, p in rows]


def _constants(fit: Fit) -> list[str]:
    if fit.nu.size == 0:
        return ["normalising constants cancel in this objective"]
    if fit.nu.size == 1:
        known = fit.nu_se is not None and fit.nu_se[0] > 0
        return [f"ν = {fit.nu[0]:.5g}" + (f" (se {fit.nu_se[0]:.3g})" if known and fit.nu_se is not None else "")]
    return [f"normalising constants ν: {fit.nu.size:,}, from {fit.nu.min():.4g} to {fit.nu.max():.4g}"]
