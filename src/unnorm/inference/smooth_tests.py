"""Tests of smooth terms against zero, with the covariance that the fit itself reports."""

from __future__ import annotations

import numpy as np

from ..engine import gam_effects
from ..engine.inference import Curvature, random_test, smooth_test
from ..objectives.scores import Scores
from ..solvers.base import FittedTerms
from .sandwich import ErrorParts, bread


def smooth_tests(fitted: FittedTerms, scores: Scores, errors: ErrorParts) -> dict[str, np.ndarray]:
    """Each smooth term: edf, reference df, statistic and p, as in mgcv's `summary` (Wood 2013).

    mgcv sets f̂ against V = (A + S)⁻¹, and a term whose every direction is penalised against V A V. These hold where A
    is the variance of the score; with reference points it is not (it is A − Σ1 + Σ2), so that here the fit's own
    covariance, V (Σ1 + Σ2 + S) V, and its part V (Σ1 + Σ2) V stand in their place. λ is taken as known, as in mgcv.
    Where the variance was estimated between S levels, the reference is F with S − 1 degrees of freedom.
    """
    V, A = bread(scores), scores.information
    S = np.zeros_like(A) if scores.penalty is None else scores.penalty
    total = (errors.total if errors.smoothing is None else errors.total - errors.smoothing) / scores.widened
    curvature = Curvature(A, S, V, V_e=total - V @ S @ V)
    smooths = [term for term in fitted.terms if not term.parametric]
    indices = {term.label: np.arange(*fitted.slices[term.label].indices(len(A))) for term in smooths}
    random = [term.label for term in smooths if gam_effects.is_random(term)]
    rows = []
    for term in smooths:
        index = indices[term.label]
        if term.penalties and term.null_dim == 0:
            rest = [indices[label] for label in random if label != term.label]
            others = np.concatenate(rest) if rest else np.empty(0, dtype=np.int64)
            test = random_test(index, fitted.beta, curvature, others, scores.between)
        else:
            here = np.ix_(index, index)
            test = smooth_test(fitted.beta[index], A[here], total[here], fitted.edf1[term.label], scores.between)
        rows.append((fitted.edf[term.label], test.df, test.statistic, test.p))
    table = {"term": np.array([term.label for term in smooths], dtype=np.str_)}
    columns = np.array(rows, dtype=float).reshape(-1, 4).T
    return table | dict(zip(("edf", "ref_df", "statistic", "p"), columns))
