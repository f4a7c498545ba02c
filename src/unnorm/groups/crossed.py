"""The joint fit of subjects in conditions: one curve for all, contrasts of conditions, and random curves of subjects.

Cell (s, c), subject s in condition c, has its own χ and its own rows. With w_c = (1, W_c1 … W_c,C−1), the W's columns
orthonormal and of sum zero over the C conditions, every term j of f is, in that cell,

    f_j + Σ_i W_ci δ_ji + d_js                         conditions between subjects: c = c(s)
    f_j + Σ_i W_ci δ_ji + d_js + Σ_i W_ci e_jsi        conditions within them

The conditions' curves f_j + Σ_i W_ci δ_ji have the penalty λ_j S_j each, so that f_j has C λ_j S_j and every δ_ji
λ_j S_j: which condition is called first changes nothing, and differences are not shrunk towards none, which would make
their bands too narrow where they are small. d and e are random curves with laws of their own, as in joint.py. A cell's
rows need one pass with its own columns; T_u maps (shared, own) to the coefficients that it sees, and H is an arrowhead
again:

    A_u = X_uᵀW_uX_u,    H = Σ_u T_uᵀ A_u T_u + S_λ,    shared: f, δ;  a subject's own: d, e, and (1, χ) of its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.threads import run_tasks
from ..engine import families
from ..engine.arrow import Arrow, ArrowInverse
from ..engine.criteria import Laplace
from ..engine.gam_result import Gam
from ..engine.outer import Clock, PenalisedRows, smooth, starting_rho
from ..engine.penalties import Penalties
from ..engine.segment import ResponseRows
from ..terms.base import BuiltTerm
from .between import Crossing
from .crossed_penalties import crossed_penalties
from .floor import Main, raised
from .joint import MOST, TOLERANCE, Levels, Member, rotation, smoothing_root

NOTHING = np.empty(0)


def contrasts(count: int) -> np.ndarray:
    """(C, C − 1) orthonormal columns that sum to zero (Helmert's).

    >>> contrasts(2).round(3).tolist()
    [[-0.707], [0.707]]
    """
    out = np.zeros((count, count - 1))
    for i in range(1, count):
        out[:i, i - 1], out[i, i - 1] = -1.0, i
    return out / np.linalg.norm(out, axis=0)


@final
@dataclass(frozen=True)
class Layout:
    """Where the columns of a crossed design are."""

    crossing: Crossing
    q: int  # columns of f
    chi: int  # columns of χ and the intercept in each cell
    differ: bool = True  # whether conditions do: without, there is no δ

    @cached_property
    def weights(self) -> np.ndarray:
        """(C, C): the rows w_c."""
        count = len(self.crossing.conditions)
        return np.column_stack([np.ones(count), contrasts(count)])

    @property
    def contrasts(self) -> int:
        """C − 1, or none."""
        return self.differ * (len(self.crossing.conditions) - 1)

    @property
    def random(self) -> int:
        """Random curves of a subject: d, and e where conditions are within subjects."""
        return 1 if self.crossing.design == "between" else len(self.crossing.conditions)

    @cached_property
    def cells_of(self) -> tuple[tuple[int, ...], ...]:
        """Each subject's cells."""
        return tuple(
            tuple(u for u, (t, _) in enumerate(self.crossing.cells) if t == s)
            for s in range(len(self.crossing.subjects))
        )

    @cached_property
    def starts(self) -> np.ndarray:
        """Of the arrow's blocks: shared, then each subject's."""
        own = [self.random * self.q + len(cells) * self.chi for cells in self.cells_of]
        return np.cumsum([0, (1 + self.contrasts) * self.q, *own])

    def chi_at(self, u: int) -> int:
        """Where the columns of cell u's intercept and χ start in its subject's block."""
        return self.random * self.q + self.cells_of[self.crossing.cells[u][0]].index(u) * self.chi

    def random_weights(self, u: int) -> np.ndarray:
        """Of the cell's random curves: (1,) or w_c."""
        return self.weights[self.crossing.cells[u][1]][: self.random]

    def maps(self, u: int) -> tuple[np.ndarray, np.ndarray]:
        """T_u in two parts, from the shared columns and from its subject's to (1, f, χ) of the cell."""
        s, c = self.crossing.cells[u]
        q, size, eye = self.q, self.q + self.chi, np.eye(self.q)
        shared, own = np.zeros((size, int(self.starts[1]))), np.zeros((size, int(np.diff(self.starts)[s + 1])))
        shared[1 : 1 + q] = np.kron(self.weights[c, : 1 + self.contrasts], eye)
        own[1 : 1 + q, : self.random * q] = np.kron(self.random_weights(u), eye)
        at = self.chi_at(u)
        own[0, at] = 1.0
        own[range(1 + q, size), range(at + 1, at + self.chi)] = 1.0
        return shared, own


@final
@dataclass(frozen=True)
class CrossedDesign:
    """The cells as one arrowhead design; it answers to the calls of `engine.design.Design` that its iteration makes."""

    members: tuple[Member, ...]  # one for each cell
    layout: Layout
    penalties: Penalties
    terms: tuple[BuiltTerm, ...]
    placements: tuple[Any, ...] = ()

    @cached_property
    def maps(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        return tuple(self.layout.maps(u) for u in range(len(self.members)))

    @property
    def q(self) -> int:
        return self.layout.q

    @property
    def size(self) -> int:
        return int(self.layout.starts[-1])

    @property
    def rows(self) -> int:
        return sum(member.design.rows for member in self.members)

    def own(self, u: int) -> slice:
        """Where cell u's subject has its coefficients."""
        s = self.layout.crossing.cells[u][0]
        return slice(int(self.layout.starts[s + 1]), int(self.layout.starts[s + 2]))

    def coefficients(self, beta: np.ndarray, u: int) -> np.ndarray:
        """What cell u sees: (1, f, χ)."""
        shared, own = self.maps[u]
        return shared @ beta[: self.layout.starts[1]] + own @ beta[self.own(u)]

    def passes(self, family: int, beta: np.ndarray, threads: int) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Log-likelihood, score and A_u of every cell, in its own columns."""

        def work(u: int, member: Member):
            value, score, arrow = member.design.sweep(member.rows, family, self.coefficients(beta, u))
            return value, score, arrow.shared

        return run_tasks(work, list(enumerate(self.members)), threads)

    def sweep(
        self, rows: ResponseRows, family: int, beta: np.ndarray, threads: int = 1
    ) -> tuple[float, np.ndarray, Arrow]:
        found = self.passes(family, beta, threads)
        score = self.sums([g for _, g, _ in found])
        return float(sum(value for value, _, _ in found)), score, self.gathered([A for _, _, A in found])

    def sums(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Σ_u T_uᵀ g_u."""
        out = np.zeros(self.size)
        for u, g in enumerate(parts):
            shared, own = self.maps[u]
            out[: self.layout.starts[1]] += shared.T @ g
            out[self.own(u)] += own.T @ g
        return out

    def gathered(self, parts: Sequence[np.ndarray]) -> Arrow:
        """Σ_u T_uᵀ A_u T_u."""
        sizes = np.diff(self.layout.starts)
        top = np.zeros((sizes[0], sizes[0]))
        own = [np.zeros((k, k)) for k in sizes[1:]]
        cross = [np.zeros((k, sizes[0])) for k in sizes[1:]]
        for u, A in enumerate(parts):
            here, mine = self.maps[u]
            s = self.layout.crossing.cells[u][0]
            half = A @ here
            top += here.T @ half
            cross[s] += mine.T @ half
            own[s] += mine.T @ A @ mine
        return Arrow(top, tuple(own), tuple(cross))

    def leverage(
        self,
        rows: ResponseRows,
        family: int,
        beta: np.ndarray,
        lever: Callable[[int | None], np.ndarray],
        threads: int = 1,
    ) -> np.ndarray:
        def work(u: int, member: Member):
            T = np.concatenate(self.maps[u], axis=1)
            matrix = T @ lever(self.layout.crossing.cells[u][0]) @ T.T
            return member.design.leverage(member.rows, family, self.coefficients(beta, u), lambda level: matrix, 1)

        return self.sums(run_tasks(work, list(enumerate(self.members)), threads))

    def predict(self, beta: np.ndarray, threads: int = 1) -> np.ndarray:
        return np.concatenate([m.design.predict(self.coefficients(beta, u)) for u, m in enumerate(self.members)])

    def ends(self, beta: np.ndarray, threads: int = 1) -> tuple[float, float]:
        """The least and the largest xᵀβ."""
        moved = self.predict(beta, threads)
        return float(moved.min()), float(moved.max())

    def most(self, beta: np.ndarray) -> float:
        """A bound of |x_rᵀβ|, as a design's."""
        return max(m.design.most(self.coefficients(beta, u)) for u, m in enumerate(self.members))


@final
@dataclass(frozen=True)
class Cells:
    """What a crossed fit is made of: the cells' rows in the common basis, f's terms (the first `count`), then χ's."""

    gams: Mapping[str, Gam]
    terms: tuple[BuiltTerm, ...]
    count: int
    crossing: Crossing
    reml: bool
    threads: int
    members: tuple[Member, ...]
    given: tuple[Penalties, np.ndarray] | None = None  # penalties in place of `crossed_penalties`
    floors: tuple[str, ...] = ()
    differ: bool = True  # whether conditions may differ

    @property
    def q(self) -> int:
        return sum(term.size for term in self.terms[: self.count])

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.crossing, self.q, self.members[0].design.size - self.q, self.differ)

    @cached_property
    def penalties(self) -> tuple[Penalties, np.ndarray]:
        return self.given or crossed_penalties(self.members[0].design, self.terms, self.count, self.layout)

    def design(self, members: tuple[Member, ...]) -> CrossedDesign:
        return CrossedDesign(members, self.layout, self.penalties[0], self.terms)

    def user(self, beta: np.ndarray, u: int) -> np.ndarray:
        """f's coefficients as cell u sees them, in the terms' own coordinates."""
        return self.members[u].design.to_user(self.design(self.members).coefficients(beta, u))[1 : 1 + self.q]

    def start(self, log_z: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """The separate fits in the common basis, as shared curves and what is left of each subject's."""
        crossing, layout, q = self.crossing, self.layout, self.q
        levels = Levels(self.gams, self.terms, self.count, crossing.by, self.reml, self.threads, self.members)
        flat, design = levels.start(log_z), levels.design(self.members)
        seen = np.array([design.coefficients(flat, u) for u in range(len(self.members))])
        w = layout.weights[[c for _, c in crossing.cells]]
        curves = np.linalg.pinv(w) @ seen[:, 1 : 1 + q]
        left = seen[:, 1 : 1 + q] - w @ curves
        out = np.zeros(int(layout.starts[-1]))
        out[: layout.starts[1]] = curves.ravel()
        for s, cells in enumerate(layout.cells_of):
            begin = int(layout.starts[s + 1])
            mine = np.array([layout.random_weights(u) for u in cells])
            out[begin : begin + layout.random * q] = (np.linalg.pinv(mine) @ left[list(cells)]).ravel()
            for u in cells:
                at = begin + layout.chi_at(u)
                out[at], out[at + 1 : at + layout.chi] = seen[u, 0], seen[u, 1 + q :]
        return out


@final
@dataclass(frozen=True)
class Crossed:
    """What the fit found, in the engine's coordinates."""

    cells: Cells
    design: CrossedDesign
    flat: np.ndarray
    rho: np.ndarray  # log λ
    inverse: ArrowInverse
    inner: np.ndarray = field(repr=False)  # the shared columns' covariance, had subjects' random curves been known
    root: np.ndarray = field(repr=False)  # (shared, M): its square is what not knowing λ adds to the covariance
    common: np.ndarray = field(repr=False)  # shared part of Σ_u T_uᵀ A_u T_u
    score: float
    loglik: float
    converged: bool
    reason: str
    iterations: int
    passes: int

    @property
    def layout(self) -> Layout:
        return self.design.layout

    @cached_property
    def blocks(self) -> list[np.ndarray]:
        """S_λ on the shared columns, then on each subject's."""
        return self.design.penalties.blocks(np.exp(self.rho))

    @cached_property
    def turn(self) -> np.ndarray:
        """U, β_user = U β_flat, of f's terms."""
        return rotation(self.design.members[0].design, self.design.terms[: self.cells.count])

    def predictor(self, u: int) -> np.ndarray:
        """η of cell u's rows, in the order of its design."""
        member = self.design.members[u]
        eta = member.design.predict(self.design.coefficients(self.flat, u))
        return eta + member.rows.offset if member.rows.offset.size else eta


def fit_crossed(cells: Cells, members: tuple[Member, ...], beta: np.ndarray, rho: np.ndarray | None = None) -> Crossed:
    """The joint fit, from `beta` (and log λ) on."""
    design = cells.design(members)
    penalties, fixed = cells.penalties
    family = next(iter(cells.gams.values())).family
    free, stands = np.isnan(fixed), design
    rows = ResponseRows(NOTHING, NOTHING, NOTHING)  # each member has its own
    code = families.FAMILIES[family]
    given: Any = stands  # for an engine design
    problem = PenalisedRows(given, rows, family, code, 0.0, design.rows, free, cells.threads, Clock())
    if not free.all():
        if rho is None:
            rho = starting_rho(design.sweep(rows, code, beta, cells.threads)[2], penalties)
        rho = np.where(free, rho, np.log(np.maximum(fixed, 1e-12)))
    found = smooth(problem, Laplace(cells.reml), beta, rho, TOLERANCE, MOST)
    state = found.at.state
    return Crossed(
        cells=cells,
        design=design,
        flat=state.beta,
        rho=state.rho,
        inverse=state.inverse,
        inner=penalties.added(found.working.cross, np.exp(state.rho))
        .keep(_without_curves(design.layout))
        .invert()
        .sigma,
        root=smoothing_root(found, int(design.layout.starts[1])),
        common=found.working.cross.shared,
        score=found.at.value,
        loglik=found.working.loglik,
        converged=found.converged,
        reason=found.reason,
        iterations=found.iterations,
        passes=problem.clock.counts.get("passes", 0),
    )


def _without_curves(layout: Layout) -> np.ndarray:
    """All columns but those of the random curves, flat."""
    keep = np.ones(int(layout.starts[-1]), dtype=bool)
    for begin in layout.starts[1:-1]:
        keep[begin : begin + layout.random * layout.q] = False
    return keep


def above_floor(
    cells: Cells, members: tuple[Member, ...], flat: np.ndarray, rho: np.ndarray | None
) -> tuple[Crossed, Cells]:
    """The fit, and once more where f or δ is below its floor (floor.py); the cells with the floors."""
    found = fit_crossed(cells, members, flat, rho)
    higher = raised(*cells.penalties, _mains(found), found.rho)
    if higher is None:
        return found, cells
    raised_cells = replace(cells, given=higher[0], floors=(*cells.floors, *higher[1]))
    return fit_crossed(raised_cells, members, found.flat, found.rho), raised_cells


def alike(found: Crossed) -> Crossed:
    """The fit in which conditions do not differ, from the one in which they may: δ is left to the random curves.

    Its laws of d and e do not know who was in which condition, as a test by exchange needs.
    """
    cells, old, q = replace(found.cells, differ=False, given=None, floors=()), found.layout, found.layout.q
    layout = cells.layout
    flat, delta = np.zeros(int(layout.starts[-1])), found.flat[q : old.starts[1]].reshape(-1, q)
    flat[:q] = found.flat[:q]
    flat[q:] = found.flat[old.starts[1] :]
    for s, mine in enumerate(layout.cells_of):
        begin = int(layout.starts[s + 1])
        if layout.random > 1:
            flat[begin + q : begin + layout.random * q] += delta.ravel()
        else:
            flat[begin : begin + q] += old.weights[old.crossing.cells[mine[0]][1], 1:] @ delta
    labels = dict(zip(found.design.penalties.labels, found.rho))
    rho = np.array([labels[label] for label in cells.penalties[0].labels])
    return above_floor(cells, found.design.members, flat, rho)[0]


def _mains(found: Crossed) -> list[Main]:
    """f and δ against the law of d; within subjects, δ against the larger of the variances of d and e.

    Subjects' differences may vary in fewer directions than conditions do: with the law of e alone, where REML finds no
    common curve, a difference could lie in these alone, and its band would be nothing elsewhere.
    """
    layout, penalties, q = found.layout, found.design.penalties, found.layout.q
    crossing, out = layout.crossing, []
    seen: set[tuple[int, ...]] = set()
    within = crossing.design == "within"
    for group in penalties.groups:
        pieces = penalties.pieces[group.which[0]]
        if pieces[0].block != -1 or group.which in seen:
            continue
        seen.add(group.which)
        rank, labels = len(group.matrices[0]), [penalties.labels[j] for j in group.which]
        for which, shift, suffix in (
            ((0,), 0, f":{crossing.by}"),
            (tuple(range(1, len(pieces))), q * within, f":{crossing.by}" + f":{crossing.between}" * within),
        ):
            if not which:  # no contrasts
                continue
            spans = [slice(pieces[i].at.start, pieces[i].at.start + rank) for i in which]
            law = slice(pieces[0].at.start + shift, pieces[0].at.start + shift + rank)
            A = np.mean([found.common[at, at] for at in spans], axis=0)
            own, deviations = found.blocks[0][spans[0], spans[0]], found.blocks[1][law, law]
            if shift and len(labels) == 1:  # diagonal
                d = found.blocks[1][pieces[0].at.start : pieces[0].at.start + rank][:, law.start - q : law.stop - q]
                deviations = np.minimum(deviations, d)
            out.append(Main(group.which, own, deviations, A, tuple(label + suffix for label in labels), which))
    return out
