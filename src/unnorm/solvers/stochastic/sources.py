"""One step's draw: a minibatch of observations and fresh reference points, unbiased together.

Observations are put in order once (along their contexts, or along their outcomes for IID data). A stratified batch
takes one from each of b equal stretches of that order, which is unbiased, costs nothing, and lowers the variance of
everything that varies smoothly along it; neighbours in the batch then get consecutive points of the low-discrepancy
sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np

from ...data.observations import Observations
from ...domains.base import whole
from ...errors import CombinationError, InputError, unknown
from ...references.base import BoundReference
from ...references.ordering import context_order, order
from ...references.points import IID, Lattice, PointScheme
from ...references.tracing import FreshPoints, JaxLaw, JaxPoints, Traceable

Sampling = Literal["stratified", "iid"]


HOST_UNIFORMS = 2**15  # numbers per step; beyond it they are drawn inside the loop


class Batch(NamedTuple):
    """What one step sees: E Σ_i scale_i g_i = Σ_t g_t; (r, k) reference points, r = b, or 1 where shared."""

    index: Any  # (b,) positions among the ordered observations
    scale: Any  # (b,)
    y: Any  # (r, k, d)
    log_q: Any  # (r, k)
    log_back: Any = None  # (r, k) log q(y_i | y): the density of the step back, for kernels around the outcome


@dataclass(frozen=True)
class Plan:
    """How a step draws: b of n observations, k reference points for each (b k in one row where they are shared)."""

    n: int
    batch: int | None  # None: all
    references: int
    sampling: Sampling
    shared: bool

    @property
    def b(self) -> int:
        return self.n if self.batch is None else self.batch

    @property
    def rows(self) -> int:
        return 1 if self.shared else self.b

    @property
    def k(self) -> int:
        """Reference points in each row."""
        return self.b * self.references if self.shared else self.references

    @property
    def strata(self) -> tuple[np.ndarray, np.ndarray]:
        """First and one past the last position of each of b stretches; their lengths are the weights."""
        edges = (np.arange(self.b + 1) * self.n) // self.b
        return edges[:-1].astype(np.int32), edges[1:].astype(np.int32)


def plan(obs: Observations, batch: Any, references: Any, sampling: Any, shared: bool) -> Plan:
    """The step's sizes, checked."""
    references = whole(references, "references (reference points for each observation of the batch)", 1)
    if batch is not None:
        batch = whole(batch, "batch", 1)
        if batch > obs.n:
            raise InputError(
                f"batch must be at most the number of observations ({obs.n}), or None for all; got {batch}."
            )
    if sampling not in ("stratified", "iid"):
        raise InputError(unknown("sampling", sampling, ("stratified", "iid")))
    return Plan(obs.n, None if batch == obs.n else batch, references, sampling, shared)


def ordered(obs: Observations) -> np.ndarray:
    """Positions of the observations along their contexts (along their outcomes where they have none)."""
    return context_order(obs) if obs.has_context else order(obs.outcome)


class Draw(ABC):
    """How an entry of `Source.block` becomes a `Batch` under tracing. It holds no arrays: equal ones compile once."""

    @abstractmethod
    def __call__(self, constants: Any, key: Any, x: Any) -> Batch: ...


class Source(ABC):
    """Draws for a block of steps: `block` is scanned over, `draw` turns one entry into a `Batch`."""

    draw: Draw

    @abstractmethod
    def constants(self) -> Any:
        """Arrays to keep on the device and to pass to `draw`."""

    @abstractmethod
    def block(self, seed: int, first: int, count: int) -> Any:
        """What steps first … first + count − 1 scan over; the same numbers whenever it is asked."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers one entry of `block` holds."""


@final
@dataclass(frozen=True)
class DeviceDraw(Draw):
    """Points made inside the compiled loop.

    Its uniform numbers come from the host with the block (an XLA generator adds a second to every compilation), or,
    where a step needs very many, from fold_in(key, step).
    """

    plan: Plan
    law: JaxLaw
    make: JaxPoints
    need: int
    dtype: Any
    back: bool

    @property
    def inside(self) -> bool:
        return self.need > HOST_UNIFORMS

    def __call__(self, constants: Any, key: Any, x: Any) -> Batch:
        import jax
        import jax.numpy as jnp

        p, law = self.plan, self.law
        if self.inside:
            key = jax.random.fold_in(key, x)
            v = jax.random.uniform(key, (self.need,), dtype=self.dtype)
            index = None if p.batch is None else self._indices(jax.random.fold_in(key, 1))
        else:
            v, index = x["v"], x.get("index")
        if index is None:
            index, scale = jnp.arange(p.n), jnp.ones(p.n, dtype=self.dtype)
        elif p.sampling == "iid":
            scale = jnp.full(p.b, p.n / p.b, dtype=self.dtype)
        else:
            scale = jnp.asarray(np.subtract(*p.strata[::-1]), dtype=self.dtype)
        rows = jax.tree.map(lambda leaf: leaf[index], constants["rows"])
        y = law.from_unit(constants["params"], rows, self.make(v, constants["fixed"]))
        log_q = jnp.broadcast_to(law.log_density(constants["params"], rows, y), y.shape[:-1])
        if not self.back:
            return Batch(index, scale, y, log_q)
        own = constants["y"][index][:, None]
        log_back = law.log_density_back(constants["params"], rows, own, y)
        return Batch(index, scale, y, log_q, jnp.broadcast_to(log_back, y.shape[:-1]))

    def _indices(self, key: Any) -> Any:
        import jax
        import jax.numpy as jnp

        p = self.plan
        if p.sampling == "iid":
            return jnp.sort(jax.random.randint(key, (p.b,), 0, p.n))
        return jax.random.randint(key, (p.b,), *p.strata)


@final
@dataclass(frozen=True)
class DeviceSource(Source):
    """References with a form in JAX."""

    plan: Plan
    units: FreshPoints
    reference: Traceable
    dtype: Any
    y: np.ndarray | None  # the outcomes, where the density of the step back is needed

    @property
    def draw(self) -> DeviceDraw:  # pyright: ignore[reportIncompatibleVariableOverride]
        return DeviceDraw(
            self.plan, self.reference.law, self.units.make, self.units.need, self.dtype, self.y is not None
        )

    @property
    def numbers(self) -> int:
        return 1 if self.draw.inside else self.units.need + self.plan.b

    def constants(self) -> Any:
        from jax import tree

        def cast(value: Any) -> Any:
            array = np.asarray(value)
            return array.astype(self.dtype) if array.dtype.kind == "f" else array

        own = {} if self.y is None else {"y": self.y}
        fixed = {"fixed": self.units.fixed, "params": self.reference.params, "rows": self.reference.rows}
        return tree.map(cast, fixed | own)

    def block(self, seed: int, first: int, count: int) -> Any:
        if self.draw.inside:
            return np.arange(first, first + count, dtype=np.uint32)
        streams = [np.random.default_rng([seed, step]) for step in range(first, first + count)]
        below = 1.0 - np.finfo(self.dtype).epsneg  # rounding to float32 must not reach 1
        v = np.stack([rng.random(self.units.need) for rng in streams]).astype(self.dtype)
        out = {"v": np.minimum(v, v.dtype.type(below))}
        if self.plan.batch is not None:
            out["index"] = np.stack([indices(self.plan, rng) for rng in streams]).astype(np.int32)
        return out


def indices(plan: Plan, rng: np.random.Generator) -> np.ndarray:
    """(b,) positions of one step's observations."""
    if plan.batch is None:
        return np.arange(plan.n)
    return np.sort(rng.integers(0, plan.n, plan.b)) if plan.sampling == "iid" else rng.integers(*plan.strata)


@final
@dataclass(frozen=True)
class Ready(Draw):
    """Everything was drawn already."""

    def __call__(self, constants: Any, key: Any, x: Any) -> Batch:
        return x


@final
@dataclass(frozen=True)
class HostSource(Source):
    """Reference points by NumPy, a block of steps at a time; each step has its own generator."""

    plan: Plan
    scheme: PointScheme
    reference: BoundReference
    obs: Observations  # ordered
    dtype: Any
    back: bool

    @property
    def draw(self) -> Ready:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Ready()

    @property
    def numbers(self) -> int:
        return self.plan.rows * self.plan.k * (self.obs.dim + 1 + self.back)

    def constants(self) -> Any:
        return ()

    def block(self, seed: int, first: int, count: int) -> Any:
        parts = [self._one(np.random.default_rng([seed, step])) for step in range(first, first + count)]
        fields = [[part[j] for part in parts] for j in range(len(Batch._fields))]
        return Batch(*(None if values[0] is None else np.stack(values) for values in fields))

    def _one(self, rng: np.random.Generator) -> Batch:
        p = self.plan
        index = indices(p, rng)
        if p.batch is None:
            scale = np.ones(p.n)
        else:
            scale = np.full(p.b, p.n / p.b) if p.sampling == "iid" else np.subtract(*p.strata[::-1]).astype(float)
        at = np.repeat(index if p.rows == p.b and not p.shared else index[:1], p.k)
        if self.scheme.iid:
            y = self.reference.sample(self.obs, at, rng)
        else:
            d = self.reference.cube_dim
            assert d is not None
            rank = None if p.rows == 1 else np.arange(p.rows)
            u = self.scheme.unit(rank, p.k, d, self.reference.periodic, rng).reshape(-1, d)
            y = self.reference.from_unit(np.clip(u, 2.0**-53, 1 - 2.0**-53), self.obs, at)

        def table(values: np.ndarray) -> np.ndarray:
            return values.reshape(p.rows, p.k, *values.shape[1:]).astype(self.dtype)

        return Batch(
            index.astype(np.int32),
            scale.astype(self.dtype),
            table(y),
            table(self.reference.log_density(y, self.obs, at)),
            table(self.reference.log_density_back(y, self.obs, at)) if self.back else None,
        )


def source(reference: BoundReference, obs: Observations, plan: Plan, points: PointScheme | None, dtype: Any) -> Source:
    """The draws of this reference by this scheme (default: Lattice, or IID without a map from the cube)."""
    if points is None:
        points = Lattice() if reference.cube_dim is not None else IID()
    if not isinstance(points, PointScheme):
        raise InputError(f"points must be un.IID(), un.Stratified(), un.Lattice() or un.Sobol(); got {points!r}.")
    if not points.iid and reference.cube_dim is None:
        raise CombinationError(
            f"{type(points).__name__} needs a map from the unit cube, which this reference does not have; use "
            f"points=un.IID()."
        )
    back = reference.given == "outcome"
    inside = reference.traceable(obs)
    if inside is None:
        return HostSource(plan, points, reference, obs, dtype, back)
    fresh = points.fresh(plan.rows, plan.k, inside.cube_dim, reference.periodic, dtype)
    return DeviceSource(plan, fresh, inside, dtype, obs.outcome if back else None)
