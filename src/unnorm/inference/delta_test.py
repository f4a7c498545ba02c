"""Is δ constant? A score test of anchored constants against a smooth of each context column.

With the right f, χ(x) = −log Z_θ(x) + δ has the same δ at every context. Let r_t = Σ_rows (z − p) be the residual of
context t, which is its score for δ, b_t = b(x_t) the columns of an alternative δ(x) = δ + γᵀb(x), and g_t the score of
(θ, δ). At the estimate the score for γ is U = Σ_t r_t b_t; since θ̂ and δ̂ were chosen on the same rows,

    U ≈ Σ_t s_t,      s_t = r_t b_t − A V g_t,      A = Σ_rows w b x̂ᵀ,      V = (−H + S_λ)⁻¹,

and W = Uᵀ Var(Σ s_t)⁻¹ U is χ² under the null (Rao's score test with estimated parameters). With e_t and f_t the data's
and the points' parts of s_t = e_t − f_t, independent with the same mean, an observation that stands for w copies has

    Var(Σ s_t) = Σ_t w Var(e_t) + Σ_t w² Var(f_t).

Both follow from the model: with h = b − A V x̂ and p = f/(f + k q),

    a = E e = E f = ∫ f (1 − p) h,      Var e = ∫ f (1 − p)² h hᵀ − a aᵀ,      Var f = ∫ k q p² h hᵀ − a aᵀ/k,

by the rule on Ω that the constants themselves have (`Law`), Var f for k IID points. Points that are spread evenly over
all contexts are not independent between them: the second sum is then the variance of Σ_t f_t over R fresh sets of
points. Some of very many contexts stand for all.

What was measured on R sets, or on s of n contexts, is an estimate: W is taken as Hotelling's T² with the degrees of
freedom ν of a variance of that precision (Satterthwaite),

    1/ν = share²/(R − 1) + ½ (1 − s/n) Σ_t (z_t − z̄)²,

the part measured on R sets being a share of the variance, z_t a context's own part where the whole is one.

Observations of one cluster may depend on each other in ways that f leaves out, which is no fault of the constants.
Where clusters are named, s_t − E s_t are summed by cluster, copies included, each s_c is taken about its share π_c of
their sum (a few that add to U would hide it), and Var(Σ s) = C/(C − 1) Σ_c s_c s_cᵀ, with 1/ν = ½ (Σ_c z⁴ − 1/C), z_c
in coordinates in which Σ z zᵀ = 1. IID points are part of s_t. With even points s_t is e_t − a_t, and the variance of
Σ_t f_t is added; where n is so large that a_t would cost more than the fit, the points at hand stand for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ..objectives.redraws import KEPT, Law, Probe
from ..objectives.scores import Drawn, RowScores, ScoreRows, sum_by
from .sandwich import bread

DEGREE = 3  # of the polynomial in a column's ranks
MOST_LEVELS = 10  # of a factor that is tested
REDRAWS = 12  # fresh sets of points that are not IID: nine degrees of freedom for three columns; where rows times …
MOST_REDRAWN = 300_000  # coefficients are more, the sets that the standard errors need have to do
MOST_NODES = 100_000  # at which the model's variance is integrated: as many contexts as that allows, but at least …
FEWEST = 100  # contexts, which know a variance to some 15 %: their part of 1/ν is then below 1/80
MOST_CENTRED = 2_000_000  # nodes up to which every observation of a cluster has the mean of its score: a second or two
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
    measured: np.ndarray  # (q, q) the part of it that was measured on some sets of points
    sets: int  # their number
    units: np.ndarray | None = None  # (C, q) s_c by cluster, where the rest comes from them
    some: np.ndarray | None = None  # (s, q, q) by context, where the rest comes from s of n
    left: float = 0.0  # 1 − s/n

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
        if self.some is not None:
            z = np.einsum("ij,tjk,ik->ti", root, self.some[:, own, own], root)
            doubt += 0.5 * self.left * float(np.mean(len(z) * np.var(z, axis=0)))
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
    probe = Probe(B, A @ bread(scores))
    sets = 0 if scores.redraw is None else REDRAWS if number * scores.size <= MOST_REDRAWN else KEPT
    if cluster is not None:
        return _clustered(scores, U, probe, sets, cluster)
    points = _fresh_spread(scores, probe, sets)
    law, some = _law(scores, probe)
    w = np.ones(len(B))
    for rows in scores.blocks():
        w[rows.at] = rows.root**2
    by = _standing(w, some)[:, None, None] * law.data
    if points is None:
        by = by + _standing(w**2, some)[:, None, None] * law.points
    measured = np.zeros((q, q)) if points is None else points
    return _Score(U, by.sum(axis=0) + measured, measured, sets, some=by, left=1.0 - len(some) / len(B))


def _standing(w: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Weights of some that add up to those of all."""
    return w[some] * (w.sum() / max(w[some].sum(), 1e-300))


def _law(scores: RowScores, probe: Probe) -> tuple[Law, np.ndarray]:
    """The scores' law at some contexts, all where they are few, and which."""
    assert scores.law is not None
    n, q = probe.B.shape
    most = max(MOST_NODES // scores.law.nodes, FEWEST, LEAST * q)
    some = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))
    return scores.law.at(probe, some), some


def _fresh_spread(scores: RowScores, probe: Probe, sets: int) -> np.ndarray | None:
    """(q, q) the variance of Σ_t f_t over fresh sets of points; None for IID points, whose own is known."""
    if scores.drawn is not Drawn.EVENLY or scores.redraw is None:
        return None
    return np.atleast_2d(np.cov(np.array([scores.redraw.probed(i, probe) for i in range(sets)]), rowvar=False))


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
    assert scores.law is not None
    (n, q), points, mean = probe.B.shape, None, None
    if scores.law.nodes * n <= MOST_CENTRED:
        points = _fresh_spread(scores, probe, sets)
    if points is not None:
        mean = scores.law.at(probe, np.arange(n)).mean
    summed = _by_cluster(scores, probe.B, probe.K, cluster, mean)
    measured = np.zeros((q, q)) if points is None else points
    return _Score(U, summed.T @ summed + measured, measured, sets, units=summed)


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
