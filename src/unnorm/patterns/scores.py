"""What the score of a pattern's fit varies by: Coeurjolly & Rubak's (2013) covariance for Gibbs processes.

The logistic score is Σ_{x_i} h(x_i, x∖x_i) − Σ_dummies (…), with h = ρ/(λ + ρ) · (z, t). Its variance is Σ1 + Σ2, Σ2
that of the dummy points and Σ1 = A1 + A2 + A3 (Baddeley, Coeurjolly, Rubak & Waagepetersen 2014):

    A1 = ∫ λ h hᵀ,    A2 = Σ_{i≠j} {λ(x_i | x∖{i,j})/λ(x_i | x∖i) − 1} h_i^{-j} (h_j^{-i})ᵀ,
    A3 = Σ_{i≠j} Δ_j h_i (Δ_i h_j)ᵀ

where h_i^{-j} is h at x_i given the pattern less both points, and Δ_j h_i = h_i − h_i^{-j}. Integrals are sums over
data and dummy rows, which together have intensity λ + ρ. A Poisson process has A2 = A3 = 0. Pairs within a hard core
are in no pattern, but they count in A2, which is ∫∫ {λ(u | x) λ(v | x) − λ({u, v} | x)} h_u h_vᵀ: the second term is 0
there, and pairs of dummy points give the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from ..engine.gam_predict import design
from ..engine.gam_result import Gam
from ..inference.sandwich import bread
from ..objectives.likelihood import LOGISTIC
from ..objectives.scores import Drawn, Enough, Reselection, Scores
from ..solvers.engine_rows import cross, reselection, smoothing_uncertainty, total
from .dependence import Dependence, dependence
from .dummies import DrawnDummies
from .places import Places, close_pairs
from .point_pattern import Pattern
from .rows import Covaried, PatternModel

if TYPE_CHECKING:
    from .interactions import Interaction

CHUNK = 65_536


@final
@dataclass(frozen=True, eq=False)
class FittedRows:
    """The rows of a fit: which places they are, and what the engine found on them."""

    pattern: Pattern
    model: PatternModel
    dummies: DrawnDummies
    gam: Gam
    places: Places  # of the rows
    index: np.ndarray  # the data point that each row is, −1 for dummy points
    kept: np.ndarray  # of all data and then all dummy points, those that are rows
    log_rho: np.ndarray  # (N,) of the dummy points' process at the rows

    @cached_property
    def p(self) -> np.ndarray:
        """λ/(λ + ρ) by row."""
        return np.asarray(self.gam.fitted)

    @cached_property
    def data(self) -> np.ndarray:
        """(N,) bool."""
        return self.index >= 0

    @cached_property
    def intensity(self) -> np.ndarray:
        """λ(u | x∖u) by row."""
        return np.exp(np.asarray(self.gam.linear_predictor) + self.log_rho)

    def matrix(self, given: Covaried) -> np.ndarray:
        """The design at other places."""
        return design(self.gam, given.columns, len(given.known))

    def log_intensity(self, given: Covaried, X: np.ndarray | None = None) -> np.ndarray:
        """log λ at other places; −∞ where a hard core forbids points."""
        X = self.matrix(given) if X is None else X
        return np.where(given.allowed, X @ np.asarray(self.gam.smoothed.beta) + given.known, -np.inf)


@final
@dataclass(frozen=True, eq=False)
class PatternScores(Scores):
    """The pieces of the score at the estimate."""

    fitted: FittedRows
    model_based = True
    shared = True
    widened = 1.0

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.fitted.gam.smoothed.size

    @property
    def weight(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return float(self.fitted.data.sum())

    @property
    def drawn(self) -> Drawn:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Drawn.EVENLY if self.fitted.dummies.second is not None else Drawn.IID

    @cached_property
    def information(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        p = self.fitted.p
        return self._cross(p * (1 - p))

    @cached_property
    def penalty(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return np.array(self.fitted.gam.smoothed.penalty) if self.fitted.gam.smooths else None

    @cached_property
    def reselection(self) -> Reselection | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return reselection(self.fitted.gam, LOGISTIC)

    @cached_property
    def smoothing(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return smoothing_uncertainty(self.fitted.gam)

    def _cross(self, d: np.ndarray) -> np.ndarray:
        return cross(self.fitted.gam.smoothed.design, d)

    def _total(self, v: np.ndarray) -> np.ndarray:
        return total(self.fitted.gam.smoothed.design, v)

    def data_spread(self) -> np.ndarray:
        """A1 + A2 + A3."""
        p = self.fitted.p
        A1 = self._cross(p * (1 - p) ** 2)
        interaction = self.fitted.model.interaction
        if interaction is None:
            return A1
        A2_A3 = self._pairs(interaction) if self.fitted.model.statistics else 0.0
        return A1 + A2_A3 + (self.forbidden(interaction.core) if interaction.core else 0.0)

    def forbidden(self, core: float) -> np.ndarray:
        """A2 of the pairs that a hard core forbids: ∫∫ λ(u | x) λ(v | x) h_u h_vᵀ over places u and v within it.

        A sum over pairs of dummy points, with λh/ρ = p (z, t) at each: of two draws where there are two, as points of
        one stratified draw keep apart; elsewhere of different points of one draw.
        """
        fitted = self.fitted
        dummy = np.flatnonzero(~fitted.data)
        first = fitted.places.take(dummy)
        out = np.zeros((self.size, self.size))
        for own, places, D in self._once_more(dummy):
            near = close_pairs(places, first, core, fitted.model.period(fitted.pattern)).less(own)
            column, b = np.unique(near.b, return_inverse=True)
            B = self._dense(dummy[column]) * fitted.p[dummy[column]][:, None]
            beside = np.stack([np.bincount(near.a, values[b], places.n) for values in B.T], axis=1)
            out += D.T @ beside
        return 0.5 * (out + out.T)

    def _once_more(self, dummy: np.ndarray) -> Iterator[tuple[np.ndarray, Places, np.ndarray]]:
        """Places of dummy points, which of the rows `dummy` each is (−1: none), and p (z, t) there: of the second draw,
        or of the first where it is the only one."""
        if self.fitted.dummies.second is not None:
            yield from ((np.full(places.n, -1), places, D) for _, places, D in self._second_draw())
            return
        for first in range(0, len(dummy), CHUNK):
            own = np.arange(first, min(first + CHUNK, len(dummy)))
            rows = dummy[own]
            yield own, self.fitted.places.take(rows), self._dense(rows) * self.fitted.p[rows][:, None]

    def _pairs(self, interaction: Interaction) -> np.ndarray:
        """A2 + A3, over pairs of data points that are rows and within reach of each other."""
        fitted, model = self.fitted, self.fitted.model
        x = fitted.pattern.places
        near = model.neighbours(fitted.pattern, x, np.arange(x.n))
        row = np.full(x.n, -1)
        row[fitted.index[fitted.data]] = np.flatnonzero(fitted.data)
        i, j = near.pairs.a, near.pairs.b
        both = (row[i] >= 0) & (row[j] >= 0)
        back = near.pairs.reverse()
        place = np.cumsum(both) - 1
        t_less = interaction.without(near)[both]
        i, j, back = row[i[both]], row[j[both]], place[back[both]]
        names = list(model.statistics)
        columns = fitted.gam.columns
        which = np.concatenate([fitted.gam.index(name) for name in names])
        phi = np.asarray(fitted.gam.smoothed.beta)[which]
        out = np.zeros((self.size, self.size))
        log_lambda, log_rho = np.asarray(fitted.gam.linear_predictor) + fitted.log_rho, fitted.log_rho
        t_full = np.stack([columns[name] for name in names], axis=1)

        def h(rows: np.ndarray, t: np.ndarray, shift: np.ndarray | float) -> np.ndarray:
            X = design(fitted.gam, {name: column[rows] for name, column in columns.items()}, len(rows))
            X[:, which] = t
            return X / (1.0 + np.exp(log_lambda[rows] + shift - log_rho[rows]))[:, None]

        change = (t_less - t_full[i]) @ phi  # log λ(x_i | x∖{i,j}) − log λ(x_i | x∖i)
        for first in range(0, len(i), CHUNK):
            s = slice(first, first + CHUNK)
            r = back[s]
            h_i, h_j = h(i[s], t_less[s], change[s]), h(j[s], t_less[r], change[r])
            D_i, D_j = h(i[s], t_full[i[s]], 0.0) - h_i, h(j[s], t_full[j[s]], 0.0) - h_j
            out += h_i.T @ (np.expm1(change[s])[:, None] * h_j) + D_i.T @ D_j
        return 0.5 * (out + out.T)

    def points_spread(self, power: int) -> np.ndarray:
        """Σ2 of Poisson points; less what a fixed number of them takes off."""
        p = self.fitted.p
        sigma2 = self._cross(p**2 * (1 - p))
        if self.fitted.dummies.design == "poisson":
            return sigma2
        a = self._total(p * (1 - p))
        return sigma2 - np.outer(a, a) / self.fitted.dummies.places.n  # of all, also those that are no rows

    def measured_spread(self, times: float = 1.0, enough: Enough | None = None) -> np.ndarray | None:
        """Σ2 of stratified points: half the squared differences between two draws, tile by tile."""
        fitted, strata = self.fitted, self.fitted.dummies.second
        if strata is None:
            return None
        n = fitted.pattern.n
        dummy = np.flatnonzero(~fitted.data)
        tile = strata.first[fitted.kept[dummy] - n]
        out = np.zeros((self.size, self.size))
        partner = np.full(strata.tiles, -1)
        partner[tile] = dummy
        lone = partner.copy()
        for at, _, D in self._second_draw():
            mates = partner[strata.tile[at]]
            have = np.flatnonzero(mates >= 0)
            D[have] -= self._dense(mates[have]) * fitted.p[mates[have]][:, None]
            out += D.T @ D
            lone[strata.tile[at]] = -1
        rest = lone[lone >= 0]  # first points whose tile the second draw left empty
        for first in range(0, len(rest), CHUNK):
            rows = rest[first : first + CHUNK]
            D = self._dense(rows) * fitted.p[rows][:, None]
            out += D.T @ D
        return 0.5 * out

    def _second_draw(self) -> Iterator[tuple[np.ndarray, Places, np.ndarray]]:
        """Points of the second draw whose statistics are known: which they are, their places, and p (z, t) there."""
        fitted, strata = self.fitted, self.fitted.dummies.second
        assert strata is not None
        again = np.flatnonzero(fitted.model.inside(fitted.pattern, strata.places))
        for first in range(0, len(again), CHUNK):
            at = again[first : first + CHUNK]
            places = strata.places.take(at)
            given = fitted.model.at(fitted.pattern, places)
            X = fitted.matrix(given)
            odds = np.exp(fitted.log_intensity(given, X) - fitted.dummies.log_rho(places))
            yield at, places, X * (odds / (1 + odds))[:, None]

    def _dense(self, rows: np.ndarray) -> np.ndarray:
        gam = self.fitted.gam
        return design(gam, {name: column[rows] for name, column in gam.columns.items()}, len(rows))

    @cached_property
    def _dependence(self) -> Dependence:
        return dependence(self.fitted, self.information, bread(self))

    @property
    def robust_df(self) -> float:
        """Degrees of freedom of what `empirical_spread` adds up."""
        return self._dependence.df

    def empirical_spread(self) -> np.ndarray:
        """Σ1 from sums over cells of the windows and those that touch them: no model of the dependence between near
        points need be correct, if it reaches no farther than a cell's width."""
        sigma2 = self.measured_spread() if self.drawn is Drawn.EVENLY else self.points_spread(2)
        assert sigma2 is not None
        return self._dependence.M - sigma2

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        """(count, p) sums of the score over labels of rows, dummy points included."""
        residual = self.fitted.data - self.fitted.p
        out = np.zeros((count, self.size))
        for here, X in self.fitted.gam.design_chunks():
            np.add.at(out, label[here], residual[here, None] * X)
        return out
