"""Every statistic of graphs, one line each, by ergm's name."""

from __future__ import annotations

import inspect

from .base import Statistic
from .dyadic import AbsDiff as AbsDiff
from .dyadic import DelRecip as DelRecip
from .dyadic import EdgeCov as EdgeCov
from .dyadic import Edges as Edges
from .dyadic import Memory as Memory
from .dyadic import NodeCov as NodeCov
from .dyadic import NodeFactor as NodeFactor
from .dyadic import NodeICov as NodeICov
from .dyadic import NodeIFactor as NodeIFactor
from .dyadic import NodeMatch as NodeMatch
from .dyadic import NodeOCov as NodeOCov
from .dyadic import NodeOFactor as NodeOFactor
from .dyadic import Stability as Stability
from .structural import GWDSP as GWDSP
from .structural import GWESP as GWESP
from .structural import CTriple as CTriple
from .structural import Degree as Degree
from .structural import DSPCount as DSPCount
from .structural import ESPCount as ESPCount
from .structural import GWDegree as GWDegree
from .structural import GWIDegree as GWIDegree
from .structural import GWODegree as GWODegree
from .structural import IDegree as IDegree
from .structural import Isolates as Isolates
from .structural import IStar as IStar
from .structural import KStar as KStar
from .structural import Mutual as Mutual
from .structural import ODegree as ODegree
from .structural import OStar as OStar
from .structural import Triangle as Triangle
from .structural import TTriple as TTriple

STATISTICS: dict[str, type[Statistic]] = {
    part.name: part
    for part in list(vars().values())
    if inspect.isclass(part) and issubclass(part, Statistic) and not inspect.isabstract(part)
}
