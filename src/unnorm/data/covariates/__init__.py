"""Named functions of (y, x), used by additive terms: columns, built-ins of planar chains, maps, expressions.

base.py          what a covariate is, and the rows that it is computed for
columns.py       outcome and context columns; step, angle, turn, dcenter; users' functions
expressions.py   "log(step + 1)", parsed and never evaluated as Python
maps.py          rasters, one for all or one for each key
registry.py      the kinds that users make; built_ins.py: those that are known without being made
resolve.py       CovariateSet: names → values, each computed once
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import built_ins as built_ins
from .base import BUILT_INS as BUILT_INS
from .base import REGISTRY as REGISTRY
from .base import Covariate as Covariate
from .base import CovariateRows as CovariateRows
from .registry import *  # noqa: F403  (the registered covariates)
from .resolve import CovariateSet as CovariateSet


def from_dict(description: Mapping[str, Any]) -> Covariate:
    """The covariate that `to_dict` described; expressions and maps can be saved, users' functions cannot.

    >>> from_dict({"covariate": "Expression", "name": "logstep", "text": "log(step + 1)"}).needs
    ('step',)
    """
    return REGISTRY.read(description)
