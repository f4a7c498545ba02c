"""What the reference points cost the population's curves, and how many would do: `advise` of a joint fit.

As for a separate fit (objectives/evidence.py), with the arrowhead of all levels in place of one Hessian: with c times
as many points a reference row's log-odds fall by log c and it counts c times, and the main effects' covariance follows
from the rows at hand, the smoothing parameters kept. Deviations between levels do not shrink with c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.numerics import quadratic_forms
from .._base.threads import spread
from ..engine import gam_effects
from ..engine.arrow import Arrow
from ..engine.families import FAMILIES
from ..engine.segment import Rows
from ..inference.evidence import contrast_evidence
from ..inference.sandwich import ErrorParts
from ..results.smooths import SmoothPart
from .joint import Joint, Member, pull

GAUSSIAN = FAMILIES["gaussian"]  # whose pass gives XᵀDX


def weighted(member: Member, weights: np.ndarray) -> np.ndarray:
    """XᵀDX of a level's rows."""
    rows = Rows(np.zeros(weights.size), np.ascontiguousarray(weights), np.empty(0))
    return member.design.sweep(rows, GAUSSIAN, np.zeros(member.design.size))[2].shared


def joint_evidence(joint: Joint, part: SmoothPart, family: str, widened: float, threads: int) -> dict[str, Any]:
    """Variances are means over each term's grid; `widened`: what few levels add to the sampling variance."""
    design, f = joint.design, slice(1, 1 + joint.design.q)
    logistic = family == "binomial"
    etas = [joint.predictor(s) for s in range(len(design.members))]
    ones = [m.rows.weights if m.rows.weights.size else np.ones(m.data.size) for m in design.members]
    lam = np.array([joint.sp[label] for label in design.penalties.labels])
    penalty = design.penalties.blocks(lam)
    grids = [(joint.slices[t.label], gam_effects.design(t, part.grids[t.label])) for t in joint.terms]

    def means(V: np.ndarray) -> np.ndarray:
        return np.array([quadratic_forms(C, V[at, at]).mean() for at, C in grids])

    def parts(c: float) -> tuple[np.ndarray, np.ndarray]:
        def one(member: Member, eta: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean = 1 / (1 + np.exp(np.log(c) - eta)) if logistic else np.exp(np.minimum(eta, 700.0))
            curvature = w * mean * (1 - mean) if logistic else w * mean
            times = np.where(member.data, 1.0, c) if logistic else np.ones(eta.size)
            r = np.where(member.data, 0.0, w * mean)
            share = times if logistic else 1 / c
            return weighted(member, curvature * times), weighted(member, share * r**2)

        found = spread(one, list(zip(design.members, etas, ones)), threads)
        own = tuple(A for A, _ in found)
        shared = np.sum([A[f, f] for A in own], axis=0)
        inverse = Arrow(shared, own, tuple(np.ascontiguousarray(A[:, f]) for A in own)).plus(penalty).invert()
        pulls = [pull(inverse, s) for s in range(len(own))]
        reference = means(joint.turned(np.sum([K @ M @ K.T for K, (_, M) in zip(pulls, found)], axis=0)))
        full = means(joint.turned(inverse.sigma))
        return (reference + widened * np.maximum(full - reference, 0.0) if logistic else widened * full), reference

    inner = slice(1, None)
    total, reference = (means(V[inner, inner]) for V in (part.errors.total, part.errors.reference))
    errors = ErrorParts(np.diag(total), np.diag(total - reference), np.diag(reference))
    eta, data = np.concatenate(etas), np.concatenate([member.data for member in design.members])
    found = contrast_evidence(
        [term.label for term in joint.terms],
        parts,
        errors,
        logistic,
        eta if logistic else None,
        data,
        value=joint.loglik,
        penalty=None,  # the deviations are random: there is no one count of what was estimated
    )
    if not logistic:
        mass = eta[~data] + np.log(np.concatenate(ones)[~data])
        mass = np.exp(mass - mass.max())
        found["effective"] = float(mass.sum() ** 2 / (mass @ mass) / len(mass))
    return found
