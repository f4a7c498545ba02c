"""Cost functions of θ and the normalising constants."""

from .base import Objective, Problem
from .contrastive import Importance, Logistic
from .exact import Exact, Poisson
from .ranking import ConditionalNCE, Ranking

__all__ = ["ConditionalNCE", "Exact", "Importance", "Logistic", "Objective", "Poisson", "Problem", "Ranking"]
