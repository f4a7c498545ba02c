"""Is δ constant? A score test of anchored constants against a smooth of each context column.

With the right f, χ(x) = −log Z_θ(x) + δ has the same δ at every context. Let r_t = Σ_rows (z − p) be the residual of
context t, which is its score for δ, b_t = b(x_t) the columns of an alternative δ(x) = δ + γᵀb(x), and g_t the score of
(θ, δ). At the estimate the score for γ is U = Σ_t r_t b_t; since θ̂ and δ̂ were chosen on the same rows,

    U ≈ Σ_t s_t,      s_t = r_t b_t − A V g_t,      A = Σ_rows w b x̂ᵀ,      V = (−H + S_λ)⁻¹,

and W = Uᵀ Var(Σ s_t)⁻¹ U is χ² under the null (Rao's score test with estimated parameters). With e_t and f_t the data's
and the points' parts of s_t = e_t − f_t, independent with the same mean, an observation that stands for w copies has

    Var(Σ s_t) = Σ_t w (e eᵀ − sym e fᵀ) + Σ_t w² (f fᵀ − sym e fᵀ),

which is Σ s sᵀ for w = 1. Points that are spread evenly over all contexts are not independent between them: the second
sum is then the variance of Σ_t f_t over R fresh sets of points. Their mean f̄_t at a context, which has a variance of
S_t/R there, also gives a first sum that is less noisy, Σ_t w [(e − f̄)(e − f̄)ᵀ − S_t/R]. W is then Hotelling's T², on
(R − 1)/share² degrees of freedom (Satterthwaite), the measured part being a share of the variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ..objectives.scores import Drawn, RowScores, ScoreRows
from .sandwich import bread

DEGREE = 3  # of the polynomial in a column's ranks
MOST_LEVELS = 10  # of a factor that is tested
REDRAWS = 12  # fresh sets of points that are not IID
SOUND = 1e-6  # least eigenvalue of the variance as a correlation
LEAST = 10  # contexts for each column of the alternative


@final
@dataclass(frozen=True)
class DeltaTest:
    """W ~ χ²(df), or nearly, where δ does not depend on the column."""

    statistic: float
    df: int
    p: float


def delta_tests(scores: RowScores, columns: Mapping[str, np.ndarray]) -> dict[str, DeltaTest]:
    """The test for each column of the context, (n,) by observation; columns that do not vary are left out."""
    assert scores.level is not None
    bases = {name: basis(values) for name, values in columns.items()}
    bases = {name: b for name, b in bases.items() if 0 < b.shape[1] * LEAST <= len(b)}
    if not bases:
        return {}
    B = np.column_stack(list(bases.values()))
    U, spread, measured = _score(scores, B)
    found, at = {}, 0
    for name, b in bases.items():
        own = slice(at, at + b.shape[1])
        at = own.stop
        test = _test(U[own], spread[own, own], measured[own, own])
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


def _score(scores: RowScores, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, the variance of Σ s_t, and the part of it that was measured on few sets of points."""
    q = B.shape[1]
    A, U = np.zeros((q, scores.size)), np.zeros(q)
    for rows in scores.blocks():
        slope, curvature = rows.slopes(scores.c)
        b = B[rows.at]
        A += np.stack([rows.design.total(curvature * b[:, j]) for j in range(q)])
        U += slope @ b
    K = A @ bread(scores)
    if scores.drawn is Drawn.EVENLY and scores.redraw is not None:
        return U, *_measured(scores, B, K)
    spread = np.zeros((q, q))
    for rows in scores.blocks():
        part = _Units.of(scores, rows, B, K)
        crossed = part.e.T @ ((1.0 + part.w)[:, None] * part.f)
        spread += part.e.T @ part.e + part.f.T @ (part.w[:, None] * part.f) - (crossed + crossed.T) / 2
    return U, spread, np.zeros((q, q))


@final
@dataclass(frozen=True)
class _Units:
    """√w e_t and √w f_t of a block's units, for one copy of each."""

    e: np.ndarray  # (units, q)
    f: np.ndarray  # (units, q)
    w: np.ndarray  # (units,)

    @classmethod
    def of(cls, scores: RowScores, rows: ScoreRows, B: np.ndarray, K: np.ndarray) -> _Units:
        label, slope, root = rows.at - rows.first, rows.slopes(scores.c)[0], rows.root
        u_v = rows.design.sums(slope / root, np.where(rows.data, label, rows.count + label), 2 * rows.count)
        b = B[rows.first : rows.first + rows.count]
        w = np.zeros(rows.count)
        w[label] = root**2
        e, f = (_adjusted(part, b, K, scores) for part in (u_v[: rows.count], -u_v[rows.count :]))
        return cls(e, f, w)


def _adjusted(g: np.ndarray, b: np.ndarray, K: np.ndarray, scores: RowScores) -> np.ndarray:
    """(units, q) r b − K g of parts g of the scores."""
    assert scores.level is not None
    return g[:, scores.level, None] * b - g @ K.T


def _measured(scores: RowScores, B: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The variance of Σ s_t from fresh sets of points, and their own part of it."""
    assert scores.redraw is not None
    of, sums = np.arange(len(B)), []
    total, squares = np.zeros_like(B), np.zeros((B.shape[1], B.shape[1]))
    units = [_Units.of(scores, rows, B, K) for rows in scores.blocks()]
    root = np.sqrt(np.maximum(np.concatenate([one.w for one in units]), 1e-300))[:, None]
    for i in range(REDRAWS):
        f = -_adjusted(scores.redraw(i, 1.0, of, len(B)), B, K, scores)
        sums.append(f.sum(axis=0))
        total += f / root
        squares += (f / root).T @ (f / root)
    mean = total / REDRAWS
    within = (squares - REDRAWS * mean.T @ mean) / (REDRAWS - 1)
    e = np.concatenate([one.e for one in units]) - mean
    points = np.atleast_2d(np.cov(np.array(sums), rowvar=False))
    return e.T @ e - within / REDRAWS + points, points


def _test(U: np.ndarray, spread: np.ndarray, measured: np.ndarray) -> DeltaTest | None:
    """None where the variance is not positive definite: too few contexts, or an alternative that f contains."""
    from scipy.special import chdtrc, fdtrc

    scale, q = np.sqrt(np.maximum(np.diag(spread), 1e-300)), len(U)
    values, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
    if not values[0] > SOUND:
        return None
    root = (vectors / np.sqrt(values)).T / scale
    statistic = float(np.sum((root @ U) ** 2))
    share = float(np.trace(root @ measured @ root.T)) / q
    df = (REDRAWS - 1) / share**2 if share > 0 else np.inf
    if not np.isfinite(df):
        return DeltaTest(statistic, q, float(chdtrc(q, statistic)))
    rest = max(df - q + 1, 1.0)
    return DeltaTest(statistic, q, float(fdtrc(q, rest, statistic * rest / (df * q))))
