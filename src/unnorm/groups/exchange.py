"""Do conditions differ? Tests by exchange: which condition a subject, or a subject's cell, is said to be in.

With the random curves and constants of subject s integrated out, its rows say of the curves b_c of the conditions that
it was seen in, near the estimate,

    −½ bᵀ J_s b + h_sᵀ b,       J_s = A − Bᵀ H⁻¹ B,   h_s = (A b̂ + g) − Bᵀ H⁻¹ (A b̂ + g)_own,

A and g the curvature and score of its cells, B the block that joins their curves with the subject's own columns, and H
that of its own columns, priors included. Residuals r_s = h_s − J_s b of the curves fitted without the contrasts of a
term have mean zero where conditions do not differ in it, and subjects (or the conditions of each) are then
exchangeable. The score of the contrasts, U_i = Σ_s Σ_c W_ci r_sc less what the other terms' contrasts explain, gives
the likelihood ratio of curves with prior precision λS against none, J̄ the contrasts' mean information,

    T = max_λ Σ_i { U_iᵀ (J̄ + λS)⁻¹ U_i − log|J̄ + λS| + log|λS|₊ },

whose law is that of T over reassignments: within each subject where conditions are within them, and its size is right
whatever the law of the curves. Where they are between subjects, labels are permuted among subjects, who need not say
equally much: a residual is divided by the root of its J_s and multiplied by that of the mean information of the
condition that it is given, so that a long record that is said to be of a condition with short ones counts as one of
these. U is what such residuals say of the contrasts beside f and the free terms, and the U of reassignments are
rescaled to the covariance that the model gives that of the data; where all subjects say equally much, nothing changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb, factorial
from typing import NamedTuple, final

import numpy as np

from ..engine import families
from .crossed import Crossed, contrasts

DRAWS = 4999  # reassignments, where there are too many for all of them
MOST_ORDERS = 720  # orders of a subject's conditions that are listed
STRENGTHS = 25  # values of λ
CHUNK = 500  # reassignments at a time
LEAST_KNOWN = 1e-8  # of a subject's largest information


Scores = Callable[[np.ndarray], np.ndarray]  # (n, S) reassignments → (n, C − 1, p) scores of a term's contrasts


class Unit(NamedTuple):
    """What a subject says of the conditions that it was seen in."""

    conditions: tuple[int, ...]
    J: np.ndarray  # (m q, m q)
    h: np.ndarray  # (m q,)


class Outcome(NamedTuple):
    """A test of one effect, or of all, in two conditions or all."""

    statistic: float
    p: float
    least: float  # the smallest p that these subjects allow


@final
@dataclass(frozen=True)
class Comparison:
    """The subjects of some conditions, numbered from 0, and the terms of f as slices of its q columns."""

    units: tuple[Unit, ...]
    count: int  # C
    within: bool
    slices: dict[str, slice]
    prior: np.ndarray  # (2q, 2q) of f and of one contrast, in the engine's coordinates
    penalties: dict[str, np.ndarray]  # label → S, all of a term's together
    draws: np.ndarray | None  # (N, S) the condition, or the order of conditions, of each subject; first the true one
    everything: bool  # whether these are all there are

    @property
    def q(self) -> int:
        return len(self.prior) // 2

    def test(self, label: str | None = None) -> Outcome:
        """Of one term's contrasts, the other terms' being estimated; or of all terms together."""
        assert self.draws is not None
        free = [k for k in self.slices if k != label] if label is not None else []
        T = np.zeros(len(self.draws))
        for name in [label] if label is not None else list(self.slices):
            scores, J = self._within_scores(name, free) if self.within else self._between_scores(name, free)
            T += self._statistics(name, scores, J)
        return _outcome(T, self.everything)

    def _maps(self, unit: Unit) -> np.ndarray:
        """(m q, C q): from (f, δ_1 …) to the curves of the unit's conditions."""
        w = np.column_stack([np.ones(self.count), contrasts(self.count)])[list(unit.conditions)]
        return np.kron(w, np.eye(self.q))

    def _null(self, free: Sequence[str]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """The columns `at` of f and of the contrasts of the terms `free`, their information A⁻¹ with the prior, and
        each subject's map from them."""
        q, P = self.q, self.prior
        prior = np.kron(np.eye(self.count), P[q:, q:])
        prior[:q, :q] = P[:q, :q]
        chosen = [np.arange(q)] + [i * q + _range(self.slices[k]) for k in free for i in range(1, self.count)]
        at = np.concatenate(chosen)
        maps = [self._maps(unit)[:, at] for unit in self.units]
        A = prior[np.ix_(at, at)] + _total(X.T @ unit.J @ X for unit, X in zip(self.units, maps))
        scale = 1.0 / np.sqrt(np.diag(A))
        inverse = np.linalg.pinv(A * scale * scale[:, None], rcond=1e-12, hermitian=True) * scale * scale[:, None]
        return at, inverse, maps

    def _residuals(self, free: Sequence[str]) -> list[np.ndarray]:
        """(m, q) of each subject, f and the contrasts of the terms `free` being fitted."""
        _, inverse, maps = self._null(free)
        phi = inverse @ _total(X.T @ unit.h for unit, X in zip(self.units, maps))
        return [(unit.h - unit.J @ (X @ phi)).reshape(-1, self.q) for unit, X in zip(self.units, maps)]

    def _statistics(self, label: str, scores: Scores, J: np.ndarray) -> np.ndarray:
        """(N,) T of one term over the reassignments, J the information of a contrast."""
        V, s = _common_axes(J, self.penalties[label])
        strengths, shift = _strengths(s, self.count - 1)
        assert self.draws is not None
        out = []
        for begin in range(0, len(self.draws), CHUNK):
            z = scores(self.draws[begin : begin + CHUNK]) @ V
            squares = np.sum(z**2, axis=1)  # over contrasts
            out.append(np.max(squares @ (1.0 / (1.0 + strengths * s[:, None])) - shift, axis=1))
        return np.concatenate(out)

    def _between_scores(self, label: str, free: Sequence[str]) -> tuple[Scores, np.ndarray]:
        """Scores of a term's contrasts for (n, S) conditions of the subjects, (n, C − 1, p), and their information.

        With X_c the map from the null's columns to the curve of condition c, X_tc that from the term's contrasts and
        C = Σ X_tᵀ J X, the residuals r of the subjects say G_c r, G_c = X_tcᵀ − C A⁻¹ X_cᵀ, of the contrasts.
        """
        q, count, t = self.q, self.count, _range(self.slices[label])
        at, inverse, maps = self._null(free)
        own = np.concatenate([i * q + t for i in range(1, count)])
        w = np.column_stack([np.ones(count), contrasts(count)])
        X_of = [np.kron(w[c], np.eye(q)) for c in range(count)]  # (q, C q)
        of = [unit.conditions[0] for unit in self.units]
        C = _total(X_of[c][:, own].T @ unit.J @ X for c, unit, X in zip(of, self.units, maps))
        J = _total(X_of[c][:, own].T @ unit.J @ X_of[c][:, own] for c, unit in zip(of, self.units)) - C @ inverse @ C.T
        G = [X[:, own].T - C @ inverse @ X[:, at].T for X in X_of]
        mean = [np.mean([unit.J for c, unit in zip(of, self.units) if c == k], axis=0) for k in range(count)]
        give = [G[k] @ _root(mean[k], 0.5) for k in range(count)]
        halves = [_root(unit.J, -0.5) for unit in self.units]
        white = np.array([half @ r[0] for half, r in zip(halves, self._residuals(free))])
        said = np.stack([white @ one.T for one in give])  # (C, S, (C − 1) p)
        R = self._rescaled(give, [half @ unit.J for half, unit in zip(halves, self.units)], halves, inverse, maps)

        def scores(drawn: np.ndarray) -> np.ndarray:
            U = np.sum([(drawn == k) @ said[k] for k in range(count)], axis=0)
            U = np.where(np.all(drawn == of, axis=1)[:, None], U, U @ R.T)
            return U.reshape(len(drawn), count - 1, len(t))

        return scores, np.mean(J.reshape(count - 1, len(t), count - 1, len(t)).diagonal(0, 0, 2), axis=-1)

    def _rescaled(
        self,
        give: list[np.ndarray],
        halves: list[np.ndarray],
        inverse_halves: list[np.ndarray],
        inverse: np.ndarray,
        maps: list[np.ndarray],
    ) -> np.ndarray:
        """R with which scores of reassignments have the covariance that the model gives those of the data.

        Residuals e of unit variance depend on each other through the null's fit, cov(e_s, e_u) = δ_su I − F_s A⁻¹ F_uᵀ
        with F_s = J_s^½ X_s; D and E are their sums over s = u and s ≠ u.
        """
        of = np.array([unit.conditions[0] for unit in self.units])
        S, sizes = len(of), np.bincount(of, minlength=self.count)
        F = [half @ X for half, X in zip(halves, maps)]
        known = [half @ other for half, other in zip(halves, inverse_halves)]
        total, alone = _total(F), _total(one @ inverse @ one.T for one in F)
        D, E = _total(known) - alone, alone - total @ inverse @ total.T
        L = _total(give[c] @ one for c, one in zip(of, F))
        data = _total(give[c] @ one @ give[c].T for c, one in zip(of, known)) - L @ inverse @ L.T
        mixed = _total(n / S * a @ D @ a.T for n, a in zip(sizes, give))
        for c, d in itertools.product(range(self.count), repeat=2):
            mixed = mixed + sizes[c] * (sizes[d] - (c == d)) / (S * (S - 1)) * give[c] @ E @ give[d].T
        return _root(data, 0.5) @ _root(mixed, -0.5)

    def _within_scores(self, label: str, free: Sequence[str]) -> tuple[Scores, np.ndarray]:
        """The same for orders of each subject's conditions: scores less what the contrasts of `free` explain."""
        q, t, w = self.q, _range(self.slices[label]), contrasts(self.count)
        J = np.zeros((q, q))
        for unit in self.units:
            m = len(unit.conditions)
            J += np.einsum("ab,aibj->ij", np.eye(m) - 1.0 / m, unit.J.reshape(m, q, m, q)) / (self.count - 1)
        own, turn = J[np.ix_(t, t)], np.eye(q)[:, t]
        if free:
            others = np.concatenate([_range(self.slices[k]) for k in free])
            inner = J[np.ix_(others, others)] + self.prior[q:, q:][np.ix_(others, others)]
            M = np.linalg.lstsq(inner, J[np.ix_(others, t)], rcond=1e-12)[0]
            turn[others] = -M
            own = own - J[np.ix_(t, others)] @ M
        tables = []
        for unit, one in zip(self.units, self._residuals(free)):
            mine = w[list(unit.conditions)]
            tables.append(np.array([mine[list(order)].T @ one for order in _orders(len(unit.conditions))]) @ turn)

        def scores(drawn: np.ndarray) -> np.ndarray:
            return np.sum([table[drawn[:, s]] for s, table in enumerate(tables)], axis=0)

        return scores, own


def compare(found: Crossed, null: Crossed, conditions: Sequence[int], seed: int) -> Comparison:
    """The subjects seen in these conditions (two of them or all), with the reassignments that tests go through.

    `null` is the fit in which conditions do not differ: laws of random curves that were estimated about the conditions'
    own means would favour the labels as they are.
    """
    layout, crossing = found.layout, found.layout.crossing
    units = tuple(one for one in _units(null, list(conditions)) if one is not None)
    within, count = crossing.design == "within", len(conditions)
    if within:
        units = tuple(unit for unit in units if len(unit.conditions) > 1)
    slices, at = {}, 0
    for term in found.design.terms[: found.cells.count]:
        slices[term.label] = slice(at, at + term.size)
        at += term.size
    q = layout.q
    penalties = {label: _whole_penalty(found, span) for label, span in slices.items()}
    rng = np.random.default_rng([seed, 16, *conditions])
    draws, everything = _within_draws(units, rng) if within else _between_draws(units, count, rng)
    prior = found.blocks[0][: 2 * q, : 2 * q]
    return Comparison(units, count, within, slices, prior, penalties, draws, everything)


def _units(found: Crossed, conditions: list[int]) -> list[Unit | None]:
    """Each subject's, None where it was seen in none of them."""
    design, layout, q = found.design, found.layout, found.layout.q
    family = next(iter(found.cells.gams.values())).family
    passes = design.passes(families.FAMILIES[family], found.flat, found.cells.threads)
    out: list[Unit | None] = []
    f = slice(1, 1 + q)
    for s, cells in enumerate(layout.cells_of):
        mine = [u for u in cells if layout.crossing.cells[u][1] in conditions]
        if not mine:
            out.append(None)
            continue
        prior, m = found.blocks[1 + s], len(mine)
        spans = [np.arange(layout.random * q)]
        spans += [np.arange(layout.chi_at(u), layout.chi_at(u) + layout.chi) for u in mine]
        keep = np.concatenate(spans)
        H, B, own = prior[np.ix_(keep, keep)], np.zeros((keep.size, m * q)), np.zeros(keep.size)
        J, h = np.zeros((m * q, m * q)), np.zeros(m * q)
        for i, u in enumerate(mine):
            _, g, A = passes[u]
            T, here = design.maps[u][1][:, keep], slice(i * q, (i + 1) * q)
            y = A @ design.coefficients(found.flat, u) + g
            H = H + T.T @ A @ T
            B[:, here] = T.T @ A[:, f]
            own += T.T @ y
            J[here, here], h[here] = A[f, f], y[f]
        scale = 1.0 / np.sqrt(np.diag(H))
        solved = scale[:, None] * np.linalg.solve(
            H * scale * scale[:, None], scale[:, None] * np.column_stack([B, own])
        )
        order = tuple(conditions.index(layout.crossing.cells[u][1]) for u in mine)
        out.append(Unit(order, J - B.T @ solved[:, :-1], h - B.T @ solved[:, -1]))
    return out


def _whole_penalty(found: Crossed, span: slice) -> np.ndarray:
    """A term's penalties, each of trace one, added up."""
    penalties, out = found.design.penalties, np.zeros((span.stop - span.start,) * 2)
    for pieces in penalties.pieces:
        piece = pieces[0]
        if piece.block == -1 and piece.at == span:
            out += piece.matrix / max(float(np.trace(piece.matrix)), 1e-300)
    return out


def _common_axes(J: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V and s with VᵀJV = I and VᵀSV = diag(s); directions that nothing is known of are left out."""
    values, vectors = np.linalg.eigh((J + J.T) / 2)
    keep = values > 1e-9 * max(float(values[-1]), 1e-300)
    half = vectors[:, keep] / np.sqrt(values[keep])
    s, turned = np.linalg.eigh(half.T @ S @ half)
    s = np.where(s > 1e-9 * max(float(s[-1]), 1e-300), s, 0.0) if s.size else s
    return half @ turned, s


def _total(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.sum(list(parts), axis=0)


def _root(J: np.ndarray, power: float) -> np.ndarray:
    """A power of a positive semidefinite matrix; directions that next to nothing is known of stay zero."""
    values, vectors = np.linalg.eigh((J + J.T) / 2)
    keep = values > LEAST_KNOWN * max(float(values[-1]), 1e-300)
    return (vectors[:, keep] * values[keep] ** power) @ vectors[:, keep].T


def _strengths(s: np.ndarray, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of λ from hardly any penalty to all, and Σ log(1 + 1/(λ s)) at each, once for each contrast."""
    positive = s[s > 0]
    if not positive.size:
        return np.zeros(1), np.zeros(1)
    ends = np.log(1e-2 / positive.max()), np.log(1e3 / positive.min())
    strengths = np.exp(np.linspace(*ends, STRENGTHS))
    return strengths, copies * np.sum(np.log1p(1.0 / (strengths * positive[:, None])), axis=0)


def _outcome(T: np.ndarray, everything: bool) -> Outcome:
    """`T[0]` is that of the data."""
    as_large = int(np.sum(T + 1e-9 * max(abs(float(T[0])), 1.0) >= T[0]))
    top = int(np.sum(T + 1e-9 * max(abs(float(T.max())), 1.0) >= T.max())) if everything else 1
    return Outcome(float(T[0]), as_large / len(T), top / len(T))


def _orders(m: int) -> list[tuple[int, ...]]:
    """Orders of m conditions, the given one first."""
    if factorial(m) <= MOST_ORDERS:
        return list(itertools.permutations(range(m)))
    rng = np.random.default_rng(m)
    return [tuple(range(m)), *(tuple(rng.permutation(m).tolist()) for _ in range(MOST_ORDERS - 1))]


def _within_draws(units: Sequence[Unit], rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """Orders of each subject's conditions; the first of the first subject alone, as reversing all changes nothing."""
    sizes = [len(_orders(len(unit.conditions))) for unit in units]
    pairs = all(size == 2 for size in sizes)
    if pairs and 2 ** (len(units) - 1) <= DRAWS + 1:
        flips = np.array(list(itertools.product((0, 1), repeat=len(units) - 1)), dtype=np.intp)
        return np.column_stack([np.zeros(len(flips), dtype=np.intp), flips.reshape(len(flips), -1)]), True
    drawn = np.column_stack([rng.integers(0, size, DRAWS + 1) for size in sizes])
    drawn[0] = 0
    return drawn, False


def _between_draws(units: Sequence[Unit], count: int, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """Conditions of the subjects, as many in each as there are."""
    true = np.array([unit.conditions[0] for unit in units])
    S, ones = len(true), int(np.sum(true == 1))
    if count == 2 and comb(S, ones) <= DRAWS + 1:
        drawn = np.zeros((comb(S, ones), S), dtype=np.intp)
        for i, chosen in enumerate(itertools.combinations(range(S), ones)):
            drawn[i, list(chosen)] = 1
        first = int(np.flatnonzero(np.all(drawn == true, axis=1))[0])
        drawn[[0, first]] = drawn[[first, 0]]
        return drawn, True
    drawn = np.array([true, *(rng.permutation(true) for _ in range(DRAWS))])
    return drawn, False


def _range(span: slice) -> np.ndarray:
    return np.arange(span.start, span.stop)


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjustment: the chance of any false rejection is at most the level.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return out
