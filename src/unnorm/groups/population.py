"""The population's curves as a `Fit`: the joint fit's main effects, and the reference points' share of their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np

from .._base.threads import run_tasks
from ..data.observations import Observations
from ..engine import gam_effects
from ..engine.gam_result import Gam
from ..engine.smoothed import INTERCEPT
from ..errors import CombinationError, InputError
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from ..objectives.anchor import Integrated, anchor_of
from ..objectives.base import Constants, Objective, Problem
from ..objectives.scores import Drawn
from ..results.fit import Fit
from ..results.fitting import Weights
from ..results.making import make_fit
from ..results.smooths import SmoothPart
from ..solvers.anchored import still
from ..solvers.base import AnchoredRows, FittedTerms, Solution
from ..solvers.redraw_scores import RedrawScores
from ..solvers.smoothing import Smoothing
from ..terms.base import BuiltTerm
from ..terms.specs import Terms
from .anchored import MOST_ROUNDS, SETTLED, LevelAnchor, anchored_member, padded
from .crossed import Crossed
from .floor import floored
from .joint import Joint, Levels, Member, common_rows, fit_joint, members_of
from .scores import GroupScores, member_rows
from .views import View

KEPT = ("reference", "points", "iid_points", "even_points", "sets", "k", "law")  # what the group's record takes over
RELATIVE = (
    "Weights are relative: the population's bands take them for frequencies with a mean of one, so that the error "
    "within levels is approximate; the spread between levels is estimated as ever."
)
FLOORS = (
    "The common curve of {labels} is small against the differences between levels, from which it has its prior "
    "variance: REML alone would shrink it, and its band, towards zero."
)
REDRAWS = 2  # of every level's reference points, to see how much they move the main effects


@final
@dataclass(frozen=True)
class Parts:
    """What all levels have in common."""

    model: Unnormalised
    obs: Observations
    objective: Objective | None
    normaliser: Normaliser | None
    smoothing: Smoothing
    seed: int
    weights: Weights = "frequencies"


@final
@dataclass(frozen=True)
class Common:
    """The levels' fits and one basis for all of them: f's terms (the first `count`), then χ's."""

    gams: Mapping[str, Gam]
    terms: tuple[BuiltTerm, ...]
    count: int
    columns: dict[str, np.ndarray]
    first: Fit

    @property
    def within(self) -> Mapping[str, tuple[str, ...]]:
        """Terms whose effects have no level at each value of the context's covariates, as in the levels' own fits."""
        return {} if self.first.smooths is None else self.first.smooths.within


def population(by: str, fits: Mapping[str, Fit], parts: Parts, threads: int) -> Fit:
    """The group's fit, from the rows of the separate ones."""
    common = in_common(by, fits, parts)
    reml = parts.smoothing.method != "ml"

    def levels(offsets: Mapping[str, np.ndarray | None] | None) -> Levels:
        members = members_of(common.gams, common.terms, threads, offsets)
        return Levels(common.gams, common.terms, common.count, by, reml, threads, members)

    joint, integrated = settled(levels, _above_floor, fits, common, threads)
    problem = problem_of(parts)
    scores = scores_of(problem, joint, fits, integrated, parts.seed, threads)(joint, len(fits) - 1)
    about = f"Main effects of a joint fit of {len(fits)} levels of {by!r}; bands are for the population's mean."
    solution = solution_of(about, joint, scores, common, parts.smoothing)
    return group_fit(problem, solution, fits, parts, {"by": by, "levels": len(fits)})


def group_fit(
    problem: Problem, solution: Solution, fits: Mapping[str, Fit], parts: Parts, group: Mapping[str, Any]
) -> Fit:
    """A population's `Fit` from its solution; `group` says of which levels."""
    points = [int(one.diagnostics["m"]) for one in fits.values() if "m" in one.diagnostics]
    if points:
        solution = replace(solution, figures={**solution.figures, "m": sum(points)})
    notes = (RELATIVE,) if parts.weights == "relative" and parts.obs.weight is not None else ()
    extra = {"observations": next(iter(fits.values())).settings["observations"], "group": dict(group)}
    return make_fit(problem, solution, settings=extra, notes=notes, seed=parts.seed)


def problem_of(parts: Parts) -> Problem:
    """All levels' observations as one problem."""
    model, obs, objective = parts.model, parts.obs, parts.objective
    assert objective is not None  # fits without rows were turned away
    normaliser = objective.default_normaliser(model, obs) if parts.normaliser is None else parts.normaliser.bound(obs)
    return Problem(model, obs, objective, normaliser)


def in_common(by: str, fits: Mapping[str, Fit], parts: Parts) -> Common:
    """The terms built on the rows of all levels together, or a sentence why they have no common curve."""
    model, gams = parts.model, {}
    for level, one in fits.items():
        if one.smooths is None or one.smooths.gam is None:
            raise CombinationError(
                "the joint fit needs an objective with rows (Logistic, Importance, Poisson) and smooth terms in f or χ."
            )
        gams[level] = one.smooths.gam
        if one.smooths.gam.whole is not None:
            raise CombinationError(
                f"{by} {level} has {one.smooths.gam.whole:,} rows, which are never together, and a joint fit needs "
                "them: take fewer reference points for each observation."
            )
    if len(gams) < 2:
        raise InputError(f"a population needs at least two levels of {by!r}; there is {len(gams)}.")
    first = next(iter(fits.values()))
    part = first.smooths
    assert part is not None
    terms = _terms(model, first, by)
    known = model.covariates(parts.obs)
    columns = common_rows(gams, terms.columns)
    periods = {name: known.period(name) for name in terms.columns if name in known and known.period(name)}
    knots = {**model.knots, **_normaliser_knots(first)}
    partial = known.partial(terms.columns)
    built = tuple(
        terms.build(
            columns, knots=knots, periods=periods, partial=partial, categories=parts.obs.categories,
            boundary=known.boundary, ends=known.ends,
        )
    )  # fmt: skip
    if parts.normaliser is not None and parts.normaliser.weakly:
        built = _held(built, fits, part.normaliser_labels)
    _refuse_context_functions(model, parts.obs, part)
    mine = [term for term in built if term.label in set(part.model_labels)]
    if len(mine) != len(part.model_labels) or [t.label for t in built[: len(mine)]] != [t.label for t in mine]:
        raise CombinationError("the terms of f differ between the levels, so that they have no common curve.")
    return Common(gams, built, len(mine), columns, first)


def _refuse_context_functions(model: Unnormalised, obs: Observations, part: SmoothPart) -> None:
    """A term that is held where it is a function of the context alone, as te(y, z) and curves of levels with a level
    each are: in the joint fit nothing would hold it."""
    lost = [label for label in part.model_labels if f"{label} (context)" in part.sp]
    if not lost:
        return
    term, known = part.term(lost[0]), model.covariates(obs)
    z = [name for name in term.covariates if name in known and known.context_only(name)]
    remedy = (
        "Write it in two parts, s(…) of what varies with y and ti(…) of both, which has none."
        if term.factor_levels is None and not term.own_levels
        else "Give each level a curve by by=, which has none."
    )
    raise CombinationError(
        f"{lost[0]} contains functions of {' and '.join(z)} alone, which the levels' rows cannot tell from their "
        f"constants. {remedy}"
    )


def settled(
    make: Callable[[Mapping[str, np.ndarray | None] | None], Any],
    above: Callable[[Any, tuple[Member, ...], np.ndarray, np.ndarray | None], tuple[Any, Any]],
    fits: Mapping[str, Fit],
    common: Common,
    threads: int,
) -> tuple[Any, list[Integrated] | None]:
    """The joint fit; where constants follow f, linearised again until every level's f settles.

    `make` gives the levels with these offsets of their rows, `above` fits them: (levels, members, β, log λ) → (fit,
    levels with floors).
    """
    rows = {level: _anchored_rows(one) for level, one in fits.items()}
    first = next(iter(rows.values()))
    offsets = None if first is None else {level: one.offset for level, one in rows.items() if one is not None}
    levels = make(offsets)
    if offsets is None:
        return above(levels, levels.members, levels.start(), None)[0], None
    anchors = [_level_anchor(one, common.terms[: common.count], len(fits)) for one in fits.values()]
    flat = levels.start([given.log_z[given.context] for given in anchors])
    rho, joint, members = None, None, []
    last, rate = np.inf, np.inf
    for _ in range(MOST_ROUNDS):
        joint, members = None, []  # their rows are let go before new ones are made
        old = [levels.user(flat, s) for s in range(len(anchors))]
        tasks = list(zip(levels.members, anchors, old))
        members = run_tasks(anchored_member, tasks, threads)
        joint, levels = above(levels, tuple(one.member for one in members), flat, rho)
        flat, rho = joint.flat, joint.rho
        move = max(one.moved(levels.user(flat, s) - was) for s, (one, was) in enumerate(zip(members, old)))
        rate, last = min(rate, move / last if np.isfinite(last) else np.inf), move
        if still(move, rate, SETTLED) < SETTLED:
            break
    assert joint is not None
    return joint, [one.integrated for one in members]


def _above_floor(
    levels: Levels, members: tuple[Member, ...], flat: np.ndarray, rho: np.ndarray | None
) -> tuple[Joint, Levels]:
    """The joint fit, and once more where a main effect is below its floor; the levels with the floors."""
    joint = fit_joint(levels, members, flat, rho)
    higher = floored(levels, joint)
    return (joint, levels) if higher is None else (fit_joint(higher, members, joint.flat, joint.rho), higher)


def _anchored_rows(one: Fit) -> AnchoredRows | None:
    fitted = None if one.solution is None else one.solution.terms
    return None if fitted is None else fitted.anchored


def _level_anchor(one: Fit, terms: tuple[BuiltTerm, ...], levels: int) -> LevelAnchor:
    rows = _anchored_rows(one)
    assert rows is not None
    assert one.model is not None
    assert one.obs is not None
    anchor = anchor_of(one.model, one.obs, terms, beside=levels)
    return LevelAnchor(anchor, rows.context, rows.integrated.log_z)


def _terms(model: Unnormalised, first: Fit, by: str) -> Terms:
    """f's terms, then χ's, as they were specified."""
    specified = model.terms
    if specified is None:
        raise CombinationError("only models with terms (un.Additive) have population curves.")
    if by in specified.columns:
        raise CombinationError(f"the model's own terms already read {by!r}.")
    normaliser = _normaliser_terms(first)
    return specified if normaliser is None else specified + normaliser


def _normaliser_terms(fit: Fit) -> Terms | None:
    from ..terms import parse

    about = fit.settings["normaliser"]
    return parse(about["terms"]) if "terms" in about else None


def _held(built: tuple[BuiltTerm, ...], fits: Mapping[str, Fit], chi: tuple[str, ...]) -> tuple[BuiltTerm, ...]:
    """χ's terms with the smallest penalty of the levels, which leaves f alone in each of them."""
    least: dict[str, float] = {}
    for one in fits.values():
        for label, sp in ({} if one.smooths is None else one.smooths.sp).items():
            least[label] = min(sp, least.get(label, np.inf))

    def held(term: BuiltTerm) -> BuiltTerm:
        changed: Any = term  # every built term is a dataclass
        return replace(changed, fixed_sp=tuple(least[penalty.label] for penalty in term.penalties))

    return tuple(held(term) if term.label in chi else term for term in built)


def _normaliser_knots(fit: Fit) -> dict[str, Any]:
    return dict(fit.settings["normaliser"].get("knots", {}))


def scores_of(
    problem: Problem,
    joint: Joint | Crossed,
    fits: Mapping[str, Fit],
    integrated: list[Integrated] | None,
    seed: int,
    threads: int,
) -> Callable[..., GroupScores]:
    """(main effects, df of the spread between levels, effective df of the whole error) → their scores, from the levels'
    rows at the joint estimate; the reference points' error is measured on fresh ones, once for all main effects."""
    levels, drawn, counts = [], Drawn.NONE, True
    for s, level in enumerate(fits):
        solution = fits[level].solution
        assert solution is not None
        assert solution.scores is not None
        drawn, counts = solution.scores.drawn, solution.scores.counts_points
        separate = list(solution.scores.blocks())  # pyright: ignore[reportAttributeAccessIssue]
        levels.append(member_rows(joint, s, separate))

    def one(s: int, level: str) -> np.ndarray:
        own, inner = fits[level], joint.design.members[s].design
        assert own.obs is not None
        assert own.model is not None
        beta = inner.to_user(joint.design.coefficients(joint.flat, s))
        assert own.smooths is not None
        assert own.smooths.gam is not None
        here = None if integrated is None else integrated[s]._replace(mean=padded(integrated[s].mean, inner.size))
        score, sums = None, []
        for r in range(REDRAWS):
            fresh = np.random.default_rng([seed, s, r])
            again = problem.objective.additive(own.model, own.obs, problem.normaliser, fresh)
            if score is None:
                score = RedrawScores(again, joint.design.terms, inner.slices, beta, own.smooths.gam.columns, here)
            score = replace(score, problem=again)  # the rows before are let go, its tables stay
            sums.append(np.sum([score(rows) for rows in again.source.blocks()], axis=0))
        return np.array([inner.to_flat(one) for one in sums])

    @cache
    def redraws() -> list[np.ndarray]:
        return run_tasks(one, list(enumerate(fits)), threads)

    def scores(joint: Joint | View, df: int, effective: float | None = None) -> GroupScores:
        return GroupScores(
            joint=joint,
            levels=tuple(levels),
            inverse=joint.inverse,
            drawn=drawn,
            counts_points=counts,
            smoothing=joint.smoothing,
            redraws=redraws,
            widened=few_levels((df if effective is None else effective) + 1),
            between=df,
            threads=threads,
        )

    return scores


def few_levels(count: float) -> float:
    """(S − 1)/(S − 3), the variance of Student's t: the variance between S levels is itself estimated, on S − 1 df.

    With 14 levels it widens bands by 9 %; without it they cover 92 % where they claim 95 (tests/slow, first 17 sets).
    """
    return (count - 1) / (count - 3) if count > 3 else 3.0


def solution_of(about: str, joint: Joint | View, scores: GroupScores, common: Common, smoothing: Smoothing) -> Solution:
    """The main effects, as a solver hands them on."""
    fitted = fitted_of(joint, common.columns, smoothing, common.within)
    names, index = [], []
    for term in joint.terms:
        if term.parametric:
            names += list(term.coefficient_names)
            index += list(range(fitted.slices[term.label].start, fitted.slices[term.label].stop))
    notes = [about]
    if joint.floors:
        notes.append(FLOORS.format(labels=", ".join(joint.floors)))
    if smoothing.method not in ("reml", "ml"):
        notes.append(f"The joint fit chose its smoothness by REML, not by {smoothing.method}: deviations are random.")
    return Solution(
        names=tuple(names),
        estimate=joint.beta[index],
        index=np.array(index, dtype=int),
        constants=Constants(joint.beta[:1]),
        value=-joint.score,
        loglik=joint.loglik,
        converged=joint.converged,
        reason=joint.reason,
        iterations=joint.iterations,
        solver=smoothing.to_dict(),
        scores=scores,
        terms=fitted,
        notes=tuple(notes),
        figures={
            **{k: v for k, v in common.first.diagnostics.items() if k in KEPT},
            "rows": joint.design.rows,
            "passes": joint.passes,
            "deviations": joint.deviations,
        },
    )


def fitted_of(
    joint: Joint | View, columns: dict[str, np.ndarray], smoothing: Smoothing, within: Mapping[str, tuple[str, ...]]
) -> FittedTerms:
    """The main effects as terms with their coefficients."""
    slices = {INTERCEPT: slice(0, 1)} | {label: slice(s.start + 1, s.stop + 1) for label, s in joint.slices.items()}
    smooth = [term for term in joint.terms if not term.parametric]
    return FittedTerms(
        terms=joint.terms,
        model_labels=tuple(term.label for term in joint.terms),
        normaliser_labels=(),
        slices=slices,
        beta=joint.beta,
        grids={term.label: gam_effects.grid(term, columns) for term in joint.terms},
        edf={term.label: joint.edf[term.label] for term in smooth},
        edf1={term.label: joint.edf1[term.label] for term in smooth},
        sp=joint.sp,
        score=joint.score,
        method="ML" if smoothing.method == "ml" else "REML",
        within=within,
    )
