"""Stochastic estimation: unbiased gradients, SGD, and energies that are networks (Section 3.1)."""

from .chi import Features, Network
from .gradient import GradientEstimate, unbiased_gradient
from .logz import LogZ, log_z
from .loop import DivergenceError
from .sgd import SGD

__all__ = [
    "SGD",
    "DivergenceError",
    "Features",
    "GradientEstimate",
    "LogZ",
    "Network",
    "log_z",
    "unbiased_gradient",
]
