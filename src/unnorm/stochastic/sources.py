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

from ..data import Observations
from ..domains.base import whole
from ..errors import CombinationError, InputError, unknown
from ..references.base import BoundReference
from ..references.ordering import context_order, order
from ..references.points import IID, Lattice, PointScheme
from .traceable import Traceable, traceable
from .units import Units, units

Sampling = Literal["stratified", "iid"]


class Batch(NamedTuple):
    """What one step sees: E Σ_i scale_i g_i = Σ_t g_t; (r, k) reference points, r = b, or 1 where shared."""

    index: Any  # (b,) positions among the ordered observations
    scale: Any  # (b,)
    y: Any  # (r, k, d)
    log_q: Any  # (r, k)


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


class Source(ABC):
    """Draws for a block of steps: `xs` is scanned over, `draw` turns one entry into a `Batch` under tracing."""

    host: bool  # whether points are drawn on the host, a block at a time

    @abstractmethod
    def constants(self) -> Any:
        """Arrays to keep on the device and to pass to `draw`."""

    @abstractmethod
    def block(self, seed: int, first: int, count: int) -> Any:
        """What steps first … first + count − 1 scan over; the same numbers whenever it is asked."""

    @abstractmethod
    def draw(self, constants: Any, seed_key: Any, x: Any) -> Batch:
        """One step's batch, traceable."""


@final
@dataclass(frozen=True)
class DeviceSource(Source):
    """Everything drawn inside the compiled loop: step s uses fold_in(key, s)."""

    plan: Plan
    units: Units
    reference: Traceable
    dtype: Any
    host: bool = False

    def constants(self) -> Any:
        from jax import tree

        def cast(value: Any) -> Any:
            array = np.asarray(value)
            return array.astype(self.dtype) if array.dtype.kind == "f" else array

        return tree.map(cast, {"fixed": self.units.fixed, "params": self.reference.params, "rows": self.reference.rows})

    def block(self, seed: int, first: int, count: int) -> Any:
        return np.arange(first, first + count, dtype=np.uint32)

    def draw(self, constants: Any, seed_key: Any, x: Any) -> Batch:
        import jax
        import jax.numpy as jnp

        # One stream of uniforms for everything: every call of the generator adds a second to the compilation.
        key = jax.random.fold_in(seed_key, x)
        picks = 0 if self.plan.batch is None else self.plan.b
        v = jax.random.uniform(key, (picks + self.units.need,), dtype=self.dtype)
        index, scale = self._observations(v[:picks], key)
        rows = jax.tree.map(lambda leaf: leaf[index], constants["rows"])
        y = self.reference.from_unit(constants["params"], rows, self.units.make(v[picks:], constants["fixed"]))
        log_q = self.reference.log_density(constants["params"], rows, y)
        return Batch(index, scale, y, jnp.broadcast_to(log_q, y.shape[:-1]))

    def _observations(self, v: Any, key: Any) -> tuple[Any, Any]:
        import jax
        import jax.numpy as jnp

        p = self.plan
        if p.batch is None:
            return jnp.arange(p.n), jnp.ones(p.n, dtype=self.dtype)
        if p.sampling == "iid":
            low, high = np.zeros(p.b, dtype=np.int32), np.full(p.b, p.n, dtype=np.int32)
            scale = jnp.full(p.b, p.n / p.b, dtype=self.dtype)
        else:
            low, high = p.strata
            scale = jnp.asarray(high - low, dtype=self.dtype)
        if self.dtype == "float32" and np.max(high - low) > 2**12:  # 2²³ values of a float32 are too few for even odds
            index = jax.random.randint(jax.random.fold_in(key, 1), (p.b,), low, high)
        else:
            index = jnp.minimum(low + (v * (high - low)).astype(jnp.int32), high - 1)
        return (jnp.sort(index) if p.sampling == "iid" else index), scale


@final
@dataclass(frozen=True)
class HostSource(Source):
    """Reference points by NumPy, a block of steps at a time; each step has its own generator."""

    plan: Plan
    scheme: PointScheme
    reference: BoundReference
    obs: Observations  # ordered
    dtype: Any
    host: bool = True

    def constants(self) -> Any:
        return ()

    def block(self, seed: int, first: int, count: int) -> Any:
        parts = [self._one(np.random.default_rng([seed, step])) for step in range(first, first + count)]
        return Batch(*(np.stack([part[j] for part in parts]) for j in range(4)))

    def _one(self, rng: np.random.Generator) -> Batch:
        p = self.plan
        if p.batch is None:
            index, scale = np.arange(p.n), np.ones(p.n)
        elif p.sampling == "iid":
            index, scale = np.sort(rng.integers(0, p.n, p.b)), np.full(p.b, p.n / p.b)
        else:
            low, high = p.strata
            index, scale = rng.integers(low, high), (high - low).astype(float)
        at = np.repeat(index if p.rows == p.b and not p.shared else index[:1], p.k)
        if self.scheme.iid:
            y = self.reference.sample(self.obs, at, rng)
        else:
            d = self.reference.cube_dim
            assert d is not None
            rank = None if p.rows == 1 else np.arange(p.rows)
            u = self.scheme.unit(rank, p.k, d, self.reference.periodic, rng).reshape(-1, d)
            y = self.reference.from_unit(np.clip(u, 2.0**-53, 1 - 2.0**-53), self.obs, at)
        log_q = self.reference.log_density(y, self.obs, at)
        return Batch(
            index.astype(np.int32),
            scale.astype(self.dtype),
            y.reshape(p.rows, p.k, -1).astype(self.dtype),
            log_q.reshape(p.rows, p.k).astype(self.dtype),
        )

    def draw(self, constants: Any, seed_key: Any, x: Any) -> Batch:
        return x


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
    inside = traceable(reference, obs)
    if inside is None:
        return HostSource(plan, points, reference, obs, dtype)
    fresh = units(points, plan.rows, plan.k, inside.cube_dim, reference.periodic, dtype)
    return DeviceSource(plan, fresh, inside, dtype)
