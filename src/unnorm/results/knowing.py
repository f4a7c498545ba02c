"""A fit that knows: what `un.fit` checks by itself, and says in a sentence with a remedy where it fails.

- the constants, at a few contexts (results/constants.py);
- context columns that f reads and χ does not;
- smooth terms whose edf is at their k;
- constants that are linear in features: whether anchored ones would give the same estimate;
- covariates that reach further on Ω than in the rows that were fitted;
- reference points that do not resemble the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .._base.numerics import Rng
from .._base.words import either
from ..engine import checks, gam_effects
from ..engine.gam_result import Gam
from ..errors import hush, listing, warn
from ..objectives.base import Problem
from ..objectives.integrals import context_rules
from ..objectives.scores import Drawn
from ..solvers import Newton
from .constants import check_constants, gap_noise
from .fit import Fit
from .held_out import evenly
from .making import make_fit

CONTEXTS = 50  # at which a fit checks its constants
ORDER = {2: 20}  # of the rule for them, by the dimension of Ω; else the domain's own
MOST_NODES = 100_000  # of one context, states that are enumerated included
AT_K = 0.93  # edf as a share of the columns: as many as there are
NEAR_K = 0.8  # the same, where a pattern is left as well
PATTERN = 0.05  # p-value of the k-index
MOST_VALUES = 20_000_000  # of f, for a fit with anchored constants beside another
CHANCE, MOVED = 3.0, 0.25  # how far the two may be apart: in sd of their difference, and in standard errors
BEYOND = 0.25  # of a covariate's range in the rows: how far it may reach beyond
PLACES = 20  # contexts whose Ω is looked at
SEPARATED = 0.9999  # AUC of the fitted log-odds at which nothing is left to compare
EFFECTIVE = 1e-4  # share of the reference points
FAR = (
    "No reference point resembles the data ({how}): estimates and errors rest on nothing. Take a reference fitted to "
    "the data (un.Gaussian(), un.StepKernel(), un.Empirical()), mixed with a little un.Uniform(): "
    "un.Mixture((0.9, …), (0.1, un.Uniform()))."
)


def knowing(fit: Fit, problem: Problem, anchors: bool = True, state: Rng = None) -> Fit:
    """The fit with what was found about it: its constants' verdict, and a warning for whatever failed.

    `anchors`: whether the solver takes anchored constants, the remedy for most. `state`: of the generator before the
    points of the fit were drawn, so that they can be drawn again.
    """
    fit, said = _constants(fit, problem, anchors)
    if problem.normaliser.many:
        fit, said = _against_anchored(fit, problem, state)
    notes = [*said, *_unseen(problem), *_at_k(fit), *_beyond(fit, problem), *_far(fit)]
    for note in notes:
        warn(note, stacklevel=3)
    return replace(fit, notes=(*fit.notes, *notes)) if notes else fit


def _constants(fit: Fit, problem: Problem, anchors: bool) -> tuple[Fit, list[str]]:
    """The verdict on the constants, and the sentence of a failure."""
    if fit.anchoring is not None:
        text, failed = fit.anchoring.sentence(), bool(fit.anchoring.doubtful)
        return replace(fit, constants=text, constants_failed=failed), [text] if failed else []
    if not _checkable(fit, problem):
        return fit, []
    default = problem.model.domain.default_order
    order = None if default is None else min(default, ORDER.get(problem.model.domain.dim, default))
    fit = replace(fit, diagnostics={**fit.diagnostics, "gap_noise": gap_noise(fit)})
    with hush():  # Ω reaches beyond the rows: `_beyond` says so where it matters
        check = check_constants(fit, CONTEXTS, None, order)
    best = problem.objective.default_normaliser(problem.model, problem.obs)
    use = either(f"normaliser=un.{best!r}" + ("" if anchors else " and leave solver out"), "the default --normaliser")
    check = replace(check, remedy=use)
    figures = {**fit.diagnostics, "constants_bias": check.bias}
    figures |= {"constants_rms": check.rms, "constants_largest": check.largest}
    fit = replace(fit, constants=check.verdict, constants_failed=check.failed, diagnostics=figures)
    told = problem.normaliser.warning(problem.obs) is not None  # that it cannot follow, before it was fitted
    return fit, [check.verdict] if check.failed and not told else []


def _against_anchored(fit: Fit, problem: Problem, state: Rng) -> tuple[Fit, list[str]]:
    """Constants that are linear in features have as many degrees of freedom as there are: their gaps to the integrals
    say little, and features that cannot follow the constants go unseen. The estimate with anchored constants on the
    same points tells; it may differ by what those degrees of freedom cost, V − V_anchored.
    """
    domain, objective = problem.model.domain, problem.objective
    if domain.rule is None or objective.cancels or not fit.converged or not fit.has_covariance:
        return fit, []
    nodes = np.exp(domain.log_volume) if domain.rule == "enumeration" else len(domain.quadrature().points)
    if nodes * problem.obs.n > MOST_VALUES:
        return fit, []
    if objective.reference is not None:
        objective = objective.holding(objective.draw(problem.model, problem.obs, problem.normaliser, state))
    exact = objective.default_normaliser(problem.model, problem.obs)  # constants that follow θ, or are free
    anchored = replace(problem, objective=objective, normaliser=exact.bound(problem.obs))
    other = make_fit(anchored, Newton().solve(anchored, np.random.default_rng(1)), settings=fit.settings)
    if not other.has_covariance:
        return fit, []
    V, W = np.diag(fit.covariance), np.diag(other.covariance)
    moved = np.abs(fit.estimate - other.estimate)
    beyond = moved > CHANCE * np.sqrt(np.maximum(V - W, 0.0)) + MOVED * np.sqrt(W)
    j = int(np.argmax(moved / np.sqrt(W)))
    said = (
        f"With constants that follow f, no estimate differs by more than {moved[j] / np.sqrt(W[j]):.2g} standard errors"
    )
    if not beyond.any():
        return replace(fit, constants=f"{said}.", constants_failed=False), []
    j = int(np.argmax(np.where(beyond, moved / np.sqrt(W), 0.0)))
    said = (
        f"χ cannot follow the constants with these features: {fit.names[j]} is {fit.estimate[j]:.4g}, and "
        f"{other.estimate[j]:.4g} with constants that follow f, {moved[j] / np.sqrt(W[j]):.2g} standard errors away. "
        f"Use normaliser=un.{exact!r}, or more features (of un.minwise more hashes and bits)."
    )
    return replace(fit, constants=said, constants_failed=True), [said]


def _checkable(fit: Fit, problem: Problem) -> bool:
    """Whether there is a χ that could fail, and integrals to hold it against."""
    domain, normaliser = problem.model.domain, problem.normaliser
    if domain.rule is None or problem.objective.cancels or normaliser.known or not fit.converged:
        return False
    if not normaliser.of_context:
        drawn = fit.solution is not None and "m" in fit.solution.figures
        if not drawn or normaliser.layout(problem.obs).size != 1:
            return False
    states = np.exp(min(domain.log_volume, 50.0)) if domain.rule == "enumeration" else 1.0
    return bool(states <= MOST_NODES) and (not problem.model.additive or fit.smooths is not None)


def _unseen(problem: Problem) -> Iterator[str]:
    """Context columns that f reads and a smooth χ does not."""
    chi, f = problem.normaliser.terms, problem.model.terms
    if chi is None or f is None or problem.normaliser.anchored or not problem.obs.has_context:
        return
    known = problem.model.covariates(problem.obs)
    seen = set(known.reads(chi.columns))
    unseen = [name for name in known.reads(f.columns) if name not in seen]
    if unseen:
        yield (
            f"f reads {listing(unseen)} of the context, which the normaliser does not: χ cannot follow the constants, "
            f"and f̂ is biased. Use {either('normaliser=un.Anchored()', 'the default --normaliser')}, or let χ read it."
        )


def at_k(gam: Gam, labels: tuple[str, ...]) -> Iterator[checks.BasisCheck]:
    """The smooth terms among `labels` whose edf is at its k, with their k-index."""
    near = [
        term
        for term in gam.smooths
        if term.label in labels
        and term.penalties
        and term.larger is not None
        and all(sp is None for sp in term.fixed_sp)
        and gam.edf[term.label] > NEAR_K * term.size
        and gam_effects.numbers(term, gam.columns) == list(gam_effects.coordinates(term))
    ]
    if not near:
        return
    draw = np.random.default_rng(1)
    n = gam.y.size
    rows = np.sort(draw.choice(n, checks.SUBSAMPLE, replace=False)) if n > checks.SUBSAMPLE else np.arange(n)
    residuals = gam.residuals("deviance")[rows]
    for term in near:
        at = [np.asarray(gam.columns[name], dtype=float)[rows] for name in gam_effects.coordinates(term)]
        here = ~np.isnan(at).any(axis=0)  # a step of length zero has no direction
        index, p = checks.k_index(residuals[here], [x[here] for x in at], draw, repeats=100, spread=True)
        edf = gam.edf[term.label]
        if edf > AT_K * term.size or p < PATTERN:
            yield checks.BasisCheck(term.label, term.size, edf, index, p)


def _at_k(fit: Fit) -> Iterator[str]:
    part = fit.smooths
    if part is None:
        return
    if part.gam is None:  # fits without rows that have residuals: by the edf alone
        full = {
            label: part.term(label)
            for label in part.model_labels
            if part.edf.get(label, 0.0) > AT_K * part.term(label).size
        }
        found = [
            (term, part.edf[label], "")
            for label, term in full.items()
            if term.penalties and term.larger is not None and all(sp is None for sp in term.fixed_sp)
        ]
    else:
        found = [
            (part.term(one.label), one.edf, f" (k-index {one.k_index:.2f}, p {one.p:.2g})")
            for one in at_k(part.gam, part.model_labels)
        ]
    for term, edf, more in found:
        yield (
            f"{term.label}: edf {edf:.1f} is at its limit of {term.size}{more}: the curve may be rougher than its "
            f"basis. Try {term.larger}."
        )


def _beyond(fit: Fit, problem: Problem) -> Iterator[str]:
    """Covariates of smooth terms that reach further on Ω than in the rows, where f̂ is extrapolated."""
    part, domain, obs = fit.smooths, problem.model.domain, problem.obs
    reference = problem.objective.reference
    if part is None or part.gam is None or domain.rule is None or reference is None or reference.everywhere:
        return
    if problem.model.base is not None:  # what lies beyond the kernel's steps weighs nothing
        return
    smooth = [part.term(label) for label in part.model_labels if not part.term(label).parametric]
    columns = part.gam.columns
    names = dict.fromkeys(
        name
        for term in smooth
        if not term.period and term.factor_levels is None
        for name in gam_effects.numbers(term, columns)
    )
    if not names or (domain.rule == "enumeration" and domain.log_volume > np.log(MOST_NODES)):
        return
    order = None if domain.default_order is None else min(12, domain.default_order)
    some = evenly(obs.n, PLACES)
    nodes, _, of = context_rules(domain, obs.take(some), order, centred=False)
    reached = problem.model.covariates(obs).values(names, obs, nodes, some[of])
    for name in names:
        low, high = float(np.nanmin(columns[name])), float(np.nanmax(columns[name]))
        ends = float(np.nanmin(reached[name])), float(np.nanmax(reached[name]))
        if max(low - ends[0], ends[1] - high) > BEYOND * (high - low):
            yield (
                f"On Ω {name} goes from {ends[0]:.3g} to {ends[1]:.3g}, and in the data and reference points only from "
                f"{low:.3g} to {high:.3g}: beyond that its effect is extrapolated, and so is the density. Mix some "
                f"uniform points in: un.Mixture((0.9, un.{type(reference).__name__}(…)), "
                "(0.1, un.Uniform()))."
            )


def _far(fit: Fit) -> Iterator[str]:
    """Reference points that are nowhere near the data."""
    scores = None if fit.solution is None else fit.solution.scores
    if scores is None or scores.drawn is Drawn.NONE:
        return
    auc, effective = scores.overlap()
    if (auc is not None and auc > SEPARATED) or (effective is not None and effective < EFFECTIVE):
        facts = [] if auc is None else [f"the log-odds tell them apart in {100 * auc:.4g} % of pairs"]
        facts += [] if effective is None else [f"{100 * effective:.2g} % of the points are effective"]
        yield FAR.format(how="; ".join(facts))


def apart(data: np.ndarray, points: np.ndarray) -> str | None:
    """How the points miss the data, where a coordinate alone tells them apart; None where it does not."""
    for j in range(data.shape[1]):
        y, z = data[:, j], points[:, j]
        if z.min() > y.max() or z.max() < y.min():
            return (
                f"the data lie between {y.min():.3g} and {y.max():.3g}, the points between {z.min():.3g} and "
                f"{z.max():.3g}" + (f" on axis {j + 1}" if data.shape[1] > 1 else "")
            )
    return None
