"""Gibbs interactions: statistics of a place u and the pattern less u itself."""

from . import registry as _registry
from .base import REGISTRY as REGISTRY
from .base import Interaction as Interaction
from .base import Neighbours as Neighbours

_ = _registry
