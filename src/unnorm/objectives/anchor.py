"""Anchored constants: log Z_θ(x) and E_θ(∂f|x) at the contexts, as fine as they must be and no finer.

χ(x) = −log Z_θ(x) + δ(x) makes of the contrast the logistic likelihood of the normalised model: its score is
Σ (z − p) v̂ with v̂ = [∂f − E_θ(∂f|x); ∂δ], and its scoring curvature Σ w v̂ v̂ᵀ. An error of log Z moves θ̂; one of
E_θ(∂f|x) only costs efficiency. By Cauchy and Schwarz, errors e_t move no estimate by more than √(Σ_r w_r e²) standard
errors, their mean aside, which δ takes up: this is how fine the integrals must be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from ..data.observations import Observations
from ..errors import CombinationError, InputError, hush, warn
from ..models.base import Model, Unnormalised
from ..models.built_additive import BuiltAdditive
from .integrals import (
    CentredIntegrals,
    ContextIntegrals,
    Integrals,
    centred_integrals,
    own_rules,
    tilted_integrals,
)
from .redraws import Rules
from .representatives import codes, representatives

if TYPE_CHECKING:
    from ..engine.design import Design
    from ..references.base import BoundReference
    from ..terms.base import BuiltTerm

ENOUGH = 0.05  # standard errors by which the integrals may move an estimate
LEVEL = 0.01  # by which their mean may be off: δ takes it up, but the verdict on δ̂ is "not zero" from here
ROUNDING = 1e-12
CHECKED = 40  # contexts at which their error is measured
ENDS = 3  # lowest and highest values of each column that f reads, which are among them: see `TermsAnchor._checked`
MOST_REFINEMENTS = 6
KEPT_BYTES = 2**30  # of nodes in the engine's form, kept between iterations; of all anchors that are held at once
ROWS = 1_000_000  # nodes of one design
AT_ONCE = 16_384  # nodes whose covariates are computed at a time: what is held of them stays in the cache
FINER = 1.5  # times the order at least that a rule must have to measure errors; the first that does has twice
FEW_NODES = 200_000  # below which every distinct context has its own
COARSEST = {1: 17, 2: 12}  # points on each axis of the grid of contexts, by its dimension
ORDER = {1: 32, 2: 16}  # of the first rule, by the dimension of Ω; …
GRID_ORDER = {1: 32, 2: 24}  # on a grid, which has few contexts
TILTED = 12  # of the first rule of a parametric model relative to a law, in its quantiles
MANY_TILTED = 5_000_000  # nodes of a model relative to a law, at which a fit takes some ten seconds

NO_RULE = (
    "un.Anchored() needs ∫ exp f(y|x) dy over {domain!r}, which has no quadrature rule and cannot be enumerated. Use "
    "objective=un.Ranking(…) or un.ConditionalNCE(…), in which the constants cancel, or normaliser=un.Smooth('s(…)')."
)


COSTLY = 10  # nodes for each row above which the integrals take about five times as long as a smooth χ
SLOW = (
    "Anchored constants need an integral for each context here, {nodes:,} nodes or {times:.0f} for each row, and "
    "take several times as long as normaliser=un.Smooth(…): {why}. The "
    "rule is only as fine as it must be for an error below .05 standard errors."
)


class Integrated(NamedTuple):
    """At every observation's context."""

    log_z: np.ndarray  # (n,) log Z_θ(x_t), offsets of f included
    mean: np.ndarray  # (n, p) E_θ(∂f|x_t)


class Anchor(ABC):
    """log Z_θ and E_θ(∂f) at the contexts of the observations, for one representation of f."""

    refinements: int = 0
    many_nodes: int = FEW_NODES  # below which a step takes no time to speak of
    why: str  # there are many nodes

    @abstractmethod
    def at(self, theta: np.ndarray) -> Integrated: ...

    @abstractmethod
    def errors(self, theta: np.ndarray) -> np.ndarray:
        """Errors of log Z at some contexts spread over the data, against a finer rule."""

    @abstractmethod
    def finer(self, theta: np.ndarray, excess: float) -> Anchor | None:
        """The same with more nodes, on a finer grid of contexts, or both; None where there are no more.

        `excess`: how many times too large the error is at θ.
        """

    @abstractmethod
    def rule(self, some: np.ndarray) -> Rules:
        """Nodes and weights over Ω at the contexts of some observations, and which of them each node belongs to."""

    @abstractmethod
    def bare(self) -> Anchor:
        """The same without what it keeps between steps: a fit that is done need not hold it."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """At which f is evaluated in each step, over all contexts."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """For the record."""

    def standing(self, theta: np.ndarray) -> np.ndarray | None:
        """For how many observations each context of `errors` stands, as shares; None: for as many each."""
        return None

    def level(self, theta: np.ndarray) -> float:
        """Mean error of log Z."""
        return float(np.average(self.errors(theta), weights=self.standing(theta)))

    def error(self, theta: np.ndarray) -> float:
        """rms of the errors of log Z about their mean."""
        return _spread_of(self.errors(theta), self.standing(theta))

    def shift(self, theta: np.ndarray, weight: float) -> float:
        """The most, in standard errors, by which the integrals' errors can move an estimate; `weight` = Σ_r w_r."""
        return float(np.sqrt(weight)) * self.error(theta)

    def excess(self, theta: np.ndarray, weight: float) -> float:
        """How many times the errors are too large: for an estimate, or for the level of the constants."""
        return max(self.shift(theta, weight) / ENOUGH, abs(self.level(theta)) / LEVEL)


@final
@dataclass(frozen=True)
class ModelAnchor(Anchor):
    """For parametric models: the domain's own rule, once for each distinct context.

    A chain's f may be too sharp for it near the previous point; then rules that are centred there take its place.
    """

    integrals: ContextIntegrals
    offset: np.ndarray  # (n,)
    centred: CentredIntegrals | None = None  # for when the shared rule is too coarse; None where there are none
    refinements: int = 0
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    many_nodes = 5_000_000  # compiled as one product: some 20 ns a node
    why = "f has parameters of its own and is integrated at every distinct context"

    def at(self, theta: np.ndarray) -> Integrated:
        log_z, mean = self.integrals.means(theta)
        of = self.integrals.context.of
        return Integrated(log_z[of] + self.offset, mean[of])

    def errors(self, theta: np.ndarray) -> np.ndarray:
        if self._kept.get("asked") != theta.tobytes():
            self._kept.update(asked=theta.tobytes(), errors=self.integrals.errors(theta, CHECKED))
        return self._kept["errors"]

    def finer(self, theta: np.ndarray, excess: float) -> Anchor | None:
        if self.integrals.exact or self.refinements >= MOST_REFINEMENTS:
            return None
        number = self.refinements + 1
        try:
            doubled = replace(self, integrals=self.integrals.finer(excess), refinements=number, _kept={})
            if self.centred is None:
                return doubled
            centred = replace(self, integrals=self.centred, centred=None, refinements=number, _kept={})
            size = _rms(self.errors(theta))
            if size <= ROUNDING:  # the shared rule failed elsewhere, not at θ: it may have missed a peak
                return centred
            twice = _rms(doubled.errors(theta))
            enough = twice <= size / excess or twice <= _rms(centred.errors(theta))
            return replace(doubled, centred=self.centred.finer()) if enough else centred
        except InputError:  # the domain refuses so many nodes
            return None

    def rule(self, some: np.ndarray) -> Rules:
        return self.integrals.rules(some)

    def bare(self) -> ModelAnchor:
        return replace(self, _kept={})

    @property
    def nodes(self) -> int:
        return self.integrals.nodes

    def figures(self) -> dict[str, Any]:
        (rule, order), contexts = self.integrals.named, self.integrals.context.size
        return {"quadrature": rule, "order": order, "nodes": self.nodes // contexts, "contexts": contexts}


def _rms(errors: np.ndarray, shares: np.ndarray | None = None) -> float:
    return float(np.sqrt(np.average(errors**2, weights=shares)))


def _spread_of(errors: np.ndarray, shares: np.ndarray | None) -> float:
    return _rms(errors - np.average(errors, weights=shares), shares)


def _require_rule(model: Unnormalised) -> None:
    if model.domain.rule is None:
        raise CombinationError(NO_RULE.format(domain=model.domain))


def model_anchor(model: Model, obs: Observations) -> ModelAnchor:
    """The anchor of a parametric model."""
    _require_rule(model)
    default = model.domain.default_order
    order = None if default is None else max(8, default // 4)
    if (law := model.law(obs)) is not None:
        start = 8 if order is None else max(order, TILTED)
        return ModelAnchor(tilted_integrals(model, law, obs, start), obs.offsets)
    context = model.contexts(obs)
    centred = centred_integrals(model, context, obs, None if order is None else 2 * order)
    return ModelAnchor(Integrals(model, context, model.quadrature(order), order), obs.offsets, centred)


class _Nodes(NamedTuple):
    """The nodes of some representatives, in the engine's compact form."""

    runs: np.ndarray  # the representative of each run of the design
    design: Design
    log_w: np.ndarray  # (M,)


@final
@dataclass(frozen=True)
class TermsAnchor(Anchor):
    """For additive models: rules centred at the previous point for chains, at representatives of the contexts.

    Where f reads at most two numeric columns of the context, the representatives are a grid over their range and
    log Z and E are interpolated (cubic splines); else they are the distinct contexts.
    """

    model: BuiltAdditive  # of f's terms, with the observations
    order: int | None
    grid: int | None  # points on each axis; None: the distinct contexts
    threads: int = 1
    refinements: int = 0
    against: int | None = None  # the order of the rule that errors are measured against; None: twice the order
    most_kept: int = KEPT_BYTES
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    why = "f reads more of the context than two numeric columns"

    @cached_property
    def _places(self) -> tuple[Observations, Any]:
        """The representatives, and the matrix (or index) that takes their values to the observations."""
        if self._law is not None:  # which may read all of the context
            return self.model.obs, np.arange(self.model.obs.n)
        return representatives(self.model.source, self.model.obs, self.model.columns, self.grid)

    def at(self, theta: np.ndarray) -> Integrated:
        if self._kept.get("theta") != theta.tobytes():
            self._kept.update(theta=theta.tobytes(), at=self._at(theta))
        return self._kept["at"]

    def _at(self, theta: np.ndarray) -> Integrated:
        obs, of = self._places
        log_z, mean = self._integrate("all", obs, self.order, theta)
        if isinstance(of, np.ndarray):
            log_z, mean = log_z[of], mean[of]
        else:
            log_z, mean = of @ log_z, of @ mean
        return Integrated(log_z + self.model.obs.offsets, mean)

    def _integrate(
        self, key: str, obs: Observations, order: int | None, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """log Z (n,) and E (n, p) at the contexts of `obs`; nodes are kept under `key` where they are few enough."""
        log_z, mean = np.empty(obs.n), np.empty((obs.n, len(theta)))
        for nodes in self._nodes(key, obs, order):
            log_z[nodes.runs], mean[nodes.runs] = nodes.design.integrals(theta, nodes.log_w, self.threads)
        return log_z, mean

    def _log_z(self, key: str, obs: Observations, order: int | None, theta: np.ndarray) -> np.ndarray:
        """The first of `_integrate` alone."""
        log_z = np.empty(obs.n)
        for nodes in self._nodes(key, obs, order):
            log_z[nodes.runs] = nodes.design.log_integrals(theta, nodes.log_w, self.threads)
        return log_z

    def _nodes(self, key: str, obs: Observations, order: int | None) -> Iterator[_Nodes]:
        if key in self._kept:
            yield from self._kept[key]
            return
        kept: list[_Nodes] | None = []
        size = 0
        for nodes in self._evaluated(obs, order):
            size += nodes.design.bytes + nodes.log_w.nbytes
            if kept is not None:
                kept.append(nodes)
                kept = kept if size <= self.most_kept else None
            yield nodes
        if kept is not None:
            self._kept[key] = kept

    def rule(self, some: np.ndarray) -> Rules:
        return self._rule(self.model.obs.take(some), self.order)

    def bare(self) -> TermsAnchor:
        return replace(self, _kept={})

    def _rule(self, obs: Observations, order: int | None) -> Rules:
        """Centred at the previous point for chains, where the domain has such a rule; or that of f's base."""
        return own_rules(self.model.domain, self._law, obs, order)

    @property
    def many_nodes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return FEW_NODES if self._law is None else MANY_TILTED

    @cached_property
    def _law(self) -> BoundReference | None:
        return self.model.source.law(self.model.obs)

    def _evaluated(self, obs: Observations, order: int | None) -> Iterator[_Nodes]:
        from ..engine.core import build_design

        each = max(1, ROWS // len(self._rule(obs.take(np.arange(1)), order)[0]))
        for begin in range(0, obs.n, each):
            columns, log_w, of = self._columns(obs, order, begin, min(begin + each, obs.n))
            with hush():  # Ω reaches beyond the fitted rows, and f is extrapolated there anyway
                design = build_design(
                    self.model.built, columns, intercept=False, context=of, threads=self.threads, whole_contexts=True
                )
            first = np.concatenate([segment.lo + segment.ptr[:-1] for segment in design.segments])
            yield _Nodes(design.sort(of)[first], design, log_w)

    def _columns(
        self, obs: Observations, order: int | None, begin: int, end: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """f's covariates at the nodes of contexts begin … end − 1, the nodes' log weights, and the context of each."""
        known, parts = self.model.covariate_set, []
        each = max(1, AT_ONCE // len(self._rule(obs.take(np.arange(1)), order)[0]))
        for first in range(begin, end, each):
            some = np.arange(first, min(first + each, end))
            y, w, of = self._rule(obs.take(some), order)
            with hush():
                columns = known.values(self.model.columns, obs, y, first + of)
            log_w = np.log(np.maximum(w, 1e-300))  # triangles of a previous point at the edge of Ω are empty
            parts.append((columns, log_w, first + of))
        every, log_w, of = zip(*parts)
        names = every[0]
        return {n: np.concatenate([one[n] for one in every]) for n in names}, np.concatenate(log_w), np.concatenate(of)

    @cached_property
    def _checked(self) -> tuple[np.ndarray, np.ndarray]:
        """Observations at whose contexts the error is measured, and for how many each stands, as shares.

        Evenly spread ones stand for all; in the tails of each column that f reads, which these may miss, two stand for
        as many as one of them does, and the very ends for themselves.
        """
        obs = self.model.obs
        known = {**obs.group, **obs.context}
        even = spread(obs.n)
        gap, ends = obs.n / len(even), min(ENDS, obs.n)
        tail = [*range(ends), int(gap / 4), int(3 * gap / 4)]
        standing = np.array([*[1 / gap] * ends, 0.5, 0.5])
        index, share = [even], [np.ones(len(even))]
        for name in self.model.source.covariates(obs).reads(self.model.columns):
            order = np.argsort(known[name], kind="stable")
            index += [order[tail], order[::-1][tail]]
            share += [standing, standing]
        some, of = np.unique(np.concatenate(index), return_inverse=True)
        total = np.bincount(of, np.concatenate(share))
        return some, total / total.sum()

    def standing(self, theta: np.ndarray) -> np.ndarray | None:
        return self._checked[1] if self.order is not None else None

    @cached_property
    def _some(self) -> Observations:
        return self.model.obs.take(self._checked[0])

    def errors(self, theta: np.ndarray) -> np.ndarray:
        if self.order is None:
            return np.zeros(1)
        return self._used(theta) - self._fine(theta)

    def _used(self, theta: np.ndarray) -> np.ndarray:
        """log Z at the contexts that are checked, as the fit has it."""
        return (self.at(theta).log_z - self.model.obs.offsets)[self._checked[0]]

    def _fine(self, theta: np.ndarray) -> np.ndarray:
        """The same by the finer rule; kept, since `errors` is asked for again and again."""
        if self._kept.get("asked") != theta.tobytes():
            fine = self._log_z("fine", self._some, self._against, theta)
            self._kept.update(asked=theta.tobytes(), log_z=fine)
        return self._kept["log_z"]

    @property
    def _against(self) -> int:
        assert self.order is not None
        return 2 * self.order if self.against is None else self.against

    def finer(self, theta: np.ndarray, excess: float) -> Anchor | None:
        if self.order is None or self.refinements >= MOST_REFINEMENTS:
            return None
        size = _rms if abs(self.level(theta)) > LEVEL else _spread_of
        used, fine = self._used(theta), self._fine(theta)
        same = self._log_z("same", self._some, self.order, theta) if self.grid is not None else used
        between, rule = (size(part, self.standing(theta)) for part in (used - same, same - fine))
        target = np.hypot(between, rule) / (1.6 * excess)  # for either
        grid = self.grid if self.grid is None else _more(self.grid, between / target, 4)
        order = _more(self.order, rule / target, 5)
        more = replace(self, grid=grid, order=order, refinements=self.refinements + 1, against=None, _kept={})
        for name in ("all", "same"):  # nodes that are not asked for again, while the finer ones are made
            self._kept.pop(name, None)
        if self._against < FINER * order:
            return more
        kept = {name: self._kept[name] for name in ("fine", "asked", "log_z") if name in self._kept}
        return replace(more, against=self._against, _kept=kept)  # the nodes it has measured with will do

    @property
    def nodes(self) -> int:
        states = 1 if self.order is not None else len(self.model.domain.windows[0].quadrature(None).points)
        return self._places[0].n * states * (self.order or 1) ** self.model.domain.dim

    def figures(self) -> dict[str, Any]:
        return {"order": self.order, "contexts": self._places[0].n, "grid": self.grid}


def _more(count: int, times: float, power: int) -> int:
    """As many more points as a power of the spacing needs to fall so many times."""
    return count if times <= 1 else int(np.ceil(count * np.clip(1.05 * times ** (1 / power), 1.2, 3.0)))


def terms_anchor(model: BuiltAdditive, threads: int = 1, beside: int = 1) -> TermsAnchor:
    """The anchor of an additive model whose terms have met the data; `beside`: how many are held at once."""
    domain = model.domain
    _require_rule(model)
    most = domain.default_order
    order = None if most is None else min(ORDER.get(domain.dim, 8), most)
    names = model.source.covariates(model.obs).reads(model.columns)
    numeric = all(name in model.obs.context and model.obs.context[name].dtype.kind == "f" for name in names)
    grid = COARSEST[len(names)] if numeric and 1 <= len(names) <= 2 else None
    distinct = len(np.unique(codes(model.obs, names), axis=0)) if grid is not None else 0
    if distinct * (order or 1) ** domain.dim <= FEW_NODES or model.source.base is not None:
        return TermsAnchor(model, order, None, threads, most_kept=KEPT_BYTES // beside)
    order = None if most is None else min(GRID_ORDER.get(domain.dim, 8), most)
    return TermsAnchor(model, order, grid, threads, most_kept=KEPT_BYTES // beside)


def anchor_of(
    model: Unnormalised, obs: Observations, terms: tuple[BuiltTerm, ...], threads: int = 1, beside: int = 1
) -> Anchor:
    """The anchor of any model; `terms` are those of an additive f, built; `beside`: how many anchors are held at
    once."""
    if not model.additive:
        return model_anchor(model.flat(), obs)
    return terms_anchor(BuiltAdditive(model, obs, terms), threads, beside)


def slow(anchor: Anchor, rows: int) -> bool:
    """Whether the integrals take far longer than the rows."""
    return anchor.nodes > max(COSTLY * rows, anchor.many_nodes)


def say_if_slow(anchor: Anchor, rows: int) -> None:
    """Before it starts."""
    if slow(anchor, rows):
        text = SLOW.format(nodes=anchor.nodes, times=anchor.nodes / max(rows, 1), why=anchor.why)
        warn(text, stacklevel=2)


def anchor_report(anchor: Anchor, shift: float) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Notes and figures on how well the constants are known at the estimate."""
    about = {**anchor.figures(), "anchor_shift": shift}
    if shift <= ENOUGH:
        return (), about
    note = (
        f"The normalising integrals may be too coarse: their errors can move an estimate by up to {shift:.2g} standard "
        "errors. Ω may be too large for the detail of f: use objective=un.Ranking(…), in which the constants cancel."
    )
    warn(note, stacklevel=2)
    return (note,), about


def spread(size: int, most: int = CHECKED) -> np.ndarray:
    """At most `most` positions, spread evenly."""
    return np.unique(np.linspace(0, size - 1, min(most, size)).astype(int))
