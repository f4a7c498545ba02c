"""argmax: ways to climb."""

from .lbfgs import LBFGS
from .newton import Newton, Path
from .smoothing import Smoothing

__all__ = ["LBFGS", "Newton", "Path", "Smoothing"]
