"""Cost functions of θ and the normalising constants."""

from .base import Objective, Problem
from .exact import Exact, Poisson

__all__ = ["Exact", "Objective", "Poisson", "Problem"]
