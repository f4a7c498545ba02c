"""Is δ constant? A score test of anchored constants against a smooth of each context column.

With the right f, χ(x) = −log Z_θ(x) + δ has the same δ at every context. Let r_t = Σ_rows (z − p) be the residual of
context t, which is its score for δ, b_t = b(x_t) the columns of an alternative δ(x) = δ + γᵀb(x), and g_t the score of
(θ, δ). At the estimate the score for γ is U = Σ_t r_t b_t; since θ̂ and δ̂ were chosen on the same rows,

    U ≈ Σ_t s_t,      s_t = r_t b_t − A V g_t,      A = Σ_rows w b x̂ᵀ,      V = (−H + S_λ)⁻¹,

and W = Uᵀ Var(Σ s_t)⁻¹ U is χ² under the null (Rao's score test with estimated parameters). With e_t and f_t the data's
and the points' parts of s_t = e_t − f_t, independent with the same mean, an observation that stands for w copies has

    Var(Σ s_t) = Σ_t w (e eᵀ − sym e fᵀ) + Σ_t w² (f fᵀ − sym e fᵀ),

which is Σ s sᵀ for w = 1. Points that are spread evenly over all contexts are not independent between them: the second
sum is then the variance of Σ_t f_t over R fresh sets of points. The first is known under the null, as e = (1 − p) h,
h = b − A V x̂ at the observation: the variance of (1 − p) h over a context's fresh points, which have weights
ω ∝ p/(1 − p) = f/kq, and count for n_eff = (Σ ω)²/Σ ω² of them; some of very many contexts stand for all.

The variance is itself an estimate, on R sets and, for IID points, from residuals with long tails: W is taken as
Hotelling's T² with the degrees of freedom ν of a variance of that precision (Satterthwaite),

    1/ν = (1 − share)² ½ (Σ_t z⁴ − 1/n) + share²/(R − 1),

z_t the s_t of IID points in coordinates in which Σ z zᵀ = 1, the part measured on R sets being a share of the variance.

Observations of one cluster may depend on each other in ways that f leaves out, which is no fault of the constants.
Where clusters are named, the s_t are summed by cluster, copies included, each s_c is taken about its share π_c of their
sum (a few that add to U would hide it), and Var(Σ s) = C/(C − 1) Σ_c s_c s_cᵀ. With even points s_t is e_t less its
mean under the model, from the fresh points, and the variance of Σ_t f_t is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ..objectives.redraws import KEPT, Probe
from ..objectives.scores import Drawn, RowScores, ScoreRows, sum_by
from .sandwich import bread

DEGREE = 3  # of the polynomial in a column's ranks
MOST_LEVELS = 10  # of a factor that is tested
REDRAWS = 12  # fresh sets of points that are not IID, where rows times coefficients are at most …
MOST_REDRAWN = 300_000  # beyond, the sets that the standard errors need have to do
MOST_SQUARED = 100_000  # products of two alternatives that are summed by context: of some contexts, if there are more
SOUND = 1e-6  # least eigenvalue of the variance as a correlation
LEAST = 10  # contexts for each column of the alternative
LEAST_CLUSTERS = 4  # the same, of clusters


@final
@dataclass(frozen=True)
class DeltaTest:
    """W ~ χ²(df), or nearly, where δ does not depend on the column."""

    statistic: float
    df: int
    p: float


def delta_tests(
    scores: RowScores, columns: Mapping[str, np.ndarray], cluster: np.ndarray | None = None
) -> dict[str, DeltaTest]:
    """The test for each column of the context, (n,) by observation; columns that do not vary are left out.

    `cluster`: labels 0 … C − 1 (n,) of observations that may depend on each other.
    """
    assert scores.level is not None
    bases = {name: basis(values) for name, values in columns.items()}
    bases = {name: b for name, b in bases.items() if 0 < b.shape[1] * LEAST <= len(b)}
    if cluster is not None:
        bases = {name: b for name, b in bases.items() if b.shape[1] * LEAST_CLUSTERS <= int(cluster.max()) + 1}
    if not bases:
        return {}
    score = _score(scores, np.column_stack(list(bases.values())), cluster)
    found, at = {}, 0
    for name, b in bases.items():
        test = score.tested(slice(at, at := at + b.shape[1]))
        if test is not None:
            found[name] = test
    return found


def basis(column: np.ndarray) -> np.ndarray:
    """(n, q) alternatives to a constant: a cubic in the column's ranks, or the indicators of a factor's levels."""
    levels, code = np.unique(column, return_inverse=True)
    few = len(levels) <= DEGREE + 1
    if few or column.dtype.kind not in "fiu":
        if not 1 < len(levels) <= MOST_LEVELS:
            return np.zeros((len(column), 0))
        B = np.eye(len(levels))[code][:, 1:]
    else:
        ranks = np.cumsum(np.bincount(code))[code] - 0.5 * np.bincount(code)[code]
        u = 2.0 * ranks / len(column) - 1.0
        B = u[:, None] ** np.arange(1, DEGREE + 1)
    q, r = np.linalg.qr(np.column_stack([np.ones(len(column)), B]))
    sound = np.abs(np.diag(r)) > 1e-9 * np.sqrt(len(column))
    return np.sqrt(len(column)) * q[:, 1:][:, sound[1:]]


@final
@dataclass(frozen=True)
class _Score:
    """The score for γ, and what is known of its variance."""

    U: np.ndarray  # (q,)
    spread: np.ndarray  # (q, q) Var(Σ s_t)
    units: np.ndarray | None  # (n, q) √w s_t, or (C, q) s_c by cluster, where it comes from them
    measured: np.ndarray  # (q, q) the part of it that was measured on some sets of points
    sets: int  # their number

    def tested(self, own: slice) -> DeltaTest | None:
        """None where the variance is not positive definite: too few contexts, or an alternative that f contains."""
        from scipy.special import fdtrc

        U, spread = self.U[own], self.spread[own, own]
        scale, q = np.sqrt(np.maximum(np.diag(spread), 1e-300)), len(U)
        values, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
        if not values[0] > SOUND:
            return None
        root = (vectors / np.sqrt(values)).T / scale
        statistic = float(np.sum((root @ U) ** 2))
        share = float(np.trace(root @ self.measured[own, own] @ root.T)) / q
        doubt = share**2 / max(self.sets - 1, 1)
        if self.units is not None:
            z = self.units[:, own] @ root.T
            z = z / np.sqrt(np.maximum(np.sum(z**2, axis=0), 1e-300))
            doubt += (1.0 - share) ** 2 * 0.5 * max(float(np.mean(np.sum(z**4, axis=0))) - 1.0 / len(z), 0.0)
        df = 1.0 / max(doubt, 1e-12)
        rest = max(df - q + 1, 1.0)
        return DeltaTest(statistic, q, float(fdtrc(q, rest, statistic * rest / (df * q))))


def _score(scores: RowScores, B: np.ndarray, cluster: np.ndarray | None = None) -> _Score:
    q, number = B.shape[1], 0
    A, U = np.zeros((q, scores.size)), np.zeros(q)
    for rows in scores.blocks():
        slope, curvature = rows.slopes(scores.c)
        b = B[rows.first : rows.first + rows.count]
        A += b.T @ rows.design.sums(curvature, rows.at - rows.first, rows.count)
        U += np.bincount(rows.at - rows.first, slope, rows.count) @ b
        number += len(slope)
    K = A @ bread(scores)
    if scores.drawn is Drawn.EVENLY and scores.redraw is not None:
        sets = REDRAWS if number * scores.size <= MOST_REDRAWN else KEPT
        if cluster is not None:
            return _clustered(scores, U, Probe(B, K, np.arange(len(B)), squared=False), sets, cluster)
        most = max(MOST_SQUARED // q**2, LEAST * q)
        some = np.unique(np.linspace(0, len(B) - 1, min(len(B), most)).astype(np.intp))
        return _known(scores, U, Probe(B, K, some), sets)
    if cluster is not None:
        summed = _by_cluster(scores, B, K, cluster)
        return _Score(U, summed.T @ summed, summed, np.zeros((q, q)), 0)
    spread, units = np.zeros((q, q)), []
    for rows in scores.blocks():
        part = _Units.of(scores, rows, B, K)
        crossed = part.e.T @ ((1.0 + part.w)[:, None] * part.f)
        spread += part.e.T @ part.e + part.f.T @ (part.w[:, None] * part.f) - (crossed + crossed.T) / 2
        units.append(part.e - part.f)
    return _Score(U, spread, np.concatenate(units), np.zeros((q, q)), 0)


def _by_cluster(
    scores: RowScores, B: np.ndarray, K: np.ndarray, cluster: np.ndarray, mean: np.ndarray | None = None
) -> np.ndarray:
    """(C, q) √(C/(C − 1)) s_c, s_c = Σ w s_t about its share; s_t is e_t less f_t, or less its mean (n, q)."""
    count = int(cluster.max(initial=0)) + 1
    summed, weight = np.zeros((count, B.shape[1])), np.zeros(count)
    for rows in scores.blocks():
        part, own = _Units.of(scores, rows, B, K), slice(rows.first, rows.first + rows.count)
        root = np.sqrt(part.w)[:, None]
        centre = part.f if mean is None else root * mean[own]
        summed += sum_by(root * (part.e - centre), cluster[own], count)
        weight += np.bincount(cluster[own], part.w, count)
    share = weight / max(weight.sum(), 1e-300)
    return np.sqrt(count / max(count - 1, 1)) * (summed - share[:, None] * summed.sum(axis=0))


def _clustered(scores: RowScores, U: np.ndarray, probe: Probe, sets: int, cluster: np.ndarray) -> _Score:
    """By cluster, with the points' part from fresh sets of even points."""
    assert scores.redraw is not None
    by, mass, totals = np.zeros(probe.B.shape), np.zeros(len(probe.B)), []
    for i in range(sets):
        one = scores.redraw.probed(i, probe)
        by, mass = by + one.by, mass + one.mass[:, 0]
        totals.append(one.total)
    mean = -by / np.maximum(mass, 1e-300)[:, None]
    summed, points = _by_cluster(scores, probe.B, probe.K, cluster, mean), _spread_of(totals)
    return _Score(U, summed.T @ summed + points, summed, points, sets)


def _spread_of(totals: list[np.ndarray]) -> np.ndarray:
    return np.atleast_2d(np.cov(np.array(totals), rowvar=False))


@final
@dataclass(frozen=True)
class _Units:
    """√w e_t and √w f_t of a block's units, for one copy of each."""

    e: np.ndarray  # (units, q)
    f: np.ndarray  # (units, q)
    w: np.ndarray  # (units,)

    @classmethod
    def of(cls, scores: RowScores, rows: ScoreRows, B: np.ndarray, K: np.ndarray) -> _Units:
        u, v = scores.by_unit(rows)
        b = B[rows.first : rows.first + rows.count]
        w = np.zeros(rows.count)
        w[rows.at - rows.first] = rows.root**2
        return cls(_adjusted(u, b, K, scores), _adjusted(v, b, K, scores), w)


def _adjusted(g: np.ndarray, b: np.ndarray, K: np.ndarray, scores: RowScores) -> np.ndarray:
    """(units, q) r b − K g of parts g of the scores."""
    assert scores.level is not None
    return g[:, scores.level, None] * b - g @ K.T


def _known(scores: RowScores, U: np.ndarray, probe: Probe, sets: int) -> _Score:
    """With the data's part of the variance from the model, on fresh sets of points."""
    assert scores.redraw is not None
    every = [scores.redraw.probed(i, probe) for i in range(sets)]
    read = sum(every[1:], every[0])
    w = np.ones(len(probe.B))
    for rows in scores.blocks():
        w[rows.at] = rows.root**2
    mass = np.maximum(read.mass[:, 0], 1e-300)
    effective = np.maximum(mass**2 / np.maximum(read.mass[:, 1], 1e-300), 1.5)
    weight = effective / (effective - 1.0) * w[probe.some] * (w.sum() / max(w[probe.some].sum(), 1e-300))
    mean = read.by / mass[:, None]
    data = np.einsum("t,tij->ij", weight / mass, read.squares) - mean.T @ (weight[:, None] * mean)
    points = _spread_of([one.total for one in every])
    return _Score(U, data + points, None, points, sets)
