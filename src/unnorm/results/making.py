"""Solution → Fit: the one place where a result is made, whatever the solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.counts import several, total
from .._base.numerics import quadratic_forms
from ..data.observations import Observations
from ..errors import InputError, warn
from ..inference.delta_test import DeltaTest, delta_tests
from ..inference.evidence import Evidence, Quantities, evidence, parameters, terms
from ..inference.sandwich import ErrorParts, error_parts, too_few
from ..inference.smooth_tests import smooth_tests
from ..objectives.base import Problem, cluster_labels
from ..objectives.scores import Drawn, Scores
from ..solvers.base import FittedTerms, Solution
from .fit import Fit
from .normaliser_check import Anchoring
from .smooths import SmoothPart, columns_shown, robust_covariance, smooth_part

RELATIVE = "Weights are relative: standard errors are robust, from the scores of single observations (or clusters)."
REMEDY = (
    "This objective has no errors that assume the model: gather more observations, or use objective=un.Exact() where "
    "the domain can be enumerated or integrated."
)
SIMULATED = (
    "fit.errors_of(names, simulated=4000) takes the spread of the scores from draws of the model, which must be right."
)
FEW, MANY = "The scores of {units} are few for {parameters}: {what}. {remedy}", 10
TOO_SMALL = "below ten for each, standard errors from them are too small by 5 to 30 %"
CORRECTED = (
    "standard errors are corrected for it and intervals are Student's t on {df:g} degrees of freedom, both approximate"
)
REMEDY_CLUSTERS = (
    "Name smaller clusters, or leave cluster= out where observations are independent (within a chain, given the past)."
)
REMEDY_RELATIVE = (
    "Relative weights have no errors that assume the model: gather more observations, or, where the weights are "
    "counts, leave weights='relative' out."
)


def make_fit(
    problem: Problem,
    solution: Solution,
    *,
    settings: Mapping[str, Any],
    notes: tuple[str, ...] = (),
    seed: int | None = None,
    relative: bool = False,
) -> Fit:
    """The result of an estimation: errors from the scores, evidence when asked for, notes in the user's words.

    `relative`: weights are no counts, so that only robust errors, from Σ w² g gᵀ, are right.
    """
    obs = problem.obs
    clusters = cluster_labels(problem.objective.cluster, obs)
    labels = _independent(obs) if relative and clusters is None else clusters
    tests = columns_tested(solution, obs, labels)  # before the errors, which then have its fresh sets of points
    errors, more, refusal = _errors(solution, labels, relative, clusters)
    own = None if errors is None else errors.picked(solution.index)
    if own is not None and solution.centred is not None:
        own = own.moved(solution.centred.covariance)
    smooths = _smooths(solution, errors)
    settings = {
        "model": problem.model.to_dict(),
        "objective": problem.objective.to_dict(),
        "normaliser": problem.normaliser.to_dict(),
        "solver": dict(solution.solver),
        **({"weights": "relative"} if relative else {}),
        **settings,
    }
    return Fit(
        names=solution.names,
        estimate=solution.estimate,
        nu=solution.constants.nu,
        nu_se=_nu_se(solution, errors),
        loglik=solution.loglik,
        value=solution.value,
        is_likelihood=problem.is_likelihood,
        converged=solution.converged,
        reason=solution.reason,
        iterations=solution.iterations,
        n=total(obs.weights),
        n_rows=obs.n,
        kind=obs.kind,
        settings=settings,
        notes=(*obs.notes, *notes, *solution.notes, *more, *_not_converged(solution)),
        diagnostics={**solution.figures, **({} if clusters is None else {"clusters": int(clusters.max()) + 1})},
        seed=seed,
        model=problem.model,
        obs=obs,
        backend=obs.backend,
        errors=own,
        no_errors=refusal,
        assumes_model=solution.scores is not None and solution.scores.model_based and not relative,
        smooths=smooths,
        evidence=_evidence(problem, solution, errors),
        solution=solution,
        anchoring=_anchoring(solution, errors, smooths, tests) if problem.normaliser.anchored else None,
    )


def columns_tested(
    solution: Solution, obs: Observations, cluster: np.ndarray | None = None
) -> Mapping[str, DeltaTest] | None:
    """The tests that δ is constant, for each context column; None where δ is not one number, or none are wanted."""
    scores = None if solution.scores is None else solution.scores.as_rows()
    if scores is None or scores.level is None or not scores.tested:
        return None
    return delta_tests(scores, obs.context, cluster)


def _independent(obs: Observations) -> np.ndarray:
    """Labels that make each observation a cluster by itself, whose score counts with its weight and not as copies."""
    live = obs.weights > 0
    return np.where(live, np.cumsum(live) - 1, 0)


def _anchoring(
    solution: Solution,
    errors: ErrorParts | None,
    smooths: SmoothPart | None,
    tests: Mapping[str, DeltaTest] | None,
) -> Anchoring:
    """δ̂ with its error, how well the integrals are known, and the tests that δ is constant."""
    rows = None if solution.scores is None else solution.scores.as_rows()
    at = None if rows is None else rows.level
    se = None if errors is None or at is None else float(np.sqrt(errors.total[at, at]))
    delta = solution.constants.delta
    if delta is None:
        assert smooths is not None
        delta = smooths.level
    return Anchoring(delta, se, solution.figures.get("anchor_shift"), tests)


def _errors(
    solution: Solution, labels: np.ndarray | None, relative: bool, clusters: np.ndarray | None
) -> tuple[ErrorParts | None, tuple[str, ...], str | None]:
    """The errors of all coordinates, what there is to say about them, and why there are none.

    `labels`: the clusters, or single observations where weights are relative.
    """
    scores = solution.scores
    if scores is None:
        return None, (), solution.no_errors
    errors, by_cluster = None, clusters is not None and not scores.model_based  # by observation would be too small
    if scores.refusal is None:
        with single_threaded():  # BLAS threads that wait for a busy core cost ten times what they gain (p = 500)
            errors = error_parts(scores, labels, dict(zip(solution.index.tolist(), solution.names)))
    if scores.refusal is not None:
        refusal = scores.refusal
    elif errors is None:
        refusal = _too_few(scores, REMEDY if solution.chosen is None else SIMULATED)
    elif not relative and not by_cluster:
        for note in errors.notes:
            warn(note, stacklevel=4)
        return errors, (*errors.notes, *_few(scores, SIMULATED if solution.chosen is not None else "")), None
    elif errors.robust is not None and errors.robust.refusal is None:
        return with_robust(errors), (*errors.notes, *((RELATIVE,) if relative else ())), None
    elif scores.robust_refusal is not None:
        why = "relative weights" if relative else "clusters"
        refusal = f"No standard errors, as {why} need robust ones. {scores.robust_refusal}"
    else:
        refusal = _too_few(scores, REMEDY_RELATIVE if relative else REMEDY_CLUSTERS, clusters)
    if solution.terms is not None:  # whose effects have no meaning without a band
        raise InputError(refusal)
    warn(refusal, stacklevel=4)
    return None, (refusal,), refusal


def _few(scores: Scores, remedy: str) -> tuple[str, ...]:
    """A note where errors rest on the scores of observations alone, and these are not many."""
    if scores.model_based or scores.weight >= MANY * scores.size:
        return ()
    units = several(total(np.array([scores.weight])), "independent observation")
    what = TOO_SMALL if scores.df is None else CORRECTED.format(df=scores.df)
    return (FEW.format(units=units, parameters=several(scores.size, "parameter"), what=what, remedy=remedy).strip(),)


def _too_few(scores: Scores, remedy: str, clusters: np.ndarray | None = None) -> str:
    """The sentence: how many independent scores there are, and of what."""
    units = total(np.array([scores.weight])) if clusters is None else int(clusters.max()) + 1
    return too_few(units, clusters is not None, scores.size, remedy)


def with_robust(errors: ErrorParts) -> ErrorParts:
    """The same with the robust covariance in place of one that counts weights as copies, or clusters as independent."""
    V = robust_covariance(errors)[0]
    return replace(errors, total=V, sampling=V - errors.reference, smoothing=None)


def _smooths(solution: Solution, errors: ErrorParts | None) -> SmoothPart | None:
    fitted, scores = solution.terms, solution.scores
    if fitted is None or scores is None or errors is None:
        return None
    return smooth_part(fitted, errors, smooth_tests(fitted, scores, errors))


def _nu_se(solution: Solution, errors: ErrorParts | None) -> np.ndarray | None:
    """From dν/dθ where ν follows from θ, or from its own coordinate, the last, where it has one."""
    constants = solution.constants
    if constants.known:
        return np.zeros(constants.nu.size)
    if errors is None:
        return None
    p = solution.estimate.size
    if constants.slope is not None:
        return np.sqrt(quadratic_forms(constants.slope, errors.total))
    return np.sqrt(np.diag(errors.total)[p:]) if constants.own else None


def quantities(solution: Solution) -> Quantities:
    """What advice speaks of: the parameters, or f's terms as functions over their grids."""
    fitted = solution.terms
    if fitted is None:
        return parameters(solution.names, None if solution.centred is None else solution.centred.covariance)
    return terms({label: (fitted.slices[label], _columns(fitted, label)) for label in fitted.model_labels})


def _columns(fitted: FittedTerms, label: str) -> np.ndarray:
    term = next(term for term in fitted.terms if term.label == label)
    return columns_shown(fitted, term, dict(fitted.grids[label]))


def _evidence(problem: Problem, solution: Solution, errors: ErrorParts | None) -> Evidence | None:
    scores = solution.scores
    if scores is None or errors is None or scores.drawn is Drawn.NONE or "m" not in solution.figures:
        return None
    figures = solution.figures
    least = figures["sets"] / (figures["k"] or figures["m"])
    free = not problem.objective.cancels and _constant_for_each(problem)
    given: Scores = scores
    return Evidence(
        lambda: evidence(
            given,
            errors,
            quantities(solution),
            value=solution.value,
            least=least,
            criterion=not free,
        )
    )


def _constant_for_each(problem: Problem) -> bool:
    """Whether each observation has a constant of its own, so that their number grows with the data."""
    return not problem.normaliser.of_context and problem.normaliser.layout(problem.obs).size > 1


def _not_converged(solution: Solution) -> tuple[str, ...]:
    if solution.converged:
        return ()
    note = f"The solver did not converge: {solution.reason}. Do not trust these estimates; see Fit.reason."
    warn(note, stacklevel=4)
    return (note,)
