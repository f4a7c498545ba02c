"""argmax: ways to climb."""

from .newton import Newton, Path

__all__ = ["Newton", "Path"]
