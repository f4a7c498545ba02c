"""Stochastic estimation: unbiased gradients, SGD, Langevin sampling, and energies that are networks (Section 3.1)."""

from ..references.gaussian_mixture import GaussianMixture
from .chi import Features, Network
from .draws import Draws
from .gradient import GradientEstimate, unbiased_gradient
from .langevin import Langevin
from .logz import LogZ, log_z
from .loop import DivergenceError
from .nuts import NUTS
from .priors import Flat, Normal, Prior
from .sampling import sample
from .sgd import SGD

__all__ = [
    "Features",
    "DivergenceError",
    "Draws",
    "Flat",
    "GaussianMixture",
    "GradientEstimate",
    "Langevin",
    "LogZ",
    "NUTS",
    "Network",
    "Normal",
    "Prior",
    "SGD",
    "log_z",
    "sample",
    "unbiased_gradient",
]
