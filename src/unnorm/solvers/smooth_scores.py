"""Scores of a penalised fit by context or cluster: robust errors, NCIC, and what the reference points cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._base.numerics import quadratic_forms
from ..engine import gam_effects
from ..engine.gam_result import Gam
from ..engine.segment import Rows
from ..engine.smoothed import INTERCEPT
from ..inference.evidence import contrast_evidence
from ..inference.sandwich import ErrorParts
from ..objectives.smooth import SmoothProblem, SmoothRows
from .redraw_scores import RedrawScores

CHUNK = 65_536
MOST_DENSE = 2e9  # rows × coefficients above which NCIC is not computed


def slopes(family: str, eta: np.ndarray, rows: SmoothRows) -> np.ndarray:
    """dℓ/dη by row."""
    slope = rows.response - _mean(family, eta)
    return slope if rows.weights is None else slope * rows.weights


def _mean(family: str, eta: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-eta)) if family == "binomial" else np.exp(np.minimum(eta, 700.0))


def cross(design: Any, weights: np.ndarray) -> np.ndarray:
    """XᵀDX, by the engine's own pass with a Gaussian likelihood whose weights are D."""
    zeros = np.zeros(design.rows)
    _, _, arrow = design.sweep(
        Rows(zeros, np.ascontiguousarray(design.sort(weights)), np.empty(0)), 2, np.zeros(design.size)
    )
    return design.to_user(design.to_user(arrow.dense()).T).T


def total(design: Any, values: np.ndarray) -> np.ndarray:
    """Xᵀv, by the same pass."""
    _, score, _ = design.sweep(
        Rows(np.ascontiguousarray(design.sort(values)), np.empty(0), np.empty(0)), 2, np.zeros(design.size)
    )
    return design.to_user(score)


def reference_spread(
    problem: SmoothProblem, gam: Gam, theta: np.ndarray | None, times: float = 1.0
) -> np.ndarray | None:
    """Σ2: the variance of the reference points' score over fresh randomisations, `times` as many; None without any."""
    inner = gam.smoothed
    score = RedrawScores(problem, gam.terms, inner.slices, inner.beta, gam.columns, slopes)
    sums = [score(rows, theta) for rows in (problem.redraws(times) if problem.redraws is not None else [])]
    if len(sums) < 2:
        return None
    centred = np.array(sums) - np.mean(sums, axis=0)
    return centred.T @ centred / (len(sums) - 1)


def dense(gam: Gam, begin: int, end: int) -> np.ndarray:
    """Rows begin … end of X, in the order of the coefficients."""
    X = np.zeros((end - begin, gam.smoothed.size))
    if INTERCEPT in gam.smoothed.slices:
        X[:, gam.smoothed.slices[INTERCEPT]] = 1.0
    for term in gam.terms:
        columns = {name: gam.columns[name][begin:end] for name in term.covariates}
        new = np.ones(end - begin, dtype=bool)  # rows of one context lie together, and share the covariates of χ
        new[1:] = np.any([column[1:] != column[:-1] for column in columns.values()], axis=0)
        first = np.flatnonzero(new)
        values = term.design({name: column[first] for name, column in columns.items()})
        X[:, gam.smoothed.slices[term.label]] = values[np.cumsum(new) - 1] if len(first) < end - begin else values
    return X


def score_sums(gam: Gam, slope: np.ndarray, label: np.ndarray, size: int) -> np.ndarray:
    """(size, p) Σ of the rows' scores by label."""
    from scipy import sparse

    out = np.zeros((size, gam.smoothed.size))
    for begin in range(0, len(slope), CHUNK):
        end = min(begin + CHUNK, len(slope))
        pick = sparse.csr_array(
            (slope[begin:end], (label[begin:end], np.arange(end - begin))), shape=(size, end - begin)
        )
        out += pick @ dense(gam, begin, end)
    return out


def robust(problem: SmoothProblem, gam: Gam, V: np.ndarray) -> np.ndarray | None:
    """C/(C − 1) V (Σ_c g_c g_cᵀ) V + V S_λ V over clusters; the shared reference points of IID data are one each."""
    if problem.clusters is None:
        return None
    rows = problem.rows
    slope = slopes(problem.family, gam.linear_predictor, rows)
    count = int(problem.clusters.max(initial=0)) + 1
    inside = np.ones(len(slope), dtype=bool) if problem.obs.has_context else rows.data
    g = score_sums(gam, np.where(inside, slope, 0.0), problem.clusters[rows.at], count)
    meat = g.T @ g * (count / max(count - 1, 1))
    if not inside.all():
        meat = meat + cross(gam.smoothed.design, np.where(inside, 0.0, slope) ** 2)
    return V @ (meat + gam.smoothed.penalty) @ V


def smooth_evidence(
    problem: SmoothProblem, gam: Gam, errors: ErrorParts, labels: tuple[str, ...], theta: np.ndarray | None
) -> dict[str, Any]:
    """What `Fit.advise` reads: variances are means over each term's grid; θ is where an energy was linearised."""
    if problem.iid_points is None:
        return {}
    rows, family = problem.rows, problem.family
    eta, design = gam.linear_predictor, gam.smoothed.design
    w = np.ones(len(eta)) if rows.weights is None else rows.weights
    S = gam.smoothed.penalty
    terms = [term for term in gam.terms if term.label in labels]
    grids = [(gam.smoothed.slices[t.label], gam_effects.design(t, gam_effects.grid(t, gam.columns))) for t in terms]

    def means(V: np.ndarray) -> np.ndarray:
        return np.array([quadratic_forms(C, V[at, at]).mean() for at, C in grids])

    logistic = family == "binomial"

    def bread(c: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The means of the rows, how often they count, and H⁻¹, with c times as many points."""
        mean = _mean(family, eta - np.log(c) if logistic else eta)
        curvature = w * mean * (1 - mean) if logistic else w * mean
        times = np.where(rows.data, 1.0, c) if logistic else np.ones(len(eta))
        return mean, times, np.linalg.inv(cross(design, curvature * times) + S)

    def parts(c: float) -> tuple[np.ndarray, np.ndarray]:
        mean, times, V = bread(c)
        r = np.where(rows.data, 0.0, w * mean)
        meat = cross(design, times * r**2) if logistic else cross(design, r**2) / c
        return means(V), means(V @ meat @ V)

    def measured(c: float) -> np.ndarray:
        V, spread = bread(c)[2], reference_spread(problem, gam, theta, c)
        return parts(c)[1] if spread is None else means(V @ spread @ V)

    log_w = eta if logistic else None
    evidence = contrast_evidence(
        [term.label for term in terms],
        parts,
        _Diagonal(means(errors.total), means(errors.reference)).errors,
        logistic,
        log_w,
        rows.data,
        value=gam.loglik if logistic else _poisson_value(rows, eta, w),
        penalty=_penalty(problem, gam, errors),
        measured=None if problem.iid_points else measured,
        least=problem.about["sets"] / (problem.about["k"] or problem.about["m"]),
    )
    if log_w is None:
        mass = eta[~rows.data] + np.log(w[~rows.data])
        mass = np.exp(mass - mass.max())
        evidence["effective"] = float(mass.sum() ** 2 / (mass @ mass) / len(mass))
    return evidence


def _poisson_value(rows: SmoothRows, eta: np.ndarray, w: np.ndarray) -> float:
    """Σ a η − b e^η."""
    return float((w * rows.response) @ eta - np.where(rows.data, 0.0, w) @ _mean("poisson", eta))


class _Diagonal:
    """Variances of the terms as error parts without covariances."""

    def __init__(self, full: np.ndarray, reference: np.ndarray) -> None:
        self.errors = ErrorParts(np.diag(full), np.diag(full - reference), np.diag(reference))


def _penalty(problem: SmoothProblem, gam: Gam, errors: ErrorParts) -> float | None:
    """tr(Î H⁻¹) with H the penalised Hessian, Î = Σ1 + Σ2 from the scores by context."""
    N, p = len(problem.rows.response), gam.smoothed.size
    if N * p > MOST_DENSE:
        return None
    V = np.array(gam.smoothed.Vp)
    data, ahead = 0.0, 0.0
    for u, v in _pairs(problem, gam):
        data += float(np.sum((u @ V) * u))
        ahead += float(np.sum((u @ V) * v))
    # tr(Σ2 V) with V_ref = V Σ2 V
    return data - ahead + float(np.trace(np.linalg.solve(V, errors.reference)))


def _pairs(problem: SmoothProblem, gam: Gam) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """By context: the data's score u_t, and v_t = −Σ_j r_tj, which estimates its mean; IID data: centred, and zero."""
    rows = problem.rows
    slope = slopes(problem.family, gam.linear_predictor, rows)
    if problem.obs.weight is not None:  # an observation of weight w stands for w of them
        slope = slope / np.sqrt(np.maximum(problem.obs.weight[rows.at], 1e-300))
    if not problem.obs.has_context:
        n = problem.obs.n  # the data come first
        spans = [(begin, min(begin + CHUNK, n)) for begin in range(0, n, CHUNK)]
        U = np.concatenate([slope[begin:end, None] * dense(gam, begin, end) for begin, end in spans])
        yield U - U.mean(axis=0), np.zeros_like(U)
        return
    begins = np.flatnonzero(np.diff(rows.at, prepend=-1))  # contexts lie together
    per = max(1, CHUNK // max(1, len(slope) // len(begins)))
    for first in range(0, len(begins), per):
        begin = int(begins[first])
        last = min(first + per, len(begins))
        end = int(begins[last]) if last < len(begins) else len(slope)
        g = slope[begin:end, None] * dense(gam, begin, end)
        starts = begins[first:last] - begin
        is_data = rows.data[begin:end, None]
        yield np.add.reduceat(np.where(is_data, g, 0.0), starts), -np.add.reduceat(np.where(is_data, 0.0, g), starts)
