"""The joint fit: a main effect for every term of f, and each level's deviation from it, smoothness selected for both.

For level s (a subject), with its own χ_s and its own reference points, the same rows as in its separate fit:

    η_s = χ_s(x) + Σ_j [f_j + d_js](covariates),      f_j: penalty λ_j S_j,   d_js ~ N(0, (μ_j S_j + μ⁰_j N_j)⁻¹),

N_j the projection on S_j's null space, so that the deviations are proper random curves with one law for all levels, and
f_j is that law's mean: its posterior covariance, which contains the deviations', gives bands for the population. A
level sees b_s = f + d_s only, so that its rows need one pass with its own columns,

    A_s = X_sᵀW_sX_s,   H = [ Σ A_s   A_1 … ]   (the arrowhead of engine/arrow.py: main effects shared, the rest own)
                        [ A_1ᵀ    A_1   ]

and the joint fit costs what the separate fits cost: no row is ever given both sets of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.threads import cores, run_tasks
from ..engine import families
from ..engine.arrow import Arrow, ArrowInverse
from ..engine.build import arranged
from ..engine.criteria import Laplace
from ..engine.design import Design, Placement
from ..engine.gam_result import Gam
from ..engine.outer import Clock, Found, PenalisedRows, smooth, starting_rho
from ..engine.penalties import Group, Penalties, Piece
from ..engine.segment import ResponseRows
from ..objectives.likelihood import LOGISTIC, POISSON
from ..terms.base import BuiltTerm
from .leading import leading

TOLERANCE = 1e-3  # nats, as the engine's but for many more columns
MOST = 60  # iterations
CUMULANTS = {one.family: one for one in (LOGISTIC, POISSON)}  # by the engine's name for the likelihood


@dataclass(frozen=True)
class Member:
    """One level's rows in the common basis: the intercept, the q columns of f, the columns of χ."""

    level: str
    design: Design
    rows: ResponseRows
    data: np.ndarray  # (N,) bool, design order: an observation?


@dataclass(frozen=True)
class JointDesign:
    """The members as one arrowhead design: shared columns are f's main effects, a level's own are (1, d_s, χ_s).

    It answers to the same calls as `engine.design.Design`, so that the engine's iteration runs on it unchanged.
    """

    members: tuple[Member, ...]
    penalties: Penalties
    q: int
    terms: tuple[BuiltTerm, ...]
    placements: tuple[Placement, ...] = ()

    @property
    def size(self) -> int:
        return int(self.penalties.starts[-1])

    @property
    def rows(self) -> int:
        return sum(member.design.rows for member in self.members)

    def coefficients(self, beta: np.ndarray, s: int) -> np.ndarray:
        """What level s sees: (1, f + d_s, χ_s)."""
        at = self.penalties.starts
        own = beta[at[s + 1] : at[s + 2]].copy()
        own[1 : 1 + self.q] += beta[: self.q]
        return own

    def sweep(
        self, rows: ResponseRows, family: int, beta: np.ndarray, threads: int = 1
    ) -> tuple[float, np.ndarray, Arrow]:
        def work(s: int, member: Member):
            return member.design.sweep(member.rows, family, self.coefficients(beta, s))

        found = run_tasks(work, list(enumerate(self.members)), threads)
        f = slice(1, 1 + self.q)
        own = tuple(arrow.shared for _, _, arrow in found)
        score = np.concatenate([sum(g[f] for _, g, _ in found), *(g for _, g, _ in found)])
        return float(sum(value for value, _, _ in found)), score, self.gathered(own)

    def gathered(self, own: Sequence[np.ndarray]) -> Arrow:
        """The arrowhead of the levels' A_s."""
        f = slice(1, 1 + self.q)
        shared = np.sum([A[f, f] for A in own], axis=0)
        return Arrow(shared, tuple(own), tuple(np.ascontiguousarray(A[:, f]) for A in own))

    def leverage(
        self,
        rows: ResponseRows,
        family: int,
        beta: np.ndarray,
        lever: Callable[[int | None], np.ndarray],
        threads: int = 1,
    ) -> np.ndarray:
        def work(s: int, member: Member):
            matrix = _seen(lever(s), self.q)
            return member.design.leverage(member.rows, family, self.coefficients(beta, s), lambda level: matrix, 1)

        found = run_tasks(work, list(enumerate(self.members)), threads)
        return np.concatenate([sum(g[1 : 1 + self.q] for g in found), *found])

    def predict(self, beta: np.ndarray, threads: int = 1) -> np.ndarray:
        parts = [m.design.predict(self.coefficients(beta, s)) for s, m in enumerate(self.members)]
        return np.concatenate(parts)

    def ends(self, beta: np.ndarray, threads: int = 1) -> tuple[float, float]:
        """The least and the largest xᵀβ."""
        moved = self.predict(beta, threads)
        return float(moved.min()), float(moved.max())

    def most(self, beta: np.ndarray) -> float:
        """A bound of |x_rᵀβ|, as a design's."""
        return max(m.design.most(self.coefficients(beta, s)) for s, m in enumerate(self.members))


def _seen(matrix: np.ndarray, q: int) -> np.ndarray:
    """TᵀPT: a matrix on (shared, own) as a level's rows see it, whose columns of f count in both."""
    rows = matrix[q:].copy()
    rows[1 : 1 + q] += matrix[:q]
    out = rows[:, q:].copy()
    out[:, 1 : 1 + q] += rows[:, :q]
    return out


@dataclass(frozen=True)
class Joint:
    """What the joint fit found, in the terms' own coordinates."""

    terms: tuple[BuiltTerm, ...]
    beta: np.ndarray  # (1 + q,): the mean level, then the main effects
    smoothing: np.ndarray  # (1 + q, 1 + q) what not knowing λ adds to the covariance; zero for the level
    sigma: np.ndarray  # (q, q) covariance of the main effects at the smoothing parameters found
    edf: dict[str, float]
    edf1: dict[str, float]
    information: np.ndarray  # (q, q) of the main effects, deviations and χ integrated out
    sp: dict[str, float]
    deviations: dict[str, float]  # label → root mean square of d_s over rows and levels
    score: float
    loglik: float
    converged: bool
    reason: str
    iterations: int
    passes: int
    design: JointDesign
    inverse: ArrowInverse
    flat: np.ndarray
    rho: np.ndarray  # log λ
    common: np.ndarray  # (q, q) Σ_s A_s of the main effects, in the engine's coordinates
    floors: tuple[str, ...]  # main effects that have the deviations' law

    @property
    def slices(self) -> dict[str, slice]:
        return slices_of(self.terms)

    def predictor(self, s: int) -> np.ndarray:
        """η of level s's rows, in the order of its design."""
        member = self.design.members[s]
        eta = member.design.predict(self.design.coefficients(self.flat, s))
        return eta + member.rows.offset if member.rows.offset.size else eta

    def to_terms(self, matrix: np.ndarray) -> np.ndarray:
        """A (q, q) matrix from the engine's coordinates to the terms'."""
        turn = rotation(self.design.members[0].design, self.terms)
        return turn @ matrix @ turn.T

    @cached_property
    def blocks(self) -> list[np.ndarray]:
        """S_λ on the shared columns, then on each level's."""
        return self.design.penalties.blocks(np.array([self.sp[label] for label in self.design.penalties.labels]))

    @property
    def prior(self) -> np.ndarray:
        """(q, q) the main effects' S_λ, in the engine's coordinates."""
        return self.blocks[0]

    def covariance(self, inverse: ArrowInverse) -> np.ndarray:
        """(q, q) of the main effects."""
        return inverse.sigma

    def influence(self, inverse: ArrowInverse, s: int) -> np.ndarray:
        """K_s (q, p_s), flat: d(main effects)/d(score of level s)."""
        q, at = len(inverse.sigma), inverse.starts
        shared = np.zeros((q, at[s + 2] - at[s + 1]))
        shared[:, 1 : 1 + q] = inverse.sigma
        return shared - inverse.sigma @ inverse.slopes[s].T


def rotation(design: Design, terms: Sequence[BuiltTerm]) -> np.ndarray:
    """U (q, q), β_user = U β_flat, of the model's terms."""
    q = sum(term.size for term in terms)
    out = np.zeros((q, q))
    for place in design.placements:
        if 0 <= place.term < len(terms):
            out[np.ix_(place.user - 1, np.arange(place.flat.start - 1, place.flat.stop - 1))] = place.rotation
    return out


def members_of(
    gams: Mapping[str, Gam],
    terms: Sequence[BuiltTerm],
    threads: int,
    offsets: Mapping[str, np.ndarray | None] | None = None,
) -> tuple[Member, ...]:
    """Each level's rows, as its separate fit saw them, in the common basis; `offsets` in place of the fits' own."""

    def one(level: str, gam: Gam) -> Member:
        old = gam.smoothed.design
        runs = np.concatenate([np.diff(segment.ptr) for segment in old.segments])
        context = old.unsort(np.repeat(np.arange(runs.size), runs)) if old.run_ids is not None else None
        # columns of a factor's levels are ordinary ones: the arrowhead here is that of the population's levels
        design = arranged(terms, gam.columns, True, context, None, cores(), partitioned=False)[0]
        offset = gam.offset if offsets is None else offsets[level]
        given = families.checked(gam.family, gam.y, gam.weights, offset, design.rows)
        parts = (given.y, given.weights, given.offset)
        rows = ResponseRows(
            *(np.require(design.sort(part) if part.size else part, requirements=("C", "W")) for part in parts)
        )
        return Member(level, design, rows, rows.y > 0)

    return tuple(run_tasks(one, list(gams.items()), threads))


def common_rows(gams: Mapping[str, Gam], names: Sequence[str], most: int = 300_000) -> dict[str, np.ndarray]:
    """The columns of all levels together, whole contexts, thinned to about `most` rows: for knots and centring."""
    total = sum(len(gam.y) for gam in gams.values())
    every = max(1, round(total / most))
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for gam in gams.values():
        keep: Any = slice(None)
        if every > 1:
            old = gam.smoothed.design
            runs = np.concatenate([np.diff(segment.ptr) for segment in old.segments])
            keep = old.unsort(np.repeat(np.arange(runs.size) % every == 0, runs))
        for name in names:
            parts[name].append(np.asarray(gam.columns[name])[keep])
    return {name: np.concatenate(columns) for name, columns in parts.items()}


# long: one penalty layout, built term by term in the order of its blocks
def penalties_of(
    members: Sequence[Member], terms: Sequence[BuiltTerm], count: int, by: str
) -> tuple[Penalties, np.ndarray]:
    """Main effects: the terms' own. Deviations: the same again, and a ridge on the null space. χ: one for all levels.

    `count`: how many of the terms are f's. Second: λ where the user fixed it (main effects and χ), else nan.
    """
    first = members[0].design
    old = first.penalties
    q = sum(term.size for term in terms[:count])
    sizes = [member.design.size for member in members]
    starts = np.cumsum([0, q, *sizes])
    levels = range(len(members))
    labels: list[str] = []
    pieces: list[tuple[Piece, ...]] = []
    groups: list[Group] = []
    fixed: list[float] = []
    free = np.ones(int(starts[-1]), bool)

    def add(label: str, where: tuple[Piece, ...], held: float = np.nan) -> int:
        labels.append(label)
        pieces.append(where)
        fixed.append(held)
        return len(labels) - 1

    def bound(block: int, at: slice) -> None:
        begin = int(starts[block + 1])
        free[begin + at.start : begin + at.stop] = False

    position = 0
    for k, term in enumerate(terms):
        place = next(p for p in first.placements if p.term == k)
        at, size = place.flat, place.flat.stop - place.flat.start
        mine = list(range(position, position + len(term.penalties)))
        position += len(mine)
        matrices = [old.pieces[j][0].matrix for j in mine]
        rank = next((len(group.matrices[0]) for group in old.groups if mine and group.which == tuple(mine)), 0)
        ranged = tuple(matrix[:rank, :rank] for matrix in matrices)
        inside = slice(at.start, at.start + rank)
        if k < count:  # the main effect, and below the deviations
            main = slice(at.start - 1, at.stop - 1)
            numbers = tuple(
                add(old.labels[j], (Piece(-1, main, matrix),), float(first.fixed[j]))
                for j, matrix in zip(mine, matrices)
            )
            if numbers:
                groups.append(Group(numbers, ranged))
                bound(-1, slice(main.start, main.start + rank))
        suffix = f":{by}"
        lead = leading(matrices[0], rank) if k < count and len(mine) == 1 else []
        cut = lead[0].start if lead else rank
        numbers = tuple(
            add(
                old.labels[j] + suffix,
                tuple(Piece(s, at, within(matrix, 0, cut)) for s in levels),
                np.nan if k < count else float(first.fixed[j]),
            )
            for j, matrix in zip(mine, matrices)
        )
        if numbers:
            groups += [Group(numbers, tuple(matrix[:cut, :cut] for matrix in matrices)) for _ in levels]
            for s in levels:
                bound(s, inside)
        for i, own in enumerate(lead):
            one = within(matrices[0], own.start, own.stop)
            j = add(f"{term.label}{suffix} ({len(lead) - i})", tuple(Piece(s, at, one) for s in levels))
            groups += [Group((j,), (one[own, own],)) for _ in levels]
        if k < count and rank < size:
            typical = np.trace(matrices[0]) / max(rank, 1) if matrices else 1.0
            ridge = np.zeros((size, size))
            ridge[range(rank, size), range(rank, size)] = typical
            j = add(f"{term.label}{suffix} (null space)", tuple(Piece(s, at, ridge) for s in levels))
            groups += [Group((j,), (np.eye(size - rank) * typical,)) for _ in levels]
            for s in levels:
                bound(s, slice(at.start + rank, at.stop))
    return Penalties(tuple(labels), tuple(pieces), tuple(groups), starts, free), np.array(fixed)


def slices_of(terms: Iterable[BuiltTerm]) -> dict[str, slice]:
    """Where each term's coefficients lie among those of all, by label."""
    out, at = {}, 0
    for term in terms:
        out[term.label] = slice(at, at + term.size)
        at += term.size
    return out


def within(matrix: np.ndarray, begin: int, end: int) -> np.ndarray:
    """The block begin … end of a (block-diagonal) matrix, zero elsewhere."""
    out = np.zeros_like(matrix)
    out[begin:end, begin:end] = matrix[begin:end, begin:end]
    return out


@final
@dataclass(frozen=True)
class Levels:
    """What a joint fit is made of: the levels' rows in the common basis, f's terms (the first `count`), then χ's."""

    gams: Mapping[str, Gam]
    terms: tuple[BuiltTerm, ...]
    count: int
    by: str
    reml: bool
    threads: int
    members: tuple[Member, ...]
    given: tuple[Penalties, np.ndarray] | None = None  # penalties in place of `penalties_of`
    floors: tuple[str, ...] = ()  # labels of main effects that have the deviations' law (groups/floor.py)

    @cached_property
    def penalties(self) -> tuple[Penalties, np.ndarray]:
        return self.given or penalties_of(self.members, self.terms, self.count, self.by)

    @property
    def q(self) -> int:
        return sum(term.size for term in self.terms[: self.count])

    def design(self, members: tuple[Member, ...]) -> JointDesign:
        return JointDesign(members, self.penalties[0], self.q, self.terms)

    def user(self, beta: np.ndarray, s: int) -> np.ndarray:
        """f's coefficients as level s sees them, in the terms' own coordinates, from a joint vector."""
        return self.members[s].design.to_user(self.design(self.members).coefficients(beta, s))[1 : 1 + self.q]

    def start(self, log_z: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """The separate fits in the common basis; `log_z` by row is added to their η where it was taken off."""
        return _start(self.design(self.members), self.gams, self.threads, log_z)


def fit_joint(levels: Levels, members: tuple[Member, ...], beta: np.ndarray, rho: np.ndarray | None = None) -> Joint:
    """The joint fit of the levels' rows, from `beta` (and log λ) on."""
    design = levels.design(members)
    penalties, fixed = levels.penalties
    reml, threads, terms, count = levels.reml, levels.threads, levels.terms, levels.count
    family = next(iter(levels.gams.values())).family
    free = np.isnan(fixed)
    nothing = np.empty(0)
    rows = ResponseRows(nothing, nothing, nothing)  # each member has its own
    stands: Any = design  # for an engine design
    problem = PenalisedRows(stands, rows, family, families.FAMILIES[family], 0.0, design.rows, free, threads, Clock())
    if not free.all():
        if rho is None:
            rho = starting_rho(design.sweep(problem.rows, problem.code, beta, threads)[2], penalties)
        rho = np.where(free, rho, np.log(np.maximum(fixed, 1e-12)))
    found = smooth(problem, Laplace(reml), beta, rho, TOLERANCE, MOST)
    return _report(design, found, terms[:count], problem, levels.floors)


def _start(
    design: JointDesign, gams: Mapping[str, Gam], threads: int, log_z: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """Each level's separate fit in the common basis, by weighted least squares; the main effects are their mean."""

    def one(s: int, member: Member, gam: Gam) -> np.ndarray:
        taken = 0.0 if log_z is None else log_z[s]
        eta = member.design.sort(np.asarray(gam.linear_predictor) + taken)
        eta = eta - member.rows.offset if member.rows.offset.size else eta
        variance = CUMULANTS[gam.family].variance(np.minimum(gam.linear_predictor, 30.0))
        weight = member.design.sort(np.maximum(variance, 1e-6 * variance.max()))
        weight = weight * member.rows.weights if member.rows.weights.size else weight
        rows = ResponseRows(np.ascontiguousarray(eta), np.ascontiguousarray(weight), np.empty(0))
        _, score, arrow = member.design.sweep(rows, families.FAMILIES["gaussian"], np.zeros(member.design.size))
        matrix = arrow.shared
        ridge = 1e-6 * np.diag(matrix) + 1e-12 * np.trace(matrix)
        return np.linalg.solve(matrix + np.diag(ridge), score)

    tasks = [(s, member, gams[member.level]) for s, member in enumerate(design.members)]
    found = run_tasks(one, tasks, threads)
    main = np.mean([b[1 : 1 + design.q] for b in found], axis=0)
    for b in found:
        b[1 : 1 + design.q] -= main
    return np.concatenate([main, *found])


def smoothing_root(found: Found, q: int) -> np.ndarray:
    """J V_ρ^½ with J = df/dρ: its square is what not knowing λ adds to the main effects (Wood, Pya & Säfken 2016).

    V_ρ inverts the criterion's Hessian; 1/50 on its eigenvalues is mgcv's weak prior, for λ at infinity in effect.
    """
    values, vectors = np.linalg.eigh(found.at.hessian)
    return found.at.state.slopes[:q] @ vectors / np.sqrt(np.maximum(values, 0.0) + 1 / 50)


def _report(
    design: JointDesign, found: Found, terms: Sequence[BuiltTerm], problem: PenalisedRows, floors: tuple[str, ...]
) -> Joint:
    state, q, at = found.at.state, design.q, design.penalties.starts
    turn = rotation(design.members[0].design, terms)
    sigma = state.inverse.sigma
    penalty = design.penalties.blocks(np.exp(state.rho))[0]
    information = np.linalg.inv(sigma) - penalty
    F = turn @ (np.eye(q) - sigma @ penalty) @ turn.T
    level = float(np.mean([state.beta[begin] for begin in at[1:-1]]))
    smoothing, root = np.zeros((1 + q, 1 + q)), turn @ smoothing_root(found, q)
    smoothing[1:, 1:] = root @ root.T
    edf, edf1, spreads, begin = {}, {}, {}, 0
    for term in terms:
        span = slice(begin, begin + term.size)
        begin += term.size
        edf[term.label] = float(np.trace(F[span, span]))
        edf1[term.label] = float(2 * np.trace(F[span, span]) - np.trace((F @ F)[span, span]))
        total = 0.0
        for s, member in enumerate(design.members):
            d = np.zeros(member.design.size)
            d[1 + span.start : 1 + span.stop] = state.beta[at[s + 1] + 1 + span.start : at[s + 1] + 1 + span.stop]
            total += float(np.mean(member.design.predict(d) ** 2))
        spreads[term.label] = float(np.sqrt(total / len(design.members)))
    return Joint(
        terms=tuple(terms),
        beta=np.concatenate([[level], turn @ state.beta[:q]]),
        smoothing=smoothing,
        sigma=turn @ sigma @ turn.T,
        edf=edf,
        edf1=edf1,
        information=turn @ information @ turn.T,
        sp=dict(zip(design.penalties.labels, np.exp(state.rho).tolist())),
        deviations=spreads,
        score=found.at.value,
        loglik=found.working.loglik,
        converged=found.converged,
        reason=found.reason,
        iterations=found.iterations,
        passes=problem.clock.counts.get("passes", 0),
        design=design,
        inverse=state.inverse,
        flat=state.beta,
        rho=state.rho,
        common=found.working.cross.shared,
        floors=floors,
    )
