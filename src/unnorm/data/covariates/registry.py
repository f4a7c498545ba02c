"""Every kind of covariate that users make, one line each: importing it here registers it."""

from .base import REGISTRY as _REGISTRY
from .columns import Function as Function
from .distances import Distance as Distance
from .expressions import Expression as Expression
from .maps import Map as Map

_REGISTRY.fill(vars())
