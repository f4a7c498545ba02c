"""argmax: ways to climb."""

from .newton import Newton, Path
from .smoothing import Smoothing

__all__ = ["Newton", "Path", "Smoothing"]
