"""Tables and arrays become `Observations`; functions of (y, x) become covariates."""

from .networks import networks
from .observations import Observations, conditional, iid, transitions

__all__ = ["Observations", "conditional", "iid", "networks", "transitions"]
