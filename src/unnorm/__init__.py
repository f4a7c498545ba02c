"""unnorm: models known only up to a constant, p(y|x) ∝ exp f_θ(y|x), by the Poisson transform.

Names are loaded on first use, so that `import unnorm` costs little: no JAX, no SciPy, no matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

# room or module → the public names that it defines
_NAMES = {
    "domains": ("Interval", "Box", "Window", "Circle", "Sphere", "FiniteSet", "BinaryVectors", "Graphs"),
    "domains.process": ("PoissonProcess",),
    "data": ("Observations", "iid", "transitions", "conditional"),
    "data.covariates": ("Map", "Expression", "Function"),
    "references": (
        "Uniform", "Gaussian", "GaussianMixture", "VonMises", "VonMisesFisher", "StepKernel", "Empirical", "Mixture",
        "ProductBernoulli", "BitFlip", "Marginal", "Custom", "IID", "Stratified", "Lattice", "Sobol",
    ),
    "terms": ("s", "te", "ti", "linear", "factor"),
    "engine": ("gam", "Gam"),
    "models": ("ExponentialFamily", "Energy", "Additive"),
    "models.normalisers": ("Constant", "PerContext", "Fixed", "Smooth"),
    "models.priors": ("Flat", "Normal"),
    "objectives": ("Exact", "Poisson", "Logistic", "Importance", "Ranking", "ConditionalNCE"),
    "solvers": ("Newton", "Smoothing"),
    "solvers.stochastic": ("unbiased_gradient", "SGD", "Network", "Features", "log_z"),
    "results.fit": ("Fit",),
    "results.fitting": ("fit",),
    "results.comparison": ("Comparison", "compare"),
    "results.simulation": ("simulate",),
    "bayes": ("sample", "Langevin", "NUTS", "Draws"),
    "groups": ("FitGroup", "fit_each"),
    "groups.loading": ("load",),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {
    "datasets": "studies.datasets",
    "domains": "domains",
    "errors": "errors",
    "losses": "objectives.losses",
    "references": "references",
}

__all__ = ["__version__", *_HOME, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    raise AttributeError(f"module 'unnorm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from . import domains, errors, references
    from .bayes import NUTS, Draws, Langevin, sample
    from .data import Observations, conditional, iid, transitions
    from .data.covariates import Expression, Function, Map
    from .domains import BinaryVectors, Box, Circle, FiniteSet, Graphs, Interval, Sphere, Window
    from .domains.process import PoissonProcess
    from .engine import Gam, gam
    from .groups import FitGroup, fit_each
    from .groups.loading import load
    from .models import Additive, Energy, ExponentialFamily
    from .models.normalisers import Constant, Fixed, PerContext, Smooth
    from .models.priors import Flat, Normal
    from .objectives import ConditionalNCE, Exact, Importance, Logistic, Poisson, Ranking, losses
    from .references import (
        IID,
        BitFlip,
        Custom,
        Empirical,
        Gaussian,
        GaussianMixture,
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
    from .results.comparison import Comparison, compare
    from .results.fit import Fit
    from .results.fitting import fit
    from .results.simulation import simulate
    from .solvers import Newton, Smoothing
    from .solvers.stochastic import SGD, Features, Network, log_z, unbiased_gradient
    from .studies import datasets
    from .terms import factor, linear, s, te, ti
