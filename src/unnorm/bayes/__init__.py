"""Langevin dynamics and NUTS: draws from the posterior."""

from .draws import Draws
from .langevin import Langevin
from .nuts import NUTS
from .sampling import sample

__all__ = ["NUTS", "Draws", "Langevin", "sample"]
