"""Tables and arrays become `Observations`; functions of (y, x) become covariates."""

from .observations import Observations, conditional, iid, transitions

__all__ = ["Observations", "conditional", "iid", "transitions"]
