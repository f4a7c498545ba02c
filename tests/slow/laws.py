"""Laws p(y|x) ∝ exp θᵀs(y|x) with a known θ, simulated exactly and many data sets at a time.

They differ in how strongly log Z(x) varies over the contexts: one number (`interval`, `ising`), hardly (`grid walk`),
by its whole range within a step of the boundary (`steep`), with the covariates' scale (`regression`).

Three variants of each data set, all of the same law:

- plain: independent observations, or one chain;
- clustered: the uniforms behind the draws are exchangeable within clusters (Gaussian copula), so that each y_t still
  has the law p(·|x_t) exactly and θ is still the truth, while the scores of a cluster are dependent. In chains the
  animals of a herd move together: dependent at each time, independent from one time to the next;
- weighted (laws on finite Ω): equal rows (x, y) are aggregated into counts, as a table of frequencies would be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, final

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri

import unnorm as un

Variant = Literal["plain", "weighted", "clustered"]
CLUSTER = "cluster"  # the group column of clustered data
MEMBERS = 4  # observations in a cluster, and animals in a herd
STEPS = 2  # that a herd is observed for
RHO = 0.8  # correlation of the normal scores within a cluster
TRIES = 6  # candidates at a time, where draws are by rejection

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
    `flat` is the law as an energy that integrates to one, for constants that are known.
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
    chi: str | None = None
    quantile: Quantile | None = None
    reference: Any = field(default_factory=un.Uniform)
    flat: Any = None
    order: int | None = None  # of the quadrature, where the default takes more nodes than are needed
    finite: bool = False

    @property
    @abstractmethod
    def kind(self) -> str: ...

    @property
    @abstractmethod
    def clustered_n(self) -> int:
        """Observations of the clustered variant: clusters enough for their sandwich to be known to a tenth."""

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
        drawn = self.columns(n, size, rng, variant == "clustered")
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
            group={CLUSTER: drawn.cluster} if variant == "clustered" else {},
            weight=weight,
            row=np.arange(n),
            **(chain if self.kind == "transitions" else {}),
        )


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

    @property
    def clustered_n(self) -> int:
        return 320  # 80 clusters of 4

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
    def clustered_n(self) -> int:
        return 480  # 60 herds of 4 animals × 2 steps

    def columns(self, n: int, size: int, rng: np.random.Generator, clustered: bool) -> Columns:
        labels = _labels(n, MEMBERS * STEPS if clustered else 1)
        steps, shape = (STEPS, (size, n // (MEMBERS * STEPS), MEMBERS)) if clustered else (n, (size, 1, 1))
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

    @property
    def clustered_n(self) -> int:
        return 400  # 100 clusters of 4

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


# --- exact draws ------------------------------------------------------------------------------------------------------


def rejection(rng: np.random.Generator, size: int, propose: Callable[[np.ndarray], tuple[Any, np.ndarray]]) -> Any:
    """Draws by rejection: `propose(rows)` gives candidates for those rows and their log acceptance probabilities."""
    out: np.ndarray | None = None
    left = np.arange(size)
    while left.size:
        y, log_p = propose(np.repeat(left, TRIES))
        if out is None:
            out = np.empty((size, *y.shape[1:]))
        taken = (np.log(rng.random(len(y))) < log_p).reshape(-1, TRIES)
        done = taken.any(axis=1)
        first = np.argmax(taken, axis=1) + TRIES * np.arange(left.size)
        out[left[done]] = y[first[done]]
        left = left[~done]
    return out


def exponential_quantile(u: np.ndarray, slope: Any, width: float = 1.0) -> np.ndarray:
    """Quantile of p(y) ∝ e^{slope y} on [0, width], slope ≠ 0."""
    return np.log1p(u * np.expm1(slope * width)) / slope


def walk_quantile(theta1: float, theta2: float) -> Quantile:
    """p(y|x) ∝ exp{θ1 y − ½θ2 (y − x)²} on [−1, 1] is N(x + θ1/θ2, 1/θ2), truncated."""
    scale = theta2**-0.5

    def quantile(u: np.ndarray, x: np.ndarray) -> np.ndarray:
        centre = x[..., 0] + theta1 / theta2
        mirror = np.where(centre < 0, -1.0, 1.0)  # Ω then lies left of the centre or around it: Φ keeps its digits
        low, high = (ndtr((edge - mirror * centre) / scale) for edge in (-1.0, 1.0))
        u = np.where(mirror < 0, 1.0 - u, u)
        y = mirror * (mirror * centre + scale * ndtri(low + u * (high - low)))
        return np.clip(y, -1.0, 1.0)[..., None]

    return quantile


def circle_step(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """θ1 cos(y − x) + θ2 cos y is a von Mises law's A cos(y − m); cos 2y by rejection."""
    a, b, c = CIRCLE
    x = x.reshape(-1)
    along, across = a * np.cos(x) + b, a * np.sin(x)
    mean, kappa = np.arctan2(across, along), np.hypot(along, across)

    def propose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.vonmises(mean[rows], kappa[rows])
        return y, c * np.cos(2 * y) - abs(c)

    return rejection(rng, len(x), propose).reshape(-1, 1, 1, 1)


def regression_draw(rng: np.random.Generator, x: Mapping[str, np.ndarray]) -> np.ndarray:
    """(t1 + t2 z) y is a truncated exponential law's exponent; w sin 3y by rejection."""
    a, b, c = REGRESSION
    shape, z, w = x["z"].shape, x["z"].ravel(), x["w"].ravel()

    def propose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = exponential_quantile(rng.random(len(rows)), a + b * z[rows], 2.0)
        return y, c * w[rows] * (np.sin(3 * y) - 1.0)

    return rejection(rng, z.size, propose).reshape(shape)


def box_step(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """−θ1 r + θ2 y1 + θ3 y1 y2 on the unit square, r² = |y − x|² + SOFT², by rejection from the uniform law."""
    a, b, c = BOX
    flat = x.reshape(-1, 2)

    def propose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.random((len(rows), 2))
        r = np.sqrt(((y - flat[rows]) ** 2).sum(axis=1) + SOFT**2)
        return y, -a * (r - SOFT) + b * (y[:, 0] - 1.0) + c * y[:, 0] * y[:, 1]  # b > 0 > c: at most 0

    return rejection(rng, len(flat), propose).reshape(x.shape)


def table_quantile(states: np.ndarray, log_p: np.ndarray, index: Callable[[Any], np.ndarray]) -> Quantile:
    """Quantile over listed states: log_p is (contexts, states), unnormalised; `index` numbers the contexts."""
    cumulative = np.exp(log_p - log_p.max(axis=1, keepdims=True)).cumsum(axis=1)
    cumulative /= cumulative[:, -1:]

    def quantile(u: np.ndarray, x: Any) -> np.ndarray:
        at = index(x) if x is not None else np.zeros(u.shape, dtype=int)
        return states[(u[..., None] > cumulative[at][..., :-1]).sum(axis=-1)]

    return quantile


def tabulated(states: np.ndarray, contexts: Any, statistics: Statistics, theta: tuple[float, ...]) -> np.ndarray:
    """(contexts, states) θᵀs(y|x), by calling the model's own statistics; contexts None for IID data."""
    one = [y[0] if len(y) == 1 else y for y in states]
    if contexts is None:
        return np.array([[np.dot(theta, np.array(statistics(y), dtype=float)) for y in one]])
    return np.array([[np.dot(theta, np.array(statistics(y, x), dtype=float)) for y in one] for x in contexts])


def bits(d: int) -> np.ndarray:
    """The 2^d binary vectors, by their number of ones: clustered vectors are then similar."""
    states = (np.arange(2**d)[:, None] >> np.arange(d)[::-1] & 1).astype(np.float64)
    return states[np.argsort(states.sum(axis=1), kind="stable")]


def bits_number(x: np.ndarray) -> np.ndarray:
    return (x @ (2.0 ** np.arange(x.shape[-1])[::-1])).astype(int)


# --- the laws ---------------------------------------------------------------------------------------------------------

CIRCLE = (2.0, 0.7, -0.5)
REGRESSION = (-1.0, 1.2, 0.9)
BOX = (4.0, 1.0, -0.8)
SOFT = 0.2  # rounds off the kink of the step length at zero, so that Exact converges with few nodes
SLOPE = 1.5


def _interval() -> Law:
    return Independent(
        "interval",
        un.Interval(0, 1),
        lambda y: (y,),
        ("a",),
        (SLOPE,),
        lambda y: (jnp.cos(2 * np.pi * y),),
        ("wave",),
        n=240,
        points=480,
        quantile=lambda u, x: exponential_quantile(u, SLOPE)[..., None],
        flat=un.Energy(lambda t, y: t["a"] * y - jnp.log(jnp.expm1(t["a"]) / t["a"]), {"a": 1.0}, un.Interval(0, 1)),
    )


def _flat_walk(t: Any, y: Any, x: Any) -> Any:
    """The truncated normal's log density, θ1 y − ½θ2 (y − x)² − log Z in closed form."""
    from jax.scipy.stats import norm

    scale, centre = t["theta2"] ** -0.5, x + t["theta1"] / t["theta2"]
    mass = norm.cdf((1.0 - centre) / scale) - norm.cdf((-1.0 - centre) / scale)
    return norm.logpdf(y, centre, scale) - jnp.log(mass)


def _walk(name: str, theta: tuple[float, float], chi: str, reference: Any = None) -> Law:
    omega = un.Interval(-1, 1)
    return Chain(
        name,
        omega,
        lambda y, x: (y, -0.5 * (y - x) ** 2),
        ("theta1", "theta2"),
        theta,
        lambda y, x: (jnp.cos(np.pi * y), jnp.cos(2 * np.pi * y)),
        ("wave1", "wave2"),
        n=240,
        points=6,
        chi=chi,
        quantile=walk_quantile(*theta),
        reference=un.Uniform() if reference is None else reference,
        flat=un.Energy(_flat_walk, {"theta1": 0.0, "theta2": 2.0}, omega),
    )


def _circle() -> Law:
    return Chain(
        "circle",
        un.Circle(),
        lambda y, x: (jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)),
        ("near", "east", "axis"),
        CIRCLE,
        lambda y, x: (jnp.sin(y), jnp.sin(2 * y)),
        ("north", "diagonal"),
        n=240,
        points=6,
        chi="s(y_prev, bs='cc', k=10, fx=True)",
        order=32,
        step=circle_step,
    )


def _covariates(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {"z": rng.standard_normal(shape), "w": rng.uniform(0.0, 2.0, shape)}


def _regression() -> Law:
    return Regression(
        "regression",
        un.Interval(0, 2),
        lambda y, x: (y, x["z"] * y, x["w"] * jnp.sin(3 * y)),
        ("t1", "t2", "t3"),
        REGRESSION,
        lambda y, x: (x["z"] * jnp.sin(3 * y),),
        ("t4",),
        n=240,
        points=8,
        chi="te(z, w, k=(6, 3), fx=True)",
        covariates=_covariates,
        draw=regression_draw,
    )


def _box() -> Law:
    return Chain(
        "box",
        un.Box((0, 1), (0, 1)),
        lambda y, x: (-jnp.sqrt(jnp.sum((y - x) ** 2) + SOFT**2), y[0], y[0] * y[1]),
        ("step", "east", "corner"),
        BOX,
        lambda y, x: (y[1],),
        ("north",),
        n=240,
        points=6,
        chi="te(y1_prev, y2_prev, k=(4, 4), fx=True)",
        order=16,
        step=box_step,
    )


def _ising() -> Law:
    def s(y: Any) -> tuple[Any, ...]:
        return y.sum(), (y[1:] * y[:-1]).sum(), y[0]

    theta, states = (-0.8, 0.9, 0.5), bits(5)
    return Independent(
        "ising",
        un.BinaryVectors(5),
        s,
        ("field", "coupling", "first"),
        theta,
        lambda y: (y[0] * y[4], y[2]),
        ("ends", "third"),
        n=300,
        points=900,
        quantile=table_quantile(states, tabulated(states, None, s, theta), lambda x: x),
        finite=True,
    )


def _words() -> Law:
    def s(y: Any, x: Any) -> tuple[Any, ...]:
        return y.sum(), (y[1:] * y[:-1]).sum(), (y * x).sum()

    theta, states = (-1.0, 0.8, 1.5), bits(3)
    number = np.argsort(bits_number(states))  # context code → row of the table
    return Chain(
        "words",
        un.BinaryVectors(3),
        s,
        ("field", "coupling", "persistence"),
        theta,
        lambda y, x: (y[0] * x[2], y[2]),
        ("lagged", "third"),
        n=320,
        points=6,
        chi="factor(state)",
        quantile=table_quantile(states, tabulated(states, states, s, theta), lambda x: number[bits_number(x)]),
        state=bits_number,
        finite=True,
    )


def _grid(name: str, values: np.ndarray, s: Statistics, names: tuple[str, ...], theta: tuple[float, ...]) -> Law:
    """A chain on a finite set of numbers."""
    states = values[:, None]

    def index(x: np.ndarray) -> np.ndarray:
        return np.searchsorted(values, x[..., 0] - 1e-9)

    return Chain(
        name,
        un.FiniteSet(values),
        s,
        names,
        theta,
        lambda y, x: (jnp.sin(2 * y), y**3),
        ("sine", "cube"),
        n=400,
        points=6,
        chi="factor(state)",
        quantile=table_quantile(states, tabulated(states, values, s, theta), index),
        state=index,
        finite=True,
    )


def _table() -> Law:
    """The regression with every variable on a grid."""

    def s(y: Any, x: Any) -> tuple[Any, ...]:
        return y, x["z"] * y, x["w"] * jnp.sin(3 * y)

    values = np.linspace(0.0, 2.0, 7)
    cells = [{"z": z, "w": w} for z in (-1.0, 0.0, 1.0) for w in (0.0, 1.0, 2.0)]

    def covariates(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
        state = rng.integers(len(cells), size=shape)
        return {"z": np.array([c["z"] for c in cells])[state], "w": np.array([c["w"] for c in cells])[state], "state": state}

    states = values[:, None]
    return Regression(
        "table",
        un.FiniteSet(values),
        s,
        ("t1", "t2", "t3"),
        REGRESSION,
        lambda y, x: (x["z"] * jnp.sin(3 * y),),
        ("t4",),
        n=400,
        points=6,
        chi="factor(state)",
        quantile=table_quantile(states, tabulated(states, cells, s, REGRESSION), lambda x: x["state"]),
        covariates=covariates,
        finite=True,
    )


def _walk_statistics(y: Any, x: Any) -> tuple[Any, ...]:
    return y, -0.5 * (y - x) ** 2


def _circle_statistics(y: Any, x: Any) -> tuple[Any, ...]:
    return jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)


LOCAL = un.Mixture((0.3, un.Uniform()), (0.7, un.Gaussian(mean=0.0, cov=0.04, around="context")))

LAWS: Mapping[str, Law] = {
    law.name: law
    for law in (
        _interval(),
        _walk("walk", (0.5, 5.0), "s(y_prev, bs='cr', k=8, fx=True)"),
        _walk("steep", (-2.0, 50.0), "s(y_prev, bs='cr', k=12, fx=True)", LOCAL),
        _circle(),
        _regression(),
        _box(),
        _ising(),
        _words(),
        _grid("grid walk", np.linspace(-1, 1, 9), _walk_statistics, ("theta1", "theta2"), (0.5, 5.0)),
        _grid("grid steep", np.linspace(-1, 1, 9), _walk_statistics, ("theta1", "theta2"), (-2.0, 25.0)),
        _grid("grid circle", np.arange(-4, 4) * np.pi / 4, _circle_statistics, ("near", "east", "axis"), CIRCLE),
        _table(),
    )
}
