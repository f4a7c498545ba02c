"""The population's curves as a `Fit`: the joint fit's main effects, with the reference points' share of their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data import Observations
from ..engine import gam_effects, inference
from ..engine.gam_result import Gam
from ..engine.segment import Rows
from ..engine.smoothed import INTERCEPT
from ..errors import CombinationError, InputError
from ..models.base import Unnormalised
from ..objectives.base import Objective
from ..objectives.sandwich import ErrorParts
from ..results import Fit
from ..smooths import SmoothPart
from ..solvers.smoothing import Smoothing
from ..terms.specs import Terms
from .joint import Joint, common_rows, fit_joint
from .threads import spread


def population(
    by: str,
    fits: Mapping[str, Fit],
    model: Unnormalised,
    obs: Observations,
    objective: Objective | None,
    smoothing: Smoothing,
    seed: int,
    threads: int,
) -> Fit:
    """The group's fit, from the rows of the separate ones."""
    gams: dict[str, Gam] = {}
    for level, one in fits.items():
        if one.smooths is None or one.smooths.gam is None:
            raise CombinationError(
                "the joint fit needs an objective with rows (Logistic, Importance or Poisson) and smooth or linear terms "
                "in f or χ."
            )
        gams[level] = one.smooths.gam
    if len(gams) < 2:
        raise InputError(f"a population needs at least two levels of {by!r}; there is {len(gams)}.")
    first = next(iter(fits.values()))
    part = first.smooths
    assert part is not None
    terms, count = _terms(model, first, gams, by)
    known = model.covariates(obs)
    columns = common_rows(gams, terms.columns)
    periods = {name: known.period(name) for name in terms.columns if name in known and known.period(name)}
    knots = {**getattr(model, "knots", {}), **_normaliser_knots(first)}
    built = tuple(terms.build(columns, knots=knots, periods=periods))
    mine = [term for term in built if term.label in set(part.model_labels)]
    if len(mine) != len(part.model_labels) or [t.label for t in built[: len(mine)]] != [t.label for t in mine]:
        raise CombinationError("the terms of f differ between the levels, so that they have no common curve.")
    joint = fit_joint(gams, built, len(mine), by, smoothing.method != "ml", threads)
    errors, measured = _errors(joint, gams, fits, first, threads)
    return _fit(by, joint, errors, first, model, obs, columns, seed, smoothing, measured)


def _terms(model: Unnormalised, first: Fit, gams: Mapping[str, Gam], by: str) -> tuple[Terms, int]:
    """f's terms, then χ's, as they were specified."""
    specified = getattr(model, "terms", None)
    if specified is None:
        raise CombinationError("only models with terms (un.Additive) have population curves.")
    if by in specified.columns:
        raise CombinationError(f"the model's own terms already read {by!r}.")
    normaliser = _normaliser_terms(first)
    return (specified if normaliser is None else specified + normaliser), len(specified.terms)


def _normaliser_terms(fit: Fit) -> Terms | None:
    from ..terms import parse

    about = fit.settings["normaliser"]
    return parse(about["terms"]) if "terms" in about else None


def _normaliser_knots(fit: Fit) -> dict[str, Any]:
    return dict(fit.settings["normaliser"].get("knots", {}))


def _errors(
    joint: Joint, gams: Mapping[str, Gam], fits: Mapping[str, Fit], first: Fit, threads: int
) -> tuple[ErrorParts, bool]:
    """V less what IID reference points would have added, plus what these points added: Σ_s K_s Σ2_s K_sᵀ.

    K_s carries a score of level s's rows to the main effects. Σ2_s(IID) = Σ r rᵀ over the reference rows. Where the
    points are not IID, level s's own fit has measured Σ2_s by redraws; its ratio to IID, term by term on the diagonal, is
    taken over to the common basis.
    """
    family = next(iter(gams.values())).family
    q = joint.design.q

    def one(s: int, level: str) -> tuple[np.ndarray, np.ndarray]:
        member, gam = joint.design.members[s], gams[level]
        eta = member.design.predict(joint.design.coefficients(joint.flat, s))
        eta = eta + member.rows.offset if member.rows.offset.size else eta
        mean = 1 / (1 + np.exp(-eta)) if family == "binomial" else np.exp(np.minimum(eta, 700.0))
        mean = mean * member.rows.weights if member.rows.weights.size else mean
        slope = np.where(member.data, 0.0, mean)
        rows = Rows(np.zeros(slope.size), np.ascontiguousarray(slope**2), np.empty(0))
        meat = member.design.sweep(rows, 2, np.zeros(member.design.size))[2].shared
        K = joint.pull(s)
        iid = K @ meat @ K.T
        return iid, iid * _shrink(fits[level], gam, q, joint)

    parts = spread(one, [(s, level) for s, level in enumerate(gams)], threads)
    turn = joint.turned
    iid, reference = np.zeros_like(joint.V), np.zeros_like(joint.V)
    iid[1:, 1:] = turn(sum(a for a, _ in parts))
    reference[1:, 1:] = turn(sum(b for _, b in parts))
    total = joint.V - iid + reference if family == "binomial" else joint.V + reference
    floor = 0.05 * np.diag(joint.V)  # a difference of estimates must not claim certainty
    short = np.diag(total) < floor
    total = total + np.diag(np.where(short, floor - np.diag(total), 0.0))
    return ErrorParts(total, total - reference, reference), True


def _shrink(fit: Fit, gam: Gam, q: int, joint: Joint) -> float:
    """Reference variance over what IID points would give, in level s's own fit."""
    return float(fit.diagnostics.get("reference_ratio", 1.0))


def _fit(
    by: str,
    joint: Joint,
    errors: ErrorParts,
    first: Fit,
    model: Unnormalised,
    obs: Observations,
    columns: dict[str, np.ndarray],
    seed: int,
    smoothing: Smoothing,
    measured: bool,
) -> Fit:
    slices = {INTERCEPT: slice(0, 1)} | {label: slice(s.start + 1, s.stop + 1) for label, s in joint.slices.items()}
    smooth = [term for term in joint.terms if not term.parametric]
    tests = []
    for term in smooth:
        span = joint.slices[term.label]
        tests.append(
            inference.smooth_test(
                joint.beta[1:][span],
                joint.information[span, span],
                joint.V[1:, 1:][span, span],
                joint.edf1[term.label],
                None,
            )
        )
    part = SmoothPart(
        terms=joint.terms,
        model_labels=tuple(term.label for term in joint.terms),
        normaliser_labels=(),
        slices=slices,
        beta=joint.beta,
        errors=errors,
        grids={term.label: gam_effects.grid(term, columns) for term in joint.terms},
        edf={term.label: joint.edf[term.label] for term in smooth},
        sp=joint.sp,
        table={
            "term": np.array([term.label for term in smooth], dtype=np.str_),
            "edf": np.array([joint.edf[term.label] for term in smooth]),
            "ref_df": np.array([test.df for test in tests]),
            "statistic": np.array([test.statistic for test in tests]),
            "p": np.array([test.p for test in tests]),
        },
        score=joint.score,
        method="ML" if smoothing.method == "ml" else "REML",
    )
    names, index = [], []
    for term in joint.terms:
        if term.parametric:
            names += list(term.coefficient_names)
            index += list(range(slices[term.label].start, slices[term.label].stop))
    pick = np.ix_(index, index)
    own = ErrorParts(errors.total[pick], errors.sampling[pick], errors.reference[pick])
    notes = [
        f"Main effects of a joint fit of {len(joint.design.members)} levels of {by!r}; bands are for the population's mean."
    ]
    if smoothing.method not in ("reml", "ml"):
        notes.append(
            f"The joint fit chose its smoothness by REML, not by {smoothing.method}: deviations are random effects."
        )
    if not joint.converged:
        notes.append(f"The joint fit did not converge: {joint.reason}")
    return Fit(
        names=tuple(names),
        estimate=joint.beta[index],
        nu=joint.beta[:1],
        nu_se=None,
        loglik=joint.loglik,
        value=-joint.score,
        converged=joint.converged,
        reason=joint.reason,
        iterations=joint.iterations,
        n=obs.n,
        kind=obs.kind,
        settings={**first.settings, "group": {"by": by, "levels": len(joint.design.members)}},
        notes=tuple(notes),
        diagnostics={
            **{k: v for k, v in first.diagnostics.items() if k in ("reference", "points", "k", "law")},
            "rows": joint.design.rows,
            "passes": joint.passes,
            "deviations": joint.deviations,
            "edf_by": "main effects",
        },
        seed=seed,
        model=model,
        obs=obs,
        backend=obs.backend,
        errors=own,
        smooths=part,
        _covariance=own.total,
    )
