"""Quadrature rows refined: the rule of 𝓜 doubled until f̂ stops moving, or as far as its rows allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._base.numerics import Rng, quadratic_forms
from ..errors import NotIdentifiedError, warn
from ..inference.sandwich import bread
from ..objectives.base import Problem
from ..solvers.base import Solution, Solver
from .held_out import evenly

SETTLED = 0.05  # standard errors that f̂ may still move
PLACES = 200  # observations at which it is compared


def begun(problem: Problem, solver: Solver, rng: Rng) -> Solution:
    """The first solution: where a rule has fewer nodes than the terms have columns, that of a finer one."""
    order = problem.objective.coarsest(problem.model) if problem.smooth and problem.by_rows else None
    while True:
        try:
            return solver.solve(problem, rng)
        except NotIdentifiedError:
            finer = None if order is None else problem.objective.finer(problem.model, problem.obs, order)
            if order is None or finer is None:
                raise
        problem, order = replace(problem, objective=finer), 2 * order


def refined(problem: Problem, solver: Solver, solution: Solution, rng: Rng) -> Solution:
    """The solution with as fine a rule as it needs; its figures say how far it moved last."""
    if not (problem.smooth and problem.by_rows):
        return solution  # parametric problems refine themselves
    order, moved = solution.figures.get("order"), None
    while order is not None:
        finer = problem.objective.finer(problem.model, problem.obs, order)
        if finer is None:
            break
        other = solver.solve(replace(problem, objective=finer), rng)
        moved, solution, order = _move(problem, solution, other), other, other.figures["order"]
        if moved <= SETTLED:
            break
    if moved is None:
        return solution
    figures = {**solution.figures, "rule_moved": moved}
    if moved <= SETTLED:
        return replace(solution, figures=figures)
    note = (
        f"The rule of {solution.figures['nodes']:,} nodes may be too coarse: f̂ still moved by {moved:.2g} standard "
        "errors when it was last doubled, and its rows allow no more. Use un.Logistic(…), or un.Exact() for IID data."
    )
    warn(note, stacklevel=3)
    return replace(solution, figures=figures, notes=(*solution.notes, note))


def _move(problem: Problem, old: Solution, new: Solution) -> float:
    """max |f̂_new − f̂_old| over observations, about its mean, in standard errors; infinite where the new one has none
    (its maximum was at infinity, on a rule that misses a peak)."""
    (before, _, _), (after, X, at) = (_at_data(problem, one) for one in (old, new))
    assert new.scores is not None
    try:
        se = np.sqrt(np.maximum(quadratic_forms(X, bread(new.scores)[np.ix_(at, at)]), 1e-300))
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.max(np.abs(after - before) / np.maximum(se, 1e-3 * se.max())))


def _at_data(problem: Problem, solution: Solution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f̂ at some observations, about its mean; the columns there, and which coefficients are theirs."""
    fitted = solution.terms
    assert fitted is not None
    some = evenly(problem.obs.n, PLACES)
    own = [term for term in fitted.terms if term.label in fitted.model_labels]
    theta = solution.estimate if problem.model.parametric else None
    columns = problem.model.linear_part(problem.obs, problem.obs.outcome[some], some, theta).columns
    X = np.concatenate([term.design({name: columns[name] for name in term.covariates}) for term in own], axis=1)
    at = np.concatenate([np.arange(fitted.slices[t.label].start, fitted.slices[t.label].stop) for t in own])
    X = X - X.mean(axis=0)
    return X @ fitted.beta[at], X, at
