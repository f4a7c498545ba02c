"""Named functions of (y, x), used by additive terms: columns, built-ins of planar chains, maps, expressions.

base.py          what a covariate is, and the rows that it is computed for
columns.py       outcome and context columns; step, angle, turn, dcenter; users' functions
expressions.py   "log(step + 1)", parsed and never evaluated as Python
maps.py          rasters, one for all or one for each key
resolve.py       CovariateSet: names → values, each computed once
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError, unknown
from .base import Covariate, Rows
from .columns import Function
from .expressions import Expression
from .maps import Map
from .resolve import CovariateSet

__all__ = ["Covariate", "CovariateSet", "Expression", "Function", "Map", "Rows", "from_dict"]


def from_dict(given: Mapping[str, Any]) -> Covariate:
    """The covariate that `to_dict` described; expressions and maps can be saved, users' functions cannot."""
    kind = given.get("covariate")
    if kind == "Expression":
        return Expression(given["name"], given["text"])
    if kind == "Map":
        return Map.from_dict(given)
    raise InputError(unknown("A saved covariate's kind", kind, ("Expression", "Map")))
