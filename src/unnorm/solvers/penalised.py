"""Penalised maximum of any objective with smooth terms: Newton in β inside, Newton in ρ = log λ outside.

For objectives that are not a sum over rows (𝓛 and 𝓜 with one constant per context, ranking, conditional NCE) the
engine's row pass does not apply.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from .._base.numerics import Rng
from ..data.observations import Observations
from ..engine import gam_effects
from ..engine.arrow import Singular
from ..engine.inference import unconditional
from ..errors import CombinationError, EstimationError, InputError, NoEstimateError, unknown
from ..models.base import Unnormalised
from ..models.built_additive import BuiltAdditive
from ..objectives.additive import placing_rows
from ..objectives.base import Constants, Derivatives, ParametricProblem, Problem
from ..objectives.scores import Reselection, Scores
from ..terms.base import BuiltTerm
from .base import FittedTerms, Solution, levels_unseen
from .engine_rows import PRIOR
from .fellner_schall import (
    JointPenalty,
    PlacedPenalty,
    placed_penalties,
    seen_penalties,
    total_penalty,
)
from .newton import Newton
from .reml_search import Search, Step

MOST_UPDATES = 60
ENOUGH = 1e-4  # nats that the last step in ρ may promise
SHORTEST = 0.02  # of a step in ρ: where the criterion rises even so, rounding or noise of the objective is all there is
INFINITE = 1e-3  # curvature of the criterion in ρ_j, in nats, below which λ_j is infinite in effect
HEAVIER, MOST_HEAVIER = 30.0, 6  # times a first λ at which nothing can be inverted, and how often
NOTHING_LEFT = (
    "There is no estimate to working precision: whatever smoothing parameters were tried, hardly any information is "
    "left to hold the coefficients. Lower k, or give smoothing=un.Smoothing(sp=…); where there are reference points, "
    "take some that are more like the data."
)
HELD = 1e4  # of the largest information: the ridge that holds what is not seen at zero


@final
@dataclass(frozen=True)
class Balance:
    """What tells coefficients apart, data and penalties each on their own scale: H̃ + Σ_j S_j/‖S_j‖, whatever λ is."""

    spans: tuple[slice, ...]  # of the terms
    penalties: np.ndarray  # Σ_j S_j/‖S_j‖ over the penalties that act

    @classmethod
    def of(cls, spans: Sequence[slice], pieces: Sequence[PlacedPenalty], held: np.ndarray) -> Balance:
        total = held @ held.T
        for piece in pieces:
            if piece.fixed != 0.0:
                total[piece.span, piece.span] += piece.matrix / max(float(np.linalg.norm(piece.matrix, 2)), 1e-300)
        return cls(tuple(spans), total)

    def with_data(self, now: Derivatives) -> Derivatives:
        """The same with the information added, each term's block of it of norm one."""
        size = np.ones(len(now.gradient))
        for span in self.spans:
            size[span] = max(float(np.linalg.norm(now.information[span, span], 2)), 1e-300) ** -0.5
        H = now.information * np.outer(size, size)
        return replace(now, information=H + self.penalties, scale=now.scale * size**2 + np.diag(self.penalties))


@final
@dataclass(frozen=True)
class PenalisedProblem(ParametricProblem):
    """problem − ½ βᵀ S_λ β."""

    problem: ParametricProblem
    penalty: np.ndarray
    begin: np.ndarray
    balance: Balance

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.names

    @property
    def start(self) -> np.ndarray:
        return self.begin

    @property
    def concave(self) -> bool:
        return self.problem.concave

    def value(self, theta: np.ndarray) -> float:
        return self.problem.value(theta) - 0.5 * float(theta @ self.penalty @ theta)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        d = self.problem.derivatives(theta)
        slope = self.penalty @ theta
        return Derivatives(
            d.value - 0.5 * float(theta @ slope), d.gradient - slope, d.information + self.penalty, d.scale
        )

    def identifying(self, now: Derivatives) -> Derivatives:
        return self.balance.with_data(replace(now, information=now.information - self.penalty))

    def unbounded(self, direction: np.ndarray) -> bool:
        free = float(direction @ self.penalty @ direction) <= 1e-12
        return free and self.problem.unbounded(direction)

    def finer(self) -> ParametricProblem | None:
        finer = self.problem.finer()
        return None if finer is None else replace(self, problem=finer)

    def refined(self, theta: np.ndarray) -> ParametricProblem | None:
        finer = self.problem.refined(theta)
        return None if finer is None else replace(self, problem=finer, begin=theta)

    def scores(self, theta: np.ndarray) -> Scores:
        return self.problem.scores(theta)

    def constants(self, theta: np.ndarray) -> Constants:
        return self.problem.constants(theta)


def solve_penalised(problem: Problem, method: str, sp: Mapping[str, float] | None, rng: Rng) -> Solution:
    """The penalised maximum with λ by REML (or held fixed where `sp` gives every one)."""
    model, columns = built_additive(problem.model, problem.obs)
    pieces = placed_penalties(model.built, sp)
    _check(pieces, method, sp)
    parametric = problem.parametric(rng, model)
    finer = parametric.finer() or parametric  # a rule too coarse for the terms would not see some of their functions
    information = finer.derivatives(np.zeros(len(parametric.names))).information
    pieces, held = seen_penalties(model.built, pieces, information)
    end = _alternate(parametric, pieces, Newton(), _spans(model.built), held)
    terms = _fitted(model, columns, pieces, end)
    plain = [term for term in model.built if term.parametric]
    index = np.concatenate([np.arange(terms.beta.size)[terms.slices[term.label]] for term in plain] or [[]])
    index = index.astype(int)
    notes, figures = end.problem.report(end.beta)
    return Solution(
        names=tuple(name for term in plain for name in term.coefficient_names),
        estimate=end.beta[index],
        index=index,
        constants=end.problem.constants(end.beta),
        value=end.problem.value(end.beta),
        loglik=end.problem.loglik(end.beta),
        converged=end.converged,
        reason=end.reason,
        iterations=end.updates,
        solver={"solver": "Smoothing", "method": method, "sp": None if sp is None else dict(sp)},
        scores=_scores(end, pieces),
        terms=terms,
        notes=(*notes, *problem.model.covariates(problem.obs).notes(problem.obs)),
        figures=figures,
        source=end.problem.made_of(),
    )


def built_additive(model: Unnormalised, obs: Observations) -> tuple[BuiltAdditive, Mapping[str, np.ndarray]]:
    """The model's terms built on the data and on points spread evenly over Ω, and the covariates there."""
    rows = placing_rows(model, obs)
    part = model.linear_part(obs, rows.y, rows.context, None)
    known = model.covariates(obs)
    periods = {name: known.period(name) for name in part.terms.columns if known.period(name)}
    partial = known.partial(part.terms.columns)
    built = part.terms.build(
        part.columns, knots=model.knots, periods=periods, partial=partial, intercept=True, categories=obs.categories,
        boundary=known.boundary, ends=known.ends,
    )  # fmt: skip
    return BuiltAdditive(model, obs, tuple(built)), part.columns


def _check(pieces: Sequence[PlacedPenalty], method: str, sp: Mapping[str, float] | None) -> None:
    known = [piece.label for piece in pieces]
    wrong = [label for label in sp or () if label not in known]
    if wrong:
        raise InputError(unknown("sp", wrong[0], known))
    if method != "reml" and any(piece.fixed is None for piece in pieces):
        raise CombinationError(
            f"This objective chooses its smoothing by REML (or takes fixed sp=…); got smoothing={method!r}. "
            "un.Logistic and un.Poisson with un.Smooth take every method."
        )


@dataclass(frozen=True)
class _End:
    """β̂ at its smoothing parameters."""

    problem: ParametricProblem
    beta: np.ndarray
    lam: np.ndarray
    information: np.ndarray  # H, without the penalty
    penalty: np.ndarray  # S_λ
    V: np.ndarray  # (H + S_λ)⁻¹
    converged: bool
    reason: str
    updates: int
    score: float  # −REML (Laplace)
    joint: JointPenalty  # log|S_λ|₊ on what is seen
    last: Step | None = None  # in ρ, from here


def _spans(terms: Sequence[BuiltTerm]) -> list[slice]:
    at = np.cumsum([0, *(term.size for term in terms)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(at)]


def _alternate(
    problem: ParametricProblem, pieces: Sequence[PlacedPenalty], newton: Newton, spans: Sequence[slice] = (),
    held: np.ndarray | None = None,
) -> _End:  # fmt: skip
    """Newton in β at fixed λ, then λ on the quadratic at β̂, until the criterion gains nothing. `held` (p, c):
    orthonormal directions that the likelihood does not see, at zero."""
    free = np.array([piece.fixed is None for piece in pieces], dtype=bool)
    size = len(problem.names)
    held = np.zeros((size, 0)) if held is None else held
    first = problem.derivatives(np.zeros(size))
    ridge = HELD * float(np.diag(first.information).max(initial=0.0))
    fixed = ridge * held @ held.T
    balance, search = Balance.of(spans, pieces, held), Search.of(pieces, first.information)

    def run(problem: ParametricProblem, lam: np.ndarray, beta: np.ndarray) -> _End:
        best: tuple[_End, Step] | None = None
        share, met, overshot = 1.0, [], False  # of the step that is asked for; steps so far; whether one went too far
        for update in range(1, MOST_UPDATES + 1):
            S = total_penalty(pieces, lam, size) + fixed
            inner, path = newton.climb(PenalisedProblem(problem, S, beta, balance))
            assert isinstance(inner, PenalisedProblem)
            refined = inner.problem is not problem
            problem, beta = inner.problem, path.theta
            d = problem.derivatives(beta)
            V = _inverse(d.information + S)
            if V is None and free.any():
                lam, share = _heavier(best, lam, share, free, update)
                continue
            if V is None:
                raise NoEstimateError(NOTHING_LEFT)
            reml = _reml(d.value - 0.5 * float(beta @ S @ beta), V, search.joint, lam, np.full(held.shape[1], ridge))
            end = _End(problem, beta, lam, d.information, S, V, path.converged, path.reason, update, reml, search.joint)
            if not free.any():
                return end
            if best is not None and not refined and reml > best[0].score + 0.1 * ENOUGH and share > SHORTEST:
                was, step = best  # the quadratic is not good so far away: its slope is, and the value here
                bend = reml - was.score - share * step.slope
                share *= float(np.clip(-0.5 * share * step.slope / max(bend, 1e-300), 0.1, 0.5))
                lam, overshot = _between(was.lam, step.lam, share), True
                continue
            try:
                step = search.step(problem, beta, d, lam, V, fixed, met if overshot else ())
            except Singular:  # nearly separated: so light a penalty leaves β̂ where hardly any information is left
                lam, share = _heavier(best, lam, share, free, update)
                continue
            end = replace(end, last=step)
            if step.gain < ENOUGH:
                return _ended(end, step, [pieces[j].label for j in step.falling])
            best, share, lam = (end, step), 1.0, step.lam
            met.append(step)
        assert best is not None
        return replace(
            best[0], converged=False, reason=f"smoothing parameters still moved after {MOST_UPDATES} updates"
        )

    end = run(problem, search.start, np.zeros(size))
    for lam in search.others(end.lam, end.last) if end.last is not None else ():
        try:
            other = run(end.problem, lam, end.beta)
        except (Singular, EstimationError):
            continue
        if other.converged and other.score < end.score + (ENOUGH if not end.converged else -ENOUGH):
            end = other
    return end


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """None where it is singular."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None


def _heavier(
    best: tuple[_End, Step] | None, lam: np.ndarray, share: float, free: np.ndarray, update: int
) -> tuple[np.ndarray, float]:
    """λ to try in place of one at which H + S_λ cannot be inverted: nearer to the last, or heavier than the first, and
    the share of the step."""
    if best is None:
        if update == MOST_HEAVIER:
            raise NoEstimateError(NOTHING_LEFT)
        return np.where(free, HEAVIER * lam, lam), share
    was, step = best
    return _between(was.lam, step.lam, 0.3 * share), 0.3 * share


def _ended(end: _End, step: Step, falling: Sequence[str]) -> _End:
    """Where no step in ρ gains anything: why that is the end, or why it is none."""
    if falling:
        reason = f"the criterion still falls as the smoothing parameter of {', '.join(falling)} goes to zero"
        return replace(end, converged=False, reason=f"{reason}; lower its k")
    if not end.converged:  # β̂ itself was not reached, and has its own reason
        return end
    return replace(end, reason=f"the last step in the smoothing parameters would gain {step.gain:.0e}")


def _between(lam: np.ndarray, ahead: np.ndarray, share: float) -> np.ndarray:
    """The share of the way in log λ, where λ is not zero."""
    return np.where(lam > 0, lam ** (1.0 - share) * ahead**share, lam)


def _scores(end: _End, pieces: Sequence[PlacedPenalty]) -> Scores:
    """With the penalty, and what not knowing λ adds: V_c − V, as in the engine, with J = dβ̂/dρ = −V λ_j S_j β̂."""
    scores = end.problem.scores(end.beta)
    chosen = [j for j, piece in enumerate(pieces) if piece.fixed is None]
    curve = np.diag(_reml_hessian(end, pieces, chosen))
    free = [j for j, one in zip(chosen, curve) if one > INFINITE]  # an infinite λ stays infinite
    if not free:
        return replace(scores, penalty=end.penalty)  # pyright: ignore[reportArgumentType]
    J = np.zeros((end.beta.size, len(free)))
    for column, j in enumerate(free):
        span = pieces[j].span
        J[:, column] = -end.lam[j] * end.V[:, span] @ (pieces[j].matrix @ end.beta[span])
    hessian = _reml_hessian(end, pieces, free)
    values, vectors = np.linalg.eigh(hessian)
    V_rho = (vectors / (np.maximum(values, 0.0) + PRIOR)) @ vectors.T
    again = Reselection(J, V_rho)
    blocks, vague = [(pieces[j].span.start, pieces[j].matrix) for j in free], hessian + PRIOR * np.eye(len(free))
    A, zero = end.information, np.zeros(end.beta.size)
    smoothing = unconditional(A + end.penalty, A, blocks, end.lam[free], end.beta, 1.0, vague, zero).covariance - end.V
    return replace(scores, penalty=end.penalty, reselection=again, smoothing=smoothing)  # pyright: ignore


def _reml_hessian(end: _End, pieces: Sequence[PlacedPenalty], free: Sequence[int]) -> np.ndarray:
    """∂²(−REML)/∂ρ∂ρ with H held fixed (Wood 2011, Appendix B)."""
    size = end.beta.size
    full = []
    for j in free:
        one = np.zeros((size, size))
        one[pieces[j].span, pieces[j].span] = end.lam[j] * pieces[j].matrix
        full.append(one)
    out = -0.5 * end.joint.logdet(end.lam)[2][np.ix_(free, free)]
    for a, A in enumerate(full):
        out[a, a] += 0.5 * float(end.beta @ A @ end.beta + np.sum(end.V * A))
        for b, B in enumerate(full):
            crossed = float(np.sum((end.V @ A) * (end.V @ B).T))
            out[a, b] -= 0.5 * crossed + float(end.beta @ A @ end.V @ B @ end.beta)
    return (out + out.T) / 2


def _fitted(
    model: BuiltAdditive, columns: Mapping[str, np.ndarray], pieces: Sequence[PlacedPenalty], end: _End
) -> FittedTerms:
    """The terms; there is no smooth χ."""
    slices, begin = {}, 0
    for term in model.built:
        slices[term.label] = slice(begin, begin + term.size)
        begin += term.size
    F = end.V @ end.information
    edf, edf1 = np.diag(F), np.diag(2 * F - F @ F)
    smooths = [term for term in model.built if not term.parametric]
    return FittedTerms(
        terms=model.built,
        model_labels=tuple(slices),
        normaliser_labels=(),
        slices=slices,
        beta=end.beta,
        grids={term.label: gam_effects.grid(term, columns) for term in model.built},
        within=levels_unseen(model.built, model.source.covariates(model.obs)),
        edf={t.label: float(edf[slices[t.label]].sum()) for t in smooths},
        edf1={t.label: float(edf1[slices[t.label]].sum()) for t in smooths},
        sp=dict(zip((piece.label for piece in pieces), end.lam.tolist())),
        score=end.score,
        method="REML",
    )


def _reml(penalised: float, V: np.ndarray, joint: JointPenalty, lam: np.ndarray, ridges: np.ndarray) -> float:
    """−{ℓ_p + ½ log|S|₊ − ½ log|H + S| + ½ M₀ log 2π} (Wood 2011, eq. 4) on what is seen; `ridges` hold the rest."""
    null = len(V) - joint.rank - len(ridges)
    logdet = -float(np.linalg.slogdet(V)[1] + np.log(ridges).sum())
    return -(penalised + 0.5 * joint.logdet(lam)[0] - 0.5 * logdet + 0.5 * null * np.log(2 * np.pi))
