"""Every interaction, one line each: importing it here makes it public, and known to `--interaction`."""

from .area import AreaInteraction as AreaInteraction
from .base import REGISTRY as _REGISTRY
from .geyer import Geyer as Geyer
from .hard_core import HardCore as HardCore
from .multi_strauss import MultiStrauss as MultiStrauss
from .pairwise_spline import PairwiseSpline as PairwiseSpline
from .softcore import Softcore as Softcore
from .strauss import Strauss as Strauss

_REGISTRY.fill(vars())
