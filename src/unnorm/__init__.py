"""unnorm: models known only up to a constant, p(y|x) ∝ exp f_θ(y|x), by the Poisson transform.

Names are loaded on first use, so that `import unnorm` costs little: no JAX, no SciPy, no matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

# registries whose parts are public under their own names
_REGISTRIES = (
    ("domains", "REGISTRY"), ("references", "REGISTRY"), ("references", "SCHEMES"), ("data.covariates", "REGISTRY"),
    ("objectives", "REGISTRY"), ("patterns.interactions", "REGISTRY"),
)  # fmt: skip
# room or module → the other public names that it defines
_NAMES = {
    "domains.process": ("PoissonProcess",),
    "data": ("Observations", "iid", "transitions", "conditional", "networks"),
    "terms": ("s", "te", "ti", "t2", "kernel", "linear", "factor", "interaction"),
    "engine": ("gam", "Gam"),
    "engine.device": ("Device",),
    "models": ("ExponentialFamily", "Energy", "Additive", "Ising"),
    "models.graphs": ("GraphStatistics",),
    "models.tilt": ("Tilt",),
    "models.normalisers": ("Constant", "PerContext", "Fixed", "Smooth", "Anchored"),
    "models.kernel": ("Kernel",),
    "models.linear_chi": ("Linear", "minwise"),
    "models.priors": ("Flat", "Normal"),
    "solvers": ("Newton", "LBFGS", "Imputing", "Smoothing"),
    "solvers.stochastic": ("unbiased_gradient", "SGD", "Network", "Features", "log_z"),
    "results.fit": ("Fit",),
    "results.fitting": ("fit",),
    "results.graph_gof": ("graph_gof", "GraphGof"),
    "results.kernel_path": ("kernel_path", "KernelPath"),
    "results.penalty_path": ("penalty_path", "PenaltyPath"),
    "results.scores": ("PredictionScores",),
    "results.comparison": ("Comparison", "compare"),
    "results.repeats": ("Repeats", "bootstrap", "redraws"),
    "results.simulation": ("simulate",),
    "bayes": ("sample", "Langevin", "NUTS", "Draws"),
    "groups": ("FitGroup", "fit_each"),
    "groups.loading": ("load",),
    "patterns.point_pattern": ("pattern", "Pattern"),
    "patterns.dummies": ("Dummies",),
    "patterns.fitting": ("fit_pattern",),
    "patterns.result": ("PatternFit",),
    "directions": ("fit_direction", "DirectionFit"),
    "steps": ("track", "Track", "random_steps", "fit_steps", "StepFit"),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {
    "datasets": "studies.datasets",
    "directions": "directions",
    "domains": "domains",
    "errors": "errors",
    "kernels": "terms.kernels",
    "losses": "objectives.losses",
    "patterns": "patterns",
    "pysaliency": "results.pysaliency",
    "references": "references",
}


def __getattr__(name: str) -> Any:
    if name in ("Additive", "gam"):  # whose first fit compiles, beside the imports that follow
        importlib.import_module(".engine.ahead", __name__).compile_ahead()
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name == "__all__":
        return ["__version__", *_registered(), *_HOME, *_MODULES]
    if not name.startswith("_") and name in (parts := _registered()):
        return parts[name]
    raise AttributeError(f"module 'unnorm' has no attribute {name!r}")


def _registered() -> dict[str, Any]:
    """Every registered part by name. Importing the registries loads NumPy, which is why nothing here does it before."""
    tables = (getattr(importlib.import_module(f".{room}", __name__), table) for room, table in _REGISTRIES)
    return {name: part for table in tables for name, part in table.items()}


def __dir__() -> list[str]:
    return sorted(__getattr__("__all__"))


if TYPE_CHECKING:
    from . import directions, domains, errors, patterns, references
    from .bayes import NUTS, Draws, Langevin, sample
    from .data import Observations, conditional, iid, networks, transitions
    from .data.covariates.registry import *
    from .directions import DirectionFit, fit_direction
    from .domains.process import PoissonProcess
    from .domains.registry import *
    from .engine import Gam, gam
    from .engine.device import Device
    from .groups import FitGroup, fit_each
    from .groups.loading import load
    from .models import Additive, Energy, ExponentialFamily, Ising
    from .models.graphs import GraphStatistics
    from .models.kernel import Kernel
    from .models.linear_chi import Linear, minwise
    from .models.normalisers import Anchored, Constant, Fixed, PerContext, Smooth
    from .models.priors import Flat, Normal
    from .models.tilt import Tilt
    from .objectives import losses
    from .objectives.registry import *
    from .patterns import Dummies, Pattern, PatternFit, fit_pattern, pattern
    from .patterns.interactions.registry import *
    from .references.registry import *
    from .results import pysaliency
    from .results.comparison import Comparison, compare
    from .results.fit import Fit
    from .results.fitting import fit
    from .results.graph_gof import GraphGof, graph_gof
    from .results.kernel_path import KernelPath, kernel_path
    from .results.penalty_path import PenaltyPath, penalty_path
    from .results.repeats import Repeats, bootstrap, redraws
    from .results.scores import PredictionScores
    from .results.simulation import simulate
    from .solvers import LBFGS, Imputing, Newton, Smoothing
    from .solvers.stochastic import SGD, Features, Network, log_z, unbiased_gradient
    from .steps import StepFit, Track, fit_steps, random_steps, track
    from .studies import datasets
    from .terms import factor, interaction, kernel, kernels, linear, s, t2, te, ti
