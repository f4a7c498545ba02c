"""Point patterns: n random points in a window, their intensity, their interactions, and what to ask of a fit.

Names are loaded on first use: the interactions are public parts of `unnorm`, and knowing their names must cost little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_NAMES = {
    "dummies": ("Dummies",),
    "fitting": ("fit_pattern",),
    "functions": ("Envelope", "F", "G", "J", "K", "L", "Summary", "envelope", "pair_correlation"),
    "gibbs": ("Process", "process"),
    "interactions": ("REGISTRY", "Interaction"),
    "point_pattern": ("Pattern", "pattern"),
    "result": ("PatternFit",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __dir__() -> list[str]:
    return sorted(_HOME)


if not TYPE_CHECKING:  # type checkers know the names below, and would take any other for Any

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        raise AttributeError(f"module 'unnorm.patterns' has no attribute {name!r}")


if TYPE_CHECKING:
    from .dummies import Dummies as Dummies
    from .fitting import fit_pattern as fit_pattern
    from .functions import Envelope as Envelope
    from .functions import F as F
    from .functions import G as G
    from .functions import J as J
    from .functions import K as K
    from .functions import L as L
    from .functions import Summary as Summary
    from .functions import envelope as envelope
    from .functions import pair_correlation as pair_correlation
    from .gibbs import Process as Process
    from .gibbs import process as process
    from .interactions import REGISTRY as REGISTRY
    from .interactions import Interaction as Interaction
    from .point_pattern import Pattern as Pattern
    from .point_pattern import pattern as pattern
    from .result import PatternFit as PatternFit
