"""`fit`: the only place where the parts meet."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._base.numerics import Rng, quadratic_forms
from .._base.words import option
from ..data.observations import Observations
from ..domains.base import Domain
from ..engine import gam_effects
from ..errors import CombinationError, InputError, OutsideError, UnnormWarning, unknown
from ..models.base import Model, Unnormalised
from ..models.basis import Basis
from ..models.normalisers import Normaliser
from ..objectives.base import Objective, View
from ..inference.evidence import Later
from .fit import Fit
from .smooths import penalised_part, smooth_part
from ..solvers.newton import Newton, Solver
from ..solvers.penalised import solve_penalised
from ..solvers.smooth_scores import smooth_evidence
from ..solvers.smoothing import Smoothing

Outside = Literal["error", "drop"]


def fit(
    model: Unnormalised,
    obs: Observations,
    objective: Objective | None = None,
    normaliser: Normaliser | None = None,
    solver: Solver | None = None,
    smoothing: str | Smoothing = "reml",
    rng: Rng = None,
    outside: Outside = "error",
) -> Fit:
    """Estimate θ and the normalising constants.

    Args:
        model: f_θ on its domain Ω.
        obs: from `un.iid`, `un.transitions` or `un.conditional`.
        objective: what is maximised; default `un.Exact()`.
        normaliser: how the constants are represented; default the objective's own.
        solver: default `un.Newton()`, or `un.SGD(...)`; smooth terms go through the additive engine instead.
        smoothing: how smoothing parameters are chosen: "reml", "ml", "gcv" (UBRE), "cv", or `un.Smoothing(...)`.
        rng: seed or generator, for objectives that draw reference points.
        outside: what to do with points outside Ω: "error", or "drop" them and say so.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> chain = un.datasets.toy_chain(500, 0.5, 5.0, rng=1)
        >>> ml = un.fit(toy, un.transitions(chain))
        >>> poisson = un.fit(toy, un.transitions(chain), objective=un.Poisson())
        >>> bool(abs(ml.theta["theta2"] - poisson.theta["theta2"]) < 1e-6)
        True
    """
    from ..objectives import Exact

    objective = Exact() if objective is None else objective
    _require(model, Unnormalised, "model", "un.ExponentialFamily(...), un.Energy(...) or un.Additive(...)")
    _require(obs, Observations, "obs", "the result of un.iid, un.transitions or un.conditional")
    _require(objective, Objective, "objective", "un.Exact(), un.Poisson(), un.Logistic(...) or the like")
    if obs.n == 0:
        raise InputError(f"There are no observations to fit. {' '.join(obs.notes)}".strip())
    model.check(obs)
    obs, notes = keep_inside(model.domain, wrapped(model.domain, obs), outside)
    if normaliser is None:
        normaliser = objective.default_normaliser(obs)
    _require(normaliser, Normaliser, "normaliser", "un.Constant(), un.PerContext(), un.Smooth(...) or un.Fixed(0.0)")
    if model.additive and normaliser.known:
        raise CombinationError(
            f"{normaliser!r} leaves f to find its own level, and the terms of an additive model have none: they sum to "
            "zero, and ν or χ carries the level. Use un.Constant() (IID data), un.Smooth(…) or un.PerContext()."
        )
    warning = normaliser.warning(obs)
    if warning:
        warnings.warn(warning, UnnormWarning, stacklevel=2)
        notes = (*notes, warning)
    seed, rng = _seed(rng)

    settings = {
        "model": model.to_dict(),
        "objective": objective.to_dict(),
        "normaliser": normaliser.to_dict(),
        "observations": describe(obs),
    }
    smooth = model.additive or normaliser.terms is not None
    if smooth and solver is not None:
        _takes_smooth(solver, model, smoothing)
        smooth = False
    if smooth and normaliser.terms is None and not objective.by_rows(obs, normaliser):
        return _fit_penalised(model, obs, objective, normaliser, smoothing, rng, seed, notes, settings)
    if smooth:
        return _fit_smooth(model, obs, objective, normaliser, smoothing, rng, seed, notes, settings)
    if not isinstance(model, Model):
        raise CombinationError(f"A {type(model).__name__} model has no flat parameters to maximise over.")
    solver = Newton() if solver is None else solver
    end, path = solver.run(model, obs, objective, normaliser, rng)
    notes = (*notes, *_not_converged(path.converged, path.reason))
    return Fit(
        names=model.names,
        estimate=end.theta,
        nu=end.nu,
        nu_se=end.nu_se,
        loglik=end.loglik,
        value=end.value,
        converged=path.converged,
        reason=path.reason,
        iterations=path.iterations,
        n=obs.n,
        kind=obs.kind,
        settings={**settings, "solver": solver.to_dict()},
        notes=(*obs.notes, *notes, *end.notes),
        diagnostics=end.diagnostics,
        seed=seed,
        model=model,
        obs=obs,
        backend=obs.backend,
        errors=end.errors,
        evidence=end.evidence,
        _covariance=end.covariance,
    )


def _fit_smooth(
    model: Unnormalised,
    obs: Observations,
    objective: Objective,
    normaliser: Normaliser,
    smoothing: str | Smoothing,
    rng: Rng,
    seed: int | None,
    notes: tuple[str, ...],
    settings: dict[str, Any],
) -> Fit:
    """Smooth terms in f or χ: the additive engine on the objective's rows."""
    solver = smoothing if isinstance(smoothing, Smoothing) else Smoothing(smoothing)
    problem = objective.smooth(model, obs, normaliser, rng)
    end = solver.solve(problem)
    part = smooth_part(end.gam, end.model_labels, end.normaliser_labels, end.errors)
    parametric = [term for term in end.terms if term.parametric and term.label in end.model_labels]
    names = [name for term in parametric for name in _coefficient_names(end.gam, term.label)]
    index = np.array(
        [i for term in parametric for i in range(*part.slices[term.label].indices(part.beta.size))], dtype=int
    )
    pick = np.ix_(index, index)
    errors = end.errors.picked(pick)
    own = np.arange(obs.n)
    nu = part.chi(problem.normaliser_columns(own), obs.n)
    covariate_notes = model.covariates(obs).notes(obs)
    return Fit(
        names=tuple(names),
        estimate=part.beta[index],
        nu=nu if normaliser.terms is not None else nu[:1],
        nu_se=None,
        loglik=problem.loglik(end.gam.linear_predictor),
        value=problem.value(end.gam.linear_predictor),
        converged=end.converged,
        reason=end.reason,
        iterations=end.iterations,
        n=obs.n,
        kind=obs.kind,
        settings={**settings, "solver": solver.to_dict()},
        notes=(*obs.notes, *notes, *problem.notes, *covariate_notes, *_not_converged(end.converged, end.reason)),
        diagnostics={**end.about, "rows": len(problem.rows.response)},
        seed=seed,
        model=model,
        obs=obs,
        backend=obs.backend,
        errors=errors,
        smooths=part,
        evidence=Later(lambda: smooth_evidence(problem, end.gam, end.errors, end.model_labels, end.theta)),
        _covariance=errors.total,
    )


def _fit_penalised(
    model: Unnormalised,
    obs: Observations,
    objective: Objective,
    normaliser: Normaliser,
    smoothing: str | Smoothing,
    rng: Rng,
    seed: int | None,
    notes: tuple[str, ...],
    settings: dict[str, Any],
) -> Fit:
    """Smooth terms in f, and an objective that is not a sum over rows: penalised Newton on the terms' basis."""
    chosen = smoothing if isinstance(smoothing, Smoothing) else Smoothing(smoothing)
    basis, columns = built_basis(model, obs)
    end = solve_penalised(objective.bind(basis, obs, normaliser, rng), basis, chosen.method, chosen.sp, Newton())
    grids = {term.label: gam_effects.grid(term, columns) for term in basis.terms}
    solved = end.problem.solution(end.path.theta, _terms_view(basis, grids, end.penalty))
    part = penalised_part(basis, grids, end, solved.errors)
    parametric = [term for term in basis.terms if term.parametric]
    index = np.concatenate([np.arange(part.beta.size)[part.slices[term.label]] for term in parametric] or [[]])
    index = index.astype(int)
    pick = np.ix_(index, index)
    return Fit(
        names=tuple(name for term in parametric for name in term.coefficient_names),
        estimate=part.beta[index],
        nu=solved.nu,
        nu_se=solved.nu_se,
        loglik=solved.loglik,
        value=solved.value,
        converged=end.path.converged,
        reason=end.path.reason,
        iterations=end.path.iterations,
        n=obs.n,
        kind=obs.kind,
        settings={**settings, "solver": chosen.to_dict()},
        notes=(
            *obs.notes,
            *notes,
            *solved.notes,
            *model.covariates(obs).notes(obs),
            *_not_converged(end.path.converged, end.path.reason),
        ),
        diagnostics=solved.diagnostics,
        seed=seed,
        model=model,
        obs=obs,
        backend=obs.backend,
        errors=None if solved.errors is None else solved.errors.picked(pick),
        smooths=part,
        evidence=solved.evidence,
        _covariance=part.errors.total[pick],
    )


def _terms_view(basis: Basis, grids: Mapping[str, Mapping[str, np.ndarray]], penalty: np.ndarray) -> View:
    """The terms' mean variances over their grids."""
    designs, begin = [], 0
    for term in basis.terms:
        designs.append((slice(begin, begin + term.size), gam_effects.design(term, dict(grids[term.label]))))
        begin += term.size

    def variances(V: np.ndarray) -> np.ndarray:
        return np.array([quadratic_forms(C, V[at, at]).mean() for at, C in designs])

    return View(penalty, tuple(term.label for term in basis.terms), variances)


def _takes_smooth(solver: Solver, model: Unnormalised, smoothing: str | Smoothing) -> None:
    """Refuse a solver that would leave smooth terms alone, or a choice of smoothing that it would not make."""
    name = type(solver).__name__
    if model.additive or not getattr(solver, "smooth_normaliser", False):
        raise CombinationError(
            f"solver=un.{name}(...) does not fit smooth terms of f; the additive engine does: leave solver out, and "
            "choose smoothing=. (un.SGD takes un.Smooth(...) as a normaliser, with un.ExponentialFamily or un.Energy.)"
        )
    if smoothing != "reml":
        raise CombinationError(
            f"un.{name} chooses the smoothing of χ by REML, or takes it fixed in the term, un.Smooth('s(y_prev, "
            f"sp=0.1)'); got smoothing={smoothing!r}."
        )


def built_basis(model: Unnormalised, obs: Observations) -> tuple[Basis, dict[str, np.ndarray]]:
    """The model's terms built on the data and on points spread evenly over Ω, and the covariates there."""
    some = np.unique(np.linspace(0, obs.n - 1, min(obs.n, 2000)).astype(int))
    spread = model.domain.uniform(10 * len(some), np.random.default_rng(0))  # only to place knots and centre terms
    y = np.concatenate([obs.outcome, spread])
    at = np.concatenate([np.arange(obs.n), np.repeat(some, 10)])
    part = model.linear_part(obs, y, at, None)
    known = model.covariates(obs)
    periods = {name: known.period(name) for name in part.terms.columns if known.period(name)}
    knots = getattr(model, "knots", {})
    built = part.terms.build(part.columns, knots=knots, periods=periods, intercept=True)
    return Basis(model, obs, tuple(built)), part.columns


def _coefficient_names(gam: Any, label: str) -> list[str]:
    span = gam.smoothed.slices[label]
    return list(gam.coefficients)[span.start : span.stop]


def _not_converged(converged: bool, reason: str) -> tuple[str, ...]:
    if converged:
        return ()
    note = f"The solver did not converge: {reason}. Do not trust these estimates; see Fit.reason."
    warnings.warn(note, UnnormWarning, stacklevel=3)
    return (note,)


def describe(obs: Observations) -> dict[str, Any]:
    """What a result must remember of its observations to take new points."""
    return {
        "outcome_names": list(obs.outcome_names),
        "context_names": list(obs.context),
        "lags": obs.lags,
        "extra": list(obs.extra),
        "group_names": list(obs.group),
    }


def wrapped(domain: Domain, obs: Observations) -> Observations:
    """Angles brought into one turn, the earlier points of a chain too."""
    if domain.period is None:
        return obs
    context = dict(obs.context)
    for lag in range(1, obs.lags + 1):
        before = domain.wrap(obs.previous(lag))
        suffix = "_prev" if lag == 1 else f"_prev{lag}"
        context |= {name + suffix: before[:, j] for j, name in enumerate(obs.outcome_names)}
    return replace(obs, outcome=domain.wrap(obs.outcome), context=context)


def keep_inside(domain: Domain, obs: Observations, outside: Outside) -> tuple[Observations, tuple[str, ...]]:
    """Refuse or drop observations outside Ω; a transition with either end outside counts as outside."""
    if outside not in ("error", "drop"):
        raise InputError(unknown("outside", outside, ("error", "drop")))
    inside = domain.contains(obs.outcome)
    for lag in range(1, obs.lags + 1):
        inside = inside & domain.contains(obs.previous(lag))
    if inside.all():
        return obs, ()
    count, first = int((~inside).sum()), int(np.argmin(inside))
    row = first if obs.row is None else int(obs.row[first])
    where = f"the first is row {row}, y = {np.array2string(obs.outcome[first], precision=6)}"
    if outside == "error":
        raise OutsideError(
            f"{count} of {obs.n} observations lie outside {domain!r}; {where}. "
            f"Enlarge the domain, correct the data, or pass {option('outside', 'drop')}."
        )
    if count == obs.n:
        raise OutsideError(f"All {obs.n} observations lie outside {domain!r}; {where}. Check the units of the domain.")
    return obs.take(inside), (f"{count} of {obs.n} observations lay outside {domain!r} and were dropped; {where}.",)


def _seed(rng: Rng) -> tuple[int | None, Rng]:
    """The seed to record, and what to draw from: fresh entropy is written down so that the run can be repeated."""
    if rng is None:
        rng = int(np.random.SeedSequence().generate_state(1)[0])
    return (int(rng), int(rng)) if isinstance(rng, int | np.integer) else (None, rng)


def _require(value: object, kind: type, what: str, example: str) -> None:
    if not isinstance(value, kind):
        raise CombinationError(f"{what} must be {example}; got {type(value).__name__}.")
