"""The constants of a fit, checked: what `Fit.check_normaliser` computes, and `un.fit` at a few contexts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..data.observations import Observations
from ..errors import InputError
from ..inference.delta_test import DeltaTest, delta_tests
from .draws import reference_on
from .fit import Fit, chi_at
from .normaliser_check import NormaliserCheck, check_normaliser
from .smooths import SmoothPart


def check_constants(fit: Fit, contexts: int, obs: Observations | None, order: int | None) -> NormaliserCheck:
    """χ̂ against the integrals; of anchored constants the rule's error, δ̂ and the tests that it is constant."""
    density, own = fit.density, obs is None
    obs = fit.obs if obs is None else obs
    if obs is None:
        raise InputError("A loaded fit has no observations: pass obs=, e.g. those that were fitted.")
    part, chi = fit.smooths, fit.nu
    order = fit.order if order is None else order
    proposal = reference_on(density.domain, fit.diagnostics.get("law"))
    if fit.anchoring is not None:
        anchoring = fit.anchoring if fit.anchoring.tests is not None else replace(fit.anchoring, tests=tested(fit))
        if own:
            return replace(check_normaliser(density, obs, chi, contexts, order), anchoring=anchoring)
        delta = np.full(obs.n, anchoring.delta) if part is None else chi_at(fit, part, obs)
        check = check_normaliser(density, obs, delta - obs.offsets, contexts, order)
        return replace(check, chi=check.chi + check.integral, anchoring=anchoring)
    of_context = part is not None and bool(part.normaliser_labels)
    if part is not None and of_context and not own:
        chi = chi_at(fit, part, obs)
    free = fit.nu.size > 1 and not of_context and not fit.is_likelihood
    check = check_normaliser(density, obs, chi, contexts, order, free, proposal)
    return replace(check, noise=_noise(fit, part, obs.take(check.rows)) if part is not None and of_context else 0.0)


def _noise(fit: Fit, part: SmoothPart, obs: Observations) -> float:
    """rms over the contexts of the standard error of χ̂, its mean over them taken off."""
    assert fit.model is not None
    C, index = [], []
    for label in part.normaliser_labels:
        term = part.term(label)
        C.append(term.design(fit.model.covariates(obs).values(term.covariates, obs)))
        index.append(np.arange(part.slices[label].start, part.slices[label].stop))
    X, at = np.concatenate(C, axis=1), np.concatenate(index)
    X = X - X.mean(axis=0)
    squares = np.einsum("ij,jk,ik->i", X, part.errors.total[np.ix_(at, at)], X)
    return float(np.sqrt(np.mean(np.maximum(squares, 0.0))))


def tested(fit: Fit, most: float = np.inf) -> Mapping[str, DeltaTest] | None:
    """The tests that δ is constant, for each context column; None where the fit has no rows, or more than `most`.

    `most`: rows times coefficients, to which the cost is proportional.
    """
    scores = None if fit.solution is None or fit.solution.scores is None else fit.solution.scores.as_rows()
    if scores is None or scores.level is None or fit.obs is None:
        return None
    rows = fit.diagnostics["m"] + fit.rows
    return delta_tests(scores, fit.obs.context) if rows * scores.size <= most else None
