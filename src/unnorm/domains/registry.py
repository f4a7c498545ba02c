"""Every domain, one line each: importing it here registers it (saved fits, public names, generic tests)."""

from .axis import Axis as Axis
from .base import REGISTRY as _REGISTRY
from .boxes import Box as Box
from .boxes import Interval as Interval
from .finite import BinaryVectors as BinaryVectors
from .finite import FiniteSet as FiniteSet
from .graphs import Graphs as Graphs
from .round import Circle as Circle
from .round import Sphere as Sphere
from .torus import Torus as Torus
from .window import Window as Window
from .windows import Windows as Windows

_REGISTRY.fill(vars())
