"""Penalised likelihood with smoothing parameters from the data: the additive engine at work on an objective's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from .._base.blas import single_threaded
from .._base.memory import allowed
from .._base.numerics import Rng, flag
from .._base.threads import cores
from ..engine import gam_effects
from ..engine.design import Design
from ..engine.device.placing import refuse
from ..engine.device.spec import Device, device_of
from ..engine.gam_result import Gam
from ..engine.sides import Sides
from ..engine.smoothed import INTERCEPT, Smoothed
from ..errors import CombinationError, InputError, unknown
from ..models.base import LinearPart
from ..objectives.additive import AdditiveProblem
from ..objectives.anchor import Integrated, anchor_report
from ..objectives.base import Constants, Problem
from ..objectives.parts import require_room
from ..terms.base import BuiltTerm
from .anchored import AnchoredFit, fit_anchored, row_rounds
from .anchored_parts import ended, part_rounds
from .base import AnchoredRows, FittedTerms, Solution, Solver, levels_unseen
from .device_rows import fit_there, made_there
from .engine_rows import EngineScores
from .many_rows import fit_many
from .penalised import solve_penalised
from .weaker import weaker

METHODS = ("reml", "ml", "gcv", "ubre", "cv")
MOST_LINEARISATIONS = 50
MOST_WEAKENINGS = 4  # of χ's penalty


@final
@dataclass(frozen=True)
class Smoothing(Solver):
    """Penalised iteratively reweighted least squares; smoothing parameters by REML, ML, GCV/UBRE or cross-validation.

    Args:
        method: "reml", "ml", "gcv" (UBRE, mgcv's default for binomial data), or "cv".
        sp: smoothing parameters to hold fixed, by penalty label.
        threads: at most so many; by default all cores.
        reference_error: whether to measure the reference points' share of the errors, and with the same fresh points to
            test that δ is constant (anchored constants).
        device: "gpu" makes the engine's passes over the rows on a GPU through JAX, with the same result to 1e-8.

    Example:
        >>> import unnorm as un
        >>> un.Smoothing(method="ml", threads=1).method
        'ml'
    """

    method: str = "reml"
    sp: Mapping[str, float] | None = None
    threads: int | None = None
    reference_error: bool = True
    device: str | Device | None = None

    def __post_init__(self) -> None:
        method = str(self.method).lower()
        if method not in METHODS:
            raise InputError(unknown("smoothing", self.method, METHODS))
        object.__setattr__(self, "method", method)
        flag(self.reference_error, "reference_error of Smoothing")
        object.__setattr__(self, "device", device_of(self.device))

    def to_dict(self) -> dict[str, Any]:
        return {"solver": "Smoothing", "method": self.method, "sp": None if self.sp is None else dict(self.sp)}

    smooth_terms = True
    smooth_normaliser = True

    @property
    def plain(self) -> bool:
        """Whether the smoothing is chosen as by default: REML, none held."""
        return self.method == "reml" and self.sp is None

    def solve(self, problem: Problem, rng: Rng) -> Solution:
        """Fit f and χ: on rows where the objective is a sum over them, else by penalised Newton on the terms' bases."""
        with single_threaded():  # BLAS, beside the engine's own threads
            if not problem.by_rows:
                if self.device is not None:
                    raise CombinationError(
                        f"device= is for objectives that are sums over rows; {problem.objective.name} is not one. Use "
                        "objective=un.Logistic(…), or leave device out."
                    )
                return solve_penalised(problem, self.method, self.sp, rng)
            with problem.resources.opened() as resources:
                here = replace(problem, resources=resources.choosing(self.method))
                return self.solve_rows(here.additive(rng))

    def solve_rows(self, problem: AdditiveProblem) -> Solution:
        """An energy is linearised again and again until its parameters converge (Gauss–Newton)."""
        device = device_of(self.device)
        there = None if device is None else made_there(problem, device)
        problem = problem if there is None else replace(problem, sampler=there.sample)
        if problem.apart:
            method, once = self.method.upper(), partial(self._fit_parts, problem)
            if device is None:
                scores = fit_many(problem, once, method, self.threads)
            else:
                refuse(method, None, problem.resources.asked)
                scores = fit_there(problem, there, device, once, method, self.threads)
            return self._solution(problem, scores, 1, True, scores.gam.smoothed.reason)
        if problem.anchored_apart:
            if device is not None:
                raise CombinationError(
                    f"device= takes anchored constants up to some two million rows; there are {problem.source.size:,}. "
                    "Use normaliser=un.Smooth(…), or leave device out."
                )
            return self._solve_anchored_parts(problem)
        require_room(problem)
        if problem.normaliser.anchored:
            return self._solve_anchored(problem)
        theta: np.ndarray | None = None
        gam, part = self._once(problem, theta)
        rounds, settled = 1, True
        if part.theta is not None:  # f is not linear
            names = [name for name in part.columns if name in part.terms.terms[0].columns]
            for rounds in range(2, MOST_LINEARISATIONS + 1):  # noqa: B007
                new = np.array([gam.coefficients[name] for name in names])
                old = np.zeros_like(new) if theta is None else theta
                theta = new if theta is None else _bounded(old, new)
                gam, part = self._once(problem, theta, start=gam)
                move = np.abs(np.array([gam.coefficients[name] for name in names]) - theta)
                if np.all(move <= 1e-7 * (1 + np.abs(theta))):
                    break
            else:
                settled = False
        reason = gam.smoothed.reason if settled else f"the energy still moved after {rounds} linearisations"
        return self._solution(problem, EngineScores(problem, gam, theta), rounds, settled, reason)

    def _solve_anchored(self, problem: AdditiveProblem) -> Solution:
        """Constants that follow θ: linearised again until f's coefficients converge."""

        found = fit_anchored(
            row_rounds(problem, partial(self._fit, problem)), cores() if self.threads is None else self.threads
        )
        reason = _about(found, found.gam.smoothed.reason)
        scores = EngineScores(problem, found.gam, found.theta, found.integrated, found.anchor.bare())
        solution = self._solution(problem, scores, found.rounds, found.settled, reason)
        assert solution.terms is not None
        rows = AnchoredRows(problem.rows.context, problem.linear[1].offset, found.integrated)
        return _with_report(replace(solution, terms=replace(solution.terms, anchored=rows)), found)

    def _solve_anchored_parts(self, problem: AdditiveProblem) -> Solution:
        """The same on rows that are never together."""
        rounds = part_rounds(problem, partial(self._fit_parts, problem), self.method.upper(), self.threads)
        found = fit_anchored(rounds, cores() if self.threads is None else self.threads)
        gam, walk = ended(found)
        reason = _about(found, gam.smoothed.reason)
        scores = EngineScores(problem, gam, None, found.integrated, found.anchor.bare(), walk)
        return _with_report(self._solution(problem, scores, found.rounds, found.settled, reason), found)

    def _solution(
        self, problem: AdditiveProblem, scores: EngineScores, rounds: int, settled: bool, reason: str
    ) -> Solution:
        scores = replace(scores, gam=_at_home(scores.gam, problem))
        gam = scores.gam
        terms = _fitted(problem, gam)
        parametric = [term for term in gam.terms if term.parametric and term.label in terms.model_labels]
        spans = [terms.slices[term.label] for term in parametric]
        coefficients = list(gam.coefficients)
        index = np.array([i for span in spans for i in range(span.start, span.stop)], dtype=int)
        return Solution(
            names=tuple(coefficients[i] for i in index),
            estimate=terms.beta[index],
            index=index,
            constants=Constants(self._constants(problem, terms, scores.integrated)),
            value=scores.value,
            loglik=problem.loglik(scores.value),
            converged=gam.smoothed.converged and settled,
            reason=reason,
            iterations=rounds if rounds > 1 else int(gam.smoothed.iterations.get("outer", 0)),
            solver=self.to_dict(),
            scores=scores.scores(self.reference_error),
            terms=terms,
            notes=(
                *problem.notes,
                *gam.smoothed.notes,
                *problem.model.covariates(problem.obs).notes(problem.obs),
                *(term.remark for term in gam.terms if term.remark is not None),
            ),
            figures={**problem.figures, "rows": problem.source.size},
            source=problem.source,
        )

    def _constants(self, problem: AdditiveProblem, terms: FittedTerms, integrated: Integrated | None) -> np.ndarray:
        """χ̂ at the observations' contexts; one number where the normaliser has no terms and follows nothing."""
        level = float(terms.beta[terms.slices[INTERCEPT]][0])
        if problem.normaliser.terms is None and integrated is None:
            return np.array([level])
        columns = problem.normaliser_columns(np.arange(problem.obs.n))
        chi = np.full(problem.obs.n, level) - (0.0 if integrated is None else integrated.log_z)
        for term in terms.terms:
            if term.label in terms.normaliser_labels:
                own = {name: columns[name] for name in term.covariates}
                chi += term.design(own) @ terms.beta[terms.slices[term.label]]
        return chi

    def _once(
        self, problem: AdditiveProblem, theta: np.ndarray | None, start: Gam | None = None
    ) -> tuple[Gam, LinearPart]:
        if theta is None:
            built, part, design = problem.linear
        else:
            built = problem.linear[0] if start is None else tuple(start.terms)
            part, design = problem.met(built, theta)
        return self._fit(problem, built, part, design), part

    def _weakened(
        self,
        smoothed: Smoothed,
        chi: tuple[BuiltTerm, ...],
        fitted: Callable[[Mapping[str, float] | None, Smoothed | None], Smoothed],
    ) -> Smoothed:
        """The same with χ's penalty so weak that f does not notice it, the others chosen again."""
        for _ in range(MOST_WEAKENINGS):
            sp, _ = weaker(smoothed, chi)
            now = dict(zip(smoothed.sp_labels, np.exp(smoothed.rho)))
            held = {label: now[label] for label in sp}
            if all(sp[label] >= held[label] for label in sp):
                return smoothed
            smoothed = fitted({**(self.sp or {}), **sp}, None)
        return smoothed

    def _choose(
        self, problem: AdditiveProblem, built: tuple[BuiltTerm, ...], fitted: Any, start: Smoothed | None, rough: bool
    ) -> Smoothed:
        """The fit with its smoothing parameters chosen, χ's penalty weak where it is to be."""
        smoothed = fitted(self.sp, start)
        if problem.normaliser.weakly and self.method != "cv" and not rough:
            smoothed = self._weakened(smoothed, tuple(t for t in built if t.label in problem.delta_labels), fitted)
        return smoothed

    # long: what one fit needs
    def _fit_parts(
        self, problem: AdditiveProblem, design: Any, side: Sides, built: tuple[BuiltTerm, ...],
        start: Smoothed | None = None, rough: bool = False,
    ) -> Smoothed:  # fmt: skip
        """One penalised fit of rows that are never together."""
        from ..engine.core import smooth_fit

        method = {"ubre": "GCV"}.get(self.method, self.method.upper())

        def fitted(sp: Mapping[str, float] | None, start: Smoothed | None) -> Smoothed:
            return smooth_fit(
                design, None, problem.family, known=side, method=method, sp=sp, start=start, threads=self.threads,
                rough=rough,
            )  # fmt: skip

        return self._choose(problem, built, fitted, start, rough)

    def _fit(
        self,
        problem: AdditiveProblem,
        built: tuple[BuiltTerm, ...],
        part: LinearPart,
        design: Design,
        start: Smoothed | None = None,
        rough: bool = False,
    ) -> Gam:
        """One penalised fit, its smoothing parameters chosen; `rough`: as well as the start of another needs."""
        from ..engine.core import smooth_fit

        offset = _from_here(part)
        own = problem.resources.asked and not problem.normaliser.anchored  # parts have their response to themselves
        side = design.sides(problem.family, None) if own else None

        def fitted(sp: Mapping[str, float] | None, start: Smoothed | None) -> Smoothed:
            return smooth_fit(
                design,
                problem.response.y,
                problem.family,
                known=side,
                weights=problem.response.weights,
                offset=offset,
                method={"ubre": "GCV"}.get(self.method, self.method.upper()),
                sp=sp,
                groups=problem.rows.context if self.method == "cv" and not problem.source.shared else None,
                start=start,
                threads=self.threads,
                rough=rough and self.method != "cv",
                device=device_of(self.device),
                client=problem.resources.folds,
            )

        smoothed = self._choose(problem, built, fitted, start, rough)
        if side is not None and offset is not None:
            smoothed = replace(smoothed, offset=offset)
        if part.theta is not None and part.offset is not None:
            beta = smoothed.beta.copy()
            beta[smoothed.slices[built[0].label].start :][: part.theta.size] += part.theta
            smoothed = replace(smoothed, beta=beta, offset=part.offset)
        return Gam(
            formula=str(part.terms),
            family=problem.family,
            method=self.method.upper(),
            smoothed=smoothed,
            terms=built,
            columns=part.columns,
            response="z",
            y=problem.response.y,
            weights=problem.response.weights,
            offset=part.offset,
            offset_names=None,
            backend=problem.obs.backend,
        )


def _with_report(solution: Solution, found: AnchoredFit) -> Solution:
    """The solution with what is to be said of its integrals."""
    notes, figures = anchor_report(found.anchor, found.shift)
    return replace(solution, notes=(*solution.notes, *notes), figures={**solution.figures, **figures})


def _at_home(gam: Gam, problem: AdditiveProblem) -> Gam:
    """The fit with its rows in this process, whoever summed over them."""
    if problem.resources.workers is None:
        return gam
    home = gam.smoothed.design.at_home(allowed(problem.resources.memory), cores())
    return replace(gam, smoothed=replace(gam.smoothed, design=home))


def _about(found: AnchoredFit, reason: str) -> str:
    """Why the rounds ended: the last fit's reason is none where the constants still moved."""
    if not found.settled and found.gam.smoothed.converged:
        return f"the constants still moved after {found.rounds} linearisations"
    return f"{reason.rstrip('.')}; {found.rounds} linearisations of the constants"


def _from_here(part: LinearPart) -> np.ndarray | None:
    """The offset with f(θ) in place of f(θ) − J θ where f is not linear: the engine starts at f(θ), and finds θ' − θ.

    At J θ' = 0, where it would start otherwise, f may be so large that a Poisson likelihood overflows.
    """
    if part.theta is None or part.offset is None:
        return part.offset
    names = part.terms.terms[0].columns
    return part.offset + np.column_stack([part.columns[name] for name in names]) @ part.theta


def _bounded(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """A Gauss–Newton step that does not leap: at most a few times the parameter's own size."""
    most = 4 * (1 + np.abs(old))
    return old + np.clip(new - old, -most, most)


def _fitted(problem: AdditiveProblem, gam: Gam) -> FittedTerms:
    """The terms of a fitted additive model, f's and χ's apart."""
    chi = problem.delta_labels
    return FittedTerms(
        terms=gam.terms,
        model_labels=tuple(t.label for t in gam.terms if t.label not in chi),
        normaliser_labels=tuple(t.label for t in gam.terms if t.label in chi),
        slices=dict(gam.smoothed.slices),
        beta=gam.smoothed.beta,
        grids={term.label: gam_effects.grid(term, gam.columns) for term in gam.terms},
        edf=gam.edf,
        edf1={t.label: float(gam.smoothed.edf1[gam.index(t.label)].sum()) for t in gam.smooths},
        sp=gam.sp,
        score=gam.score,
        method=gam.method,
        gam=gam,
        within=levels_unseen(gam.terms, problem.model.covariates(problem.obs)) if problem.normaliser.anchored else {},
    )
