"""∫ exp f_θ(y|x) dy over Ω for every distinct context, by one rule, or by one centred at each previous point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from ..data.observations import Observations
from ..data.placing import by_window
from ..domains.base import Domain, Quadrature
from ..models.base import Context, Model, Moments
from ..references.base import BoundReference
from .redraws import Rules

ROWS = 250_000  # nodes of centred rules evaluated at a time
KEPT_NUMBERS = 2**27  # of their nodes and ∂f, kept between iterations (1 GiB)


class ContextIntegrals(ABC):
    """log Z and E[∂f] at the distinct contexts, whatever the nodes."""

    context: Context
    open: bool  # whether the order is ours to raise
    doublings: int  # how often it was raised

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether the nodes are all of Ω."""

    @abstractmethod
    def log_z(self, theta: np.ndarray) -> np.ndarray:
        """(U,)"""

    @abstractmethod
    def means(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log Z (U,) and E[∂f] (U, p)."""

    @abstractmethod
    def moments(self, theta: np.ndarray, log_a: np.ndarray, tilt: bool) -> Moments:
        """These, and Σ_u a_u E_u[∂²f + ∂f ∂fᵀ] with a_u = exp(log_a_u), or exp(log_a_u) Z_u where `tilt`."""

    @abstractmethod
    def errors(self, theta: np.ndarray, most: int) -> np.ndarray:
        """Of log Z at up to `most` contexts, against a finer rule."""

    def error(self, theta: np.ndarray, most: int = 200) -> float:
        """max_u |log Z_u − log Z_u by the finer rule| over at most `most` contexts."""
        return float(np.max(np.abs(self.errors(theta, most))))

    @abstractmethod
    def finer(self, excess: float = np.inf) -> ContextIntegrals:
        """Of a higher order, twice as high where errors are many times too large (`excess`)."""

    @abstractmethod
    def rules(self, some: np.ndarray) -> Rules:
        """The nodes of some observations' contexts."""

    @property
    @abstractmethod
    def each(self) -> int:
        """Nodes of a context."""

    @property
    def nodes(self) -> int:
        """Over all contexts."""
        return self.context.size * self.each

    @property
    @abstractmethod
    def named(self) -> tuple[str, int | None]:
        """What the rule is, for people, and its order (None on finite domains: enumeration)."""


@dataclass(frozen=True)
class Integrals(ContextIntegrals):
    """∫ · exp f_θ(y|x_u) dy for every distinct context, by one rule on Ω."""

    model: Model
    context: Context
    rule: Quadrature
    order: int | None  # None on finite domains: enumeration
    open: bool = True
    doublings: int = 0

    @cached_property
    def log_w(self) -> np.ndarray:
        return np.log(self.rule.weights)

    def log_z(self, theta: np.ndarray) -> np.ndarray:
        return self.model.log_z(theta, self.rule.points, self.log_w, self.context)

    def moments(self, theta: np.ndarray, log_a: np.ndarray, tilt: bool) -> Moments:
        return self.model.moments(theta, self.rule.points, self.log_w, self.context, log_a, tilt)

    @property
    def exact(self) -> bool:
        return self.rule.exact

    def rules(self, some: np.ndarray) -> Rules:
        return tiled(self.rule, len(some))

    @property
    def each(self) -> int:
        return len(self.rule.points)

    @property
    def named(self) -> tuple[str, int | None]:
        return self.rule.rule, self.order

    def means(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = self.moments(theta, np.full(self.context.size, -np.inf), tilt=False)
        return m.log_z, m.mean

    def finer(self, excess: float = np.inf) -> Integrals:
        """The rule of twice the order."""
        order = 2 * (self.order or 1)
        return replace(self, rule=self.model.quadrature(order), order=order, doublings=self.doublings + 1)

    def finest(self) -> Integrals:
        """The yardstick: twice the order, and never below the domain's own default, to miss no narrow peak."""
        order = max(2 * (self.order or 1), self.model.domain.default_order or 1)
        return replace(self, rule=self.model.quadrature(order), order=order)

    def errors(self, theta: np.ndarray, most: int) -> np.ndarray:
        """log Z_u − log Z_u by the finest rule at up to `most` contexts, in doubt those where f is sharpest."""
        if self.rule.exact:
            return np.zeros(1)
        log_z = self.log_z(theta)
        some = telling(log_z, most)
        part = replace(self, context=Context(self.context.at(some), np.arange(len(some)), len(some)))
        return log_z[some] - part.finest().log_z(theta)


class _Nodes(NamedTuple):
    """The nodes of contexts begin … end − 1, and what of them does not change with θ."""

    begin: int
    end: int
    y: np.ndarray
    w: np.ndarray
    of: np.ndarray  # ascending, from 0
    J: np.ndarray | None  # ∂f/∂θ where f is linear in θ

    def log_z(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log Σ w exp f of each context; the share of each node; where each context's nodes begin."""
        starts = np.searchsorted(self.of, np.arange(self.end - self.begin))
        top = np.maximum.reduceat(f, starts)
        mass = self.w * np.exp(f - top[self.of])
        total = np.add.reduceat(mass, starts)
        return top + np.log(total), mass / total[self.of], starts


@final
@dataclass(frozen=True)
class CentredIntegrals(ContextIntegrals):
    """∫ · exp f_θ(y|x_u) dy by nodes of each context's own: those that crowd towards its previous point, or those of
    the law that f is relative to."""

    model: Model
    context: Context
    obs: Observations  # (U,) one with each context
    order: int
    law: BoundReference | None = None  # k, where the integrals are ∫ · exp f k dy
    open: bool = True
    doublings: int = 0
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def exact(self) -> bool:
        return False

    @property
    def named(self) -> tuple[str, int | None]:
        where = "pieces that meet at the previous point" if self.law is None else "quantiles of the model's kernel"
        return f"Gauss–Legendre in {where}, of order {self.order}", self.order

    @cached_property
    def each(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nodes of the first context."""
        return len(self._rules(np.arange(1))[0])

    def _rules(self, some: np.ndarray) -> Rules:
        return own_rules(self.model.domain, self.law, self.obs.take(some), self.order)

    def rules(self, some: np.ndarray) -> Rules:
        return self._rules(self.context.of[some])

    def _evaluated(self) -> Iterator[_Nodes]:
        if "nodes" in self._kept:
            yield from self._kept["nodes"]
            return
        kept: list[_Nodes] = []
        few = self.nodes * (self.model.size + self.obs.dim + 2) <= KEPT_NUMBERS
        step = max(1, ROWS // self.each)
        for begin in range(0, self.obs.n, step):
            end = min(begin + step, self.obs.n)
            y, w, of = self._rules(np.arange(begin, end))
            linear = self.model.linear
            J = self.model.jacobian(self.model.start, y, self.context.at(begin + of)) if linear else None
            nodes = _Nodes(begin, end, y, w, of, J)
            if few:
                kept.append(nodes)
            yield nodes
        if few:
            self._kept["nodes"] = kept

    def _at(self, theta: np.ndarray) -> Iterator[tuple[_Nodes, tuple[Any, ...], np.ndarray, np.ndarray]]:
        """Nodes, the arguments of f there, f and ∂f."""
        for nodes in self._evaluated():
            arguments = self.context.at(nodes.begin + nodes.of)
            if nodes.J is not None:
                yield nodes, arguments, nodes.J @ theta, nodes.J
            else:
                f = self.model.log_f(theta, nodes.y, arguments)
                yield nodes, arguments, f, self.model.jacobian(theta, nodes.y, arguments)

    def means(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_z, mean = np.empty(self.obs.n), np.empty((self.obs.n, self.model.size))
        for nodes, _, f, J in self._at(theta):
            here = slice(nodes.begin, nodes.end)
            log_z[here], share, starts = nodes.log_z(f)
            mean[here] = np.add.reduceat(share[:, None] * J, starts)
        return log_z, mean

    def moments(self, theta: np.ndarray, log_a: np.ndarray, tilt: bool) -> Moments:
        p = self.model.size
        log_z, mean, second = np.empty(self.obs.n), np.empty((self.obs.n, p)), np.zeros((p, p))
        for nodes, arguments, f, J in self._at(theta):
            here = slice(nodes.begin, nodes.end)
            log_z[here], share, starts = nodes.log_z(f)
            mean[here] = np.add.reduceat(share[:, None] * J, starts)
            share *= np.exp(log_a[here] + (log_z[here] if tilt else 0.0))[nodes.of]
            second += J.T @ (share[:, None] * J)
            if not self.model.linear:
                second += self.model.data_terms(nodes.y, arguments, share).derivatives(theta)[2]  # Σ a E[∂²f]
        return Moments(log_z, mean, second)

    def log_z(self, theta: np.ndarray) -> np.ndarray:
        out = np.empty(self.obs.n)
        for nodes in self._evaluated():
            arguments = self.context.at(nodes.begin + nodes.of)
            f = nodes.J @ theta if nodes.J is not None else self.model.log_f(theta, nodes.y, arguments)
            out[nodes.begin : nodes.end] = nodes.log_z(f)[0]
        return out

    def finer(self, excess: float = np.inf) -> CentredIntegrals:
        times = np.clip(1.05 * excess**0.25, 1.25, 2.0)  # a fourth power, as next to a kink
        return replace(self, order=int(np.ceil(times * self.order)), doublings=self.doublings + 1, _kept={})

    def _part(self, some: np.ndarray) -> CentredIntegrals:
        context = Context(self.context.at(some), np.arange(len(some)), len(some))
        return replace(self, context=context, obs=self.obs.take(some), _kept={})

    def errors(self, theta: np.ndarray, most: int) -> np.ndarray:
        log_z = self.log_z(theta)
        some = telling(log_z, most)
        return log_z[some] - self._part(some).finer().log_z(theta)


def centred_integrals(model: Model, context: Context, obs: Observations, order: int | None) -> CentredIntegrals | None:
    """Those of a chain whose f reads the previous point, on domains that have such rules; else None."""
    if order is None or obs.kind != "transitions" or not context.arguments:
        return None
    own = obs.take(np.unique(context.of, return_index=True)[1])
    centred = model.domain.centred(own.previous()[:1], order)
    return None if centred is None else CentredIntegrals(model, context, own, order)


def tilted_integrals(model: Model, law: BoundReference, obs: Observations, order: int) -> CentredIntegrals:
    """Those of a model relative to k, at the context of every observation: k reads more of it than f may."""
    model.check(obs)
    every = np.arange(obs.n)
    return CentredIntegrals(model, Context(model.arguments(obs, every), every, obs.n), obs, order, law)


def own_rules(domain: Domain, law: BoundReference | None, obs: Observations, order: int | None) -> Rules:
    """Nodes of these contexts, and weights for integrals against the law, or against Ω's own measure without one."""
    found = None if law is None else law.rule(obs, order or domain.default_order or 1)
    if found is not None:
        return found
    y, w, of = context_rules(domain, obs, order)
    return y, w if law is None else w * np.exp(law.log_density(y, obs, of)), of


def context_rules(domain: Domain, obs: Observations, order: int | None, centred: bool = True) -> Rules:
    """Nodes and weights over the Ω of each observation, and which of them each node belongs to, ascending: `centred` at
    the previous point for chains, where the domain has such rules."""
    parts = []
    for window, rows in by_window(domain, obs):
        some = obs.take(rows)
        found = window.centred(some.previous(), order) if centred and obs.kind == "transitions" else None
        y, w, of = tiled(window.quadrature(order), some.n) if found is None else found
        parts.append((y, w, of if domain.key is None else rows[of]))
    if len(parts) == 1:
        return parts[0]
    y, w, of = (np.concatenate(columns) for columns in zip(*parts))
    sort = np.argsort(of, kind="stable")
    return y[sort], w[sort], of[sort]


def tiled(rule: Quadrature, count: int) -> Rules:
    """One rule for each of `count` contexts."""
    of = np.repeat(np.arange(count), len(rule.points))
    return np.tile(rule.points, (count, 1)), np.tile(rule.weights, count), of


def telling(log_z: np.ndarray, most: int) -> np.ndarray:
    """Positions at which the error of log Z is looked at: half evenly spread, half with the lowest and highest log Z.

    Where exp f has a peak that the nodes miss, or meet too rarely, log Z is far from its neighbours'.
    """
    size = len(log_z)
    if size <= most:
        return np.arange(size)
    order, ends = np.argsort(log_z), most // 4
    even = np.linspace(0, size - 1, most - 2 * ends).astype(int)
    return np.unique(np.concatenate([even, order[:ends], order[-ends:]]))
