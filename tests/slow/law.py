"""A law with a known truth: how its data sets are drawn, many at a time, and what is fitted to them.

Variants of each data set, all of the same law:

- plain: independent observations, or one chain;
- clustered, and few clusters: the uniforms behind the draws are exchangeable within clusters (Gaussian copula), so that
  each y_t still has the law p(·|x_t) exactly and θ is still the truth, while the scores of a cluster are dependent. In
  chains the animals of a herd move together: dependent at each time, independent from one time to the next;
- weighted (laws on finite Ω): equal rows (x, y) are aggregated into counts, as a table of frequencies would be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
from scipy.special import ndtr

import unnorm as un

Variant = Literal["plain", "weighted", "clustered", "few clusters"]
CLUSTER = "cluster"  # the group column of clustered data
MEMBERS = 3  # observations in a cluster, and animals in a herd
STEPS = 2  # that a herd is observed for
FEW = 12  # clusters, where they are few
RHO = 0.8  # correlation of the normal scores within a cluster

Statistics = Callable[..., tuple[Any, ...]]
Quantile = Callable[..., np.ndarray]  # (u, x) → y: u has shape (…,), x and y (…, d)
Step = Callable[[np.random.Generator, np.ndarray], np.ndarray]  # (rng, x) → y, by rejection


@dataclass(frozen=True)
class Columns:
    """`size` data sets of n rows: outcomes (size, n, d), context name → (size, n), cluster labels (n,)."""

    outcome: np.ndarray
    context: Mapping[str, np.ndarray]
    cluster: np.ndarray

    @property
    def sequence(self) -> np.ndarray:
        """(n,) which unbroken chain: one for all, or each animal's."""
        clusters = np.unique(self.cluster).size
        n = len(self.cluster)
        return np.zeros(n, dtype=int) if clusters == n else np.arange(n) // STEPS


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """A law, the data sets drawn from it, and how it is fitted.

    `null` are further statistics whose true coefficients are zero. `chi`: unpenalised terms in whose span −log Z(x)
    lies, exactly on finite Ω and closely elsewhere. `points`: reference points for each observation, or in all (IID).
    `flat` is the law as an energy that integrates to one, for constants that are known; `curved` the same law as an
    additive model with a further smooth, `s(c)`, that is zero in truth.
    """

    name: str
    domain: Any
    statistics: Statistics
    names: tuple[str, ...]
    theta: tuple[float, ...]
    null: Statistics
    null_names: tuple[str, ...]
    n: int
    points: int
    weighted_points: int = 40  # heavy rows share their few points: with so many these are half of the variance at most
    chi: str | None = None
    quantile: Quantile | None = None
    reference: Any = field(default_factory=un.Uniform)
    flat: Any = None
    curved: Any = None
    order: int | None = None  # of the quadrature, where the default takes more nodes than are needed
    finite: bool = False

    @property
    @abstractmethod
    def kind(self) -> str: ...

    @property
    def clusters(self) -> int:
        """Clusters of the clustered variant: enough for intervals by their sandwich to cover what they say."""
        return 150

    @property
    def cluster_size(self) -> int:
        return MEMBERS

    def size(self, variant: Variant) -> int:
        """Observations in a data set; of weighted ones, the sum of the weights."""
        return {"clustered": self.clusters * self.cluster_size, "few clusters": FEW * self.cluster_size}.get(
            variant, self.n
        )

    @abstractmethod
    def columns(self, n: int, size: int, rng: np.random.Generator, clustered: bool) -> Columns: ...

    @property
    def truth(self) -> np.ndarray:
        return np.array(self.theta)

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return ("y",) if self.domain.dim == 1 else tuple(f"y{j + 1}" for j in range(self.domain.dim))

    @cached_property
    def model(self) -> un.ExponentialFamily:
        return un.ExponentialFamily(self.statistics, self.names, self.domain)

    @cached_property
    def larger(self) -> un.ExponentialFamily:
        """The model with the statistics of `null` besides its own."""
        own, more, names = self.statistics, self.null, (*self.names, *self.null_names)
        if self.kind == "iid":
            return un.ExponentialFamily(lambda y: (*own(y), *more(y)), names, self.domain)
        return un.ExponentialFamily(lambda y, x: (*own(y, x), *more(y, x)), names, self.domain)

    def simulate(self, n: int, rng: np.random.Generator, variant: Variant = "plain") -> un.Observations:
        """One data set."""
        return self.samples(n, rng, 1, variant)[0]

    def samples(self, n: int, rng: np.random.Generator, size: int, variant: Variant = "plain") -> list[un.Observations]:
        """`size` data sets of n observations each; with "weighted" n is the sum of the weights."""
        drawn = self.columns(n, size, rng, is_clustered(variant))
        return [self._observations(drawn, r, variant) for r in range(size)]

    def _observations(self, drawn: Columns, r: int, variant: Variant) -> un.Observations:
        outcome, context = drawn.outcome[r], {name: column[r] for name, column in drawn.context.items()}
        weight = None
        if variant == "weighted":
            if not self.finite:
                raise ValueError(f"{self.name} has no equal rows to aggregate: Ω must be finite")
            first, weight = _counted(np.column_stack([outcome, *context.values()]))
            outcome, context = outcome[first], {name: column[first] for name, column in context.items()}
        n = len(outcome)
        sequence = np.arange(n) if variant == "weighted" else drawn.sequence
        chain = {"lags": 1, "sequence": sequence, "extra": tuple(c for c in context if not c.endswith("_prev"))}
        return un.Observations(
            self.kind,  # pyright: ignore[reportArgumentType]
            outcome,
            self.outcome_names,
            context,
            group={CLUSTER: drawn.cluster} if is_clustered(variant) else {},
            weight=weight,
            row=np.arange(n),
            **(chain if self.kind == "transitions" else {}),
        )


def is_clustered(variant: Variant) -> bool:
    return variant in ("clustered", "few clusters")


def _counted(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row first occurs, and how often it does."""
    _, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return first, count.astype(np.float64)


def uniforms(rng: np.random.Generator, shape: tuple[int, ...], clustered: bool) -> np.ndarray:
    """U(0, 1) each; independent, or exchangeable along the last axis with correlation RHO of their normal scores."""
    e = rng.standard_normal(shape)
    if clustered:
        e = np.sqrt(RHO) * rng.standard_normal((*shape[:-1], 1)) + np.sqrt(1 - RHO) * e
    return ndtr(e)


def _labels(n: int, members: int) -> np.ndarray:
    if n % members:
        raise ValueError(f"clustered data come in clusters of {members}; got n = {n}")
    return np.repeat(np.arange(n // members), members)


@final
@dataclass(frozen=True, eq=False)
class Independent(Law):
    """IID outcomes."""

    @property
    def kind(self) -> str:
        return "iid"

    def columns(self, n: int, size: int, rng: np.random.Generator, clustered: bool) -> Columns:
        assert self.quantile is not None
        members = MEMBERS if clustered else 1
        labels = _labels(n, members)
        u = uniforms(rng, (size, n // members, members), clustered)
        return Columns(self.quantile(u, None).reshape(size, n, -1), {}, labels)


@final
@dataclass(frozen=True, eq=False)
class Chain(Law):
    """y_t given y_{t−1}: one chain of n steps, or herds of MEMBERS animals for STEPS steps; y_0 is uniform on Ω."""

    step: Step | None = None  # where there is no quantile function
    state: Callable[[np.ndarray], np.ndarray] | None = None  # x (…, d) → a number for each context, for `chi`

    @property
    def kind(self) -> str:
        return "transitions"

    @property
    def clusters(self) -> int:
        return 100

    @property
    def cluster_size(self) -> int:
        return MEMBERS * STEPS

    def columns(self, n: int, size: int, rng: np.random.Generator, clustered: bool) -> Columns:
        labels = _labels(n, self.cluster_size if clustered else 1)
        steps, shape = (STEPS, (size, n // self.cluster_size, MEMBERS)) if clustered else (n, (size, 1, 1))
        d, count = self.domain.dim, int(np.prod(shape))
        path = [self.domain.from_unit(rng.random((count, self.domain.cube_dim))).reshape(*shape, d)]
        for _ in range(steps):
            path.append(self._next(rng, path[-1], clustered))
        points = np.moveaxis(np.array(path), 0, 3)  # (size, herds, animals, steps + 1, d)
        after, before = (part.reshape(size, n, d) for part in (points[:, :, :, 1:], points[:, :, :, :-1]))
        context = {f"{name}_prev": before[:, :, j] for j, name in enumerate(self.outcome_names)}
        if self.state is not None:
            context["state"] = self.state(before)
        return Columns(after, context, labels)

    def _next(self, rng: np.random.Generator, x: np.ndarray, clustered: bool) -> np.ndarray:
        if self.quantile is not None:
            return self.quantile(uniforms(rng, x.shape[:-1], clustered), x)
        if self.step is None or clustered:
            raise ValueError(f"{self.name} has no quantile function to make clusters with")
        return self.step(rng, x)


@final
@dataclass(frozen=True, eq=False)
class Regression(Law):
    """y given covariates; those of a cluster are the same, so that its scores are dependent in every direction."""

    covariates: Callable[[np.random.Generator, tuple[int, ...]], dict[str, np.ndarray]] | None = None
    draw: Callable[[np.random.Generator, Mapping[str, np.ndarray]], np.ndarray] | None = None

    @property
    def kind(self) -> str:
        return "conditional"

    def columns(self, n: int, size: int, rng: np.random.Generator, clustered: bool) -> Columns:
        assert self.covariates is not None
        members = MEMBERS if clustered else 1
        labels = _labels(n, members)
        x = self.covariates(rng, (size, n // members))
        x = {name: np.repeat(column, members, axis=1) for name, column in x.items()}
        if self.quantile is not None:
            u = uniforms(rng, (size, n // members, members), clustered)
            outcome = self.quantile(u.reshape(size, n), x)
        else:
            assert self.draw is not None
            assert not clustered
            outcome = self.draw(rng, x)[..., None]
        return Columns(outcome, x, labels)
