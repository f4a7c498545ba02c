"""unnorm: models known only up to a constant, p(y|x) ∝ exp f_θ(y|x), by the Poisson transform.

Names are loaded on first use, so that `import unnorm` costs little: no JAX, no SciPy, no matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

# public name → module that defines it
_HOME = {
    # Ω
    "Interval": "domains", "Box": "domains", "Window": "domains", "Circle": "domains", "Sphere": "domains",
    "FiniteSet": "domains", "BinaryVectors": "domains", "Graphs": "domains",
    # data
    "Observations": "data", "iid": "data", "transitions": "data", "conditional": "data",
    # models and normalisers
    "ExponentialFamily": "models", "Energy": "models",
    "Constant": "normalisers", "PerContext": "normalisers", "Fixed": "normalisers",
    # objectives
    "Exact": "objectives", "Poisson": "objectives",
    # fitting
    "fit": "fitting", "load": "results", "Fit": "results", "Newton": "solvers",
    # point processes
    "PoissonProcess": "process",
    # terms and the additive engine
    "s": "terms", "te": "terms", "ti": "terms", "linear": "terms", "factor": "terms",
    "gam": "engine",
}  # fmt: skip
_MODULES = ("datasets", "errors", "losses")

__all__ = ["__version__", *_HOME, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'unnorm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from . import datasets, errors
    from .data import Observations, conditional, iid, transitions
    from .domains import BinaryVectors, Box, Circle, FiniteSet, Graphs, Interval, Sphere, Window
