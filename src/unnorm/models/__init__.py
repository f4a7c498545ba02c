"""f_θ: unnormalised log densities."""

from .additive import Additive
from .base import Context, Model, Unnormalised
from .energy import Energy
from .exponential_family import ExponentialFamily
from .ising import Ising

__all__ = ["Additive", "Context", "Energy", "ExponentialFamily", "Ising", "Model", "Unnormalised"]
