"""f_θ: unnormalised log densities."""

from .base import Context, Model
from .energy import Energy
from .exponential_family import ExponentialFamily

__all__ = ["Context", "Energy", "ExponentialFamily", "Model"]
