"""Objectives as rows of an additive model: f and χ are terms, the objective a binomial or Poisson likelihood.

The engine takes a response and prior weights: Σ_r a η − b A(η) is its likelihood with weights b and response a/b. Data
rows of a Poisson likelihood have b = 0; they get a weight so small that their e^η does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from ..data.observations import Observations
from ..data.placing import from_unit
from ..engine.resources import Resources
from ..errors import CombinationError, InputError, NotIdentifiedError, TermError, listing
from ..models.base import LinearPart, Unnormalised
from ..models.normalisers import Normaliser
from ..terms import Terms
from .likelihood import POISSON, Cumulant, RowLikelihood
from .rows import Over, Rows, RowSource, joined
from .scores import Drawn

if TYPE_CHECKING:
    from ..engine.design import Design
    from ..engine.plan import Plan
    from ..terms.base import BuiltTerm

SAMPLE = 300_000  # rows on which terms are built: knots, and means that make a term sum to zero
PLACED, SPREAD = 2000, 10  # observations at whose contexts points are spread over Ω where there are none, and how many
STRETCH, MOST_LEVELS = 1_024, 20_000  # values that tell a column of codes, and levels that are kept in a sample
TINY = 1e-10  # weight of a data row in a Poisson likelihood: its e^η then adds less than 1e-10 of itself


class Response(NamedTuple):
    """A likelihood of rows in the engine's words."""

    y: np.ndarray  # (N,)
    weights: np.ndarray | None  # (N,); None for all one


def response(likelihood: RowLikelihood) -> Response:
    """The response a/b and the weights b."""
    a, b = likelihood.a, likelihood.b
    weights = np.where(b > 0, b, TINY) if likelihood.cumulant.family == "poisson" else b
    if np.all(weights == 1.0):
        return Response(a, None)
    return Response(np.divide(a, weights, out=np.zeros(len(a)), where=weights > 0), weights)


@final
@dataclass(frozen=True)
class AdditiveProblem:
    """max over (f, χ) of a penalised binomial or Poisson likelihood, its smoothing chosen from the data."""

    model: Unnormalised
    normaliser: Normaliser
    obs: Observations
    source: RowSource
    drawn: Drawn
    sets: int = 1  # independent sets of reference points
    redraw: Callable[[int, float], RowSource] | None = None  # the i-th set of fresh points, c times as many
    over: Over | None = None  # rows at the nodes of a rule
    figures: dict[str, Any] = field(default_factory=dict)  # for the record
    notes: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)  # where the rows may live
    sampler: Callable[[], Placing] | None = None  # the rows that terms are built on, where these are made elsewhere

    @cached_property
    def rows(self) -> Rows:
        """The rows' numbers, without their outcomes: those are met block by block."""
        return self.source.vectors()

    @property
    def likelihood(self) -> RowLikelihood:
        return self.rows.likelihood

    @cached_property
    def cumulant(self) -> Cumulant:
        """A of the likelihood a η − b A(η)."""
        return self.source.block_rows(0).likelihood.cumulant

    @property
    def family(self) -> str:
        """The engine's name of the likelihood."""
        return self.cumulant.family

    @property
    def apart(self) -> bool:
        """Whether the rows are never together: they are too many to be held, f is linear in its terms, no factor
        partitions them (unless memory= or workers= are given), and the constants have terms of their own."""
        return (
            not self.source.held
            and not self.normaliser.anchored
            and self._planned(*self._placed, levels=self.resources.asked)
        )

    @property
    def anchored_apart(self) -> bool:
        """The same where the constants follow f."""
        return (
            not self.source.held
            and self.normaliser.anchored
            and self.source.each > 0
            and self._planned(*self._placed, levels=self.resources.asked)
        )

    @property
    def _placed(self) -> tuple[tuple[BuiltTerm, ...], LinearPart]:
        built, placing = self.built
        return built, placing.part

    @cached_property
    def response(self) -> Response:
        return response(self.likelihood)

    def value(self, eta: np.ndarray) -> float:
        """The objective, without penalty: 𝓡^m for logistic rows, 𝓜 (or its importance sample) for Poisson ones."""
        return self.likelihood.value(eta)

    def loglik(self, value: float) -> float:
        """𝓛 = 𝓜 + n where the integrals are exact (Theorem 1); the contrast's own value with reference points."""
        return value if self.drawn is not Drawn.NONE else value + float(self.obs.weights.sum())

    def normaliser_columns(self, at: np.ndarray, obs: Observations | None = None) -> dict[str, np.ndarray]:
        """The covariates of χ at the contexts of observations `at`."""
        return context_columns(self.model, self.normaliser, self.obs if obs is None else obs, at)

    @cached_property
    def delta_labels(self) -> frozenset[str]:
        """The labels of the normaliser's own terms among those built."""
        chi = self.normaliser.terms
        own = set() if chi is None else {term.label for term in chi}
        built = self.built[0]
        return frozenset(t.label for t in built if t.label in own or any(t.label.startswith(f"{o}:") for o in own))

    @cached_property
    def linear(self) -> tuple[tuple[BuiltTerm, ...], LinearPart, Design]:
        """The terms built on these rows, their columns, and the design; for an energy, linearised at its start."""
        built, placing = self.built
        if self.resources.asked and self.source.held:
            return self._parted(built, placing)
        if self.drawn is not Drawn.NONE and self.source.size <= min(self.source.most, SAMPLE):  # one block: its rows
            return built, placing.part, self._design(built, self.rows, placing.part)
        return built, *self.met(built)

    @cached_property
    def built(self) -> tuple[tuple[BuiltTerm, ...], Placing]:
        """The terms, and the rows that they were built on."""
        self._refuse_context_terms()
        placing = self._sampled()
        built = self.build(placing.part.terms, placing.part)
        _refuse_known_values(built, placing.part)
        return built, placing

    def _sampled(self) -> Placing:
        """Rows that terms are built on: all of one block, else whole contexts spread over all blocks, and the rows
        where a covariate is least or largest or a level is met first. Nodes of a rule place no knots: with twice as
        many f would have another basis, and would move for that alone."""
        if self.sampler is not None:
            return self.sampler()
        if self.drawn is Drawn.NONE:
            rows = placing_rows(self.model, self.obs)
            return Placing(self.predictor(rows)[1], rows, False)
        every = -(-self.source.size // SAMPLE)
        parts: list[Placing] = []
        edges: list[Placing] = []
        for rows in self.source.blocks():
            _, part = self.predictor(rows)
            whole = Placing(part, replace(rows, y=np.empty((len(rows), 0))), True)
            unit = np.arange(len(rows)) if self.source.shared else rows.at
            parts.append(whole if every == 1 else whole.picked(np.flatnonzero(unit % every == 0)))
            edges += [] if every == 1 else [whole.picked(_ends(part.columns))]
        found = _together(parts, every == 1)
        if edges:
            ends = _together(edges, False)
            found = _together([found, ends.picked(_ends(ends.part.columns))], False)
        return found

    def plan(self, built: tuple[BuiltTerm, ...], placing: Placing, threads: int = 1) -> Plan:
        """The forms of these terms, f being linear: decided on the rows that they were built on."""
        from ..engine.plan import plan

        known = self.model.covariates(self.obs)
        names = dict.fromkeys(name for term in built for name in term.covariates)
        fixed = [name for name in names if name in known and known.context_only(name)]
        return plan(
            built,
            placing.part.columns,
            all_rows=self.source.size,
            context=placing.rows.context if self.obs.has_context else None,
            constant=None if placing.every else fixed,
            rows=len(placing.rows),
            threads=threads,
        )

    def again(self, built: tuple[BuiltTerm, ...]) -> tuple[LinearPart, Design]:
        """Columns and design of other terms on the same rows, f being linear."""
        return self._parted(built, self.built[1])[1:] if self.resources.asked else self.met(built)

    def met(self, built: tuple[BuiltTerm, ...], theta: np.ndarray | None = None) -> tuple[LinearPart, Design]:
        """Columns and offset of all rows, f linearised at θ where it is not linear, and the rows in the engine's form.

        Blocks are met one after the other, and what is kept of a row is its compact form. Rows that a factor partitions
        are arranged as a whole.
        """
        from ..engine.build import factors

        parts, designs, forms = [], [], None
        apart = not factors(built)  # else a block need not have every level
        for rows in self.source.blocks():
            _, part = self.predictor(rows, theta)
            whole = rows.at.size == self.source.size
            if not parts and not whole and self._planned(built, part):
                forms = self.plan(built, self.built[1])
            if whole or apart:
                designs.append(self._design(built, rows, part) if forms is None else self.meet(forms, rows, part))
            parts.append(replace(part, columns={}) if rows.at.size < self.source.size else part)
        if len(parts) == 1:
            return parts[0], designs[0]
        offsets = [part.offset for part in parts]
        offset = None if offsets[0] is None else np.concatenate([one for one in offsets if one is not None])
        columns = BlockColumns(self, tuple(dict.fromkeys(n for t in built for n in t.covariates)), theta)
        part = replace(parts[0], columns=columns, offset=offset)
        if not designs:
            return part, self._design(built, self.rows, replace(part, columns=dict(columns)))
        return part, designs[0].joined(designs)

    def _parted(self, built: tuple[BuiltTerm, ...], placing: Placing) -> tuple[tuple[BuiltTerm, ...], LinearPart, Any]:
        """The same with the rows in parts."""
        from .parts import in_parts, refuse_parts

        refuse_parts(self, self._planned(built, placing.part, levels=True))
        design = in_parts(self, self.plan(built, placing), self.resources)
        part = placing.part
        if not placing.every:
            offsets = [self.predictor(rows)[1].offset for rows in self.source.blocks()]
            offset = None if offsets[0] is None else np.concatenate([one for one in offsets if one is not None])
            columns = BlockColumns(self, tuple(dict.fromkeys(n for t in built for n in t.covariates)))
            part = replace(part, columns=columns, offset=offset)
        return built, part, design

    def _planned(self, built: tuple[BuiltTerm, ...], part: LinearPart, levels: bool = False) -> bool:
        """Whether blocks share their forms: f is linear, and no factor partitions the rows; with `levels`, the columns
        of its levels are ordinary ones."""
        return part.theta is None and self.drawn is not Drawn.NONE and (levels or not partitions(built))

    def meet(self, forms: Plan, rows: Rows, part: LinearPart) -> Design:
        """Rows in forms that were decided before."""
        return forms.meet(part.columns, rows.context if self.obs.has_context else None, len(rows))

    def _design(self, built: tuple[BuiltTerm, ...], rows: Rows, part: LinearPart) -> Design:
        from ..engine.core import build_design

        context, whole = rows.context if self.obs.has_context else None, self.normaliser.anchored
        size = self.source.size
        return build_design(built, part.columns, context=context, whole_contexts=whole, all_rows=size)

    def _refuse_context_terms(self) -> None:
        """A term of f that does not read y is part of the normalising constant, and cannot be told from it."""
        f = self.model.terms
        if f is None or not self.obs.has_context:
            return
        known = self.model.covariates(self.obs)
        only = {name for term in f for name in term.columns if name in known and known.context_only(name)}
        same = [term.label for term in f if term.columns and only.issuperset(term.columns)]
        if same:
            verb = "depends" if len(same) == 1 else "depend"
            raise NotIdentifiedError(
                f"{listing(same)} {verb} on the context only, and the normalising constants absorb what does not vary "
                "with y. Remove it, or let it change the effect of something that does (by=, te(…), an expression)."
            )

    def build(self, terms: Terms, part: LinearPart) -> tuple[BuiltTerm, ...]:
        """The terms on the rows' columns, with the knots and periods that model and normaliser declare."""
        known = self.model.covariates(self.obs)
        periods = {name: known.period(name) for name in terms.columns if name in known and known.period(name)}
        knots = {**self.model.knots, **self.normaliser.knots}
        partial = known.partial(terms.columns)
        made = terms.build(
            part.columns, knots=knots, periods=periods, partial=partial, categories=self.obs.categories,
            boundary=known.boundary, ends=known.ends,
        )  # fmt: skip
        return tuple(made)

    def predictor(self, rows: Rows, theta: np.ndarray | None = None) -> tuple[Terms, LinearPart]:
        """Terms of f and χ together, with the columns and the offset on these rows."""
        f = self.model.linear_part(self.obs, rows.y, rows.context, theta)
        chi = self.normaliser_columns(rows.context)
        both = [name for name in chi if name in f.columns and f.columns[name] is not chi[name]]
        clash = [name for name in both if not np.array_equal(f.columns[name], chi[name])]
        if clash:
            raise InputError(
                f"{listing(clash)} names both a statistic of the model and a covariate of the normaliser: rename one."
            )
        terms = f.terms if self.normaliser.terms is None else f.terms + self.normaliser.terms
        offset = rows.offset if f.offset is None else rows.offset + f.offset
        return terms, LinearPart(terms, {**f.columns, **chi}, offset, f.theta)


def placing_rows(model: Unnormalised, obs: Observations) -> Rows:
    """The data and points spread evenly over Ω (or drawn from the law that f is relative to), for objectives without
    reference points: to place knots, and to centre terms."""
    some = np.unique(np.linspace(0, obs.n - 1, min(obs.n, PLACED)).astype(int))
    each, rng, law = np.repeat(some, SPREAD), np.random.default_rng(0), model.law(obs)
    if law is None:
        evenly = from_unit(model.domain, obs.take(each), rng.random((len(each), model.domain.cube_dim)))
    else:  # a kernel of short steps leaves most of Ω alone
        evenly = law.sample(obs, each, rng)
    y = np.concatenate([obs.outcome, evenly])
    at = np.concatenate([np.arange(obs.n), each])
    nothing = np.zeros(len(at))
    return Rows(y, at, np.arange(len(at)) < obs.n, RowLikelihood(POISSON, nothing, nothing), nothing)


def _ends(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The rows where a numeric column is least or largest, and the first of each level of a column of labels."""
    numeric = [column for column in columns.values() if column.dtype.kind in "fiu"]
    ends = [end for column in numeric for end in (int(column.argmin()), int(column.argmax()))]
    levels = [firsts(column) for column in columns.values() if may_be_labels(column)]
    return np.unique(np.concatenate([np.array(ends, np.int64), *levels]))


def may_be_labels(column: np.ndarray) -> bool:
    """Text, and numbers that are codes as far as the first of them tell."""
    return column.dtype.kind not in "f" or not np.any(column[:STRETCH] % 1.0 != 0.0)


def firsts(column: np.ndarray) -> np.ndarray:
    """The first row of each level; none where there are too many for a factor."""
    first = np.unique(column, return_index=True)[1]
    return first if first.size <= MOST_LEVELS else np.zeros(0, np.int64)


def _refuse_known_values(built: Sequence[BuiltTerm], part: LinearPart) -> None:
    """A boundary whose values are known and not zero would be an offset that reads y, at every node and point."""
    for term in built:
        known = term.fixed(part.columns)
        if known is not None and np.nanmax(np.abs(known), initial=0.0) > 0.0:
            raise CombinationError(
                f"{term.label}: boundary values other than zero are for un.gam; in un.Additive leave 'f' out of the "
                "boundary, or make it zero."
            )


@final
@dataclass(frozen=True)
class Placing:
    """Rows that terms are built on: their covariates, and their numbers."""

    part: LinearPart
    rows: Rows  # without outcomes
    every: bool  # whether they are all the rows

    def picked(self, keep: np.ndarray) -> Placing:
        columns = {name: column[keep] for name, column in self.part.columns.items()}
        offset = None if self.part.offset is None else self.part.offset[keep]
        return Placing(replace(self.part, columns=columns, offset=offset), self.rows.take(keep), False)


def _together(parts: Sequence[Placing], every: bool) -> Placing:
    if len(parts) == 1:
        return replace(parts[0], every=every)
    first = parts[0].part
    columns = {name: np.concatenate([one.part.columns[name] for one in parts]) for name in first.columns}
    offsets = [one.part.offset for one in parts]
    offset = None if first.offset is None else np.concatenate([one for one in offsets if one is not None])
    return Placing(replace(first, columns=columns, offset=offset), joined([one.rows for one in parts]), every)


def partitions(built: Sequence[BuiltTerm]) -> bool:
    """Whether a factor may partition the rows of these terms."""
    return any(term.level is not None or term.factor_levels is not None for term in built)


@final
@dataclass(frozen=True)
class BlockColumns(Mapping[str, np.ndarray]):
    """The covariates of all rows, a column at a time, each made again from the blocks when it is asked for."""

    problem: AdditiveProblem
    names: tuple[str, ...]
    theta: np.ndarray | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise KeyError(name)
        blocks = self.problem.source.blocks()
        return np.concatenate([self.problem.predictor(rows, self.theta)[1].columns[name] for rows in blocks])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def context_columns(
    model: Unnormalised, normaliser: Normaliser, obs: Observations, at: np.ndarray
) -> dict[str, np.ndarray]:
    """The covariates of a smooth χ at the contexts of observations `at`; those that depend on y are refused."""
    terms = normaliser.terms
    if terms is None:
        return {}
    known = model.covariates(obs)
    wrong = [name for name in terms.columns if name in known and not known.context_only(name)]
    if not obs.has_context:
        raise CombinationError(
            f"{normaliser!r} is a function of the context, and IID data have none: their normalising constant is one "
            "number. Use un.Constant(), or leave normaliser out."
        )
    if wrong:
        verb = "depends" if len(wrong) == 1 else "depend"
        raise TermError(
            f"The normaliser χ(x) is a function of the context, and {listing(wrong)} {verb} on the outcome y. "
            f"Use {listing([name for name in known.names if known.context_only(name)])}."
        )
    return known.values(terms.columns, obs, obs.outcome[at], at)
