"""Statistics Σ_ij W_ij y_ij, whose change statistic W_ij does not depend on other ties: ergm's dyad-independent terms.

Sums run over ordered pairs of directed graphs, and over pairs i < j of undirected ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from ...domains.graphs import Graphs
from ...errors import TermError, unknown
from ..centring import level
from .attributes import Attributes
from .base import Call, Statistic, Surroundings


class Dyadic(Statistic):
    """Σ W_ij y_ij."""

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        W = self.weights(x)
        assert W is not None
        i, j = x.domain.pairs.T
        return float(np.sum((A * W)[i, j]))


@final
@dataclass(frozen=True)
class Edges(Dyadic):
    """Σ y_ij."""

    name: ClassVar[str] = "edges"
    counts: ClassVar[bool] = True
    label: str = "edges"

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        call.take(0, 0, "")
        return (cls(),)

    def weights(self, x: Surroundings) -> np.ndarray:
        return np.ones((x.domain.n, x.domain.n))


@dataclass(frozen=True)
class _OfNode(Dyadic):
    """A covariate of actors, by name, with its lag."""

    label: str
    attribute: str
    lag: int = 0

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        (name,) = call.take(1, 1, "age", ("lag",))
        attributes.number(name, call.label)
        return (cls(call.label, name, call.lag),)

    def _z(self, x: Surroundings) -> np.ndarray:
        return x.attributes.node(self.attribute, self.label, x.wave, self.lag)

    def varies(self, attributes: Attributes) -> bool:
        return attributes.varies("nodes", self.attribute)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(age)",)


@dataclass(frozen=True)
class _Covariate(_OfNode):
    """A number of actors, of one or both ends of a tie, counted from `origin`."""

    ends: ClassVar[int] = 1
    origin: float = 0.0

    def _number(self, x: Surroundings) -> np.ndarray:
        return self._z(x).astype(np.float64) - self.origin

    def centred(self, attributes: Attributes) -> tuple[Statistic, float]:
        m = level(attributes.number(self.attribute, self.label))
        return replace(self, origin=m), self.ends * m


@final
@dataclass(frozen=True)
class NodeCov(_Covariate):
    """Σ (z_i + z_j) y_ij."""

    name: ClassVar[str] = "nodecov"
    ends: ClassVar[int] = 2

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._number(x)
        return z[:, None] + z


@final
@dataclass(frozen=True)
class NodeOCov(_Covariate):
    """Σ z_i y_ij: the sender's."""

    name: ClassVar[str] = "nodeocov"
    on: ClassVar[tuple[str, ...]] = ("directed",)
    instead: ClassVar[str] = "nodecov"

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._number(x)
        return np.repeat(z[:, None], len(z), axis=1)


@final
@dataclass(frozen=True)
class NodeICov(_Covariate):
    """Σ z_j y_ij: the receiver's."""

    name: ClassVar[str] = "nodeicov"
    on: ClassVar[tuple[str, ...]] = ("directed",)
    instead: ClassVar[str] = "nodecov"

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._number(x)
        return np.repeat(z[None], len(z), axis=0)


@final
@dataclass(frozen=True)
class AbsDiff(_OfNode):
    """Σ |z_i − z_j| y_ij."""

    name: ClassVar[str] = "absdiff"

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._z(x).astype(np.float64)
        return np.abs(z[:, None] - z)


@final
@dataclass(frozen=True)
class NodeMatch(_OfNode):
    """Σ 1(z_i = z_j) y_ij."""

    name: ClassVar[str] = "nodematch"

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        (name,) = call.take(1, 1, "sex", ("lag",))
        attributes.levels(name, call.label)
        return (cls(call.label, name, call.lag),)

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._z(x)
        return (z[:, None] == z).astype(np.float64)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return ("nodematch(sex)", "nodematch(club)")


@dataclass(frozen=True)
class _Factor(_OfNode):
    """One statistic for each level but the first, in sorted order."""

    level: Any = None

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        (name,) = call.take(1, 1, "sex", ("lag",))
        levels = attributes.levels(name, call.label)
        if len(levels) < 2:
            raise TermError(f"{call.label} needs at least two levels; {name!r} is {levels[0]!r} for every actor.")
        return tuple(cls(f"{call.label}[{level}]", name, call.lag, level) for level in levels[1:])

    def _is(self, x: Surroundings) -> np.ndarray:
        return (self._z(x) == self.level).astype(np.float64)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(club)",)


@final
@dataclass(frozen=True)
class NodeFactor(_Factor):
    """Σ {1(z_i = level) + 1(z_j = level)} y_ij."""

    name: ClassVar[str] = "nodefactor"

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._is(x)
        return z[:, None] + z


@final
@dataclass(frozen=True)
class NodeOFactor(_Factor):
    """Σ 1(z_i = level) y_ij: the sender's."""

    name: ClassVar[str] = "nodeofactor"
    on: ClassVar[tuple[str, ...]] = ("directed",)
    instead: ClassVar[str] = "nodefactor"

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._is(x)
        return np.repeat(z[:, None], len(z), axis=1)


@final
@dataclass(frozen=True)
class NodeIFactor(_Factor):
    """Σ 1(z_j = level) y_ij: the receiver's."""

    name: ClassVar[str] = "nodeifactor"
    on: ClassVar[tuple[str, ...]] = ("directed",)
    instead: ClassVar[str] = "nodefactor"

    def weights(self, x: Surroundings) -> np.ndarray:
        z = self._is(x)
        return np.repeat(z[None], len(z), axis=0)


@final
@dataclass(frozen=True)
class EdgeCov(Dyadic):
    """Σ D_ij y_ij."""

    name: ClassVar[str] = "edgecov"
    label: str
    attribute: str
    lag: int = 0
    origin: float = 0.0

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        (name,) = call.take(1, 1, "dist", ("lag",))
        D = attributes._named("dyads", name, call.label)
        if not domain.directed and not np.array_equal(D, np.swapaxes(D, -2, -1)):
            at = np.argwhere(np.swapaxes(D, -2, -1) != D)[0].tolist()
            raise TermError(
                f"dyads[{name!r}] must be symmetric, as the graphs are undirected; entries ({at[-2]}, {at[-1]}) and "
                f"({at[-1]}, {at[-2]}) differ (from 0). Symmetrise it, (D + D.T) / 2."
            )
        return (cls(call.label, name, call.lag),)

    def weights(self, x: Surroundings) -> np.ndarray:
        return x.attributes.dyad(self.attribute, self.label, x.wave, self.lag) - self.origin

    def centred(self, attributes: Attributes) -> tuple[Statistic, float]:
        D = attributes._named("dyads", self.attribute, self.label)
        m = level(D[..., ~np.eye(D.shape[-1], dtype=bool)])
        return replace(self, origin=m), m

    def varies(self, attributes: Attributes) -> bool:
        return attributes.varies("dyads", self.attribute)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return ("edgecov(dist)", "edgecov(trend)", "edgecov(trend, lag=1)")


@final
@dataclass(frozen=True)
class Memory(Dyadic):
    """What the previous graph y' leaves (the kinds of btergm's memory), by W_ij:

    stability        2y'_ij − 1    ties and gaps both persist (the default)
    autoregression   y'_ij         ties persist
    innovation       1 − y'_ij     new ties form
    loss             −y'_ij        ties are lost
    """

    name: ClassVar[str] = "memory"
    reads_before: ClassVar[bool] = True
    label: str = "memory"
    kind: str = "stability"

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        kind = (*call.take(0, 1, "autoregression"), "stability")[0]
        if kind not in KINDS:
            raise TermError(unknown("The kind of memory", kind, KINDS))
        return (cls(call.label, kind),)

    def weights(self, x: Surroundings) -> np.ndarray:
        slope, level = KINDS[self.kind]
        return slope * x.previous + level

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return ("memory", *(f"memory({kind})" for kind in KINDS))


KINDS = {"stability": (2.0, -1.0), "autoregression": (1.0, 0.0), "innovation": (-1.0, 1.0), "loss": (-1.0, 0.0)}


@final
@dataclass(frozen=True)
class Stability(Dyadic):
    """Σ {y_ij y'_ij + (1 − y_ij)(1 − y'_ij)}: dyads that are as they were; the change statistics of `memory`."""

    name: ClassVar[str] = "stability"
    reads_before: ClassVar[bool] = True
    label: str = "stability"

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        call.take(0, 0, "")
        return (cls(),)

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        i, j = x.domain.pairs.T
        return float(np.sum((x.previous == A)[i, j]))

    def weights(self, x: Surroundings) -> np.ndarray:
        return 2.0 * x.previous - 1.0


@final
@dataclass(frozen=True)
class DelRecip(Dyadic):
    """Σ y'_ji y_ij: ties that answer one of the previous graph."""

    name: ClassVar[str] = "delrecip"
    on: ClassVar[tuple[str, ...]] = ("directed",)
    instead: ClassVar[str] = "memory(autoregression)"
    reads_before: ClassVar[bool] = True
    mirrors: ClassVar[bool] = True
    label: str = "delrecip"

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        call.take(0, 0, "")
        return (cls(),)

    def weights(self, x: Surroundings) -> np.ndarray:
        return x.previous.T.copy()
