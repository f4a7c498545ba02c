"""`fit`: the only place where the parts meet."""

from __future__ import annotations

import copy
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._base.memory import in_words
from .._base.numerics import Rng, own_stream
from .._base.words import option
from ..data.observations import Observations
from ..data.placing import placed
from ..domains.base import Domain
from ..engine.device.spec import Device, device_of
from ..engine.resources import Resources
from ..errors import CombinationError, InputError, NoEstimateError, NotIdentifiedError, OutsideError, unknown, warn
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from ..objectives.base import Objective, Problem
from ..solvers.base import Solution, Solver
from ..solvers.imputing import Imputing
from ..solvers.lbfgs import LBFGS
from ..solvers.newton import MOST_PARAMETERS, Newton
from ..solvers.ridge import Ridge
from ..solvers.smoothing import Smoothing
from .fit import Fit
from .knowing import FAR, apart, knowing
from .making import make_fit
from .outside import first_outside, inside, lying
from .refining import begun, refined

SOLVERS = "un.Newton() or un.SGD(...), or left out (un.NUTS and un.Langevin are for un.sample)"
Outside = Literal["error", "drop"]
Weights = Literal["frequencies", "relative"]


def fit(
    model: Unnormalised,
    obs: Observations,
    objective: Objective | None = None,
    normaliser: Normaliser | None = None,
    solver: Solver | None = None,
    smoothing: str | Smoothing = "reml",
    rng: Rng = None,
    outside: Outside = "error",
    weights: Weights = "frequencies",
    memory: Any = None,
    workers: Any = None,
    device: Literal["cpu", "gpu"] | Device | None = None,
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
        weights: an observation of weight w counts as w observations ("frequencies": counts of equal rows); weights that
            are not counts, such as durations in milliseconds, are "relative": scaled to a mean of one, and the standard
            errors are robust.
        memory: with smooth terms and reference points, what the rows may take, e.g. "2GB"; by default most of what is
            free. Rows that do not fit are made again, from the same seeds, in each pass over them.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), with which the
            rows of smooth terms stay: each pass sends coefficients out and sums back.
        device: "gpu" makes the additive engine's passes over the rows on a GPU through JAX (smooth terms; the same
            result to 1e-8), or `un.Device(...)`. Above two million rows those of a chain in a box are made there too,
            from its coordinates (docs/size.md).

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
    other = "(a point pattern goes to un.fit_pattern, or is given by pattern.observations(): places given their number)"
    _require(obs, Observations, "obs", f"the result of un.iid, un.transitions or un.conditional {other}")
    _require(objective, Objective, "objective", "un.Exact(), un.Poisson(), un.Logistic(...) or the like")
    if obs.n == 0:
        raise InputError(f"There are no observations to fit. {' '.join(obs.notes)}".strip())
    model.check(obs)
    check_missing(model, obs, objective, solver)
    obs, notes = keep_inside(model.domain, wrapped(model.domain, obs), outside)
    if obs.masks is not None and not objective.masks:
        raise CombinationError(
            f"{objective.name} cannot leave out bits that are fixed or missing, and the observations have some. Use "
            "un.PseudoLikelihood(), or of un.GraphStatistics un.MonteCarloML(); structural zeros that hold for all "
            "graphs can go to un.Graphs(n, fixed=…), which every objective takes."
        )
    obs = weighted(obs, weights)
    _require(solver, (Solver, type(None)), "solver", SOLVERS)
    model = with_base(model, obs, objective, solver)
    if normaliser is None:
        normaliser = objective.default_normaliser(model, obs, solver is None or solver.anchors)
    _require(
        normaliser,
        Normaliser,
        "normaliser",
        "un.Anchored(), un.Constant(), un.PerContext(), un.Smooth(...), un.Kernel(...) or un.Fixed(0.0)",
    )
    normaliser = normaliser.bound(obs)
    if model.additive and normaliser.known:
        raise CombinationError(
            f"{normaliser!r} leaves f to find its own level, and the terms of an additive model have none: they sum to "
            "zero, and ν or χ carries the level. Use un.Constant() (IID data), un.Smooth(…) or un.PerContext()."
        )
    warning = normaliser.warning(obs)
    if warning:
        warn(warning, stacklevel=2)
        notes = (*notes, warning)
    seed, rng = _seed(rng)
    state = copy.deepcopy(rng)

    problem = Problem(model, obs, objective, normaliser, Resources(memory, workers))
    chosen = chosen_solver(problem, solver, _with_device(problem, solver, smoothing, device))
    _check_resources(problem, chosen)
    with ExitStack() as stack:  # workers last until the errors are known
        stack.enter_context(in_words("Take fewer reference points, or pass memory='…' (as '1GB') with smooth terms."))
        problem = replace(problem, resources=stack.enter_context(problem.resources.opened()))
        solution = on_users_scale(problem, chosen, rng)
        relative = weights == "relative" and obs.weight is not None
        settings = {"observations": describe(obs)}
        made = make_fit(problem, solution, settings=settings, notes=notes, seed=seed, relative=relative)
        return knowing(made, problem, chosen.anchors, state)


def with_base(model: Unnormalised, obs: Observations, objective: Objective, solver: Solver | None) -> Unnormalised:
    """The model with its base fitted to the observations; a sentence where objective or solver take none."""
    if model.base is None:
        return model
    if not objective.takes_base:
        raise CombinationError(
            f"{objective.name} takes models relative to Ω's own measure, and this one has base={model.base!r}. Use "
            "objective=un.Ranking(kernel, …), or un.Logistic(kernel, …), with points of the kernel itself."
        )
    if solver is not None and not solver.takes_base:
        raise CombinationError(
            f"solver=un.{type(solver).__name__}(...) takes models relative to Ω's own measure, and this one has "
            f"base={model.base!r}: leave solver out."
        )
    return model.met(obs)


def on_users_scale(problem: Problem, solver: Solver, rng: Rng) -> Solution:
    """The solution, found with covariates about their means where these lie far from zero."""
    plain = problem.model.parametric and not problem.smooth and not problem.normaliser.many
    moved = problem.model.flat().centred(problem.obs) if plain else None
    if moved is None:
        return refined(problem, solver, solved(problem, solver, rng), rng)
    found = solved(replace(problem, model=moved.model), solver, rng)
    return replace(found, estimate=moved.estimate(found.estimate), centred=moved)


def solved(problem: Problem, solver: Solver, rng: Rng) -> Solution:
    """The solution; where there is none because no reference point resembles the data, an error that says so."""
    state = copy.deepcopy(rng)
    try:
        return begun(problem, solver, rng)
    except (NoEstimateError, NotIdentifiedError) as error:
        reference, how = problem.objective.reference, None
        if reference is not None and not reference.every:
            drawn = problem.objective.draw(problem.model, problem.obs, problem.normaliser, state)
            how = apart(drawn.outcome[drawn.z], drawn.outcome[~drawn.z])
        said = str(error) if how is None else FAR.format(how=how)
        if how is None and isinstance(error, NoEstimateError) and problem.model.parametric:
            said = problem.model.flat().no_estimate(problem.obs, said)
        if said == str(error):
            raise
        raise type(error)(said) from error


def _with_device(
    problem: Problem, solver: Solver | None, smoothing: str | Smoothing, device: str | Device | None
) -> str | Smoothing:
    """The smoothing with the device on which its rows are met; other solvers have none."""
    if device_of(device) is None:
        return smoothing
    if solver is not None or not problem.smooth or problem.normaliser.many:
        raise CombinationError(
            "device= is for the additive engine, which fits smooth terms of f or χ; other fits run on JAX's default "
            "device (jax.default_device). Leave device out."
        )
    return replace(smoothing if isinstance(smoothing, Smoothing) else Smoothing(smoothing), device=device)


def chosen_solver(problem: Problem, solver: Solver | None, smoothing: str | Smoothing) -> Solver:
    """The user's solver where it can take the problem's smooth terms, or the default; else a sentence."""
    if problem.normaliser.many:
        plain = smoothing.plain if isinstance(smoothing, Smoothing) else smoothing == "reml"
        if solver is not None or not plain:
            raise CombinationError(
                f"{problem.normaliser!r} has a solver of its own, and λ as its lam=: leave solver and smoothing out."
            )
        return Ridge()
    if not problem.smooth:
        if solver is not None:
            return solver
        if problem.obs.holes is not None:
            return Imputing()
        many = problem.model.flat().size > MOST_PARAMETERS and problem.model.flat().by_products
        return LBFGS() if many and problem.objective.by_products else Newton()
    if solver is None:
        return smoothing if isinstance(smoothing, Smoothing) else Smoothing(smoothing)
    name = type(solver).__name__
    if (problem.model.additive and not solver.smooth_terms) or not solver.smooth_normaliser:
        raise CombinationError(
            f"solver=un.{name}(...) does not fit smooth terms of f; the additive engine does: leave solver out, and "
            "choose smoothing=. (un.SGD takes un.Smooth(...) as a normaliser, with un.ExponentialFamily or un.Energy.)"
        )
    if smoothing != "reml":
        raise CombinationError(
            f"un.{name} chooses the smoothing of χ by REML, or takes it fixed in the term, un.Smooth('s(y_prev, "
            f"sp=0.1)'); got smoothing={smoothing!r}."
        )
    return solver


def _check_resources(problem: Problem, solver: Solver) -> None:
    """memory= and workers= are for rows of the additive engine."""
    if problem.resources.asked and not (problem.smooth and solver.smooth_terms and problem.by_rows):
        raise CombinationError(
            "memory= and workers= are for smooth terms with reference points, as in un.fit(un.Additive(…), obs, "
            "un.Logistic(…)): leave them out. un.SGD(…) takes a batch of observations at a time."
        )


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
    if domain.coordinate_period is None:
        return obs
    context = dict(obs.context)
    for lag in range(1, obs.lags + 1):
        before = domain.wrap(obs.previous(lag))
        suffix = "_prev" if lag == 1 else f"_prev{lag}"
        context |= {name + suffix: before[:, j] for j, name in enumerate(obs.outcome_names)}
    return replace(obs, outcome=domain.wrap(obs.outcome), context=context)


def weighted(obs: Observations, weights: Weights) -> Observations:
    """The observations with their weights as they are, or scaled to a mean of one over those that weigh anything."""
    if weights not in ("frequencies", "relative"):
        raise InputError(unknown("weights", weights, ("frequencies", "relative")))
    if weights == "frequencies" or obs.weight is None or not obs.weight.any():
        return obs
    return replace(obs, weight=obs.weight * (np.count_nonzero(obs.weight) / obs.weight.sum()))


def check_missing(model: Unnormalised, obs: Observations, objective: Objective, solver: Solver | None) -> None:
    """Refuse outcomes with missing entries where something would have to stand in for them."""
    if obs.holes is None:
        return
    if not objective.takes_missing or model.domain.bits is None:
        raise CombinationError(
            f"{int(obs.holes.sum()):,} entries of the outcome are missing, and {objective.name} needs them all. On "
            "binary vectors use objective=un.ConditionalNCE(un.BitFlip(every=True)); elsewhere make the observations "
            "with missing='drop'."
        )
    if solver is not None and not solver.imputes:
        raise CombinationError("With missing entries leave solver out, or use solver=un.Imputing(…).")


def keep_inside(domain: Domain, obs: Observations, outside: Outside) -> tuple[Observations, tuple[str, ...]]:
    """Refuse or drop observations outside Ω; a transition with either end outside counts as outside."""
    if outside not in ("error", "drop"):
        raise InputError(unknown("outside", outside, ("error", "drop")))
    obs = placed(domain, obs)
    within = inside(domain, obs)
    if within.all():
        return obs, ()
    count = int((~within).sum())
    where, remedy = first_outside(domain, obs)
    if outside == "error":
        raise OutsideError(
            f"{count} of {obs.n} observations lie outside {domain!r}; {where}.{lying(domain, obs)} "
            f"{remedy}, or pass {option('outside', 'drop')}."
        )
    if count == obs.n:
        raise OutsideError(
            f"All {obs.n} observations lie outside {domain!r}; {where}.{lying(domain, obs)} Check the units of the "
            "domain."
        )
    return obs.take(within), (f"{count} of {obs.n} observations lay outside {domain!r} and were dropped; {where}.",)


def _seed(rng: Rng) -> tuple[int | None, Rng]:
    """The seed to record, and what to draw from: fresh entropy is written down so that the run can be repeated."""
    if rng is None:
        rng = int(np.random.SeedSequence().generate_state(1)[0])
    return int(rng) if isinstance(rng, int | np.integer) else None, own_stream(rng)


def _require(value: object, kind: type | tuple[type, ...], what: str, example: str) -> None:
    if not isinstance(value, kind):
        raise CombinationError(f"{what} must be {example}; got {type(value).__name__}.")
