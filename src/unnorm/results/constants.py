"""The constants of a fit, checked: what `Fit.check_normaliser` computes, and `un.fit` at a few contexts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..data.observations import Observations
from ..errors import InputError
from .draws import reference_on
from .fit import Fit, rule_order
from .fitted_terms import chi_at
from .normaliser_check import NormaliserCheck, check_normaliser
from .smooths import SmoothPart


def check_constants(fit: Fit, contexts: int, obs: Observations | None, order: int | None) -> NormaliserCheck:
    """χ̂ against the integrals; of anchored constants the rule's error, δ̂ and the tests that it is constant."""
    density, own = fit.density, obs is None
    obs = fit.obs if obs is None else obs
    if obs is None:
        raise InputError("A loaded fit has no observations: pass obs=, e.g. those that were fitted.")
    part, chi = fit.smooths, fit.nu
    refine = order is None  # an order that is given is kept
    order = rule_order(fit) if order is None else order
    proposal = reference_on(density.domain, fit.diagnostics.get("law"))
    if (anchoring := fit.anchoring) is not None:
        if own:
            return replace(check_normaliser(density, obs, chi, contexts, order, refine=refine), anchoring=anchoring)
        delta = np.full(obs.n, anchoring.delta) if part is None else chi_at(fit, part, obs)
        check = check_normaliser(density, obs, delta - obs.offsets, contexts, order, refine=refine)
        return replace(check, chi=check.chi + check.integral, anchoring=anchoring)
    of_context = part is not None and bool(part.normaliser_labels)
    if part is not None and of_context and not own:
        chi = chi_at(fit, part, obs)
    free = fit.nu.size > 1 and not of_context and not fit.is_likelihood
    check = check_normaliser(density, obs, chi, contexts, order, free, proposal, refine)
    if part is None or not of_context:
        known = fit.nu_se is not None and fit.nu_se.size == 1 and not obs.has_context
        noise = float(fit.nu_se[0]) if known and fit.nu_se is not None else 0.0
        return replace(check, noise=noise, n=float(fit.n))
    noise = fit.diagnostics["gap_noise"] if "gap_noise" in fit.diagnostics else gap_noise(fit)
    return replace(check, noise=noise, edf=chi_edf(part), n=float(fit.n))


def worst(fits: Mapping[str, Fit]) -> str:
    """The name of the fit whose constants are the least to be trusted, one that failed its check where any did."""

    def severity(fit: Fit) -> tuple[bool, float, float]:
        if fit.anchoring is not None:
            return fit.constants_failed, *fit.anchoring.severity
        return fit.constants_failed, float(fit.diagnostics.get("constants_bias", 0.0)), 0.0

    return max(fits, key=lambda name: severity(fits[name]))


def gap_noise(fit: Fit) -> float:
    """The standard error of χ̂ + log Ẑ about its mean, rms over the contexts.

    At the estimate a context's residual r_t moves χ + log Z by r_t/w̄ there, w̄ the mean over contexts of Σ_rows w, and
    χ keeps edf of n such directions: sd(r)/w̄ √(edf/n).
    """
    part, scores = fit.smooths, None if fit.solution is None else fit.solution.scores
    rows = None if scores is None else scores.as_rows()
    if rows is None or part is None or not part.normaliser_labels:
        return 0.0
    r, w = np.zeros(fit.n_rows), 0.0
    for block in rows.blocks():
        slope, curvature = block.slopes()
        r += np.bincount(block.at, slope, fit.n_rows)
        w += float(curvature.sum())
    return float(np.sqrt(np.mean(r**2)) / (w / fit.n_rows) * np.sqrt(chi_edf(part) / fit.n_rows))


def chi_edf(part: SmoothPart) -> float:
    """Effective degrees of freedom of χ, its level aside."""
    return sum(part.edf.get(label, part.term(label).size) for label in part.normaliser_labels)
