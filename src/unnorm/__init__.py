"""unnorm: models known only up to a constant, p(y|x) ∝ exp f_θ(y|x), by the Poisson transform.

Names are loaded on first use, so that `import unnorm` costs little: no JAX, no SciPy, no matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

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


def _registered() -> dict[str, Any]:
    """Every registered part by name. Importing the registries loads NumPy, which is why nothing here does it before."""
    tables = (getattr(importlib.import_module(f".{room}", __name__), table) for room, table in _REGISTRIES)
    return {name: part for table in tables for name, part in table.items()}


def _public() -> list[str]:
    return ["__version__", *_registered(), *_HOME, *_MODULES]


def __dir__() -> list[str]:
    return sorted(_public())


if not TYPE_CHECKING:  # type checkers know the names below, and would take any other for Any

    def __getattr__(name: str) -> Any:
        if name in ("Additive", "gam"):  # whose first fit compiles, beside the imports that follow
            importlib.import_module(".engine.ahead", __name__).compile_ahead()
        if name in _HOME:
            return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        if name in _MODULES:
            return importlib.import_module(f".{_MODULES[name]}", __name__)
        if name == "__all__":
            return _public()
        if not name.startswith("_") and name in (parts := _registered()):
            return parts[name]
        raise AttributeError(f"module 'unnorm' has no attribute {name!r}")


if TYPE_CHECKING:  # `as` says that a name is exported, to those who check programs that use unnorm
    from . import directions as directions
    from . import domains as domains
    from . import errors as errors
    from . import patterns as patterns
    from . import references as references
    from .bayes import NUTS as NUTS
    from .bayes import Draws as Draws
    from .bayes import Langevin as Langevin
    from .bayes import sample as sample
    from .data import Observations as Observations
    from .data import conditional as conditional
    from .data import iid as iid
    from .data import networks as networks
    from .data import transitions as transitions
    from .data.covariates.registry import *
    from .directions import DirectionFit as DirectionFit
    from .directions import fit_direction as fit_direction
    from .domains.process import PoissonProcess as PoissonProcess
    from .domains.registry import *
    from .engine import Gam as Gam
    from .engine import gam as gam
    from .engine.device import Device as Device
    from .groups import FitGroup as FitGroup
    from .groups import fit_each as fit_each
    from .groups.loading import load as load
    from .models import Additive as Additive
    from .models import Energy as Energy
    from .models import ExponentialFamily as ExponentialFamily
    from .models import Ising as Ising
    from .models.graphs import GraphStatistics as GraphStatistics
    from .models.kernel import Kernel as Kernel
    from .models.linear_chi import Linear as Linear
    from .models.linear_chi import minwise as minwise
    from .models.normalisers import Anchored as Anchored
    from .models.normalisers import Constant as Constant
    from .models.normalisers import Fixed as Fixed
    from .models.normalisers import PerContext as PerContext
    from .models.normalisers import Smooth as Smooth
    from .models.priors import Flat as Flat
    from .models.priors import Normal as Normal
    from .models.tilt import Tilt as Tilt
    from .objectives import losses as losses
    from .objectives.registry import *
    from .patterns import Dummies as Dummies
    from .patterns import Pattern as Pattern
    from .patterns import PatternFit as PatternFit
    from .patterns import fit_pattern as fit_pattern
    from .patterns import pattern as pattern
    from .patterns.interactions.registry import *
    from .references.registry import *
    from .results import pysaliency as pysaliency
    from .results.comparison import Comparison as Comparison
    from .results.comparison import compare as compare
    from .results.fit import Fit as Fit
    from .results.fitting import fit as fit
    from .results.graph_gof import GraphGof as GraphGof
    from .results.graph_gof import graph_gof as graph_gof
    from .results.kernel_path import KernelPath as KernelPath
    from .results.kernel_path import kernel_path as kernel_path
    from .results.penalty_path import PenaltyPath as PenaltyPath
    from .results.penalty_path import penalty_path as penalty_path
    from .results.repeats import Repeats as Repeats
    from .results.repeats import bootstrap as bootstrap
    from .results.repeats import redraws as redraws
    from .results.scores import PredictionScores as PredictionScores
    from .results.simulation import simulate as simulate
    from .solvers import LBFGS as LBFGS
    from .solvers import Imputing as Imputing
    from .solvers import Newton as Newton
    from .solvers import Smoothing as Smoothing
    from .solvers.stochastic import SGD as SGD
    from .solvers.stochastic import Features as Features
    from .solvers.stochastic import Network as Network
    from .solvers.stochastic import log_z as log_z
    from .solvers.stochastic import unbiased_gradient as unbiased_gradient
    from .steps import StepFit as StepFit
    from .steps import Track as Track
    from .steps import fit_steps as fit_steps
    from .steps import random_steps as random_steps
    from .steps import track as track
    from .studies import datasets as datasets
    from .terms import factor as factor
    from .terms import interaction as interaction
    from .terms import kernel as kernel
    from .terms import kernels as kernels
    from .terms import linear as linear
    from .terms import s as s
    from .terms import t2 as t2
    from .terms import te as te
    from .terms import ti as ti
