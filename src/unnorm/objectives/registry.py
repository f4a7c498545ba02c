"""Every objective, one line each: importing it here registers it (public names, generic tests)."""

from .base import REGISTRY as _REGISTRY
from .contrastive import Importance as Importance
from .contrastive import Logistic as Logistic
from .exact import Exact as Exact
from .exact import Poisson as Poisson
from .monte_carlo import MonteCarloML as MonteCarloML
from .pseudo import PseudoLikelihood as PseudoLikelihood
from .ranking import ConditionalNCE as ConditionalNCE
from .ranking import Ranking as Ranking

_REGISTRY.fill(vars())
