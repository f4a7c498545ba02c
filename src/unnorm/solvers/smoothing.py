"""Penalised likelihood with smoothing parameters from the data: the additive engine at work on an objective's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._base.blas import single_threaded
from ..engine.gam_result import Gam
from ..engine.smoothed import INTERCEPT
from ..errors import InputError, unknown
from ..inference.sandwich import ErrorParts
from ..models.base import LinearPart
from ..objectives.smooth import SmoothProblem
from ..terms.base import BuiltTerm
from .smooth_scores import cross, reference_spread, robust, slopes

METHODS = ("reml", "ml", "gcv", "ubre", "cv")
MOST_LINEARISATIONS = 50


@dataclass(frozen=True)
class SmoothSolution:
    """A penalised fit: the additive model with all its terms, and which of them are f's and which χ's."""

    gam: Gam
    terms: tuple[BuiltTerm, ...]  # f's, then χ's
    model_labels: tuple[str, ...]
    normaliser_labels: tuple[str, ...]
    errors: ErrorParts  # covariances of all coefficients
    converged: bool
    reason: str
    iterations: int
    about: dict[str, Any] = field(default_factory=dict)
    theta: np.ndarray | None = None  # where an energy was linearised last


@final
@dataclass(frozen=True)
class Smoothing:
    """Penalised iteratively reweighted least squares; smoothing parameters by REML, ML, GCV/UBRE or cross-validation.

    Args:
        method: "reml", "ml", "gcv" (UBRE, mgcv's default for binomial data), or "cv".
        sp: smoothing parameters to hold fixed, by penalty label.
        threads: at most so many; by default all cores.
        reference_error: whether to measure the reference points' share of the errors.
    """

    method: str = "reml"
    sp: Mapping[str, float] | None = None
    threads: int | None = None
    reference_error: bool = True

    def __post_init__(self) -> None:
        method = str(self.method).lower()
        if method not in METHODS:
            raise InputError(unknown("smoothing", self.method, METHODS))
        object.__setattr__(self, "method", method)

    def to_dict(self) -> dict[str, Any]:
        return {"solver": "Smoothing", "method": self.method, "sp": None if self.sp is None else dict(self.sp)}

    def solve(self, problem: SmoothProblem) -> SmoothSolution:
        """Fit f and χ, BLAS on one thread beside the engine's own."""
        with single_threaded():
            return self._solve(problem)

    def _solve(self, problem: SmoothProblem) -> SmoothSolution:
        """An energy is linearised again and again until its parameters stand still (Gauss–Newton)."""
        theta: np.ndarray | None = None
        gam, part = self._once(problem, theta)
        rounds, standing = 1, True
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
                standing = False
        reason = gam.smoothed.reason if standing else f"the energy still moved after {rounds} linearisations"
        chi = set() if problem.normaliser.terms is None else {t.label for t in problem.normaliser.terms}
        mine = tuple(t.label for t in gam.terms if not _belongs(t.label, chi))
        theirs = tuple(t.label for t in gam.terms if _belongs(t.label, chi))
        return SmoothSolution(
            gam=gam,
            terms=gam.terms,
            model_labels=mine,
            normaliser_labels=theirs,
            errors=self._errors(problem, gam, theta),
            converged=gam.smoothed.converged and standing,
            reason=reason,
            iterations=rounds if rounds > 1 else int(gam.smoothed.iterations.get("outer", 0)),
            about=dict(problem.about),
            theta=theta,
        )

    def _once(
        self, problem: SmoothProblem, theta: np.ndarray | None, start: Gam | None = None
    ) -> tuple[Gam, LinearPart]:
        from ..engine.core import smooth_fit

        rows = problem.rows
        if theta is None:
            built, part, design = problem.linear
        else:
            terms, part = problem.predictor(rows, theta)
            built = tuple(start.terms) if start is not None else problem.build(terms, part)
            design = problem.design(built, part)
        offset = _from_here(part)
        smoothed = smooth_fit(
            design,
            rows.response,
            problem.family,
            weights=rows.weights,
            offset=offset,
            method={"ubre": "GCV"}.get(self.method, self.method.upper()),
            sp=self.sp,
            groups=rows.at if self.method == "cv" else None,
            threads=self.threads,
        )
        if part.theta is not None and part.offset is not None:
            beta = smoothed.beta.copy()
            beta[smoothed.slices[built[0].label].start :][: part.theta.size] += part.theta
            smoothed = replace(smoothed, beta=beta, offset=part.offset)
        gam = Gam(
            formula=str(part.terms),
            family=problem.family,
            method=self.method.upper(),
            smoothed=smoothed,
            terms=built,
            columns=part.columns,
            response="z",
            y=rows.response,
            weights=rows.weights,
            offset=part.offset,
            offset_name=None,
            backend=problem.obs.backend,
        )
        return gam, part

    def _errors(self, problem: SmoothProblem, gam: Gam, theta: np.ndarray | None) -> ErrorParts:
        """V = V_β − H⁻¹(Σ2(IID) − Σ2)H⁻¹, and its two parts.

        V_β = H⁻¹ counts IID reference points in (logistic) or not at all (Poisson). Σ2(IID) is Σ r rᵀ over the
        reference rows' scores: its centring by context drops out, a context's mean score being orthogonal to χ's space.
        """
        V = np.array(gam.smoothed.Vp)
        nothing = np.zeros_like(V)
        if problem.iid_points is None or not self.reference_error:
            total = V + _smoothing_uncertainty(gam, V)
            return ErrorParts(total, total, nothing, (), robust(problem, gam, V))
        design = gam.smoothed.design
        slope = np.where(problem.rows.data, 0.0, slopes(problem.family, gam.linear_predictor, problem.rows))
        iid = V @ cross(design, slope**2) @ V
        if problem.iid_points:
            reference = iid
        else:
            spread = reference_spread(problem, gam, theta)
            reference = iid if spread is None else V @ spread @ V
        total = V - iid + reference if problem.family == "binomial" else V + reference
        total = total + _smoothing_uncertainty(gam, V)
        floor = 0.05 * np.diag(V)  # a difference of estimates must not claim certainty
        short = np.diag(total) < floor
        if short.any():
            total = total + np.diag(np.where(short, floor - np.diag(total), 0.0))
        return ErrorParts(total, total - reference, reference, (), robust(problem, gam, V))


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


def _smoothing_uncertainty(gam: Gam, V: np.ndarray) -> np.ndarray:
    """V_c − V_β: what not knowing λ adds (Wood, Pya & Säfken 2016); zero where no likelihood chose it, or all is known.

    Without it the bands of 1,300 simulated fixations cover 87 to 90 % where they claim 95 (tests/slow).
    """
    if gam.method not in ("REML", "ML") or not np.any(gam.smoothed.estimated):
        return np.zeros_like(V)
    return gam.vcov(unconditional=True) - V


def _belongs(label: str, labels: set[str]) -> bool:
    return label in labels or any(label.startswith(f"{one}:") for one in labels)


__all__ = ["INTERCEPT", "SmoothSolution", "Smoothing"]
