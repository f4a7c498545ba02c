"""`GraphStatistics`: p(y|x) ∝ exp θᵀ s(y|x) on graphs, s named as in ergm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from ...data.observations import Observations
from ...domains.graphs import Graphs
from ...errors import CombinationError, InputError, listing
from ..base import Context, Kernels, Moments
from ..centring import Centred
from ..linear import StatisticsModel
from . import kernels
from .attributes import Attributes
from .base import Statistic, Surroundings
from .formula import parse
from .sampler import GraphSampler
from .wave import Compiled, Wave


# long: everything that a model can give (enumeration, change statistics, chains) is given here
@final
@dataclass(frozen=True, eq=False)
class GraphStatistics(StatisticsModel):
    """An exponential family of graphs, f_θ(y|x) = θᵀ s(y|x), its statistics written as in ergm.

    Args:
        formula: such as "edges + mutual + gwesp(0.25) + nodematch(sex) + edgecov(dist) + memory + delrecip".
        domain: `un.Graphs(n, directed=…, fixed=…)`.
        nodes: attributes of the actors, a table or name → n values (or T × n, where they vary in time; `lag=1` in a
            term reads the value one graph before).
        dyads: covariates of dyads, name → (n, n) or (T, n, n).

    Statistics of previous graphs (memory, stability, delrecip) make it p(G_t | G_{t−1}); docs/graphs.md lists all.

    Example:
        >>> import numpy as np, unnorm as un
        >>> omega = un.Graphs(4, directed=True)
        >>> model = un.GraphStatistics("edges + mutual + nodematch(sex)", omega, nodes={"sex": ["f", "m", "m", "f"]})
        >>> model.statistics(np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]]))
        {'edges': 5.0, 'mutual': 2.0, 'nodematch(sex)': 3.0}
    """

    formula: str
    domain: Graphs  # pyright: ignore[reportIncompatibleVariableOverride]
    nodes: Any = None
    dyads: Mapping[str, Any] | None = None
    names: tuple[str, ...] = field(init=False, default=())
    context_arity: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Graphs):
            raise InputError(f"domain must be un.Graphs(n, directed=…); got {self.domain!r}.")
        object.__setattr__(self, "names", tuple(one.label for one in self.parts))
        object.__setattr__(self, "context_arity", 1 if self.reads_before or self.varies else 0)

    @cached_property
    def attributes(self) -> Attributes:
        """The covariates, checked."""
        return Attributes.read(self.nodes, self.dyads, self.domain.n)

    @cached_property
    def parts(self) -> tuple[Statistic, ...]:
        """The statistics in order."""
        return parse(self.formula, self.domain, self.attributes)

    @property
    def reads_before(self) -> bool:
        """Whether some statistic compares with the previous graph."""
        return any(one.reads_before for one in self.parts)

    @property
    def varies(self) -> bool:
        """Whether some statistic reads a covariate that varies in time."""
        return any(one.varies(self.attributes) for one in self.parts)

    @cached_property
    def compiled(self) -> Compiled:
        return Compiled.of(self.parts, self.domain.n, self.domain.directed)

    def check(self, obs: Observations) -> None:
        if self.reads_before and obs.kind != "transitions":
            which = [one.label for one in self.parts if one.reads_before]
            raise InputError(
                f"{listing(which)} compares a graph with the one before it, and the observations are no sequence. Pass "
                "two graphs or more in order of time: un.networks([A1, A2, …], omega)."
            )
        if self.varies and "wave" not in obs.context:
            which = [one.label for one in self.parts if one.varies(self.attributes)]
            raise InputError(
                f"{listing(which)} reads a covariate that varies in time, and the observations do not say which graph "
                "each is. Make them with un.networks(A, omega), of as many graphs as the covariate has."
            )
        super().check(obs)

    def arguments(self, obs: Observations, at: np.ndarray) -> tuple[Any, ...]:
        """({"before": (N, d), "wave": (N,)},), as far as the statistics read them."""
        x: dict[str, np.ndarray] = {}
        if self.reads_before:
            x["before"] = obs.previous()[at]
        if self.varies:
            x["wave"] = np.asarray(obs.context["wave"])[at]
        return (x,) if x else ()

    def contexts(self, obs: Observations) -> Context:
        self.check(obs)
        arguments = self.arguments(obs, np.arange(obs.n))
        if not arguments:
            return Context((), np.zeros(obs.n, dtype=np.intp), 1)
        flat = np.column_stack([np.reshape(leaf, (obs.n, -1)) for leaf in arguments[0].values()])
        _, first, of = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        return Context(self.arguments(obs, first), of.reshape(-1).astype(np.intp), len(first))

    simulates = True

    def centred(self, obs: Observations) -> Centred | None:
        """Covariates about their means, where `edges` can take what that changes."""
        edges = [j for j, one in enumerate(self.parts) if one.counts]
        parts, levels = zip(*(one.centred(self.attributes) for one in self.parts))
        if not edges or not any(levels):
            return None
        model = replace(self)
        object.__setattr__(model, "parts", parts)
        of = np.flatnonzero(levels)
        return Centred(model, np.full(len(of), edges[0]), of, np.array(levels)[of])

    def held_bits(self, obs: Observations, at: np.ndarray) -> np.ndarray:
        """Dyads that are fixed, or where a statistic reads a previous tie that did not exist or was not seen."""
        held = ~np.broadcast_to(self.domain.free, (len(at), self.domain.dim))
        if obs.masks is None:
            return held
        held = held | obs.masks.fixed[at]
        before = obs.masks.before[at]
        if any(one.reads_before and not one.mirrors for one in self.parts):
            held = held | before
        if any(one.mirrors for one in self.parts):
            i, j = self.domain.pairs.T
            held = held | self.domain.adjacency(before)[:, j, i]
        return held

    def chains(self, obs: Observations, at: np.ndarray) -> list[Wave]:
        arguments = self.arguments(obs, at)
        return [self.wave(obs.outcome[one], arguments, t) for t, one in enumerate(at)]

    def extremes(self, obs: Observations) -> list[str]:
        """Of statistics that no further tie lowers, those of the graph without any free tie, or with all."""
        at = np.arange(obs.n)
        arguments, held = self.arguments(obs, at), self.held_bits(obs, at)
        if obs.masks is not None and obs.masks.missing.any():
            return []
        low, here, high = (
            np.stack(
                [self.wave(np.where(held[t], obs.outcome[t], y[t]), arguments, t).statistics for t in range(obs.n)]
            )
            for y in (np.zeros_like(obs.outcome), obs.outcome, np.ones_like(obs.outcome))
        )
        rising = np.array([np.all(np.diff(table) >= 0) for table in self.compiled.tables])
        for c, one in enumerate(self.parts):
            W = (
                [one.weights(self.surroundings(arguments, t)) for t in range(obs.n)]
                if one.code == kernels.DYADIC
                else []
            )
            rising[c] &= all(np.all(each >= 0) for each in W if each is not None)
        edge = np.all(np.isclose(here, low), axis=0) | np.all(np.isclose(here, high), axis=0)
        count = (self.compiled.codes != kernels.DYADIC) & (self.compiled.tables >= 0).all(axis=1)  # no less than 0
        none = count & np.all(np.isclose(here, 0.0), axis=0)
        return [name for name, flat in zip(self.names, (edge & rising) | none) if flat]

    def separated(self, obs: Observations) -> list[str]:
        """By the dyadic statistics, whose weighted sums of ties the data then maximise over all graphs."""
        dyadic = self.compiled.codes == kernels.DYADIC
        way = logistic(*self._regression(obs, dyadic))[2] if dyadic.any() else None
        if way is None:
            return []
        names = [name for name, at in zip(self.names, dyadic) if at]
        return [
            f"{name} → {'+' if v > 0 else '−'}∞" for name, v in zip(names, way) if abs(v) > 0.05 * np.abs(way).max()
        ]

    def independent(self, obs: Observations) -> tuple[np.ndarray, float]:
        """θ of the dyadic statistics alone, by maximum likelihood: a logistic regression."""
        dyadic = self.compiled.codes == kernels.DYADIC
        theta = np.zeros(self.size)
        if not dyadic.any():
            return super().independent(obs)
        theta[dyadic], value, _ = logistic(*self._regression(obs, dyadic))
        return theta, value

    def _regression(self, obs: Observations, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Changes of some statistics, ties and weights, over the dyads that are free and were seen."""
        at = np.arange(obs.n)
        free = ~self.held_bits(obs, at)
        if obs.masks is not None:
            free &= ~obs.masks.missing
        X = np.concatenate([chain.changes()[mask][:, which] for chain, mask in zip(self.chains(obs, at), free)])
        return X, obs.outcome[free], np.repeat(obs.weights, free.sum(axis=1))

    def surroundings(self, arguments: tuple[Any, ...], t: int) -> Surroundings:
        """What the graph of row t sees."""
        x = arguments[0] if arguments else {}
        before = self.domain.adjacency(np.asarray(x["before"][t])) if "before" in x else None
        return Surroundings(self.domain, self.attributes, before, int(x["wave"][t]) if "wave" in x else 0)

    def wave(self, y: np.ndarray, arguments: tuple[Any, ...], t: int) -> Wave:
        """The graph y, (d,), in the context of row t."""
        return Wave(self.compiled, self.parts, self.domain.adjacency(y), self.surroundings(arguments, t))

    def changes(self, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(n, d, p) Δ_i s(y_t|x_t) of flips: + where a tie comes, − where it goes."""
        out = np.empty((*y.shape, self.size))
        for t in range(len(y)):
            out[t] = self.wave(y[t], arguments, t).changes() * (1.0 - 2.0 * y[t])[:, None]
        return out

    def sampler(self, theta: np.ndarray, arguments: tuple[Any, ...]) -> GraphSampler:
        return GraphSampler(self, theta, arguments)

    def statistics_at(self, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(N, p) statistics of N graphs, each in its own context."""
        N, y = len(y), np.asarray(y, dtype=np.float64)
        out = np.empty((N, self.size))
        if not arguments:
            self._sums(y, (), 0, out)
            return out
        flat = np.column_stack([np.reshape(leaf, (N, -1)) for leaf in arguments[0].values()])
        starts = np.flatnonzero(np.r_[True, np.any(flat[1:] != flat[:-1], axis=1)])  # rows of one context in a run
        for begin, end in zip(starts, np.r_[starts[1:], N]):
            self._sums(y[begin:end], arguments, int(begin), out[begin:end])
        return out

    def _sums(self, y: np.ndarray, arguments: tuple[Any, ...], t: int, out: np.ndarray) -> None:
        empty = self.wave(np.zeros(self.domain.dim), arguments, t)
        c = self.compiled
        kernels.sums_of_changes(
            c.codes, c.tables, c.directed, c.paths, empty.weights, self.domain.pairs, y, empty.statistics, out
        )

    def statistics(self, A: Any, before: Any = None, wave: int = 0) -> dict[str, float]:
        """The statistics of one graph by name, from their definitions.

        Args:
            A: an adjacency matrix (n, n).
            before: that of the previous graph, where statistics read it.
            wave: which graph of a sequence it is, where covariates vary in time.
        """
        A, previous = (
            None if one is None else self.domain.adjacency(self.domain.edges_from_adjacency(one)) for one in (A, before)
        )
        x = Surroundings(self.domain, self.attributes, previous, wave)
        return {one.label: one.value(A, x) for one in self.parts}

    def _table(self, nodes: np.ndarray, context: Context, u: int) -> np.ndarray:
        """(M, p) statistics of all nodes in the u-th context."""
        out = np.empty((len(nodes), self.size))
        self._sums(nodes, context.arguments, u, out)
        return out

    def log_z(self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context) -> np.ndarray:
        return np.array([_log_sum(self._table(nodes, context, u) @ theta + log_w) for u in range(context.size)])

    def moments(
        self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context, log_a: np.ndarray, tilt: bool
    ) -> Moments:
        p = self.size
        log_z, mean, second = np.empty(context.size), np.empty((context.size, p)), np.zeros((p, p))
        for u in range(context.size):
            s = self._table(nodes, context, u)
            f = s @ theta + log_w
            log_z[u] = _log_sum(f)
            density = np.exp(f - log_z[u])
            mean[u] = density @ s
            second += np.exp(log_a[u] + (log_z[u] if tilt else 0.0)) * (s.T @ (density[:, None] * s))
        return Moments(log_z, mean, second)

    def _build_kernels(self) -> Kernels:
        raise CombinationError("GraphStatistics has compiled statistics of its own, and no JAX kernels.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "GraphStatistics",
            "names": list(self.names),
            "formula": self.formula,
            "domain": self.domain.to_dict(),
            "nodes": sorted(self.attributes.nodes),
            "dyads": sorted(self.attributes.dyads),
        }


def logistic(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float, np.ndarray | None]:
    """The maximum of Σ w {y η − log(1 + e^η)}, η = Xβ, by Newton steps from zero, its value, and the way to infinity.

    Where the maximum is at infinity, β is some way towards it, and the last step v has (2y − 1) Xv ≥ 0 in every row.
    """
    beta, step = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _ in range(25):
        eta = X @ beta
        p = 0.5 + 0.5 * np.tanh(0.5 * eta)
        step = np.linalg.pinv((X * (w * p * (1 - p))[:, None]).T @ X, hermitian=True) @ (X.T @ (w * (y - p)))
        if not np.all(np.abs(X @ (beta + step)) < 30.0):
            break
        beta = beta + step
        if np.max(np.abs(step), initial=0.0) < 1e-10:
            break
    eta, along = X @ beta, (2.0 * y - 1.0) * (X @ step)
    certain = along.max(initial=0.0) > 1e-3 and along.min(initial=0.0) >= -1e-4 * along.max(initial=0.0)
    way = step if certain else None
    return beta, float(w @ (y * eta - np.maximum(eta, 0.0) - np.log1p(np.exp(-np.abs(eta))))), way


def _log_sum(f: np.ndarray) -> float:
    top = float(f.max())
    return top + float(np.log(np.exp(f - top).sum()))
