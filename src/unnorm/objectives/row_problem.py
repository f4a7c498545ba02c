"""max over (θ, ν) of Σ_r ℓ_r(f_θ(y_r|x_r) + ν_{g(r)} + offset_r): logistic and importance-weighted Poisson rows.

The ν block is diagonal (each row has one ν), so it is profiled out whatever its size: 10⁵ constants cost a few sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from ..data.observations import Observations
from ..models.base import Model
from ..models.normalisers import Layout
from ..models.operators import Operator
from .anchor import Anchor, Integrated, anchor_report, say_if_slow, slow
from .base import ChosenErrors, Constants, Derivatives, ModelProblem, ParametricProblem
from .flips import FlipProblem
from .likelihood import RowLikelihood
from .redraws import Laws, Probe, Read, Redraws, points_only
from .row_errors import RowErrors
from .rows import Over, Rows, RowSource
from .scores import DenseDesign, Drawn, RowScores, ScoreRows, sum_by

MANY = 2000  # parameters from which no matrix of p × p is formed where sums will do
KEPT = 2**27  # numbers that may be kept between iterations (1 GiB); beyond it blocks are evaluated again
TABLE = 2**24  # numbers of one table of rows × parameters (128 MiB)


Coordinates = Callable[[Rows, np.ndarray], np.ndarray]  # rows and ∂f/∂θ → ∂η by row


class Base(NamedTuple):
    """A block at some θ: η without ν, and ∂f/∂θ where it was asked for."""

    rows: Rows
    eta: np.ndarray
    J: np.ndarray


class Blocks(NamedTuple):
    """Derivatives at (θ, ν*(θ)) summed over rows: −H_θθ, −H_νθ (q, p), −H_νν (q,), after or before profiling."""

    value: float
    gradient: np.ndarray
    A: np.ndarray
    cross: np.ndarray
    d: np.ndarray
    scale: np.ndarray


@final
@dataclass(frozen=True)
class RowProblem(ModelProblem):  # long: with a table of rows × parameters, and without
    """The rows of a source with a parametric f."""

    model: Model
    obs: Observations
    source: RowSource
    layout: Layout  # ν of each observation
    drawn: Drawn
    sets: int = 1  # independent sets of reference points
    figures: dict[str, Any] = field(default_factory=dict)  # for the record
    notes: tuple[str, ...] = ()
    redraw: Callable[[int, float], RowSource] | None = None  # the i-th set of fresh points, c times as many
    over: Over | None = None  # rows at the nodes of a rule
    anchor: Anchor | None = None  # −log Z_θ(x) as part of the constants: f is then normalised, and ν is δ

    @property
    def concave(self) -> bool:
        return self.model.linear and self.anchor is None

    @property
    def linear(self) -> bool:
        return self.model.linear

    # --- f on blocks -------------------------------------------------------------------------------------------------

    @cached_property
    def _kept(self) -> list[tuple[Rows, np.ndarray]] | None:
        """∂f/∂θ of each block once for all, where f is linear and they are small enough."""
        if not self.model.linear or self.source.size * self.model.size > KEPT:
            return None
        return [(rows, self._jacobian(self.start, rows)) for rows in self._within(self.source).blocks()]

    def _within(self, source: RowSource) -> RowSource:
        """In blocks whose ∂f/∂θ is no large table."""
        return source.within(max(1, TABLE // self.model.size))

    @property
    def _held(self) -> bool:
        """Whether ∂f/∂θ of all rows is in memory while derivatives are computed."""
        return self.source.size * self.model.size <= (KEPT if self.model.linear else TABLE)

    def _jacobian(self, theta: np.ndarray, rows: Rows) -> np.ndarray:
        return self.model.jacobian(theta, rows.y, self.model.arguments(self.obs, rows.context))

    def _evaluated(self, theta: np.ndarray, source: RowSource | None = None) -> Iterator[Base]:
        """f + offset and ∂f/∂θ, block by block; of the normalised f where the constants are anchored."""
        if self.anchor is None:
            yield from self._unnormalised(theta, source)
            return
        log_z, mean = self._integrated(theta)
        for rows, eta, J in self._unnormalised(theta, source):
            yield Base(rows, eta - log_z[rows.context], J - mean[rows.context])

    def _integrated(self, theta: np.ndarray) -> Integrated:
        """log Z and E_θ(∂f), kept for the last θ."""
        assert self.anchor is not None
        key = theta.tobytes()
        if self._near.get("theta") != key:
            self._near.update(theta=key, integrated=self.anchor.at(theta))
        return self._near["integrated"]

    def _unnormalised(self, theta: np.ndarray, source: RowSource | None = None) -> Iterator[Base]:
        if source is None and self._kept is not None:
            for rows, J in self._kept:
                yield Base(rows, J @ theta + rows.offset, J)
            return
        for rows in self._within(self.source if source is None else source).blocks():
            J = self._jacobian(theta, rows)
            if self.model.linear:
                f = J @ theta
            else:
                f = self.model.log_f(theta, rows.y, self.model.arguments(self.obs, rows.context))
            yield Base(rows, f + rows.offset, J)

    def _bases(self, theta: np.ndarray) -> Iterable[Base]:
        """The same, to be iterated over more than once: kept where they are small, else evaluated again."""
        return list(self._evaluated(theta)) if self._held else _Again(self, theta)

    def _profiled(self, theta: np.ndarray) -> tuple[Iterable[Base], np.ndarray]:
        """The blocks at θ, and ν*(θ), which reads f alone."""
        bases = self._bases(theta)
        return bases, self.nu_star(bases if self._held else self.light(theta))

    # --- ν -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _near(self) -> dict[str, Any]:
        """The last ν*: the next θ is near, so that two or three steps from here are enough, where zero needs eight."""
        return {}

    def _of(self, rows: Rows) -> np.ndarray:
        return self.layout.of[rows.context]

    def nu_star(self, bases: Iterable[Base]) -> np.ndarray:
        """The maximising ν for η = base + ν."""
        if self.layout.fixed is not None:
            return np.zeros(0)
        nu = self._near.get("nu", np.zeros(self.layout.size)).copy()
        if self.layout.size == 1:
            nu = _climb_nu(bases, nu)
        else:
            for base in bases:  # the constants of a block are its own
                of = self._of(base.rows)
                first = int(of.min())
                size = int(of.max(initial=-1)) + 1 - first
                part = slice(first, first + size)
                nu[part] = _climb_many(base.rows.likelihood, of - first, base.eta, nu[part])
        if np.isfinite(nu).all():  # a wild trial step must not spoil the next
            self._near["nu"] = nu
        return nu.copy()

    def nu_at(self, theta: np.ndarray) -> np.ndarray:
        """ν*(θ)."""
        return self.nu_star(self._levels(theta))

    def _levels(self, theta: np.ndarray) -> Iterable[Base]:
        """f + offset, from the tables that are kept or by themselves."""
        return self.light(theta) if self.by_products or self._kept is None else self._bases(theta)

    def nu_rows(self, rows: Rows, nu: np.ndarray) -> np.ndarray | float:
        return self.layout.fixed if self.layout.fixed is not None else nu[self._of(rows)]

    # --- values and derivatives --------------------------------------------------------------------------------------

    def joint_value(self, theta: np.ndarray, nu: np.ndarray) -> float:
        """The objective at any (θ, ν)."""
        return float(sum(b.rows.likelihood.value(b.eta + self.nu_rows(b.rows, nu)) for b in self._evaluated(theta)))

    @property
    def by_products(self) -> bool:
        """Whether values and slopes are computed without a table of rows × parameters."""
        many = self.source.size * self.model.size > KEPT
        return self.model.by_products and self.anchor is None and (many or self.model.size > MANY)

    def light(self, theta: np.ndarray, source: RowSource | None = None) -> list[Base]:
        """f + offset alone, of all rows; of the normalised f where the constants are anchored."""
        nothing, log_z = np.zeros((0, 0)), None if self.anchor is None else self._integrated(theta).log_z
        out = []
        for rows in (self.source if source is None else source).blocks():
            f = self.model.log_f(theta, rows.y, self.model.arguments(self.obs, rows.context))
            out.append(Base(rows, f + rows.offset - (0.0 if log_z is None else log_z[rows.context]), nothing))
        return out

    def slope(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        if not self.by_products:
            return super().slope(theta)
        bases = self.light(theta)
        nu = self.nu_star(bases)
        value, gradient = 0.0, np.zeros(self.model.size)
        for rows, eta, _ in bases:
            eta = eta + self.nu_rows(rows, nu)
            value += rows.likelihood.value(eta)
            arguments = self.model.arguments(self.obs, rows.context)
            gradient += self.model.row_sums(theta, rows.y, arguments, rows.likelihood.slopes(eta)[0])
        return float(value), gradient

    @cached_property
    def _scale(self) -> np.ndarray:
        if not self.by_products:
            return super().scale
        bases = self.light(self.start)
        nu, out = self.nu_star(bases), np.zeros(self.model.size)
        for rows, eta, _ in bases:
            curvature = rows.likelihood.slopes(eta + self.nu_rows(rows, nu))[1]
            out += self.model.row_squares(self.start, rows.y, self.model.arguments(self.obs, rows.context), curvature)
        return out

    @property
    def scale(self) -> np.ndarray:
        return self._scale

    def part(self, rng: np.random.Generator) -> tuple[ParametricProblem, float] | None:
        """On bits, the pseudo-likelihood: nearly the same maximum, and a curvature that is known by products."""
        if not self.by_products or self.model.domain.free is None:
            return None
        return FlipProblem(self.model, self.obs), 1.0

    def chosen(
        self, theta: np.ndarray, curvature: Operator | None, ridge: np.ndarray | float = 0.0
    ) -> ChosenErrors | None:
        return RowErrors(self, theta, curvature, ridge) if self.by_products else None

    def value(self, theta: np.ndarray) -> float:
        bases = self._levels(theta)
        nu = self.nu_star(bases)
        return float(sum(b.rows.likelihood.value(b.eta + self.nu_rows(b.rows, nu)) for b in bases))

    def _sums(self, theta: np.ndarray, nu: np.ndarray, bases: Iterable[Base], c: float = 1.0) -> Blocks:
        """With c times as many reference points at the same (θ, ν)."""
        p, q = self.model.size, self.layout.size
        value, gradient, scale = 0.0, np.zeros(p), np.zeros(p)
        A, cross, d = np.zeros((p, p)), np.zeros((q, p)), np.zeros(q)
        for base in bases:
            rows, J = base.rows, base.J
            eta = base.eta + self.nu_rows(rows, nu)
            slope, curvature = rows.likelihood.slopes_with(c, eta, rows.data)
            curvature = curvature if c == 1.0 else curvature * np.where(rows.data, 1.0, c)
            WJ = curvature[:, None] * J
            value += rows.likelihood.value(eta)
            gradient += slope @ J
            A += J.T @ WJ
            if not self.model.linear and self.anchor is None:  # an anchored f has the scoring curvature, Σ w v̂ v̂ᵀ
                A -= self.model.curvature(theta, rows.y, self.model.arguments(self.obs, rows.context), slope)
            if self.anchor is None:
                scale += np.einsum("np,np->p", J, WJ)
            else:  # of ∂f itself: ∂f − E is nothing but rounding where ∂f does not vary with y
                scale += curvature @ (J + self._integrated(theta).mean[rows.context]) ** 2
            if q:
                of = self._of(rows)
                d += np.bincount(of, curvature, q)
                for j in range(p):
                    cross[:, j] += np.bincount(of, WJ[:, j], q)
        return Blocks(value, gradient, A, cross, np.maximum(d, 1e-300), scale)

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        bases, nu = self._profiled(theta)
        s = self._sums(theta, nu, bases)
        return Derivatives(s.value, s.gradient, s.A - (s.cross.T / s.d) @ s.cross, s.scale)

    def unbounded(self, direction: np.ndarray) -> bool:
        """Complete separation along d: data lie at or beyond all reference points of their ν (Albert & Anderson)."""
        if not self.concave or self.layout.fixed is not None:
            return False
        low = np.full(self.layout.size, np.inf)
        high = np.full(self.layout.size, -np.inf)
        least, most = np.inf, -np.inf
        for rows in self.source.blocks():
            score = self.model.log_f(direction, rows.y, self.model.arguments(self.obs, rows.context))
            of = self._of(rows)
            np.minimum.at(low, of[rows.data], score[rows.data])
            np.maximum.at(high, of[~rows.data], score[~rows.data])
            least, most = min(least, float(score.min())), max(most, float(score.max()))
        width = most - least
        return bool(np.all(low >= high - 1e-9 * width)) and width > 0

    # --- at the maximum ----------------------------------------------------------------------------------------------

    def made_of(self) -> RowSource:
        return self.source

    def constants(self, theta: np.ndarray) -> Constants:
        if self.layout.fixed is not None:
            return Constants(np.array([self.layout.fixed]), known=True)
        nu = self.nu_at(theta)
        if self.anchor is None:
            return Constants(nu, own=self.layout.size == 1)
        log_z, mean = self._integrated(theta)
        slope = np.column_stack([mean, np.full(len(mean), -1.0)])
        return Constants(nu[0] - log_z, slope, delta=float(nu[0]))

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        if self.anchor is None:
            return self.notes, dict(self.figures)
        shift = self.anchor.shift(theta, _weight(self, theta))
        notes, about = anchor_report(self.anchor, shift)
        return (*self.notes, *notes), {**self.figures, **about}

    def finer(self) -> RowProblem | None:
        return None if self.anchor is None else self._with(self.anchor.finer(self.start, 2.0))

    def refined(self, theta: np.ndarray) -> RowProblem | None:
        excess = 0.0 if self.anchor is None else self.anchor.excess(theta, _weight(self, theta))
        return None if self.anchor is None or excess <= 1.0 else self._with(self.anchor.finer(theta, excess))

    def _with(self, finer: Anchor | None) -> RowProblem | None:
        """The same with finer integrals, and a word where these begin to take long."""
        if finer is None or self.anchor is None:
            return None
        if not slow(self.anchor, self.source.size):
            say_if_slow(finer, self.source.size)
        return replace(self, anchor=finer)

    def scores(self, theta: np.ndarray, c: float = 1.0) -> RowScores:
        """In (θ, ν) jointly for one ν; in θ for a fixed one; in θ after profiling for many, where a row's score becomes
        ℓ' (∂f + dν*/dθ)."""
        bases, nu = self._profiled(theta)
        s = self._sums(theta, nu, bases, c)
        one, many = self.layout.size == 1, self.layout.size > 1
        slope = s.cross / s.d[:, None]  # −dν*/dθ
        information = np.block([[s.A, s.cross.T], [s.cross, s.d[:, None]]]) if one else s.A
        information = s.A - s.cross.T @ slope if many else information

        def coordinates(rows: Rows, J: np.ndarray) -> np.ndarray:
            if one:
                return np.column_stack([J, np.ones(len(J))])
            return J - slope[self._of(rows)] if many else J

        def blocks() -> Iterator[ScoreRows]:
            for base in self._evaluated(theta):
                rows, eta = base.rows, base.eta + self.nu_rows(base.rows, nu)
                ratio = None if rows.log_q is None else eta - rows.offset - rows.log_q
                design = DenseDesign(coordinates(rows, base.J))
                sets = rows.randomisation if self.sets > 1 else None
                yield ScoreRows(design, rows.likelihood, eta, rows.data, rows.at, rows.weight, sets, ratio)

        def fresh(i: int, times: float) -> Iterator[tuple[Rows, tuple[np.ndarray, np.ndarray], np.ndarray]]:
            assert self.redraw is not None
            for base in self._evaluated(theta, self.redraw(i, times)):
                slopes = base.rows.likelihood.slopes(base.eta + self.nu_rows(base.rows, nu))
                yield base.rows, points_only(slopes, base.rows.data), coordinates(base.rows, base.J)

        def sums(i: int, times: float, probe: Probe | None) -> tuple[np.ndarray, np.ndarray | None]:
            total, read = np.zeros(len(information)), 0.0
            for rows, slopes, x in fresh(i, times):
                total += slopes[0] @ x
                if probe is not None:
                    read = read + probe.read(rows.context, probe.K @ x.T) @ slopes[0]
            return total, None if probe is None else np.asarray(read)

        def by_label(i: int, times: float, label: np.ndarray, count: int) -> np.ndarray:
            out = np.zeros((count, len(information)))
            for rows, slopes, x in fresh(i, times):
                out += sum_by(slopes[0][:, None] * x, label[rows.context], count)
            return out

        weights = self.obs.weights
        return RowScores(
            blocks=blocks,
            size=len(information),
            weight=float(weights.sum()),
            drawn=self.drawn,
            shared=self.source.shared,
            information=information,
            counts_points=next(self.source.blocks()).likelihood.cumulant.counts_points,
            redraw=None if self.redraw is None else Redraws(sums, by_label),
            sets=self.sets,
            profiled=many,
            c=c,
            anew=lambda c: self.scores(theta, c),
            level=None if self.anchor is None else self.model.size,
            law=_laws(self, theta, nu, coordinates),
        )


def _laws(problem: RowProblem, theta: np.ndarray, nu: np.ndarray, coordinates: Coordinates) -> Laws | None:
    """Those of anchored scores at the estimate."""
    if problem.anchor is None or problem.over is None:
        return None

    def read(source: RowSource, probe: Probe) -> Iterator[Read]:
        for base in problem._evaluated(theta, source):
            slopes = base.rows.likelihood.slopes(base.eta + problem.nu_rows(base.rows, nu))
            h = probe.read(base.rows.context, probe.K @ coordinates(base.rows, base.J).T)
            yield Read(base.rows.context, slopes, h)

    return Laws(problem.anchor.rule, problem.over, read)


def _weight(problem: RowProblem, theta: np.ndarray) -> float:
    """Σ_r w_r, the curvature of δ."""
    bases, nu = problem._profiled(theta)
    return float(problem._sums(theta, nu, bases).d.sum())


@dataclass(frozen=True)
class _Again:
    """Blocks that are evaluated each time they are iterated over."""

    problem: RowProblem
    theta: np.ndarray

    def __iter__(self) -> Iterator[Base]:
        return self.problem._evaluated(self.theta)


def _climb_nu(bases: Iterable[Base], nu: np.ndarray) -> np.ndarray:
    """One ν for all rows: Newton, each step bounded (ℓ is concave)."""
    for _ in range(200):
        slope = curvature = 0.0
        for base in bases:
            s, c = base.rows.likelihood.slopes(base.eta + nu[0])
            slope, curvature = slope + s.sum(), curvature + c.sum()
        step = float(np.clip(slope / max(curvature, 1e-12), -2.0, 2.0))
        nu = nu + step
        if not abs(step) >= 1e-6:  # |ℓ'''| ≤ |ℓ''|: a step s leaves an error of at most about s²/2
            break
    return nu


def _climb_many(likelihood: RowLikelihood, of: np.ndarray, base: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """A ν for each context: Newton in all at once, each step bounded."""
    nu, size = nu.copy(), len(nu)
    for _ in range(200):
        slope, curvature = likelihood.slopes(base + nu[of])
        step = np.bincount(of, slope, size) / np.maximum(np.bincount(of, curvature, size), 1e-12)
        step = np.clip(step, -2.0, 2.0)
        nu += step
        moving = np.abs(step) >= 1e-6
        left = np.count_nonzero(moving)
        if not left:
            break
        if 4 * left < 3 * len(moving):  # go on with the rows whose constant still moves
            rows = np.flatnonzero(moving[of])
            likelihood, of, base = likelihood.take(rows), of[rows], base[rows]
    return nu
