"""argmax: ways to climb."""

from .imputing import Imputing
from .lbfgs import LBFGS
from .newton import Newton, Path
from .smoothing import Smoothing

__all__ = ["Imputing", "LBFGS", "Newton", "Path", "Smoothing"]
