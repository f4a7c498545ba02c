"""unnorm: models known only up to a constant, p(y|x) ∝ exp f_θ(y|x), by the Poisson transform.

Names are loaded on first use, so that `import unnorm` costs little: no JAX, no SciPy, no matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

# module → the public names that it defines
_NAMES = {
    "domains": ("Interval", "Box", "Window", "Circle", "Sphere", "FiniteSet", "BinaryVectors", "Graphs"),
    "data": ("Observations", "iid", "transitions", "conditional"),
    "covariates": ("Map", "Expression", "Function"),
    "process": ("PoissonProcess",),
    "terms": ("s", "te", "ti", "linear", "factor"),
    "engine": ("gam", "Gam"),
    "models": ("ExponentialFamily", "Energy", "Additive"),
    "normalisers": ("Constant", "PerContext", "Fixed", "Smooth"),
    "references": (
        "Uniform", "Gaussian", "VonMises", "VonMisesFisher", "StepKernel", "Empirical", "Mixture", "ProductBernoulli",
        "BitFlip", "Marginal", "Custom", "IID", "Stratified", "Lattice", "Sobol",
    ),
    "objectives": ("Exact", "Poisson", "Logistic", "Importance", "Ranking", "ConditionalNCE"),
    "solvers": ("Newton", "Smoothing"),
    "results": ("Fit",),
    "loading": ("load",),
    "fitting": ("fit",),
    "comparison": ("Comparison", "compare"),
    "simulation": ("simulate",),
    "groups": ("FitGroup", "fit_each"),
    "stochastic": (
        "unbiased_gradient", "SGD", "sample", "Langevin", "NUTS", "Draws", "Flat", "Normal", "Network", "Features",
        "GaussianMixture", "log_z",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("datasets", "domains", "errors", "references", "losses")

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
    from . import datasets, domains, errors, losses, references
    from .comparison import Comparison, compare
    from .covariates import Expression, Function, Map
    from .data import Observations, conditional, iid, transitions
    from .domains import BinaryVectors, Box, Circle, FiniteSet, Graphs, Interval, Sphere, Window
    from .engine import Gam, gam
    from .fitting import fit
    from .groups import FitGroup, fit_each
    from .loading import load
    from .models import Additive, Energy, ExponentialFamily
    from .normalisers import Constant, Fixed, PerContext, Smooth
    from .objectives import ConditionalNCE, Exact, Importance, Logistic, Poisson, Ranking
    from .process import PoissonProcess
    from .references import (
        IID,
        BitFlip,
        Custom,
        Empirical,
        Gaussian,
        Lattice,
        Marginal,
        Mixture,
        ProductBernoulli,
        Sobol,
        StepKernel,
        Stratified,
        Uniform,
        VonMises,
        VonMisesFisher,
    )
    from .results import Fit
    from .simulation import simulate
    from .solvers import Newton, Smoothing
    from .stochastic import (
        NUTS,
        SGD,
        Draws,
        Features,
        Flat,
        GaussianMixture,
        Langevin,
        Network,
        Normal,
        log_z,
        sample,
        unbiased_gradient,
    )
    from .terms import factor, linear, s, te, ti
