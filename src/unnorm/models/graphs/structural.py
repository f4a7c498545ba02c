"""Statistics whose change statistic depends on other ties: reciprocity, triads, degrees, shared partners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np

from ...domains.graphs import Graphs
from .attributes import Attributes
from .base import Call, Statistic, Surroundings
from .kernels import CTRIPLE, DEGREE, DSP, ESP, IN, MUTUAL, OUT, TRIANGLE, TTRIPLE

DIRECTED = ("directed",)


@dataclass(frozen=True)
class _Plain(Statistic):
    """A term without arguments."""

    label: str

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        call.take(0, 0, "")
        return (cls(cls.name),)


@final
@dataclass(frozen=True)
class Mutual(_Plain):
    """Σ_{i<j} y_ij y_ji."""

    name: ClassVar[str] = "mutual"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    code: ClassVar[int] = MUTUAL

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        return float(np.sum(A * A.T)) / 2


@final
@dataclass(frozen=True)
class TTriple(_Plain):
    """Σ y_ij y_jk y_ik: transitive triples."""

    name: ClassVar[str] = "ttriple"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "triangle"
    code: ClassVar[int] = TTRIPLE

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        return float(np.sum((A @ A) * A))


@final
@dataclass(frozen=True)
class CTriple(_Plain):
    """Σ y_ij y_jk y_ki / 3: cyclic triples."""

    name: ClassVar[str] = "ctriple"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "triangle"
    code: ClassVar[int] = CTRIPLE

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        return float(np.trace(A @ A @ A)) / 3


@final
@dataclass(frozen=True)
class Triangle(_Plain):
    """Triangles; of directed graphs, transitive and cyclic triples together."""

    name: ClassVar[str] = "triangle"
    code: ClassVar[int] = TRIANGLE

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        cycles = float(np.trace(A @ A @ A))
        return cycles / 3 + float(np.sum((A @ A) * A)) if x.domain.directed else cycles / 6


@dataclass(frozen=True)
class _OfDegrees(Statistic):
    """Σ_i h(d_i), d the degree (`DEGREE`; in and out together), the indegree (`IN`) or the outdegree (`OUT`)."""

    label: str
    parameter: float = 0.0

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        d = {OUT: A.sum(axis=1), IN: A.sum(axis=0), DEGREE: A.sum(axis=1) + (A.sum(axis=0) if x.domain.directed else 0)}
        return float(self.table(2 * x.domain.n)[d[self.code].astype(np.intp)].sum())


@dataclass(frozen=True)
class _Star(_OfDegrees):
    """Σ_i C(d_i, k), k ≥ 2."""

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        return (cls(call.label, call.number("k", "2", whole=True, least=2)),)

    def table(self, size: int) -> np.ndarray:
        d, h = np.arange(size, dtype=np.float64), np.ones(size)
        for m in range(int(self.parameter)):
            h *= np.maximum(d - m, 0.0) / (m + 1)
        return h

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(2)", f"{cls.name}(3)")


@final
@dataclass(frozen=True)
class KStar(_Star):
    """Stars of k ties, whatever their direction."""

    name: ClassVar[str] = "kstar"
    code: ClassVar[int] = DEGREE


@final
@dataclass(frozen=True)
class IStar(_Star):
    """Stars of k ties into one actor."""

    name: ClassVar[str] = "istar"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "kstar"
    code: ClassVar[int] = IN


@final
@dataclass(frozen=True)
class OStar(_Star):
    """Stars of k ties from one actor."""

    name: ClassVar[str] = "ostar"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "kstar"
    code: ClassVar[int] = OUT


@dataclass(frozen=True)
class _Count(_OfDegrees):
    """#{i : d_i = k}."""

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        return (cls(call.label, call.number("k", "1", whole=True)),)

    def table(self, size: int) -> np.ndarray:
        return (np.arange(size) == self.parameter).astype(np.float64)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(0)", f"{cls.name}(1)", f"{cls.name}(2)")


@final
@dataclass(frozen=True)
class Degree(_Count):
    """Actors of degree k, in and out together."""

    name: ClassVar[str] = "degree"
    code: ClassVar[int] = DEGREE


@final
@dataclass(frozen=True)
class IDegree(_Count):
    """Actors of indegree k."""

    name: ClassVar[str] = "idegree"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "degree"
    code: ClassVar[int] = IN


@final
@dataclass(frozen=True)
class ODegree(_Count):
    """Actors of outdegree k."""

    name: ClassVar[str] = "odegree"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "degree"
    code: ClassVar[int] = OUT


@final
@dataclass(frozen=True)
class Isolates(_OfDegrees):
    """Actors without any tie, in or out."""

    name: ClassVar[str] = "isolates"
    code: ClassVar[int] = DEGREE

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        call.take(0, 0, "")
        return (cls(call.label),)

    def table(self, size: int) -> np.ndarray:
        return (np.arange(size) == 0).astype(np.float64)


def geometric(size: int, decay: float) -> np.ndarray:
    """h(m) = e^α {1 − (1 − e^−α)^m}: each further tie or partner counts 1 − e^−α times as much (Hunter 2007)."""
    return np.exp(decay) * (1.0 - (1.0 - np.exp(-decay)) ** np.arange(size))


@dataclass(frozen=True)
class _WeightedDegree(_OfDegrees):
    """Σ_i h(d_i), h geometric with a fixed decay."""

    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        return (cls(call.label, call.number("The decay", "0.5")),)

    def table(self, size: int) -> np.ndarray:
        return geometric(size, self.parameter)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(0.5)", f"{cls.name}(0)")


@final
@dataclass(frozen=True)
class GWDegree(_WeightedDegree):
    """Geometrically weighted degrees, in and out together."""

    name: ClassVar[str] = "gwdegree"
    code: ClassVar[int] = DEGREE


@final
@dataclass(frozen=True)
class GWIDegree(_WeightedDegree):
    """Geometrically weighted indegrees."""

    name: ClassVar[str] = "gwidegree"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "gwdegree"
    code: ClassVar[int] = IN


@final
@dataclass(frozen=True)
class GWODegree(_WeightedDegree):
    """Geometrically weighted outdegrees."""

    name: ClassVar[str] = "gwodegree"
    on: ClassVar[tuple[str, ...]] = DIRECTED
    instead: ClassVar[str] = "gwdegree"
    code: ClassVar[int] = OUT


@dataclass(frozen=True)
class _Partners(Statistic):
    """Σ h(P_ik) over ties (`ESP`) or over all dyads (`DSP`), P_ik = #{j : i → j → k} (ergm's OTP)."""

    paths: ClassVar[bool] = True
    label: str
    parameter: float

    def value(self, A: np.ndarray, x: Surroundings) -> float:
        i, j = x.domain.pairs.T
        h = self.table(2 * x.domain.n)[(A @ A)[i, j].astype(np.intp)]
        return float(np.sum(h * A[i, j] if self.code == ESP else h))


@dataclass(frozen=True)
class _WeightedPartners(_Partners):
    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        return (cls(call.label, call.number("The decay", "0.25")),)

    def table(self, size: int) -> np.ndarray:
        return geometric(size, self.parameter)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(0.25)", f"{cls.name}(0)", f"{cls.name}(1.5)")


@final
@dataclass(frozen=True)
class GWESP(_WeightedPartners):
    """Geometrically weighted edgewise shared partners."""

    name: ClassVar[str] = "gwesp"
    code: ClassVar[int] = ESP


@final
@dataclass(frozen=True)
class GWDSP(_WeightedPartners):
    """Geometrically weighted dyadwise shared partners."""

    name: ClassVar[str] = "gwdsp"
    code: ClassVar[int] = DSP


@dataclass(frozen=True)
class _PartnerCount(_Partners):
    @classmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        return (cls(call.label, call.number("k", "1", whole=True)),)

    def table(self, size: int) -> np.ndarray:
        return (np.arange(size) == self.parameter).astype(np.float64)

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        return (f"{cls.name}(0)", f"{cls.name}(1)")


@final
@dataclass(frozen=True)
class ESPCount(_PartnerCount):
    """Ties with k shared partners."""

    name: ClassVar[str] = "esp"
    code: ClassVar[int] = ESP


@final
@dataclass(frozen=True)
class DSPCount(_PartnerCount):
    """Dyads with k shared partners."""

    name: ClassVar[str] = "dsp"
    code: ClassVar[int] = DSP
