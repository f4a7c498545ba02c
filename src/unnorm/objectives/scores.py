"""Scores: what the score at the estimate is made of, by independent unit; inference reads nothing else of a problem.

A unit t is an observation with the reference points of its context. Its score g_t = u_t + Σ_j r_tj has a part of the
data's and a part of the points' (IID data share their points, which then form a part of their own). Weights are
frequencies: an observation of weight w stands for w copies that share their reference points, so that

    Σ1 = Σ_t w_t Var(u_t),        Σ2 = Σ_t w_t² Var(Σ_j r_tj)        (u and r those of one copy),

as independent copies add their variances, and shared points their standard deviations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import final

import numpy as np

from .likelihood import RowLikelihood, together
from .redraws import KEPT, Laws, Redraws

REDRAWS = KEPT  # fresh sets of points at first, to measure the error of those that are not IID
MOST_RATIOS = 200_000  # observations whose points and own log ratios are compared
MOST_DF = 50  # degrees of freedom of a measured Σ2 above which no more sets are drawn
Enough = Callable[[np.ndarray, int], bool]  # (Σ2, its degrees of freedom) → whether it is known well enough


class Drawn(Enum):
    """How reference points were drawn."""

    NONE = "none"  # integrals by quadrature or enumeration
    IID = "iid"
    EVENLY = "evenly"  # stratified, lattice, Sobol: they represent q itself, and their error must be measured


@final
@dataclass(frozen=True)
class Reselection:
    """How β̂ moves with the choice of λ: a change δ of the score and ε of the criterion's slope in ρ = log λ move it by

        δβ̂ = V'δ − J V_ρ ε,      V' = V + J V_ρ (J + ½ V C)ᵀ,

    as the criterion's slope is ½ λ_k β̂ᵀS_kβ̂ + ½ tr(V λ_k S_k) + …, whose first part changes by −J_kᵀδ, and whose second
    by −½ Σ_r dw_r h_kr: through β̂, −½ C_kᵀVδ, and for each reference point that comes or goes, ε_r = −½ w_r h_kr.
    """

    J: np.ndarray  # (p, M) dβ̂/dρ
    V_rho: np.ndarray  # (M, M) the inverse of the criterion's Hessian in ρ
    C: np.ndarray | None = None  # (p, M) Σ_r w'_r h_kr x_r, with h_kr = x_rᵀ V λ_k S_k V x_r; None where left out
    epsilon: Callable[[], np.ndarray] | None = None  # () → (N, M) ε_r of the fitted rows, zero for data

    def bread(self, V: np.ndarray) -> np.ndarray:
        """V'."""
        moved = self.J if self.C is None else self.J + 0.5 * V @ self.C
        return V + self.J @ self.V_rho @ moved.T


class Scores(ABC):
    """The pieces of a score of p coordinates, θ's first."""

    size: int  # p
    weight: float  # Σ w: the number of observations that the data stand for
    drawn: Drawn
    shared: bool  # whether the reference points belong to all observations alike (IID data)
    information: np.ndarray  # (p, p) −H, without the penalty
    penalty: np.ndarray | None  # (p, p) S_λ
    reselection: Reselection | None  # how choosing λ again moves the estimate; None where it was not chosen
    smoothing: np.ndarray | None  # (p, p) what not knowing λ adds to the Bayesian covariance V
    model_based: bool  # whether Σ1 follows from the model; else only from the scores themselves
    counts_points: bool = True  # whether, with IID points and a correct model, −H holds the points' variance too
    by_chance: float = 0.0  # share of V by which the data's part may come out too small without anything being wrong
    widened: float = 1.0  # the sampling variance times this: what few levels of a group add
    between: int | None = None  # degrees of freedom of the variance between levels, where that is what errors rest on
    robust_refusal: str | None = None  # why there are no robust errors, where there are none
    refusal: str | None = None  # why there are no errors at all, where the objective knows it
    df: float | None = None  # degrees of freedom of errors from the scores of few observations; None for the normal
    level: int | None = None  # the coordinate of δ, where it is one number and the constants follow θ

    @abstractmethod
    def points_spread(self, power: int) -> np.ndarray:
        """Σ_t w_t^power Var(Σ_j r_tj), had the points been IID."""

    @abstractmethod
    def data_spread(self) -> np.ndarray:
        """Σ1 under the model, or from the scores where `model_based` is false."""

    @abstractmethod
    def empirical_spread(self) -> np.ndarray:
        """Σ1 from the scores themselves: no model need be correct."""

    @abstractmethod
    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        """(count, p) score sums over clusters of observations; shared reference points are left out."""

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        """(count,) Σ w over clusters of observations."""
        raise AssertionError(self.robust_refusal)

    def cluster_points(self, label: np.ndarray, factor: np.ndarray) -> np.ndarray | None:
        """Σ_c factor_c² Var(the points' part of g_c), measured over randomisations; None where there are not two."""
        return None

    def measured_spread(self, times: float = 1.0, enough: Enough | None = None) -> np.ndarray | None:
        """Σ2 from independent randomisations of the points, `times` as many; None where there are not two.

        More of them are drawn until `enough`, or until they have MOST_DF degrees of freedom.
        """
        return None

    def reselected_spread(self) -> np.ndarray | None:
        """Var(Σ_r [x_r r_r; ε_r]) over IID points, (p + M, p + M); None where the criterion's part is not known."""
        return None

    def more(self, c: float) -> Scores | None:
        """The same scores had there been c times as many points; None where the rows at hand do not tell."""
        return None

    def overlap(self) -> tuple[float | None, float | None]:
        """AUC of the log density ratio between observations and points, and the effective share of the latter."""
        return None, None

    def as_rows(self) -> RowScores | None:
        """Themselves where they are a sum over rows."""
        return None


def frequency(weight: float) -> float:
    """N/(N − 1) for N independent observations, whose scores have their mean taken off."""
    return weight / max(weight - 1.0, 0.5)


class RowDesign(ABC):
    """∂η/∂β by row, (N, p), known by its products with vectors of length N."""

    size: int

    @abstractmethod
    def cross(self, d: np.ndarray) -> np.ndarray:
        """(p, p) Σ_r d_r x_r x_rᵀ."""

    @abstractmethod
    def total(self, v: np.ndarray) -> np.ndarray:
        """(p,) Σ_r v_r x_r."""

    @abstractmethod
    def sums(self, v: np.ndarray, label: np.ndarray, count: int) -> np.ndarray:
        """(count, p) Σ_r v_r x_r by label."""


@final
@dataclass(frozen=True)
class DenseDesign(RowDesign):
    """The matrix itself."""

    X: np.ndarray

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.X.shape[1]

    def cross(self, d: np.ndarray) -> np.ndarray:
        return self.X.T @ (d[:, None] * self.X)

    def total(self, v: np.ndarray) -> np.ndarray:
        return v @ self.X

    def sums(self, v: np.ndarray, label: np.ndarray, count: int) -> np.ndarray:
        return sum_by(v[:, None] * self.X, label, count)


def sum_by(values: np.ndarray, label: np.ndarray, size: int) -> np.ndarray:
    """(size, p) sums of rows by label."""
    if not values.shape[1]:
        return np.zeros((size, 0))
    return np.stack([np.bincount(label, values[:, j], size) for j in range(values.shape[1])], axis=1)


@final
@dataclass(frozen=True)
class ScoreRows:
    """A block of rows at the estimate, whole units together."""

    design: RowDesign
    likelihood: RowLikelihood
    eta: np.ndarray  # (N,)
    data: np.ndarray  # (N,) bool: observation, or reference point
    at: np.ndarray  # (N,) the observation that the row belongs to
    weight: np.ndarray | None  # (N,) of that observation; None for all one
    randomisation: np.ndarray | None  # (N,) 1 … R for reference points, where there are several sets
    log_ratio: np.ndarray | None  # (N,) f + χ − log q

    def slopes(self, c: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """ℓ' and −ℓ'' by row, with c times as many reference points."""
        return self.likelihood.slopes_with(c, self.eta, self.data)

    @property
    def root(self) -> np.ndarray | float:
        """√w, for scores whose squares are to count w times and not w²."""
        return 1.0 if self.weight is None else np.sqrt(np.maximum(self.weight, 1e-300))

    @property
    def first(self) -> int:
        return int(self.at.min()) if self.at.size else 0

    @property
    def count(self) -> int:
        """Units in this block; they are consecutive."""
        return int(self.at.max(initial=-1)) + 1 - self.first


def joined(blocks: Sequence[ScoreRows]) -> ScoreRows:
    """The numbers of all blocks together; the design stays the first one's."""
    if len(blocks) == 1:
        return blocks[0]
    likelihood = RowLikelihood.joined([rows.likelihood for rows in blocks])
    names = ("eta", "data", "at", "weight", "randomisation", "log_ratio")
    return replace(blocks[0], likelihood=likelihood, **together(blocks, names))


@final
@dataclass(frozen=True)
class RowScores(Scores):
    """Scores of Σ_r a η − b A(η): parametric rows and the additive engine's alike, block by block.

    `centred`: whether the variance of a context's points is taken about its own mean. A flexible χ makes that needless:
    E_t[(1 − p) x] = H e_t for the direction e_t of χ at the context, so that H⁻¹ of a context's mean score has no
    component in θ.
    """

    blocks: Callable[[], Iterator[ScoreRows]]
    size: int
    weight: float
    drawn: Drawn
    shared: bool
    information: np.ndarray
    counts_points: bool  # the likelihood's  # pyright: ignore
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None
    redraw: Redraws | None = None  # score sums of fresh points
    sets: int = 1  # independent sets among the points at hand
    centred: bool = True
    profiled: bool = False  # whether each context has a constant of its own, profiled out of the rows' coordinates
    c: float = 1.0  # times as many points as there are
    anew: Callable[[float], RowScores] | None = None  # makes `more` where the coordinates depend on c themselves
    level: int | None = None  # the coordinate of δ, where it is one number and the constants follow θ
    law: Laws | None = None  # of the scores under the model, by the anchor's own rule
    count: int = 0  # observations, where they are known to be many
    tested: bool = True  # whether δ's being constant is to be tested, which takes fresh points and the scores' law

    model_based = True

    def points_spread(self, power: int) -> np.ndarray:
        if self.drawn is Drawn.NONE:
            return np.zeros((self.size, self.size))
        squares, total, m = np.zeros((self.size, self.size)), np.zeros(self.size), 0
        lone: list[np.ndarray] = []
        for rows in self.blocks():
            r = np.where(rows.data, 0.0, rows.slopes(self.c)[0])
            r = r / rows.root if power == 1 else r
            if self.shared:
                squares += rows.design.cross(r**2)
                total += rows.design.total(r)
                m += int(np.sum(~rows.data))
                continue
            label = rows.at - rows.first
            k = np.bincount(label[~rows.data], minlength=rows.count)
            if self.centred and k.max(initial=0) == 1:
                lone.append(rows.design.sums(r, label, rows.count))
                continue
            factor = np.ones(rows.count) if self.drawn is Drawn.EVENLY or not self.centred else k / np.maximum(k - 1, 1)
            squares += rows.design.cross(factor[label] * r**2)
            if self.centred:
                G = rows.design.sums(r, label, rows.count)
                squares -= G.T @ ((factor / np.maximum(k, 1))[:, None] * G)
        if self.shared:
            squares = squares - np.outer(total, total) / max(m, 1)
            squares *= 1.0 if self.drawn is Drawn.EVENLY else m / max(m - 1, 1)
        if lone:  # one point per context: neighbours in the order of drawing stand in for redraws
            steps = np.diff(np.concatenate(lone), axis=0)
            squares += 0.5 * steps.T @ steps
        return self.c * squares

    def reselected_spread(self) -> np.ndarray | None:
        if self.drawn is not Drawn.IID or self.reselection is None or self.reselection.epsilon is None:
            return None
        epsilon, begin, number = self.reselection.epsilon(), 0, 0
        crossed = np.zeros((self.size, epsilon.shape[1]))
        if self.shared:  # about the mean of all points
            number = sum(int(np.sum(~rows.data)) for rows in self.blocks())
        level = epsilon.sum(axis=0) / max(number, 1)
        for rows in self.blocks():
            e = epsilon[begin : begin + len(rows.data)]
            points = np.flatnonzero(~rows.data)
            if self.shared:
                e[points] -= level
            else:  # about the mean of the context: the points that come replace those that go
                label = rows.at[points] - rows.first
                count = np.maximum(np.bincount(label), 1)
                for j in range(e.shape[1]):
                    e[points, j] -= (np.bincount(label, e[points, j]) / count)[label]
            r = np.where(rows.data, 0.0, rows.slopes()[0])
            crossed += np.stack([rows.design.total(r * e[:, j]) for j in range(e.shape[1])], axis=1)
            begin += len(rows.data)
        return np.block([[self.points_spread(2), crossed], [crossed.T, epsilon.T @ epsilon]])

    def data_spread(self) -> np.ndarray:
        """Σ1 under the model.

        Logistic rows of contexts, where data have density f_t and the k points k q_t, p = f/(f + k q):

            Var(u_t) = E_f[(1 − p)² x xᵀ] − a_t a_tᵀ,      a_t = E_f[(1 − p) x] = E Σ_j p_j x_j,
            E_f[(1 − p)² x xᵀ] = −H_t − E Σ_j p_j² x_j x_jᵀ.

        u_t = (1 − p) x at the observation and v_t = Σ_j p_j x_j at its points are independent with mean a_t, so that
        sym(u_t v_tᵀ) has mean a_t a_tᵀ. Squares and v_t need points that are each drawn from q, IID or not: nothing is
        divided by k − 1. V a_t has no component in θ where χ is flexible, and a_t = 0 where a ν_t is profiled out.
        """
        if self.counts_points and not self.shared:
            if self.profiled or not self.centred:
                return self.information - self.points_spread(1)
            return self.information - self._points_about_zero() - self._crossed
        squares, total = self.information.copy(), np.zeros(self.size)
        for rows in self.blocks():
            _, curvature = rows.slopes(self.c)
            curvature = curvature * np.where(rows.data, 1.0, self.c)
            if self.counts_points:
                # Σ1 of IID data from all rows: they have intensity n f + m q, of which p is the data's share, so that
                # ∫ h n f = Σ_rows p h, and Σ1 = Σ p(1−p)² x xᵀ − g gᵀ/n, g = Σ p(1−p) x, as n is fixed (Prentice &
                # Pyke 1979). With g from the data's scores alone it would not be along ν where the model is wrong.
                squares -= rows.design.cross(
                    curvature * rows.likelihood.cumulant.mean(rows.likelihood.cumulant.log_odds(rows.eta, self.c))
                )
                total += rows.design.total(curvature)
            elif self.shared:
                total += rows.design.total(curvature)
            elif self.centred:  # Σ_t w {E_t[x xᵀ] − E_t[x] E_t[x]ᵀ}
                label = rows.at - rows.first
                G = rows.design.sums(curvature, label, rows.count)
                w = np.ones(rows.count) if rows.weight is None else _unit_weights(rows.weight, label, rows.count)
                squares -= G.T @ (G / np.maximum(w, 1e-300)[:, None])
        return squares - np.outer(total, total) / self.weight

    def _points_about_zero(self) -> np.ndarray:
        """Σ_t w Σ_j r_tj r_tjᵀ."""
        out = np.zeros((self.size, self.size))
        for rows in self.blocks():
            out += rows.design.cross((np.where(rows.data, 0.0, rows.slopes(self.c)[0]) / rows.root) ** 2)
        return self.c * out

    def by_unit(self, rows: ScoreRows) -> tuple[np.ndarray, np.ndarray]:
        """(units, p) √w u_t and √w v_t, v = −Σ_j r_tj an independent unbiased estimate of E u."""
        label, slope = rows.at - rows.first, rows.slopes(self.c)[0] / rows.root
        u = rows.design.sums(np.where(rows.data, slope, 0.0), label, rows.count)
        return u, -rows.design.sums(np.where(rows.data, 0.0, self.c * slope), label, rows.count)

    @cached_property
    def _crossed(self) -> np.ndarray:
        """Σ_t w sym(u vᵀ); the errors that assume the model and the robust ones both need it."""
        out = np.zeros((self.size, self.size))
        for rows in self.blocks():
            u, v = self.by_unit(rows)
            out += u.T @ v
        return (out + out.T) / 2

    def empirical_spread(self) -> np.ndarray:
        """Contexts: Σ_t w [u uᵀ − sym(u vᵀ)], v = −Σ_j r_tj an independent unbiased estimate of E u. IID: centred."""
        out, total = np.zeros((self.size, self.size)), np.zeros(self.size)
        for rows in self.blocks():
            u = np.where(rows.data, rows.slopes(self.c)[0], 0.0)
            out += rows.design.cross((u / rows.root) ** 2)  # a unit has one observation
            total += rows.design.total(u) if self.shared else 0.0
        out = out if self.shared else out - self._crossed
        return frequency(self.weight) * (out - np.outer(total, total) / self.weight)

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        out = np.zeros((count, self.size))
        for rows in self.blocks():
            slope = rows.slopes()[0]
            slope = np.where(rows.data, slope, 0.0) if self.shared else slope
            out += rows.design.sums(slope, label[np.maximum(rows.at, 0)], count)
        return out

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        out = np.zeros(count)
        for rows in self.blocks():
            w = None if rows.weight is None else rows.weight[rows.data]
            out += np.bincount(label[rows.at[rows.data]], w, count)
        return out

    def _sums_by_set(self, label: np.ndarray | None, count: int) -> np.ndarray:
        """(sets, count, p) score sums of the points at hand, by set and label of the observation."""
        out = np.zeros((self.sets * count, self.size))
        for rows in self.blocks():
            assert rows.randomisation is not None
            r = np.where(rows.data, 0.0, rows.slopes()[0])
            of = np.maximum(rows.randomisation.astype(np.intp) - 1, 0)
            of = of if label is None else of * count + label[rows.at]
            out += rows.design.sums(r, of, len(out))
        return out.reshape(self.sets, count, self.size)

    def cluster_points(self, label: np.ndarray, factor: np.ndarray) -> np.ndarray | None:
        count = len(factor)
        if self.sets > 1:
            s = self._sums_by_set(label, count) * factor[:, None]
            s = (s - s.mean(axis=0)).reshape(-1, self.size)
            return self.sets / (self.sets - 1) * s.T @ s
        if self.redraw is None:
            return None
        first = self.redraw(0, 1.0, label, count)
        total, squares = np.zeros_like(first), np.zeros((self.size, self.size))
        for i in range(1, REDRAWS):  # less the first, so that squares do not cancel
            s = (self.redraw(i, 1.0, label, count) - first) * factor[:, None]
            total += s
            squares += s.T @ s
        return (squares - total.T @ total / REDRAWS) / (REDRAWS - 1)

    def measured_spread(self, times: float = 1.0, enough: Enough | None = None) -> np.ndarray | None:
        squares, df = np.zeros((self.size, self.size)), 0
        if self.sets > 1 and times == 1.0:
            df = self.sets - 1
            squares = self.sets * _about_mean(self._sums_by_set(None, 1)[:, 0])
            if enough is None or self.redraw is None or enough(squares / df, df):
                return squares / df
        if self.redraw is None:
            return None
        fresh: list[np.ndarray] = []
        while True:
            goal = min(max(REDRAWS, 2 * len(fresh)), MOST_DF + 1)
            fresh += [self.redraw(i, times)[0] for i in range(len(fresh), goal)]
            more = len(fresh) - 1
            spread = (squares + _about_mean(np.array(fresh))) / (df + more)
            if enough is None or df + more >= MOST_DF or enough(spread, df + more):
                return spread

    def more(self, c: float) -> RowScores:
        if self.anew is not None:
            return self.anew(c)
        information = np.zeros((self.size, self.size))
        for rows in self.blocks():
            information += rows.design.cross(rows.slopes(c)[1] * np.where(rows.data, 1.0, c))
        return replace(self, information=information, c=c)

    def as_rows(self) -> RowScores:
        return self

    def overlap(self) -> tuple[float | None, float | None]:
        ratios, data, weights = [], [], []
        every = 1 if self.shared else max(1, round(self.count / MOST_RATIOS))  # of very many observations, some
        for rows in self.blocks():
            if rows.log_ratio is None:
                return None, None
            some = slice(None) if every == 1 else rows.at % every == 0
            ratios.append(rows.log_ratio[some])
            data.append(rows.data[some])
            weights.append(np.ones(len(data[-1])) if rows.weight is None else rows.weight[some])
        ratio, real, weight = (np.concatenate(parts) for parts in (ratios, data, weights))
        w = np.exp(ratio[~real] - ratio[~real].max())
        return auc(ratio, real, weight), effective_share(w, weight[~real])


def _about_mean(sums: np.ndarray) -> np.ndarray:
    """Σ (s − s̄)(s − s̄)ᵀ."""
    centred = sums - sums.mean(axis=0)
    return centred.T @ centred


def _unit_weights(weight: np.ndarray, label: np.ndarray, count: int) -> np.ndarray:
    """A weight for each unit from the weights of its rows."""
    out = np.zeros(count)
    out[label] = weight
    return out


def auc(score: np.ndarray, data: np.ndarray, weight: np.ndarray) -> float:
    """P(score of an observation > score of a reference point), ties half: the rank-sum statistic of rows that stand
    for `weight` copies each."""
    low, high, copies = score[~data], score[data], weight[~data]
    if np.all(copies == 1.0):  # numbers alone are sorted eight times as fast as with their places
        low, mass = np.sort(low), np.arange(len(low) + 1.0)
    else:
        order = np.argsort(low)
        low, mass = low[order], np.concatenate([[0.0], np.cumsum(copies[order])])
    below = mass[np.searchsorted(low, high, side="left")] + mass[np.searchsorted(low, high, side="right")]
    return float(weight[data] @ below / (2 * mass[-1] * weight[data].sum()))


def effective_share(w: np.ndarray, copies: np.ndarray) -> float:
    """(Σ w)²/(m Σ w²) over m points, each as often as its observation has copies."""
    return float((copies @ w) ** 2 / (copies @ w**2) / copies.sum())
